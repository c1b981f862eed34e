"""Real processes that are really killed."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")
SAME = ("model.safetensors", "labels.csv", "noise.json", "evidence/losses.f16", "evidence/features.safetensors")
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


class Run:
    """One command line, run as often as it takes, and what it left."""

    def __init__(self, folder: Path, *words: object) -> None:
        self.folder = folder
        self.words = [
            "train",
            "digits",
            "--noise",
            "symmetric:0.5",
            "--threads",
            "1",
            "--out",
            str(folder),
            *map(str, words),
        ]

    def described(self) -> bool:
        """Whether run.json is there."""
        return (self.folder / "run.json").exists()

    def start(self, place: str = "none", number: int = 0, *more: str) -> subprocess.Popen:
        resume = ["--resume"] if self.described() else []
        command = [sys.executable, str(CHILD), place, str(number), *self.words, *resume, *more]
        return subprocess.Popen(command, env=ONE_THREAD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, place: str = "none", number: int = 0, *more: str) -> tuple[int, str]:
        """Run to its end; gives exit code and what was said on standard error."""
        process = self.start(place, number, *more)
        _, shown = process.communicate(timeout=600)
        return process.returncode, shown

    def kill_at(self, place: str, number: int) -> bool:
        """Run until it kills itself; tells whether it did."""
        code, shown = self.finish(place, number)
        assert code in (0, -signal.SIGKILL), shown
        return code != 0

    def digest(self) -> dict[str, str]:
        """What must be the same to the last byte."""
        import json

        lines = [json.loads(line) for line in (self.folder / "epochs.jsonl").read_text().splitlines()]
        said = repr([{key: value for key, value in line.items() if key != "seconds"} for line in lines])
        found = {name: hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in SAME}
        return found | {"epochs.jsonl": hashlib.sha256(said.encode()).hexdigest()}
