"""What every benchmark keeps beside its figures."""

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

VERSIONED = ("labelmend", "torch", "numpy", "scikit-learn")


def stamp() -> dict[str, Any]:
    """Commit, versions and machine that a figure came from."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    return {
        "commit": commit,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in VERSIONED},
        "machine": {"processor": processor(), "cores": cores()},
    }


def cores() -> int:
    """Cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0))


def processor() -> str:
    """The processor's name, as far as the system tells."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def kept_results(path: Path) -> list[dict[str, Any]]:
    """Rows measured before, if there are any."""
    return list(json.loads(path.read_text())["rows"]) if path.exists() else []


def mean_of(found: list[dict[str, Any]], key: str, digits: int) -> str:
    """The mean of a figure over some rows, as text; a dash where none has it."""
    known = [row[key] for row in found if row.get(key) is not None]
    return f"{sum(known) / len(known):.{digits}f}" if known else "–"
