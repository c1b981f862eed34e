"""One image, from a file or bytes to pixels, by documented rules, with everything hostile refused.

The rules: EXIF rotation is applied; of an animation the first frame counts; transparency is laid on white; palettes,
CMYK and other colour modes become RGB; 16-bit grey is scaled to 8 bits.
"""

import io
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from ...files import is_inside

LARGEST_FILE = 64 << 20
MOST_PIXELS = 64_000_000
LARGE = 8_000_000
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "PPM", "TIFF", "WEBP", "JPEG2000", "AVIF")
"""All others are refused: Pillow knows some forty, and for one of them it starts another program."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".jp2", ".avif")
STRETCH = 128
THUMBNAIL_SIDE = 160
LOSSLESS_PART = 0.2
"""Part of the side that is asked for up to which a picture is lossless."""
Result = TypeVar("Result")
ImageRef = Path | bytes
GREY_MODES = ("1", "L", "I", "I;16", "I;16B", "I;16L", "F", "LA", "La")
SIXTEEN_BIT = ("I;16", "I;16B", "I;16L", "I")
TURNED = (5, 6, 7, 8)
"""EXIF orientations that exchange height and width."""
_one_large_image = threading.Lock()


class UnusableImageError(ValueError):
    """An image that cannot be taken, and why."""


@dataclass(frozen=True)
class Header:
    """What a file says of its image: size after rotation, and whether it is grey."""

    width: int
    height: int
    grey: bool


def read_bytes(ref: ImageRef, root: Path | None) -> bytes:
    """Content of a regular file inside the root, or the bytes themselves; refuses everything else."""
    content = ref if isinstance(ref, bytes) else _read_file(ref, root)
    if not content:
        raise UnusableImageError("an empty file")
    return content


def read_header(content: bytes) -> Header:
    """Size and colour as the file states them; no pixel is decoded."""
    image = _opened(content)
    with _refused_if_damaged():
        # Pillow decodes a whole PNG in search of EXIF data that may follow the pixels.
        stated = image.format != "PNG" or "exif" in image.info
        turned = stated and image.getexif().get(ExifTags.Base.Orientation, 1) in TURNED
    width, height = image.size[::-1] if turned else image.size
    return Header(width, height, image.mode in GREY_MODES)


def check(content: bytes) -> Header:
    """The same after decoding all pixels, so that a file that was cut off is found."""
    with _first_frame(content) as image:
        return Header(image.width, image.height, image.mode in GREY_MODES)


def pixels(content: bytes, *, mode: str, side: tuple[int, int]) -> NDArray[np.uint8]:
    """Pixels, uint8 [height, width] or [height, width, 3], brought to the size (height, width)."""
    with _first_frame(content) as frame:
        return _sized(frame, mode, side)


def pixels_of_pixels(pixels: NDArray[np.uint8], *, mode: str, side: tuple[int, int]) -> NDArray[np.uint8]:
    """The same of an image in memory, [channels, height, width]."""
    return _sized(Image.fromarray(pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, -1)), mode, side)


def _sized(frame: Image.Image, mode: str, side: tuple[int, int]) -> NDArray[np.uint8]:
    image = _convert(frame, mode)
    if image.size != (side[1], side[0]):
        image = image.resize((side[1], side[0]), Image.Resampling.BILINEAR, reducing_gap=2.0)
    return np.asarray(image, dtype=np.uint8)


def thumbnail(content: bytes, *, side: int = THUMBNAIL_SIDE) -> bytes:
    """An image file as a picture of at most so many pixels a side, in its own proportions: PNG or JPEG."""
    with _first_frame(content) as frame:
        return _encoded(_convert(frame, "L" if frame.mode in GREY_MODES else "RGB"), side)


def thumbnail_of_pixels(pixels: NDArray[np.uint8], *, side: int = THUMBNAIL_SIDE) -> bytes:
    """The same of pixels [channels, height, width]."""
    return _encoded(Image.fromarray(pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, -1)), side)


def _encoded(image: Image.Image, side: int) -> bytes:
    """PNG where the picture is small, so that its pixels can be told apart, else JPEG."""
    image.thumbnail((side, side))
    file = io.BytesIO()
    if max(image.size) <= side * LOSSLESS_PART:
        image.save(file, "PNG", optimize=True)
    else:
        image.save(file, "JPEG", quality=88)
    return file.getvalue()


def in_threads(work: Callable[[int], Result], count: int) -> Iterator[Result]:
    """Results of `work` for 0 to count - 1, in order; threads take a stretch at a time, as small images are quick."""
    stretches = [range(start, min(start + STRETCH, count)) for start in range(0, count, STRETCH)]
    pool = ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1))
    try:
        for results in pool.map(lambda stretch: [work(i) for i in stretch], stretches):
            yield from results
    finally:
        pool.shutdown(cancel_futures=True)


def _read_file(path: Path, root: Path | None) -> bytes:
    try:
        if root is not None and not is_inside(path, root):
            raise UnusableImageError(f"leads outside {root}; --root names another folder")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnusableImageError("not a regular file")
        if status.st_size > LARGEST_FILE:
            raise UnusableImageError(f"a file of {status.st_size >> 20} MiB; at most {LARGEST_FILE >> 20} are taken")
        return path.read_bytes()
    except UnusableImageError:
        raise
    except FileNotFoundError:
        raise UnusableImageError("no such file") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL in the name
        raise UnusableImageError(f"cannot be read ({error})") from None


@contextmanager
def _first_frame(content: bytes) -> Iterator[Image.Image]:
    """The first frame, turned as EXIF says. Large images come one at a time, because each takes hundreds of MB."""
    image = _opened(content)
    with _one_large_image if image.width * image.height > LARGE else nullcontext():
        with _refused_if_damaged():
            image.load()
            if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
                image = ImageOps.exif_transpose(image)
        yield image


def _opened(content: bytes) -> Image.Image:
    """An image of a known format and a sensible size, of which only the header is read."""
    with _refused_if_damaged():
        image: Image.Image = Image.open(io.BytesIO(content), formats=_formats())
        if image.width * image.height > MOST_PIXELS:
            raise UnusableImageError(f"{image.width}x{image.height} pixels; at most {MOST_PIXELS:,} are taken")
        return image


@cache
def _formats() -> list[str]:
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]


@contextmanager
def _refused_if_damaged() -> Iterator[None]:
    try:
        yield
    except UnusableImageError:
        raise
    except UnidentifiedImageError:
        raise UnusableImageError("not an image") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnusableImageError(f"far more than {MOST_PIXELS:,} pixels") from None
    except Exception as error:  # decoders raise whatever they like on a damaged file
        raise UnusableImageError(f"a damaged image ({type(error).__name__}: {error})") from None


def _convert(image: Image.Image, mode: str) -> Image.Image:
    if image.mode in SIXTEEN_BIT:
        values = np.asarray(image).astype(np.int64)
        deep = image.mode != "I" or int(values.max(initial=0)) > 255
        image = Image.fromarray((values >> 8 if deep else values).clip(0, 255).astype(np.uint8))
    elif image.mode == "F":
        image = Image.fromarray(np.asarray(image).clip(0, 255).astype(np.uint8))
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image if image.mode == mode else image.convert(mode)
