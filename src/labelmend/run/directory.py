"""The run directory: where each file of a run lies."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .description import read_description, write_description
from .epochs import append_epoch, read_epochs

if TYPE_CHECKING:
    from torch import Tensor


class RunDirectory:
    """Paths of the files of one run; their names are a contract with users.

    Of several processes that train together only one `writes`; in the others, writing does nothing.
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
        self.decisions = path / "decisions.csv"
        self.model = path / "model.safetensors"
        self.model_json = path / "model.json"
        self.card = path / "model-card.md"
        self.checkpoints = path / "checkpoints"
        self.report = path / "report.html"
        self.evidence = path / "evidence"
        self.suspects = self.evidence / "suspects.parquet"
        self.neighbours = self.evidence / "neighbours.parquet"
        self.losses = self.evidence / "losses.f16"
        self.features = self.evidence / "features.safetensors"

    @classmethod
    def existing(cls, path: str | PathLike[str]) -> "RunDirectory":
        """The run at this path; InputError if there is none."""
        run = cls(Path(path))
        if not run.run_json.is_file():
            raise InputError(f"{path} is not a run directory: it has no run.json")
        return run

    def check_unused(self, remedy: str = "choose another --out") -> None:
        """Refuse a place where something is already; `remedy` is what to do about a run that is there."""
        if self.path.is_file():
            raise InputError(f"{self.path} is a file; --out takes a folder")
        if self.run_json.is_file():
            raise InputError(f"{self.path} holds a run that is {self.read().get('status')}; {remedy}")
        if self.path.is_dir() and any(path.name != ".lock" for path in self.path.iterdir()):
            raise InputError(f"{self.path} is not empty and holds no run; choose another --out")

    def create(self, description: Mapping[str, Any]) -> None:
        """Make the folders and write run.json."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self.evidence.mkdir(exist_ok=True)
        write_description(self.run_json, description)

    def read(self) -> dict[str, Any]:
        """The content of run.json."""
        return read_description(self.run_json)

    def update(self, **changes: Any) -> None:
        """Change entries of run.json."""
        if self.writes:
            write_description(self.run_json, self.read() | changes)

    def epochs(self) -> list[dict[str, Any]]:
        """The recorded epochs, in order."""
        return read_epochs(self.epochs_jsonl)

    def append_epoch(self, record: Mapping[str, Any]) -> None:
        """Add the record of an epoch to epochs.jsonl."""
        if self.writes:
            append_epoch(self.epochs_jsonl, record)

    def append_losses(self, losses: "Tensor", *, after: int) -> None:
        """Add the losses of a tracking pass, which has `after` passes before it, to the evidence."""
        from .losses import append_losses  # imports PyTorch, which those that only read a run can do without

        if self.writes:
            append_losses(self.losses, losses, after=after)
