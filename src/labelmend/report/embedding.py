"""Where the samples lie in the network's own view: two pictures, coloured by given and by suggested label."""

import base64
import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .read import Findings

EMBEDDINGS = ("pca", "umap")
PALETTE = re.findall(
    "#.{6}",
    "#4c8fd0#e0803c#4fa862#d65a66#9277c4#a5785f#d884bd#b5a832#3fb0b8#7a92a8"
    "#2f6aa8#c4a06a#8cc06a#a83e5c#c4a4e4#6e5a48#e8a8a0#6f7f28#66c8a4",
)
OTHER = "#9aa0a6"
LARGEST_FEATURES = 16 << 20


def embedding(findings: Findings, kind: str) -> dict[str, Any] | None:
    """Both panels as PNG addresses with the colours of the classes; None if the run kept no features."""
    check_embedding(kind)
    if not findings.run.features.is_file():
        return None
    if findings.run.features.stat().st_size > LARGEST_FEATURES:
        raise InputError(f"{findings.run.features} is damaged: labelmend writes at most {LARGEST_FEATURES >> 20} MiB")
    from safetensors import safe_open

    with safe_open(findings.run.features, framework="numpy") as file:
        rows, features = file.get_tensor("index"), file.get_tensor("features")
        explained = [float(share) for share in (file.metadata() or {}).get("explained", "").split(",") if share]
    places = in_the_plane(features, kind)
    colours = class_colours(findings.column("given"), len(findings.classes))
    flagged = findings.flagged[rows]
    names = ("given", "suggested")
    panels = {name: _panel(places, colours[findings.column(name)[rows]], flagged) for name in names}
    legend = [(name, colour) for name, colour in zip(findings.classes, colours, strict=True) if colour != OTHER]
    return {
        "kind": kind,
        "panels": panels,
        "legend": legend,
        "others": len(colours) - len(legend),
        "other_colour": OTHER,
        "points": len(rows),
        "explained": sum(explained[:2]) if explained else None,
    }


def class_colours(labels: NDArray[np.int64], classes: int) -> NDArray[np.str_]:
    """A colour for each class; with more classes than colours, the most frequent get one and the rest are grey."""
    colours = np.full(classes, OTHER)
    frequent = np.argsort(-np.bincount(labels, minlength=classes), kind="stable")[: len(PALETTE)]
    colours[np.sort(frequent)] = PALETTE[: len(frequent)]
    return colours


def check_embedding(kind: str) -> None:
    """Refuse a kind of embedding that there is not."""
    if kind not in EMBEDDINGS:
        raise InputError(f"--embedding must be one of {', '.join(EMBEDDINGS)}, not {kind!r}")


def in_the_plane(components: NDArray[np.float32], kind: str) -> NDArray[np.float32]:
    """Principal components as places in the plane, [n, 2]: the first two of them, or UMAP of them all."""
    if kind == "umap":
        return _umap(components)
    return np.pad(components, ((0, 0), (0, max(0, 2 - components.shape[1]))))[:, :2]


def _umap(features: NDArray[np.float32]) -> NDArray[np.float32]:
    try:
        from umap import UMAP
    except ImportError:
        raise InputError('--embedding umap needs umap-learn: pip install "labelmend[umap]"') from None
    return np.asarray(UMAP(random_state=0, n_jobs=1).fit_transform(features), dtype=np.float32)


def _panel(places: NDArray[np.float32], colours: NDArray[np.str_], flagged: NDArray[np.bool_]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 4.0), dpi=150)
    axis = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axis.set_axis_off()
    size = float(np.clip(9000 / max(len(places), 1), 3, 22))
    for group, area, strength in ((~flagged, size, 0.55), (flagged, 1.8 * size, 0.95)):
        x, y = places[group].T
        axis.scatter(x, y, s=area, c=colours[group].tolist(), alpha=strength, linewidths=0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", transparent=True, metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
