import sys
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from labelmend.core import generator, head_of
from labelmend.errors import InputError
from labelmend.nets import NETS, build_net, start_from


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [16, 17, 28, 64])
@pytest.mark.parametrize("name", ["preact-resnet18", "slim-resnet", "convnet"])
def test_a_net_takes_images_of_any_size_from_16_px(name, side, channels):
    net = build_net(name, (channels, side, side), 7, rng=generator(0, "n")).eval()
    with torch.no_grad():
        assert net(torch.zeros(2, channels, side, side)).shape == (2, 7)


def test_the_papers_net_has_the_weights_of_preact_resnet18():
    net = build_net("preact-resnet18", (3, 32, 32), 10, rng=generator(0, "n"))
    assert sum(p.numel() for p in net.parameters()) == 11_172_170
    assert net.head.in_features == 512


def test_initialisation_follows_the_generator_and_leaves_the_global_one_alone():
    before = torch.get_rng_state()
    first, second, other = (build_net("mlp", (4,), 3, rng=generator(s, "n")).head.weight for s in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NETS)
def test_scores_are_a_linear_function_of_the_features(name):
    shape = (6,) if name in ("mlp", "linear", "trees") else (1, 32, 32)
    net = build_net(name, shape, 5, rng=generator(0, "n")).eval()
    x = torch.randn(3, *shape, generator=generator(0, "x"))
    with torch.no_grad():
        assert torch.allclose(net.head(net.features(x)), net(x))


def test_the_linear_net_scales_wide_rows_to_one_norm_and_leaves_narrow_ones():
    for columns, expected in ((8, 8.0), (32, 32.0), (1280, 32.0)):
        net = build_net("linear", (columns,), 3, rng=generator(0, "n"))
        features = net.features(torch.ones(1, columns))
        assert float(features.square().sum()) == pytest.approx(expected, rel=1e-5)
        assert head_of(net).in_features == columns


def test_images_that_are_too_small_are_refused_with_the_remedy():
    with pytest.raises(InputError, match="use convnet"):
        build_net("preact-resnet18", (1, 8, 8), 10, rng=generator(0, "n"))


def test_the_imagenet_network_has_the_published_number_of_weights():
    net = build_net("resnet50", (3, 64, 64), 1000, rng=generator(0, "n"))
    assert sum(p.numel() for p in net.parameters()) == 25_557_032


def test_given_weights_are_taken_where_they_fit_and_the_head_stays_new(tmp_path):
    donor = build_net("slim-resnet", (3, 16, 16), 7, rng=generator(0, "n"))
    save_file(donor.state_dict(), tmp_path / "donor.safetensors")
    net = build_net("slim-resnet", (3, 16, 16), 5, rng=generator(1, "n"))
    assert start_from(net, str(tmp_path / "donor.safetensors")) == ["head.weight", "head.bias"]
    assert torch.equal(net.stem.weight, donor.stem.weight)


def test_weights_of_another_network_or_a_damaged_file_are_refused(tmp_path):
    net = build_net("mlp", (3,), 2, rng=generator(0, "n"))
    save_file({"foreign": torch.zeros(1)}, tmp_path / "foreign.safetensors")
    (tmp_path / "damaged.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(InputError, match="no weights that fit"):
        start_from(net, str(tmp_path / "foreign.safetensors"))
    with pytest.raises(InputError, match="cannot be read"):
        start_from(net, str(tmp_path / "damaged.safetensors"))


def test_a_timm_name_without_timm_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match="pip install timm"):
        build_net("timm:resnet10t", (3, 32, 32), 2, rng=generator(0, "n"))


def test_a_timm_name_builds_timms_network(monkeypatch):
    built = {}
    fake = SimpleNamespace(create_model=lambda name, **options: built.update(name=name, **options) or nn.Linear(1, 1))
    monkeypatch.setitem(sys.modules, "timm", fake)
    build_net("timm:resnet10t", (3, 32, 32), 2, rng=generator(0, "n"))
    assert built == {"name": "resnet10t", "in_chans": 3, "num_classes": 2}
