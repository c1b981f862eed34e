"""Commands that exchange with other tools: `export` and `import`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import InputError, lookup
from ..console import err, out
from ..files import check_free, damage_named
from ..options import Force, Run
from .use import export_onnx

if TYPE_CHECKING:
    from ...data.samples import Samples
    from ...run.directory import RunDirectory

ONNX = "onnx"
TOOLS = ("label-studio", "fiftyone", "cvat", "csv")
SUSPECTS = "relabel,look"
OF_FILES = ("fiftyone", "cvat")
"""Tools that know samples by their image files, so that importing needs the data set."""
Source = Annotated[
    str | None,
    typer.Option("--source", metavar="SOURCE", help="The data set, if it is not any more where the run found it."),
]


def export(
    run: Run,
    out_file: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="The file to write, such as model.onnx; for fiftyone, a folder."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="The format: onnx, label-studio, fiftyone, cvat or csv.")
    ] = ONNX,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the N most suspicious ones; not for onnx.")
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(help=f"Only these verdicts, joined by commas: keep, relabel, look; by default {SUSPECTS}."),
    ] = None,
    decided: Annotated[bool, typer.Option("--decided", help="Also samples that somebody already decided.")] = False,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="URL_PREFIX",
            help="What Label Studio needs before the paths of images, such as https://images.example.com/; by default "
            "/data/local-files/?d=FOLDER/, for a local storage.",
        ),
    ] = None,
    source: Source = None,
    force: Force = False,
) -> None:
    """Export the model of a run to be used without labelmend, or its suspects to an annotation tool.

    An ONNX file takes batches of raw images (uint8) or features and gives class probabilities.
    Pretrained features are computed inside it if they are those of efficientnet-lite0; else the file takes features.
    Normalisation is included, and the class names are in its metadata.
    The file is checked against the original model before it is kept, and how far the two differ is printed.
    Needs the extra 'onnx' to be installed.

    The other formats hold the samples whose labels look wrong, with suggested labels as pre-annotations.
    'labelmend import' takes the answers back.

    Try: labelmend export runs/mine --to onnx --out model.onnx

    Try: labelmend export runs/mine --to label-studio --out tasks.json --top 200
    """
    lookup("format", to, dict.fromkeys((ONNX, *TOOLS)))
    if to == ONNX:
        given = {"--top": top, "--verdict": verdict, "--decided": decided or None, "--root": root, "--source": source}
        if unfit := [name for name, value in given.items() if value is not None]:
            raise InputError(f"{unfit[0]} chooses suspects, and --to onnx exports the model; name a format with --to")
        export_onnx(run, out_file, force=force)
        return
    if root is not None and to != "label-studio":
        raise InputError(f"--root is for --to label-studio; {to} needs no address of images")
    from ...exchange.formats import export_files
    from ...exchange.suspects import find_suspects
    from ...run.directory import RunDirectory

    directory = RunDirectory.existing(run)
    with err.status("exporting"), damage_named(run):
        wanted = (verdict or SUSPECTS).split(",")
        suspects = find_suspects(directory, _samples(directory, source), verdicts=wanted, top=top, decided=decided)
        suspects, files = export_files(suspects, to, out_file, root=root)
        _write(files, force=force)
    for note in suspects.notes:
        err.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    made = " and ".join(map(str, files))
    out.print(f"{len(suspects):,} samples in {made}", highlight=False, markup=False, soft_wrap=True)


def _write(files: Mapping[Path, bytes], *, force: bool) -> None:
    """Write the files, none where one of them would replace something that it may not."""
    from ...files import write_atomic

    for path in files:
        if path.parent.exists() and not path.parent.is_dir():
            raise InputError(f"{path.parent} is a file; choose another --out")
        check_free(path, force=force)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)


def import_(
    run: Run,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What the tool exported: JSON, XML or CSV.")],
    of: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="The format: label-studio, fiftyone, cvat or csv.")
    ],
    reviewer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who answered; by default whom the file names, else the name of the format."),
    ] = None,
    accept_suggestions: Annotated[
        bool,
        typer.Option(
            "--accept-suggestions",
            help="Count suggestions that nobody changed as answers too: all of the file was looked at. Label Studio "
            "tells them apart by itself.",
        ),
    ] = False,
    source: Source = None,
) -> None:
    """Take answers from an annotation tool back as decisions: RUN/decisions.csv grows by them.

    An answer that is the given label keeps it, and another class replaces it. A class or a sample that the run does not
    know is refused, and then nothing is taken. Answers that already stand are not added again.

    Try: labelmend import runs/mine project-1.json --from label-studio
    """
    from ...exchange.formats import FORMATS, import_file
    from ...run.description import check_finished
    from ...run.directory import RunDirectory

    lookup("format", of, FORMATS)
    directory = RunDirectory.existing(run)
    check_finished(run, directory.read())
    samples = _samples(directory, source) if of in OF_FILES else None
    found = import_file(directory, file, of, reviewer=reviewer, accept_suggestions=accept_suggestions, samples=samples)
    said = f"{len(found.new):,} new decisions in {directory.decisions}"
    said += f"; {found.standing:,} answers already stood" if found.standing else ""
    out.print(said, highlight=False, markup=False, soft_wrap=True)
    if found.untouched:
        note = f"{found.untouched:,} suggestions were not changed and are not counted; --accept-suggestions counts them"
        err.print(f"note: {note}", highlight=False, soft_wrap=True)


def _samples(run: "RunDirectory", source: str | None) -> "Samples | None":
    """The data set of a run, not decoded; None where it is not at hand, which a note says."""
    from dataclasses import replace

    from ...data.readers.named import NAMED
    from ...data.sources import read_source
    from ...fix.source import read_config, source_options

    config, _ = read_config(run)
    path = source or config["source"]
    if not path:
        return None
    if path not in NAMED and not Path(path).exists():
        if source is not None:
            raise InputError(f"the data set {path} is not there; give its place with --source")
        said = f"note: the data set {path} is not there; give its place with --source"
        err.print(said, highlight=False, markup=False, soft_wrap=True)
        return None
    return read_source(path, replace(source_options(config), test=None))
