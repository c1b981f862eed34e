import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods.loss_correction import (
    BackwardCorrection,
    BackwardOptions,
    ForwardCorrection,
    LossCorrectionOptions,
)

NOISE = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.05, 0.15, 0.8]])
SAMPLES = 1500


def make_linear():
    network = nn.Linear(2, 3)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
        network.bias.zero_()
    return network


def make_learner():
    network = make_linear()
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.1), fresh=make_linear)


def exact_problem():
    """Posteriors of samples that are each surely of a class, and labels that were drawn from them."""
    posteriors = NOISE[torch.arange(SAMPLES) % 3]
    labels = torch.multinomial(posteriors, 1, generator=torch.Generator().manual_seed(0))[:, 0]
    return posteriors, labels


def begun(build=ForwardCorrection, options=None, epochs=300):
    posteriors, labels = exact_problem()
    ledger = Ledger(SAMPLES)
    ledger.keep_mean_log_probs(3)
    ledger.losses = torch.linspace(0, 1, SAMPLES)
    correction = build(options or LossCorrectionOptions(held_out=0.5), epochs)
    correction.begin(Task(labels, classes=3, epochs=epochs), [ledger])
    return correction, ledger, posteriors


def believe(correction, ledger, probabilities, epoch, *, sharpness=1.0):
    ledger.mean_log_probs = (sharpness * probabilities.log()).log_softmax(dim=1).half()
    correction.after_tracking([ledger], epoch)


@pytest.mark.parametrize("sharpness", [1.0, 2.0, 0.5])
def test_the_first_network_gives_the_matrix_even_if_it_is_too_sure_or_not_sure_enough(sharpness):
    correction, ledger, posteriors = begun()
    believe(correction, ledger, posteriors, 3, sharpness=sharpness)
    torch.testing.assert_close(correction.matrix, NOISE, atol=2e-3, rtol=0)


def test_the_matrix_is_that_of_the_pass_with_the_lowest_held_out_loss():
    correction, ledger, posteriors = begun()
    believe(correction, ledger, torch.full_like(posteriors, 1 / 3), 1)
    torch.testing.assert_close(correction.matrix, torch.full((3, 3), 1 / 3), atol=1e-3, rtol=0)
    believe(correction, ledger, posteriors, 2)
    memorised = F.one_hot(correction.task.labels.roll(1), 3) * 0.98 + 0.006
    believe(correction, ledger, memorised, 3)
    torch.testing.assert_close(correction.matrix, NOISE, atol=2e-3, rtol=0)


def test_samples_that_the_first_network_has_learned_do_not_say_which_pass_is_best():
    correction, ledger, posteriors = begun()
    believe(correction, ledger, posteriors, 1)
    memorised = F.one_hot(correction.task.labels, 3) * 0.98 + 0.006
    memorised[correction.held_out] = 1 / 3
    believe(correction, ledger, memorised, 2)
    torch.testing.assert_close(correction.matrix, NOISE, atol=2e-3, rtol=0)


def test_every_pass_of_the_first_network_counts_by_itself():
    correction, ledger, posteriors = begun()
    for epoch, passes in ((3, 0), (75, 0), (76, 9)):
        ledger.passes = 9
        believe(correction, ledger, posteriors, epoch)
        assert ledger.passes == passes


def test_the_second_network_does_not_change_the_matrix():
    correction, ledger, posteriors = begun()
    believe(correction, ledger, posteriors, 76)
    assert torch.equal(correction.matrix, torch.eye(3))


def test_backward_keeps_the_inverse():
    correction, ledger, posteriors = begun(BackwardCorrection, BackwardOptions(held_out=0.5))
    believe(correction, ledger, posteriors, 3)
    torch.testing.assert_close(correction.matrix @ NOISE, torch.eye(3), atol=1e-2, rtol=0)


def test_backward_keeps_weights_below_their_limit():
    correction, ledger, posteriors = begun(BackwardCorrection, BackwardOptions(held_out=0.5, largest=1.5))
    believe(correction, ledger, posteriors, 3)
    assert 1.4 < correction.matrix.abs().sum(dim=1).max() <= 1.5


def test_the_share_asked_for_is_held_out_whatever_the_run():
    correction, _, _ = begun(options=LossCorrectionOptions())
    assert correction.held_out.sum() == 150
    assert torch.equal(correction.held_out, begun(options=LossCorrectionOptions())[0].held_out)


