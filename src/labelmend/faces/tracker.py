"""What is wrong with the labels, told by your own PyTorch loop; and a loss that is corrected by it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ..core import generator
from ..detect.dynamics import judge_ledgers
from ..detect.judge import FOUND
from ..detect.judged import as_array, class_positions
from ..detect.ledger import Ledger
from ..detect.summary import summarised
from ..detect.table import LabelTable
from ..errors import InputError, lookup, refuse_unrepeated
from ..parts.losses import soft_cross_entropy
from ..parts.targets import moved_toward
from .mixing import Mixing, mixed
from .recorder import Recorder, as_index, rank, within

WARM_UP = 5
"""Epochs of plain cross-entropy where the number of epochs is not told."""
WARM_UP_SHARE = 0.25
"""Share of the epochs with plain cross-entropy where their number is told."""
JUDGED_AGAIN = 1.1
"""Labels are judged again for the loss when there are so many times as many epochs: in the first ten, each time."""
ALPHA, UNMIXED = 1.0, 0.5
"""Mixup draws shares from Beta(alpha, alpha); this share of each batch stays as it is, and is recorded."""


class Tracker:
    """Watches a training loop of your own: which labels are wrong, and a loss that learns less from those.

    Give it the labels once and, with each batch, the positions of its samples in the data set:

    - `loss(logits, index)` is the loss of a batch. In the warm-up it is cross-entropy with the given labels; then each
      label is moved toward what the network took the sample for, as far as it is probably wrong (Eq. 10).
    - `mix(inputs, index)` gives mixed inputs and a mixing that goes to `loss` in place of the index: mixup keeps a
      network from memorising wrong labels. Half of each batch stays as it is, so that there are predictions to record.
    - `observe(index, logits)` only watches, for a loop that keeps its own loss.
    - `sweep(model, batches)` records what the model predicts for all samples in evaluation mode.
    - `end_epoch()` belongs after each epoch, in every process; `table()` gives the label table at any time after it.
    - `noisy_probability` and `noise_rate` are what is known of the labels so far, for a log.
    - `state_dict()` and `load_state_dict()` are for checkpoints: tensors and plain values.

    `labels` are positions in the classes or class names, [n], as array, tensor, list or Series. `classes` is how many
    classes there are. The warm-up is `warm_up` epochs; by default a quarter of the `epochs`, if you tell how many, and
    else 5. A network that learns in two epochs what can be learned, as in fine-tuning, needs no more than 1 or 2.
    `guess` is what a wrong label is moved toward: the class that the sample was taken for most ("hard") or the mean
    prediction ("soft"). `ids` name the rows of the table. `repeats=True` allows samples to occur more than once in an
    epoch, as in sampling with replacement. `seed` is that of the mixing.

    Batches may be of any size, samples may be missing from an epoch, and gradients may be accumulated over batches.
    Logits are [n, C] in any precision, on any device: nothing waits for a GPU before `end_epoch`. Where processes train
    together, each gives the indices of its own batches, and `end_epoch` puts together what all of them recorded.

    It keeps `bytes_per_sample` bytes a sample, which are 50 and 4 for each class, and up to 4,096 predictions.

    >>> import labelmend
    >>> tracker = labelmend.Tracker(torch.arange(60) % 3, classes=3)
    >>> logits = torch.zeros(20, 3, requires_grad=True)
    >>> tracker.loss(logits, torch.arange(20))
    tensor(1.0986, grad_fn=<MeanBackward0>)
    >>> tracker.bytes_per_sample
    62
    """

    def __init__(
        self,
        labels: Any,
        classes: int,
        *,
        epochs: int | None = None,
        warm_up: int | None = None,
        guess: Literal["hard", "soft"] = "hard",
        class_names: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        repeats: bool = False,
        seed: int = 0,
    ) -> None:
        for name, value, least in (("classes", classes, 2), ("epochs", epochs, 1), ("warm_up", warm_up, 0)):
            if value is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        self.class_names, positions = _given(labels, classes, class_names)
        self.classes, self.epochs, self.seed = classes, epochs, seed
        self.warm_up = _warm_up(epochs) if warm_up is None else warm_up
        self.guess = lookup("guess", guess, {"hard": self._hard, "soft": self._soft})
        self.ids = _ids(ids, len(positions))
        self.epoch = self.step = self.judged = 0
        self.stale = True
        ledger = Ledger(len(positions))
        ledger.keep_weights()
        ledger.keep_mean_probs(classes)
        self.recorder = Recorder(torch.from_numpy(positions).int(), ledger, repeats=repeats)
        self.wrong = torch.zeros(len(positions))

    def __len__(self) -> int:
        return len(self.recorder.labels)

    @property
    def ledger(self) -> Ledger:
        """What was recorded of each sample."""
        return self.recorder.ledger

    @property
    def bytes_per_sample(self) -> int:
        """Bytes that are kept for each sample, on the device of the model."""
        kept = *self.ledger.recorded().values(), self.recorder.labels, self.recorder.seen, self.wrong
        return sum(values[0].nbytes for values in kept)

    @property
    def noisy_probability(self) -> Tensor:
        """P(wrong) of each label when it was last judged, [n]: what `loss` corrects by. 0 where nothing was recorded.

        Labels are judged again after each of the first ten epochs, and then when there are a tenth more.
        """
        self._judge()
        return self.wrong

    @property
    def noise_rate(self) -> float:
        """The mean of `noisy_probability`."""
        return float(self.noisy_probability.mean())

    def observe(self, index: Any, logits: Tensor) -> None:
        """Record the predictions [n, C] of the samples at these positions, [n]; nothing is computed from them now."""
        self._check(logits)
        self.recorder.add(self._rows(index, logits), logits)

    def mix(
        self, inputs: Tensor, index: Any, *, alpha: float = ALPHA, unmixed: float = UNMIXED
    ) -> tuple[Tensor, Mixing]:
        """Inputs [n, ...] mixed with one another, and the mixing for `loss` (Eqs. 11-12).

        Shares are drawn from Beta(alpha, alpha). The share `unmixed` of the batch, those samples that were recorded
        least, is left as it is, and what is predicted for it is recorded; with 0, predictions come from `sweep` alone.
        """
        rows = as_index(index, inputs.device)
        rng = generator(self.seed, "mix", self.epoch, self.step, rank())
        self.step += 1
        counts = self.ledger.counts
        # On another device than the inputs' they would have to be waited for; then chance alone says which stay.
        counts = counts[within(rows, len(self))] if counts.device == rows.device else torch.zeros_like(rows)
        return mixed(inputs, rows, counts, alpha=alpha, unmixed=unmixed, rng=rng)

    def loss(self, logits: Tensor, index: Any, *, reduction: Literal["mean", "none"] = "mean") -> Tensor:
        """The loss to learn from, with gradients: a scalar, or [n] with the reduction "none".

        `logits` [n, C] are those of the samples at the positions `index`, [n]; or of mixed inputs, and `index` is what
        `mix` gave. They are recorded.
        """
        self._check(logits)
        if not isinstance(index, Mixing):
            rows = self._rows(index, logits)
            targets = self.targets(rows)
            self.recorder.add(rows, logits)
        else:
            mixing = index.to(logits.device)
            rows = self._rows(mixing.index, logits)
            targets = mixing.mix.targets(self.targets(rows))
            if len(mixing.unmixed):
                self.recorder.add(rows[mixing.unmixed], logits.detach()[mixing.unmixed])
        losses = soft_cross_entropy(logits.float(), targets)
        return losses.mean() if reduction == "mean" else losses

    def targets(self, index: Tensor) -> Tensor:
        """What is learned of the samples at these positions in this epoch, [n, C]: labels, corrected after the warm-up.

        They are on the device of the predictions that were given last.
        """
        index = within(as_index(index, self.recorder.labels.device), len(self))
        labels = self._one_hot(self.recorder.labels[index])
        if self.epoch < self.warm_up:
            return labels
        return moved_toward(labels, self.guess(index), self.noisy_probability[index])

    def sweep(self, model: nn.Module, batches: Iterable[tuple[Tensor, Any]]) -> None:
        """Record what the model predicts in evaluation mode for batches of inputs and positions, as a pass of its own.

        Several processes may share the samples among them; each must call it.
        """
        self.stale |= self.recorder.close()
        network = model.module if isinstance(model, DistributedDataParallel) else model
        device = next((weights.device for weights in network.parameters()), torch.device("cpu"))
        training = [part for part in network.modules() if part.training]
        network.eval()
        try:
            with torch.no_grad():
                for inputs, index in batches:
                    predicted = network(inputs.to(device))
                    self.observe(index, getattr(predicted, "logits", predicted))
        finally:
            for part in training:
                part.training = True
        self.stale |= self.recorder.close()

    def end_epoch(self) -> None:
        """After each epoch: put together what all processes recorded, check the indices, and begin the next epoch."""
        self.stale |= self.recorder.close()
        self.epoch += 1
        if self.epoch > self.warm_up and not self.ledger.passes:
            raise InputError(
                f"nothing was recorded in {self.epoch} epochs: give predictions of unmixed inputs to observe or loss, "
                "or call sweep before end_epoch"
            )
        self.step = 0

    def table(self, *, partial: bool = False) -> LabelTable:
        """The label table, by all that was recorded; `partial` leaves out samples that were not recorded."""
        rows = self._recorded()
        if not len(rows):
            raise InputError("nothing has been recorded yet; call end_epoch after each epoch, and then table")
        if len(rows) < len(self) and not partial:
            missing = int((self.ledger.counts == 0).nonzero()[0])
            raise InputError(
                f"{len(self) - len(rows):,} of {len(self):,} samples were not recorded, such as sample {missing}; call "
                "sweep over all samples, or leave them out by partial=True"
            )
        ledger = self.ledger if len(rows) == len(self) else self.ledger.take(rows)
        labels = self.recorder.labels[rows].long()
        judgement = judge_ledgers([ledger], labels, self.classes)
        given, ids = labels.cpu().numpy(), [self.ids[row] for row in rows.tolist()]
        return summarised(LabelTable.of(judgement, given, ids=ids, class_names=self.class_names), judgement)

    def state_dict(self) -> dict[str, Any]:
        """Everything that a checkpoint needs: tensors and plain values, which safe loaders take."""
        self.recorder.flush()
        return {
            "samples": len(self),
            "classes": self.classes,
            "epoch": self.epoch,
            "step": self.step,
            "stale": self.stale,
            "judged": self.judged,
            "ledger": self.ledger.state_dict(),
            "noisy_probability": self.wrong,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        sizes = state["samples"], state["classes"]
        if sizes != (len(self), self.classes):
            raise InputError(
                f"the state is of {sizes[0]:,} samples in {sizes[1]:,} classes, but this tracker has {len(self):,} in "
                f"{self.classes:,}"
            )
        self.epoch, self.step = state["epoch"], state["step"]
        self.stale, self.judged = state["stale"], state["judged"]
        self.ledger.load_state_dict(state["ledger"])
        self.wrong.copy_(state["noisy_probability"])

    def _check(self, logits: Tensor) -> None:
        """Refuse logits of another shape, and follow them to their device."""
        if logits.dim() != 2 or logits.shape[1] != self.classes:
            raise InputError(
                f"logits must be [samples, {self.classes}], not of shape {tuple(logits.shape)}; the order of arguments "
                "is loss(logits, index) and observe(index, logits)"
            )
        if logits.device != self.recorder.labels.device:
            self.recorder.to(logits.device)
            self.wrong = self.wrong.to(logits.device)

    def _rows(self, index: Any, logits: Tensor) -> Tensor:
        rows = as_index(index, logits.device)
        if len(rows) != len(logits):
            raise InputError(f"there are logits of {len(logits):,} samples, but {len(rows):,} indices")
        return rows

    def _recorded(self) -> Tensor:
        """Positions of the samples that were recorded in a pass that counts."""
        return self.ledger.counts.nonzero()[:, 0]

    @torch.inference_mode(False)
    def _judge(self) -> None:
        """P(wrong) anew if something was recorded since; labels of samples that were not recorded count as right."""
        if not self.stale or self.epoch < JUDGED_AGAIN * self.judged:
            return
        rows = self._recorded()
        if len(rows):
            ledger = self.ledger if len(rows) == len(self) else self.ledger.take(rows)
            judged = judge_ledgers([ledger], self.recorder.labels[rows].long(), self.classes, rough=True)
            self.wrong = torch.zeros_like(self.wrong)
            if judged.finding == FOUND:
                self.wrong[rows] = torch.from_numpy(judged.probability).to(self.wrong)
        self.stale, self.judged = False, self.epoch

    def _one_hot(self, positions: Tensor) -> Tensor:
        # torch's own function reads the least position first, for which it waits on some devices.
        zeros = torch.zeros(len(positions), self.classes, device=positions.device)
        return zeros.scatter_(1, positions.long()[:, None], 1.0)

    def _hard(self, index: Tensor) -> Tensor:
        return self._one_hot(self.ledger.guesses[index])

    def _soft(self, index: Tensor) -> Tensor:
        return self._hard(index) if self.ledger.mean_probs is None else self.ledger.mean_probs[index]


def _warm_up(epochs: int | None) -> int:
    return WARM_UP if epochs is None else max(1, round(WARM_UP_SHARE * epochs))


def _given(labels: Any, classes: int, class_names: Sequence[Any] | None) -> tuple[list[str], Any]:
    """The names of the classes, and the labels as positions in them."""
    values = as_array("labels", labels)
    if values.ndim != 1 or not len(values):
        raise InputError(f"labels must be one a sample, [n], not of shape {values.shape}")
    names = None if class_names is None else [str(name) for name in class_names]
    if names is not None and len(names) != classes:
        raise InputError(f"there are {len(names):,} class names for {classes:,} classes")
    positions, known = class_positions("labels", values, names, classes)
    refuse_unrepeated("the data", np.bincount(positions).tolist())
    return known, positions


def _ids(ids: Sequence[Any] | None, samples: int) -> Sequence[str]:
    if ids is None:
        return [str(row) for row in range(samples)]
    if len(ids) != samples:
        raise InputError(f"there are {samples:,} labels, but {len(ids):,} ids")
    return [str(each) for each in ids]
