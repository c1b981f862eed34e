"""Pictures in a terminal: two pixels in each character, the upper half block in one colour on a ground of another."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

Pixels = NDArray[np.uint8]
UPPER_HALF = "▀"
GAP = 2
SIDES = (28, 24)
"""Sides in pixels that pictures are drawn at: the smaller one where fewer than three of the larger fit."""
WANTED_ACROSS = 3
MOST_ACROSS = 5
DRAWABLE = ("256", "truecolor")


@dataclass(frozen=True)
class Layout:
    """The side of each picture, and how many are in a row."""

    side: int
    across: int


@dataclass(frozen=True)
class Captioned:
    """A picture [side, side, 3] with the lines under it."""

    pixels: Pixels
    caption: Sequence[Text]


def layout(console: Console) -> Layout | None:
    """How pictures fit on this console; None if it cannot show them: no terminal, too few colours, or too narrow."""
    shows_colour = console.is_terminal and not console.no_color and console.color_system in DRAWABLE
    if not shows_colour or console.options.ascii_only:
        return None
    for side in SIDES:
        across = min((console.width + GAP) // (side + GAP), MOST_ACROSS)
        if across >= WANTED_ACROSS:
            return Layout(side, across)
    return None


def fitted(content: bytes, side: int) -> Pixels:
    """A picture file as pixels [side, side, 3], centred on black; small pictures keep their size."""
    from PIL import Image

    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
        shown = image.convert("RGB")
    shown.thumbnail((side, side), Image.Resampling.BOX)
    square = Image.new("RGB", (side, side))
    square.paste(shown, ((side - shown.width) // 2, (side - shown.height) // 2))
    return np.array(square)


def half_blocks(pixels: Pixels) -> list[Text]:
    """Lines of characters that show pixels [height, width, 3], two lines of pixels in each; the height is even."""
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        line = Text()
        for above, below in zip(upper, lower, strict=True):
            line.append(UPPER_HALF, Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below)))
        lines.append(line)
    return lines


def row_of_pictures(pictures: Sequence[Captioned]) -> Text:
    """Pictures side by side, with their captions; a caption that is wider than its picture is cut."""
    blocks = []
    for picture in pictures:
        lines = [*half_blocks(picture.pixels), *(line.copy() for line in picture.caption)]
        for line in lines:
            line.truncate(picture.pixels.shape[1], overflow="ellipsis", pad=True)
        blocks.append(lines)
    between = Text(" " * GAP)
    return Text("\n").join(between.join(lines) for lines in zip(*blocks, strict=True))
