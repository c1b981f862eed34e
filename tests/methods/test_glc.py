from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods.glc import GoldLossCorrection, mean_predictions
from labelmend.methods.tracked import TrackedOptions

INPUTS = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [-1.0, 1.0], [0.0, 3.0]])
LABELS = torch.tensor([0, 1, 0, 2, 1])
NOISE = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.05, 0.15, 0.8]])
TRUSTED = torch.tensor([0, 2, 3])


def make_linear():
    network = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
        network[1].bias.zero_()
    return network


def make_learner(*, training=False):
    network = make_linear().train(training)
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.1), fresh=make_linear)


def make_trusted(size=2):
    """The samples 0, 2 and 3, of which a sweep gives so many at a time."""
    batches = [Batch(INPUTS[part], LABELS[part], part) for part in TRUSTED.split(size)]
    return SimpleNamespace(index=TRUSTED, sweep=lambda: iter(batches))


def begun(epochs=150):
    correction, ledger = GoldLossCorrection(TrackedOptions(), epochs), Ledger(len(LABELS))
    correction.begin(Task(LABELS, classes=3, epochs=epochs, trusted=make_trusted()), [ledger])
    return correction, ledger


def expected_matrix():
    """Classes 0 and 2 have trusted samples, 0 two of them; class 1 has none."""
    probabilities = (INPUTS @ make_linear()[1].weight.t()).softmax(dim=1).detach()
    return torch.stack([(probabilities[0] + probabilities[2]) / 2, torch.tensor([0.0, 1.0, 0.0]), probabilities[3]])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_matrix_is_the_mean_prediction_for_the_trusted_samples_of_each_class(size):
    learner = make_learner(training=True)
    torch.testing.assert_close(mean_predictions(learner, make_trusted(size)), expected_matrix())
    assert learner.network.training


def test_the_first_network_gives_the_matrix_and_the_second_starts_from_scratch():
    correction, ledger = begun()
    learner = make_learner()
    learner.network[1].weight.data.mul_(2)
    for epoch, changes in ((75, False), (76, True), (77, False)):
        ledger.passes, before = 9, learner.network[1].weight.clone()
        given = (2 * INPUTS[3] @ make_linear()[1].weight.t()).softmax(dim=0)
        correction.epoch_begin([learner], epoch)
        assert torch.equal(learner.network[1].weight, before) is not changes
        assert (ledger.passes == 0) is changes
        assert torch.allclose(correction.matrix[2], given) is (epoch >= 76)
    assert torch.equal(learner.network[1].weight, make_linear()[1].weight)


def test_the_first_network_learns_only_labels_that_are_not_trusted():
    correction, _ = begun()
    learner = make_learner()
    others = torch.tensor([1, 4])
    expected = F.cross_entropy(learner(INPUTS)[others], LABELS[others]).item()
    batch = Batch(INPUTS, LABELS, torch.arange(5))
    assert correction.step([learner], batch, 75, torch.Generator()).item() == pytest.approx(expected)
    before = learner.network[1].weight.clone()
    assert correction.step([learner], Batch(INPUTS[TRUSTED], LABELS[TRUSTED], TRUSTED), 75, torch.Generator()) == 0
    assert torch.equal(learner.network[1].weight, before)


def test_the_second_network_learns_trusted_labels_as_they_are_and_others_through_the_matrix():
    correction, _ = begun()
    correction.matrix = NOISE
    learner = make_learner()
    probabilities = learner(INPUTS).softmax(dim=1).detach()
    reached = probabilities @ NOISE
    expected = 0.0
    for sample, label in enumerate(LABELS.tolist()):
        source = probabilities if sample in (0, 2, 3) else reached
        expected -= source[sample, label].log().item() / 5
    loss = correction.step([learner], Batch(INPUTS, LABELS, torch.arange(5)), 76, torch.Generator())
    assert loss.item() == pytest.approx(expected)
    assert not torch.equal(learner.network[1].weight, make_linear()[1].weight)


def test_each_network_has_half_of_the_epochs_and_all_learning_rates():
    correction, _ = begun()
    epochs = (1, 25, 26, 50, 51, 75)
    expected = [1, 1, 0.1, 0.1, 0.01, 0.01]
    assert [correction.rate(epoch) for epoch in epochs] == pytest.approx(expected)
    assert [correction.rate(epoch + 75) for epoch in epochs] == pytest.approx(expected)
    assert [correction.phase(epoch) for epoch in (1, 75, 76, 150)] == ["first network"] * 2 + ["corrected loss"] * 2


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 7])
def test_short_runs_start_each_network_at_the_full_rate(epochs):
    correction, _ = begun(epochs)
    rates = [correction.rate(epoch) for epoch in range(1, epochs + 1)]
    assert rates[0] == 1
    assert rates[correction.corrects_from - 1 :][:1] in ([1], [])
    assert min(rates) >= 0.01


def test_the_pass_before_the_second_network_is_tracked():
    correction, _ = begun(152)
    assert correction.corrects_from == 77
    assert correction.tracks(76)


def test_a_task_without_trusted_samples_is_refused():
    with pytest.raises(ValueError, match="needs trusted samples"):
        GoldLossCorrection(TrackedOptions(), 2).begin(Task(LABELS, classes=3, epochs=2), [])


def test_the_matrix_survives_the_state_dict():
    correction, other = begun()[0], begun()[0]
    correction.matrix = NOISE
    other.load_state_dict(correction.state_dict())
    assert torch.equal(other.matrix, NOISE)
