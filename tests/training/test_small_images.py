"""The first part of a run on smaller images: which epochs, what the networks see, and that a run resumes exactly."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

import labelmend
from labelmend.core import Learner
from labelmend.errors import InputError, InterruptedRunError
from labelmend.learner import shrunk
from labelmend.methods import l2rw
from labelmend.training.config import Optimisation, TrainConfig
from labelmend.training.optimiser import SMALLEST_SIDE, optimiser_settings
from labelmend.training.prepare import prepare
from labelmend.training.session import train
from labelmend.training.trainer import Trainer


class Sides(nn.Module):
    """Remembers the sides of the images that it is shown."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)
        self.seen = []

    def forward(self, x):
        self.seen.append(tuple(x.shape[2:]))
        return self.head(x.mean(dim=(2, 3)))


def test_shrinking_averages_what_lies_together():
    checks = (torch.arange(32)[:, None] + torch.arange(32)) % 2
    small = shrunk(checks[None, None].float(), 0.5)
    assert small.shape == (1, 1, 16, 16)
    assert (small - 0.5).abs().max() < 0.1
    assert torch.allclose(shrunk(torch.full((1, 3, 28, 20), 7.0), 0.75), torch.full((1, 3, 21, 15), 7.0))


def test_a_learner_shows_smaller_images_in_training_and_in_evaluation():
    network = Sides()
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    images = torch.rand(4, 3, 32, 24)
    learner.scale = 0.75
    learner(images)
    with learner.evaluating():
        learner.averaged(images, views=6)
    learner.scale = 1.0
    learner(images)
    assert network.seen == [(24, 18)] * 7 + [(32, 24)]


@pytest.fixture
def pictures(tmp_path):
    """A few pictures of two classes, bright and dark, in a file."""
    y = np.arange(48) % 2
    x = np.random.default_rng(0).integers(0, 120, (48, 24, 24, 3)) + 130 * y[:, None, None, None]
    path = tmp_path / "pictures.npz"
    np.savez(path, x=x.astype(np.uint8), y=y)
    return path


@pytest.fixture
def scales(monkeypatch):
    """The scale of the first network after every epoch that was learned."""
    found, learn = [], Trainer.learn

    def watched(self, epoch):
        loss = learn(self, epoch)
        found.append(self.learners[0].scale)
        return loss

    monkeypatch.setattr(Trainer, "learn", watched)
    return found


@pytest.mark.parametrize(
    ("method", "settings", "expected"),
    [
        ("ce", {}, [0.75, 0.75, 1, 1]),
        ("ce", {"small_until": "0.8"}, [0.75, 0.75, 0.75, 1]),
        ("ce", {"small_until": "0"}, [1, 1, 1, 1]),
        ("ce", {"small_until": "1"}, [0.75, 0.75, 0.75, 1]),
        ("mend", {"folds": "3"}, [0.75, 1, 0.75, 1]),
    ],
)
def test_each_round_begins_small_and_ends_at_full_size(method, settings, expected, pictures, scales):
    options = {"net": "fast-16", "epochs": 4, "threads": 1, "progress": False, "report": False}
    labelmend.train(pictures, method=method, settings=settings, **options)
    assert scales == expected


def test_a_single_epoch_sees_images_as_they_are(pictures, scales):
    labelmend.train(pictures, method="ce", net="fast-16", epochs=1, threads=1, progress=False, report=False)
    assert scales == [1]


@pytest.mark.parametrize("method", ["mend", "m-dyr-h"])
def test_a_run_resumes_exactly_in_its_small_part_and_after_it(method, pictures, tmp_path, after):
    options = {"source": str(pictures), "method": method, "net": "fast-16", "epochs": 4, "threads": 1}
    settings = {"batch_size": "16"}
    whole, _ = train(prepare(TrainConfig(out=str(tmp_path / "whole"), settings=settings, **options)))
    config = TrainConfig(out=str(tmp_path / "cut"), settings=settings, **options)
    for _ in range(2):
        with pytest.raises(InterruptedRunError):
            train(prepare(config), signals=after(7))
        config = dataclasses.replace(config, resume=True)
    run, _ = train(prepare(config))
    for name in ("model.safetensors", "labels.csv", "noise.json"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    assert json.loads(run.run_json.read_text())["chosen"]["optimiser"]["small_until"] == 0.5


def test_weights_of_samples_come_from_images_as_small_as_the_network_learns(pictures, monkeypatch):
    seen, losses_aside = set(), l2rw.losses_aside

    def watched(network, batch):
        seen.add(tuple(batch.inputs.shape[2:]))
        return losses_aside(network, batch)

    monkeypatch.setattr(l2rw, "losses_aside", watched)
    trusted = pictures.with_name("trusted.csv")
    trusted.write_text("\n".join(["id", *map(str, range(8))]))
    options = {"net": "fast-16", "epochs": 2, "threads": 1, "progress": False, "report": False}
    labelmend.train(pictures, method="l2rw", trusted=str(trusted), settings={"trusted_batch": "4"}, **options)
    assert seen == {(18, 18), (24, 24)}


@pytest.mark.parametrize("net", ["linear", "mlp", "timm:vit_tiny_patch16_224"])
def test_networks_that_take_one_size_are_not_shown_smaller_images(net):
    with pytest.raises(InputError, match=f"small_until shows smaller images first, which {net} may not take"):
        optimiser_settings(net, 64, Optimisation(small_until=0.5), side=32)


def test_small_pictures_and_rows_are_never_shown_smaller():
    for side in (None, SMALLEST_SIDE - 1):
        assert optimiser_settings("fast-16", 64, Optimisation(), side=side)[0].small_until == 0
        with pytest.raises(InputError, match="small_until"):
            optimiser_settings("fast-16", 64, Optimisation(small_until=0.5), side=side)
    assert optimiser_settings("fast-16", 64, Optimisation(), side=SMALLEST_SIDE)[0].small_until > 0
    published = Optimisation(rates="published")
    assert optimiser_settings("fast-16", 64, published, side=32)[0].small_until == 0
    assert optimiser_settings("preact-resnet18", 64, Optimisation(), side=32)[0].small_until == 0
