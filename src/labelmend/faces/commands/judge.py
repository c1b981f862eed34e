"""The command `judge`: wrong labels found by predictions that the user already has."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import InputError
from ..console import err, out
from ..options import IdColumn, ImageColumn, LabelColumn, Root

if TYPE_CHECKING:
    from ...data.readers.predictions import Probabilities
    from ...data.samples import Samples
    from ...detect.table import LabelTable

FILE = "FILE[:KEY]"
Predicted = Annotated[
    str,
    typer.Argument(
        metavar="PROBABILITIES",
        help="Predicted probabilities, samples x classes or passes x samples x classes: .npy, .npz or .npz:KEY; "
        "or .csv, .tsv or .parquet with a column for each class, and ids in a column 'id'.",
    ),
]


def judge(
    probabilities: Predicted,
    out_dir: Annotated[str, typer.Option("--out", metavar="RUN", help="Run directory, a new folder.")],
    labels: Annotated[
        str | None,
        typer.Option(
            metavar=FILE, help="The given labels: .npy, .npz, .csv, .tsv, .parquet or .txt, one label per line."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="The data set, as 'train' takes it; it is shown, and 'apply' corrects it."),
    ] = None,
    class_names: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Class of each column: a file with a name per line, or names with commas."),
    ] = None,
    ids: Annotated[str | None, typer.Option(metavar=FILE, help="Names of the samples.")] = None,
    truth: Annotated[
        str | None, typer.Option(metavar=FILE, help="The right labels, to see how well wrong ones are found.")
    ] = None,
    root: Root = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
) -> None:
    """Judge labels by probabilities that your own model predicted, without training.

    The model must not have been trained on the samples it predicts: use cross-validation.
    Samples are paired in order, or by their ids where both files have a column 'id'.
    RUN has the label table, noise.json and report.html, as a run of 'train' has.

    Try: labelmend judge pred_probs.npy --labels labels.csv --out runs/mine

    Try: labelmend judge pred_probs.npy --source my-images/ --out runs/mine
    """
    from ...report.build import build_report
    from ...run.directory import RunDirectory
    from ...run.judged import write_judged
    from ..terminal import show_summary

    if labels is None and source is None:
        raise InputError("the labels are missing: give --labels FILE, or --source SOURCE that holds them")
    run, started = RunDirectory(Path(out_dir)), time.monotonic()
    run.check_unused()
    columns = {"root": root, "image_column": image_column, "label_column": label_column, "id_column": id_column}
    asked: dict[str, Any] = {"class_names": class_names, "ids": ids, "truth": truth}
    with err.status("reading the predictions") as status:
        table, samples, labels = _judged(probabilities, labels, source, asked, columns, status.update)
        known = {"source": source or "", "out": out_dir, "probabilities": probabilities, "labels": labels}
        status.update("writing the label table and the report")
        write_judged(
            run,
            table,
            config=known | asked | columns,
            samples=samples,
            auc=_auc(table),
            seconds=time.monotonic() - started,
            afterwards=build_report,
        )
    show_summary(run, out)


def _judged(
    probabilities: str, labels: str | None, source: str | None, asked: dict[str, Any], columns: dict[str, Any], say: Any
) -> "tuple[LabelTable, Samples | None, str | None]":
    """The label table, the samples in its order, and the file of labels unless they are those of the source."""
    from ...data.readers import predictions as files
    from ...detect.judged import judged_table

    found = files.read_probabilities(probabilities)
    given = None if labels is None else files.read_labels(labels)
    beside = found.ids or (None if given is None else given.ids)
    ids = files.read_ids(asked["ids"]) if asked["ids"] else beside
    samples = None if source is None else _samples(source, columns, ids, found)
    ids = ids or (samples and list(samples.ids)) or [str(row) for row in range(found.values.shape[-2])]
    _check_ids(ids, found)
    names = files.read_class_names(asked["class_names"]) if asked["class_names"] else found.class_names
    if names is None and samples is not None and len(samples.class_names) == found.values.shape[-1]:
        names = list(samples.class_names)
    values: Any = samples.label_names if given is None and samples is not None else None
    if given is not None:
        values = files.in_order_of(ids, given, "labels")
    right = None
    if asked["truth"]:
        right = files.in_order_of(ids, files.read_labels(asked["truth"], usual=files.TRUTH_KEYS), "truth")
    say(f"judging {len(ids):,} labels")
    table = judged_table(
        values, found.values, class_names=names, ids=ids, truth=right, name=source or labels or probabilities
    )
    same = samples is not None and table["given"].tolist() == samples.label_names
    return table, samples, None if same else labels


def _samples(source: str, columns: dict[str, Any], ids: list[str] | None, found: "Probabilities") -> "Samples":
    """The samples that were predicted, images not decoded: those with these ids, or all in their order."""
    from dataclasses import replace

    from ...data.kinds.images import ImageFiles
    from ...data.readers.table import Columns
    from ...data.sources import SourceOptions, read_source

    options = SourceOptions(
        root=columns["root"], columns=Columns(columns["image_column"], columns["label_column"], columns["id_column"])
    )
    samples = read_source(source, options)
    if ids is None and len(samples) != found.values.shape[-2]:
        raise InputError(
            f"{source} has {len(samples):,} samples, but there are probabilities of {found.values.shape[-2]:,}; name "
            "the samples with --ids"
        )
    if ids is not None and ids != list(samples.ids):
        row_of = {id: row for row, id in enumerate(samples.ids)}
        missing = [id for id in ids if id not in row_of]
        if missing:
            raise InputError(f"{source} lacks {len(missing):,} of the ids, the first {missing[0]!r:.100}")
        samples = samples.take([row_of[id] for id in ids])
    if samples.problems and min(samples.labels.observed.tolist()) < 0:
        raise InputError(f"{samples.problems[0]}; leave out samples without a label, and name the others with --ids")
    return replace(samples, originals=samples.inputs) if isinstance(samples.inputs, ImageFiles) else samples


def _check_ids(ids: list[str], found: "Probabilities") -> None:
    if len(ids) != found.values.shape[-2]:
        raise InputError(f"there are {len(ids):,} ids, but probabilities of {found.values.shape[-2]:,} samples")
    if len(set(ids)) != len(ids):
        seen = set[str]()
        twice = next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
        raise InputError(f"the id {twice!r:.100} occurs more than once")


def _auc(table: "LabelTable") -> float | None:
    if table.wrong is None:
        return None
    import torch

    from ...training.evaluation import detection_auc

    return detection_auc(torch.from_numpy(table.score), torch.from_numpy(table.wrong))
