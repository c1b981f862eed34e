"""Decoded image sets, kept between runs."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ...files import atomic
from .images import ImageFiles

_writable = ContextVar("writable", default=True)


def cache_path(files: ImageFiles, size: int | None, like: tuple[int, ...] | None) -> Path | None:
    """Where the decoded set is kept; the name covers every file's path, size and time, or the bytes themselves."""
    digest = hashlib.sha256(repr(("decoded 2", size, like, len(files))).encode())
    for ref in files.refs:
        if isinstance(ref, bytes):
            digest.update(hashlib.sha256(ref).digest())
            continue
        try:
            status = ref.stat()
        except (OSError, ValueError):
            return None
        digest.update(f"{ref}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="surrogateescape"))
    return cache_folder() / f"{digest.hexdigest()}.safetensors"


def cache_folder() -> Path:
    """Where everything is kept that can be computed again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labelmend"


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Inside, nothing is written to the cache; what is in it is used."""
    before = _writable.set(False)
    try:
        yield
    finally:
        _writable.reset(before)


def writable() -> bool:
    """Whether the cache may be written."""
    return _writable.get()


def cached(path: Path | None, most_bytes: float) -> Tensor | None:
    """The decoded set kept at this path, if there is one, it is whole and it may be held in memory."""
    if path is None or not path.is_file() or path.stat().st_size > most_bytes:
        return None
    try:
        return load_file(path)["images"]
    except (SafetensorError, OSError, KeyError):
        path.unlink(missing_ok=True)
        return None


def keep(path: Path | None, images: Tensor) -> None:
    """Keep a decoded set; a cache that cannot be written is not an error."""
    if path is None or not writable():
        return
    with suppress(OSError, SafetensorError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary:
            save_file({"images": images}, temporary)
