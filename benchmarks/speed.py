"""How fast labelmend is: epochs, the mixture, growth with the data, start-up, and where the time goes.

    python benchmarks/speed.py --out benchmarks/results/speed.json [--only epochs,mixture,growth,startup,profile]
        [--nets slim-resnet,convnet,preact-resnet18] [--rounds 5] [--threads 2] [--table]

Figures that are compared come from one process and take turns; each is the best of all rounds, since other work on the
machine can only add time. Images are random: what they show hardly changes the cost. `--only` measures these sections
and `--nets` these networks, and the rest of the output file stays; `--table` prints the file as Markdown.

epochs   Seconds of one epoch in the 300-epoch timeline after epoch 200, where labels are being corrected. `ce` only
         learns, which is the least an epoch can cost. The others add a tracking pass and the fit of the noise model
         every k epochs, so that an epoch costs ((k - 1) untracked + tracked) / k. `reference` has the cost structure
         of the authors' released M-DYR-H (reference.py). Nothing is saved or tested.
mixture  Fit and posterior of the beta mixture against SciPy's fit (reference.py), and the ledger of a tracking pass
         over 10 classes, without the network. `percentiles` is our fit with the scaling of the released code, which is
         SciPy's too. Peak memory is what a process of its own needs beyond the losses; it is read from VmHWM, because
         ru_maxrss of a child starts at its parent's.
growth   Seconds per sample of m-dyr-h with convnet while samples, classes or image side grow. An epoch is
         learn + track / k, from a tracked one. Small sets repeat their epoch and the mean counts as one round: the
         5,000 samples ten times for the 50,000 once, so that both meet as much of other work. Memory is the peak of a
         process that does one tracked epoch, beyond what it held before it made the data.
startup  Seconds of whole processes.
profile  Shares of an epoch of m-dyr-h with slim-resnet, from torch.profiler. The self time of each event goes to the
         first of GROUPS that its name, or else that of the nearest enclosing event, belongs to. Forward passes,
         augmentation, the ledger and the fit are enclosed in events that this script adds. What then belongs nowhere is
         `Python` if it lies between operations (more than without the profiler), `other` if it is in the network or its
         backward pass (shortcuts, pooling, the linear head), and `augmentation and mixing` everywhere else.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from common import cores, stamp
from reference import Reference, ScipyBetaMixture
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from labelmend.core import generator
from labelmend.data import Samples
from labelmend.data.kinds.images import Images as ImageKind
from labelmend.data.samples import NoisyLabels
from labelmend.detect.ledger import Ledger
from labelmend.mixture import PERCENTILES, noise_model
from labelmend.training.assemble import assemble
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.trainer import AT_ONCE, Trainer

TIMELINE = 300
WARM_UP, UNTRACKED, TRACKED = 200, 201, 205
BATCH = 128

Figures = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """What the command line asked for."""

    out: Path
    nets: Sequence[str]
    rounds: int
    threads: int


@dataclass(frozen=True)
class Images:
    """The size of a made-up data set."""

    samples: int
    side: int = 32
    classes: int = 10

    def dataset(self) -> Samples:
        """Random colour images with random labels."""
        rng = generator(0, "speed", *asdict(self).values())
        shape = (self.samples, 3, self.side, self.side)
        inputs = torch.randint(256, shape, generator=rng, dtype=torch.uint8)
        labels = torch.randint(self.classes, (self.samples,), generator=rng)
        classes, ids = ([str(number) for number in range(count)] for count in (self.classes, self.samples))
        return Samples("random", ImageKind(), inputs, NoisyLabels(labels), classes, ids, ids)


@dataclass(frozen=True)
class System:
    """A way to train, by its method and its details."""

    method: str
    details: str = "fast"

    def trainer(self, data: Samples, net: str, threads: int, folder: Path) -> Trainer:
        """A run that stands before its first epoch."""
        config = TrainConfig(
            data.name, str(folder), method=self.method, net=net, epochs=TIMELINE, device="cpu", threads=threads,
            settings={"details": self.details, "batch_size": str(BATCH)},
        )  # fmt: skip
        prepared = prepare(config, data=data)
        prepared.run.create({})
        return assemble(prepared, prepared.engine.start(), data.kind.normaliser(data.inputs))


EPOCH_IMAGES = {
    "slim-resnet": Images(2560),
    "convnet": Images(2560),
    "fast-32": Images(2560),
    "preact-resnet18": Images(256),
}
PLAIN = "ce"
REFERENCE = "reference"
SYSTEMS = {
    "m fast": System("m"),
    "m-dyr-h fast": System("m-dyr-h"),
    "m-dyr-h paper": System("m-dyr-h", "paper"),
    "md-dyr-sh fast": System("md-dyr-sh"),
    "md-dyr-sh paper": System("md-dyr-sh", "paper"),
}

AGAINST_SCIPY = 1_000_000
MIXTURE_SIZES = (1_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000)

GROWTH_ROUNDS = 2
GROWTH = {
    "samples": {Images(1_000, 16): 10, Images(5_000, 16): 10, Images(10_000, 16): 1, Images(50_000, 16): 1},
    "classes": {Images(2_000, 16, classes): 1 for classes in (10, 100, 1_000)},
    "side": {Images(500, side): 1 for side in (16, 32, 64)},
}
"""What grows, the sizes it takes, and how often each repeats its epoch in a round."""

STARTUP_ROUNDS = 7
STARTUP = {
    "python -c pass": [sys.executable, "-c", "pass"],
    'python -c "import labelmend"': [sys.executable, "-c", "import labelmend"],
    "labelmend --help": [str(Path(sys.executable).with_name("labelmend")), "--help"],
}

EPOCH, NETWORK, BACKWARD = "epoch", "network", "autograd::engine"
TRACKING, MIXING, PYTHON, OTHER = "ledger and mixture", "augmentation and mixing", "Python", "other"
GROUPS = {
    "convolution forward": ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::mkldnn_convolution"),
    "convolution backward": ("ConvolutionBackward", "convolution_backward"),
    "batch norm": ("batch_norm", "BatchNorm"),
    "activation": ("relu", "Relu", "threshold_backward"),
    "loss and targets": ("softmax", "Softmax", "one_hot"),
    "optimiser": ("Optimizer.",),
    MIXING: (MIXING,),
}


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best_in_turns(works: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The least that each of the works gave, all of them taking their turn in each round.

    The order changes by round, so that nobody always comes after the same one and its caches.
    """
    best, chance = dict.fromkeys(works, math.inf), random.Random(0)
    for _ in range(rounds):
        for name in chance.sample(list(works), len(works)):
            best[name] = min(best[name], works[name]())
    return best


