"""Models for use without labelmend."""

import json
import sys

import numpy as np
import pytest
import torch

from labelmend.core import generator
from labelmend.data.kinds import Normaliser
from labelmend.data.kinds.features import Features
from labelmend.data.kinds.images import Images
from labelmend.faces.onnx import export_onnx
from labelmend.nets import NETS, Forest, build_net
from labelmend.nets.pretrained import OWN_SIZE
from labelmend.run.model import Model, load_model

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def session_of(path):
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("method", ["ce", "co-teaching"])
def test_an_exported_model_gives_the_same_probabilities_for_raw_images(method, tmp_path, train_digits, labelmend):
    run = train_digits(method=method, epochs=1)
    file = tmp_path / "model.onnx"
    exported = labelmend("export", run.path, "--to", "onnx", "--out", file)
    assert exported.returncode == 0, exported.stderr
    model, session = load_model(run), session_of(file)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == model.class_names
    for size in (1, 9):
        images = torch.randint(0, 256, (size, *model.shape), dtype=torch.uint8)
        (found,) = session.run(None, {"inputs": images.numpy()})
        np.testing.assert_allclose(found, model.probabilities(images), atol=1e-4)


def test_a_table_is_exported_with_its_normalisation(tmp_path, labelmend):
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    np.savez(tmp_path / "rows.npz", x=1000 + 50 * rng.normal(size=(60, 5)) + 200 * y[:, None], y=y)
    made = labelmend("train", tmp_path / "rows.npz", "--out", tmp_path / "run", "--epochs", 1, "--threads", 1)
    assert made.returncode == 0, made.stderr
    assert labelmend("export", tmp_path / "run", "--out", tmp_path / "model.onnx").returncode == 0
    rows = np.load(tmp_path / "rows.npz")["x"].astype(np.float32)
    predicted = labelmend("predict", tmp_path / "run", tmp_path / "rows.npz").stdout.splitlines()[1:]
    (found,) = session_of(tmp_path / "model.onnx").run(None, {"inputs": rows})
    expected = [[float(cell) for cell in line.split(",")[3:]] for line in predicted]
    np.testing.assert_allclose(found, expected, atol=1e-4)


NETWORKS = [
    ("linear", 3),
    ("mlp", 3),
    ("trees-5x4", 3),
    ("trees-5x4", 2),
    ("fast-16", 3),
    *[pytest.param(name, 3, marks=pytest.mark.slow) for name in NETS if name not in ("linear", "mlp", "fast-16")],
]


def random_model(net, classes):
    """A model of random weights or, of trees, of random rows; images are predicted by six views."""
    rng, rows = generator(0, "export"), NETS.get(net, NETS["trees"]).smallest == 0
    shape = (5,) if rows else (3, 32, 32) if net == "resnet50" else (3, 16, 16)
    network = build_net(net, shape, classes, rng=rng).eval()
    if isinstance(network, Forest):
        x = torch.randn(100, 5, generator=rng)
        network.fit(x, torch.eye(classes)[x[:, :classes].argmax(dim=1)], seed=0)
    normalise = Normaliser(torch.full(shape[:1], 100.0), torch.full(shape[:1], 50.0))
    kind = Features() if rows else Images()
    return Model([network], normalise, kind, shape, [f"class {i}" for i in range(classes)], views=1 if rows else 6)


@pytest.mark.parametrize(("net", "classes"), NETWORKS)
def test_every_network_is_exported_for_any_batch_and_the_difference_is_told(net, classes):
    model = random_model(net, classes)
    content, difference = export_onnx(model)
    assert 0 <= difference < 1e-5
    x = torch.randint(0, 200, (7, *model.shape), dtype=torch.uint8)
    inputs = x if len(model.shape) == 3 else x.float()
    (found,) = session_of(content).run(None, {"inputs": inputs.numpy()})
    np.testing.assert_allclose(found, model.probabilities(inputs), atol=1e-5)


