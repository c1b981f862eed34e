"""What training is measured by. With noise injection, the only place that reads the truth."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..core import Feed, Learner, Trusted
from ..data import Samples
from ..learner import VIEWS, predicted
from ..nets import FAST_NETS
from .processes import Processes


def most_views(data: Samples, net: str, *, published: bool) -> int:
    """How many views of an image are predicted in the end: several by fast networks, where it may be mirrored.

    One in a run with the rates that a paper published, which is tested as that paper tests.
    """
    return VIEWS[-1] if data.kind.flips and net in FAST_NETS and not published else 1


def accuracy(
    learners: list[Learner], feed: Feed, processes: Processes, *, heed: Callable[[], None], views: int = 1
) -> float:
    """Share of samples whose label the learners' mean prediction gets right; `heed` is called between batches."""
    right = torch.zeros((), dtype=torch.long, device=next(learners[0].network.parameters()).device)
    for learner in learners:
        processes.share_buffers(learner.evaluated)
    for batch in feed.sweep():
        guess = ensemble(learners, batch.inputs, views=views).argmax(dim=1)
        right += (guess == batch.labels).sum()
        heed()
    return int(processes.total(right)) / len(feed)


def ensemble(learners: list[Learner], inputs: Tensor, *, views: int = 1) -> Tensor:
    """Mean predicted probabilities of the learners, in evaluation mode, over so many views of each image."""
    probabilities = []
    for learner in learners:
        with learner.evaluating():
            probabilities.append(predicted(learner, inputs, views=views))
    return torch.stack(probabilities).mean(dim=0)


def detection_auc(probability: Tensor, wrong: Tensor, *, known: Trusted | None = None) -> float | None:
    """ROC-AUC of P(wrong) for really wrong labels, without those that the run was told of; None where all are alike."""
    if known is not None:
        asked = torch.ones_like(wrong, dtype=torch.bool)
        asked[known.index.to(asked.device)] = False
        probability, wrong = probability.to(asked.device)[asked], wrong[asked]
    if not 0 < int(wrong.sum()) < len(wrong):
        return None
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(wrong.cpu().numpy(), probability.detach().cpu().numpy()))
