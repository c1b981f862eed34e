"""Runs to review, made in a moment: judged by made-up probabilities, on pictures, a table, texts or nothing at all."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from labelmend.data.samples import Samples
from labelmend.data.sources import read_source
from labelmend.detect.judge import FOUND
from labelmend.detect.table import LabelTable
from labelmend.run.directory import RunDirectory
from labelmend.run.evidence import KeptFeatures, write_features
from labelmend.run.judged import write_judged

SHAPES = ("circle", "square", "triangle")
N = 90
TRUTH = np.arange(N) % 3
WRONG = np.arange(N) % 2 == 0
"""Every other label is wrong, so that there is enough to decide."""
GIVEN = np.where(WRONG, (TRUTH + 1) % 3, TRUTH)


def judged_run(
    path: Path,
    *,
    given: Sequence[int],
    truth: Sequence[int],
    classes: Sequence[str],
    ids: Sequence[str],
    source: str = "",
    samples: Samples | None = None,
    flagged: bool = True,
    seed: int = 0,
) -> RunDirectory:
    """A finished run whose suspects are the wrong labels, each with a probability of its own."""
    rng = np.random.default_rng(seed)
    given, truth = np.asarray(given), np.asarray(truth)
    wrong = given != truth
    probability = np.where(wrong, rng.uniform(0.6, 1, len(given)), rng.uniform(0, 0.4, len(given)))
    agreement = np.where(rng.random(len(given)) < 0.9, 0.95, 0.3)  # one suspect in ten has no sure suggestion
    noise = {
        "finding": FOUND,
        "advice": None,
        "evidence": True,
        "reason": "made up",
        "rate": float(wrong.mean()),
        "interval": [max(0.0, float(wrong.mean()) - 0.1), min(1.0, float(wrong.mean()) + 0.1)],
        "threshold": 0.5,
        "flagged": int(wrong.sum()),
        "expected_precision": 0.9,
        "classes": [],
        "transition": None,
    }
    table = LabelTable(
        ids=list(ids),
        class_names=list(classes),
        given=given,
        noisy_probability=probability,
        rival=np.where(wrong, truth, (truth + 1) % len(classes)),
        agreement=agreement,
        loss=-np.log1p(-probability + 1e-9),
        margin=np.log(probability + 1e-9),
        steadiness=probability,
        score=probability,
        threshold=0.5 if flagged else None,
        noise=noise,
    )
    config = {"source": source, "labels": None, "probabilities": "made.npy", "truth": None, "noise": None}
    run = RunDirectory(path)
    write_judged(run, table, config=config, samples=samples, auc=None, seconds=0.0, afterwards=lambda run: None)
    return run


def shape(kind: int, number: int) -> bytes:
    """A picture of a circle, a square or a triangle, each a little different."""
    image = Image.new("RGB", (96, 72), (240, 240 - number % 40, 230))
    draw = ImageDraw.Draw(image)
    x, y, size = 14 + number % 9, 8 + number % 7, 44
    colour = (40 + 2 * number % 160, 90, 200 - number)
    if kind == 0:
        draw.ellipse((x, y, x + size, y + size), fill=colour)
    elif kind == 1:
        draw.rectangle((x, y, x + size, y + size), fill=colour)
    else:
        draw.polygon(((x, y + size), (x + size, y + size), (x + size // 2, y)), fill=colour)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def pictures_run(folder: Path) -> RunDirectory:
    """Shapes in a folder of classes, half of them in the wrong one, with features that tell the shapes apart."""
    source = folder / "pictures"
    for name in SHAPES:
        (source / name).mkdir(parents=True)
    for number, (label, kind) in enumerate(zip(GIVEN, TRUTH, strict=True)):
        (source / SHAPES[label] / f"{number:03}.png").write_bytes(shape(kind, number))
    samples = read_source(str(source))
    truth = [int(TRUTH[int(Path(id).stem)]) for id in samples.ids]
    run = judged_run(
        folder / "run",
        given=samples.labels.observed.numpy(),
        truth=truth,
        classes=samples.class_names,
        ids=samples.ids,
        source=str(source),
        samples=samples,
    )
    points = (np.eye(3)[truth] + np.arange(N)[:, None] / 1000).astype(np.float32)
    write_features(run, KeptFeatures(np.arange(N), points, [0.5, 0.3, 0.2]))
    return run


def table_run(folder: Path) -> RunDirectory:
    """Rows of a CSV file whose first number tells the class, half of them labelled wrong."""
    rng = np.random.default_rng(3)
    length, width = 10.0 * TRUTH + rng.normal(size=N), rng.normal(size=N)
    rows = [f"{length[i]:.3f},{width[i]:.3f},{'red' if i % 2 else 'blue'},{SHAPES[GIVEN[i]]},row-{i}" for i in range(N)]
    folder.mkdir(exist_ok=True, parents=True)
    source = folder / "rows.csv"
    source.write_text("\n".join(["length,width,colour,label,id", *rows]) + "\n")
    samples = read_source(str(source))
    run = judged_run(
        folder / "run",
        given=samples.labels.observed.numpy(),
        truth=TRUTH,
        classes=samples.class_names,
        ids=samples.ids,
        source=str(source),
        samples=samples,
    )
    described = run.read()
    made = [{"name": "length", "role": "number"}, {"name": "width", "role": "number"}]
    run.update(data=described["data"] | {"columns": made})
    return run


def ids_run(folder: Path, count: int = N, classes: Sequence[str] = SHAPES, ids: Sequence[str] = ()) -> RunDirectory:
    """Labels of samples of which nothing but their ids is known; every other one is wrong."""
    truth = np.arange(count) % len(classes)
    given = np.where(np.arange(count) % 2 == 0, (truth + 1) % len(classes), truth)
    return judged_run(folder, given=given, truth=truth, classes=classes, ids=ids or [f"s{row}" for row in range(count)])
