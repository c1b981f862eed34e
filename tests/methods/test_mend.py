import dataclasses
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Step, Task
from labelmend.detect.ledger import Ledger
from labelmend.errors import InputError, InterruptedRunError
from labelmend.methods.fold_plan import LINES, left_out, lines_between, stratified_folds
from labelmend.methods.mend import Mend, MendOptions, corrected
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

FOLDS = [folds for folds in LINES if folds > 1]
SAME = ("model.safetensors", "labels.csv", "noise.json", "evidence/losses.f16")


def make_method(samples=70, classes=2, epochs=4, **options):
    made = Mend(MendOptions(**({"folds": 7} | options)), epochs)
    ledger = Ledger(samples)
    ledger.keep_mean_probs(classes)
    made.begin(Task(torch.arange(samples) % classes, classes=classes, epochs=epochs), [ledger])
    return made, ledger


def make_learners(count, inputs=3, classes=2):
    def fresh(seed):
        network = nn.Linear(inputs, classes)
        nn.init.constant_(network.weight, 0.1 * seed)
        return network

    networks = [fresh(seed) for seed in range(count)]
    return [
        Learner(net, torch.optim.SGD(net.parameters(), lr=0.1), fresh=lambda seed=seed: fresh(seed))
        for seed, net in enumerate(networks)
    ]


def cross_fitted(out, **changes):
    options = {"noise": "symmetric:0.3", "epochs": 4, "limit": 140, "threads": 1, "net": "linear"} | changes
    settings = {"folds": "7", "track_every": "1"} | changes.get("settings", {})
    return TrainConfig(source="digits", out=str(out), method="mend", **(options | {"settings": settings}))


def test_folds_are_even_and_have_every_class_alike():
    labels = torch.tensor([0] * 70 + [1] * 35)
    fold = stratified_folds(labels, 7)
    for label, each in ((0, 10), (1, 5)):
        assert fold[labels == label].bincount(minlength=7).tolist() == [each] * 7


@pytest.mark.parametrize("folds", FOLDS)
def test_any_two_folds_lie_on_exactly_one_line(folds):
    lines = left_out(folds, whole_lines=True)
    assert all(int((lines[:, one] & lines[:, other]).sum()) == 1 for one, other in combinations(range(folds), 2))


@pytest.mark.parametrize("folds", FOLDS)
def test_the_line_between_two_folds_is_found_by_the_position_in_it(folds):
    lines, (position, between) = left_out(folds, whole_lines=True), lines_between(folds)
    for judge in range(folds):
        for fold in set(range(folds)) - {judge}:
            (line,) = (lines[:, judge] & lines[:, fold]).nonzero()[:, 0].tolist()
            assert position[(fold - line) % folds] == between[judge, fold]


def test_a_network_learns_no_sample_that_it_judges():
    made, _ = make_method()
    for epoch in (1, 4):
        for network in range(7):
            learners = make_learners(7)
            judged = made.judged_by(network, epoch)
            batch = Batch(torch.ones(len(judged), 3), made.task.labels[judged], judged)
            loss = made.objectives(learners, batch, epoch, torch.Generator())[network]
            assert loss == 0


def test_every_sample_is_judged_by_its_three_lines_first_and_by_one_network_at_last():
    made, _ = make_method()
    for epoch, times in ((1, 3), (4, 1)):
        judged = torch.cat([made.judged_by(network, epoch) for network in range(7)])
        assert judged.bincount(minlength=70).tolist() == [times] * 70


def test_what_corrects_a_label_saw_neither_it_nor_what_the_learning_network_judges():
    made, ledger = make_method()
    lines = left_out(7, whole_lines=True)
    for network in range(7):
        rows = made.judged_by(network, 2)
        ledger.mean_probs[rows] = torch.tensor([0.0, 1.0]) * (network + 1) / 8
        made.line_probs[rows, made.position[(made.fold[rows] - network) % 7]] = ledger.mean_probs[rows].half()
    for judge in range(7):
        index = (made.fold != judge).nonzero()[:, 0]
        _, probabilities = made.held_out_guess(index, judge)
        by = (probabilities[:, 1] * 8 - 1).round().long()
        assert lines[by, judge].all()
        assert lines[by, made.fold[index]].all()


def test_the_judge_of_a_line_is_asked_after_its_sweep_and_not_in_the_last_round():
    made, ledger = make_method(samples=210, epochs=4)
    right = F.one_hot(made.task.labels, 2).float()
    wrong = torch.zeros(210, dtype=torch.bool)
    wrong[::10] = True
    ledger.mean_probs.copy_(torch.where(wrong[:, None], 1 - right, right) * 0.96 + 0.02)
    rows = made.judged_by(0, 2)
    made.after_sweep(ledger, 0, 2)
    found = made.line_wrong[rows].max(dim=1).values
    assert (found[wrong[rows]] > 0.5).all()
    assert (found[~wrong[rows]] < 0.5).all()
    before = made.line_wrong.clone()
    made.after_sweep(ledger, 1, 4)
    assert torch.equal(made.line_wrong, before)


