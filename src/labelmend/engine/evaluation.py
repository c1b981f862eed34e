"""What training is measured by. With noise injection, the only place that reads the truth."""

import torch
from torch import Tensor

from ..core import Feed, Learner


def accuracy(learners: list[Learner], feed: Feed) -> float:
    """Share of samples whose label the learners' mean prediction gets right."""
    right = None
    for batch in feed.sweep():
        guess = ensemble(learners, batch.inputs).argmax(dim=1)
        hits = (guess == batch.labels).sum()
        right = hits if right is None else right + hits
    return 0.0 if right is None else int(right) / len(feed)


def ensemble(learners: list[Learner], inputs: Tensor) -> Tensor:
    """Mean predicted probabilities of the learners, in evaluation mode."""
    probabilities = []
    for learner in learners:
        with learner.evaluating():
            probabilities.append(learner(inputs).float().softmax(dim=1))
    return torch.stack(probabilities).mean(dim=0)


def detection_auc(probability: Tensor, wrong: Tensor) -> float | None:
    """ROC-AUC of P(wrong) for really wrong labels; None where there is nothing to tell apart."""
    if not 0 < int(wrong.sum()) < len(wrong):
        return None
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(wrong.cpu().numpy(), probability.detach().cpu().numpy()))
