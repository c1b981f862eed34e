"""Samples: the one container for what is trained on, whatever kind it is and wherever it came from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..errors import InputError, refuse_unrepeated
from .kinds import Kind
from .kinds.images import ImageFiles
from .kinds.table import Table
from .kinds.text import Texts
from .preflight import NUMBER, Problem, class_order, clean_label
from .table_encoding import TableRows

MOST_CLASSES = 10_000
MOST_FRACTIONS = 20
"""Numbers with fractions that may be classes; more of them are measurements."""
Inputs = Tensor | ImageFiles | TableRows | Texts


@dataclass(frozen=True)
class NoisyLabels:
    """Labels as they were given; the truth, where known, is for evaluation only."""

    observed: Tensor
    truth: Tensor | None = None

    def with_observed(self, observed: Tensor) -> "NoisyLabels":
        """Other labels of the same samples; the truth stays."""
        return NoisyLabels(observed, self.truth)

    def take(self, rows: Tensor) -> "NoisyLabels":
        """Only these."""
        return NoisyLabels(self.observed[rows], None if self.truth is None else self.truth[rows])


@dataclass(frozen=True)
class Samples:
    """Samples with their labels, names of classes, ids and, where there is one, a test set of the same kind.

    `inputs` are images, uint8 [N, channels, height, width] or files that are decoded when needed, features, float32
    [N, columns], or rows of a table or texts before they are encoded. A label is an index into `class_names`, -1 where
    a reader found none that is usable, which is then among the `problems`. `locations` name samples in messages.
    `declared` tells that the classes come from the source itself and may have no samples. `trusted` are the rows, in
    order, whose labels are known to be right. `originals` are what a person is shown in place of `inputs`: the files of
    images that were decoded, the images or texts that features were computed of, or the rows of a table as they were
    written. `notes` are what is worth knowing about the source.
    """

    name: str
    kind: Kind
    inputs: Inputs
    labels: NoisyLabels
    class_names: Sequence[str]
    ids: Sequence[str]
    locations: Sequence[str] = ()
    test: "Samples | None" = None
    declared: bool = False
    problems: Sequence[Problem] = ()
    trusted: Tensor | None = None
    originals: Inputs | None = None
    notes: Sequence[Problem] = ()

    @classmethod
    def read(
        cls,
        name: str,
        kind: Kind,
        inputs: Inputs,
        labels: Sequence[object] | None,
        *,
        ids: Sequence[str],
        locations: Sequence[str],
        declared: Sequence[str] | None = None,
        test: "Samples | None" = None,
        notes: Sequence[Problem] = (),
    ) -> "Samples":
        """Samples as a reader found them, with labels of any type; None where there are none to read."""
        names, problems = ([""] * len(ids), []) if labels is None else label_names(labels, locations)
        usable = {label for label in names if label}
        known = _cleaned(name, declared) if declared is not None else []
        kept = known if declared is not None and usable <= set(known) else class_order(usable)
        code = {label: i for i, label in enumerate(kept)} | {"": -1}
        observed = torch.tensor([code[label] for label in names], dtype=torch.long)
        return cls(
            name,
            kind,
            inputs,
            NoisyLabels(observed),
            kept,
            ids,
            locations,
            test=test,
            declared=kept is known,
            problems=problems,
            notes=[*notes, *_trimmed(name, labels or ())],
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        if isinstance(self.inputs, Tensor):
            return tuple(self.inputs.shape[1:])
        return self.inputs.shape or () if isinstance(self.inputs, ImageFiles) else ()

    @property
    def label_names(self) -> list[str]:
        """The class name of every sample, empty where it has none."""
        names = [*self.class_names, ""]
        return [names[label] for label in self.labels.observed.tolist()]

    @property
    def prepared(self) -> Tensor | ImageFiles:
        """The inputs once they are fit for training: tables and texts are encoded by then."""
        if isinstance(self.inputs, TableRows | Texts):
            raise ValueError(f"{self.name} is not encoded yet")
        return self.inputs

    def loaded(self, rows: Sequence[int]) -> Tensor:
        """Some inputs as they are stored, images decoded."""
        if isinstance(self.inputs, Tensor):
            return self.inputs[list(rows)]
        return torch.stack([self.prepared[row] for row in rows])

    def shown(self, rows: Sequence[int]) -> dict[str, list[object]]:
        """What a person sees of these samples, as columns."""
        originals = self._originals
        if not isinstance(originals, Tensor) or not rows:
            return self.kind.shown(torch.zeros(0), None if isinstance(originals, Tensor) else originals, rows)
        return self.kind.shown(originals[list(rows)], None, rows)

    def shown_numbers(self, rows: Sequence[int]) -> Tensor | None:
        """The numbers that a person sees of these samples, float32 [n, columns]; None if they see pictures or texts.

        Cells of a table that are no numbers are NaN.
        """
        if isinstance(self.originals, TableRows) and isinstance(self.kind, Table):
            return self.kind.numbers(self.originals.take(rows))
        return self.loaded(rows).float() if "features" in self.shown([]) else None

    def shown_words(self, rows: Sequence[int]) -> list[list[str | None]] | None:
        """The words that a person sees in the columns of categories, [n, columns]; None if the samples are no table.

        Cells of other columns are None.
        """
        if isinstance(self.originals, TableRows) and isinstance(self.kind, Table):
            return self.kind.words(self.originals.take(rows))
        return None

    @property
    def shown_columns(self) -> Sequence[str]:
        """Names of the values or cells that `shown` gives of a sample, where they have names."""
        return self.kind.shown_columns(self._originals)

    @property
    def _originals(self) -> Inputs:
        return self.inputs if self.originals is None else self.originals

    def take(self, rows: Sequence[int]) -> "Samples":
        """Only these samples, in this order; the test set stays whole."""
        index = torch.tensor(list(rows), dtype=torch.long)
        ids, locations = ([values[row] for row in rows] if len(values) else () for values in (self.ids, self.locations))
        return replace(
            self,
            inputs=_rows(self.inputs, index),
            labels=self.labels.take(index),
            ids=ids,
            locations=locations,
            originals=None if self.originals is None else _rows(self.originals, index),
        )

    def random_subset(self, count: int, rng: torch.Generator) -> "Samples":
        """A random `count` of the samples, in their order."""
        return self.take(torch.randperm(len(self), generator=rng)[:count].sort().values.tolist())

    def with_classes(self, class_names: Sequence[str], where: str) -> "Samples":
        """The same labels as indices into other class names, every one of which must be among them."""
        code = {name: i for i, name in enumerate(class_names)}
        used = {name for name in self.label_names if name}
        unknown = sorted(used - code.keys())
        if unknown:
            raise InputError(f"{where} {unknown[0]!r}, which no training sample has")
        table = torch.tensor([code.get(name, -1) for name in self.class_names] + [-1])
        return replace(self, labels=NoisyLabels(table[self.labels.observed]), class_names=class_names)

    def fingerprint(self) -> str:
        """SHA-256 over inputs (ids, where they are streamed) and observed labels: which data a run was trained on."""
        digest = hashlib.sha256()
        tensors = [self.labels.observed] + ([] if self.trusted is None else [self.trusted])
        if isinstance(self.inputs, Tensor):
            tensors.insert(0, self.inputs)
        else:
            named = self.inputs.values if isinstance(self.inputs, Texts) else self.ids
            digest.update("\0".join(named).encode(errors="surrogateescape"))
        for tensor in tensors:
            digest.update(repr((tuple(tensor.shape), tensor.dtype)).encode())
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()


def _rows(values: Inputs, index: Tensor) -> Inputs:
    return values[index] if isinstance(values, Tensor) else values.take(index.tolist())


def check_class_count(samples: Samples) -> None:
    """Refuse labels that cannot be learned: fewer than two classes, or so many that they are no classes."""
    count = len(samples.class_names)
    if count < 2:
        only = f"a single class ({samples.class_names[0]})" if count else "no samples"
        raise InputError(f"{samples.name} has {only}; at least two classes are needed")
    if count > MOST_CLASSES:
        raise InputError(
            f"{samples.name} has {count:,} classes, and at most {MOST_CLASSES:,} are taken; are the labels "
            "measurements or ids?"
        )
    if count > MOST_FRACTIONS and all(NUMBER.fullmatch(name) for name in samples.class_names):
        fraction = next((name for name in samples.class_names if not float(name).is_integer()), None)
        if fraction is not None:
            raise InputError(
                f"the labels of {samples.name} are {count:,} different numbers such as {fraction}, so they are "
                "measurements, not classes; cut them into a few classes first, or name another column with "
                "--label-column"
            )
    observed = samples.labels.observed
    refuse_unrepeated(samples.name, torch.bincount(observed[observed >= 0], minlength=count).tolist())


def label_names(labels: Sequence[object], locations: Sequence[str]) -> tuple[list[str], list[Problem]]:
    """The class name of every sample, empty where it has none, and the labels that are no class name."""
    names, problems = [], []
    known: dict[str, str] = {}
    for location, value in zip(locations, labels, strict=True):
        if isinstance(value, str) and value in known:
            names.append(known[value])
            continue
        try:
            names.append(clean_label(value))
        except ValueError as error:
            names.append("")
            problems.append(Problem(location, str(error)))
            continue
        if isinstance(value, str):
            known[value] = names[-1]
    return names, problems


def _trimmed(source: str, labels: Sequence[object]) -> list[Problem]:
    """A note on labels that differ only by spaces around them, and are taken for one."""
    spelled = {value for value in labels if isinstance(value, str)}
    twice = sorted(value for value in spelled if value != value.strip() and value.strip() in spelled)
    if not twice:
        return []
    return [Problem(source, f"labels that differ only by spaces around them are one class, as {twice[0]!r:.60}")]


def _cleaned(source: str, names: Sequence[str]) -> list[str]:
    try:
        return [clean_label(name) for name in names]
    except ValueError as error:
        raise InputError(f"the class names of {source} have {error}") from None
