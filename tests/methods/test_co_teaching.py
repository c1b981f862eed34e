import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods.co_teaching import CoTeaching, agreed
from labelmend.methods.timeline import Timeline
from labelmend.methods.tracked import TrackedOptions


def make_method(*, epochs=200, noise=0.0, samples=8):
    method = CoTeaching(TrackedOptions(), epochs)
    method.begin(Task(torch.arange(samples) % 2, classes=2, epochs=epochs))
    method.noise = noise
    return method


def make_learner(weight, rate=1.0):
    network = nn.Linear(2, 2, bias=False)
    network.weight.data = torch.tensor(weight)
    return Learner(network, torch.optim.SGD(network.parameters(), lr=rate))


def ledger_of(losses, guesses):
    ledger = Ledger(len(losses))
    ledger.losses, ledger.guesses = losses, guesses.int()
    return ledger


def test_the_share_that_is_kept_falls_to_one_less_tau_in_the_first_twentieth():
    method = make_method(noise=0.4)
    assert [method.kept(epoch) for epoch in (1, 5, 10, 11, 200)] == pytest.approx([0.96, 0.8, 0.6, 0.6, 0.6])


@pytest.mark.parametrize("epochs", [1, 2, 3, 60])
def test_short_runs_drop_all_of_tau_once_the_scaled_ramp_is_over(epochs):
    method = make_method(epochs=epochs, noise=0.3)
    assert method.kept(Timeline(200, (), epochs).after(10)) == pytest.approx(0.7)


def test_nothing_is_dropped_before_the_first_pass():
    assert make_method().kept(200) == 1


def test_the_rate_is_level_for_eighty_epochs_and_then_falls_on_a_line_that_ends_after_the_last():
    method = make_method()
    expected = [1, 1, 1 - 60 / 121, 1 / 121]
    assert [method.rate(epoch) for epoch in (1, 80, 140, 200)] == pytest.approx(expected)


def test_agreed_counts_samples_that_both_take_for_the_same_other_class():
    labels = torch.tensor([0, 0, 0, 0, 1])
    assert agreed(torch.tensor([0, 1, 2, 2, 0]), torch.tensor([0, 1, 1, 2, 1]), labels) == pytest.approx(2 / 5)


def test_each_network_learns_from_the_samples_that_the_other_finds_easy():
    inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    labels = torch.tensor([0, 0, 0, 0])
    weights = [[[3.0, -2.0], [0.0, 0.0]], [[-2.0, 3.0], [0.0, 0.0]]]
    easy_for = ([0, 2], [1, 3])
    method, learners = make_method(noise=0.5), [make_learner(weight) for weight in weights]
    loss = method.step(learners, Batch(inputs, labels, torch.arange(4)), 50, torch.Generator())
    means = []
    for learner, weight, taught in zip(learners, weights, easy_for[::-1], strict=True):
        own = torch.tensor(weight, requires_grad=True)
        mean = F.cross_entropy(inputs[taught] @ own.T, labels[taught])
        mean.backward()
        means.append(mean.item())
        torch.testing.assert_close(learner.network.weight.data, own.data - own.grad)
    assert loss.item() == pytest.approx(sum(means) / 2)


def test_without_noise_both_learn_from_the_whole_batch():
    inputs, labels = torch.eye(2).repeat(3, 1), torch.tensor([0, 1, 0, 1, 1, 0])
    learners = [make_learner([[1.0, 0.0], [0.0, 2.0]]) for _ in range(2)]
    loss = make_method().step(learners, Batch(inputs, labels, torch.arange(6)), 50, torch.Generator())
    expected = F.cross_entropy(inputs @ torch.tensor([[1.0, 0.0], [0.0, 2.0]]).T, labels)
    assert loss.item() == pytest.approx(expected.item())


def test_a_batch_of_which_all_should_be_dropped_still_teaches_its_easiest_sample():
    method, learners = make_method(noise=1.0), [make_learner([[1.0, 0.0], [0.0, 0.0]]) for _ in range(2)]
    batch = Batch(torch.tensor([[1.0, 0.0], [-3.0, 0.0]]), torch.tensor([0, 0]), torch.arange(2))
    assert method.step(learners, batch, 50, torch.Generator()).item() == pytest.approx(0.3132617)


def two_humps(samples):
    return torch.where(torch.arange(samples) % 4 == 0, 4.0, 0.2) + torch.linspace(0, 0.1, samples)


def test_tau_is_the_greater_of_the_noise_models_rate_and_the_agreement_against_labels():
    method, losses = make_method(samples=100), two_humps(100)
    labels = torch.arange(100) % 2
    method.after_tracking([ledger_of(losses, labels)] * 2, 10)
    assert method.noise == pytest.approx(0.25, abs=0.01)
    half_flipped = torch.where(torch.arange(100) < 50, 1 - labels, labels)
    method.after_tracking([ledger_of(losses, half_flipped)] * 2, 11)
    assert method.noise == 0.5


def test_agreement_of_networks_that_have_just_begun_does_not_count():
    method, labels = make_method(samples=100), torch.arange(100) % 2
    ledgers = [ledger_of(torch.ones(100), 1 - labels)] * 2
    method.after_tracking(ledgers, 9)
    assert method.noise == 0
    method.after_tracking(ledgers, 10)
    assert method.noise == 1


def test_tau_is_renewed_in_the_first_fifth_and_then_held():
    method, labels = make_method(samples=100), torch.arange(100) % 2
    hopeless = torch.ones(100)
    method.after_tracking([ledger_of(hopeless, 1 - labels)] * 2, 39)
    assert method.noise == 1
    method.after_tracking([ledger_of(hopeless, torch.zeros(100))] * 2, 40)
    assert method.noise == 0.5
    method.after_tracking([ledger_of(hopeless, labels)] * 2, 41)
    assert method.noise == 0.5


def test_every_epoch_of_the_first_fifth_is_tracked():
    method = make_method()
    assert [epoch for epoch in range(1, 52) if method.tracks(epoch)] == [*range(1, 41), 45, 50]


def test_tau_survives_the_state_dict():
    method, other = make_method(noise=0.3), make_method()
    other.load_state_dict(method.state_dict())
    assert isinstance(other, CoTeaching)
    assert other.noise == 0.3
