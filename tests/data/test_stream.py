"""Sets too large for memory: the same batches as from memory, decoded on the way."""

import pytest
import torch
from PIL import Image

from labelmend.core import Draws, generator
from labelmend.data.feed import SampleFeed
from labelmend.data.kinds import Augment
from labelmend.data.kinds.images import ImageFiles
from labelmend.data.sources import SourceOptions, open_source
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train


@pytest.fixture
def folder(tmp_path):
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(20):
            pixels = torch.randint(0, 256, (16, 16, 3), dtype=torch.uint8, generator=generator(k, i)).numpy()
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{i}.png")
    return str(tmp_path / "set")


def feeds(folder, *, workers=0, flip=True):
    """The same images streamed and held in memory, augmented alike."""
    streamed, held = (open_source(folder, SourceOptions(memory=memory))[0] for memory in (0.0, 2.0))
    assert isinstance(streamed.inputs, ImageFiles)
    options = {"normalise": held.kind.normaliser(held.inputs), "batch_size": 16, "augment": Augment(2, flip=flip)}
    return [SampleFeed(s.inputs, held.labels.observed, workers=workers, **options) for s in (streamed, held)]


def test_a_streamed_sweep_gives_what_memory_gives(folder):
    for streamed, held in zip(*(feed.sweep() for feed in feeds(folder)), strict=True):
        assert torch.equal(streamed.index, held.index)
        assert torch.equal(streamed.inputs, held.inputs)
        assert torch.equal(streamed.labels, held.labels)


@pytest.mark.parametrize("flip", [False, True])
def test_streamed_training_views_are_augmented_as_the_run_says(folder, flip):
    epochs = [list(feed.shuffled(Draws(0, 1), views=2)) for feed in feeds(folder, flip=flip)]
    for streamed, held in zip(*epochs, strict=True):
        assert torch.equal(streamed.index, held.index)
        assert torch.equal(streamed.inputs, held.inputs)
        assert torch.equal(streamed.second, held.second)
    assert not torch.equal(epochs[0][0].inputs, epochs[0][0].second)


def test_the_number_of_workers_does_not_change_a_batch(folder):
    epochs = [list(feeds(folder, workers=workers)[0].shuffled(Draws(0, 1))) for workers in (0, 2)]
    for alone, helped in zip(*epochs, strict=True):
        assert torch.equal(alone.index, helped.index)
        assert torch.equal(alone.inputs, helped.inputs)


def test_an_epoch_holds_every_sample_once(folder):
    index = torch.cat([batch.index for batch in feeds(folder)[0].shuffled(Draws(0, 1))])
    assert index.sort().values.tolist() == list(range(40))


def test_a_streamed_run_ends_with_the_bytes_of_one_in_memory(folder, tmp_path):
    options = {"source": folder, "noise": "symmetric:0.4", "epochs": 2, "threads": 1, "workers": 0}
    runs = [
        train(prepare(TrainConfig(out=str(tmp_path / name), memory=memory, **options)))[0]
        for name, memory in (("stream", 0.0), ("held", 2.0))
    ]
    assert runs[0].labels_csv.read_bytes() == runs[1].labels_csv.read_bytes()
    assert runs[0].model.read_bytes() == runs[1].model.read_bytes()
