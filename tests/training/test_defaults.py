import os

import pytest

from labelmend.training.defaults import available_cores


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000\n", 8),
        ("100000 100000\n", 1),
        ("50000 100000\n", 1),
        ("350000 100000\n", 3),
        ("99000000 100000\n", 8),
        ("damaged", 8),
        (None, 8),
    ],
)
def test_threads_are_the_cores_that_a_container_really_has(quota, cores, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota)
    assert available_cores(path) == cores
