"""Files that commands read and write: damaged ones are named, existing ones are not replaced. Imports nothing slow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError


@contextmanager
def damage_named(*runs: Path) -> Iterator[None]:
    """Turn any error that the files of these run directories cause into one that says they are damaged."""
    try:
        yield
    except (InputError, OSError):
        raise
    except Exception as error:
        names = ", ".join(map(str, runs))
        raise InputError(f"the files in {names} are damaged ({type(error).__name__}: {error})") from error


def check_free(path: Path, *, force: bool) -> None:
    """Refuse to write where something is already, unless it is a file that the user wants replaced."""
    if path.exists() and not path.is_file():
        raise InputError(f"--out {path} is not a file that can be replaced")
    if path.exists() and not force:
        raise InputError(f"{path} exists; choose another --out, or replace it with --force")
