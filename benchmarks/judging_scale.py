"""What judging predictions costs at size: seconds of 10^6 samples, and memory of 200,000 samples with 5,000 classes.

    python benchmarks/judging_scale.py [--out benchmarks/results/judging-scale.json] [--folder FOLDER]

Each case is a process of its own that reads a `.npy` file by memory map. `memory` is its peak of resident memory beyond
what the interpreter needs with all modules loaded, so that pages of the file that are kept count. The large file takes
2 GB in `--folder` (default: the folder for temporary files) and is deleted afterwards.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import stamp

from labelmend.detect.judge import judge_predictions

MIB = 1 << 20
BLOCK = 2000
WRONG = 0.1
CASES: dict[str, dict[str, Any]] = {
    "1,000,000 x 10": {"samples": 1_000_000, "classes": 10, "kind": "float32", "seconds": 10.0},
    "200,000 x 5,000": {"samples": 200_000, "classes": 5_000, "kind": "float16", "memory": 1e9},
}


def write(path: Path, *, samples: int, classes: int, kind: str) -> None:
    """Predictions and labels of which a tenth is wrong, written block by block."""
    rng = np.random.default_rng(0)
    truth = rng.integers(classes, size=samples)
    wrong = rng.random(samples) < WRONG
    np.save(path / "labels.npy", np.where(wrong, (truth + rng.integers(1, classes, samples)) % classes, truth))
    rows = np.lib.format.open_memmap(path / "rows.npy", "w+", dtype=kind, shape=(samples, classes))
    for start in range(0, samples, BLOCK):
        part = slice(start, start + BLOCK)
        own = truth[part]
        block = rng.random((len(own), classes), dtype=np.float32) ** 8
        block *= 0.2 / block.sum(axis=1, keepdims=True)
        block[np.arange(len(own)), own] += 0.8 * rng.beta(4, 1, len(own))
        rows[part] = block / block.sum(axis=1, keepdims=True)
    rows.flush()


def status(field: str) -> int:
    """A line of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def measure(path: Path) -> dict[str, Any]:
    """Seconds and peak memory of judging the files of a folder, in this process."""
    small = np.eye(3)[np.arange(60) % 3] + 0.1
    judge_predictions(np.arange(60) % 3, small)  # modules that are loaded when they are first needed
    before = status("VmRSS")
    started = time.perf_counter()
    found = judge_predictions(np.load(path / "labels.npy"), np.load(path / "rows.npy", mmap_mode="r"))
    seconds = time.perf_counter() - started
    memory = status("VmHWM") - before
    flagged = int(found.flagged.sum())
    return {
        "seconds": round(seconds, 2),
        "memory": memory,
        "interpreter": before,
        "rate": found.rate,
        "flagged": flagged,
    }


def in_a_process(folder: str | None, limits: dict[str, Any]) -> dict[str, Any]:
    shape = {name: limits[name] for name in ("samples", "classes", "kind")}
    needed = 1.2 * shape["samples"] * shape["classes"] * np.dtype(shape["kind"]).itemsize
    with tempfile.TemporaryDirectory(dir=folder) as made:
        if shutil.disk_usage(made).free < needed:
            raise SystemExit(f"{made} has less than {needed / 1e9:.1f} GB free; name another place with --folder")
        write(Path(made), **shape)
        command = [sys.executable, __file__, "--measure", made]
        load = os.getloadavg()[0]
        figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    met = {name: figures[name] <= limits[name] for name in ("seconds", "memory") if name in limits}
    targets = {name: limits[name] for name in met}
    return shape | {"load": load} | figures | {"targets": targets, "met": all(met.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "judging-scale.json")
    parser.add_argument("--folder")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(asked.measure)))
        return
    cases = {}
    for name, limits in CASES.items():
        cases[name] = found = in_a_process(asked.folder, limits)
        print(f"{name}: {found['seconds']:.1f} s, {found['memory'] / MIB:,.0f} MiB; targets met: {found['met']}")
    asked.out.write_text(json.dumps(stamp() | {"cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
