"""What was tried to make a step cheaper, each by itself against how it is done now.

    python benchmarks/candidates.py --out benchmarks/results/candidates.json [--rounds 7] [--threads 2] [--compile]

A training step on a full batch, or a pass without gradients over 1,024 images, as a multiple of the way it is done now
(SGD without fusing, channels last, no_grad, 64 images at a time). All take turns in one process, and the best of all
rounds counts.
`--compile` adds torch.compile, with the seconds that compiling takes.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from common import cores, stamp
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import generator
from labelmend.nets import build_net

NETS = {"slim-resnet": 128, "convnet": 128, "preact-resnet18": 32}
SWEPT = 1024


def network(name: str, layout: torch.memory_format) -> nn.Module:
    return build_net(name, (3, 32, 32), 10, rng=generator(0, "net")).to(memory_format=layout)


def trained(
    name: str, batch: int, *, layout: torch.memory_format = torch.channels_last, **sgd: Any
) -> Callable[[], None]:
    net = network(name, layout)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, **sgd)
    images = torch.randn(batch, 3, 32, 32, generator=generator(0, "images")).contiguous(memory_format=layout)
    labels = torch.randint(10, (batch,), generator=generator(0, "labels"))
    return lambda: descend(net, optimiser, images, labels)


def descend(net: Callable[[Tensor], Tensor], optimiser: torch.optim.Optimizer, images: Tensor, labels: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    F.cross_entropy(net(images), labels).backward()
    optimiser.step()


def swept(name: str, size: int, mode: Callable[[], Any]) -> Callable[[], None]:
    net = network(name, torch.channels_last).eval()
    images = torch.randn(SWEPT, 3, 32, 32, generator=generator(0, "sweep")).contiguous(
        memory_format=torch.channels_last
    )

    def run() -> None:
        with mode():
            for chunk in images.split(size):
                net(chunk)

    return run


def compiled(name: str, batch: int) -> tuple[Callable[[], None], float]:
    net = network(name, torch.channels_last)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    labels, forward = torch.randint(10, (batch,)), torch.compile(net, dynamic=False)
    started = time.perf_counter()
    descend(forward, optimiser, images, labels)
    return lambda: descend(forward, optimiser, images, labels), time.perf_counter() - started


def best(work: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Seconds of each, taking turns."""
    seconds = dict.fromkeys(work, float("inf"))
    for each in work.values():
        each()
    for _ in range(rounds):
        for name, each in work.items():
            started = time.perf_counter()
            each()
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--compile", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    found: dict[str, Any] = {}
    for name, batch in NETS.items():
        steps = {
            "as it is": trained(name, batch),
            "contiguous images": trained(name, batch, layout=torch.contiguous_format),
            "fused SGD": trained(name, batch, fused=True),
            "foreach SGD": trained(name, batch, foreach=True),
        }
        warm_up = None
        if asked.compile:
            steps["torch.compile"], warm_up = compiled(name, batch)
        passes = {
            "as it is": swept(name, 64, torch.no_grad),
            "inference mode": swept(name, 64, torch.inference_mode),
            "512 at a time": swept(name, 512, torch.no_grad),
        }
        found[name] = {"compile_seconds": warm_up}
        for kind, work in (("step", steps), ("pass", passes)):
            seconds = best(work, asked.rounds)
            found[name][kind] = {key: round(value / seconds["as it is"], 3) for key, value in seconds.items()}
        print(name, json.dumps(found[name]), flush=True)
        asked.out.write_text(json.dumps(stamp() | {"threads": asked.threads, "nets": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
