"""The library's own method: dynamic bootstrapping by the judge of predictions, held-out where that can be afforded.

The paper replaces a label by the network's guess as far as a mixture of losses takes it for wrong (Eq. 10). Here the
judge of predictions gives P(wrong), and the guess is what was predicted for the classes other than the given one. Two
ways to come by predictions that did not simply follow the given label:

- *One network* (`folds=1`), for images: its averaged weights, as they were over the passes so far, early enough in a
  short run that it has hardly memorised. Labels are corrected from a share of the run on. Some samples it never learns:
  by these controls it is told how far it memorised the others.
- *Cross-fitting* (7 `folds`, or 3 or 13), for rows of features, which even a linear model memorises: the samples are
  divided in folds. In the first round each network learns from all but a few folds and judges these. In the second
  round the networks start anew on corrected labels; each leaves out one fold, and judges it.

What corrects a label must have seen neither the label nor the fold that the corrected label helps to judge, or else the
labels of that fold come back to their own judge by way of the others: then held-out predictions agree with the given
labels more than they should, and too few look wrong. So the folds that a network of the first round leaves out are a
line of a finite projective plane (of 7 folds, 3): any two folds lie on exactly one line. When network k of the second
round learns a label of fold c, it is corrected by the network that left out the line through k and c. It takes as many
networks as folds, and the design has no third round.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Batch, Draws, Feed, Learner, Mix, NoiseEstimate, Step, Task
from ..detect.controls import judge_with_controls
from ..detect.judge import FOUND, Judgement, judge_predictions
from ..detect.ledger import Ledger
from ..errors import InputError
from ..parts.losses import soft_cross_entropy
from ..parts.mixing import Mixup
from .fold_plan import LINES, left_out, lines_between, stratified_folds
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions, setting

MOST_KEPT = 1 << 27
"""Probabilities of the first round, of 2 bytes each, up to which they are kept for the second."""
SMALLEST = 1e-6
SHORT, NEWEST, MIXED = 25, 1.0, 1.0
"""Epochs in which one network hardly memorises: its newest predictions are the best, and count alone. In a longer run
all passes count alike, and mixup with this alpha keeps it from memorising."""
MEASURED = 4_096
"""Samples by which the training loss is told of networks that learn everything at once."""
SMOOTHING = 0.1
"""Of the targets of one network, which would otherwise grow ever surer of single labels."""


@dataclass(frozen=True)
class MendOptions(TrackedOptions):
    """What can be changed in `mend` with `--set`."""

    track_every: int = setting(2, "with one network: epochs between two tracking passes", least=1)
    folds: int | None = setting(
        None, "networks of which each judges what it did not learn: 1, 3, 7 or 13; none suits the data", least=1
    )
    rounds: int = setting(2, "with folds: 2 to learn corrected labels in a second round, 1 not to", least=1, most=2)
    corrects_from: float = setting(0.4, "with one network: share of the run without correction", least=0, most=1)
    controls: int | None = setting(
        None,
        "with one network: samples that it does not learn, to tell how far it memorised; none suits the data",
        least=0,
    )
    label_smoothing: float | None = setting(
        None, "share of each target spread over all classes; none suits the folds", least=0, most=1
    )
    mixup_alpha: float | None = setting(
        None, "mixup draws shares from Beta(a, a); 0 does not mix, none suits the length of the run", least=0
    )


@method("mend")
class Mend(TrackedMethod):
    """Bootstrapping by the judge, cross-fitted on rows of features: the library's own; the default for most data."""

    judged_by_predictions = True
    options: MendOptions
    fold: Tensor
    wrong: Tensor
    line_wrong: Tensor
    line_probs: Tensor

    def __init__(self, options: MendOptions, epochs: int) -> None:
        super().__init__(Timeline(epochs, (), epochs), track_every=options.track_every)
        self.options = options
        self.epochs = epochs
        self.folds = self.networks = options.folds or 1
        if self.folds not in LINES:
            raise InputError(f"setting folds must be {_either(LINES)}, not {self.folds}")
        self.cross_fitted = self.folds > 1
        self.rounds = min(options.rounds, epochs) if self.cross_fitted else 1
        self.smoothing = (
            (0.0 if self.cross_fitted else SMOOTHING) if options.label_smoothing is None else options.label_smoothing
        )
        long = epochs > SHORT and not self.cross_fitted
        self.newest_share = 0.0 if long else NEWEST
        self.mixup_alpha = (MIXED if long else 0.0) if options.mixup_alpha is None else options.mixup_alpha
        self.reason: str | None = "no tracking pass yet"
        self.fitted: dict[str, float] = {}
        self.ledger: Ledger | None = None
        self.turn = 0

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        """The fold of each sample, P(wrong), and of each line through its fold P(wrong) and predictions, [n, lines].

        Of one network, fold 1 are the controls.
        """
        lines = len(LINES[self.folds]) if self.rounds > 1 else 0
        lines = lines if len(task) * lines * task.classes <= MOST_KEPT else 0
        return {
            "fold": stratified_folds(task.labels.cpu(), self.folds) if self.cross_fitted else self._control_group(task),
            "wrong": torch.zeros(len(task)),
            "line_wrong": torch.zeros(len(task), lines),
            "line_probs": torch.zeros(len(task), lines, task.classes, dtype=torch.float16),
        }

    def _control_group(self, task: Task) -> Tensor:
        """1 for controls and 0 for samples to learn: every class has its share, and trusted labels are learned."""
        group = torch.zeros(len(task), dtype=torch.long)
        if self.options.controls:
            parts = max(2, round(len(task) / self.options.controls))
            group[stratified_folds(task.labels.cpu(), parts) == 0] = 1
        if task.trusted is not None:
            group[task.trusted.index.cpu()] = 0
        return group

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        super().begin(task, ledgers)
        self.ledger = ledgers[0] if ledgers else None
        device = task.labels.device
        self.rare = torch.bincount(task.labels, minlength=task.classes) < self.folds
        self.left_out = [left_out(self.folds, whole_lines=whole).to(device) for whole in (False, True)]
        if not self.cross_fitted:
            self.left_out = [torch.tensor([[False, True]], device=device)]
        self.position, self.between = (table.to(device) for table in lines_between(self.folds))

    def out(self, epoch: int) -> Tensor:
        """Whether each network leaves out each fold in this epoch, [networks, folds]."""
        return self.left_out[self.round(epoch) + 1 < self.rounds]

    def controls(self) -> Tensor | None:
        return None if self.cross_fitted else self.fold.nonzero()[:, 0]

    def round(self, epoch: int) -> int:
        """The round that an epoch belongs to, from 0."""
        return (epoch - 1) * self.rounds // self.epochs

    def starts_round(self, epoch: int) -> bool:
        """Whether this epoch is the first of its round."""
        return epoch == 1 or self.round(epoch) != self.round(epoch - 1)

    def schedule_progress(self, epoch: int, done: float, epochs: int) -> float:
        """Each round goes through the whole schedule."""
        own = [other for other in range(1, self.epochs + 1) if self.round(other) == self.round(epoch)]
        return (epoch - own[0] + done) / len(own)

    def phase(self, epoch: int) -> str:
        if self.cross_fitted:
            return f"round {self.round(epoch) + 1} of {self.rounds}"
        return "corrected labels" if self.corrects(epoch) else "labels as given"

    def corrects(self, epoch: int) -> bool:
        """Whether labels are corrected in this epoch, as far as the judge has found wrong ones."""
        return self.round(epoch) > 0 if self.cross_fitted else epoch > self.options.corrects_from * self.epochs

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Networks start anew in every round, and what they predicted before is not averaged with what follows."""
        if epoch > 1 and self.starts_round(epoch):
            for learner in learners:
                learner.reset()
            if self.ledger is not None:
                self.ledger.restart()

    def judged_by(self, network: int, epoch: int) -> Tensor | None:
        return self.out(epoch)[network, self.fold].nonzero()[:, 0] if self.cross_fitted else None

    def tracks(self, epoch: int) -> bool:
        if self.cross_fitted:
            return epoch == self.epochs or self.starts_round(epoch + 1)
        return super().tracks(epoch) or (not self.corrects(epoch) and self.corrects(epoch + 1))

    def after_sweep(self, ledger: Ledger, network: int, epoch: int) -> None:
        """Where a second round follows, keep what this network says of its line: P(wrong), and what it predicted."""
        rows = self.judged_by(network, epoch)
        if rows is None or ledger.mean_probs is None or self.round(epoch) + 1 == self.rounds or not self.keeps_lines:
            return
        line = self.position[(self.fold[rows] - network) % self.folds]
        self.line_wrong[rows, line], _ = self._judge(rows, ledger.mean_probs[rows])
        self.line_probs[rows, line] = ledger.mean_probs[rows].half()

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Judge every label by what was predicted so far; labels that look clean are not corrected."""
        (ledger,) = ledgers
        if ledger.mean_probs is None:
            self.reason = "there are too many samples and classes to keep predictions"
            return
        wrong, judged = self._judge(torch.arange(len(self.task), device=self.wrong.device), ledger.mean_probs)
        self.wrong.copy_(wrong)
        self.reason, self.fitted = (None if judged.finding == FOUND else judged.reason), judged.fitted

    def _judge(self, rows: Tensor, probabilities: Tensor) -> tuple[Tensor, Judgement]:
        """P(wrong) of these samples, 0 for those that are trusted or if no wrong labels are found.

        And 0 for classes with fewer samples than folds: a network that left some of them out hardly knows the class.
        """
        labels, predictions = self.task.labels[rows].cpu().numpy(), probabilities.cpu().numpy()
        controls = self.controls()
        if controls is not None and len(controls):
            judged = judge_with_controls(labels, predictions, controls.cpu().numpy(), rough=True)
        else:
            judged = judge_predictions(labels, predictions, rough=True, in_sample=not self.cross_fitted)
        wrong = torch.from_numpy(judged.probability).to(self.wrong) * (judged.finding == FOUND)
        wrong[self.rare[self.task.labels[rows]]] = 0.0
        if self.task.trusted is not None:
            wrong[torch.isin(rows, self.task.trusted.index.to(rows.device))] = 0.0
        return wrong, judged

    def estimate(self) -> NoiseEstimate:
        rate = float(self.wrong.mean())
        if self.reason is not None:
            return NoiseEstimate(self.wrong, rate, {}, None, self.reason)
        return NoiseEstimate(self.wrong, rate, self.fitted, "predictions", None)

    @property
    def keeps_lines(self) -> bool:
        """Whether predictions of the first round are kept for the second."""
        return self.line_wrong.shape[1] > 0

    def held_out_guess(self, index: Tensor, network: int) -> tuple[Tensor, Tensor]:
        """P(wrong) [n] and predictions [n, C], by networks that learned neither these nor what `network` judges."""
        line = self.between[network, self.fold[index]]
        return self.line_wrong[index, line], self.line_probs[index, line].float()

    def targets(self, step: Step, network: int) -> Tensor:
        """Labels, moved toward what was predicted beside them as far as they look wrong (Eq. 10), [n, C]."""
        labels, index = step.labels, step.batch.index
        if self.corrects(step.epoch):
            if self.cross_fitted and self.keeps_lines:
                labels = corrected(labels, *self.held_out_guess(index, network))
            elif not self.cross_fitted and self.ledger is not None and self.ledger.mean_probs is not None:
                labels = corrected(labels, beyond_doubt(self.wrong[index]), self.ledger.mean_probs[index])
        return labels * (1 - self.smoothing) + self.smoothing / step.classes

    def batches(self, feed: Feed, draws: Draws, *, start: int = 0) -> Iterator[Batch]:
        for turn, batch in enumerate(super().batches(feed, draws, start=start), start):
            self.turn = turn
            yield batch

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """A step of gradients; or, of networks that learn everything at once, the next one does, from all samples."""
        learner = learners[self.turn % self.folds]
        if learner.fit is None:
            return super().step(learners, batch, epoch, rng)
        network = self.turn % self.folds
        learned = ~self.out(epoch)[network, self.fold[batch.index]]
        step = Step(learner, batch, epoch, rng, self.task.classes)
        inputs, targets = batch.inputs[learned], self.targets(step, network)[learned]
        learner.fit(inputs, targets, rng)
        with torch.no_grad():
            scores = learner.network(inputs[:MEASURED])
        return soft_cross_entropy(scores, targets[:MEASURED]).mean() / self.folds

    def objectives(
        self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator
    ) -> Sequence[Tensor]:
        """Each network's mean loss on the samples that it does not judge."""
        losses = []
        for network, learner in enumerate(learners):
            step = Step(learner, batch, epoch, rng, self.task.classes)
            learned = ~self.out(epoch)[network, self.fold[batch.index]]
            step.mix = self.mixed(step, learned)
            targets = self.targets(step, network)
            targets = targets if step.mix is None else step.mix.targets(targets)
            loss = soft_cross_entropy(step.logits, targets) * learned
            losses.append(loss.sum() / learned.sum().clamp_min(1))
        return losses

    def mixed(self, step: Step, learned: Tensor) -> Mix | None:
        """Mixup (Eqs. 11-12), in which no sample is mixed with one that its network must not learn."""
        if not self.mixup_alpha:
            return None
        mix = Mixup(self.mixup_alpha)(step)
        share = torch.where(learned[mix.partner], mix.input_share, 1.0)
        return Mix(mix.partner, share, share)


def corrected(labels: Tensor, wrong: Tensor, probabilities: Tensor) -> Tensor:
    """Labels, one-hot [n, C], moved by P(wrong) toward the predictions for the other classes (Eq. 10).

    >>> corrected(torch.tensor([[1.0, 0, 0]]), torch.tensor([0.5]), torch.tensor([[0.2, 0.6, 0.2]]))
    tensor([[0.5000, 0.3750, 0.1250]])
    """
    others = probabilities * (1 - labels)
    others = others / others.sum(dim=1, keepdim=True).clamp_min(SMALLEST)
    return torch.lerp(labels, others, wrong[:, None])


def beyond_doubt(wrong: Tensor) -> Tensor:
    """How much likelier wrong than right: one network must not be taught its own doubts, or it comes to believe them.

    >>> beyond_doubt(torch.tensor([0.2, 0.5, 0.9, 1.0]))
    tensor([0.0000, 0.0000, 0.8000, 1.0000])
    """
    return (2 * wrong - 1).clamp_min(0)


def _either(numbers: Iterable[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}"
