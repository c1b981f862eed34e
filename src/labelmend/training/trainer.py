"""The training loop: learn, track, judge, evaluate, record, save; once for every method."""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..core import Draws, Feed, Learner, Method, Task, generator
from ..detect.ledger import Ledger
from ..errors import InterruptedRunError
from ..run.directory import RunDirectory
from . import checkpoint
from .checkpoint import Checkpoint
from .evaluation import accuracy, detection_auc
from .finite import NotFiniteError, check_losses, check_weights
from .observer import Observer
from .optimiser import SMALL_SCALE
from .processes import Processes

Predicted = tuple[Tensor, ...]
"""Index, labels, logits and, where they are kept, features of some samples."""
AT_ONCE = 4096
SAVE = 1
"""A request to save. It has the number of SIGHUP, which is never a request to stop; any such request outranks it."""


def in_bulk(batches: Iterable[Predicted]) -> Iterator[Predicted]:
    """The same samples in batches of some thousands, because each write to the ledger has a fixed cost."""
    waiting: list[Predicted] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(index) for index, *_ in waiting) >= AT_ONCE:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Predicted]) -> Predicted:
    return tuple(torch.cat(parts) for parts in zip(*batches, strict=True))


@dataclass
class Position:
    """How far a run has come: epochs finished, and of the next one the steps done and the sum of their losses."""

    epoch: int
    step: int
    loss: Tensor


