"""The library from Python: train on what you have, and look at what was found."""

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import lookup
from ..run.directory import RunDirectory
from ..training.config import TrainConfig

if TYPE_CHECKING:
    from ..detect.summary import NoiseSummary
    from ..detect.table import LabelTable
    from ..run.model import Model

SHOWN = 20


def train(
    data: Any,
    labels: Any = None,
    *,
    out: str | Path | None = None,
    label: str | None = None,
    image: str | None = None,
    test: Any = None,
    progress: bool = True,
    report: bool = True,
    **options: Any,
) -> "Run":
    """Train robustly on data whose labels may be wrong, judge every label, and give the finished run.

    `data` is a path or name as the command takes it, an array or a list of texts with `labels`, a pair of both, a
    pandas or polars DataFrame or Arrow table with a `label` column and columns to learn from or an `image` column, or
    a torch or Hugging Face data set. `out` is the run directory; without it the run lives in a temporary folder for as
    long as the result does. `test` is held-out data in the same form. The other options are the fields of
    `TrainConfig`, such as `epochs=20`, `method="ce"` or `category=["zip"]`; `settings` takes what `--set` takes, with
    values of their own
    types.

    >>> import labelmend, numpy
    >>> rng = numpy.random.default_rng(0)
    >>> y = numpy.arange(90) % 3
    >>> x = rng.normal(size=(90, 2)) + 3 * y[:, None]
    >>> run = labelmend.train((x, y), epochs=2, progress=False, report=False)
    >>> run.labels.shape[0]
    90
    """
    from rich.console import Console

    from ..data.readers.objects import from_objects
    from ..training.prepare import column_wishes

    with warnings.catch_warnings():  # in a notebook without widgets, tqdm says so when accelerate imports it
        warnings.filterwarnings("ignore", message="IProgress not found")
        from .terminal import run_with_progress

    known = {field.name: field for field in fields(TrainConfig)}
    for name in options:
        lookup("option", name, known)
    temporary = None if out is not None else tempfile.mkdtemp(prefix="labelmend-")
    place = str(out if temporary is None else Path(temporary) / "run")
    if isinstance(data, str | Path):
        columns = {"image_column": image, "label_column": label, "test": None if test is None else str(test)}
        config = TrainConfig(source=str(data), out=place, **(columns | options))
        samples = None
    else:
        config = TrainConfig(source="", out=place, **options)
        samples = from_objects(data, labels, label=label, image=image, test=test, wishes=column_wishes(config))
    console = Console(stderr=True, quiet=not progress)
    directory = run_with_progress(config, console, data=samples, report=report)
    run = Run(directory, index=_index(data))
    if temporary is not None:
        weakref.finalize(run, shutil.rmtree, temporary, ignore_errors=True)
    return run


def judge(
    labels: Any, probabilities: Any, *, class_names: Sequence[Any] | None = None, ids: Any = None, truth: Any = None
) -> "LabelTable":
    """Judge labels by probabilities that your own model predicted, [samples, classes], and give the label table.

    The model must not have been trained on the samples it predicts, as in cross-validation: what it memorised looks
    right. Probabilities [passes, samples, classes] of a training run, the earliest pass first, are taken too. Both are
    arrays, tensors, lists or pandas objects. Labels are positions in the columns or class names; `class_names` names
    the columns, by default as a DataFrame does, or by the distinct labels in their order. `ids` name the samples, by
    default as the index does. `truth`, where it is known, is only kept beside the labels.

    >>> import labelmend, numpy
    >>> animals = numpy.array(["cat", "dog", "owl"])
    >>> truth = numpy.arange(300) % 3
    >>> labels = animals[numpy.where(numpy.arange(300) % 10 == 0, (truth + 1) % 3, truth)]
    >>> table = labelmend.judge(labels, 0.9 * numpy.eye(3)[truth] + 0.1 / 3)
    >>> table.finding, round(table.noise_rate, 2), int(table.flagged.sum())
    ('wrong labels found', 0.1, 30)
    >>> print(table["given"][0], table["suggested"][0], table["verdict"][0])
    dog cat relabel

    `table.summary()` is the finding in a sentence, `table.suspects()` are the rows of the flagged labels, the most
    suspicious first, and `table.to_pandas(table.suspects())` shows them.
    """
    from ..detect.judged import judged_table

    return judged_table(labels, probabilities, class_names=class_names, ids=ids, truth=truth)


def load(path: str | Path) -> "Run":
    """A run that `labelmend train`, `labelmend judge` or `labelmend.train` made."""
    return Run(RunDirectory.existing(Path(path)))


