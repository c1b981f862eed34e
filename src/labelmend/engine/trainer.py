"""The training loop: learn, track, judge, evaluate, record, save; once for every method."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..core import Feed, Learner, Ledger, Method, Task, generator
from . import checkpoint
from .checkpoint import Checkpoint
from .evaluation import accuracy, detection_auc
from .run_dir import RunDirectory

UNRIPE = 0.2
"""Share of a run whose passes do not count in the ledger's running means: the network has not learned enough yet."""


Predicted = tuple[Tensor, Tensor, Tensor]
"""Index, labels and logits of some samples."""
AT_ONCE = 4096


def in_bulk(batches: Iterable[Predicted]) -> Iterator[Predicted]:
    """The same samples, some thousands at a time: to write down a sample costs next to nothing, to begin does not."""
    waiting: list[Predicted] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(index) for index, _, _ in waiting) >= AT_ONCE:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Predicted]) -> Predicted:
    index, labels, logits = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return index, labels, logits


class Observer:
    """Somebody who watches a run, such as a progress bar; this one sees and does nothing."""

    def stage(self, epoch: int, name: str, steps: int) -> None:
        """A stage of an epoch begins and will take this many steps."""

    def advance(self) -> None:
        """One step done."""

    def epoch(self, record: dict[str, Any]) -> None:
        """An epoch is finished, and this is what was recorded."""


class InterruptedRunError(Exception):
    """The run was asked to stop; what was saved can be resumed."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class NotFiniteError(Exception):
    """Training produced a number that is not one."""


@dataclass
class Trainer:
    """One method, its learners and the data, from wherever the run stands to its last epoch.

    `wrong` says for each sample whether its label is really wrong, where that is known: it is used to report
    AUC, never to train.
    """

    method: Method
    learners: list[Learner]
    feed: Feed
    task: Task
    run: RunDirectory
    seed: int
    test: Feed | None = None
    wrong: Tensor | None = None
    observer: Observer = field(default_factory=Observer)
    stop_signal: Callable[[], int | None] = lambda: None

    def __post_init__(self) -> None:
        device = self.task.labels.device
        self.ledgers = [Ledger(len(self.task), device=device) for _ in self.learners]
        for ledger in self.ledgers:
            if "beliefs" in self.method.records:
                ledger.keep_beliefs(self.task.classes)
        self.method.begin(self.task, self.ledgers)
        self.method.to(device)
        self.finished = 0

    def resume(self) -> list[str]:
        """Take up the newest usable checkpoint; gives a warning for each damaged one."""
        found, warnings = checkpoint.load_newest(self.run.checkpoints)
        if found is not None:
            self._restore(found)
        return warnings

    def train(self) -> None:
        """Run all epochs that are left."""
        for epoch in range(self.finished + 1, self.task.epochs + 1):
            started = time.perf_counter()
            train_loss = self.learn(epoch)
            if self.tracks(epoch):
                self.track(epoch)
            record = self._record(epoch, train_loss)
            record["seconds"] = round(time.perf_counter() - started, 3)
            self.finished = epoch
            self.run.append_epoch(record)
            checkpoint.save(self.run.checkpoints, Checkpoint(epoch, self._state()))
            self.observer.epoch(record)

    def learn(self, epoch: int) -> float:
        """One epoch of optimisation steps; gives the mean training loss."""
        rng = generator(self.seed, "epoch", epoch)
        total, samples = None, 0
        for learner in self.learners:
            learner.network.train()
            learner.set_rate(self.method.rate(epoch))
        self.observer.stage(epoch, self.method.phase(epoch), self.feed.steps)
        for batch in self.method.batches(self.feed, epoch, rng):
            loss = self.method.step(self.learners, batch, epoch, rng) * len(batch)
            total, samples = loss if total is None else total + loss, samples + len(batch)
            self._heed_signal()
            self.observer.advance()
        mean = math.nan if total is None else float(total) / samples
        if not math.isfinite(mean):
            raise NotFiniteError(
                f"the training loss of epoch {epoch} is not a finite number; lower the learning rate, "
                "for example with --set learning_rate=0.01"
            )
        return mean

    def tracks(self, epoch: int) -> bool:
        """Whether a tracking pass follows this epoch."""
        return epoch == self.task.epochs or self.method.tracks(epoch)

    def track(self, epoch: int) -> None:
        """Record what the networks make of every sample, and let the method judge by it."""
        self.observer.stage(epoch, "tracking", 0)
        unripe = int(UNRIPE * self.task.epochs)
        first_ripe = epoch > unripe and not any(self.tracks(e) for e in range(unripe + 1, epoch))
        for learner, ledger in zip(self.learners, self.ledgers, strict=True):
            if first_ripe:
                ledger.restart()
            ledger.open_pass()
            rng = generator(self.seed, "tracking", epoch) if self.method.track_augmented else None
            with learner.evaluating():
                for index, labels, logits in in_bulk(self._predictions(learner, rng)):
                    ledger.write(index, labels, logits)
        self.run.append_losses(self.ledgers[0].losses, after=sum(self.tracks(e) for e in range(1, epoch)))
        self.method.epoch_end(self.ledgers, epoch)

    def _predictions(self, learner: Learner, rng: torch.Generator | None) -> Iterator[Predicted]:
        for batch in self.feed.sweep(rng):
            yield batch.index, batch.labels, learner(batch.inputs).float()
            self._heed_signal()

    def _record(self, epoch: int, train_loss: float) -> dict[str, Any]:
        tracked = self.tracks(epoch)
        estimate = self.method.estimate() if tracked else None
        auc = None
        if estimate is not None and self.wrong is not None:
            auc = detection_auc(estimate.probability, self.wrong)
        return {
            "epoch": epoch,
            "phase": self.method.phase(epoch),
            "tracked": tracked,
            "lr": self.learners[0].optimiser.param_groups[0]["lr"],
            "train_loss": train_loss,
            "test_accuracy": None if self.test is None else accuracy(self.learners, self.test),
            "noise_rate": None if estimate is None else estimate.rate,
            "auc": auc,
            "mixture": estimate.parameters if estimate is not None and estimate.parameters else None,
            "degenerate": None if estimate is None else estimate.verdict,
        }

    def _heed_signal(self) -> None:
        signal = self.stop_signal()
        if signal is not None:
            raise InterruptedRunError(signal)

    def _state(self) -> dict[str, Any]:
        return {
            "method": self.method.state_dict(),
            "learners": {
                str(i): {
                    "network": learner.network.state_dict(),
                    "optimiser": checkpoint.optimiser_state(learner.optimiser),
                }
                for i, learner in enumerate(self.learners)
            },
            "ledgers": {str(i): ledger.recorded() | {"passes": ledger.passes} for i, ledger in enumerate(self.ledgers)},
        }

    def _restore(self, found: Checkpoint) -> None:
        self.method.load_state_dict(found.state["method"])
        for i, learner in enumerate(self.learners):
            state = found.state["learners"][str(i)]
            learner.network.load_state_dict(state["network"])
            checkpoint.restore_optimiser(learner.optimiser, state.get("optimiser", {}))
        for i, ledger in enumerate(self.ledgers):
            state = found.state["ledgers"][str(i)]
            for name, values in ledger.recorded().items():
                values.copy_(state[name])
            ledger.passes = state["passes"]
        self.finished = found.epoch
