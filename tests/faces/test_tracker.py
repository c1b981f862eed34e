"""A training loop of one's own, watched by a tracker."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from predicted import CLASSES, LABELS, SAMPLES, logits_of, rows_of
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode

import labelmend as lm
from labelmend.faces import mixing, recorder, tracker
from labelmend.parts.mixing import mix_along


def made(**options):
    return lm.Tracker(LABELS, CLASSES, **options)


def observed(watcher, epochs=6, rows=None, size=16):
    """A tracker that has seen these rows, or all, in each epoch."""
    for epoch in range(epochs):
        for index in (torch.arange(SAMPLES) if rows is None else rows[epoch]).split(size):
            watcher.observe(index, logits_of(index, epoch))
        watcher.end_epoch()
    return watcher


def observed_epoch(watcher, index, logits):
    watcher.observe(index, logits)
    watcher.end_epoch()


def weight_of(index, epoch):
    """How much an epoch counts in which these samples were seen: a (1 - a)^2, a the share of labels it predicts."""
    agreed = sum(int(logits_of(torch.tensor([i]), epoch)[0].argmax()) == int(LABELS[i]) for i in index.tolist())
    share = (agreed + 1) / (len(index) + 2)
    return share * (1 - share) ** 2


def recorded(watcher):
    return watcher.ledger.recorded()


def same(first, second):
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


def test_in_the_warm_up_the_loss_is_plain_cross_entropy():
    index = torch.tensor([5, 0, 88])
    logits = torch.randn(3, CLASSES, requires_grad=True)
    plain, ours = F.cross_entropy(logits, LABELS[index]), made(warm_up=1).loss(logits, index)
    assert torch.allclose(ours, plain)
    assert torch.allclose(torch.autograd.grad(ours, logits)[0], torch.autograd.grad(plain, logits)[0])
    each = made(warm_up=1).loss(logits, index, reduction="none")
    assert torch.allclose(each, F.cross_entropy(logits, LABELS[index], reduction="none"))


@pytest.mark.parametrize("guess", ["hard", "soft"])
def test_after_the_warm_up_each_label_moves_toward_the_guess_by_its_probability_of_being_wrong(guess):
    watcher = observed(made(guess=guess, epochs=20), epochs=8)
    wrong, kept = watcher.noisy_probability, watcher.ledger
    assert set(wrong.topk(9).indices.tolist()) == set(range(0, 90, 10))
    index = torch.tensor([0, 3, 10, 17])
    logits = torch.randn(4, CLASSES)
    total = 0.0
    for row, sample in enumerate(index.tolist()):
        for c in range(CLASSES):
            guessed = float(kept.guesses[sample] == c) if guess == "hard" else float(kept.mean_probs[sample, c])
            share = float(wrong[sample])
            target = (1 - share) * float(LABELS[sample] == c) + share * guessed
            total -= target * float(logits[row].log_softmax(0)[c]) / len(index)
    assert float(watcher.loss(logits, index)) == pytest.approx(total, rel=1e-5)


def test_the_loss_of_mixed_inputs_is_the_mixed_loss_of_both_labels():
    watcher, index = made(warm_up=1), torch.randperm(SAMPLES)[:12]
    _, mixed = watcher.mix(torch.randn(12, 4), index, unmixed=0.25)
    logits = torch.randn(12, CLASSES)
    total = 0.0
    for row in range(12):
        share, partner = float(mixed.mix.target_share[row]), int(mixed.mix.partner[row])
        for which, weight in ((row, share), (partner, 1 - share)):
            total += weight * float(F.cross_entropy(logits[row], LABELS[index[which]])) / 12
    assert float(watcher.loss(logits, mixed)) == pytest.approx(total, rel=1e-5)


def test_unmixed_inputs_stay_as_they_are_and_only_they_are_recorded():
    watcher, index = made(), torch.randperm(SAMPLES)[:12]
    x = torch.randn(12, 2, 5)
    inputs, mixed = watcher.mix(x, index, unmixed=0.25)
    stayed = mixed.unmixed.tolist()
    assert len(stayed) == 3
    for row in range(12):
        share, partner = float(mixed.mix.input_share[row]), int(mixed.mix.partner[row])
        assert partner != row
        assert torch.allclose(inputs[row], share * x[row] + (1 - share) * x[partner], atol=1e-6)
        assert (share == 1) == (row in stayed)
    watcher.loss(torch.randn(12, CLASSES), mixed)
    watcher.end_epoch()
    assert watcher.ledger.counts.nonzero()[:, 0].tolist() == sorted(index[mixed.unmixed].tolist())


def test_samples_that_were_recorded_least_stay_unmixed_so_that_all_are_recorded_soon():
    watcher, rng = made(epochs=3), torch.Generator().manual_seed(0)
    for _ in range(3):
        for index in torch.randperm(SAMPLES, generator=rng).split(30):
            _, mixed = watcher.mix(torch.randn(30, 4), index)
            watcher.loss(logits_of(index), mixed)
        watcher.end_epoch()
    assert set(watcher.ledger.counts.tolist()) == {1, 2}


def test_mixing_depends_on_the_seed_and_the_step_and_leaves_the_callers_generator_alone():
    x, index = torch.randn(20, 4), torch.arange(20)
    before = torch.get_rng_state()
    one, again, other = made(seed=1), made(seed=1), made(seed=2)
    first, second = one.mix(x, index)[0], one.mix(x, index)[0]
    assert torch.equal(again.mix(x, index)[0], first)
    assert not torch.equal(second, first)
    assert not torch.equal(other.mix(x, index)[0], first)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_of_any_size_give_the_same_record():
    whole = recorded(observed(made(), size=SAMPLES))
    assert same(recorded(observed(made(), size=7)), whole)
    assert same(recorded(observed(made(epochs=6))), whole)


def test_losses_are_recorded_as_observations_are():
    watcher = made()
    for epoch in range(6):
        for index in torch.arange(SAMPLES).split(32):
            watcher.loss(logits_of(index, epoch).requires_grad_(), index)
        watcher.end_epoch()
    assert same(recorded(watcher), recorded(observed(made())))


def test_means_of_a_sample_are_over_the_passes_in_which_it_was_seen():
    rng = torch.Generator().manual_seed(0)
    rows = [torch.randperm(SAMPLES, generator=rng)[:60] for _ in range(8)]
    kept = observed(made(), epochs=8, rows=rows).ledger
    weights = [weight_of(rows[epoch], epoch) for epoch in range(8)]
    for sample in range(SAMPLES):
        seen = [epoch for epoch in range(8) if sample in rows[epoch]]
        weight = torch.tensor([weights[epoch] for epoch in seen])
        weight = weight / weight.sum()
        probs = torch.stack([logits_of(torch.tensor([sample]), epoch)[0].softmax(0) for epoch in seen])
        own = probs[:, LABELS[sample]]
        margin = (1 - own + 1e-4).log() - (own + 1e-4).log()
        rival = probs.scatter(1, LABELS[sample].expand(len(seen), 1), 0).max(dim=1).values
        assert kept.counts[sample] == len(seen)
        assert kept.mean_probs[sample].numpy() == pytest.approx((weight @ probs).numpy(), abs=1e-5)
        assert float(kept.margins[sample]) == pytest.approx(float(weight @ margin), abs=1e-4)
        assert float(kept.disagreement_rate[sample]) == pytest.approx(float(weight @ (rival > own).float()), abs=1e-5)


def test_a_sample_that_is_seen_late_is_not_averaged_with_zeros():
    rows = [torch.arange(1, SAMPLES)] * 5 + [torch.arange(SAMPLES)]
    watcher = observed(made(warm_up=0), epochs=6, rows=rows)
    late = logits_of(torch.tensor([0]), 5)[0].softmax(0)
    assert watcher.ledger.mean_probs[0].numpy() == pytest.approx(late.numpy(), abs=1e-6)


def test_sampling_with_replacement_gives_means_of_predictions():
    watcher, rng = made(repeats=True, warm_up=0), torch.Generator().manual_seed(0)
    for _ in range(10):
        for _ in range(6):
            index = torch.randint(SAMPLES, (15,), generator=rng)
            watcher.observe(index, logits_of(index))
        watcher.end_epoch()
    expected = logits_of(torch.arange(SAMPLES)).softmax(dim=1)
    assert (watcher.ledger.counts > 0).all()
    assert torch.allclose(watcher.ledger.mean_probs, expected, atol=1e-5)


def test_the_table_names_the_contradicted_labels_in_the_callers_words():
    names = ["ant", "bee", "cow"]
    ids = [f"photo-{row}.png" for row in range(SAMPLES)]
    watcher = lm.Tracker([names[label] for label in LABELS], 3, ids=ids, class_names=names, epochs=10)
    table = observed(watcher, epochs=10).table()
    assert list(table["id"]) == ids
    assert set(table.suspects()) == set(range(0, 90, 10))
    assert table["given"][10] == "bee"
    assert table["suggested"][10] == "cow"
    assert "9 are flagged" in table.summary()
    assert watcher.noise_rate == pytest.approx(0.1, abs=0.01)


def test_samples_that_were_never_seen_are_named_or_left_out():
    watcher = observed(made(epochs=6), rows=[torch.arange(2, SAMPLES)] * 6)
    with pytest.raises(lm.InputError, match="2 of 90 samples were not recorded, such as sample 0"):
        watcher.table()
    table = watcher.table(partial=True)
    assert list(table["id"]) == [str(row) for row in range(2, SAMPLES)]
    assert (watcher.noisy_probability[:2] == 0).all()
    assert watcher.noisy_probability[10] > 0.5


def test_epochs_in_which_all_labels_are_memorised_hardly_count():
    watcher = observed(made(), epochs=4)
    before = watcher.table()
    for _ in range(40):
        watcher.observe(torch.arange(SAMPLES), 8 * F.one_hot(LABELS, CLASSES).float())
        watcher.end_epoch()
    table = watcher.table()
    assert set(table.suspects()) == set(before.suspects()) == set(range(0, 90, 10))
    assert np.abs(table["margin"] - before["margin"]).max() < 1.5  # of the ten that equal weights would give
    assert (watcher.ledger.counts == 44).all()


def test_the_warm_up_is_a_quarter_of_the_epochs_or_five():
    assert [made(epochs=epochs).warm_up for epochs in (40, 6, 1)] == [10, 2, 1]
    assert made().warm_up == 5
    assert made(epochs=40, warm_up=3).warm_up == 3


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (None, "the index of the batch is missing"),
        (torch.tensor([0.0, 1.0]), "one whole number a sample, .n., not torch.float32"),
        (torch.tensor([True, False]), "not torch.bool"),
        (["a", "b"], "one whole number a sample, .n., not a list"),
        (torch.tensor([[0, 1]]), r"of shape \(1, 2\)"),
        (torch.tensor([0, 90]), "index 90 is not among the positions of 90 labels, 0 to 89"),
        (torch.tensor([-1, 4]), "index -1 is not among"),
        (torch.tensor([1, 2, 3]), "logits of 2 samples, but 3 indices"),
    ],
)
def test_an_index_that_cannot_be_used_is_refused_by_one_sentence(index, sentence):
    logits = torch.zeros(2, CLASSES)
    with pytest.raises(lm.InputError, match=sentence):
        made().loss(logits, index)
    with pytest.raises(lm.InputError, match=sentence):
        observed_epoch(made(), index, logits)


def test_an_index_repeated_in_an_epoch_is_refused_at_its_end_and_the_next_epoch_is_free_of_it():
    watcher = made()
    for _ in range(2):
        watcher.observe(torch.arange(20), logits_of(torch.arange(20)))
    with pytest.raises(lm.InputError, match="sample 0 was recorded 2 times in this epoch, and so were 19 others"):
        watcher.end_epoch()
    watcher.observe(torch.arange(20), logits_of(torch.arange(20)))
    watcher.end_epoch()


def as_on_a_gpu(index, samples):
    return index.clamp(0, samples - 1)


def test_indices_on_a_gpu_are_checked_at_the_end_of_the_epoch(monkeypatch):
    monkeypatch.setattr(recorder, "within", as_on_a_gpu)
    watcher = made()
    watcher.observe(torch.tensor([3, 90, 400]), torch.zeros(3, CLASSES))
    with pytest.raises(lm.InputError, match="2 indices of this epoch are not among the positions of 90 labels"):
        watcher.end_epoch()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: made().loss(torch.arange(4), torch.zeros(4, CLASSES)), r"logits must be \[samples, 3\]"),
        (lambda: made().observe(torch.zeros(4, CLASSES), torch.arange(4)), "order of arguments"),
        (lambda: made().loss(torch.zeros(4, 2), torch.arange(4)), r"not of shape \(4, 2\)"),
        (lambda: made().mix(torch.zeros(4, 2, dtype=torch.int64), torch.arange(4)), "torch.int64 cannot be mixed"),
        (lambda: made().mix(torch.zeros(4, 2), torch.arange(5)), "4 inputs, but 5 indices"),
        (lambda: made().mix(torch.zeros(4, 2), torch.arange(4), alpha=0), "alpha must be above 0"),
        (lambda: made().mix(torch.zeros(4, 2), torch.arange(4), unmixed=1.5), "unmixed from 0 to 1"),
        (lambda: made().table(), "nothing has been recorded yet"),
        (lambda: made(warm_up=0).end_epoch(), "nothing was recorded in 1 epochs"),
        (lambda: made(epochs=0), "epochs must be at least 1, not 0"),
        (lambda: made(guess="firm"), "unknown guess 'firm'"),
        (lambda: made(ids=["a"]), "90 labels, but 1 ids"),
        (lambda: made(class_names=["a"]), "1 class names for 3 classes"),
        (lambda: lm.Tracker(LABELS, 2), "name the class of each column|whole numbers from 0 to 1"),
        (lambda: lm.Tracker(LABELS, 1), "classes must be at least 2, not 1"),
        (lambda: lm.Tracker([], 2), "one a sample"),
        (lambda: lm.Tracker(np.arange(60), 60), "occur only once"),
        (lambda: lm.Tracker(LABELS[:60], 3).load_state_dict(made().state_dict()), "of 90 samples in 3 classes"),
    ],
)
def test_what_cannot_be_used_is_refused_by_one_sentence(call, sentence):
    with pytest.raises(lm.InputError, match=sentence) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_accumulated_gradients_are_those_of_the_whole_batch_and_the_record_is_the_same():
    torch.manual_seed(0)
    x, weight = torch.randn(SAMPLES, 5), torch.randn(5, CLASSES, requires_grad=True)
    whole, parts = observed(made(epochs=8), epochs=4), observed(made(epochs=8), epochs=4)
    index = torch.randperm(SAMPLES)
    (expected,) = torch.autograd.grad(whole.loss(x[index] @ weight, index), weight)
    for part in index.split(30):
        (parts.loss(x[part] @ weight, part) / 3).backward()
    assert torch.allclose(weight.grad, expected, atol=1e-6)
    whole.end_epoch()
    parts.end_epoch()
    assert torch.allclose(whole.ledger.margins, parts.ledger.margins, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_logits_of_half_precision_give_a_loss_of_full_precision_and_nearly_the_same_record(dtype):
    half, full = made(epochs=4), made(epochs=4)
    for epoch in range(4):
        for watcher, kind in ((half, dtype), (full, torch.float32)):
            logits = logits_of(torch.arange(SAMPLES), epoch).to(kind).requires_grad_()
            loss = watcher.loss(logits, torch.arange(SAMPLES))
            loss.backward()
            assert loss.dtype == torch.float32
            assert logits.grad.dtype == kind
            watcher.end_epoch()
    assert torch.allclose(half.ledger.margins, full.ledger.margins, atol=0.05)
    inputs, _ = half.mix(torch.randn(6, 2).to(dtype), torch.arange(6))
    assert inputs.dtype == dtype


def test_predictions_that_are_not_finite_do_not_spoil_the_record():
    watcher, index = made(warm_up=0), torch.arange(SAMPLES)
    for epoch in range(3):
        logits = logits_of(index, epoch)
        logits[0, 0], logits[1] = torch.inf, torch.nan
        watcher.observe(index, logits)
        watcher.end_epoch()
    assert all(values.isfinite().all() for values in recorded(watcher).values())
    assert len(watcher.table()) == SAMPLES


def test_predictions_may_be_overwritten_after_they_were_observed():
    watcher, index = made(warm_up=0), torch.arange(SAMPLES)
    reused = logits_of(index)
    watcher.observe(index, reused)
    reused.zero_()
    watcher.end_epoch()
    assert torch.allclose(watcher.ledger.mean_probs, logits_of(index).softmax(dim=1))


def test_predictions_of_inference_mode_are_recorded_as_others_are():
    watcher = made(warm_up=0)
    for epoch in range(6):
        with torch.inference_mode():
            watcher.observe(torch.arange(SAMPLES), logits_of(torch.arange(SAMPLES), epoch))
            if epoch == 3:
                watcher.recorder.flush()
                assert watcher.noise_rate > 0
        watcher.end_epoch()
    assert same(recorded(watcher), recorded(observed(made())))
    watcher.load_state_dict(observed(made()).state_dict())


def test_a_loop_that_goes_on_from_its_state_ends_as_one_that_never_stopped():
    def loop(watcher, epochs):
        for epoch in epochs:
            for index in torch.arange(SAMPLES).split(20):
                x, mixed = watcher.mix(logits_of(index, epoch), index)
                found.append(watcher.loss(x, mixed))
            watcher.end_epoch()
        return watcher

    found = []
    whole, first = loop(made(epochs=9), range(9)), loop(made(epochs=9), range(5))
    stored = io.BytesIO()
    torch.save(first.state_dict(), stored)
    stored.seek(0)
    second = made(epochs=9)
    second.load_state_dict(torch.load(stored, weights_only=True))
    loop(second, range(5, 9))
    assert same(recorded(second), recorded(whole))
    assert torch.equal(second.noisy_probability, whole.noisy_probability)
    assert torch.equal(torch.stack(found[70:]), torch.stack(found[25:45]))


def test_a_sweep_records_all_samples_in_evaluation_mode_and_leaves_the_modes_as_they_were():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen = nn.BatchNorm1d(1).eval()
            self.seen = []

        def forward(self, index):
            self.seen.append((self.training, torch.is_grad_enabled()))
            return logits_of(index)

    model, watcher = Table(), made(warm_up=0)
    watcher.observe(torch.arange(30), logits_of(torch.arange(30), 1))
    watcher.sweep(model, [(index, index) for index in torch.arange(SAMPLES).split(40)])
    watcher.end_epoch()
    assert model.seen == [(False, False)] * 3
    assert model.training
    assert not model.frozen.training
    assert watcher.ledger.counts.tolist() == [2] * 30 + [1] * 60
    assert torch.allclose(watcher.ledger.mean_probs[30:], logits_of(torch.arange(30, 90)).softmax(dim=1))


def test_no_more_bytes_are_kept_than_documented():
    for classes in (3, 10):
        watcher = lm.Tracker(np.arange(20_000) % classes, classes)
        index = torch.arange(20_000)
        for part in index.split(512):
            watcher.observe(part, torch.zeros(len(part), classes))
        watcher.end_epoch()
        kept = [value for owner in (watcher, watcher.recorder, watcher.ledger) for value in vars(owner).values()]
        found = sum(value.nbytes for value in kept if isinstance(value, torch.Tensor))
        assert found // 20_000 == watcher.bytes_per_sample == 50 + 4 * classes
    assert "50 and 4 for each class" in lm.Tracker.__doc__
    page = Path(__file__).parents[2] / "docs/faces/pytorch.md"
    assert "50 bytes a sample and 4 for each class" in page.read_text()


class Ops(TorchFunctionMode):
    """Names of the functions of torch that are called inside, and whether any of them takes a mask."""

    def __init__(self):
        super().__init__()
        self.names = []
        self.masked = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        if self.names[-1] in ("__getitem__", "__setitem__"):
            self.masked |= isinstance(args[1], torch.Tensor) and args[1].dtype == torch.bool
        return func(*args, **(kwargs or {}))


def test_no_step_reads_a_value_from_the_device(monkeypatch):
    for module in (tracker, recorder):
        monkeypatch.setattr(module, "within", as_on_a_gpu)
    monkeypatch.setattr(mixing, "draw_share", lambda alpha, rng: 0.3)  # drawn on the host, from no tensor of a device
    watcher = observed(made(epochs=8), epochs=4)
    index, other = torch.arange(40), torch.arange(40, 80)
    watcher.loss(torch.randn(40, CLASSES), index)  # the first step of an epoch may wait: the labels are judged again
    with Ops() as ops:
        x, mixed = watcher.mix(torch.randn(40, CLASSES), other)
        watcher.loss(x, mixed)
        watcher.observe(torch.arange(80, 90), torch.randn(10, CLASSES))
        watcher.recorder.flush()
    assert len(ops.names) > 30
    waiting = {
        "item",
        "tolist",
        "__int__",
        "__float__",
        "__bool__",
        "__index__",
        "nonzero",
        "masked_select",
        "cpu",
        "numpy",
    }
    assert not waiting & set(ops.names)
    assert not ops.masked


def test_mix_along_takes_the_one_before_in_the_order():
    order = torch.tensor([3, 1, 0, 2])
    mix = mix_along(order, 0.7)
    for place, sample in enumerate(order.tolist()):
        assert mix.partner[sample] == order[place - 1]
    assert mix.input_share.tolist() == pytest.approx([0.7] * 4)


def test_two_processes_end_with_one_record_of_every_sample(tmp_path):
    script = Path(__file__).with_name("tracker_rank.py")
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, tmp_path]
    digits = load_digits()
    torch.save([torch.tensor(digits.data), torch.tensor(digits.target)], tmp_path / "digits.pt")
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first["fixed"] == second["fixed"]
    assert first["learned"] == second["learned"]
    assert first["learned"]["ids"] == [str(row) for row in range(len(first["learned"]["ids"]))]
    assert set(first["learned"]["counts"]) == {5}
    wrong, rank = np.array(first["learned"]["wrong"]), np.array(first["learned"]["rank"])
    assert roc_auc_score(wrong, -rank) > 0.9
    assert "another process" in second["refused"]
    assert "sample 1 was recorded 2 times" in first["refused"]
    # Each row is as in a process that is alone with the samples of its owner; of those that both have, the first owns.
    alone = []
    for rank in (0, 1):
        watcher = made()
        for epoch in range(5):
            index = rows_of(rank, epoch)
            watcher.observe(index, logits_of(index, epoch))
            watcher.end_epoch()
        alone.append(recorded(watcher))
    for name, values in first["fixed"].items():
        assert values == [*alone[0][name][:60].tolist(), *alone[1][name][60:].tolist()], name
    assert first["fixed"]["counts"] == [5] * 89 + [4]
