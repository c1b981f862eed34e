import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import generator
from labelmend.nets import build_net
from labelmend.training import heads
from labelmend.training.config import Optimisation
from labelmend.training.heads import choose_head, round_epochs
from labelmend.training.optimiser import HEADS, optimiser_settings, triangular


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(heads, "STEPS", 200)
    monkeypatch.setattr(heads, "MOST_EPOCHS", 30)


def wide(rows=150, columns=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    direction = np.linalg.qr(rng.normal(size=(columns, 3)))[0].T  # not along columns, which trees would find
    x = rng.normal(size=(rows, columns)) + 3 * direction[labels]
    given = np.where(rng.random(rows) < 0.3, (labels + 1) % 3, labels)
    return torch.from_numpy(x).float(), torch.from_numpy(given)


def rings(rows=400):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, rows)
    angle, radius = rng.uniform(0, 2 * np.pi, rows), 0.5 + labels + rng.normal(0, 0.1, rows)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return torch.from_numpy(x).float(), torch.from_numpy(labels)


def test_wide_rows_get_a_linear_classifier_with_a_strong_weight_decay():
    chosen = choose_head(*wide(), 3)
    assert chosen.net == "linear"
    assert chosen.weight_decay >= 0.01
    assert chosen.optimiser.weight_decay == chosen.weight_decay


def test_classes_that_no_line_divides_get_an_mlp():
    assert choose_head(*rings(), 2).net == "mlp"


def test_the_reason_gives_the_log_losses_of_all_kinds():
    chosen = choose_head(*wide(columns=60), 3)
    assert chosen.reason.startswith(f"linear with weight decay {chosen.weight_decay:g}: log-loss ")
    assert " for an MLP and " in chosen.reason
    assert chosen.reason.endswith("for gradient-boosted trees")


def test_the_choice_is_the_same_every_time_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    assert choose_head(*wide(), 3) == choose_head(*wide(), 3)
    assert torch.equal(torch.get_rng_state(), before)


def test_large_sets_are_compared_on_some_rows_and_trained_on_all(monkeypatch):
    monkeypatch.setattr(heads, "MOST_ROWS", 100)
    seen = []
    compared = heads._Comparison.__init__
    monkeypatch.setattr(
        heads._Comparison, "__init__", lambda self, x, *rest: (seen.append(len(x)), compared(self, x, *rest))[1]
    )
    chosen = choose_head(*wide(rows=240), 3, batch_size=30)
    assert seen == [100]
    assert chosen.epochs == 2 * round_epochs(240, 30)


def test_a_head_does_not_depend_on_the_labels_that_it_is_measured_on():
    x, labels = wide()
    fold = heads._Comparison(x, labels, 3, 30, 0).fold
    other = torch.where(fold == 0, (labels + 1) % 3, labels)
    scores = []
    for given in (labels, other):
        comparison = heads._Comparison(x, given, 3, 30, 0)
        comparison.fold = fold
        scores.append(_scores_without(comparison, 0))
    torch.testing.assert_close(*scores)


def _scores_without(comparison, fold):
    """Scores of a linear head that leaves out this fold."""
    kept = {}
    losses = comparison._losses

    def watched(logits, labels):
        kept["logits"] = logits.detach()
        return losses(logits, labels)

    comparison._losses = watched
    comparison.linear()
    return kept["logits"][:, fold]


def test_heads_side_by_side_learn_what_a_network_and_an_optimiser_learn_alone():
    x, labels = wide(rows=60, columns=40)
    comparison = heads._Comparison(x, labels, 3, 60, 0)
    comparison.fold = torch.full((60,), 9)
    decay = 0.03
    weights = [torch.zeros(40, 1, 3, requires_grad=True), torch.zeros(1, 3, requires_grad=True)]
    factor = (heads.WIDEST / 40) ** 0.5

    def forward(weights, x):
        return torch.einsum("nd,dhc->nhc", x * factor, weights[0]) + weights[1]

    comparison._train(forward, weights, torch.tensor([[decay]]), torch.tensor([0]), 8, torch.Generator())
    net = build_net("linear", (40,), 3, rng=generator(0, "n"))
    nn.init.zeros_(net.head.weight)
    nn.init.zeros_(net.head.bias)
    settings, _ = optimiser_settings("linear", 60, Optimisation(weight_decay=decay))
    optimiser = settings.build(net)
    for step in range(8):
        optimiser.param_groups[0]["lr"] = HEADS.learning_rate * triangular((step + 0.5) / 8)
        optimiser.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        optimiser.step()
    torch.testing.assert_close(weights[0][:, 0].T, net.head.weight, atol=1e-5, rtol=1e-4)
