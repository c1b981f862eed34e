"""A trained model, taken up again."""

import pytest
import torch

from labelmend.core import head_of
from labelmend.data.sources import SourceOptions, open_source
from labelmend.errors import InputError
from labelmend.run.model import load_model


def test_features_are_what_the_last_layer_makes_its_prediction_of(train_digits):
    model = load_model(train_digits().path)
    data, _ = open_source("digits", SourceOptions())
    features = model.features(data.test.inputs)
    assert len(features) == len(data.test.inputs)
    predicted = head_of(model.networks[0])(features).softmax(dim=1).detach()
    assert torch.allclose(predicted, torch.from_numpy(model.probabilities(data.test.inputs)), atol=1e-6)


def test_samples_of_another_shape_are_refused(train_digits):
    model = load_model(train_digits().path)
    for use in (model.features, model.probabilities):
        with pytest.raises(InputError, match="takes samples of shape"):
            use(torch.zeros(3, 1, 9, 9))


def test_a_copy_on_another_device_leaves_the_model_where_it_is(train_digits):
    model = load_model(train_digits().path)
    inputs = torch.randint(0, 17, (5, 1, 8, 8), dtype=torch.uint8)
    before = model.probabilities(inputs)
    elsewhere = model.to(torch.device("meta"))
    assert {parameter.device.type for parameter in elsewhere.networks[0].parameters()} == {"meta"}
    assert (model.probabilities(inputs) == before).all()
    assert (model.to(torch.device("cpu")).probabilities(inputs) == before).all()


def test_a_model_is_loaded_by_the_path_of_its_run_and_predicts_arrays(train_digits):
    run = train_digits()
    inputs = torch.randint(0, 17, (5, 1, 8, 8), dtype=torch.uint8)
    expected = load_model(run).probabilities(inputs)
    for path in (run.path, str(run.path)):
        assert (load_model(path).probabilities(inputs.numpy()) == expected).all()
    with pytest.raises(InputError, match="not a run directory"):
        load_model(run.path / "nowhere")
