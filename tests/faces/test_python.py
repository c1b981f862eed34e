"""The library from Python, as design and README show it."""

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_iris

import labelmend as lm

pandas = pytest.importorskip("pandas")
QUICK = {"epochs": 2, "threads": 1, "progress": False, "report": False}


@pytest.fixture(scope="module")
def frame():
    loaded = load_iris(as_frame=True)
    rows = loaded.data.assign(species=[f"iris {name}" for name in loaded.target_names[loaded.target]])
    return rows.set_index(pandas.Index([f"plant {i}" for i in range(len(rows))]))


@pytest.fixture(scope="module")
def table_run(frame):
    return lm.train(frame, label="species", **QUICK)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Red and blue photos; one has another size, and one is wide."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for name, colour in (("blue", (30, 30, 200)), ("red", (200, 30, 30))):
        (root / name).mkdir()
        for i in range(12):
            size = (90, 30) if i == 7 else (24, 20)
            pixels = np.clip(rng.normal(colour, 25, (size[1], size[0], 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def photo_run(photos, tmp_path_factory):
    return lm.train(photos, out=tmp_path_factory.mktemp("runs") / "a", method="m-dyr-h", net="slim-resnet", **QUICK)


def test_a_run_has_rate_interval_summary_suspects_and_a_report(photo_run, tmp_path):
    low, high = photo_run.noise_interval
    assert 0 <= low <= photo_run.noise_rate <= high <= 1 or photo_run.noise_rate == 0
    assert "24 labels" in photo_run.summary() or "among 24" in photo_run.summary()
    assert len(photo_run.suspects(5)) <= 5
    assert photo_run.report(tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_run_is_loaded_again_from_a_string_or_a_path(photo_run):
    for place in (photo_run.path, str(photo_run.path)):
        again = lm.load(place)
        assert again.noise_rate == photo_run.noise_rate
        assert again.labels.equals(photo_run.labels)


def test_labels_have_the_index_of_the_callers_frame(table_run, frame):
    assert table_run.labels.index.equals(frame.index)
    assert table_run.labels["given"].tolist() == frame["species"].tolist()


def test_without_out_the_run_lives_as_long_as_its_result(frame):
    run = lm.train(frame, label="species", **QUICK)
    path = run.path
    assert path.is_dir()
    del run
    assert not path.exists()


def test_the_model_predicts_arrays_and_frames_alike_whatever_the_order_of_columns(table_run, frame):
    features = frame.drop(columns="species")
    expected = table_run.model.predict_proba(features)
    assert expected.shape == (150, 3)
    np.testing.assert_allclose(expected.sum(axis=1), 1, atol=1e-5)
    for same in (features.to_numpy(), features[features.columns[::-1]], frame):
        np.testing.assert_allclose(table_run.model.predict_proba(same), expected, atol=1e-6)
    with pytest.warns(UserWarning, match="not trained on are not used: extra"):
        np.testing.assert_allclose(table_run.model.predict_proba(features.assign(extra=1.0)), expected, atol=1e-6)
    assert set(table_run.model.predict(features)) <= set(table_run.model.class_names)


def test_a_table_without_a_column_of_the_model_is_refused(table_run, frame):
    with pytest.raises(lm.InputError, match="no column 'petal width \\(cm\\)'"):
        table_run.model.predict(frame.drop(columns=["petal width (cm)", "species"]))


def test_the_model_predicts_folders_single_images_pictures_and_arrays(photo_run, photos):
    model = photo_run.model
    files = sorted(photos.rglob("*.png"))
    assert len(model.predict(photos)) == len(model.predict(str(photos))) == 24
    assert len(model.predict(photos / "red")) == 12
    assert len(model.predict(files[0])) == 1
    pictures = [Image.open(file) for file in files]
    np.testing.assert_allclose(model.predict_proba(pictures), model.predict_proba(photos), atol=1e-6)
    raw = np.zeros((2, *model.shape), dtype=np.uint8)
    assert model.predict_proba(raw).shape == model.predict_proba(torch.from_numpy(raw)).shape == (2, 2)


def test_one_odd_image_does_not_change_the_size_of_the_others(photo_run):
    assert photo_run.model.shape == (3, 20, 24)


def test_evidence_shows_the_original_picture_and_not_the_input_of_the_network(photos):
    from labelmend.data.sources import open_source

    samples, _ = open_source(str(photos))
    row = list(samples.ids).index("blue/7.png")
    import io

    assert samples.inputs[row].shape == (3, 20, 24)
    assert Image.open(io.BytesIO(samples.shown([row])["picture"][0])).size == (90, 30)


def test_corrections_are_looked_at_and_written(photo_run, photos, tmp_path):
    corrections = photo_run.corrections(min_confidence=0.9)
    assert len(corrections.labels) == 24
    assert len(corrections) == sum(
        new != old for new, old in zip(corrections.labels, photo_run.labels["given"], strict=True)
    )
    corrections.write(tmp_path / "fixed")
    assert len(list((tmp_path / "fixed").rglob("*.png"))) == 24


def test_settings_have_their_own_types_and_an_unknown_option_names_the_nearest(frame):
    run = lm.train(frame, label="species", method="m-dyr-h", settings={"batch_size": 16, "eta": 0.5}, **QUICK)
    assert run.directory.read()["optimisation"]["batch_size"] == 16
    with pytest.raises(lm.InputError, match="did you mean 'epochs'"):
        lm.train(frame, label="species", epoch=3)


def test_preparing_writes_nothing_and_leaves_threads_and_environment_alone(tmp_path, photos, monkeypatch):
    import os

    from labelmend.training.prepare import prepare

    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    (tmp_path / "bad" / "a").mkdir(parents=True)
    (tmp_path / "bad" / "a" / "x.png").write_bytes(b"no image")
    before = torch.get_num_threads(), dict(os.environ), sorted(tmp_path.rglob("*"))
    with pytest.raises(lm.InputError):
        prepare(lm.TrainConfig(source=str(tmp_path / "bad"), out=str(tmp_path / "run")))
    prepare(lm.TrainConfig(source=str(photos), out=str(tmp_path / "run"), threads=torch.get_num_threads() + 1))
    assert (torch.get_num_threads(), dict(os.environ), sorted(tmp_path.rglob("*"))) == before
