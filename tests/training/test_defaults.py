import os

import pytest

from labelmend.training.defaults import available_cores

MINE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000\n", MINE),
        ("100000 100000\n", 1),
        ("50000 100000\n", 1),
        ("99000000 100000\n", MINE),
        ("damaged", MINE),
        (None, MINE),
    ],
)
def test_threads_are_the_cores_that_a_container_really_has(quota, cores, tmp_path):
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota)
    assert available_cores(path) == cores
