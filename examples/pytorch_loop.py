"""A training loop of your own

Five lines watch the loop and correct its labels while it trains. Half of the labels of the digits are drawn anew; the
same loop without those lines memorises many of them.
"""

from collections.abc import Iterator

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import labelmend as lm

EPOCHS, TRAINED, CLASSES = 15, 1437, 10


def network() -> nn.Module:
    """Two convolutions and two linear layers."""
    torch.manual_seed(0)
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def batches() -> Iterator[Tensor]:
    """Positions of samples, 64 at a time."""
    yield from torch.randperm(TRAINED).split(64)


def train(x: Tensor, y: Tensor, tracker: lm.Tracker | None) -> nn.Module:
    """The same loop, watched or not."""
    model = network()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for index in batches():
            if tracker is None:
                loss = cross_entropy(model(x[index]), y[index])
            else:
                inputs, mixing = tracker.mix(x[index], index)
                loss = tracker.loss(model(inputs), mixing)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if tracker is not None:
            tracker.end_epoch()
    return model.eval()


digits = load_digits()
order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
images, truth = (
    torch.tensor(digits.images, dtype=torch.float32)[order, None] / 8 - 1,
    torch.tensor(digits.target)[order],
)
x, test_x, test_y = images[:TRAINED], images[TRAINED:], truth[TRAINED:]
torch.manual_seed(0)
y = torch.where(torch.rand(TRAINED) < 0.5, torch.randint(CLASSES, (TRAINED,)), truth[:TRAINED])

tracker = lm.Tracker(y, classes=CLASSES, epochs=EPOCHS)
for name, model in (("plain", train(x, y, None)), ("watched", train(x, y, tracker))):
    accuracy = (model(test_x).argmax(dim=1) == test_y).float().mean().item()
    print(f"{name}: {accuracy:.1%} of the test set right")
table = tracker.table()
print(table.summary())
flagged, wrong = torch.from_numpy(table.flagged), y != truth[:TRAINED]
print(f"{(flagged & wrong).sum()} of {wrong.sum()} wrong labels are among {flagged.sum()} that are flagged")
