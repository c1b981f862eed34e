"""How many threads a run takes: cores that are there, and what the environment says."""

import os

import pytest

from labelmend.training import threads as own
from labelmend.training.threads import available_cores, process_threads


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


@pytest.mark.parametrize(
    ("wished", "processes", "threads"),
    [
        (None, None, 8),
        ("1", None, 1),
        ("3,2", None, 3),
        (" 8 ", None, 8),
        ("0", None, 8),
        ("many", None, 8),
        ("64", None, 8),
        ("1", "2", 4),
    ],
)
def test_threads_are_those_that_the_environment_asks_for(wished, processes, threads, monkeypatch):
    monkeypatch.setattr(own, "available_cores", lambda: 8)
    for name, value in {"OMP_NUM_THREADS": wished, "LOCAL_WORLD_SIZE": processes}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert process_threads()[0] == threads
