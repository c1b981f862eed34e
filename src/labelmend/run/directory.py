"""The run directory: the files of a run, each written whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from .files import to_json, write_atomic

LOSSES_KEPT = 20_000


class RunDirectory:
    """Where one run keeps its files; names are a contract with users.

    Of several processes that train together only one `writes`; for the others, what would be written is passed over.
    """

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self.path = path
        self.writes = writes
        self.run_json = path / "run.json"
        self.preflight = path / "preflight.json"
        self.epochs_jsonl = path / "epochs.jsonl"
        self.labels_csv = path / "labels.csv"
        self.labels_parquet = path / "labels.parquet"
        self.noise_json = path / "noise.json"
        self.model = path / "model.safetensors"
        self.model_json = path / "model.json"
        self.checkpoints = path / "checkpoints"
        self.report = path / "report.html"
        self.evidence = path / "evidence"
        self.suspects = self.evidence / "suspects.parquet"
        self.losses = self.evidence / "losses.f16"
        self.features = self.evidence / "features.safetensors"

    @classmethod
    def existing(cls, path: Path) -> "RunDirectory":
        """A run that is there, or an error that says it is not."""
        run = cls(path)
        if not run.run_json.is_file():
            raise InputError(f"{path} is not a run directory: it has no run.json")
        return run

    def create(self, description: Mapping[str, Any]) -> None:
        """Make the folder and say what is being run in it."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self.evidence.mkdir(exist_ok=True)
        self.write(self.run_json, to_json(dict(description)))

    def write(self, path: Path, content: bytes) -> None:
        """Replace one of the files."""
        if self.writes:
            write_atomic(path, content)

    def read(self) -> dict[str, Any]:
        """What run.json holds."""
        try:
            described = json.loads(self.run_json.read_bytes())
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.run_json} is damaged: {error}") from None
        if not isinstance(described, dict):
            raise InputError(f"{self.run_json} is damaged: it holds no object")
        return described

    def update(self, **changes: Any) -> None:
        """Change entries of run.json."""
        self.write(self.run_json, to_json(self.read() | changes))

    def epochs(self) -> list[dict[str, Any]]:
        """The recorded epochs, in order."""
        if not self.epochs_jsonl.is_file():
            return []
        try:
            return [json.loads(line) for line in self.epochs_jsonl.read_text().splitlines() if line]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.epochs_jsonl} is damaged: {error}") from None

    def append_epoch(self, record: Mapping[str, Any]) -> None:
        """Add one epoch's record; one that is there already, from before an interruption, is replaced."""
        kept = [line for line in self.epochs() if line["epoch"] < record["epoch"]]
        lines = (json.dumps(line, allow_nan=False) for line in [*kept, dict(record)])
        self.write(self.epochs_jsonl, "".join(f"{line}\n" for line in lines).encode())

    def append_losses(self, losses: Tensor, *, after: int) -> None:
        """Add the losses of a tracking pass, as float16, of every sample or of 20,000 at equal distances.

        `after` is the number of passes before it; what an interrupted run wrote of this or later ones is cut off first.
        """
        if not self.writes:
            return
        samples = len(losses)
        kept = min(samples, LOSSES_KEPT)
        chosen = losses[torch.arange(kept, device=losses.device) * samples // kept]
        row = chosen.clamp_max(torch.finfo(torch.half).max).half().cpu().numpy()
        with self.losses.open("r+b" if self.losses.exists() else "wb") as file:
            file.seek(after * row.nbytes)
            file.truncate()
            file.write(row.astype("<f2").tobytes())