def test_the_first_network_learns_only_what_is_not_held_out():
    correction, _, _ = begun()
    learner, inputs = make_learner(), torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [-1.0, 1.0]])
    held_out, others = (correction.held_out == state for state in (True, False))
    index = torch.cat([held_out.nonzero()[:2, 0], others.nonzero()[:2, 0]])
    batch = Batch(inputs, correction.task.labels[index], index)
    expected = F.cross_entropy(learner(inputs)[2:], batch.labels[2:]).item()
    assert correction.step([learner], batch, 75, torch.Generator()).item() == pytest.approx(expected)
    before = learner.network.weight.clone()
    hidden = Batch(inputs[:2], batch.labels[:2], index[:2])
    assert correction.step([learner], hidden, 75, torch.Generator()) == 0
    assert torch.equal(learner.network.weight, before)


@pytest.mark.parametrize("build", [ForwardCorrection, BackwardCorrection])
def test_the_second_network_learns_all_labels_by_the_corrected_loss(build):
    options = BackwardOptions(held_out=0.5) if build is BackwardCorrection else None
    correction, _, _ = begun(build, options)
    correction.matrix = NOISE if build is ForwardCorrection else torch.linalg.inv(NOISE)
    learner, inputs = make_learner(), torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])
    labels = torch.tensor([0, 2, 1])
    probabilities = learner(inputs).softmax(dim=1).detach()
    if build is ForwardCorrection:
        expected = -(probabilities @ NOISE)[torch.arange(3), labels].log().mean()
    else:
        expected = -(torch.linalg.inv(NOISE)[labels] * (probabilities + 1e-4).log()).sum(dim=1).mean()
    loss = correction.step([learner], Batch(inputs, labels, torch.arange(3)), 76, torch.Generator())
    torch.testing.assert_close(loss, expected)
    assert not torch.equal(learner.network.weight, make_linear().weight)


def test_the_second_network_starts_from_scratch():
    correction, _, _ = begun()
    learner = make_learner()
    for epoch, afresh in ((75, False), (76, True), (77, False)):
        nn.init.ones_(learner.network.weight)
        correction.epoch_begin([learner], epoch)
        assert torch.equal(learner.network.weight, make_linear().weight) is afresh


def test_the_second_network_learns_given_labels_for_as_long_as_the_first_needed():
    correction, ledger, posteriors = begun()
    believe(correction, ledger, posteriors, 3)
    correction.matrix = NOISE
    assert [correction.phase(epoch) for epoch in (75, 76, 78, 79)] == [
        "first network",
        "second network",
        "second network",
        "corrected loss",
    ]
    inputs, labels = torch.tensor([[1.0, 2.0], [0.5, -1.0]]), torch.tensor([0, 2])
    index = correction.held_out.nonzero()[:2, 0]
    plain, corrected = (
        correction.step([make_learner()], Batch(inputs, labels, index), epoch, torch.Generator()) for epoch in (78, 79)
    )
    logits = make_linear()(inputs).detach()
    torch.testing.assert_close(plain, F.cross_entropy(logits, labels))
    expected = -(logits.softmax(dim=1) @ NOISE)[torch.arange(2), labels].log().mean()
    torch.testing.assert_close(corrected, expected)


def test_a_run_in_full_has_the_published_epochs():
    correction, _, _ = begun()
    assert [correction.phase(epoch) for epoch in (1, 75, 76, 300)] == ["first network"] * 2 + ["corrected loss"] * 2
    assert [correction.rate(epoch) for epoch in (100, 101, 250, 251)] == pytest.approx([1, 0.1, 0.1, 0.01])
    assert all(correction.tracks(epoch) for epoch in range(1, 76))
    assert [epoch for epoch in range(76, 90) if correction.tracks(epoch)] == [80, 85]


@pytest.mark.parametrize("epochs", [2, 3, 7, 60])
def test_however_short_the_run_each_network_has_an_epoch(epochs):
    correction, _, _ = begun(epochs=epochs)
    assert {correction.phase(epoch) for epoch in range(1, epochs + 1)} == {"first network", "corrected loss"}


def test_the_matrix_survives_the_state_dict():
    correction, ledger, posteriors = begun()
    believe(correction, ledger, posteriors, 3)
    other, other_ledger, _ = begun()
    other.load_state_dict(correction.state_dict())
    assert torch.equal(other.matrix, correction.matrix)
    believe(other, other_ledger, torch.full_like(posteriors, 1 / 3), 4)
    assert torch.equal(other.matrix, correction.matrix)