def test_a_corrected_label_leaves_its_share_to_the_other_classes():
    probabilities = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
    labels, wrong = torch.eye(3)[:2], torch.tensor([0.4, 1.0])
    expected = torch.empty(2, 3)
    for i in range(2):
        rest = sum(float(probabilities[i, c]) for c in range(3) if c != i)
        for c in range(3):
            expected[i, c] = 1 - wrong[i] if c == i else wrong[i] * probabilities[i, c] / rest
    torch.testing.assert_close(corrected(labels, wrong, probabilities), expected)


def test_without_wrong_labels_targets_are_the_given_ones():
    labels = torch.eye(3)
    assert torch.equal(corrected(labels, torch.zeros(3), torch.full((3, 3), 1 / 3)), labels)


def test_networks_start_anew_in_the_second_round_and_so_do_the_means():
    made, ledger = make_method()
    learners = make_learners(7)
    with torch.no_grad():
        learners[2].network.weight.fill_(9.0)
    ledger.passes = 1
    made.epoch_begin(learners, 2)
    assert learners[2].network.weight[0, 0].item() == 9
    made.epoch_begin(learners, 3)
    assert learners[2].network.weight[0, 0].item() == pytest.approx(0.2)
    assert ledger.passes == 0


def test_each_round_goes_through_the_whole_schedule():
    made, _ = make_method()
    progress = [made.schedule_progress(epoch, 0.5, 4) for epoch in (1, 2, 3, 4)]
    assert progress == [0.25, 0.75, 0.25, 0.75]


def test_another_number_of_folds_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"folds must be 1, 3, 7 or 13, not 5"):
        Mend(MendOptions(folds=5), 4)


def test_predictions_of_too_many_samples_and_classes_are_not_kept_and_labels_not_corrected(monkeypatch):
    monkeypatch.setattr("labelmend.methods.mend.MOST_KEPT", 100)
    made, ledger = make_method()
    ledger.mean_probs.fill_(0.5)
    made.after_sweep(ledger, 0, 2)
    learner = make_learners(7)[0]
    batch = Batch(torch.ones(4, 3), made.task.labels[:4], torch.arange(4))
    assert len(made.line_probs.flatten()) == 0
    assert made.step([learner] * 7, batch, 4, torch.Generator()).isfinite()


def test_one_network_corrects_by_its_own_passes_from_its_share_of_the_run_on():
    made, ledger = make_method(samples=4, folds=1, epochs=10, label_smoothing=0.0)
    made.wrong.fill_(1.0)
    ledger.mean_probs.copy_(torch.tensor([[0.3, 0.7]] * 4))
    (learner,) = make_learners(1)
    with torch.no_grad():
        learner.network.bias.copy_(torch.tensor([3.0, 0.0]))
    batch = Batch(torch.zeros(1, 3), torch.tensor([0]), torch.tensor([0]))
    early, late = (made.objectives([learner], batch, epoch, torch.Generator())[0].item() for epoch in (4, 5))
    assert early < 0.1
    assert late == pytest.approx(early + 3, abs=1e-5)


@pytest.mark.parametrize("polls", [3, 12, 15, 20, 30])
def test_a_cross_fitted_run_resumes_exactly_from_anywhere(polls, tmp_path, after, whole_run):
    config = cross_fitted(tmp_path / "cut")
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(polls))
    run, _ = train(prepare(dataclasses.replace(config, resume=True)))
    for name in SAME:
        assert (run.path / name).read_bytes() == (whole_run.path / name).read_bytes(), name


def test_a_run_with_controls_resumes_exactly(tmp_path, after):
    settings = {"folds": "1", "controls": "40"}
    whole, _ = train(prepare(cross_fitted(tmp_path / "whole", settings=settings)))
    config = cross_fitted(tmp_path / "cut", settings=settings)
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(9))
    run, _ = train(prepare(dataclasses.replace(config, resume=True)))
    for name in SAME:
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    return train(prepare(cross_fitted(tmp_path_factory.mktemp("whole") / "run")))[0]


