import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import LEAST_BELIEF, Learner
from labelmend.detect.ledger import Ledger


def passes(samples=40, classes=5, count=7):
    rng = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (samples,), generator=rng)
    return labels, torch.randn(count, samples, classes, generator=rng) * 2


def recorded(labels, logits):
    ledger = Ledger(len(labels))
    for one in logits:
        ledger.open_pass()
        for index in torch.arange(len(labels)).split(16):
            ledger.write(index, labels[index], one[index])
    return ledger


def naive_margins(labels, logits, best_only=False):
    rows = []
    for label, row in zip(labels, logits.softmax(dim=1), strict=True):
        others = (max if best_only else sum)(p for k, p in enumerate(row) if k != label)
        rows.append((others + LEAST_BELIEF).log() - (row[label] + LEAST_BELIEF).log())
    return torch.stack(rows)


def test_margins_and_doubts_are_means_over_the_passes_and_losses_are_the_last():
    labels, logits = passes()
    ledger = recorded(labels, logits)
    each = torch.stack([naive_margins(labels, one) for one in logits])
    assert torch.allclose(ledger.margins, each.mean(dim=0), atol=1e-5)
    rival_log_odds = torch.stack([naive_margins(labels, one, best_only=True) for one in logits])
    assert torch.allclose(ledger.rival_log_odds, rival_log_odds.mean(dim=0), atol=1e-5)
    doubted = (logits.argmax(dim=2) != labels).float().mean(dim=0)
    assert torch.allclose(ledger.disagreement_rate, doubted, atol=1e-6)
    assert torch.allclose(ledger.losses, F.cross_entropy(logits[-1], labels, reduction="none"))


def test_after_a_restart_only_later_passes_count():
    labels, logits = passes()
    ledger = recorded(labels, logits[:3])
    ledger.restart()
    for one in logits[3:]:
        ledger.open_pass()
        ledger.write(torch.arange(len(labels)), labels, one)
    later = recorded(labels, logits[3:])
    for name in ("margins", "rival_log_odds", "disagreement_rate", "rival_vote"):
        assert torch.allclose(getattr(ledger, name), getattr(later, name), atol=1e-6)
    assert (ledger.rivals == later.rivals)[later.rival_vote > 0].all()


def test_the_rival_is_the_class_that_most_passes_vote_for_and_never_the_given_one():
    labels = torch.tensor([0, 0, 1])
    vote = {name: torch.tensor(row) for name, row in {"a": [0.0, 9, 0], "b": [0.0, 0, 9], "given": [0.0, 9, 1]}.items()}
    logits = torch.stack(
        [
            torch.stack([vote["a"], vote["b"], vote["given"]]),
            torch.stack([vote["b"], vote["b"], vote["given"]]),
            torch.stack([vote["a"], vote["b"], vote["given"]]),
        ]
    )
    ledger = recorded(labels, logits)
    assert ledger.rivals.tolist() == [1, 2, 2]
    assert ledger.rival_vote[0] < 0.5 < ledger.rival_vote[1]
    assert (ledger.rival_vote <= 1).all()


def confident(*classes):
    """One pass in which each sample is taken for a class."""
    return 5 * F.one_hot(torch.tensor(classes), 3).float()


def test_the_guess_is_a_vote_in_which_older_passes_fade():
    labels = torch.tensor([0, 0, 0])
    steady, once, changed = [2] * 6, [2] * 5 + [1], [2] * 3 + [1] * 3
    ledger = recorded(labels, [confident(*row) for row in zip(steady, once, changed, strict=True)])
    assert ledger.guesses.tolist() == [2, 2, 1]


def test_a_restart_forgets_the_means_and_keeps_the_guesses():
    labels = torch.tensor([0, 0])
    ledger = recorded(labels, [confident(1, 0)] * 3)
    ledger.restart()
    assert ledger.guesses.tolist() == [1, 0]


def test_beliefs_are_kept_on_request_and_start_as_the_mean_of_the_passes():
    labels, logits = passes(count=3)
    ledger = Ledger(len(labels))
    assert "mean_log_probs" not in ledger.recorded()
    ledger.keep_mean_log_probs(5)
    for one in logits:
        ledger.open_pass()
        ledger.write(torch.arange(len(labels)), labels, one)
    expected = logits.log_softmax(dim=2).mean(dim=0)
    assert torch.allclose(ledger.recorded()["mean_log_probs"].float(), expected, atol=2e-2)


def make_learner():
    with torch.random.fork_rng():
        torch.manual_seed(0)  # of an unlucky draw, no unit lets a gradient through
        network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    fresh = copy.deepcopy(network)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    return Learner(network, optimiser, fresh=lambda: copy.deepcopy(fresh))


def test_a_reset_learner_has_its_first_weights_and_no_momentum():
    learner = make_learner()
    before = {name: value.clone() for name, value in learner.network.state_dict().items()}
    learner.descend(learner(torch.ones(5, 3)).square().mean())
    assert not torch.equal(learner.head.weight, before["2.weight"])
    learner.reset()
    assert all(torch.equal(value, before[name]) for name, value in learner.network.state_dict().items())
    assert not learner.optimiser.state


def test_features_are_what_the_last_layer_gets_with_their_gradients():
    learner, inputs = make_learner(), torch.ones(5, 3)
    with learner.features() as seen:
        logits = learner(inputs)
    torch.testing.assert_close(learner.head(seen[0]), logits)
    seen[0].sum().backward()
    assert learner.network[0].weight.grad is not None
    learner(inputs)
    assert len(seen) == 1
