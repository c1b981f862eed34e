import pytest
from runs import Run


@pytest.fixture
def run(tmp_path):
    return lambda name, *words: Run(tmp_path / name, *words)
