"""Figures as inline SVG, in colours that follow the page's light or dark theme.

No text of the user's goes into a figure: names stand in the page, next to it.
"""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLEAN, NOISY, INK, BELIEF = "#2a7f9e", "#d1495b", "#888888", "#8a6fc0"
THEME = {CLEAN: "var(--clean)", NOISY: "var(--wrong)", INK: "var(--faint)", BELIEF: "var(--belief)"}
HALF, WIDE = (4.7, 2.9), (9.2, 3.4)
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
GROUP_IDS = re.compile(r'<g id="[a-zA-Z]\w*_\d+"')
KEPT_NUMBERS = re.compile(r"(\d+\.\d{2})\d+")


def both_widths(draw: Callable[..., str], *arguments: Any, **options: Any) -> str:
    """A figure drawn twice, for wide and for narrow screens, of which the page shows one."""
    wide, narrow = (draw(*arguments, size=size, **options) for size in (WIDE, HALF))
    return f'<div class="on-wide">{wide}</div><div class="on-narrow">{narrow}</div>'


def _key(figure: "Figure") -> str:
    """The legend as a list in HTML, which wraps on any screen."""
    entries = [pair for axis in figure.axes for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
    marks = "".join(f"<li>{_mark(handle)}{label}</li>" for handle, label in entries)
    return f'<ul class="legend key">{marks}</ul>' if entries else ""


def _mark(handle: Any) -> str:
    from matplotlib.colors import to_hex

    if not hasattr(handle, "get_linestyle") or hasattr(handle, "get_facecolor"):
        return f'<i class="fill" style="--c:{to_hex(handle.get_facecolor())}"></i>'
    kind = {"--": "dashed", ":": "dotted"}.get(handle.get_linestyle(), "solid")
    return f'<i style="--c:{to_hex(handle.get_color())};border-top-style:{kind}"></i>'


def new_figure(size: tuple[float, float]) -> tuple["Figure", Any]:
    """An empty figure with one axis."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 8.5}):
        figure = Figure(figsize=size, layout="constrained")
        axis = figure.add_subplot()
    axis.spines[["top", "right"]].set_visible(False)
    _tint(axis)
    return figure, axis


def second_axis(axis: Any, name: str) -> Any:
    """An axis from 0 to 1 on the right side."""
    second = axis.twinx()
    second.set_ylim(0, 1.02)
    second.set_ylabel(name)
    second.spines[["top", "left"]].set_visible(False)
    _tint(second)
    return second


def _tint(axis: Any) -> None:
    axis.tick_params(which="both", colors=INK, labelsize=8.5)
    axis.spines[:].set_color(INK)
    for label in (axis.xaxis.label, axis.yaxis.label):
        label.set(color=INK, size=8.5)


def to_svg(figure: "Figure", title: str) -> str:
    """The figure as SVG text: transparent, with text as text, and coordinates of two decimals."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "labelmend", "font.size": 8.5}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = GROUP_IDS.sub("<g", METADATA.sub("", KEPT_NUMBERS.sub(r"\1", svg[svg.index("<svg") :])))
    svg = _key(figure) + svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    return svg
