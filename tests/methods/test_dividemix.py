import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods.dividemix import DivideMix, DivideMixOptions, sharpened, weight_at

PREDICTIONS = torch.tensor([[[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], [[0.2, 0.7, 0.1], [0.4, 0.1, 0.5]]])
LABELS = torch.tensor([0, 2])


class Trusted:
    def __init__(self, index):
        self.index = index

    def __len__(self):
        return len(self.index)


def make_method(*, epochs=300, samples=2, classes=3, trusted=None, **options):
    method = DivideMix(DivideMixOptions(**options), epochs)
    method.begin(Task(torch.arange(samples) % classes, classes, epochs, trusted))
    return method


def make_batch(samples=2):
    inputs = torch.arange(4.0 * samples).reshape(samples, 4) / 10
    return Batch(inputs, LABELS[torch.arange(samples) % 2], torch.arange(samples), inputs + 0.5)


def make_learners():
    learners = []
    for number in range(2):
        network = nn.Linear(4, 3)
        network.weight.data = torch.linspace(-1, 1, 12).roll(5 * number).reshape(3, 4)
        network.bias.data = torch.zeros(3)
        learners.append(Learner(network, torch.optim.SGD(network.parameters(), lr=0.1)))
    return learners


def squared(row):
    total = sum(p * p for p in row)
    return [p * p / total for p in row]


def filled(losses):
    ledger = Ledger(len(losses))
    ledger.losses = losses
    return ledger


def two_humps(samples=100, every=4):
    return torch.where(torch.arange(samples) % every == 0, 4.0, 0.2) + torch.linspace(0, 0.1, samples)


def test_a_temperature_of_one_half_squares_probabilities_and_zero_stays_zero():
    rows = torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.5, 0.0]])
    expected = torch.tensor([[0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46], [0.5, 0.5, 0.0]])
    torch.testing.assert_close(sharpened(rows, 0.5), expected)
    torch.testing.assert_close(sharpened(rows, 1.0), rows)


def test_the_coldest_temperature_takes_the_likeliest_class_and_is_no_nan():
    torch.testing.assert_close(sharpened(torch.tensor([[0.6, 0.3, 0.1]]), 1e-3), torch.tensor([[1.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("rate", "weight"), [(0.0, 0), (0.18, 0), (0.2, 0), (0.325, 12.5), (0.45, 25), (0.72, 25), (0.81, 50), (1.0, 50)]
)
def test_the_weight_of_the_unlabelled_is_the_published_one_for_ten_classes(rate, weight):
    assert weight_at(rate, 10) == pytest.approx(weight)
    assert weight_at(rate, 20) == pytest.approx(2 * weight)


def test_labels_are_refined_by_the_networks_own_predictions_as_much_as_the_other_one_doubts_them():
    method = make_method()
    method.clean = torch.tensor([[0.9, 0.8], [0.7, 0.6]])
    targets, labelled = method.targets(make_batch(), PREDICTIONS)
    assert labelled.all()
    for learns, teaches in ((0, 1), (1, 0)):
        for sample in range(2):
            w = method.clean[teaches, sample].item()
            given = [float(c == LABELS[sample]) for c in range(3)]
            mixed = [w * y + (1 - w) * p for y, p in zip(given, PREDICTIONS[learns, sample].tolist(), strict=True)]
            assert targets[learns, sample].tolist() == pytest.approx(squared(mixed), abs=1e-6)


def test_the_unlabelled_are_guessed_by_both_networks():
    method = make_method()
    method.clean = torch.zeros(2, 2)
    targets, labelled = method.targets(make_batch(), PREDICTIONS)
    assert not labelled.any()
    expected = torch.tensor([squared([0.4, 0.5, 0.1]), squared([0.3, 0.3, 0.4])])
    torch.testing.assert_close(targets, torch.stack([expected, expected]))


def test_each_network_uses_the_labels_that_the_other_one_believes():
    method = make_method()
    method.clean = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    _, labelled = method.targets(make_batch(), PREDICTIONS)
    assert labelled.tolist() == [[False, True], [True, False]]


def test_a_label_is_used_above_the_threshold_only():
    method = make_method(threshold=0.7)
    method.clean = torch.tensor([[0.69, 0.71], [0.71, 0.69]])
    assert method.targets(make_batch(), PREDICTIONS)[1].tolist() == [[True, False], [False, True]]


def constructed_loss(method, labelled):
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    targets = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.0, 0.9]])
    probabilities = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in logits.tolist()]
    pairs = list(zip(probabilities, targets.tolist(), strict=True))
    entropies = [-sum(t * math.log(p) for p, t in zip(ps, ts, strict=True)) for ps, ts in pairs]
    squares = [sum((p - t) ** 2 for p, t in zip(ps, ts, strict=True)) / 3 for ps, ts in pairs]
    means = [sum(column) / 3 for column in zip(*probabilities, strict=True)]
    prior = sum(math.log(1 / 3 / m) for m in means) / 3
    loss = method.divided(logits, targets, torch.tensor(labelled), 300).item()
    return loss, entropies, squares, prior


