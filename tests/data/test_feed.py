import torch

from labelmend.core import Draws, generator
from labelmend.data.feed import SampleFeed, batch_bounds
from labelmend.data.kinds import Augment
from labelmend.data.kinds.features import Features
from labelmend.data.kinds.images import Images


def images(count=33, channels=3, side=16):
    return torch.randint(0, 256, (count, channels, side, side), dtype=torch.uint8, generator=generator(0, "images"))


def feed(**changes):
    x = images()
    options = {"normalise": Images().normaliser(x), "batch_size": 16} | changes
    return SampleFeed(x, torch.arange(33) % 5, **options)


def test_an_epoch_holds_every_sample_once_in_an_order_of_its_own():
    orders = [torch.cat([b.index for b in feed().shuffled(Draws(seed, 1))]) for seed in (0, 1)]
    for order in orders:
        assert order.sort().values.tolist() == list(range(33))
    assert orders[0].tolist() != orders[1].tolist()


def test_no_batch_has_a_single_sample():
    for samples in range(2, 200):
        bounds = batch_bounds(samples, 16)
        assert [b - a for a, b in bounds if b - a < 2] == []
        assert bounds[0][0] == 0
        assert bounds[-1][1] == samples


def test_a_sweep_is_in_order_and_normalised_to_zero_mean_and_unit_variance():
    batches = list(feed().sweep())
    assert torch.cat([b.index for b in batches]).tolist() == list(range(33))
    seen = torch.cat([b.inputs for b in batches])
    assert torch.allclose(seen.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(seen.std(dim=(0, 2, 3), correction=0), torch.ones(3), atol=1e-5)


def test_a_constant_feature_is_centred_and_not_divided_by_zero():
    rows = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    assert torch.equal(Features().normaliser(rows)(rows), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))


def test_two_views_of_a_batch_differ():
    batch = next(iter(feed(augment=Augment(2, flip=True)).shuffled(Draws(0, 1), views=2)))
    assert batch.second is not None
    assert not torch.equal(batch.inputs, batch.second)


def test_augmentation_equals_a_loop_of_pad_crop_and_flip():
    x = images(count=8)
    augmented = Augment(2, flip=True)(x, generator(5, "a"))
    rng = generator(5, "a")
    top, left = (torch.randint(5, (8, 1), generator=rng) for _ in range(2))
    mirrored = torch.rand(8, 1, generator=rng) < 0.5
    for i in range(8):
        padded = torch.nn.functional.pad(x[i], [2] * 4)
        crop = padded[:, top[i, 0] : top[i, 0] + 16, left[i, 0] : left[i, 0] + 16]
        assert torch.equal(augmented[i], crop.flip(2) if mirrored[i, 0] else crop)


def test_no_padding_and_no_flip_leave_images_alone():
    assert torch.equal(Augment()(images(), generator(0, "a")), images())