@dataclass
class Trainer:
    """One method, its learners and the data, from wherever the run stands to its last epoch.

    `wrong` says for each sample whether its label is really wrong, where that is known: it is used to report
    AUC, never to train. `rates` gives the learning rate at each share of the run as a multiple of the set one; without
    it the method gives that of each epoch. `small_until` is the share of the run, or of a round of the method, in which
    networks are shown smaller images. The last epoch is tested and tracked as models
    predict, by so many `views` of each image. `save_every` are seconds between two checkpoints inside an epoch; there
    is always one after it.
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
    processes: Processes = field(default_factory=Processes)
    rates: Callable[[float], float] | None = None
    small_until: float = 0.0
    views: int = 1
    save_every: float = math.inf
    sample_id: Callable[[int], str] = str

    def __post_init__(self) -> None:
        device = self.task.labels.device
        judged = self.learners[:1] if self.method.cross_fitted else self.learners
        self.ledgers = [Ledger(len(self.task), device=device) for _ in judged]
        for learner, ledger in zip(judged, self.ledgers, strict=True):
            ledger.keep_mean_probs(self.task.classes, newest=self.method.newest_share)
            if "mean_log_probs" in self.method.records:
                ledger.keep_mean_log_probs(self.task.classes)
            if "features" in self.method.records:
                ledger.keep_features(learner.head.in_features)
        self.method.begin(self.task, self.ledgers)
        self.method.to(device)
        self.visited = torch.zeros(len(self.task), dtype=torch.bool, device=device)
        self.position = self._after(0)
        self.saved_at = time.monotonic()

    def resume(self) -> list[str]:
        """Go on from the newest usable checkpoint; gives a warning for each damaged one."""
        found, warnings = checkpoint.load_newest(self.run.checkpoints)
        if found is not None:
            self._restore(found.state)
        return warnings

    def train(self) -> None:
        """Run all remaining epochs; an interrupted epoch is saved as far as it came."""
        for epoch in range(self.position.epoch + 1, self.task.epochs + 1):
            started = time.perf_counter()
            try:
                train_loss = self.learn(epoch)
                with self._undone_if_interrupted() if self.tracks(epoch) else nullcontext():
                    if self.tracks(epoch):
                        self.track(epoch)
                    record = self._record(epoch, train_loss)
            except InterruptedRunError:
                self.save()
                raise
            record["seconds"] = round(time.perf_counter() - started, 3)
            self.run.append_epoch(record)
            self.position = self._after(epoch)
            self.save()
            self.observer.epoch(record)

    def learn(self, epoch: int) -> float:
        """The remaining optimisation steps of an epoch; gives the mean training loss."""
        draws, at = Draws(self.seed, epoch, self.processes.rank), self.position
        for learner in self.learners:
            learner.network.train()
            learner.set_rate(self._rate(epoch, at.step))
            learner.scale = self.scale(epoch)
        if at.step == 0:
            self.method.epoch_begin(self.learners, epoch)
        self.observer.stage(epoch, self.method.phase(epoch), self.feed.steps, at.step)
        for batch in self.method.batches(self.feed, draws, start=at.step):
            if self.method.tracks_before(at.step, self.feed.steps):
                with self._undone_if_interrupted():
                    self.track(epoch, at.step)
            if self.rates is not None:
                for learner in self.learners:
                    learner.set_rate(self._rate(epoch, at.step))
            loss = self.method.step(self.learners, batch, epoch, draws.step(at.step)) * len(batch)
            at.loss, at.step = at.loss + loss, at.step + 1
            if self.method.per_sample:
                self.visited[batch.index] = True
            if self._heed_signal() == SAVE:
                self.save()
            self.observer.advance()
        self._share_memory()
        mean = float(self.processes.total(at.loss)) / len(self.feed)
        if not math.isfinite(mean):
            raise NotFiniteError(f"the training loss of epoch {epoch} is not a finite number")
        for learner in self.learners:
            check_weights(learner.network, epoch)
        return mean

    def _rate(self, epoch: int, step: int) -> float:
        if self.rates is None:
            return self.method.rate(epoch)
        return self.rates(self.method.schedule_progress(epoch, (step + 0.5) / self.feed.steps, self.task.epochs))

    def scale(self, epoch: int) -> float:
        """The share of their height and width that images are shown at: epochs that end early enough are small.

        The last one of a round never is, since its networks predict images as they are.
        """
        progress = self.method.schedule_progress(epoch, 1.0, self.task.epochs)
        return SMALL_SCALE if progress <= self.small_until and progress < 1 else 1.0

    def tracks(self, epoch: int) -> bool:
        """Whether a tracking pass follows this epoch."""
        return epoch == self.task.epochs or self.method.tracks(epoch)

    def track(self, epoch: int, step: int = 0) -> None:
        """Record the predictions of the networks for every sample, and let the method judge the labels by them.

        Inside an epoch, before `step`, the method judges again, and no losses are written to the run directory.
        """
        self.observer.stage(epoch, "tracking", 0)
        for number, ledger in enumerate(self.ledgers):
            ledger.open_pass((epoch - 1 if step else epoch) / self.task.epochs)
            inside = (step,) if step else ()
            rng = generator(self.seed, "tracking", epoch, *inside) if self.method.track_augmented else None
            for judge in range(len(self.learners)) if self.method.cross_fitted else [number]:
                learner, rows = self.learners[judge], self.method.judged_by(judge, epoch)
                mine = torch.zeros(len(self.task), dtype=torch.bool, device=ledger.losses.device)
                self.processes.share_buffers(learner.evaluated)
                with learner.evaluating():
                    kept = ledger.features is not None
                    last = epoch == self.task.epochs and step == 0
                    for index, *seen in in_bulk(self._predictions(learner, rng, rows, features=kept, last=last)):
                        ledger.write(index, *seen)
                        mine[index] = True
                owned = self.processes.owned(mine)
                for values in ledger.recorded().values():
                    self.processes.combine(values, owned)
                self.method.after_sweep(ledger, judge, epoch)
            check_losses(ledger.losses, epoch, self.sample_id)
        if step == 0:
            self.run.append_losses(self.ledgers[0].losses, after=sum(self.tracks(e) for e in range(1, epoch)))
        self.method.after_tracking(self.ledgers, epoch)

    @contextmanager
    def _undone_if_interrupted(self) -> Iterator[None]:
        """Undo what an interrupted tracking pass changed."""
        before = copy.deepcopy(self._tracked())
        try:
            yield
        except InterruptedRunError:
            self._restore_tracked(before)
            raise

    def save(self) -> None:
        """Write a checkpoint of the current state, unless the run is kept in memory."""
        self._share_memory()
        state = Checkpoint(self.position.epoch, self.position.step, self._state())
        if self.processes.main and self.run.writes:
            checkpoint.save(self.run.checkpoints, state)
        self.saved_at = time.monotonic()

    def _share_memory(self) -> None:
        """Give every process what the steps of all processes recorded of their samples."""
        if self.method.per_sample:
            owned = self.processes.owned(self.visited)
            for name in self.method.per_sample:
                self.processes.combine(self.method.get_buffer(name), owned)
        self.visited.zero_()

    def _predictions(
        self, learner: Learner, rng: torch.Generator | None, rows: Tensor | None, *, features: bool, last: bool
    ) -> Iterator[Predicted]:
        views, no_features = self.views if last and not features else 1, list[Tensor]()
        for batch in self.feed.sweep(rng, rows=rows):
            with learner.features() if features else nullcontext(no_features) as seen:
                logits = learner.averaged(batch.inputs, views=views) if views > 1 else learner(batch.inputs).float()
            yield batch.index, batch.labels, logits, *seen
            self._heed_alone()

    def _record(self, epoch: int, train_loss: float) -> dict[str, Any]:
        tracked = self.tracks(epoch)
        estimate = self.method.estimate() if tracked else None
        auc = None
        if estimate is not None and self.wrong is not None:
            auc = detection_auc(estimate.probability, self.wrong, known=self.task.trusted)
        views = self.views if epoch == self.task.epochs else 1
        tested = (
            None
            if self.test is None
            else accuracy(self.learners, self.test, self.processes, heed=self._heed_alone, views=views)
        )
        self._heed_signal()
        return {
            "epoch": epoch,
            "phase": self.method.phase(epoch),
            "tracked": tracked,
            "lr": self.learners[0].optimiser.param_groups[0]["lr"],
            "train_loss": train_loss,
            "test_accuracy": tested,
            "noise_rate": None if estimate is None else estimate.rate,
            "auc": auc,
            "mixture": estimate.parameters if estimate is not None and estimate.parameters else None,
            "decided_by": None if estimate is None else estimate.decided_by,
            "degenerate": None if estimate is None else estimate.degenerate,
        }

    def _after(self, epoch: int) -> Position:
        return Position(epoch, 0, torch.zeros((), device=self.task.labels.device))

    def _heed_signal(self) -> int:
        """Stop if a signal asks for it, or tell that it is time to save; all processes decide alike."""
        due = self.processes.main and time.monotonic() - self.saved_at >= self.save_every
        request = self.processes.agree(self.stop_signal() or (SAVE if due else 0))
        if request not in (0, SAVE):
            raise InterruptedRunError(request)
        return request

    def _heed_alone(self) -> None:
        """Heed signals inside a sweep only if there is one process: sweeps of others may have fewer batches."""
        if self.processes.count == 1:
            self._heed_signal()

    def _state(self) -> dict[str, Any]:
        at = self.position
        return {
            "position": {"epoch": at.epoch, "step": at.step, "loss": self.processes.gather(at.loss)},
            "learners": {str(i): checkpoint.learner_state(learner) for i, learner in enumerate(self.learners)},
            **self._tracked(),
        }

    def _tracked(self) -> dict[str, Any]:
        """The part of the state that a tracking pass changes."""
        ledgers = {str(i): ledger.state_dict() for i, ledger in enumerate(self.ledgers)}
        return {"method": self.method.state_dict(), "ledgers": ledgers}

    def _restore(self, state: dict[str, Any]) -> None:
        at, count = state["position"], self.processes.count
        losses = at["loss"]
        own = losses[self.processes.rank] if len(losses) == count else losses.sum() / count
        self.position = Position(at["epoch"], at["step"], own.to(self.task.labels.device))
        for i, learner in enumerate(self.learners):
            checkpoint.restore_learner(learner, state["learners"][str(i)])
        self._restore_tracked(state)

    def _restore_tracked(self, state: dict[str, Any]) -> None:
        self.method.load_state_dict(state["method"])
        for i, ledger in enumerate(self.ledgers):
            ledger.load_state_dict(state["ledgers"][str(i)])
