"""Which features a run trains on and why, and runs on them from training to prediction."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from labelmend.data.readers.arrays import from_arrays
from labelmend.errors import InputError, InterruptedRunError
from labelmend.nets.pretrained import OWN_SIZE
from labelmend.run.evidence import read_suspects
from labelmend.run.model import load_model
from labelmend.training import features
from labelmend.training.config import TrainConfig
from labelmend.training.features import plan_features
from labelmend.training.prepare import prepare
from labelmend.training.session import train


@pytest.fixture
def photos(tmp_path):
    """Pictures of three colours with some noise, 40 x 48 px, a few with the wrong label."""
    rng, root = np.random.default_rng(0), tmp_path / "photos"
    for number in range(36):
        colour = np.eye(3)[number % 3] * 150
        given = (number + (number < 3)) % 3
        path = root / "rgb"[given] / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((colour + rng.integers(0, 100, (40, 48, 3))).astype(np.uint8)).save(path)
    return root


def in_memory(count=40, channels=3, side=32):
    return from_arrays("pictures", np.zeros((count, channels, side, side), np.uint8), np.arange(count) % 2)


def plan(samples, *, on_gpu=False, **options):
    return plan_features(samples, TrainConfig("pictures", "run", **options), on_gpu=on_gpu)


def test_a_small_set_of_photographs_gets_pretrained_features_and_is_told_so():
    found = plan(in_memory())
    assert found.backbone.name == "efficientnet-lite0"
    assert found.reason.startswith("pretrained features of efficientnet-lite0: 40 pictures")
    assert "--features none" in found.reason


@pytest.mark.parametrize(
    ("samples", "options", "reason"),
    [
        (in_memory(side=28), {}, "too small"),
        (in_memory(channels=1, side=48), {}, "too small"),
        (in_memory(count=5001, side=32), {}, "5,001 pictures take long on a CPU"),
        (in_memory(), {"net": "convnet"}, "--net was given"),
        (in_memory(), {"method": "ce"}, "--method was given"),
        (in_memory(), {"init": "weights.safetensors"}, "--init was given"),
        (in_memory(), {"size": 32}, "--size was given"),
        (in_memory(), {"features": "none"}, "none, as asked"),
        (from_arrays("rows", np.zeros((40, 7)), np.arange(40) % 2), {}, "rows of features already"),
    ],
)
def test_other_sets_are_trained_on_as_they_are(samples, options, reason):
    found = plan(samples, **options)
    assert found.backbone is None
    assert reason in found.reason


def test_more_pictures_are_few_where_there_is_a_gpu_or_a_limit():
    many = in_memory(count=5001)
    assert plan(many, on_gpu=True).backbone is not None
    assert plan(many, limit=100).backbone is not None


def test_without_the_extra_the_run_says_what_it_would_bring(monkeypatch):
    monkeypatch.setattr(features, "photos_installed", lambda: False)
    found = plan(in_memory())
    assert found.backbone is None
    assert "pip install 'labelmend[photos]'" in found.reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"features": "efficientnet-lite9"}, "did you mean 'efficientnet-lite0'"),
        ({"features": "rows.pkl"}, "pickle by its name"),
        ({"features": "rows.csv"}, "taken from .npz or .safetensors"),
        ({"features": "rows.npz", "unfreeze": True}, "nothing to train"),
        ({"features": "none", "unfreeze": True}, "needs a backbone"),
        ({"net": "convnet", "unfreeze": True}, "--net cannot be given"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(options, reason):
    with pytest.raises(InputError, match=reason):
        plan(in_memory(), **options)


def test_features_of_pictures_are_not_computed_of_rows():
    with pytest.raises(InputError, match="computed of pictures, but rows holds features"):
        plan(from_arrays("rows", np.zeros((40, 7)), np.arange(40) % 2), features="efficientnet-lite0")


def trained(tmp_path, photos, name="run", *, signals=None, **options):
    given = {"epochs": 2, "threads": 1} | options
    return train(prepare(TrainConfig(str(photos), str(tmp_path / name), **given)), signals=signals)[0]


def test_a_run_on_features_says_so_shows_pictures_and_predicts_from_pictures(tmp_path, photos):
    run = trained(tmp_path, photos, epochs=10)
    described, model = run.read(), load_model(run)
    assert described["chosen"]["features"]["encoder"] == "efficientnet-lite0"
    assert described["chosen"]["features"]["mirrored"] is True
    assert described["data"]["shape"] == [1280]
    assert "pretrained features" in described["chosen"]["reasons"]["features"]
    pictures = read_suspects(run)[0]["picture"]
    assert Image.open(io.BytesIO(pictures[0].as_py())).size == (48, 40)
    files = sorted(photos.rglob("*.png"))
    from_files = model.predict_proba(photos)
    assert from_files.shape == (36, 3)
    right = ["rgb"[int(path.stem) % 3] for path in files]
    assert np.mean([found == truth for found, truth in zip(model.predict(photos), right, strict=True)]) > 0.8
    opened = [Image.open(path) for path in files]
    np.testing.assert_allclose(model.predict_proba(opened), from_files, atol=1e-5)
    rows = model.inputs(photos)
    np.testing.assert_allclose(model.predict_proba(rows), from_files, atol=1e-6)


def test_a_run_on_features_is_resumed_to_the_same_bytes(tmp_path, photos, after, tiny_timm):
    whole = trained(tmp_path, photos, "whole", features="timm:tiny")
    with pytest.raises(InterruptedRunError):
        trained(tmp_path, photos, "cut", features="timm:tiny", signals=after(2))
    resumed = trained(tmp_path, photos, "cut", features="timm:tiny", resume=True)
    assert resumed.labels_csv.read_bytes() == whole.labels_csv.read_bytes()
    assert resumed.model.read_bytes() == whole.model.read_bytes()
    with pytest.raises(InputError, match="made with features"):
        trained(tmp_path, photos, "cut", features="none", resume=True)


def test_other_weights_under_the_same_name_do_not_predict(tmp_path, photos, tiny_timm):
    run = trained(tmp_path, photos, features="timm:tiny")
    described = json.loads(run.model_json.read_bytes())
    described["features"]["identity"] = "timm:tiny@0000"
    run.model_json.write_text(json.dumps(described))
    with pytest.raises(InputError, match="with other weights"):
        load_model(run).predict_proba(photos)


def test_a_model_of_the_users_features_takes_such_rows_and_no_pictures(tmp_path, photos, labelmend):
    rows = np.random.default_rng(0).normal(size=(36, 4)) + np.repeat(np.arange(3), 12)[:, None] * 3
    np.savez(tmp_path / "rows.npz", features=rows)
    run = trained(tmp_path, photos, features=str(tmp_path / "rows.npz"))
    assert run.read()["chosen"]["features"]["encoder"] == "rows.npz"
    beside = ["rival", "like_given", "like_rival", "near_given", "near_rival"]
    assert read_suspects(run)[0].column_names == ["id", "picture", *beside]
    model = load_model(run)
    assert model.predict_proba(rows).shape == (36, 3)
    assert labelmend("predict", run.path, tmp_path / "rows.npz", "--out", tmp_path / "p.csv").returncode == 0
    for source in (photos, next(photos.rglob("*.png"))):
        refused = labelmend("predict", run.path, source)
        assert refused.returncode == 2
        assert "the features that it was trained on, from a file" in refused.stderr


def test_features_of_another_length_end_the_command_with_a_sentence(tmp_path, photos, labelmend):
    np.savez(tmp_path / "rows.npz", features=np.zeros((35, 4)))
    refused = labelmend("train", photos, "--out", tmp_path / "run", "--features", tmp_path / "rows.npz")
    assert refused.returncode == 2
    assert "35 rows of features for 36 samples" in refused.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["ce", "m-dyr-h", "co-teaching", "d2l", "dividemix"])
def test_a_backbone_is_fine_tuned_by_any_method_and_saved_whole(method, tmp_path, photos, tiny_timm):
    run = trained(tmp_path, photos, method=method, features="timm:tiny", unfreeze=True)
    described, model = run.read(), load_model(run)
    assert described["chosen"]["net"] == "backbone:timm:tiny"
    assert described["data"]["shape"] == [3, 32, 32]
    assert model.normalise.mean.tolist() == [127.5] * 3
    body = model.networks[0].body.state_dict()["0.weight"]
    assert not torch.equal(body, tiny_timm.body().state_dict()["0.weight"])
    assert model.predict_proba(photos).shape == (36, 3)


def test_the_backbone_without_download_is_fine_tuned_and_needs_its_package_no_more(tmp_path, photos, monkeypatch):
    run = trained(tmp_path, photos, unfreeze=True, epochs=1, limit=8)
    assert run.read()["chosen"]["net"] == "backbone:efficientnet-lite0"
    monkeypatch.setattr("labelmend.nets.pretrained.OWN_PACKAGE", "no_such_package")
    assert load_model(run).predict_proba(photos).shape == (36, 3)


def test_reading_keeps_a_size_that_was_asked_for():
    found, options = plan(in_memory(), features="efficientnet-lite0", size=64), features.SourceOptions(size=64)
    assert found.reading(options) == options
    assert found.reading(replace(options, size=None)).size == OWN_SIZE