def test_the_loss_of_a_divided_batch_is_cross_entropy_squares_and_prior():
    method = make_method()
    method.weight = torch.tensor(25.0)
    loss, entropies, squares, prior = constructed_loss(method, [True, False, True])
    assert loss == pytest.approx((entropies[0] + entropies[2]) / 2 + 25 * squares[1] + prior, rel=1e-5)


@pytest.mark.parametrize("all_labelled", [True, False])
def test_an_empty_side_adds_nothing_to_the_loss(all_labelled):
    method = make_method()
    method.weight = torch.tensor(25.0)
    loss, entropies, squares, prior = constructed_loss(method, [all_labelled] * 3)
    other = sum(entropies) / 3 if all_labelled else 25 * sum(squares) / 3
    assert loss == pytest.approx(other + prior, rel=1e-5)


def test_the_unlabelled_come_in_over_sixteen_epochs_after_the_warm_up():
    method = make_method()
    assert [method.phase(epoch) for epoch in (30, 31)] == ["warm-up", "divided"]
    assert [method.ramp(epoch) for epoch in (30, 34, 46, 300)] == pytest.approx([0, 0.25, 1, 1])


def test_the_warm_up_is_cross_entropy_less_entropy_by_the_confidence_penalty():
    batch = make_batch()
    losses = [make_method(confidence_penalty=c).step(make_learners(), batch, 1, torch.Generator()) for c in (0.0, 2.0)]
    logits = [learner(batch.inputs).detach() for learner in make_learners()]
    entropy = sum(torch.distributions.Categorical(logits=own).entropy().mean() for own in logits) / 2
    plain = sum(F.cross_entropy(own, batch.labels) for own in logits) / 2
    assert losses[0].item() == pytest.approx(plain.item(), rel=1e-5)
    assert losses[1].item() == pytest.approx((plain - 2 * entropy).item(), rel=1e-4)


def test_samples_keep_the_greater_share_of_what_they_are_mixed_to():
    mixes = [make_method().mix(torch.zeros(6, 4), torch.Generator().manual_seed(seed)) for seed in range(20)]
    shares = torch.stack([mix.input_share for mix in mixes])
    assert (shares >= 0.5).all()
    assert shares[:, 0].unique().numel() == 20
    assert all(torch.equal(mix.input_share, mix.target_share) for mix in mixes)
    assert all(mix.partner.sort().values.tolist() == list(range(6)) for mix in mixes)


@pytest.mark.parametrize("clean", [0.0, 1.0])
@pytest.mark.parametrize("second", [True, False])
def test_a_step_with_an_empty_side_teaches_both_networks_and_stays_finite(clean, second):
    method, learners, batch = make_method(samples=6), make_learners(), make_batch(6)
    method.clean, method.weight = torch.full((2, 6), clean), torch.tensor(25.0)
    batch = batch if second else Batch(batch.inputs, batch.labels, batch.index)
    assert method.step(learners, batch, 300, torch.Generator().manual_seed(0)).isfinite()
    for learner, fresh in zip(learners, make_learners(), strict=True):
        assert learner.network.weight.isfinite().all()
        assert not torch.equal(learner.network.weight, fresh.network.weight)


def test_each_networks_mixture_divides_by_its_own_losses():
    method = make_method(samples=100, classes=10)
    method.after_tracking([filled(two_humps(every=4)), filled(two_humps(every=2))], 30)
    suspects = [[i for i in range(100) if row[i] < 0.5] for row in method.clean.tolist()]
    assert suspects == [list(range(0, 100, 4)), list(range(0, 100, 2))]
    assert method.weight.item() == pytest.approx(weight_at(0.375, 10), rel=0.01)


def test_a_fixed_weight_is_used_as_it_is():
    method = make_method(samples=100, unlabelled_weight=7.0)
    method.after_tracking([filled(two_humps())] * 2, 30)
    assert method.weight.item() == 7


def test_hopeless_losses_leave_all_labels_in_use():
    method = make_method(samples=100, classes=10)
    method.after_tracking([filled(torch.ones(100))] * 2, 30)
    assert (method.clean == 1).all()
    assert method.weight == 0


def test_trusted_labels_are_never_doubted():
    method = make_method(samples=100, trusted=Trusted(torch.tensor([0, 4, 5])))
    method.after_tracking([filled(two_humps())] * 2, 30)
    assert (method.clean[:, [0, 4, 5]] == 1).all()
    assert (method.clean[:, 8] < 0.5).all()


def test_the_division_survives_the_state_dict():
    method, other = (make_method(samples=100, classes=10) for _ in range(2))
    method.after_tracking([filled(two_humps(every=4)), filled(two_humps(every=2))], 30)
    other.load_state_dict(method.state_dict())
    assert torch.equal(other.clean, method.clean)
    assert torch.equal(other.weight, method.weight)
    described = [[mixture.described() for mixture in each.mixtures] for each in (method, other)]
    assert described[0] == described[1]
