"""The truth of each sample, averaged over several readings of its predictions by how well each explains the labels.

One reading is a sharpness of the truth (see `sharpness`) and a start for the share of labels that ambiguity made. On
tables, the sharpness of easy samples and that of the likelihood often differ, a few hundred labels cannot tell which
is right, and taking either for certain promises more than holds. Class habits are fitted to the samples that the
network is surest of: a habit holds for them too, and mistakes of the network are rare there.

Every reading is somewhat wrong, and with enough labels the likelihood picks one all the same. So at most `COUNTED`
labels count. Labels that people gave to pictures are mostly ambiguous, which the likelihood hardly sees: for them the
judge takes the one reading of `sharpness`.
"""

import numpy as np

from .predictions import Floats, Ints, Predictions, softmax
from .sharpness import Sharpness
from .two_ways import fit_two_ways, posterior, sharpened

SUREST, FEWEST_SURE = 0.25, 50
"""Share of the samples, and the least number of them, that class habits are fitted to."""
AMBIGUITIES = (0.5, 0.0)
"""Shares of labels that ambiguity is taken to have made, before labels say otherwise."""
PRIORS = (0.45, 0.45, 0.1)
"""Weights of the estimate, the middle and the likelihood's exponent before labels say more: the last overshoots."""
COUNTED = 1_000
LEAST_WEIGHT = 1e-3


def averaged_readings(predictions: Predictions, own: Floats, rows: Ints, sharpness: Sharpness) -> tuple[Floats, float]:
    """P(the truth is k | prediction and given label) of the kept classes, [n, k], and the mean share of ambiguity.

    `own` is what was predicted for each given label, [n]; parameters are fitted to `rows`.
    """
    some, own_some = predictions.take(rows), own[rows]
    surest = np.argsort(-softmax(some.log_probs).max(axis=1), kind="stable")
    easy = np.sort(surest[: max(FEWEST_SURE, int(SUREST * len(some)))])
    readings, likelihoods, priors = [], [], []
    for exponents, prior in zip(_exponents(sharpness), PRIORS, strict=True):
        truth = sharpened(some, exponents)
        for start in AMBIGUITIES:
            habits, ambiguity, _ = fit_two_ways(truth[easy], own_some[easy], some.take(easy), ambiguity=start)
            total = ((1 - ambiguity) * truth * habits.of(some)).sum(axis=1) + ambiguity * own_some
            readings.append((exponents, habits, ambiguity))
            likelihoods.append(float(np.log(total).mean()))
            priors.append(prior)
    weights = np.exp((np.array(likelihoods) - max(likelihoods)) * min(len(some), COUNTED)) * priors
    weights = np.where(weights < LEAST_WEIGHT * weights.sum(), 0.0, weights)
    weights /= weights.sum()
    after = np.zeros(predictions.log_probs.shape)
    for weight, (exponents, habits, ambiguity) in zip(weights, readings, strict=True):
        if weight:
            after += weight * posterior(sharpened(predictions, exponents), own, predictions, habits, ambiguity)
    return after, float(weights @ [ambiguity for _, _, ambiguity in readings])


def _exponents(sharpness: Sharpness) -> list[Floats]:
    """The estimate, what the likelihood says, and the middle between them."""
    likely = np.full_like(sharpness.estimate, sharpness.likely)
    return [sharpness.estimate, np.sqrt(sharpness.estimate * likely), likely]
