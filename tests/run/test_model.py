"""A trained model, taken up again."""

import pytest
import torch

from labelmend.core import head_of
from labelmend.data.kinds import Normaliser
from labelmend.data.kinds.images import Images
from labelmend.data.sources import SourceOptions, open_source
from labelmend.errors import InputError
from labelmend.learner import predicted
from labelmend.nets import build_net
from labelmend.run.model import Model, load_model, packed_model, restored_model


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


@pytest.mark.parametrize(("described", "views"), [({"views": 6}, 6), ({"views": 2}, 2), ({}, 1)])
def test_a_model_knows_by_how_many_views_it_predicts(described, views):
    shape, classes = (3, 32, 32), ["cat", "dog"]
    network = build_net("fast-16", shape, 2, rng=torch.Generator())
    whole, tensors = packed_model(
        Model([network.eval()], Normaliser(torch.zeros(3), torch.ones(3)), Images(), shape, classes),
        net="fast-16",
        norm_at="head",
    )
    del whole["views"]
    model = restored_model(whole | described, tensors)
    assert model.views == views
    images = torch.randint(0, 256, (4, *shape), dtype=torch.uint8)
    expected = predicted(network, images.float(), views=views).detach()
    assert torch.allclose(torch.from_numpy(model.probabilities(images)), expected, atol=1e-6)
    for wrong in (0, 3, 7, "6"):
        with pytest.raises(ValueError, match="views"):
            restored_model(whole | {"views": wrong}, tensors)


def test_a_model_is_loaded_by_the_path_of_its_run_and_predicts_arrays(train_digits):
    run = train_digits()
    inputs = torch.randint(0, 17, (5, 1, 8, 8), dtype=torch.uint8)
    expected = load_model(run).probabilities(inputs)
    for path in (run.path, str(run.path)):
        assert (load_model(path).probabilities(inputs.numpy()) == expected).all()
    with pytest.raises(InputError, match="not a run directory"):
        load_model(run.path / "nowhere")
