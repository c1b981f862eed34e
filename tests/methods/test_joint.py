import copy

import pytest
import torch
from torch import nn

from labelmend.core import Batch, Learner, Task
from labelmend.methods.joint import JointOptimisation, JointOptions

LABELS = torch.tensor([0, 1, 2, 0])


def make_method(epochs=32, **options):
    made = JointOptimisation(JointOptions(**options), epochs)
    made.begin(Task(LABELS, classes=3, epochs=epochs))
    return made


def make_learner():
    network = nn.Linear(2, 3)
    fresh = copy.deepcopy(network)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.5, momentum=0.9)
    return Learner(network, optimiser, fresh=lambda: copy.deepcopy(fresh))


def whole_batch():
    return Batch(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, -1.0]]), LABELS, torch.arange(4))


def test_the_stages_are_the_published_fractions():
    phases = [make_method(epochs=320).phase(epoch) for epoch in (1, 70, 71, 200, 201, 320)]
    assert phases == ["warm-up"] * 2 + ["network and labels by turns"] * 2 + ["afresh on the final labels"] * 2
    assert [make_method(epochs=320).rate(epoch) for epoch in (200, 240, 241, 281)] == pytest.approx([1, 1, 0.1, 0.01])


def test_labels_are_the_mean_of_the_last_windows_predictions():
    made, learner, predicted = make_method(window=3), make_learner(), []
    for epoch in range(1, 9):
        made.epoch_begin([learner], epoch)
        predicted.append(learner(whole_batch().inputs).softmax(dim=1).detach())
        made.step([learner], whole_batch(), epoch, torch.Generator())
    given = nn.functional.one_hot(LABELS, 3).float()
    assert not torch.equal(made.targets, given)
    torch.testing.assert_close(made.targets, torch.stack(predicted[4:7]).mean(dim=0), atol=1e-3, rtol=0)


def test_labels_stay_as_given_in_the_warm_up():
    made, learner = make_method(), make_learner()
    for epoch in range(1, 7):
        made.epoch_begin([learner], epoch)
        made.step([learner], whole_batch(), epoch, torch.Generator())
    assert torch.equal(made.targets, nn.functional.one_hot(LABELS, 3).float())


def test_before_the_window_is_full_only_the_epochs_there_were_count():
    made, learner = make_method(window=50), make_learner()
    for epoch in range(1, 9):
        made.epoch_begin([learner], epoch)
        made.step([learner], whole_batch(), epoch, torch.Generator())
    torch.testing.assert_close(made.targets.sum(dim=1), torch.ones(4), atol=5e-3, rtol=0)


def test_the_objective_is_the_divergence_the_balance_and_the_entropy():
    made, learner = make_method(prior=1.2, entropy=0.8), make_learner()
    p = learner(whole_batch().inputs).softmax(dim=1).detach()
    cross = -p[torch.arange(4), LABELS].log().mean()
    balance = -(torch.full((3,), 1 / 3) * (3 * p.mean(dim=0)).log()).sum()
    entropy = -(p * p.log()).sum(dim=1).mean()
    loss = made.step([learner], whole_batch(), 1, torch.Generator())
    assert float(loss) == pytest.approx(float(cross + 1.2 * balance + 0.8 * entropy), abs=1e-5)


def test_the_last_stage_starts_afresh_on_labels_that_no_longer_change():
    made, learner = make_method(), make_learner()
    first = learner.network.weight.detach().clone()
    for epoch in range(1, 21):
        made.epoch_begin([learner], epoch)
        made.step([learner], whole_batch(), epoch, torch.Generator())
    assert not torch.equal(learner.network.weight, first)
    made.epoch_begin([learner], 21)
    assert torch.equal(learner.network.weight, first)
    final = made.targets.clone()
    for epoch in range(21, 24):
        made.step([learner], whole_batch(), epoch, torch.Generator())
        made.epoch_begin([learner], epoch + 1)
    assert torch.equal(made.targets, final)
    expected = -(final * learner(whole_batch().inputs).detach().log_softmax(dim=1)).sum(dim=1).mean()
    assert float(made.step([learner], whole_batch(), 24, torch.Generator())) == pytest.approx(float(expected), abs=1e-5)
