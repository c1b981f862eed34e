import dataclasses

import pytest
import torch
from torch import nn

from labelmend.core import Batch, Learner, Task
from labelmend.detect.ledger import Ledger
from labelmend.errors import InputError, InterruptedRunError
from labelmend.methods import find
from labelmend.methods.mentornet import MentorOptions, predefined_weights
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

SAMPLES, CLASSES = 40, 4
LABELS = torch.arange(SAMPLES) % CLASSES


class Few:
    """The first samples are trusted."""

    def __init__(self, count):
        self.index = torch.arange(count)

    def __len__(self):
        return len(self.index)


def make_method(trusted=0, epochs=100, **options):
    method = find("mentornet").build(MentorOptions(**options), epochs)
    method.begin(Task(LABELS, CLASSES, epochs, Few(trusted) if trusted else None))
    return method


def weigh(method, losses, epoch):
    index = torch.arange(len(losses))
    return method.weights(losses, LABELS[index], index, epoch)


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0])
def test_predefined_weights_minimise_the_weighted_loss_with_the_papers_regulariser(slope):
    grid = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    percentile = 1.2
    for loss in (0.0, 0.9, 1.3, 1.9, 2.5, 4.0):
        objective = grid * loss + 0.5 * slope * grid**2 - (percentile + slope) * grid
        above = torch.tensor([loss - percentile], dtype=torch.float64)
        assert predefined_weights(above, slope=slope).item() == pytest.approx(grid[objective.argmin()].item(), abs=1e-4)


def test_without_a_slope_a_weight_is_one_up_to_the_percentile_and_zero_beyond_it():
    assert predefined_weights(torch.tensor([-1.0, 0.0, 1e-6, 3.0]), slope=0.0).tolist() == [1, 1, 0, 0]


def test_the_percentile_is_that_of_the_estimated_right_labels_and_moves_with_the_steps():
    method = make_method(percentile_decay=0.75)
    method.agreed = torch.tensor(0.6)
    weigh(method, torch.arange(11.0), 1)
    assert method.percentile.item() == pytest.approx(0.25 * 6)
    weigh(method, torch.arange(11.0).flip(0) * 2, 1)
    assert method.percentile.item() == pytest.approx(0.75 * 0.25 * 6 + 0.25 * 12)


def test_everybody_counts_in_the_burn_in_and_then_only_small_losses():
    method = make_method(percentile_decay=0.0)
    method.agreed = torch.tensor(0.5)
    losses = torch.tensor([0.1, 3.0, 0.2, 0.7, 9.0])
    assert weigh(method, losses, 20).tolist() == [1, 1, 1, 1, 1]
    assert weigh(method, losses, 21).tolist() == [1, 0, 1, 1, 0]
    assert weigh(method, losses + torch.tensor([0, 0, 0, 0.4, 0]), 90).tolist() == [1, 0, 1, 1, 0]
    last = weigh(method, torch.tensor([0.1, 3.0, 0.2, 0.5, 0.9]), 91)
    assert last.tolist() == pytest.approx([1, 0, 1, 1, 0.6])


def test_the_right_labels_are_as_many_as_the_network_agreed_with():
    method, ledger = make_method(), Ledger(SAMPLES)
    ledger.losses, ledger.disagreement_rate[:30] = torch.rand(SAMPLES, generator=torch.Generator()), 0.4
    method.after_tracking([ledger], 5)
    assert method.agreed.item() == pytest.approx(0.7)


def test_nobody_is_left_out_before_anybody_is_suspected():
    method = make_method(percentile_decay=0.0)
    assert weigh(method, torch.tensor([0.1, 3.0, 0.2]), 50).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("epoch", "stay"), [(20, 16), (21, 30)])
def test_the_epochs_share_of_a_batch_is_left_out_at_random(epoch, stay):
    method = make_method()
    kept = [method.kept(32, epoch, torch.Generator().manual_seed(seed), torch.zeros(1)) for seed in (0, 0, 1)]
    assert [int(each.sum()) for each in kept] == [stay] * 3
    assert torch.equal(kept[0], kept[1])
    assert not torch.equal(kept[0], kept[2])


