"""Images from files or bytes to one tensor, by documented rules, with everything hostile refused.

The rules: EXIF rotation is applied; of an animation the first frame counts; transparency is laid on white; palettes,
CMYK and other colour modes become RGB; 16-bit grey is scaled to 8 bits. A set is grey if all of its images are, and
otherwise RGB. Images of different sizes are resized to one.
"""

import hashlib
import io
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ...errors import InputError
from ..listing import ImageRef, Listing
from ..preflight import Problem

LARGEST_FILE = 64 << 20
MOST_PIXELS = 64_000_000
LARGE = 8_000_000
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "PPM", "TIFF", "WEBP", "JPEG2000", "AVIF")
"""All others are refused: Pillow knows some forty, and for one of them it starts another program."""
STRETCH = 128
Result = TypeVar("Result")
Box = tuple[float, float, float, float]
DEFAULT_SIDE = 64
GREY_MODES = ("1", "L", "I", "I;16", "I;16B", "I;16L", "F", "LA", "La")
SIXTEEN_BIT = ("I;16", "I;16B", "I;16L", "I")
_one_large_image = threading.Lock()


class UnusableImageError(ValueError):
    """An image that cannot be taken, and why."""


@dataclass(frozen=True)
class Frame:
    """What is known of an image before all of it is decoded."""

    width: int
    height: int
    grey: bool


def read_bytes(ref: ImageRef, root: Path | None) -> bytes:
    """Content of a regular file inside the root, or the bytes themselves; refuses everything else."""
    content = ref if isinstance(ref, bytes) else _read_file(ref, root)
    if not content:
        raise UnusableImageError("an empty file")
    return content


def decode_crop(
    content: bytes, *, mode: str, side: tuple[int, int], box: Callable[[int, int], Box] | None = None
) -> NDArray[np.uint8]:
    """Pixels, uint8 [height, width] or [height, width, 3], of the size (height, width) asked for.

    `box` chooses the part of the image to take from its width and height; None takes all of it.
    """
    with _first_frame(content) as frame:
        image = _convert(frame, mode)
        part = None if box is None else box(*image.size)
        if image.size != (side[1], side[0]) or part is not None:
            image = image.resize((side[1], side[0]), Image.Resampling.BILINEAR, box=part, reducing_gap=2.0)
        return np.asarray(image, dtype=np.uint8)


def probe(content: bytes) -> Frame:
    """Size after rotation, and whether the image is grey; reads all pixels, so that a cut file is found."""
    with _first_frame(content) as image:
        return Frame(image.width, image.height, image.mode in GREY_MODES)


