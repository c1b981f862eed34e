"""Training in several processes: who they are, and the few things they tell each other."""

from datetime import timedelta

import torch
from torch import Tensor, distributed, nn


class Processes:
    """The processes that train together; alone, everything here is free.

    Started by torchrun, all of them see the same data in the same order. Each learns from its share of every batch and
    tracks its share of the samples; what they find is put together so that all of them go on from the same bits.
    """

    def __init__(self) -> None:
        together = distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if together else 0
        self.count = distributed.get_world_size() if together else 1
        # Flags travel over the CPU, so that a GPU is never waited for.
        self.talk = distributed.new_group(backend="gloo", timeout=timedelta(minutes=30)) if self.count > 1 else None

    @property
    def main(self) -> bool:
        """Whether this process writes the run's files."""
        return self.rank == 0

    def agree(self, request: int) -> int:
        """The greatest request of any process, so that all of them do the same; 0 is none."""
        if self.count == 1:
            return request
        heard = torch.tensor(request)
        distributed.all_reduce(heard, distributed.ReduceOp.MAX, group=self.talk)
        return int(heard)

    def gather(self, value: Tensor) -> Tensor:
        """One value of each process, in their order."""
        values = [torch.zeros_like(value) for _ in range(self.count)]
        if self.count > 1:
            distributed.all_gather(values, value)
        return torch.stack(values) if self.count > 1 else value[None]

    def total(self, value: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.count > 1:
            value = value.clone()
            distributed.all_reduce(value)
        return value

    def owned(self, mine: Tensor) -> Tensor:
        """The rows of this process, and for the first process also those of none, so that each row has one owner."""
        unowned = self.total(mine.int()) == 0
        return mine | unowned if self.main else mine

    def combine(self, values: Tensor, mine: Tensor) -> None:
        """Fill in, from the process that has it, every row that is not mine."""
        if self.count > 1:
            values.masked_fill_(~mine.view(-1, *[1] * (values.dim() - 1)), 0)
            distributed.all_reduce(values)

    def share_buffers(self, network: nn.Module) -> None:
        """Statistics of the first process for all, because each has updated its own since they were last shared."""
        if self.count > 1:
            for buffer in network.buffers():
                distributed.broadcast(buffer, src=0)
