"""run.json: what was trained on what, with which options, how far the run came, and what it found."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import to_json, write_atomic

VERSIONED = ("labelmend", "torch", "accelerate", "numpy", "scikit-learn", "safetensors", "pyarrow")


def versions() -> dict[str, str]:
    """Versions of everything that the numbers of a run depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in VERSIONED}


def write_description(path: Path, description: Mapping[str, Any]) -> None:
    """Write run.json."""
    write_atomic(path, to_json(dict(description)))


def read_description(path: Path) -> dict[str, Any]:
    """The content of run.json; InputError if it is damaged."""
    try:
        described = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    if not isinstance(described, dict):
        raise InputError(f"{path} is damaged: it holds no object")
    return described


def check_finished(path: Path, described: Mapping[str, Any]) -> None:
    """Refuse the description of a run that did not reach its end."""
    if described.get("status") != "finished":
        status = described.get("status")
        raise InputError(f"the run in {path} is {status}; finish it with labelmend train ... --resume first")
