import numpy as np
import pytest
import torch
from sklearn.neighbors import LocalOutlierFactor
from torch import nn

from labelmend.core import Batch, Learner, Task, generator
from labelmend.detect.ledger import Ledger
from labelmend.methods.iterative import IterativeDetection, IterativeOptions, contrastive, inlier_scores

SAMPLES, CLASSES = 120, 2
WRONG = torch.arange(SAMPLES) % 5 == 0


def make_method(epochs=95, **options):
    method = IterativeDetection(IterativeOptions(**options), epochs)
    method.begin(Task(torch.arange(SAMPLES) // (SAMPLES // CLASSES), classes=CLASSES, epochs=epochs))
    return method


def filled_ledger(seed=0):
    """Wrong labels have high losses, and features that point where those of the other class do."""
    ledger, rng = Ledger(SAMPLES), generator(seed, "features")
    ledger.losses = torch.where(WRONG, 4.0, 0.2) + torch.linspace(0, 0.1, SAMPLES)
    ledger.keep_features(4)
    shown = (torch.arange(SAMPLES) // (SAMPLES // CLASSES) + WRONG) % CLASSES
    ledger.features[:] = (torch.eye(4)[shown] + 0.1 * torch.rand(SAMPLES, 4, generator=rng)).half()
    return ledger


def make_learner():
    network = nn.Linear(3, CLASSES)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))


def pair_loss(features, labels, noisy, margin):
    """The mean cost of each kind of pair, and the mean of the three."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    costs = {"attract": [], "noisy": [], "classes": []}
    for i in range(len(unit)):
        for j in range(len(unit)):
            apart = np.linalg.norm(unit[i] - unit[j])
            if i == j or noisy[i]:
                continue
            if labels[i] == labels[j] and not noisy[j]:
                costs["attract"].append(apart**2)
            elif labels[i] == labels[j]:
                costs["noisy"].append(max(0, margin - apart) ** 2)
            elif not noisy[j]:
                costs["classes"].append(max(0, margin - apart) ** 2)
    return sum(np.mean(cost) if cost else 0.0 for cost in costs.values()) / 3


@pytest.mark.parametrize("samples", [25, 300])
def test_scores_are_the_inverse_of_the_local_outlier_factor(samples, monkeypatch):
    monkeypatch.setattr("labelmend.methods.iterative.AT_ONCE", 64)
    features = torch.randn(samples, 6, generator=generator(0, "lof"))
    expected = LocalOutlierFactor(n_neighbors=round(0.4 * samples), metric="cosine").fit(features.numpy())
    order = torch.randperm(samples, generator=generator(1, "lof"))
    scores = inlier_scores(features, order)
    np.testing.assert_allclose(scores.numpy(), -1 / expected.negative_outlier_factor_, rtol=1e-4)


def test_neighbours_among_some_of_the_rows_judge_the_others_as_new():
    features = torch.randn(200, 6, generator=generator(2, "lof"))
    judge = LocalOutlierFactor(n_neighbors=40, metric="cosine", novelty=True).fit(features[:100].numpy())
    scores = inlier_scores(features, torch.arange(100))
    np.testing.assert_allclose(scores[:100].numpy(), -1 / judge.negative_outlier_factor_, rtol=1e-4)
    np.testing.assert_allclose(scores[100:].numpy(), -1 / judge.score_samples(features[100:].numpy()), rtol=1e-4)


def test_classes_of_no_one_and_of_one_sample_have_no_outliers():
    assert inlier_scores(torch.ones(1, 3), torch.arange(1)).tolist() == [1.0]
    assert inlier_scores(torch.ones(0, 3), torch.arange(0)).tolist() == []


def test_samples_on_the_same_spot_are_inliers():
    torch.testing.assert_close(inlier_scores(torch.ones(9, 3), torch.arange(9)), torch.ones(9))


@pytest.mark.parametrize("margin", [0.3, 1.0])
def test_the_contrast_is_that_of_a_loop_over_pairs(margin):
    rng = generator(0, "pairs")
    features, labels = torch.randn(14, 5, generator=rng), torch.randint(3, (14,), generator=rng)
    noisy = torch.rand(14, generator=rng) < 0.4
    expected = pair_loss(features.double().numpy(), labels.numpy(), noisy.numpy(), margin)
    assert float(contrastive(features, labels, noisy, margin)) == pytest.approx(expected, rel=1e-4)


def test_noisy_samples_are_pushed_from_clean_ones_of_their_class_and_not_from_each_other():
    features = torch.tensor([[1.0, 0.1], [1.0, -0.1], [1.0, 0.0]], requires_grad=True)
    contrastive(features, torch.zeros(3, dtype=torch.long), torch.tensor([True, True, False]), 1.0).backward()
    assert features.grad[0, 1] < 0 < features.grad[1, 1]


@pytest.mark.parametrize("noisy", [True, False])
def test_a_batch_without_pairs_has_no_contrast_and_finite_gradients(noisy):
    features = torch.ones(1, 3, requires_grad=True)
    loss = contrastive(features, torch.tensor([0]), torch.tensor([noisy]), 1.0)
    loss.backward()
    assert loss == 0
    assert features.grad.isfinite().all()


def test_rounds_end_at_the_published_epochs_and_each_has_a_fresh_pass():
    method = make_method()
    assert method.rounds == [5, 15, 25, 35, 45, 55, 65, 75, 85]
    short = make_method(epochs=60, track_every=100)
    assert [epoch for epoch in range(1, 61) if short.tracks(epoch)] == short.rounds
    assert [method.phase(epoch) for epoch in (5, 6, 16, 95)] == ["round 0", "round 1", "round 2", "round 9"]


def test_at_the_end_of_a_round_wrong_labels_are_found_as_outliers_of_their_class():
    method = make_method()
    method.after_tracking([filled_ledger()], 4)
    assert not method.noisy.any()
    method.after_tracking([filled_ledger()], 5)
    assert torch.equal(method.noisy, WRONG)


def test_nobody_is_noisy_where_all_samples_of_a_class_look_alike():
    method, ledger = make_method(), filled_ledger()
    ledger.features[:] = 1.0
    method.after_tracking([ledger], 5)
    torch.testing.assert_close(method.score, torch.ones(SAMPLES))
    assert not method.noisy.any()


def test_outliers_once_found_stay_so_when_the_network_has_memorised_their_labels():
    method, memorised = make_method(), filled_ledger()
    memorised.losses = torch.linspace(0, 0.1, SAMPLES)
    method.after_tracking([filled_ledger()], 5)
    memorised.features[:] = (
        torch.eye(4)[method.task.labels].half() + 0.1 * torch.rand(SAMPLES, 4, generator=generator(1)).half()
    )
    method.after_tracking([memorised], 15)
    assert torch.equal(method.noisy, WRONG)


def test_trusted_samples_are_never_noisy():
    method = make_method()
    method.noise_tracker.trusted = WRONG.nonzero()[:3, 0]
    method.after_tracking([filled_ledger()], 5)
    assert not method.noisy[WRONG.nonzero()[:3, 0]].any()
    assert method.noisy[WRONG.nonzero()[3:, 0]].all()


def test_scores_are_the_mean_over_rounds():
    method, each = make_method(), []
    for epoch, seed in ((5, 0), (15, 1), (25, 2)):
        alone = make_method()
        alone.after_tracking([filled_ledger(seed)], 5)
        each.append(alone.score)
        method.after_tracking([filled_ledger(seed)], epoch)
    torch.testing.assert_close(method.score, torch.stack(each).mean(dim=0))


def test_noisy_samples_weigh_a_tenth_of_their_score_and_at_most_a_tenth():
    method, learner = make_method(contrast=0.0), make_learner()
    method.noisy[:2] = True
    method.score[:4] = torch.tensor([0.5, 3.0, 0.5, 0.5])
    batch = Batch(torch.ones(4, 3), torch.tensor([0, 0, 1, 1]), torch.arange(4))
    loss = method.step([learner], batch, 6, torch.Generator())
    assert float(loss) == pytest.approx(0.6931472 * (0.05 + 0.1 + 1 + 1) / 4)


def test_the_loss_of_a_step_has_the_contrast_of_what_goes_into_the_last_layer():
    method, learner = make_method(contrast=2.0, margin=0.7), make_learner()
    inputs = torch.randn(6, 3, generator=generator(0, "inputs"))
    batch = Batch(inputs, torch.tensor([0, 0, 0, 1, 1, 1]), torch.arange(6))
    contrast = pair_loss(inputs.double().numpy(), batch.labels.numpy(), np.zeros(6, dtype=bool), 0.7)
    loss = method.step([learner], batch, 1, torch.Generator())
    assert float(loss) == pytest.approx(0.6931472 + 2 * contrast, rel=1e-4)


def test_what_was_detected_survives_the_state_dict():
    method, other = make_method(), make_method()
    method.after_tracking([filled_ledger()], 5)
    other.load_state_dict(method.state_dict())
    assert torch.equal(other.noisy, WRONG)
    assert torch.equal(other.score, method.score)
