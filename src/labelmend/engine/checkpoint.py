"""Checkpoints without pickle: tensors in safetensors, everything else in JSON, a manifest written last."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from .run_dir import to_json, write_atomic

KEPT = 2
TENSORS, VALUES, MANIFEST = "tensors.safetensors", "values.json", "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after an epoch, as nested dictionaries of tensors and plain values."""

    epoch: int
    state: dict[str, Any]


def flatten(state: Mapping[str, Any], prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split nested state into tensors and JSON values, by slash-separated path."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    for key, value in state.items():
        path = f"{prefix}{key}"
        if isinstance(value, Tensor):
            tensors[path] = value.detach().to("cpu").contiguous().clone()
        elif isinstance(value, Mapping):
            inner_tensors, inner_values = flatten(value, f"{path}/")
            tensors |= inner_tensors
            values |= inner_values or ({} if inner_tensors else {path: {}})
        else:
            values[path] = value
    return tensors, values


def unflatten(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Nested state again, from what `flatten` gave."""
    state: dict[str, Any] = {}
    for path, value in (item for part in parts for item in part.items()):
        *folders, name = path.split("/")
        place = state
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return state


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole or not at all, and drop all but the newest two."""
    tensors, values = flatten(checkpoint.state)
    files = {TENSORS: save_tensors(tensors), VALUES: to_json({"epoch": checkpoint.epoch, "values": values})}
    temporary = folder / f".epoch-{checkpoint.epoch:05d}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, content in files.items():
        write_atomic(temporary / name, content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_atomic(temporary / MANIFEST, to_json(digests))
    final = folder / f"epoch-{checkpoint.epoch:05d}"
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    for old in saved(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def saved(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first."""
    return sorted(path for path in folder.glob("epoch-*") if path.is_dir())


def load_newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint whose digests agree, and a warning for each damaged one passed over."""
    warnings: list[str] = []
    for path in reversed(saved(folder)):
        try:
            return _load(path), warnings
        except (OSError, ValueError, KeyError, RecursionError) as error:
            warnings.append(f"checkpoint {path.name} is damaged ({error}); the one before it is used")
    return None, warnings


def _load(path: Path) -> Checkpoint:
    digests = json.loads((path / MANIFEST).read_bytes())
    content = {name: (path / name).read_bytes() for name in (TENSORS, VALUES)}
    for name, data in content.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise ValueError(f"{name} does not match its digest")
    described = json.loads(content[VALUES])
    return Checkpoint(described["epoch"], unflatten(load_tensors(content[TENSORS]), described["values"]))


def optimiser_state(optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """Per-parameter state of an optimiser; settings and learning rate are the run's to set."""
    return {str(key): dict(value) for key, value in optimiser.state_dict()["state"].items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Give an optimiser its per-parameter state back."""
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": {int(key): dict(v) for key, v in state.items()}, "param_groups": groups})
