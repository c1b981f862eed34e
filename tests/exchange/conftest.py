"""Runs that are made once, and copies of them to change."""

from pathlib import Path

import pytest
from exchanged import CLASSES, STRANGE, ids_run, judged_run, pictures_run, table_run


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Runs that no test changes, by what their samples are."""
    folder = tmp_path_factory.mktemp("made")
    return {
        "pictures": pictures_run(folder / "pictures"),
        "rows": table_run(folder / "rows"),
        "ids": ids_run(folder / "ids", ids=STRANGE, count=len(STRANGE), classes=CLASSES),
        "texts": texts_run(folder / "texts"),
    }


def texts_run(folder: Path):
    from labelmend.data.sources import read_source

    folder.mkdir()
    lines = [f'"text {i}, with <b>markup</b> and ""quotes""","{("ham", "spam")[i % 2]}"' for i in range(40)]
    (folder / "texts.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    samples = read_source(str(folder / "texts.csv"))
    given = samples.labels.observed.numpy()
    truth = [1 - label if row < 10 else label for row, label in enumerate(given)]
    return judged_run(
        folder / "run",
        given=given,
        truth=truth,
        classes=samples.class_names,
        ids=samples.ids,
        source=str(folder / "texts.csv"),
        samples=samples,
    )


@pytest.fixture
def run_of(made, tmp_path):
    """A run of one's own, by what its samples are."""
    import shutil

    from labelmend.run.directory import RunDirectory

    def copy(kind: str) -> RunDirectory:
        return RunDirectory.existing(shutil.copytree(made[kind].path, tmp_path / kind))

    return copy


@pytest.fixture
def said():
    """The decisions of a run without their times: id, decision, label and reviewer."""
    from labelmend.run.decisions import DecisionLog

    def read(run):
        return [(each.id, each.decision, each.label, each.reviewer) for each in DecisionLog.of(run).read()]

    return read
