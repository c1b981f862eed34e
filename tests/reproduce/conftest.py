"""A scale on which every experiment takes a moment."""

from dataclasses import replace

import pytest

from labelmend.reproduce.protocol import SMALL, Scale


def tiny_scale() -> Scale:
    """The small scale on 120 digits and two epochs, whatever data set is played."""
    stage = replace(SMALL.stages["cifar10"], limit=120, epochs={"plain": 2, "mixup": 2})
    return Scale("small", dict.fromkeys(SMALL.stages, stage), SMALL.ablated)


@pytest.fixture
def tiny(monkeypatch):
    """The command's small scale is the tiny one."""
    scale = tiny_scale()
    monkeypatch.setattr("labelmend.reproduce.protocol.SCALES", {"small": scale})
    return scale
