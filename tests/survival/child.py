"""labelmend in a process of its own that kills itself where the test says.

    python child.py PLACE NUMBER WORDS...

PLACE is `write`, `fsync`, `rename` (of a checkpoint's files, counted over the whole run), `save` (any of these three),
`fit` (an EM step of a mixture), `step` (an optimisation step) or `none`; the process is killed at the NUMBERth one.
No report is built: it is not among the files that are compared.
"""

import os
import pathlib
import signal
import sys

import labelmend.mixture.base as base
import labelmend.training.checkpoint as checkpoint
from labelmend.__main__ import main
from labelmend.core import Learner
from labelmend.faces import terminal


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    def __init__(self, place: str, number: int) -> None:
        self.place, self.left = place, number

    def reached(self, *places: str) -> bool:
        if self.place not in places:
            return False
        self.left -= 1
        return self.left == 0


def install(countdown: Countdown) -> None:
    """Replace what a save and a fit are made of by versions that may die half-way."""
    write, sync, rename = checkpoint.write_synced, checkpoint.sync_folder, pathlib.Path.replace
    match, descend = base.moments, Learner.descend

    def half_written(path: pathlib.Path, content: bytes) -> None:
        if countdown.reached("write", "save"):
            path.write_bytes(content[: len(content) // 2])
            die()
        write(path, content)
        if countdown.reached("fsync", "save"):
            die()

    def synced(path: pathlib.Path) -> None:
        if countdown.reached("fsync", "save"):
            die()
        sync(path)

    def renamed(self: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        if "checkpoints" in str(self) and countdown.reached("rename", "save"):
            die()
        done = rename(self, target)
        if "checkpoints" in str(self) and countdown.reached("rename", "save"):
            die()
        return done

    def fitted(powers, masses):
        if countdown.reached("fit"):
            die()
        return match(powers, masses)

    def descended(self, loss):
        descend(self, loss)
        if countdown.reached("step"):
            die()

    checkpoint.write_synced, checkpoint.sync_folder, pathlib.Path.replace = half_written, synced, renamed
    base.moments, Learner.descend = fitted, descended


if __name__ == "__main__":
    place, number, *words = sys.argv[1:]
    install(Countdown(place, int(number)))
    terminal.build_report = lambda run: None
    sys.argv = ["labelmend", *words]
    main()