def say(*words: object) -> None:
    print(*words, flush=True)


def child(asked: Asked, *words: object) -> Figures:
    """What this script measures in a process of its own."""
    options = [__file__, "--out", asked.out, "--threads", asked.threads, "--child", *words]
    shown = subprocess.run([sys.executable, *map(str, options)], capture_output=True, text=True, check=True).stdout
    return dict(json.loads(shown.splitlines()[-1]))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Most memory that this process held since its peak was forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def learn(trainer: Trainer, epoch: int) -> None:
    trainer.position = trainer._after(epoch - 1)  # or else a second call finds every step of the epoch done
    trainer.learn(epoch)


def whole_epoch(trainer: Trainer, epoch: int) -> None:
    learn(trainer, epoch)
    if trainer.tracks(epoch):
        trainer.track(epoch)


def interval(trainer: Trainer) -> int:
    """Epochs from one tracking pass to the next."""
    return next(k for k in range(1, TIMELINE) if trainer.tracks(WARM_UP + k))


def epochs(asked: Asked) -> Figures:
    return {net: epochs_of(net, EPOCH_IMAGES[net], asked) for net in asked.nets}


def epochs_of(net: str, images: Images, asked: Asked) -> Figures:
    """Seconds per epoch of every system on one network, and how they compare."""
    data = images.dataset()
    with tempfile.TemporaryDirectory() as folder:
        systems = {PLAIN: System("ce")} | SYSTEMS
        trainers = {
            name: system.trainer(data, net, asked.threads, Path(folder) / name) for name, system in systems.items()
        }
        plain = trainers.pop(PLAIN)
        reference = Reference(data.inputs, data.labels.observed, images.classes, net=net, batch_size=BATCH)
        for trainer in trainers.values():
            whole_epoch(trainer, WARM_UP)
        learn(plain, WARM_UP)
        reference.epoch()
        works: dict[str, Callable[[], float]] = {PLAIN: partial(seconds, partial(learn, plain, UNTRACKED))}
        for name, trainer in trainers.items():
            if interval(trainer) > 1:
                works[f"{name} untracked"] = partial(seconds, partial(learn, trainer, UNTRACKED))
            works[f"{name} tracked"] = partial(seconds, partial(whole_epoch, trainer, TRACKED))
        works[REFERENCE] = partial(seconds, reference.epoch)
        best = best_in_turns(works, asked.rounds)
    costs = {PLAIN: best[PLAIN]}
    for name, trainer in trainers.items():
        k, tracked = interval(trainer), best[f"{name} tracked"]
        costs[name] = ((k - 1) * best.get(f"{name} untracked", 0.0) + tracked) / k
    costs[REFERENCE] = best[REFERENCE]
    compared = {
        name: {"seconds": cost, "to_ce": cost / costs[PLAIN], "reference_to_it": costs[REFERENCE] / cost}
        for name, cost in costs.items()
    }
    for name, found in compared.items():
        say(f"{net}, {name}: {found['seconds']:.3f} s, {found['to_ce']:.2f} of ce, "
            f"reference takes {found['reference_to_it']:.2f} of it")  # fmt: skip
    return {"images": asdict(images), "best": best, "systems": compared}


