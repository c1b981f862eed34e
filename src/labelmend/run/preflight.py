"""preflight.json: what the check of the data found before the first epoch."""

from typing import TYPE_CHECKING

from ..data.noise import read_json
from ..data.preflight import Preflight
from ..files import to_json, write_atomic
from .directory import RunDirectory

if TYPE_CHECKING:
    from ..data.samples import Samples


def write_preflight(run: RunDirectory, preflight: Preflight) -> None:
    """Write preflight.json."""
    write_atomic(run.preflight, to_json(preflight.to_dict()))


def skipped_places(run: RunDirectory) -> set[str]:
    """Paths or rows of the samples that the run left out; empty if the file is missing or damaged."""
    try:
        problems = read_json(str(run.preflight))["problems"]
        return {problem["place"] for problem in problems if not problem["what"].startswith("id ")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def rows_by_id(run: RunDirectory, samples: "Samples") -> dict[str, int]:
    """The row of each sample of a data set by its id, without those that the run left out."""
    skipped, found = skipped_places(run), dict[str, int]()
    locations = samples.locations or [""] * len(samples)
    for row, (id, location) in enumerate(zip(samples.ids, locations, strict=True)):
        if location not in skipped:
            found.setdefault(id, row)
    return found