def test_a_step_learns_by_the_mean_of_the_weighted_losses():
    method = make_method(dropout=0.0, percentile_decay=0.0)
    method.agreed = torch.tensor(0.5)
    network = nn.Linear(CLASSES, CLASSES, bias=False)
    nn.init.eye_(network.weight)
    batch = Batch(torch.eye(CLASSES)[[0, 1, 3]] * torch.tensor([[2.0], [3.0], [1.0]]), LABELS[:3], torch.arange(3))
    losses = -batch.inputs.log_softmax(dim=1)[torch.arange(3), LABELS[:3]]
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=1.0))
    given = method.step([learner], batch, 30, torch.Generator())
    assert losses[2] > losses[0] > losses[1]
    assert given.item() == pytest.approx(((losses[0] + losses[1]) / 3).item())
    untaught = network.weight[:, 3]
    assert untaught.tolist() == [0, 0, 0, 1]


def test_half_of_the_trusted_samples_are_taught_under_wrong_labels_and_nobody_else():
    method = make_method(trusted=20)
    changed = method.labels != LABELS
    assert int(changed[:20].sum()) == 10
    assert not changed[20:].any()
    assert torch.equal(method.right, ~changed[:20])
    assert ((method.labels >= 0) & (method.labels < CLASSES)).all()
    assert torch.equal(make_method(trusted=20).labels, method.labels)


def test_a_sample_remembers_its_latest_losses_and_how_far_they_were_above_the_percentile():
    method = make_method(trusted=20, percentile_decay=0.0)
    for loss in (1.0, 2.0, 3.0, 4.0, 5.0):
        weigh(method, torch.tensor([loss, 9.0]), 1)
    assert method.history[0].tolist() == [[2, -7], [3, -6], [4, -5], [5, -4]]
    assert method.history[1].tolist() == [[9, 0]] * 4
    assert method.history[2:].abs().max() == 0
    assert method.per_sample == ("history",)


def test_the_learned_mentor_takes_up_what_the_trusted_samples_show():
    method, ledger = make_method(trusted=30, percentile_decay=0.0), Ledger(SAMPLES)
    wrong = method.labels != LABELS
    wrong[35:] = True
    losses = torch.where(wrong, 4.0, 0.3) + torch.linspace(0, 0.2, SAMPLES)
    for epoch in range(1, 5):
        assert weigh(method, losses, epoch).tolist() == [1] * SAMPLES
    ledger.losses = losses
    for epoch in (15, 20):
        method.after_tracking([ledger], epoch)
    weights = weigh(method, losses, 21)
    assert weights[~wrong].min() > 0.8
    assert weights[wrong].max() < 0.2
    assert method.progress == 20


def test_the_mentor_is_learned_where_there_are_trusted_samples_unless_told_otherwise():
    assert make_method().phase(21) == "predefined curriculum"
    assert make_method(trusted=1).phase(21) == "predefined curriculum"
    assert make_method(trusted=2).phase(21) == "learned mentor"
    assert make_method(trusted=20, mentor="predefined").phase(21) == "predefined curriculum"
    assert torch.equal(make_method(trusted=20, mentor="predefined").labels, LABELS)
    assert make_method(trusted=20).phase(20) == "burn-in"


@pytest.mark.parametrize("trusted", [0, 1])
def test_a_learned_mentor_without_trusted_samples_is_refused(trusted):
    with pytest.raises(InputError, match=r"at least 2 .*--trusted"):
        make_method(trusted=trusted, mentor="learned")


def test_the_mentor_is_taught_right_before_its_first_epoch():
    for epochs in (2, 3, 7, 60):
        method = make_method(epochs=epochs)
        first = next(epoch for epoch in range(1, epochs + 1) if method.phase(epoch) != "burn-in")
        assert method.tracks(first - 1)


def test_a_run_with_a_learned_mentor_resumes_exactly(train_digits, tmp_path, after):
    whole = train_digits("whole", method="mentornet", trusted="2-per-class")
    config = TrainConfig(**whole.read()["config"] | {"out": str(tmp_path / "cut")})
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(20))
    assert len((tmp_path / "cut" / "epochs.jsonl").read_text().splitlines()) == 1
    run, _ = train(prepare(dataclasses.replace(config, resume=True)))
    assert run.epochs()[-1]["phase"] == "learned mentor"
    assert run.model.read_bytes() == whole.model.read_bytes()