def two_humps(samples: int) -> Tensor:
    """Losses as of 60 % right and 40 % wrong labels, made in place so that no more memory is ever held."""
    losses, rng = torch.empty(samples), generator(0, "losses")
    right = samples * 6 // 10
    losses[:right].exponential_(4.0, generator=rng)
    losses[right:].normal_(3.0, 0.6, generator=rng).abs_()
    return losses


def mixture(asked: Asked) -> Figures:
    return {"sizes": [mixture_of(samples, asked) for samples in MIXTURE_SIZES]}


def mixture_of(samples: int, asked: Asked) -> Figures:
    """Seconds of fit, posterior and ledger at one size, and SciPy's fit where it does not take minutes."""
    losses, model, ledger = two_humps(samples), noise_model("bmm"), Ledger(samples)
    works = {
        "fit": partial(seconds, partial(model.fit, losses)),
        "fit_percentiles": partial(seconds, partial(noise_model("bmm", scaling=PERCENTILES).fit, losses)),
        "posterior": partial(seconds, lambda: model.posterior(losses)),
        "ledger": partial(seconds, partial(ledger_pass, ledger)),
    }
    if samples <= AGAINST_SCIPY:
        works["scipy_fit"] = partial(seconds, partial(ScipyBetaMixture().fit, losses.double().numpy()))
    best = best_in_turns(works, asked.rounds)
    found: Figures = {"samples": samples, **best}
    for ours in ("fit", "fit_percentiles"):
        found[f"scipy_to_{ours}"] = best["scipy_fit"] / best[ours] if "scipy_fit" in best else None
    found["ledger_bytes_per_sample"] = sum(t.nbytes for t in vars(ledger).values() if isinstance(t, Tensor)) / samples
    found |= child(asked, "mixture", samples)
    say(json.dumps(found))
    return found


def ledger_pass(ledger: Ledger, *, classes: int = 10) -> None:
    """What a tracking pass writes, without the network."""
    rng = generator(0, "ledger")
    logits = torch.randn(AT_ONCE, classes, generator=rng)
    labels = torch.randint(classes, (AT_ONCE,), generator=rng)
    ledger.open_pass()
    for index in torch.arange(len(ledger.losses)).split(AT_ONCE):
        ledger.write(index, labels[: len(index)], logits[: len(index)])


def mixture_memory(samples: int) -> Figures:
    """Peak of fit and of posterior, which includes its result, beyond losses and libraries."""
    losses, model = two_humps(samples), noise_model("bmm")
    model.fit(two_humps(50_000)).posterior(losses[:1_000])
    found = {}
    for name, work in {"fit": model.fit, "posterior": model.posterior}.items():
        forget_peak()
        before = peak_mib()
        work(losses)
        found[f"{name}_peak_mib"] = round(peak_mib() - before, 1)
    return found


def growth(asked: Asked) -> Figures:
    return {what: grown(what, sizes, asked) for what, sizes in GROWTH.items()}


