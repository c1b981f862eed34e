"""What uses the trained model: the command `predict`, and the export of the model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError, visible
from ..console import err, out
from ..files import check_free
from ..options import IdColumn, ImageColumn, Root, Run, SkipBad, Source

NOTES_SHOWN = 20


def predict(
    run: Run,
    source: Source,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="CSV file; by default the screen.")
    ] = None,
    root: Root = None,
    image_column: ImageColumn = None,
    id_column: IdColumn = None,
    skip_bad: SkipBad = False,
) -> None:
    """Predict classes with the model of a run; the source needs no labels.

    The CSV has the columns id, predicted, probability (of the predicted class), and p(CLASS) for every class.

    Try: labelmend predict runs/mine new-images.csv --out predictions.csv
    """
    from ...data.readers.table import Columns
    from ...data.sources import SourceOptions
    from ...files import write_atomic
    from ...run.directory import RunDirectory
    from ...run.labels import predictions_csv
    from ...run.model import load_model

    if out_file is not None and (not out_file.name or (out_file.exists() and not out_file.is_file())):
        raise InputError(f"--out {out_file} is not a file that can be replaced")
    options = SourceOptions(root=root, columns=Columns(image_column, None, id_column), skip_bad=skip_bad)
    with err.status("predicting") as status:

        def counted(done: int, of: int) -> None:
            status.update(f"computing features: {done:,} of {of:,}")

        model = load_model(RunDirectory.existing(run))
        samples = model.samples(source, options, progress=counted)
        inputs = samples.loaded(range(len(samples)))
        table = predictions_csv(samples.ids, model.class_names, model.probabilities(inputs))
    for note in samples.notes[:NOTES_SHOWN]:
        err.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    if out_file is None:
        if sys.stdout.isatty():
            table = "\n".join(map(visible, table.decode(errors="surrogateescape").split("\n"))).encode()
        sys.stdout.buffer.write(table)
        return
    write_atomic(out_file, table)
    out.print(f"{len(samples):,} predictions in {out_file}", highlight=False, markup=False)


def export_onnx(run: Path, out_file: Path, *, force: bool) -> None:
    """Write the model of a run as an ONNX file."""
    check_free(out_file, force=force)
    from ...data.kinds.encoded import Encoded
    from ...data.kinds.text import Text
    from ...files import write_atomic
    from ...run.directory import RunDirectory
    from ...run.model import load_model
    from ..onnx import export_onnx, takes_images

    with err.status("exporting"):
        model = load_model(RunDirectory.existing(run))
        content, difference = export_onnx(model)
    write_atomic(out_file, content)
    if model.encoding is not None and not takes_images(model):
        made = "your own features" if model.encoding.from_file else f"features of {model.encoding.identity}"
        of = "texts" if isinstance(model.kind, Encoded) and isinstance(model.kind.of, Text) else "images"
        err.print(f"the file takes {made}, not {of}: compute them first", highlight=False, markup=False)
    if model.kind.described().get("columns"):
        said = "the file takes encoded rows, not those of the table: model.json names their columns"
        err.print(said, highlight=False, markup=False)
    checked = f"its probabilities differ from the original's by at most {difference:.1g}"
    out.print(f"the model in {out_file}, {len(content):,} bytes; {checked}", highlight=False, markup=False)
