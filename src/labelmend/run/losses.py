"""evidence/losses.f16: the losses of every tracking pass, one row of float16 numbers each."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MOST_SAMPLES = 20_000


def append_losses(path: Path, losses: Tensor, *, after: int) -> None:
    """Add the losses of a tracking pass: of every sample, or of 20,000 at equal distances.

    `after` is the number of passes before it; what an interrupted run wrote of this and later passes is cut off first.
    """
    chosen = losses[torch.from_numpy(recorded_samples(len(losses))).to(losses.device)]
    row = chosen.clamp_max(torch.finfo(torch.half).max).half().cpu().numpy()
    with path.open("r+b" if path.exists() else "wb") as file:
        file.seek(after * row.nbytes)
        file.truncate()
        file.write(row.astype("<f2").tobytes())


def read_losses(path: Path, *, samples: int, most_passes: int) -> NDArray[np.float16] | None:
    """The recorded losses, [passes, recorded samples]; None if the run kept none."""
    if not path.is_file() or not most_passes:
        return None
    columns = len(recorded_samples(samples))
    flat = np.fromfile(path, dtype="<f2", count=columns * most_passes)
    passes = len(flat) // columns
    return flat[: passes * columns].reshape(passes, columns)


def recorded_samples(samples: int) -> NDArray[np.int64]:
    """The samples whose losses are recorded, of this many."""
    kept = min(samples, MOST_SAMPLES)
    return np.arange(kept) * samples // kept
