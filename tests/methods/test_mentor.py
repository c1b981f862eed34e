import torch

from labelmend.methods.mentornet import STAGES, Mentor


def make_mentor(seed=0):
    return Mentor(3, torch.Generator().manual_seed(seed))


def make_history(samples, seed=0):
    return torch.rand(samples, 4, 2, generator=torch.Generator().manual_seed(seed))


LABELS = torch.arange(6) % 3
LATE, EARLY = torch.tensor(80), torch.tensor(10)


def test_weights_are_the_sigmoid_of_the_log_odds_and_carry_no_gradient():
    mentor, history = make_mentor(), make_history(6)
    weights = mentor.weigh(history, LABELS, LATE)
    odds = mentor(history, LABELS, LATE).detach()
    torch.testing.assert_close(weights, 1 / (1 + (-odds).exp()))
    assert not weights.requires_grad


def test_a_sample_is_judged_by_itself():
    mentor, history = make_mentor(), make_history(6)
    together = mentor.weigh(history, LABELS, LATE)
    alone = torch.cat([mentor.weigh(history[i : i + 1], LABELS[i : i + 1], LATE) for i in range(6)])
    torch.testing.assert_close(together, alone)


def test_the_order_of_the_losses_and_the_label_matter():
    mentor, history = make_mentor(), make_history(6)
    given = mentor.weigh(history, LABELS, LATE)
    assert not torch.allclose(given, mentor.weigh(history.flip(1), LABELS, LATE))
    assert not torch.allclose(given, mentor.weigh(history, (LABELS + 1) % 3, LATE))


def test_a_stage_that_was_not_met_yet_says_nothing_and_one_that_was_does():
    mentor, history = make_mentor(), make_history(6)
    assert torch.equal(mentor.weigh(history, LABELS, LATE), mentor.weigh(history, LABELS, EARLY))
    mentor.fit(history, LABELS, EARLY, LABELS == 0)
    assert mentor.progress.weight[10].abs().min() > 0
    assert mentor.progress.weight.abs().sum(dim=1).count_nonzero() == 1
    assert len(mentor.progress.weight) == STAGES


def test_after_its_lesson_it_tells_labels_whose_loss_falls_from_those_whose_loss_stays():
    falling = torch.tensor([2.3, 1.5, 0.6, 0.1])
    staying = torch.tensor([2.3, 2.4, 2.2, 2.5])
    right = torch.arange(40) % 2 == 0

    def told(seed):
        losses = torch.where(right[:, None], falling, staying) + 0.2 * make_history(40, seed)[:, :, 0]
        return torch.stack([losses, losses - 1.0], dim=2), torch.arange(40) % 3

    mentor = make_mentor()
    mentor.fit(*told(1), LATE, right)
    weights = mentor.weigh(*told(2), LATE)
    assert weights[right].min() > 0.9
    assert weights[~right].max() < 0.1


def test_it_starts_from_its_generator_alone():
    before = torch.get_rng_state()
    first, second, other = make_mentor(), make_mentor(), make_mentor(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.hidden.weight, second.hidden.weight)
    assert not torch.equal(first.hidden.weight, other.hidden.weight)
