"""What saving costs: seconds of a checkpoint against those of the epoch that it keeps.

    python benchmarks/saving.py [--out benchmarks/results/saving.json] [--rounds 15] [--folder FOLDER]

An epoch is learn + track / k, where a tracking pass follows every k epochs; tests cost time too and are left out.
`save` is a whole checkpoint with every wait for the disk, `record` the line of epochs.jsonl that goes before it. All of
it is one run in one process and one thread; an epoch is a round, and the first does not count. `--folder` is on the
disk that is written to. `load` is the machine's before the run: where others want the cores, a save has to queue for
one after each of its waits, and takes several times as long.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from common import stamp
from speed import Figures, Images, say

from labelmend.data import Samples, open_source
from labelmend.training.assemble import assemble
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.trainer import Trainer

LIMIT = 0.05


def cases() -> dict[str, tuple[Samples, str | None]]:
    """Data and network: the one that labelmend would choose, or this one."""
    return {"digits": (open_source("digits")[0], None), "random 32x32x3": (Images(2560).dataset(), "slim-resnet")}


def trainer_of(data: Samples, net: str | None, folder: Path, epochs: int) -> Trainer:
    """A run with the default method that stands before its first epoch."""
    prepared = prepare(TrainConfig(data.name, str(folder), net=net, epochs=epochs, device="cpu", threads=1), data=data)
    prepared.run.create({})
    return assemble(prepared, prepared.engine.start(), data.kind.normaliser(data.inputs))


def timed(owner: object, name: str) -> list[float]:
    """Where the seconds of every call of a method will be found."""
    spent: list[float] = []
    work = getattr(owner, name)

    def called(*given: Any) -> Any:
        started = time.perf_counter()
        result = work(*given)
        spent.append(time.perf_counter() - started)
        return result

    setattr(owner, name, called)
    return spent


def measured(data: Samples, net: str | None, folder: Path, rounds: int) -> Figures:
    """Seconds of the parts of an epoch, and the share of it that saving adds."""
    trainer = trainer_of(data, net, folder, rounds + 1)
    every = 100 // sum(trainer.method.tracks(epoch) for epoch in range(1001, 1101))
    spent = {part: timed(trainer, part) for part in ("learn", "track", "save")}
    spent["record"] = timed(trainer.run, "append_epoch")
    load = os.getloadavg()[0]
    trainer.train()
    figures: Figures = {
        "load": load,
        "samples": len(data),
        "track_every": every,
        "checkpoint_bytes": size(folder / "checkpoints") // 2,
    }
    for name, summary in {"best": min, "median": statistics.median}.items():
        took = {part: float(summary(times[1:])) for part, times in spent.items()}
        epoch = took["learn"] + took["track"] / every
        figures[name] = took | {"epoch": epoch, "save_share": took["save"] / epoch}
    return figures


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "saving.json")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found: Figures = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for name, (data, net) in cases().items():
            found[name] = measured(data, net, Path(folder) / name, asked.rounds)
            share = found[name]["median"]["save_share"]
            say(f"{name}: saving takes {share:.1%} of an epoch, {'at most' if share <= LIMIT else 'above'} {LIMIT:.0%}")
    asked.out.write_text(json.dumps(stamp() | {"rounds": asked.rounds, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
