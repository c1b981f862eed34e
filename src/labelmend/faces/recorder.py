"""Predictions that somebody's training loop makes anyway, on their way into a ledger."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, distributed

from ..core import to_device
from ..detect.ledger import Ledger
from ..errors import InputError
from ..training.processes import Processes

AT_ONCE = 4096
"""Predictions that wait until they are written together, because each write has a fixed cost."""
LARGEST = 1e4
"""Logits that are infinite, as half precision makes them, are taken for this large."""


class Recorder:
    """Writes predictions to a ledger in bulk, and checks and shares them once a pass.

    A pass is an epoch of training or a sweep over the samples. Until it is closed, nothing waits for a GPU: the range
    of indices is checked when the pass is closed, and earlier only on a CPU. `repeats` allows a sample to occur more
    than once in a pass.

    A network that has come to believe the given labels tells no more of them. So records count by a (1 - a)^2, where a
    is the share of labels, in the pass so far, that the network predicts: little at the start, when it has learned
    nothing, and ever less as it memorises. The number of epochs need not be known.
    """

    def __init__(self, labels: Tensor, ledger: Ledger, *, repeats: bool) -> None:
        self.labels, self.ledger, self.repeats = labels, ledger, repeats
        self.seen = torch.zeros(len(labels), dtype=torch.int16, device=labels.device)
        self.outside = torch.zeros((), dtype=torch.int64, device=labels.device)
        self.agreed = torch.zeros((), device=labels.device)
        self.total = 0
        self.waiting: list[tuple[Tensor, Tensor]] = []
        self.rows = 0
        self.opened = False

    def to(self, device: torch.device) -> None:
        """Keep everything on this device."""
        self.flush()
        kept = self.labels, self.seen, self.outside, self.agreed
        self.labels, self.seen, self.outside, self.agreed = (values.to(device) for values in kept)
        self.ledger.to(device)

    def add(self, index: Tensor, logits: Tensor) -> None:
        """Take the predictions [n, C] of the samples at these positions, [n]."""
        # A copy, because the loop may reuse the memory of its predictions before they are written.
        self.waiting.append((index, logits.detach().to(torch.float32, copy=True)))
        self.rows += len(index)
        if self.rows >= AT_ONCE:
            self.flush()

    @torch.inference_mode(False)  # what is kept outlives the mode in which it was observed
    def flush(self) -> None:
        """Write what waits to the ledger."""
        if not self.waiting:
            return
        indices, predictions = zip(*self.waiting, strict=True)
        index, logits = torch.cat(indices), torch.cat(predictions)
        self.waiting, self.rows = [], 0
        inside = within(index, len(self.labels))
        self.outside += (inside != index).sum()
        self.seen.index_add_(0, inside, torch.ones_like(inside, dtype=self.seen.dtype))
        self._open()
        labels, logits = self.labels[inside].long(), logits.nan_to_num_(0.0, LARGEST, -LARGEST)
        self.ledger.write(inside, labels, logits, weight=self._weight(labels, logits))

    def _weight(self, labels: Tensor, logits: Tensor) -> Tensor:
        self.agreed += (logits.argmax(dim=1) == labels).sum()
        self.total += len(labels)
        agreement = (self.agreed + 1) / (self.total + 2)
        return agreement * (1 - agreement) ** 2

    def close(self) -> bool:
        """End the pass, and tell whether anything was recorded in it by any process."""
        self.flush()
        problem = self._problem()
        failed = self.processes.agree(int(problem is not None))
        recorded = bool(self.processes.agree(int(self.opened)))
        if not failed and recorded:
            self._open()
            self._share()
        self.seen.zero_()
        self.outside.zero_()
        self.agreed.zero_()
        self.total = 0
        self.opened = False
        if failed:
            raise InputError(problem or "another process was given indices that cannot be used; its message says why")
        return recorded

    @cached_property
    def processes(self) -> Processes:
        """Those that train together; the group is made when the first pass is closed, in all of them."""
        return Processes()

    def _open(self) -> None:
        if not self.opened:
            self.ledger.open_pass()
            self.opened = True

    def _problem(self) -> str | None:
        if int(self.outside):
            return f"{int(self.outside):,} indices of this epoch are {_beyond(len(self.labels))}"
        most = int(self.seen.max())
        if most > 1 and not self.repeats:
            return (
                f"sample {int(self.seen.argmax())} was recorded {most} times in this epoch, and so were "
                f"{int((self.seen > 1).sum()) - 1:,} others more than once; give each batch once, to loss or to "
                "observe, with positions in the whole data set, or allow sampling with replacement by repeats=True"
            )
        return None

    def _share(self) -> None:
        """Give every process what all of them recorded; of a sample that several have, the first one's counts."""
        if self.processes.count == 1:
            return
        rank, count = self.processes.rank, self.processes.count
        owner = torch.where(self.seen > 0, rank, count).int()
        distributed.all_reduce(owner, distributed.ReduceOp.MIN)
        # What nobody recorded is the same everywhere, and is taken from the first process.
        owned = (owner == rank) | (owner == count) if rank == 0 else owner == rank
        for values in self.ledger.recorded().values():
            self.processes.combine(values, owned)


def as_index(index: Any, device: torch.device) -> Tensor:
    """Positions in the data set as whole numbers on the device, [n]."""
    if index is None:
        raise InputError(
            "the index of the batch is missing: let the data set give the position of each sample beside it, and pass "
            "those of the batch"
        )
    try:
        values = index if isinstance(index, Tensor) else torch.as_tensor(index)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"an index must be one whole number a sample, [n], not a {type(index).__name__}") from None
    if values.dim() != 1 or values.is_floating_point() or values.dtype == torch.bool:
        raise InputError(
            f"an index must be one whole number a sample, [n], not {values.dtype} of shape {tuple(values.shape)}; the "
            "order of arguments is loss(logits, index) and observe(index, logits)"
        )
    return (values if values.device == device else to_device(values, device)).long()


def within(index: Tensor, samples: int) -> Tensor:
    """Positions that are in range, [n]; on a CPU, others are an error, and elsewhere the nearest one takes their place.

    To read indices on a GPU would wait for it, and to use one that is out of range would end the process.
    """
    if index.device.type != "cpu":
        return index.clamp(0, samples - 1)
    if len(index):
        low, high = (int(end) for end in index.aminmax())
        if low < 0 or high >= samples:
            raise InputError(f"index {low if low < 0 else high} is {_beyond(samples)}")
    return index


def rank() -> int:
    """Which of the processes that train together this is; 0 if it is alone."""
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def _beyond(samples: int) -> str:
    return f"not among the positions of {samples:,} labels, 0 to {samples - 1}: index the data set that has the labels"
