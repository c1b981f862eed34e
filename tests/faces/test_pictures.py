"""Pictures as characters of a terminal."""

import io

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from rich.text import Text

from labelmend.faces.pictures import UPPER_HALF, Captioned, fitted, half_blocks, layout, row_of_pictures


def terminal(width=100, **options):
    options = {"force_terminal": True, "color_system": "truecolor", "legacy_windows": False} | options
    return Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=width, _environ={}, **options)


def encoded(pixels, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def colours(line):
    """The colours above and below of each character."""
    spans = [span.style for span in line.spans]
    return [(tuple(style.color.triplet), tuple(style.bgcolor.triplet)) for style in spans]


def test_each_character_shows_two_pixels():
    pixels = np.arange(4 * 3 * 3, dtype=np.uint8).reshape(4, 3, 3)
    lines = half_blocks(pixels)
    assert [line.plain for line in lines] == [UPPER_HALF * 3] * 2
    for row, line in enumerate(lines):
        assert colours(line) == [(tuple(pixels[2 * row, x]), tuple(pixels[2 * row + 1, x])) for x in range(3)]


def test_a_picture_of_28_pixels_takes_14_lines_of_28_characters():
    lines = half_blocks(fitted(encoded(np.zeros((28, 28), np.uint8)), 28))
    assert len(lines) == 14
    assert {line.cell_len for line in lines} == {28}


def test_a_small_picture_keeps_its_pixels():
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28), dtype=np.uint8)
    assert (fitted(encoded(pixels), 28) == pixels[..., None]).all()


@pytest.mark.parametrize(("height", "width"), [(8, 8), (60, 20), (20, 60), (160, 160)])
def test_pictures_of_other_sizes_are_brought_into_the_square(height, width):
    shown = fitted(encoded(np.full((height, width, 3), 200, np.uint8)), 24)
    assert shown.shape == (24, 24, 3)
    scale = min(1, 24 / max(height, width))
    assert (shown > 0).all(axis=2).sum() == round(height * scale) * round(width * scale)


def test_pictures_stand_side_by_side_above_their_captions():
    pictures = [Captioned(np.full((4, 6, 3), 9, np.uint8), [Text(word), Text("x")]) for word in ("Coat", "Ankle boots")]
    lines = row_of_pictures(pictures).plain.split("\n")
    assert lines == [f"{UPPER_HALF * 6}  {UPPER_HALF * 6}"] * 2 + ["Coat    Ankle…", "x       x     "]


@pytest.mark.parametrize(("width", "expected"), [(200, (28, 5)), (118, (28, 4)), (88, (28, 3)), (80, (24, 3))])
def test_as_many_pictures_are_in_a_row_as_fit(width, expected):
    fits = layout(terminal(width))
    assert (fits.side, fits.across) == expected
    assert fits.across * (fits.side + 2) - 2 <= width


@pytest.mark.parametrize(
    "options",
    [
        {"width": 75},
        {"force_terminal": False},
        {"color_system": "standard"},
        {"color_system": None},
        {"no_color": True},
    ],
    ids=["narrow", "no terminal", "16 colours", "no colours", "NO_COLOR"],
)
def test_there_are_no_pictures_where_they_cannot_be_shown(options):
    assert layout(terminal(**options)) is None


def test_there_are_no_pictures_without_unicode():
    console = terminal()
    console.file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert layout(console) is None
