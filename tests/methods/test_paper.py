import pytest
import torch
from torch import nn

from labelmend.core import Batch, Learner, Step, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods import find
from labelmend.methods.paper import PaperOptions
from labelmend.mixture import BetaMixture, GaussianMixture, NoiseModel
from labelmend.parts.mixing import Mixup
from labelmend.parts.penalties import UniformPrior
from labelmend.parts.targets import given, hard, soft

PLAIN = ("ce", "st-s", "st-h", "dy-s", "dy-h")
MIXED = ("m", "m-dyr-s", "m-dyr-h", "md-dyr-h", "md-dyr-sh")
SAMPLES, CLASSES = 60, 3


def build(name, epochs, **options):
    return find(name).build(PaperOptions(**options), epochs)


def starts(method, epochs):
    """The first epoch of each phase."""
    phases = [method.phase(epoch) for epoch in range(1, epochs + 1)]
    return {phase: phases.index(phase) + 1 for phase in phases}


def drops(method, epochs):
    """The epochs after which the learning rate is a tenth."""
    rates = [method.rate(epoch) for epoch in range(1, epochs + 1)]
    found = [i + 1 for i in range(epochs - 1) if rates[i + 1] == pytest.approx(0.1 * rates[i])]
    assert rates[0] == 1
    assert rates[-1] == pytest.approx(0.1 ** len(found))
    return found


def make_task(epochs=3):
    return Task(torch.arange(SAMPLES) % CLASSES, CLASSES, epochs)


def make_learner(seed=0):
    rng = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.01))


def make_step(epoch=1, seed=0):
    rng = torch.Generator().manual_seed(seed)
    inputs, labels = torch.randn(SAMPLES, 4, generator=rng), make_task().labels
    return Step(make_learner(seed), Batch(inputs, labels, torch.arange(SAMPLES)), epoch, rng, CLASSES)


def two_humps(scale=1.0):
    """Losses of which every fourth is high."""
    return scale * (torch.where(torch.arange(SAMPLES) % 4 == 0, 3.0, 0.3) + torch.linspace(0, 0.8, SAMPLES))


def filled_ledger(losses):
    ledger = Ledger(SAMPLES)
    ledger.losses = losses
    return ledger


def fitted(method):
    method.begin(make_task())
    method.after_tracking([filled_ledger(two_humps())], 1)
    return method


def share_toward_guess(targets, step, guess):
    """How far the targets have moved from the labels to the guess, for samples where the two differ."""
    moved = guess - step.labels
    differs = moved.abs().sum(dim=1) > 1e-3
    return (((targets - step.labels) * moved).sum(dim=1) / moved.square().sum(dim=1))[differs], differs


@pytest.mark.parametrize("name", ["m-dyr-s", "m-dyr-h"])
def test_mixup_with_bootstrapping_warms_up_for_105_of_300_epochs(name):
    method = build(name, 300)
    assert starts(method, 300) == {"mixup warm-up": 1, "mixup + dynamic bootstrapping": 106}
    assert drops(method, 300) == [100, 250]


@pytest.mark.parametrize("name", ["md-dyr-h", "md-dyr-sh"])
def test_dynamic_mixup_is_guided_from_106_and_bootstraps_from_111_of_300_epochs(name):
    method = build(name, 300)
    expected = {"mixup warm-up": 1, "dynamic mixup": 106, "dynamic mixup + dynamic bootstrapping": 111}
    assert starts(method, 300) == expected
    assert [method.phase(epoch) for epoch in range(106, 111)] == ["dynamic mixup"] * 5
    assert drops(method, 300) == [100, 250]


@pytest.mark.parametrize("name", PLAIN[1:])
def test_plain_bootstrapping_begins_in_epoch_31_of_120(name):
    method = build(name, 120)
    assert list(starts(method, 120).values()) == [1, 31]
    assert method.phase(30) == "warm-up"
    assert "bootstrapping" in method.phase(31)
    assert drops(method, 120) == [30, 80, 110]


@pytest.mark.parametrize(("name", "epochs", "expected"), [("ce", 120, [30, 80, 110]), ("m", 300, [100, 250])])
def test_baselines_have_one_phase_and_the_drops_of_their_schedule(name, epochs, expected):
    method = build(name, epochs)
    assert len(starts(method, epochs)) == 1
    assert drops(method, epochs) == expected