def grown(what: str, sizes: Mapping[Images, int], asked: Asked) -> list[Figures]:
    """Seconds per sample and peak memory at each size."""
    with tempfile.TemporaryDirectory() as folder:
        works = {}
        for images, repeats in sizes.items():
            place = Path(folder) / f"{getattr(images, what)}"
            trainer = System("m-dyr-h").trainer(images.dataset(), "convnet", asked.threads, place)
            whole_epoch(trainer, WARM_UP)
            works[str(getattr(images, what))] = partial(averaged_epoch, trainer, repeats)
        best = best_in_turns(works, min(asked.rounds, GROWTH_ROUNDS))
    rows = []
    for images in sizes:
        spent = best[str(getattr(images, what))] / images.samples
        rows.append(asdict(images) | {"seconds_per_sample": spent} | child(asked, "growth", *asdict(images).values()))
        say(json.dumps(rows[-1]))
    return rows


def averaged_epoch(trainer: Trainer, repeats: int) -> float:
    """Seconds of an epoch with its share of a tracking pass, mean of so many."""
    learning = tracking = 0.0
    for _ in range(repeats):
        learning += seconds(partial(trainer.learn, TRACKED))
        tracking += seconds(partial(trainer.track, TRACKED))
    return (learning + tracking / interval(trainer)) / repeats


def growth_memory(samples: int, side: int, classes: int, threads: int) -> Figures:
    """Peak of a tracked epoch, with data, network and optimiser, beyond the libraries."""
    forget_peak()
    before = peak_mib()
    with tempfile.TemporaryDirectory() as folder:
        data = Images(samples, side, classes).dataset()
        whole_epoch(System("m-dyr-h").trainer(data, "convnet", threads, Path(folder) / "run"), WARM_UP)
    return {"peak_mib": round(peak_mib() - before, 1)}


def startup(asked: Asked) -> Figures:
    run = partial(subprocess.run, check=True, capture_output=True)
    works = {name: partial(seconds, partial(run, command)) for name, command in STARTUP.items()}
    best = best_in_turns(works, STARTUP_ROUNDS)
    for name, spent in best.items():
        say(f"{name}: {spent:.3f} s")
    return {"seconds": best}


def profiled(asked: Asked) -> Figures:
    """Shares of the groups in an untracked epoch, in a tracked one, and in the mean epoch."""
    with tempfile.TemporaryDirectory() as folder:
        images = EPOCH_IMAGES["slim-resnet"]
        trainer = System("m-dyr-h").trainer(images.dataset(), "slim-resnet", asked.threads, Path(folder) / "run")
        whole_epoch(trainer, WARM_UP)
        enclose(trainer)
        untracked, tracked = grouped(trainer, UNTRACKED), grouped(trainer, TRACKED)
    k = interval(trainer)
    mean = Counter({name: (k - 1) * untracked[name] + tracked[name] for name in untracked | tracked})
    found = {"untracked": shares(untracked), "tracked": shares(tracked), "mean": shares(mean)}
    for name, share in found["mean"].items():
        say(f"{name}: {share:.3f}")
    return {"images": asdict(images), "net": "slim-resnet", "interval": k, "shares": found}


def enclose(trainer: Trainer) -> None:
    """Give the profiler events around what operations alone do not tell apart."""
    network, ledger, feed, method = trainer.learners[0].network, trainer.ledgers[0], trainer.feed, trainer.method
    for owner, attribute, name in (
        (network, "forward", NETWORK),
        (feed, "augment", MIXING),
        (feed, "normalise", MIXING),
        (ledger, "write", TRACKING),
        (method, "after_tracking", TRACKING),
    ):
        setattr(owner, attribute, record_function(name)(getattr(owner, attribute).__call__))


def grouped(trainer: Trainer, epoch: int) -> Counter[str]:
    """Self time of one epoch by group, in microseconds."""
    with profile(activities=[ProfilerActivity.CPU]) as watched, record_function(EPOCH):
        whole_epoch(trainer, epoch)
    spent: Counter[str] = Counter()
    for event in watched.events():
        names = [event.name]
        parent = event.cpu_parent
        while parent is not None:
            names.append(parent.name)
            parent = parent.cpu_parent
        if EPOCH in names:
            spent[group_of(names)] += event.self_cpu_time_total
    return spent


