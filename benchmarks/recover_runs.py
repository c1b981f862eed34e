"""Take up a reproduction whose runs were made on another machine: their results, from the lines in docs/results.

    python benchmarks/recover_runs.py docs/results/medium --out reproduction

Writes `runs/KEY/result.json` for every line that is not there, so that `labelmend reproduce --out reproduction` does
not make these runs again. Tables and claims need no more; figures need the run directories themselves.
"""

import argparse
import csv
from dataclasses import fields
from pathlib import Path
from typing import Any

from labelmend.files import to_json, write_atomic
from labelmend.reproduce.runs import Result

WORDS = {"key", "version", "commit", "error"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    recovered = sum(recover(path, arguments.out) for path in sorted(arguments.results.glob("*.csv")))
    print(f"{recovered} results recovered")


def recover(path: Path, out: Path) -> int:
    """The results of one file of lines, and how many of them were new."""
    with path.open(newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if "key" in line]
    new = 0
    for line in lines:
        file = out / "runs" / line["key"] / "result.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, to_json({field.name: _value(field.name, line[field.name]) for field in fields(Result)}))
            new += 1
    return new


def _value(name: str, text: str) -> Any:
    if not text:
        return None
    return text if name in WORDS else float(text)


if __name__ == "__main__":
    main()
