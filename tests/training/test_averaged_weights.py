import dataclasses
import json

import pytest
import torch
from torch import nn

from labelmend.core import Learner
from labelmend.errors import InterruptedRunError
from labelmend.learner import AveragedWeights, predicted
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

SAME = ("model.safetensors", "labels.csv", "noise.json", "evidence/losses.f16")


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def learner(**options):
    network = net()
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.001), **options)


def steps(of, count):
    rng = torch.Generator().manual_seed(1)
    for _ in range(count):
        of.descend(of(torch.randn(8, 3, generator=rng)).square().sum())


def test_the_average_is_that_of_a_loop_over_the_steps():
    network = net()
    average, expected = AveragedWeights(network, 0.8), network[0].weight.detach().clone()
    for step in range(1, 100):
        with torch.no_grad():
            network[0].weight.add_(0.1 * step)
        average.update(network)
        share = 1 - min(0.8, step / (step + 10))
        expected = expected + share * (network[0].weight.detach() - expected)
    assert torch.allclose(average.network[0].weight, expected, rtol=1e-5)
    assert not average.network[0].weight.requires_grad


def test_the_average_predicts_in_evaluation_and_the_network_itself_in_training():
    averaged, plain = learner(average=0.9), learner()
    steps(averaged, 20)
    steps(plain, 20)
    inputs = torch.ones(4, 3)
    assert torch.equal(averaged(inputs), plain(inputs))
    with averaged.evaluating(), plain.evaluating():
        assert torch.equal(averaged(inputs), averaged.average.network(inputs))
        assert not torch.equal(averaged(inputs), plain(inputs))
        with averaged.features() as seen:
            averaged(inputs)
    assert len(seen) == 1


def test_statistics_of_normalisation_are_averaged_and_counts_copied():
    averaged = learner(average=0.9)
    steps(averaged, 20)
    own, mean = averaged.network[1], averaged.average.network[1]
    assert mean.num_batches_tracked == own.num_batches_tracked == 20
    assert not torch.equal(mean.running_mean, own.running_mean)


def test_forgetting_what_was_learned_forgets_the_average_too():
    averaged = learner(average=0.9, fresh=net)
    steps(averaged, 5)
    averaged.reset()
    assert torch.equal(averaged.average.network[0].weight, net()[0].weight)
    assert averaged.average.updates == 0


def test_two_views_of_a_picture_are_predicted_as_one():
    inputs = torch.rand(2, 1, 3, 3)
    left = lambda x: torch.stack([x[:, 0, :, 0].sum(1), x[:, 0, :, 2].sum(1)], dim=1)  # noqa: E731
    both = predicted(left, inputs, views=2)
    assert torch.allclose(both, torch.full((2, 2), 0.5))
    assert torch.allclose(predicted(left, inputs, views=1), left(inputs).softmax(dim=1))


def test_six_views_of_a_picture_are_itself_mirrored_and_moved_to_two_corners():
    picture = torch.arange(9.0).view(1, 1, 3, 3)
    seen = []
    predicted(lambda x: seen.append(x) or x[:, 0, 0, :2], picture, views=6)
    up_left, down_right = picture[..., [1, 0, 1], :][..., [1, 0, 1]], picture[..., [1, 2, 1], :][..., [1, 2, 1]]
    assert [torch.equal(seen[2 * i], view) for i, view in enumerate((picture, up_left, down_right))] == [True] * 3
    assert all(torch.equal(mirrored, view.flip(3)) for view, mirrored in zip(seen[::2], seen[1::2], strict=True))


@pytest.mark.parametrize("method", ["m-dyr-h", "elr", "mend"])
def test_a_run_with_averaged_weights_and_rates_by_the_step_resumes_exactly(method, tmp_path, after):
    settings = {"average": "0.9", "rates": "triangular"}
    options = {"noise": "symmetric:0.5", "epochs": 3, "limit": 100, "threads": 1, "settings": settings}
    whole, _ = train(prepare(TrainConfig(source="digits", out=str(tmp_path / "whole"), method=method, **options)))
    config = TrainConfig(source="digits", out=str(tmp_path / "cut"), method=method, **options)
    for _ in range(3):
        with pytest.raises(InterruptedRunError):
            train(prepare(config), signals=after(4))
        config = dataclasses.replace(config, resume=True)
    run, _ = train(prepare(config))
    for name in SAME:
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    chosen = json.loads(run.run_json.read_text())["chosen"]["optimiser"]
    assert chosen["average"] == 0.9
    assert chosen["rates"] == "triangular"


def test_any_method_can_use_averaged_weights_and_is_another_run_with_them(train_digits):
    plain, averaged = train_digits("plain"), train_digits("averaged", settings={"average": "0.9"})
    assert plain.model.read_bytes() != averaged.model.read_bytes()
