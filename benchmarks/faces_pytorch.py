"""The tracker in loops of one's own: digits with half of the labels redrawn, and labels that people gave.

    python benchmarks/faces_pytorch.py --out benchmarks/results/faces_pytorch.json [--rows ...] [--seeds 7,8,9]
    python benchmarks/faces_pytorch.py --out benchmarks/results/faces_pytorch.json --page docs/faces/pytorch.md

`digits` is the program of docs/faces/pytorch.md: `corrected` as it is printed, `plain` without its added lines, and
`watched` with `observe` and its own loss. `cifar10n` is a head of 256 hidden units on pretrained features of 3,000
images of CIFAR-10 with the labels of one annotator each (random_label1), tested on 1,000 images: 10 epochs of AdamW,
and the tracker's loss without mixing after a warm-up of 1 epoch. It needs ../shared and the extra photos. `time` is
that of an epoch over that of the plain loop, from the medians of some hundred steps of each that were done in turns.
Rows that are there are not made again.
"""

import argparse
import copy
import io
import json
import re
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import LOOP_COLUMNS, SHARED, filled_blocks, kept_results, results_table, scores, stamp
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import labelmend as lm

PAGE = Path(__file__).resolve().parents[1] / "docs/faces/pytorch.md"
IMAGES, TESTED, EPOCHS = 3_000, 1_000, 10
ROUNDS = 30
SYSTEMS = ("plain", "watched", "corrected")


def program(page: str, system: str, seed: int) -> str:
    """The first program of the page, for this seed; without the tracker, or with a tracker that only watches."""
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1].replace("seed, epochs = 0,", f"seed, epochs = {seed},")
    if system == "corrected":
        return code
    lines = []
    for line in code.splitlines():
        mixing = "tracker.mix" in line
        if line.endswith("# added") and (system == "plain" or mixing):
            continue
        changed = re.fullmatch(r"(\s*).*# was: (.*)", line)
        if changed and system == "watched":
            lines += [f"{changed[1]}logits = model(x[index])", f"{changed[1]}tracker.observe(index, logits)"]
            lines += [f"{changed[1]}loss = cross_entropy(logits, y[index])"]
        else:
            lines.append(changed[1] + changed[2] if changed else line)
    return "\n".join(lines)


def found_by(table: Any, wrong: Any) -> dict[str, Any]:
    """How well a label table ranks and flags wrong labels."""
    return scores(wrong, -table.rank, table.flagged) | {"estimated_rate": table.noise_rate}


def digits(system: str, seed: int) -> dict[str, Any]:
    """The program of the page."""
    known: dict[str, Any] = {}
    started = time.perf_counter()
    exec(program(PAGE.read_text(), system, seed), known)
    seconds = time.perf_counter() - started
    found = {"accuracy": known["accuracy"], "net": "conv", "epochs": known["epochs"], "seconds": round(seconds, 1)}
    if system != "plain":
        found |= found_by(known["tracker"].table(), (known["y"] != known["truth"][: len(known["y"])]).numpy())
        found |= {"bytes": known["tracker"].bytes_per_sample, "time": relative_time(system, known)}
    return found


