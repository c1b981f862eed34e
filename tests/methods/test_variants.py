import json

import numpy as np
import pytest
import torch
from counting import Counting
from scipy import stats
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Step, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods import find
from labelmend.methods.paper import PaperOptions
from labelmend.methods.variants import VARIANTS
from labelmend.mixture import BetaMixture
from labelmend.nets import build_net
from labelmend.parts.mixing import draw_partner, draw_share
from labelmend.parts.targets import hard, soft
from labelmend.run.directory import RunDirectory
from labelmend.training.trainer import Trainer

SAMPLES, CLASSES, BATCH = 1001, 3, 40
BOTH = pytest.mark.parametrize("details", ["paper", "released"])


def make_task():
    return Task(torch.arange(SAMPLES) % CLASSES, CLASSES, 300)


def two_humps(seed=0):
    """Losses of which every third is high, all different."""
    rng = np.random.default_rng(seed)
    high = np.arange(SAMPLES) % 3 == 0
    return torch.from_numpy(np.where(high, rng.gamma(30, 0.1, SAMPLES), rng.gamma(1, 0.2, SAMPLES))).float()


def filled_ledger(losses):
    ledger = Ledger(len(losses))
    ledger.losses = losses
    return ledger


def build(details, name="m-dyr-h", *, losses=None, epochs=300):
    """A method of the preset, with its noise model fitted."""
    method = find(name).build(PaperOptions(details=details), epochs)
    ledger = filled_ledger(two_humps() if losses is None else losses)
    if "mean_log_probs" in method.records:
        ledger.keep_mean_log_probs(CLASSES)
    method.begin(make_task(), [ledger])
    method.after_tracking([ledger], 1)
    return method


def make_step(epoch=150, seed=0):
    rng = torch.Generator().manual_seed(seed)
    network = Counting()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))
    inputs = 3 + 2 * torch.randn(BATCH, 4, generator=rng)
    index = torch.randperm(SAMPLES, generator=rng)[:BATCH]
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    return Step(learner, Batch(inputs, make_task().labels[index], index), epoch, rng, CLASSES)


def taken_step(method, epoch=150, seed=0):
    """The step of a recipe as far as its targets, and the targets."""
    step = make_step(epoch, seed)
    recipe = method.recipe(epoch)
    step.mix = recipe.mixing(step)
    return step, recipe.targets(step)


def test_paper_scales_losses_by_their_maximum():
    scale = build("paper").estimate().parameters
    assert scale["low"] == 0
    assert scale["span"] == two_humps().max().item()


def test_released_scales_losses_between_the_5th_and_the_95th_percentile():
    scale = build("released").estimate().parameters
    low, high = np.percentile(two_humps().double().numpy(), [5, 95])
    assert scale["low"] == pytest.approx(low + 1e-5, abs=1e-9)
    assert scale["span"] == pytest.approx(high - (low + 1e-5) + 1e-6, abs=1e-9)


def with_larger_extremes():
    losses = two_humps()
    order = losses.argsort()
    losses[order[-30:]] *= 5
    losses[order[:30]] /= 5
    return losses


def test_paper_fits_the_extreme_losses_too():
    assert build("paper").estimate().parameters != build("paper", losses=with_larger_extremes()).estimate().parameters


def test_released_fits_only_the_middle_of_the_losses():
    usual, extreme = (build("released", losses=losses) for losses in (two_humps(), with_larger_extremes()))
    assert usual.estimate().parameters == extreme.estimate().parameters
    model = usual.noise_tracker.model
    middle = two_humps().sort().values[50:951].double()
    expected = BetaMixture().fit(model.scale(middle)).named_parameters()
    assert model.mixture.named_parameters() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("details", "edge"), [("paper", 1e-4), ("released", 1e-3)])
def test_scaled_losses_keep_their_distance_from_zero_and_one(details, edge):
    model = build(details).noise_tracker.model
    scaled = model.scale(torch.tensor([-1.0, 0.0, two_humps().max().item(), 1e6], dtype=torch.float64))
    assert scaled.tolist() == pytest.approx([edge, edge, 1 - edge, 1 - edge], abs=1e-12)