def group_of(names: Sequence[str]) -> str:
    """Where an event belongs, by its own name and those of the events around it, nearest first."""
    if TRACKING in names:
        return TRACKING
    for name in names:
        for group, marks in reversed(GROUPS.items()):
            if any(mark in name for mark in marks):
                return group
    if names[0] in (EPOCH, NETWORK):
        return PYTHON
    return OTHER if any(name == NETWORK or name.startswith(BACKWARD) for name in names) else MIXING


def shares(spent: Counter[str]) -> dict[str, float]:
    total = sum(spent.values())
    return {name: spent[name] / total for name in (*GROUPS, TRACKING, PYTHON, OTHER)}


SECTIONS = {"epochs": epochs, "mixture": mixture, "growth": growth, "startup": startup, "profile": profiled}


def markdown(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def tables(kept: Figures) -> str:
    """Every section that was measured, as Markdown."""
    printers = {
        "epochs": epochs_table,
        "mixture": mixture_table,
        "growth": growth_table,
        "startup": startup_table,
        "profile": profile_table,
    }
    return "\n".join(printer(kept[name]) for name, printer in printers.items() if name in kept)


def epochs_table(section: Figures) -> str:
    rows = [
        [net, f"`{name}`", f"{row['seconds']:.2f}", f"{row['to_ce']:.2f}", f"{row['reference_to_it']:.2f}"]
        for net, found in section.items()
        for name, row in found["systems"].items()
    ]
    return markdown(["net", "system", "seconds an epoch", "times `ce`", "reference takes, times"], rows)


def mixture_table(section: Figures) -> str:
    rows = []
    for row in section["sizes"]:
        timed = ("fit", "fit_percentiles", "posterior", "ledger", "scipy_fit")
        spent = [f"{1000 * row[key]:.2f}" if key in row else "–" for key in timed]
        ratios = [f"{row[key]:.1f}" if row[key] else "–" for key in ("scipy_to_fit", "scipy_to_fit_percentiles")]
        memory = [row["fit_peak_mib"], row["posterior_peak_mib"], f"{row['ledger_bytes_per_sample']:.0f}"]
        rows.append([f"{row['samples']:,}", *spent, *ratios, *memory])
    milliseconds = [f"{name}, ms" for name in ("fit", "percentiles", "posterior", "ledger pass", "SciPy fit")]
    titles = ["losses", *milliseconds, "SciPy / fit", "SciPy / percentiles", "fit, MiB", "posterior, MiB"]
    return markdown([*titles, "ledger, bytes a sample"], rows)


def growth_table(section: Figures) -> str:
    rows = [
        [what, f"{row['samples']:,}", f"{row['classes']:,}", row["side"], f"{1e6 * row['seconds_per_sample']:.0f}",
         row["peak_mib"]]
        for what in GROWTH
        for row in section[what]
    ]  # fmt: skip
    return markdown(["what grows", "samples", "classes", "side, px", "µs a sample and epoch", "peak MiB"], rows)


def startup_table(section: Figures) -> str:
    return markdown(["command", "seconds"], [[f"`{name}`", f"{s:.2f}"] for name, s in section["seconds"].items()])


def profile_table(section: Figures) -> str:
    kinds = section["shares"]
    rows = [[name, *(f"{100 * kinds[kind][name]:.1f} %" for kind in kinds)] for name in kinds["mean"]]
    return markdown(["part of an epoch", *kinds], rows)


def measure(asked: Asked, only: Sequence[str]) -> None:
    """Measure the sections and put each into the output file as soon as it is there."""
    for name in only:
        origin = {"commit": stamp()["commit"], "threads": asked.threads, "rounds": asked.rounds}
        found = SECTIONS[name](asked)
        kept = json.loads(asked.out.read_text()) if asked.out.exists() else {}
        if name == "epochs":
            section = kept.get(name, {}) | {net: origin | figures for net, figures in found.items()}
        else:
            section = origin | found
        asked.out.write_text(json.dumps(kept | stamp() | {name: section}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--nets", default=",".join(EPOCH_IMAGES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--table", action="store_true", help="only print what the output file holds, as Markdown")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    if words.child:
        kind, *sizes = words.child[0], *map(int, words.child[1:])
        print(json.dumps(mixture_memory(*sizes) if kind == "mixture" else growth_memory(*sizes, words.threads)))
    elif words.table:
        print(tables(json.loads(words.out.read_text())))
    else:
        measure(Asked(words.out, words.nets.split(","), words.rounds, words.threads), words.only.split(","))


if __name__ == "__main__":
    main()
