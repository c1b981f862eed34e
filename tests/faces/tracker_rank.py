"""One of two processes that train together; what each knows in the end goes to a file."""

import json
import sys
from pathlib import Path

import torch
from predicted import CLASSES, LABELS, logits_of, rows_of
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import labelmend as lm


def fixed(rank):
    """What is recorded of known predictions that the processes have unequal parts of, some of them both."""
    watcher = lm.Tracker(LABELS, CLASSES)
    for epoch in range(5):
        for part in rows_of(rank, epoch).split(25):
            watcher.observe(part, logits_of(part, epoch))
        watcher.end_epoch()
    return {name: values.tolist() for name, values in watcher.ledger.recorded().items()}


def refused(rank):
    """What each process hears if one of them repeats an index."""
    watcher = lm.Tracker(LABELS, CLASSES)
    for _ in range(2 - rank):
        watcher.observe(torch.tensor([1 + rank]), torch.zeros(1, CLASSES))
    try:
        watcher.end_epoch()
    except lm.InputError as error:
        return str(error)
    return ""


def learned():
    """The table of a loop on digits, half of them each."""
    torch.manual_seed(0)
    x, truth = torch.load(Path(sys.argv[1], "digits.pt"), weights_only=True)
    x, truth = x[:601].float() / 8 - 1, truth[:601]
    y = torch.where(torch.rand(601) < 0.3, (truth + 1) % 10, truth)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)))
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    data = TensorDataset(x, torch.arange(601))
    sampler = DistributedSampler(data)
    batches = DataLoader(data, batch_size=32, sampler=sampler)
    tracker = lm.Tracker(y, classes=10, epochs=5)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for inputs, index in batches:
            loss = tracker.loss(model(inputs), index)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        tracker.end_epoch()
    table = tracker.table()
    return {
        "ids": list(table["id"]),
        "rank": table.rank.tolist(),
        "wrong": (y != truth).tolist(),
        "counts": tracker.ledger.counts.tolist(),
        "noisy_probability": tracker.noisy_probability.tolist(),
    }


def main():
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    found = {"fixed": fixed(rank), "refused": refused(rank), "learned": learned()}
    Path(sys.argv[1], f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
