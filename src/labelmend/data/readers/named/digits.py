"""The digits that scikit-learn carries, the one set that needs no files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ....core import generator
from ...kinds.images import Images
from ...samples import Samples

TEST_SHARE = 0.2


def digits(root: Path | None = None) -> Samples:
    """scikit-learn's 1,797 handwritten digits of 8x8 pixels; a fixed fifth is the test split."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    inputs = torch.from_numpy((loaded.images * (255 / 16)).round().astype(np.uint8))[:, None]
    ids = [str(row) for row in range(len(inputs))]
    whole = Samples.read(
        "digits", Images(flips=False), inputs, loaded.target.tolist(), ids=ids, locations=[f"digit {id}" for id in ids]
    )
    order = torch.randperm(len(whole), generator=generator(0, "digits test split"))
    held = round(TEST_SHARE * len(whole))
    test, train = (whole.take(rows.sort().values.tolist()) for rows in (order[:held], order[held:]))
    return replace(train, test=test)