def test_a_model_of_a_table_of_many_kinds_is_exported_for_encoded_rows(tmp_path, labelmend):
    lines = [f"{['red', 'green', 'blue'][i % 3]},{i % 7},{'abc'[i % 3]}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["colour,size,label", *lines]))
    source = (tmp_path / "rows.csv", "--out", tmp_path / "run", "--method", "ce", "--net", "linear", "--epochs", 1)
    assert labelmend("train", *source, "--threads", 1).returncode == 0
    exported = labelmend("export", tmp_path / "run", "--out", tmp_path / "model.onnx")
    assert exported.returncode == 0, exported.stderr
    assert "takes encoded rows" in exported.stderr
    assert "differ from the original's by at most" in exported.stdout
    model = load_model(tmp_path / "run")
    inputs = model.inputs(tmp_path / "rows.csv")
    (found,) = session_of(tmp_path / "model.onnx").run(None, {"inputs": inputs.numpy()})
    np.testing.assert_allclose(found, model.probabilities(inputs), atol=1e-5)


def test_a_file_that_differs_from_the_model_is_not_kept(tmp_path, train_digits, labelmend, monkeypatch):
    run = train_digits(method="ce", epochs=1)
    monkeypatch.setattr(
        "labelmend.faces.onnx.Classifier.forward", lambda self, inputs: inputs.flatten(1).float()[:, :10]
    )
    ended = labelmend("export", run.path, "--out", tmp_path / "model.onnx")
    assert ended.returncode == 2
    assert "differs from the original" in ended.stderr
    assert not (tmp_path / "model.onnx").exists()


def test_bad_exports_are_refused_in_one_sentence(tmp_path, train_digits, labelmend, monkeypatch):
    run, file = train_digits(method="ce", epochs=1), tmp_path / "model.onnx"
    file.write_text("mine")
    assert "--force" in labelmend("export", run.path, "--out", file).stderr
    assert file.read_text() == "mine"
    assert "did you mean 'onnx'" in labelmend("export", run.path, "--to", "onyx", "--out", file).stderr
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    ended = labelmend("export", run.path, "--out", tmp_path / "other.onnx")
    assert ended.returncode == 2
    assert "pip install 'labelmend[onnx]'" in ended.stderr


def test_a_model_of_pretrained_features_is_exported_whole(tmp_path, labelmend):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "photos.npz",
        x=rng.integers(0, 256, (12, OWN_SIZE, OWN_SIZE, 3), dtype=np.uint8),
        y=np.arange(12) % 2,
    )
    assert labelmend("train", tmp_path / "photos.npz", "--out", tmp_path / "run", "--epochs", 1).returncode == 0
    exported = labelmend("export", tmp_path / "run", "--out", tmp_path / "model.onnx")
    assert exported.returncode == 0, exported.stderr
    images = rng.integers(0, 256, (3, 3, OWN_SIZE, OWN_SIZE), dtype=np.uint8)
    (found,) = session_of(tmp_path / "model.onnx").run(None, {"inputs": images})
    np.testing.assert_allclose(found, load_model(tmp_path / "run").predict_proba(images), atol=1e-3)


def test_a_model_of_other_features_is_exported_as_its_head_and_says_so(tmp_path, labelmend, tiny_timm):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "photos.npz", x=images, y=np.arange(12) % 2)
    made = labelmend(
        "train", tmp_path / "photos.npz", "--out", tmp_path / "run", "--epochs", 1, "--features", "timm:tiny"
    )
    assert made.returncode == 0, made.stderr
    exported = labelmend("export", tmp_path / "run", "--out", tmp_path / "model.onnx")
    assert exported.returncode == 0, exported.stderr
    assert "takes features of timm:tiny@" in exported.stderr
    model = load_model(tmp_path / "run")
    (found,) = session_of(tmp_path / "model.onnx").run(None, {"inputs": model.inputs(images).numpy()})
    np.testing.assert_allclose(found, model.predict_proba(images), atol=1e-4)