def test_paper_posterior_is_bayes_rule_at_each_loss():
    model = build("paper").noise_tracker.model
    losses = torch.linspace(0.1, 0.9 * model.span, 5000, dtype=torch.float64)
    fitted, scaled = model.mixture.named_parameters(), losses.numpy() / model.span
    clean, noisy = (
        fitted[f"weight_{name}"] * stats.beta.pdf(scaled, fitted[f"alpha_{name}"], fitted[f"beta_{name}"])
        for name in ("clean", "noisy")
    )
    rising = slice(int((noisy / clean).argmin()), int((noisy / clean).argmax()) + 1)
    posterior = model.posterior(losses)[rising]
    np.testing.assert_allclose(posterior, (noisy / (clean + noisy))[rising], rtol=1e-8, atol=1e-10)
    assert len(posterior.unique()) > 1000


def test_released_posterior_is_a_table_of_100_values():
    model = build("released").noise_tracker.model
    cells = torch.arange(100, dtype=torch.float64)
    table = model.mixture.posterior(torch.linspace(1e-3, 1 - 1e-3, 100, dtype=torch.float64))
    for within in (0.02, 0.5, 0.98):
        losses = model.low + model.span * (cells + within) / 100
        torch.testing.assert_close(model.posterior(losses), table, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("details", "floor"), [("paper", 0.0), ("released", 1e-4)])
def test_the_share_has_a_floor_only_in_the_released_code(details, floor):
    losses = torch.tensor([0.01, 5.0]).repeat(SAMPLES)[:SAMPLES]
    method, step = build(details, "dy-h", losses=losses), make_step()
    sure = method.noise_tracker.probability
    assert sure.min() < 1e-5
    assert sure.max() > 1 - 1e-5
    shares = method.noise_tracker.stored(step)
    assert shares.min().item() == pytest.approx(floor, abs=1e-5)
    assert shares.max().item() == pytest.approx(1 - floor, abs=1e-5)


def test_the_released_floor_reaches_the_targets():
    losses = torch.tensor([0.01, 5.0]).repeat(SAMPLES)[:SAMPLES]
    _, targets = taken_step(build("released", "dy-h", losses=losses))
    corrected = targets.amax(dim=1) < 1
    assert corrected.any()
    assert targets[corrected].amax(dim=1).max().item() == pytest.approx(1 - 1e-4, abs=1e-6)


def eval_losses(step):
    with step.learner.evaluating():
        return F.cross_entropy(step.learner(step.batch.inputs), step.batch.labels, reduction="none")


@pytest.mark.parametrize("name", ["dy-h", "m-dyr-h", "md-dyr-h"])
def test_paper_takes_the_share_from_the_loss_in_the_ledger(name):
    method, step = build("paper", name), make_step()
    stored = method.noise_tracker.model.posterior(two_humps()[step.batch.index])
    assert torch.equal(method.recipe(300).targets.share(step), stored)
    assert step.learner.network.passes == []


@pytest.mark.parametrize("name", ["dy-h", "m-dyr-h", "md-dyr-h"])
def test_released_takes_the_share_from_the_current_loss_of_the_view(name):
    method, step = build("released", name), make_step()
    current = method.noise_tracker.model.posterior(eval_losses(step)).clamp(1e-4, 1 - 1e-4)
    step.learner.network.passes.clear()
    assert torch.equal(method.recipe(300).targets.share(step), current)
    assert step.learner.network.modes == ["eval"]
    stored = method.noise_tracker.model.posterior(two_humps()[step.batch.index])
    assert not torch.allclose(current, stored, atol=0.1)


@BOTH
def test_dynamic_mixup_takes_its_shares_where_bootstrapping_does(details):
    method = build(details, "md-dyr-h")
    step = make_step(108)
    wrong = method.recipe(300).targets.share(step)
    mix = method.recipe(108).mixing(step)
    clean = (1 - wrong).clamp_min(1e-6)
    torch.testing.assert_close(mix.input_share, clean / (clean + clean[mix.partner]))


def guess_toward(targets, step, shares):
    return (targets - (1 - shares[:, None]) * step.labels) / shares[:, None]


def test_paper_guesses_in_evaluation_mode_and_leaves_batchnorm_alone():
    method = build("paper", losses=two_humps())
    method.noise_tracker.probability.fill_(0.5)
    step, targets = taken_step(method)
    assert step.learner.network.modes == ["eval"]
    assert torch.equal(step.learner.network.norm.running_mean, torch.zeros(4))
    guess = guess_toward(targets, step, torch.full((BATCH,), 0.5))
    torch.testing.assert_close(guess, hard(step.clean_logits(), 150))
    assert not torch.equal(hard(step.clean_logits(), 150), hard(step.clean_logits(training=True), 150))


