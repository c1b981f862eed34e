"""Learning to reweight (Ren et al. 2018, "Learning to Reweight Examples for Robust Deep Learning").

Every step weights its batch: a sample counts as much as a step on it would lower the loss on trusted samples. Needs
these, and about four times the time of plain training. Nothing is remembered between steps.

Departures. The trusted samples are in the training set too and weighted like all others; in the paper they are apart.
Passes for the weights take BatchNorm's statistics from their batch, as the paper's do, and leave the running ones to
the pass that learns. Processes that train together weight their shares of a batch by themselves. Weight decay is the
run's own and is not weighted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Step, Task
from ..detect.ledger import Ledger
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, require_trusted, setting


@dataclass(frozen=True)
class ReweightOptions(TrackedOptions):
    """What can be changed with `--set`."""

    trusted_batch: int = setting(100, "trusted samples that the weights of one batch are judged by", least=2)


def losses_aside(network: nn.Module, batch: Batch) -> Tensor:
    """Each sample's cross-entropy with gradients, from a pass whose BatchNorm statistics are not kept."""
    spare = {name: buffer.clone() for name, buffer in network.named_buffers()}
    logits: Tensor = functional_call(network, spare, (batch.inputs,))
    return F.cross_entropy(logits if logits.dtype == torch.float64 else logits.float(), batch.labels, reduction="none")


def helpfulness(network: nn.Module, batch: Batch, trusted: Batch) -> Tensor:
    """How fast the trusted loss falls in each sample's weight: -d/d eps_i of it after a virtual step, at eps = 0.

    By the chain rule (Section 3.3), the product of the trusted loss's gradient and the sample's, for a step of rate 1:
    another rate scales all of them. The gradient of sum_i eps_i loss_i is linear in eps, so that its product with the
    trusted gradient is differentiated by eps, and no gradient of a single sample is ever written out.
    """
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    toward = torch.autograd.grad(losses_aside(network, trusted).mean(), weights, materialize_grads=True)
    losses = losses_aside(network, batch)
    epsilon = torch.zeros_like(losses, requires_grad=True)
    step = torch.autograd.grad(epsilon @ losses, weights, create_graph=True, materialize_grads=True)
    return torch.autograd.grad(step, epsilon, toward)[0]


def shares(helpfulness: Tensor) -> Tensor:
    """What is above zero, scaled to sum to 1; all zero if nothing is (Algorithm 1)."""
    helpful = helpfulness.clamp_min(0)
    total = helpful.sum()
    return helpful / torch.where(total > 0, total, 1.0)


@method("l2rw", needs_trusted=True)
class Reweight(PublishedMethod):
    """Samples weighted by whether they help on trusted ones, batch by batch (Ren et al. 2018).

    The schedule is that of ResNet-32 on CIFAR: 80,000 steps on 100 samples, with drops after 40,000 and 60,000.
    """

    published = (160, (80, 120))
    options: ReweightOptions

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        super().begin(task, ledgers)
        self.trusted = require_trusted(task, 2)

    def phase(self, epoch: int) -> str:
        return "reweighting"

    def objective(self, step: Step) -> Tensor:
        """The losses of a batch, weighted by a trusted batch before the pass that learns."""
        trusted = self.trusted.draw(self.options.trusted_batch, step.rng)
        shown = [replace(batch, inputs=step.learner.shown(batch.inputs)) for batch in (step.batch, trusted)]
        weights = shares(helpfulness(step.learner.network, *shown))
        return weights.float() @ F.cross_entropy(step.logits, step.batch.labels, reduction="none")
