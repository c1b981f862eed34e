"""The last word on every label: a mixture fitted to what the whole run saw, not only its last epoch."""

from dataclasses import dataclass

from torch import Tensor

from ..core import Ledger
from ..mixture import noise_model

KIND = "log-gmm"
PASSES = 5


@dataclass(frozen=True)
class Judgement:
    """P(wrong) of each sample, the estimated noise rate, and the mixture or the reason why there is none."""

    probability: Tensor
    rate: float
    mixture: dict[str, float] | None
    verdict: str | None


def judge(ledgers: list[Ledger], *, epochs: int) -> Judgement:
    """Judge all labels by their mean loss over the last tracking passes, so that one unlucky epoch does not decide.

    At most five passes and a tenth of the run count. Paper: has no such step. The mixture is Gaussian on logarithms,
    because the moments of a beta component are pulled by its tail, which makes it call too few labels wrong.
    """
    passes = max(1, min(PASSES, epochs // 10))
    losses = sum(ledger.history(passes).double().mean(dim=0) for ledger in ledgers) / len(ledgers)
    assert isinstance(losses, Tensor)
    model = noise_model(KIND, iterations="converged").fit(losses)
    probability = model.posterior(losses)
    fitted = None if model.degenerate else model.described()
    return Judgement(probability, float(probability.mean()), fitted, model.verdict)