def test_released_guesses_in_training_mode_and_moves_batchnorm():
    method = build("released")
    step, targets = taken_step(method)
    assert step.learner.network.modes == ["eval", "train"]
    moved = 0.1 * step.batch.inputs.mean(dim=0)
    torch.testing.assert_close(step.learner.network.norm.running_mean, moved)
    shares = method.noise_tracker.current(step)
    sure = shares > 0.01
    assert sure.any()
    guess = guess_toward(targets, step, shares)
    torch.testing.assert_close(guess[sure], hard(step.clean_logits(training=True), 150)[sure], rtol=0, atol=1e-3)


@pytest.mark.parametrize(("name", "guess"), [("m-dyr-h", hard), ("m-dyr-s", soft)])
def test_fast_guesses_what_the_tracking_passes_saw_and_runs_no_pass(name, guess):
    method = find(name).build(PaperOptions(details="fast"), 300)
    ledger = Ledger(SAMPLES)
    if "mean_log_probs" in method.records:
        ledger.keep_mean_log_probs(CLASSES)
    logits = 3 * torch.randn(SAMPLES, CLASSES, generator=torch.Generator().manual_seed(1))
    ledger.open_pass()
    ledger.write(torch.arange(SAMPLES), make_task().labels, logits)
    method.begin(make_task(), [ledger])
    method.after_tracking([ledger], 5)
    method.noise_tracker.probability.fill_(0.5)
    step, targets = taken_step(method)
    assert step.learner.network.passes == []
    seen = guess(logits[step.batch.index], 150)
    torch.testing.assert_close(guess_toward(targets, step, torch.full((BATCH,), 0.5)), seen, rtol=0, atol=2e-3)


def test_beliefs_are_kept_only_for_soft_guesses_that_run_no_pass():
    names = ("ce", "dy-s", "dy-h", "m-dyr-h", "m-dyr-s", "md-dyr-h", "md-dyr-sh")
    kept = {
        (details, name) for details in VARIANTS for name in names if "mean_log_probs" in build(details, name).records
    }
    assert kept == {("fast", "m-dyr-s"), ("fast", "md-dyr-sh")}


def test_fast_tracks_every_fifth_epoch_and_before_a_recipe_takes_over():
    tracked = [epoch for epoch in range(1, 301) if build("fast").tracks(epoch)]
    assert tracked == list(range(5, 301, 5))
    short = find("m-dyr-h").build(PaperOptions(details="fast"), 60)
    assert [epoch for epoch in range(1, 61) if short.tracks(epoch)] == [5, 10, 15, 20, 21, *range(25, 61, 5)]
    assert all(build(details).tracks(epoch) for details in ("paper", "released") for epoch in range(1, 301))


PASSES = {
    ("fast", "ce"): ["train"],
    ("fast", "dy-h"): ["train"],
    ("fast", "m-dyr-h"): ["train"],
    ("fast", "md-dyr-sh"): ["train"],
    ("paper", "ce"): ["train"],
    ("paper", "dy-h"): ["train"],
    ("paper", "m-dyr-h"): ["eval", "train"],
    ("paper", "md-dyr-sh"): ["eval", "train"],
    ("released", "ce"): ["train"],
    ("released", "dy-h"): ["eval", "train"],
    ("released", "m-dyr-h"): ["eval", "train", "train"],
    ("released", "md-dyr-sh"): ["eval", "train", "train"],
}


@pytest.mark.parametrize(("details", "name"), PASSES)
def test_a_step_runs_the_passes_of_its_preset_and_no_more(details, name):
    method, step = build(details, name), make_step(300)
    method.step([step.learner], step.batch, 300, step.rng)
    assert step.learner.network.modes == PASSES[details, name]


class RecordingFeed:
    """A feed that remembers whether each sweep was asked to augment."""

    steps = 1

    def __init__(self):
        self.augmented = []
        self.batch = Batch(torch.linspace(-1, 1, 96).view(24, 4), torch.arange(24) % CLASSES, torch.arange(24))

    def __len__(self):
        return len(self.batch)

    def shuffled(self, draws, *, views=1, start=0):
        yield self.batch

    def sweep(self, rng=None, *, rows=None):
        self.augmented.append(rng is not None)
        yield self.batch