class Run:
    """A run directory and what was found in it.

    Its files are documented in the README; everything here reads them.
    """

    def __init__(self, directory: RunDirectory, *, index: Any = None) -> None:
        self.directory = directory
        self._index = index

    def __repr__(self) -> str:
        return f"<labelmend run in {self.path}: {self.summary()}>"

    def _repr_html_(self) -> str:
        """What was found, how it was trained and the most suspicious labels, for notebooks."""
        from .notebook import run_html

        return run_html(self.directory)

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.path

    @cached_property
    def noise(self) -> "NoiseSummary":
        """What noise.json holds: finding, noise rate, interval, rates by class and the transition matrix."""
        from ..run.noise import read_noise

        return read_noise(self.directory)

    @property
    def noise_rate(self) -> float:
        """Estimated share of wrong labels."""
        return float(self.noise["rate"])

    @property
    def noise_interval(self) -> tuple[float, float]:
        """The range in which that share should lie; what the judge assumes is part of it, and nothing is guaranteed."""
        low, high = self.noise["interval"]
        return float(low), float(high)

    def summary(self) -> str:
        """What was found, in a sentence."""
        from ..detect.summary import headline

        return headline(self.noise, len(self.labels))

    @cached_property
    def labels(self) -> Any:
        """The label table in the order of the data: a DataFrame with the caller's index, or an Arrow table.

        What reviewers decided stands in place of what was found; `decided` and `reviewer` are columns then.
        """
        return self._frame(self._decided, self._index)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of `labels`."""
        return list(self._decided.column_names)

    @cached_property
    def _decided(self) -> Any:
        from ..run.decisions import decided_labels

        return decided_labels(self.directory)

    def suspects(self, top: int | None = SHOWN) -> Any:
        """The labels that look wrong, the most suspicious first; None gives all of them."""
        from ..run.labels import ranked_labels

        table = ranked_labels(self._decided, verdicts=("relabel", "look"), top=top)
        if self._index is None:
            return self._frame(table, None)
        rows = {id: row for row, id in enumerate(self.labels["id"])}
        return self._frame(table, self._index[[rows[id] for id in table["id"].to_pylist()]])

    def report(self, out: str | Path | None = None) -> Path:
        """Build the report, by default in the run directory, and give its path."""
        from ..report.build import build_report

        build_report(self.directory, out=None if out is None else Path(out))
        return self.directory.report if out is None else Path(out)

    @cached_property
    def model(self) -> "Model":
        """The trained model: `predict` and `predict_proba` take arrays, frames, folders and paths."""
        from ..run.model import load_model

        return load_model(self.directory)

    def corrections(self, *, min_confidence: float | None = None, drop: bool = False) -> "Corrections":
        """The suggested labels that are at least this sure; or, with `drop`, the samples to leave out."""
        return Corrections(self, min_confidence, drop)

    @staticmethod
    def _frame(table: Any, index: Any) -> Any:
        try:
            import pandas
        except ImportError:
            return table
        frame: Any = table.to_pandas()
        return frame if index is None else frame.set_index(pandas.Index(index))


class Corrections:
    """What a run would change in its data set; nothing is written before `write`."""

    def __init__(self, run: Run, min_confidence: float | None, drop: bool) -> None:
        self.run, self.min_confidence, self.drop = run, min_confidence, drop

    def __len__(self) -> int:
        return sum(new != old for new, old in zip(self.labels, self.run.labels["given"], strict=True))

    def __repr__(self) -> str:
        return f"<corrections of {len(self):,} of {len(self.run.labels):,} labels of {self.run.path}>"

    def _repr_html_(self) -> str:
        """How many labels would change, and to which, for notebooks."""
        from .notebook import corrections_html

        return corrections_html(list(self.run.labels["given"]), self.labels)

    @property
    def labels(self) -> list[str | None]:
        """The corrected label of every sample in the order of the data; None for a sample to leave out."""
        from ..run.decisions import LEFT_OUT, SKIP

        names = ("given", "suggested", "verdict", "noisy_probability", "confidence")
        table, least = self.run.labels, self.min_confidence or 0.0
        columns = [list(table[name]) for name in names]
        columns.append(list(table["decided"]) if "decided" in self.run.columns else [""] * len(columns[0]))
        found: list[str | None] = []
        for given, suggested, verdict, wrong, sure, decided in zip(*columns, strict=True):
            if decided not in ("", SKIP):
                found.append(None if decided in LEFT_OUT else suggested)
            elif self.drop:
                found.append(None if verdict != "keep" and wrong >= least else given)
            else:
                found.append(suggested if verdict == "relabel" and sure >= least else given)
        return found

    def write(self, dest: str | Path, *, link: bool = False) -> Path:
        """Write the corrected data set in the form it came in, with what `labelmend undo` needs; gives its path."""
        from ..fix.plan import plan

        return plan(self.run.path, confidence=self.min_confidence, drop=self.drop).write(Path(dest), link=link)


def _index(data: Any) -> Any:
    """The index of a DataFrame or Series, or of one that comes with labels beside it."""
    frame = data[0] if isinstance(data, tuple) and data else data
    return frame.index if hasattr(frame, "index") and hasattr(frame, "to_numpy") else None
