"""Threads of a run: as many as the cores that this process may really use, fewer where they would wait."""

import os
from pathlib import Path

from ..nets import is_trees

SMALL_NETS = ("convnet", "mlp", "linear")
MANY_ROWS = 20_000
"""Rows from which on trees are grown by two threads."""


def suited_threads(net: str, samples: int) -> tuple[int, str]:
    """Threads that suit a network and so many samples, and why."""
    if is_trees(net):
        many = samples >= MANY_ROWS
        why = "more would not give the same bytes every time" if many else "so few rows are learned quickly"
        return (min(2, process_threads()[0]) if many else 1), f"for trees: {why}"
    if net in SMALL_NETS:
        return 1, "one: in a network this small, threads would mostly wait for each other"
    return process_threads()


def process_threads() -> tuple[int, str]:
    """Threads of this process, and why: its share of the cores, or what OMP_NUM_THREADS says.

    A launcher of several processes sets that variable to 1 on its own account, so it does not count there.
    """
    together = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if together > 1:
        return max(1, available_cores() // together), f"the cores available, shared by {together} processes"
    wished = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wished.isdecimal() and 1 <= int(wished) <= available_cores():
        return int(wished), "as OMP_NUM_THREADS says"
    return available_cores(), "one for each core available"


def available_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Cores that this process may really use: its affinity and, in a container, its quota (cgroup v2)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        limit, period = quota.read_text().split()
        return max(1, min(cores, int(limit) // int(period)))
    except (OSError, ValueError):
        return cores