@pytest.mark.parametrize(("details", "augmented"), [("paper", False), ("released", True)])
def test_only_the_released_code_tracks_losses_on_augmented_images(details, augmented, tmp_path):
    feed, run = RecordingFeed(), RunDirectory(tmp_path / "run")
    run.create({})
    method = find("m-dyr-h").build(PaperOptions(details=details), 2)
    task = Task(feed.batch.labels, CLASSES, 2)
    Trainer(method, [make_step().learner], feed, task, run, seed=0).train()
    assert method.track_augmented is augmented
    assert feed.augmented == [augmented] * 2


@pytest.mark.parametrize("name", ["md-dyr-h", "md-dyr-sh"])
def test_paper_draws_the_target_share_of_bootstrapped_dynamic_mixup(name):
    shares = [taken_step(build("paper", name), seed=seed)[0].mix.target_share for seed in range(5)]
    assert all(len(share.unique()) == 1 for share in shares)
    assert len({share[0].item() for share in shares}) == 5


@pytest.mark.parametrize("name", ["md-dyr-h", "md-dyr-sh"])
def test_released_mixes_the_targets_of_bootstrapped_dynamic_mixup_half_and_half(name):
    for epoch in (111, 300):
        step, _ = taken_step(build("released", name), epoch)
        assert step.mix.target_share.tolist() == [0.5] * BATCH
        assert len(step.mix.input_share.unique()) > 1


@BOTH
@pytest.mark.parametrize("name", ["md-dyr-h", "md-dyr-sh"])
def test_dynamic_mixup_before_bootstrapping_draws_its_target_share_in_both(name, details):
    method = build(details, name)
    for epoch in (106, 110):
        step, _ = taken_step(method, epoch)
        again = make_step(epoch)
        assert torch.equal(draw_partner(again), step.mix.partner)
        assert step.mix.target_share.tolist() == pytest.approx([draw_share(32.0, again.rng)] * BATCH)


@BOTH
def test_plain_mixup_uses_one_share_for_inputs_and_targets_in_both(details):
    step, _ = taken_step(build(details, "m-dyr-h"))
    assert torch.equal(step.mix.input_share, step.mix.target_share)
    assert step.mix.target_share[0] != 0.5


@pytest.mark.parametrize(("details", "coldest"), [("paper", 200), ("released", 199)])
def test_the_guess_is_coldest_from_this_epoch_on(details, coldest):
    guess = build(details, "md-dyr-sh").recipe(111).targets.guess
    logits = torch.tensor([[0.002, 0.0]], dtype=torch.float64)
    sharpest = (logits / 0.001).softmax(dim=1)
    torch.testing.assert_close(guess(logits, 111), logits.softmax(dim=1))
    torch.testing.assert_close(guess(logits, coldest), sharpest)
    torch.testing.assert_close(guess(logits, 300), sharpest)
    assert guess(logits, coldest - 1)[0, 0] < sharpest[0, 0] - 0.1


def test_released_temperatures_are_the_89_of_its_linspace():
    temperature = build("released", "md-dyr-sh").recipe(111).targets.guess.temperature
    assert [temperature(epoch) for epoch in range(111, 200)] == pytest.approx(np.linspace(1, 0.001, 89))


def norms_outside_blocks(net):
    return [name for name, module in net.named_modules() if isinstance(module, nn.BatchNorm2d) and "blocks" not in name]


@pytest.mark.parametrize(("details", "place"), [("paper", "head_norm"), ("released", "stem_norm")])
def test_the_batchnorm_outside_the_blocks_is_at_the_head_or_at_the_stem(details, place):
    net = build_net(
        "slim-resnet", (3, 8, 8), CLASSES, rng=torch.Generator().manual_seed(0), norm_at=VARIANTS[details].norm_at
    )
    assert norms_outside_blocks(net) == [place]
    seen = []
    net.blocks.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    features = net.features(torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    assert (seen[0] >= 0).all() == (place == "stem_norm")
    assert (features >= 0).all() == (place == "head_norm")


@pytest.mark.parametrize(("details", "place"), [("paper", "head"), ("released", "stem")])
def test_a_run_builds_the_network_of_its_preset(details, place, train_digits):
    run = train_digits(net="slim-resnet", epochs=1, limit=40, settings={"details": details})
    assert json.loads(run.model_json.read_text())["norm_at"] == place