def test_the_same_fractions_hold_at_60_epochs():
    assert list(starts(build("dy-h", 60), 60).values()) == [1, 16]
    assert drops(build("dy-h", 60), 60) == [15, 40, 55]
    assert list(starts(build("m-dyr-h", 60), 60).values()) == [1, 22]
    assert drops(build("m-dyr-h", 60), 60) == [20, 50]
    assert list(starts(build("md-dyr-sh", 60), 60).values()) == [1, 22, 23]
    temperature = build("md-dyr-sh", 60).recipe(60).targets.guess.temperature
    assert [temperature(epoch) for epoch in (1, 23, 40, 60)] == pytest.approx([1, 1, 0.001, 0.001])
    assert 0.001 < temperature(39) < temperature(24) < 1


def test_temperature_falls_in_a_line_from_one_at_111_to_a_thousandth_at_200():
    temperature = build("md-dyr-sh", 300).recipe(111).targets.guess.temperature
    assert temperature(111) == 1
    assert temperature(200) == pytest.approx(0.001)
    assert temperature(300) == pytest.approx(0.001)
    steps = [temperature(epoch) - temperature(epoch + 1) for epoch in range(111, 200)]
    assert steps == pytest.approx([0.999 / 89] * 89)


def test_guesses_of_md_dyr_sh_go_from_soft_to_hard():
    guess, logits = build("md-dyr-sh", 300).recipe(111).targets.guess, make_step().logits.detach()
    assert torch.equal(guess(logits, 111), soft(logits, 111))
    torch.testing.assert_close(guess(logits, 200), hard(logits, 200), rtol=0, atol=1e-4)


@pytest.mark.parametrize("epochs", [1, 2, 3])
@pytest.mark.parametrize("name", PLAIN + MIXED)
@pytest.mark.parametrize("details", ["fast", "paper", "released"])
def test_even_the_shortest_runs_work_and_begin_with_a_warm_up(name, epochs, details):
    method, learner = build(name, epochs, details=details), make_learner()
    method.begin(make_task(epochs), [filled_ledger(two_humps())])
    assert method.recipe(1).targets is given
    assert method.rate(1) == 1
    for epoch in range(1, epochs + 1):
        step = make_step(epoch)
        loss = method.step([learner], step.batch, epoch, step.rng)
        assert loss.isfinite()
        method.after_tracking([filled_ledger(two_humps())], epoch)
    assert method.estimate().degenerate is None
    assert all(parameter.isfinite().all() for parameter in learner.network.parameters())


@pytest.mark.parametrize("epochs", range(2, 30))
@pytest.mark.parametrize("name", ["st-h", "dy-h", "m-dyr-h", "md-dyr-sh"])
def test_from_two_epochs_on_the_last_phase_is_reached(name, epochs):
    method = build(name, epochs)
    assert "warm-up" in method.phase(1)
    assert "bootstrapping" in method.phase(epochs)


@pytest.mark.parametrize(("name", "share", "guess"), [("st-s", 0.05, soft), ("st-h", 0.2, hard)])
def test_static_bootstrapping_moves_every_label_by_its_published_share(name, share, guess):
    step = make_step(31)
    targets = fitted(build(name, 120)).recipe(31).targets(step)
    torch.testing.assert_close(targets, (1 - share) * step.labels + share * guess(step.logits.detach(), 31))


@pytest.mark.parametrize(("name", "guess"), [("dy-s", soft), ("dy-h", hard), ("m-dyr-s", soft), ("m-dyr-h", hard)])
def test_dynamic_bootstrapping_moves_each_label_by_its_probability_of_being_wrong(name, guess):
    method, step = fitted(build(name, 300, schedule="mixup", details="paper")), make_step(150)
    recipe = method.recipe(150)
    step.mix = recipe.mixing(step)
    predicted = guess(step.clean_logits(training=step.mix is None), 150)
    share, differs = share_toward_guess(recipe.targets(step), step, predicted)
    torch.testing.assert_close(share, method.estimate().probability[differs], rtol=1e-4, atol=1e-5)
    assert share.min() < 0.1
    assert share.max() > 0.9


@pytest.mark.parametrize("name", ["dy-h", "m-dyr-h", "md-dyr-h", "md-dyr-sh", "st-h"])
def test_a_fixed_share_replaces_the_mixture_s(name):
    step = make_step(280)
    targets = fitted(build(name, 300, fixed_share=0.3)).recipe(280).targets(step)
    share, differs = share_toward_guess(targets, step, hard(step.logits.detach(), 280))
    assert differs.any()
    torch.testing.assert_close(share, torch.full_like(share, 0.3), rtol=0, atol=1e-3)