def choose_side(frames: Iterable[Frame], asked: int | None) -> tuple[int, int]:
    """The one size (height, width) for all images: as asked, the one they have, or the median shorter side."""
    if asked is not None:
        return asked, asked
    sizes = Counter((frame.height, frame.width) for frame in frames)
    if len(sizes) == 1:
        return next(iter(sizes))
    shorter = sorted(min(size) for size, count in sizes.items() for _ in range(count))
    side = min(shorter[len(shorter) // 2], DEFAULT_SIDE)
    return side, side


@dataclass(frozen=True)
class Examined:
    """What a look at every image of a listing found: which are usable, and how big and grey each is."""

    frames: dict[int, Frame]
    problems: list[Problem]

    def shape(self, size: int | None, like: tuple[int, ...] | None) -> tuple[int, int, int]:
        """Channels, height and width for all images; `like` is followed, as a test split must."""
        if like is not None:
            return like[0], like[1], like[2]
        grey = all(frame.grey for frame in self.frames.values())
        return 1 if grey else 3, *choose_side(self.frames.values(), size)


def examine(listing: Listing, advance: Callable[[int], None] = lambda done: None) -> Examined:
    """Read and decode every image once, keeping none."""
    frames, problems = {}, []
    looked = _in_threads(lambda i: _look(listing.images[i], listing.root), len(listing))
    for i, (frame, what) in enumerate(looked):
        if frame is None:
            problems.append(Problem(listing.places[i], what))
        else:
            frames[i] = frame
        advance(1)
    return Examined(frames, problems)


def decode_all(listing: Listing, which: Iterable[int], shape: tuple[int, int, int]) -> Tensor:
    """These images of a listing as uint8 [n, channels, height, width]."""
    chosen, (channels, height, width) = list(which), shape
    images = np.empty((len(chosen), height, width, channels), dtype=np.uint8)
    mode = "RGB" if channels == 3 else "L"

    def place(row: int) -> None:
        try:
            content = read_bytes(listing.images[chosen[row]], listing.root)
            images[row] = decode_crop(content, mode=mode, side=(height, width)).reshape(images.shape[1:])
        except UnusableImageError as error:
            raise InputError(f"{listing.places[chosen[row]]} changed while it was read: {error}") from None

    for _ in _in_threads(place, len(chosen)):
        pass
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()


def cached_images(place: Path | None, most_bytes: float) -> Tensor | None:
    """The decoded set kept at this place, if there is one, it is whole and it may be held in memory."""
    if place is None or not place.is_file() or place.stat().st_size > most_bytes:
        return None
    try:
        return load_file(place)["images"]
    except (SafetensorError, OSError, KeyError):
        place.unlink(missing_ok=True)
        return None


def _in_threads(work: Callable[[int], Result], count: int) -> Iterator[Result]:
    """Results of `work` for 0 to count - 1, in order; threads take a stretch at a time, as small images are quick."""
    stretches = [range(start, min(start + STRETCH, count)) for start in range(0, count, STRETCH)]
    pool = ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1))
    try:
        for results in pool.map(lambda stretch: [work(i) for i in stretch], stretches):
            yield from results
    finally:
        pool.shutdown(cancel_futures=True)


def _look(ref: ImageRef, root: Path | None) -> tuple[Frame | None, str]:
    try:
        return probe(read_bytes(ref, root)), ""
    except UnusableImageError as error:
        return None, str(error)


def _read_file(path: Path, root: Path | None) -> bytes:
    try:
        if root is not None and not path.resolve().is_relative_to(root.resolve()):
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
    with _refused_if_damaged():
        image: Image.Image = Image.open(io.BytesIO(content), formats=_formats())
        pixels = image.width * image.height
        if pixels > MOST_PIXELS:
            raise UnusableImageError(f"{image.width}x{image.height} pixels; at most {MOST_PIXELS:,} are taken")
    with _one_large_image if pixels > LARGE else nullcontext():
        with _refused_if_damaged():
            image.load()
            if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
                image = ImageOps.exif_transpose(image)
        yield image


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


def cache_place(listing: Listing, size: int | None, like: tuple[int, ...] | None) -> Path | None:
    """Where the decoded set is kept; the name covers every file's place, size and time, or the bytes themselves."""
    digest = hashlib.sha256(repr(("decoded 1", size, like, len(listing))).encode())
    for ref in listing.images:
        if isinstance(ref, bytes):
            digest.update(hashlib.sha256(ref).digest())
            continue
        try:
            status = ref.stat()
        except (OSError, ValueError):
            return None
        digest.update(f"{ref}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="surrogateescape"))
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labelmend"
    return folder / f"{digest.hexdigest()}.safetensors"


def keep_in_cache(path: Path, images: Tensor) -> None:
    """Keep a decoded set; a cache that cannot be written is not an error."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"images": images}, temporary)
        temporary.replace(path)
    except (OSError, SafetensorError):
        temporary.unlink(missing_ok=True)


def shrunk(content: bytes, longest_side: int) -> Image.Image:
    """The image for a person to look at: turned as EXIF says, in its proportions, no side longer than this."""
    with _first_frame(content) as frame:
        image = _convert(frame, "L" if frame.mode in GREY_MODES else "RGB")
        image.thumbnail((longest_side, longest_side))
        return image
