"""What a finished run would change in the data set that it was trained on."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ..detect.table import VERDICTS
from ..errors import InputError
from ..run.decisions import LEFT_OUT, SKIP, decided_labels
from ..run.directory import RunDirectory
from ..run.preflight import skipped_places
from .corrections import CHANGED, Corrections
from .rewrite import Relabelling
from .source import LabelledSource, open_labelled, read_config, source_options


class Judged(NamedTuple):
    """A row of the label table; the names are those of its columns."""

    id: str
    given: str
    suggested: str
    verdict: str
    noisy_probability: float
    confidence: float
    decided: str = ""


def plan(
    run_dir: Path, *, confidence: float | None = None, drop: bool = False, decisions: Path | None = None
) -> Corrections:
    """The corrections that a finished run gives.

    Samples with the verdict `relabel` get the suggested label; or, with `drop`, those with the verdict `relabel` or
    `look` are left out. `confidence` is the least confidence of a suggestion or, with `drop`, the least probability
    that the label is wrong. What reviewers decided, in the run or in the file `decisions`, stands over both: a decided
    label is taken, and a sample that is bad or none of the classes is left out.
    """
    if confidence is not None and not 0 <= confidence <= 1:
        raise InputError(f"--confidence must be between 0 and 1, not {confidence}")
    least = confidence or 0.0
    run = RunDirectory.existing(run_dir)
    config, fingerprint = read_config(run)
    table = _read_table(run, decisions)
    source = open_labelled(config["source"], source_options(config))
    other = next((f"--{key} {config[key]}" for key in ("noise", "labels") if config[key]), None)
    rows = _rows_of(run, source, table, same_labels=other is None)
    relabelled, dropped, wanted = Counter[tuple[str, str]](), Counter[str](), list[str | None](source.names)
    for row, judged in zip(rows, table, strict=True):
        if judged.decided in LEFT_OUT or (drop and not _decided(judged) and _dropped(judged, least)):
            dropped[judged.given] += 1
            wanted[row] = None
        elif judged.verdict == "relabel" and (_decided(judged) or (not drop and judged.confidence >= least)):
            relabelled[judged.given, judged.suggested] += 1
            wanted[row] = judged.suggested
        else:
            wanted[row] = judged.given
    if not any(wanted):
        raise InputError(f"all samples of {source.path} would be dropped; raise --confidence")
    look = 0 if drop else sum(judged.verdict == "look" and judged.decided not in LEFT_OUT for judged in table)
    decided = sum(map(_decided, table))
    relabelling = Relabelling(source.names, wanted)
    return Corrections(fingerprint, source, relabelling, set(rows), relabelled, dropped, look, other, decided)


def _decided(judged: Judged) -> bool:
    return judged.decided not in ("", SKIP)


def _dropped(judged: Judged, least: float) -> bool:
    return judged.verdict != "keep" and judged.noisy_probability >= least


def _read_table(run: RunDirectory, decisions: Path | None) -> list[Judged]:
    try:
        table = decided_labels(run, decisions)
        names = [name for name in Judged._fields if name in table.column_names or name != "decided"]
        rows = [Judged(*row) for row in zip(*(table[name].to_pylist() for name in names), strict=True)]
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{run.labels_parquet} cannot be read: {str(error).splitlines()[0]}") from None
    for row in rows:
        if row.verdict not in VERDICTS or not all(map(isinstance, row, Judged.__annotations__.values())):
            raise InputError(f"{run.labels_parquet} is damaged: {tuple(row)!r:.200} is no row of a label table")
    if len({row.id for row in rows}) != len(rows):
        raise InputError(f"{run.labels_parquet} is damaged: ids occur more than once")
    return rows


def _rows_of(run: RunDirectory, source: LabelledSource, table: Sequence[Judged], *, same_labels: bool) -> list[int]:
    """The row of the source for each row of the label table; InputError if the source does not fit any more."""
    samples, row_of, skipped = source.samples, dict[str, int](), skipped_places(run)
    for row, id in enumerate(samples.ids):
        if source.names[row] and samples.locations[row] not in skipped:
            row_of.setdefault(id, row)
    missing = [judged.id for judged in table if judged.id not in row_of]
    if missing:
        raise InputError(
            f"{source.path} {CHANGED}: {len(missing)} of its samples are missing, the first {missing[0]!r:.100}"
        )
    for id, given, suggested, *_ in table:
        now = source.names[row_of[id]]
        if same_labels and given != now:
            raise InputError(
                f"{source.path} {CHANGED}: {id!r:.100} was labelled {given!r:.60}, and now it is {now!r:.60}"
            )
        if not {given, suggested} <= set(samples.class_names):
            raise InputError(f"the run labels {id!r:.100} {suggested!r:.60}, which is no class of {source.path}")
    return [row_of[judged.id] for judged in table]