def test_a_fixed_share_of_zero_is_not_taken_for_none():
    step = make_step(280)
    for name in ("dy-h", "st-h"):
        targets = fitted(build(name, 300, fixed_share=0.0)).recipe(280).targets(step)
        assert torch.equal(targets, step.labels)


@pytest.mark.parametrize(("option", "kind"), [("bmm", BetaMixture), ("gmm", GaussianMixture)])
def test_the_noise_model_is_the_mixture_asked_for(option, kind):
    method = fitted(build("m-dyr-h", 300, noise_model=option))
    assert type(method.noise_tracker.model.mixture) is kind
    expected = NoiseModel(kind()).fit(two_humps()).posterior(two_humps())
    assert torch.equal(method.estimate().probability, expected)


@pytest.mark.parametrize("iterations", [1, 3, "converged"])
def test_the_mixture_takes_as_many_iterations_as_asked(iterations):
    method = fitted(build("dy-h", 120, em_iterations=iterations))
    expected = NoiseModel(BetaMixture(iterations=iterations)).fit(two_humps())
    assert method.estimate().parameters == expected.described()


@pytest.mark.parametrize("details", ["fast", "paper", "released"])
def test_epochs_are_tracked_as_often_as_asked_in_every_preset(details):
    method = build("dy-h", 12, track_every=3, details=details)
    assert [epoch for epoch in range(1, 13) if method.tracks(epoch)] == [3, 6, 9, 12]


def test_half_an_epoch_between_passes_makes_two_in_each():
    method = build("dy-h", 12, track_every=0.5)
    assert all(method.tracks(epoch) for epoch in range(1, 13))
    assert [step for step in range(45) if method.tracks_before(step, 45)] == [22]
    often = build("dy-h", 12, track_every=0.25)
    assert [step for step in range(8) if often.tracks_before(step, 8)] == [2, 4, 6]
    assert [step for step in range(2) if often.tracks_before(step, 2)] == [1]
    for rarely in (1, 5):
        assert not any(build("dy-h", 12, track_every=rarely).tracks_before(step, 45) for step in range(45))


def test_every_tracking_pass_renews_the_mixture_and_the_verdict():
    method = build("dy-h", 120)
    method.begin(make_task())
    method.after_tracking([filled_ledger(torch.ones(SAMPLES))], 5)
    assert method.estimate().degenerate is not None
    for epoch in (10, 15):
        method.after_tracking([filled_ledger(two_humps(scale=epoch))], epoch)
        assert method.estimate().degenerate is None
        assert method.estimate().parameters["span"] == pytest.approx(two_humps(scale=epoch).max().item())


def test_only_mixed_bootstrapping_has_the_penalty_and_eta_is_its_strength():
    assert {name: build(name, 300, prior="uniform").recipe(300).penalty for name in PLAIN + MIXED} == {
        name: UniformPrior(1.0) if "dyr" in name else None for name in PLAIN + MIXED
    }
    assert build("m-dyr-h", 300).recipe(105).penalty is None
    assert build("md-dyr-h", 300).recipe(110).penalty is None
    for name in MIXED[1:]:
        assert build(name, 300, eta=0.25, details="paper").recipe(300).penalty == UniformPrior(0.25)


def test_mixup_draws_from_beta_32_unless_told_otherwise():
    for name in MIXED:
        assert build(name, 300).recipe(1).mixing == Mixup(32.0)
        assert build(name, 300, mixup_alpha=0.5).recipe(1).mixing == Mixup(0.5)


def test_the_coldest_temperature_is_the_one_asked_for():
    temperature = build("md-dyr-sh", 300, coldest=0.2).recipe(111).targets.guess.temperature
    assert temperature(300) == pytest.approx(0.2)


def test_the_learning_rate_drops_can_be_those_of_the_other_schedule():
    assert drops(build("dy-h", 300, schedule="mixup"), 300) == [100, 250]
    assert drops(build("m", 120, schedule="plain"), 120) == [30, 80, 110]


def test_another_schedule_moves_the_stages_with_the_rate_drops():
    late = find("dy-h").build(PaperOptions(schedule="mixup"), 300)
    early = find("m-dyr-h").build(PaperOptions(schedule="plain"), 120)
    assert list(late.recipes) == [1, 106]
    assert list(early.recipes) == [1, 31]
