"""A run that is kept in memory is the run that a directory would hold."""

from dataclasses import replace

import numpy as np
import pytest

from labelmend.data.readers.objects import from_objects
from labelmend.errors import InputError
from labelmend.run.labels import read_label_table
from labelmend.run.model import load_model, packed_model, restored_model
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train, train_in_memory

SETTINGS = {"folds": 3}


@pytest.fixture
def prepared(tmp_path):
    """A short run on rows of numbers, with a place for its directory."""
    rng, labels = np.random.default_rng(0), np.arange(60) % 3
    rows = rng.normal(size=(60, 4)) + 3 * np.eye(3, 4)[labels]
    samples = from_objects(rows, labels)
    config = TrainConfig("", str(tmp_path / "run"), net="linear", epochs=4, settings=SETTINGS)
    return prepare(config, data=samples), samples


def test_it_judges_and_predicts_the_same_and_writes_nothing(prepared, tmp_path):
    ready, samples = prepared
    found = train_in_memory(ready)
    assert not list(tmp_path.iterdir())
    run, _ = train(ready)
    written = read_label_table(run).to_pydict()
    assert np.allclose(found.table.noisy_probability, written["noisy_probability"])
    assert (found.model.probabilities(samples.inputs) == load_model(run).probabilities(samples.inputs)).all()


def test_a_run_without_a_place_can_only_be_kept_in_memory(prepared):
    ready, samples = prepared
    nowhere = prepare(replace(ready.config, out=""), data=samples)
    assert len(train_in_memory(nowhere).table) == 60
    with pytest.raises(InputError, match="no place"):
        train(nowhere)


def test_a_packed_model_comes_back_and_parts_that_do_not_fit_are_refused(prepared):
    ready, samples = prepared
    model = train_in_memory(ready).model
    described, weights = packed_model(model, net=ready.choices.net, norm_at="head")
    assert (
        restored_model(described, weights).probabilities(samples.inputs) == model.probabilities(samples.inputs)
    ).all()
    with pytest.raises(ValueError, match="do not fit the network"):
        restored_model(described | {"net": "mlp"}, weights)
