"""What the demo tells of each embedded data set. Imports nothing slow: its first line is there at once."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError, lookup

MARKER = ".labelmend-demo"


@dataclass(frozen=True)
class Story:
    """A data set, how its labels are made wrong, how it is trained on, and how the demo begins.

    Noise is a kind and a rate or, as people err, the classes that each class is `taken_for` and at which rate, and the
    rate of `slips` to any class. A network of None is labelmend's own choice, and so are epochs where there is a time.
    """

    source: str
    opening: str
    sample: str
    method: str
    epochs: int | None = None
    time: str | None = None
    net: str | None = None
    noise: str | None = None
    taken_for: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    slips: float = 0.0
    pictures: bool = False


CLOTHES = Story(
    source="clothes",
    opening=(
        "A shop's photographs of clothes. A fifth of their labels are now wrong, most of them as people err: a shirt "
        "taken for a T-shirt, a coat for a pullover. Nobody tells the training which. Two networks learn from these "
        "labels: one with labelmend, one plainly."
    ),
    sample="photographs",
    method="mend",
    time="30s",
    taken_for={
        "T-shirt": {"Shirt": 0.2},
        "Shirt": {"T-shirt": 0.2},
        "Pullover": {"Coat": 0.2},
        "Coat": {"Pullover": 0.2},
        "Dress": {"Coat": 0.2},
        "Sandal": {"Sneaker": 0.2},
        "Sneaker": {"Ankle boot": 0.1, "Sandal": 0.1},
        "Ankle boot": {"Sneaker": 0.2},
    },
    slips=0.05,
    pictures=True,
)
DIGITS = Story(
    source="digits",
    opening=(
        "Real handwritten digits. Half of their labels are now redrawn at random, and nobody tells the training which. "
        "Two networks learn from them: one with labelmend, one plainly."
    ),
    sample="images",
    epochs=30,
    method="m-dyr-h",
    net="convnet",
    noise="symmetric:0.5",
)
STORIES = {story.source: story for story in (CLOTHES, DIGITS)}


def find_story(name: str) -> Story:
    """The story of this data set."""
    return lookup("value of --data", name, STORIES)


def make_room(folder: Path) -> None:
    """An empty folder for the runs: a new one, or that of an earlier demo, whose runs are removed."""
    if not folder.exists():
        folder.mkdir(parents=True)
    elif (folder / MARKER).is_file():
        shutil.rmtree(folder)
        folder.mkdir()
    elif not folder.is_dir() or any(folder.iterdir()):
        raise InputError(f"{folder} exists and was not made by the demo; choose another folder with --out")
    (folder / MARKER).touch()
