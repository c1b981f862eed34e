import pytest
import torch
from PIL import Image

from labelmend.core import Draws, generator
from labelmend.data.feed import MemoryFeed
from labelmend.data.sources import SourceOptions, open_source
from labelmend.data.stream import StreamedImages, StreamFeed, random_box
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


def feeds(folder, workers=0):
    streamed = open_source(folder, SourceOptions(memory=0.0))[0]
    held = open_source(folder)[0]
    assert isinstance(streamed.inputs, StreamedImages)
    normalise = streamed.inputs.normaliser()
    labels = held.labels.observed
    return (
        StreamFeed(streamed.inputs, labels, normalise=normalise, batch_size=16, augment=True, workers=workers),
        MemoryFeed(held.inputs, labels, normalise=normalise, batch_size=16),
    )


def test_a_streamed_sweep_gives_what_memory_gives(folder):
    for streamed, held in zip(*(feed.sweep() for feed in feeds(folder)), strict=True):
        assert torch.equal(streamed.index, held.index)
        assert torch.equal(streamed.inputs, held.inputs)
        assert torch.equal(streamed.labels, held.labels)


def test_the_number_of_workers_does_not_change_a_batch(folder):
    epochs = [list(feeds(folder, workers)[0].shuffled(Draws(0, 1), views=2)) for workers in (0, 2)]
    for alone, helped in zip(*epochs, strict=True):
        assert torch.equal(alone.index, helped.index)
        assert torch.equal(alone.inputs, helped.inputs)
        assert torch.equal(alone.second, helped.second)
    assert not torch.equal(epochs[0][0].inputs, epochs[0][0].second)


def test_an_epoch_holds_every_sample_once(folder):
    index = torch.cat([batch.index for batch in feeds(folder)[0].shuffled(Draws(0, 1))])
    assert index.sort().values.tolist() == list(range(40))


def test_a_random_box_lies_inside_the_image():
    for i in range(200):
        left, top, right, bottom = random_box(30, 50, torch.rand(5, generator=generator(i)).tolist())
        assert 0 <= left < right <= 30
        assert 0 <= top < bottom <= 50


def test_a_streamed_run_keeps_the_contract_and_its_losses_are_those_of_memory(folder, tmp_path):
    options = {"source": folder, "noise": "symmetric:0.4", "epochs": 1, "threads": 1, "workers": 0}
    losses = {}
    for name, memory in (("stream", 0.0), ("held", 2.0)):
        settings = {"augment": "none"}
        config = TrainConfig(out=str(tmp_path / name), memory=memory, settings=settings, **options)
        run, _ = train(prepare(config))
        losses[name] = [line.split(b",")[5] for line in run.labels_csv.read_bytes().splitlines()[1:]]
    difference = [abs(float(a) - float(b)) for a, b in zip(losses["stream"], losses["held"], strict=True)]
    assert max(difference) < 1e-5
