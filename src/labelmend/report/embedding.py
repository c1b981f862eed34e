"""The network's features in the plane: two scatter plots, coloured by given and by suggested label."""

import base64
import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..run.evidence import read_features
from .read import Findings

EMBEDDINGS = ("pca", "umap")
PALETTE = re.findall(
    "#.{6}",
    "#4c8fd0#e0803c#4fa862#d65a66#9277c4#a5785f#d884bd#b5a832#3fb0b8#7a92a8"
    "#2f6aa8#c4a06a#8cc06a#a83e5c#c4a4e4#6e5a48#e8a8a0#6f7f28#66c8a4",
)
OTHER = "#9aa0a6"


def embedding(findings: Findings, kind: str) -> dict[str, Any] | None:
    """Both panels as PNG data URLs with the colours of the classes; None if the run kept no features."""
    check_embedding(kind)
    kept = read_features(findings.run)
    if kept is None:
        return None
    points = in_the_plane(kept.components, kind)
    colours = class_colours(findings.column("given"), len(findings.classes))
    panels = {
        name: _panel(points, colours[findings.column(name)[kept.samples]], findings.flagged[kept.samples])
        for name in ("given", "suggested")
    }
    legend = [(name, colour) for name, colour in zip(findings.classes, colours, strict=True) if colour != OTHER]
    return {
        "kind": kind,
        "panels": panels,
        "legend": legend,
        "others": len(colours) - len(legend),
        "other_colour": OTHER,
        "points": len(points),
        "explained": sum(kept.explained[:2]) if kept.explained else None,
    }


def class_colours(labels: NDArray[np.int64], classes: int) -> NDArray[np.str_]:
    """A colour for each class; with more classes than colours, the most frequent get one and the rest are grey."""
    colours = np.full(classes, OTHER)
    frequent = np.argsort(-np.bincount(labels, minlength=classes), kind="stable")[: len(PALETTE)]
    colours[np.sort(frequent)] = PALETTE[: len(frequent)]
    return colours


def check_embedding(kind: str) -> None:
    """Refuse an unknown kind of embedding."""
    if kind not in EMBEDDINGS:
        raise InputError(f"--embedding must be one of {', '.join(EMBEDDINGS)}, not {kind!r}")


def in_the_plane(components: NDArray[np.float32], kind: str) -> NDArray[np.float32]:
    """Points in the plane, [n, 2]: the first two principal components, or UMAP of all of them."""
    if kind == "umap":
        return _umap(components)
    return np.pad(components, ((0, 0), (0, max(0, 2 - components.shape[1]))))[:, :2]


def _umap(features: NDArray[np.float32]) -> NDArray[np.float32]:
    try:
        from umap import UMAP
    except ImportError:
        raise InputError('--embedding umap needs umap-learn: pip install "labelmend[umap]"') from None
    return np.asarray(UMAP(random_state=0, n_jobs=1).fit_transform(features), dtype=np.float32)


def _panel(points: NDArray[np.float32], colours: NDArray[np.str_], flagged: NDArray[np.bool_]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 4.0), dpi=150)
    axis = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axis.set_axis_off()
    size = float(np.clip(9000 / max(len(points), 1), 3, 22))
    for group, area, strength in ((~flagged, size, 0.55), (flagged, 1.8 * size, 0.95)):
        x, y = points[group].T
        axis.scatter(x, y, s=area, c=colours[group].tolist(), alpha=strength, linewidths=0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", transparent=True, metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