@pytest.mark.slow
def test_wide_rows_that_one_network_memorises_are_judged_well_when_held_out(tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(420) % 3
    x = rng.normal(size=(420, 400)).astype(np.float32)
    x[np.arange(420), truth] += 4
    given = np.where(rng.random(420) < 0.15, (truth + 1) % 3, truth)
    np.savez(tmp_path / "wide.npz", x=x, y=given)
    aucs = {}
    for folds in (1, 7):
        settings = {
            "folds": folds,
            "rates": "triangular",
            "weight_decay": 0.01,
            "label_smoothing": 0.0,
            "mixup_alpha": 0.0,
        }
        config = TrainConfig(
            source=str(tmp_path / "wide.npz"),
            out=str(tmp_path / f"folds-{folds}"),
            method="mend",
            net="linear",
            epochs=60,
            threads=1,
            settings=settings,
        )
        run, _ = train(prepare(config))
        rows = [line.split(",") for line in run.labels_csv.read_text().splitlines()]
        probability = np.empty(420)
        for row in rows[1:]:
            probability[int(row[0])] = -float(row[rows[0].index("rank")])
        wrong = given != truth
        aucs[folds] = (probability[wrong][:, None] > probability[~wrong]).mean()
    assert aucs[7] > aucs[1] + 0.05


def test_no_sample_is_mixed_with_one_that_its_network_must_not_learn():
    method, _ = make_method(mixup_alpha=1.0)
    batch = Batch(torch.randn(70, 3), torch.arange(70) % 2, torch.arange(70))
    (learner, *_) = make_learners(1)
    step = Step(learner, batch, 1, torch.Generator().manual_seed(0), 2)
    learned = ~method.out(1)[0, method.fold]
    mix = method.mixed(step, learned)
    alone = ~learned[mix.partner]
    assert alone.any()
    assert (mix.input_share[alone] == 1).all()
    assert (mix.target_share[alone] == 1).all()
    assert ((mix.input_share[~alone] > 0) & (mix.input_share[~alone] < 1)).all()


def test_one_network_learns_every_sample_of_a_small_set():
    method, _ = make_method(folds=1)
    assert len(method.controls()) == 0
    (learner,) = make_learners(1)
    before = learner.network.weight.detach().clone()
    batch = Batch(torch.randn(70, 3), torch.arange(70) % 2, torch.arange(70))
    loss = method.step([learner], batch, 1, torch.Generator().manual_seed(0))
    assert float(loss) > 0
    assert not torch.equal(learner.network.weight, before)


@pytest.mark.parametrize(
    ("samples", "asked", "controls"), [(100, None, 0), (100, 0, 0), (100, 20, 20), (100, 90, 50), (8_000, 800, 800)]
)
def test_one_network_has_as_many_controls_as_asked_of_every_class_its_share(samples, asked, controls):
    method, _ = make_method(samples=samples, folds=1, controls=asked)
    found = method.controls()
    assert len(found) == controls
    assert method.task.labels[found].bincount(minlength=2).tolist() == [controls // 2] * 2


def test_controls_are_never_learned_not_even_mixed_into_others():
    method, _ = make_method(folds=1, controls=10, mixup_alpha=1.0)
    (learner,) = make_learners(1)
    rows, one = method.controls(), int((method.fold == 0).nonzero()[0])
    batch = Batch(torch.randn(10, 3), method.task.labels[rows], rows)
    assert method.objectives([learner], batch, 1, torch.Generator())[0] == 0
    index = torch.tensor([one, *rows.tolist()])
    step = Step(learner, Batch(torch.randn(11, 3), method.task.labels[index], index), 1, torch.Generator(), 2)
    mix = method.mixed(step, method.fold[index] == 0)
    assert mix.partner[0] != 0
    assert mix.input_share[0] == mix.target_share[0] == 1


def test_trusted_samples_are_no_controls():
    labels = torch.arange(70) % 2
    trusted = SimpleNamespace(index=torch.arange(60), labels=labels[:60])
    method = Mend(MendOptions(folds=1, controls=35), 4)
    method.begin(Task(labels, 2, 4, trusted))
    assert set(method.controls().tolist()) <= set(range(60, 70))
    assert len(method.controls()) > 0


def test_cross_fitted_networks_have_no_controls():
    assert make_method()[0].controls() is None


def test_labels_of_a_class_smaller_than_the_folds_are_never_corrected():
    labels = torch.tensor([0, 1] * 100 + [2] * 3)
    predicted = torch.full((203, 3), 0.01)
    predicted[torch.arange(203), torch.where(torch.arange(203) % 10 == 0, 1 - labels.clamp(max=1), labels % 2)] = 0.98
    mend = Mend(MendOptions(folds=7), 2)
    mend.begin(Task(labels, 3, 2))
    wrong, judged = mend._judge(torch.arange(203), predicted)
    assert judged.probability[-3:].min() > 0.5
    assert wrong[-3:].tolist() == [0, 0, 0]
    assert wrong[0] > 0.5


@pytest.mark.parametrize(("controls", "rate"), [(500, 0.2), (0, 0.0)])
def test_wrong_labels_that_the_network_memorised_are_corrected_as_far_as_the_controls_tell(controls, rate):
    rng, truth = torch.Generator().manual_seed(0), torch.arange(4_000) % 4
    noisy = torch.rand(4_000, generator=rng) < 0.2
    labels = torch.where(noisy, (truth + torch.randint(1, 4, (4_000,), generator=rng)) % 4, truth)
    method = Mend(MendOptions(folds=1, controls=controls), 10)
    method.begin(Task(labels, 4, 10))
    predicted = (4 * F.one_hot(truth, 4) + torch.randn(4_000, 4, generator=rng)).softmax(dim=1) * 0.75 + 0.06
    own = F.one_hot(labels, 4) * (method.fold == 0)[:, None]
    memorised = predicted * torch.where(own.bool(), 5.0, 1.0)
    method.after_tracking([SimpleNamespace(mean_probs=memorised / memorised.sum(dim=1, keepdim=True))], 4)
    assert float(method.wrong.mean()) == pytest.approx(rate, abs=0.05)
    assert float(method.wrong[noisy].mean() - method.wrong[~noisy].mean()) >= 0.8 * (rate > 0)
