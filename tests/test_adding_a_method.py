"""The page that explains how to add a method is true."""

import re
from pathlib import Path

import torch
from torch import nn

from labelmend.core import Batch, Learner, Task
from labelmend.methods import elr, registry

PAGE = Path(__file__).parents[1] / "docs/adding-a-method.md"


def test_the_code_on_the_page_runs_and_is_the_method_it_shows(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    shown = {"__name__": "shown"}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)), shown)
    batch = Batch(torch.randn(4, 2, generator=torch.Generator().manual_seed(0)), torch.arange(4) % 3, torch.arange(4))
    losses = []
    for module in (shown, vars(elr)):
        method, network = module["EarlyLearning"](module["ElrOptions"](), 12), nn.Linear(2, 3)
        nn.init.ones_(network.weight)
        nn.init.zeros_(network.bias)
        method.begin(Task(torch.arange(4) % 3, classes=3, epochs=12))
        learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
        losses.append([float(method.step([learner], batch, epoch, torch.Generator())) for epoch in (1, 2, 3)])
    assert losses[0] == losses[1]
    assert registry._registered["elr"].options is shown["ElrOptions"]
