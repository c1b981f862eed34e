import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from labelmend.core import generator
from labelmend.nets import FAST_NETS, build_net
from labelmend.nets.fast import QUICK_BIAS, Centred, WhitenedPatches


def images(*shape, count=64):
    """Smooth pictures: neighbouring pixels are alike, as in photographs."""
    noise = torch.randn(count, shape[0], shape[1] + 4, shape[2] + 4, generator=generator(0, "images"))
    return F.avg_pool2d(noise, 5, stride=1)


@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 28, 28), (3, 32, 32), (3, 64, 77), (1, 16, 21), (3, 200, 128)])
@pytest.mark.parametrize("name", FAST_NETS[:2])
def test_a_fast_net_takes_images_of_any_shape_from_16_px(name, shape):
    net = build_net(name, shape, 7, rng=generator(0, "n"))
    net.fit_inputs(images(*shape))
    assert net(images(*shape, count=3)).shape == (3, 7)


def test_the_first_layer_makes_patches_uncorrelated_and_of_unit_variance():
    pictures = images(3, 32, 32, count=500)
    stem = WhitenedPatches(3, 32)
    stem.fit(pictures)
    responses = stem(pictures)[:, :12, ::2, ::2].permute(0, 2, 3, 1).reshape(-1, 12).detach()
    second_moments = responses.T @ responses / len(responses)
    strong = torch.diagonal(second_moments) > 0.5
    assert strong.sum() >= 3
    assert torch.allclose(second_moments, torch.diag(torch.diagonal(second_moments)), atol=0.05)
    assert torch.allclose(stem(pictures)[:, :12], -stem(pictures)[:, 12:], atol=1e-4)


def test_the_first_layer_is_not_learned_and_needs_no_gradients_of_its_maps():
    net = build_net("fast-16", (3, 32, 32), 4, rng=generator(0, "n"))
    assert not list(net.stem.parameters())
    assert "stem.filters" in net.state_dict()
    assert not net.stem(torch.zeros(2, 3, 32, 32)).requires_grad


def test_convolutions_start_by_passing_their_input_on():
    net = build_net("fast-16", (3, 32, 32), 4, rng=generator(0, "n"))
    maps = torch.randn(2, 16, 8, 8, generator=generator(0, "maps"))
    assert torch.allclose(net.blocks[1].conv1(maps)[:, :16], maps, atol=1e-6)


def test_the_cost_hardly_depends_on_the_size_of_the_images():
    positions = [WhitenedPatches(3, side)(torch.zeros(1, 3, side, side)).shape[2] for side in (32, 64, 128, 256)]
    assert positions == [31, 31, 31, 31]


def test_a_bias_of_a_normalisation_learns_quickly():
    layer = Centred(2)
    layer(torch.randn(8, 2, 4, 4, generator=generator(0, "x"))).sum().backward()
    assert torch.allclose(layer.bias.grad.flatten(), torch.full((2,), QUICK_BIAS * 8 * 16.0))


def test_a_wider_net_has_more_weights():
    sizes = [
        sum(p.numel() for p in build_net(name, (3, 32, 32), 10, rng=generator(0, "n")).parameters())
        for name in FAST_NETS
    ]
    assert sizes == sorted(sizes)
    assert 70_000 < sizes[0] < 80_000