def relative_time(system: str, known: dict[str, Any]) -> float:
    """Time of an epoch over that of the plain loop, on the data of the program and two copies of its network."""
    x, y = known["x"], known["y"]
    tracker, nets = lm.Tracker(y, classes=10, epochs=ROUNDS), {}
    for each in ("plain", system):
        net = copy.deepcopy(known["model"]).train()
        for layer in net.modules():
            getattr(layer, "reset_parameters", lambda: None)()
        nets[each] = net, torch.optim.AdamW(net.parameters(), lr=1e-3)

    def timed(system: str, index: Tensor) -> float:
        started = time.perf_counter()
        learn(system, tracker, *nets[system], x[index], y[index], index, mixed=True)
        return time.perf_counter() - started

    seconds: dict[str, list[float]] = {"plain": [], system: [], "end": []}
    for turn in range(ROUNDS):
        batches = torch.randperm(len(x)).split(64)
        for number, index in enumerate(batches):
            for each in ("plain", system)[:: 1 if (number + turn) % 2 else -1]:
                seconds[each].append(timed(each, index))
        started = time.perf_counter()
        tracker.end_epoch()
        if system == "corrected":
            tracker.noise_rate  # noqa: B018 - the labels are judged here rather than in the next step
        seconds["end"].append(time.perf_counter() - started)
    plain, other = (float(np.median(seconds[each])) for each in ("plain", system))
    # Labels are judged at the end of some epochs only: of all, the mean, without the dearest tenth.
    end = float(np.sort(seconds["end"])[: -(ROUNDS // 10)].mean())
    return (len(batches) * other + end) / (len(batches) * plain)


def learn(
    system: str,
    tracker: lm.Tracker,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    inputs: Tensor,
    labels: Tensor,
    index: Tensor,
    *,
    mixed: bool,
) -> None:
    """One step."""
    if system == "corrected":
        inputs, given = tracker.mix(inputs, index) if mixed else (inputs, index)
        loss = tracker.loss(model(inputs), given)
    else:
        logits = model(inputs)
        if system == "watched":
            tracker.observe(index, logits)
        loss = cross_entropy(logits, labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


@lru_cache
def features(file: str, count: int) -> Tensor:
    """Pretrained features of the first images of a file, [count, width]."""
    import pyarrow.parquet as pq
    from PIL import Image

    from labelmend.nets.backbones import find_backbone

    stored = pq.read_table(SHARED / f"data/cifar10/{file}.parquet", columns=["image"]).slice(0, count)
    pictures = [Image.open(io.BytesIO(row["bytes"])).convert("RGB") for row in stored["image"].to_pylist()]
    images = torch.from_numpy(np.stack([np.asarray(picture) for picture in pictures])).permute(0, 3, 1, 2)
    backbone = find_backbone("efficientnet-lite0")
    return torch.cat([backbone(part).clone() for part in images.split(backbone.batch)])


def truth(file: str, count: int) -> Tensor:
    """The right labels of the same images."""
    import pyarrow.parquet as pq

    stored = pq.read_table(SHARED / f"data/cifar10/{file}.parquet", columns=["label"]).slice(0, count)
    return torch.tensor(stored["label"].to_pylist())


def cifar10n(system: str, seed: int) -> dict[str, Any]:
    """A head on pretrained features, with labels that people gave."""
    x, test = features("train", IMAGES), features("test", TESTED)
    centre, spread = x.mean(dim=0), x.std(dim=0) + 1e-6
    x, test = (x - centre) / spread, (test - centre) / spread
    human = np.load(SHARED / "data/cifar10n/labels.npz")["random_label1"][:IMAGES]
    y = torch.from_numpy(human.astype(np.int64))
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[1], 256), nn.ReLU(), nn.Linear(256, 10))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tracker = lm.Tracker(y, classes=10, warm_up=1)
    started = time.perf_counter()
    for _ in range(EPOCHS):
        for index in torch.randperm(len(x)).split(64):
            learn(system, tracker, model, optimiser, x[index], y[index], index, mixed=False)
        if system != "plain":
            tracker.end_epoch()
    with torch.no_grad():
        accuracy = float((model(test).argmax(dim=1) == truth("test", TESTED)).float().mean())
    found = {"accuracy": accuracy, "net": "head", "epochs": EPOCHS, "seconds": round(time.perf_counter() - started, 1)}
    return found if system == "plain" else found | found_by(tracker.table(), (y != truth("train", IMAGES)).numpy())


ROWS: dict[str, Callable[[str, int], dict[str, Any]]] = {"digits": digits, "cifar10n": cifar10n}
COLUMNS = LOOP_COLUMNS | {"time": ("time", 3), "bytes": ("bytes a sample", 0)}


def filled(page: str, measured: list[dict[str, Any]]) -> str:
    """A page with its table as the results have it now."""
    table = results_table(measured, ROWS, SYSTEMS, COLUMNS, learner=("network", lambda m: str(m["net"])))
    return filled_blocks(page, {"results": table})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", default="7,8,9")
    parser.add_argument("--page", type=Path, help="only bring what the output file holds into this page")
    asked = parser.parse_args()
    measured = kept_results(asked.out)
    if asked.page:
        asked.page.write_text(filled(asked.page.read_text(), measured))
        return
    torch.set_num_threads(1)
    done = {(m["row"], m["system"], m["seed"]) for m in measured}
    for row, seed, system in product(asked.rows.split(","), map(int, asked.seeds.split(",")), SYSTEMS):
        if (row, system, seed) not in done:
            measured.append({"row": row, "system": system, "seed": seed, **ROWS[row](system, seed), **stamp()})
            print(json.dumps(measured[-1]), flush=True)
            asked.out.write_text(json.dumps({"rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
