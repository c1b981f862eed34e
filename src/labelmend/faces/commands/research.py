"""Commands for research: `noise` and `methods`."""

from pathlib import Path
from typing import Annotated

import typer

from ...training.config import Optimisation, TrainConfig
from ..console import out
from ..files import check_free
from ..options import Force, IdColumn, ImageColumn, LabelColumn, Root, Seed, SkipBad, Source, described


def noise(
    source: Source,
    kind: Annotated[str, described("noise")],
    out_file: Annotated[Path, typer.Option("--out", metavar="FILE", help="The .npz label file to write.")],
    seed: Seed = TrainConfig.seed,
    root: Root = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    skip_bad: SkipBad = False,
    force: Force = False,
) -> None:
    """Write a file of noisy labels that others can train on: 'labelmend train SOURCE --labels FILE'.

    Try: labelmend noise digits --noise symmetric:0.4 --out noisy.npz
    """
    from ...core import generator
    from ...data import SourceOptions, inject, open_source
    from ...data.label_file import write_label_file
    from ...data.noise import NoiseSpec, wrong_rate
    from ...data.readers.table import Columns

    spec = NoiseSpec.parse(kind)
    check_free(out_file, force=force)
    options = SourceOptions(None, root, Columns(image_column, label_column, id_column), skip_bad=skip_bad)
    with out.status("reading"):
        data = inject(open_source(source, options)[0], spec, generator(seed, "noise"))
    write_label_file(out_file, data, spec=spec, seed=seed)
    rates = f"nominal {spec.rate:.1%}, really wrong {wrong_rate(data.labels):.1%}"
    out.print(f"{out_file}: {len(data):,} labels, {rates}", markup=False)


def methods(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Show the settings of this method.")] = None,
) -> None:
    """List the training methods, or the settings of one.

    Try: labelmend methods m-dyr-h
    """
    from ...methods import find
    from ...methods import methods as registered
    from ..terminal import show_methods, show_settings

    if id is None:
        show_methods(registered(), out)
    else:
        show_settings(find(id), Optimisation, out)
