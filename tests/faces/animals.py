"""Labels of 120 animals, a tenth of them wrong, and probabilities that know better."""

import numpy as np

ANIMALS = ("cat", "dog", "owl")
N = 120
TRUTH = np.arange(N) % 3
GIVEN = np.where(np.arange(N) % 10 == 0, (TRUTH + 1) % 3, TRUTH)
NAMES = np.array(ANIMALS)[GIVEN]
PROBABILITIES = (0.9 * np.eye(3)[TRUTH] + 0.1 / 3).astype(np.float32)
WRONG = np.flatnonzero(GIVEN != TRUTH).tolist()
