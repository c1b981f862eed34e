"""Checkpoints without pickle: tensors in safetensors, everything else in JSON, a manifest written last."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..core import Learner
from ..files import sync_folder, to_json, write_synced
from .finite import check_tensors

KEPT = 2
TENSORS, VALUES, MANIFEST = "tensors.safetensors", "values.json", "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after `epoch` epochs and `step` steps of the next one, as nested tensors and plain values."""

    epoch: int
    step: int
    state: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the folder; names sort in the order of training."""
        return f"epoch-{self.epoch:05d}-step-{self.step:07d}"


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
    """The nested state, from the two parts that `flatten` gave."""
    state: dict[str, Any] = {}
    for path, value in (item for part in parts for item in part.items()):
        *folders, name = path.split("/")
        nested = state
        for folder in folders:
            nested = nested.setdefault(folder, {})
        nested[name] = value
    return state


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint completely or not at all, and remove all but this one and the one before it.

    Everything is on the disk before the folder gets its name, so that a folder of that name is complete. Checkpoints
    that are further on than this one are removed too: the run went back because it could not read them.
    """
    final = folder / checkpoint.name
    if final.is_dir() and _intact(final):
        return
    tensors, values = flatten(checkpoint.state)
    check_tensors(tensors)
    files = {TENSORS: save_tensors(tensors), VALUES: to_json({"values": values})}
    files[MANIFEST] = to_json({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
    for stale in [*folder.glob(".*.tmp"), final]:
        shutil.rmtree(stale, ignore_errors=True)
    temporary = folder / f".{checkpoint.name}.tmp"
    temporary.mkdir(parents=True)
    for name, content in files.items():
        write_synced(temporary / name, content)
    sync_folder(temporary)
    temporary.replace(final)
    sync_folder(folder)
    present = saved(folder)
    newest = present.index(final) + 1
    for useless in present[: max(newest - KEPT, 0)] + present[newest:]:
        shutil.rmtree(useless, ignore_errors=True)


def saved(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("epoch-*") if path.is_dir())


def load_newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint whose digests agree, and a warning for each damaged one that was skipped."""
    warnings: list[str] = []
    for path in reversed(saved(folder)):
        try:
            return _load(path), warnings
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
            warnings.append(f"checkpoint {path.name} is damaged ({error}) and was skipped")
    return None, warnings


def _intact(path: Path) -> bool:
    try:
        _checked(path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return True


def _checked(path: Path) -> dict[str, bytes]:
    """The content of the files of a checkpoint, compared with the digests in the manifest."""
    manifest = (path / MANIFEST).read_bytes()
    digests = json.loads(manifest)
    if set(digests) != {TENSORS, VALUES} or to_json(digests) != manifest:
        raise ValueError(f"{MANIFEST} is not as it was written")
    content = {name: (path / name).read_bytes() for name in (TENSORS, VALUES)}
    for name, data in content.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise ValueError(f"{name} does not match its digest")
    return content


def _load(path: Path) -> Checkpoint:
    content = _checked(path)
    described = json.loads(content[VALUES])
    state = unflatten(load_tensors(content[TENSORS]), described["values"])
    found = Checkpoint(state["position"]["epoch"], state["position"]["step"], state)
    if found.name != path.name:
        raise ValueError(f"its content is that of {found.name}")
    return found


def learner_state(learner: Learner) -> dict[str, Any]:
    """Weights, averaged weights and the optimiser's memory, without settings and learning rate, which the run sets."""
    state: dict[str, Any] = {
        "network": learner.network.state_dict(),
        "optimiser": {str(key): dict(value) for key, value in learner.optimiser.state_dict()["state"].items()},
    }
    if learner.average is not None:
        state |= {"average": learner.average.network.state_dict(), "averaged_steps": learner.average.updates}
    return state


def restore_learner(learner: Learner, state: Mapping[str, Any]) -> None:
    """Take back what `learner_state` gave."""
    learner.network.load_state_dict(state["network"])
    memory = {int(key): dict(value) for key, value in state.get("optimiser", {}).items()}
    groups = learner.optimiser.state_dict()["param_groups"]
    learner.optimiser.load_state_dict({"state": memory, "param_groups": groups})
    if learner.average is not None:
        learner.average.network.load_state_dict(state["average"])
        learner.average.updates = state["averaged_steps"]
