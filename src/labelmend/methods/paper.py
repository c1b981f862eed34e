"""The ten methods of the paper, each a combination of parts and the epochs at which they switch on."""

from dataclasses import dataclass
from typing import Literal

from ..core import Method, Step
from ..errors import InputError
from ..mixture import noise_model
from ..parts.mixing import DynamicMixup, Mixup
from ..parts.penalties import EstimatedPrior, UniformPrior
from ..parts.targets import Corrected, Fixed, Guess, GuessShare, Predictions, Tempered, hard, in_training_mode, soft
from .noise_tracker import NoiseTracker, far_apart
from .phases import Phases
from .recipe import Recipe
from .registry import method
from .timeline import Timeline, linear
from .tracked import setting
from .variants import VARIANTS, PaperVariant

PUBLISHED = {"plain": (120, (30, 80, 110), 30), "mixup": (300, (100, 250), 105)}
"""Epochs, learning-rate drops and warm-up of the two training schedules (Appendix B)."""
UNEQUAL = 2.0
"""Labels of the largest class over those of the smallest, up to which classes are taken to be equal, as published."""
GUIDED_FOR = 5
"""Epochs of dynamic mixup before its bootstrapping: 106 to 110."""


@dataclass(frozen=True)
class PaperOptions:
    """What can be changed in the paper's methods with `--set`."""

    details: Literal["fast", "paper", "released"] = setting(
        "fast", "the paper's text, the authors' code, or the text without its extra passes"
    )
    noise_model: Literal["auto", "bmm", "gmm"] = setting(
        "auto", "beta or Gaussian mixture of losses; auto: beta until the log-odds of other classes form two groups"
    )
    em_iterations: int | Literal["converged"] = setting(10, "EM iterations, or converged", least=1)
    track_every: int | float | None = setting(
        None, "epochs between two tracking passes; 0.5: two each; none takes the preset's", least=0.01
    )
    eta: float = setting(1.0, "strength of the class-balance penalty R (Eq. 14)", least=0)
    prior: Literal["auto", "uniform", "estimated"] = setting(
        "auto", "class shares of R: equal, or those of the labels; auto: as published unless they are very unequal"
    )
    mixup_alpha: float = setting(32.0, "mixup draws shares from Beta(a, a)", least=1e-3)
    coldest: float = setting(0.001, "last temperature of md-dyr-sh", least=1e-6)
    fixed_share: float | None = setting(None, "one share w for all samples in place of the mixture's", least=0, most=1)
    schedule: Literal["auto", "plain", "mixup"] = setting(
        "auto", "the paper's 120-epoch (plain) or 300-epoch (mixup) timeline"
    )


class PaperParts:
    """What the ten methods are put together from: options, details, the timeline and the noise model."""

    def __init__(self, options: PaperOptions, epochs: int, schedule: str, *, soft_guess: bool = False) -> None:
        if options.track_every is not None and options.track_every > 1 and options.track_every % 1:
            raise InputError(f"setting track_every over 1 must be a whole number, not {options.track_every}")
        self.options = options
        self.details: PaperVariant = VARIANTS[options.details]
        published, drops, warm_up = PUBLISHED[schedule if options.schedule == "auto" else options.schedule]
        self.corrects_from = warm_up + 1
        self.timeline = Timeline(published, drops, epochs)
        kind = "gmm" if options.noise_model == "gmm" else "bmm"
        model = noise_model(
            kind, iterations=options.em_iterations, scaling=self.details.scaling, table=self.details.posterior_table
        )
        past_the_paper = options.noise_model == "auto" and not self.details.share_from_view
        rival_log_odds = far_apart() if past_the_paper else None
        self.noise_tracker = NoiseTracker(model, rival_log_odds=rival_log_odds, floor=self.details.share_floor)
        self.mixup = Mixup(options.mixup_alpha)
        self.keep_mean_log_probs = soft_guess and self.details.guess_from == "tracking"

    @property
    def noisy(self) -> GuessShare:
        """P(wrong) of the samples of a batch."""
        return self.noise_tracker.current if self.details.share_from_view else self.noise_tracker.stored

    def corrected(self, guess: Guess, fixed: float | None = None) -> Corrected:
        """Labels moved toward the guess, by P(wrong) unless a share is fixed."""
        fixed = self.options.fixed_share if fixed is None else fixed
        share = self.noisy if fixed is None else Fixed(fixed)
        predictions: dict[str, Predictions] = {
            "pass": Step.clean_logits,
            "training pass": in_training_mode,
            "tracking": self.noise_tracker.predictions,
        }
        return Corrected(guess, share, predictions[self.details.guess_from])

    def penalty(self) -> UniformPrior | EstimatedPrior:
        """The class-balance penalty R (Eq. 14), with equal class shares or those of the labels."""
        prior, eta = self.options.prior, self.options.eta
        if prior == "uniform" or (prior == "auto" and self.options.details != "fast"):
            return UniformPrior(eta)
        return EstimatedPrior(eta, tolerated=1.0 if prior == "estimated" else UNEQUAL)

    def dynamic_mixup(self, *, bootstrapping: bool) -> DynamicMixup:
        """Mixing guided by the noise model (Eq. 15)."""
        half = bootstrapping and self.details.half_target_share
        return DynamicMixup(self.noisy, None if half else self.options.mixup_alpha)

    def phases(self, *stages: tuple[int, Recipe]) -> Method:
        """Recipes at the paper's epochs, scaled; where two fall together, the later one counts."""
        return Phases(
            {self.timeline.start(epoch): recipe for epoch, recipe in stages},
            self.noise_tracker,
            self.timeline,
            track_every=self.options.track_every or self.details.track_every,
            track_augmented=self.details.track_augmented,
            keep_mean_log_probs=self.keep_mean_log_probs,
        )


def _bootstrapping(options: PaperOptions, epochs: int, guess: Guess, *, share: float | None = None) -> Method:
    parts = PaperParts(options, epochs, "plain")
    fixed = share if options.fixed_share is None else options.fixed_share
    name = "dynamic bootstrapping" if share is None else "static bootstrapping"
    corrected = Recipe(name, targets=parts.corrected(guess, fixed))
    return parts.phases((1, Recipe("warm-up")), (parts.corrects_from, corrected))


def _mixup_dynamic(options: PaperOptions, epochs: int, guess: Guess) -> Method:
    parts = PaperParts(options, epochs, "mixup", soft_guess=guess is soft)
    name = "mixup + dynamic bootstrapping"
    corrected = Recipe(name, targets=parts.corrected(guess), mixing=parts.mixup, penalty=parts.penalty())
    return parts.phases((1, Recipe("mixup warm-up", mixing=parts.mixup)), (parts.corrects_from, corrected))


def _dynamic_mixup_dynamic(parts: PaperParts, guess: Guess) -> Method:
    warm_up = Recipe("mixup warm-up", mixing=parts.mixup)
    guided = Recipe("dynamic mixup", mixing=parts.dynamic_mixup(bootstrapping=False))
    corrected = Recipe(
        "dynamic mixup + dynamic bootstrapping",
        targets=parts.corrected(guess),
        mixing=parts.dynamic_mixup(bootstrapping=True),
        penalty=parts.penalty(),
    )
    begin = parts.corrects_from
    return parts.phases((1, warm_up), (begin, guided), (begin + GUIDED_FOR, corrected))


@method("ce")
def ce(options: PaperOptions, epochs: int) -> Method:
    """Plain cross-entropy, which memorises wrong labels (Eq. 1)."""
    return PaperParts(options, epochs, "plain").phases((1, Recipe("cross-entropy")))


@method("st-s")
def st_s(options: PaperOptions, epochs: int) -> Method:
    """Static soft bootstrapping, w = 0.05 for every sample (Eq. 10)."""
    return _bootstrapping(options, epochs, soft, share=0.05)


@method("st-h")
def st_h(options: PaperOptions, epochs: int) -> Method:
    """Static hard bootstrapping, w = 0.2 for every sample (Eq. 10)."""
    return _bootstrapping(options, epochs, hard, share=0.2)


@method("dy-s")
def dy_s(options: PaperOptions, epochs: int) -> Method:
    """Dynamic soft bootstrapping: w from the mixture, guesses as probabilities (Eq. 10)."""
    return _bootstrapping(options, epochs, soft)


@method("dy-h")
def dy_h(options: PaperOptions, epochs: int) -> Method:
    """Dynamic hard bootstrapping: w from the mixture, guesses as classes (Eq. 10)."""
    return _bootstrapping(options, epochs, hard)


@method("m")
def m(options: PaperOptions, epochs: int) -> Method:
    """Mixup with Beta(32, 32) (Eqs. 11-12)."""
    parts = PaperParts(options, epochs, "mixup")
    return parts.phases((1, Recipe("mixup", mixing=parts.mixup)))


@method("m-dyr-s")
def m_dyr_s(options: PaperOptions, epochs: int) -> Method:
    """Mixup, dynamic soft bootstrapping and the class-balance penalty (Eqs. 13-14)."""
    return _mixup_dynamic(options, epochs, soft)


@method("m-dyr-h")
def m_dyr_h(options: PaperOptions, epochs: int) -> Method:
    """Mixup, dynamic hard bootstrapping and the class-balance penalty (Eqs. 13-14); the default."""
    return _mixup_dynamic(options, epochs, hard)


@method("md-dyr-h")
def md_dyr_h(options: PaperOptions, epochs: int) -> Method:
    """Mixup guided by the mixture, dynamic hard bootstrapping, penalty (Eqs. 13-15)."""
    return _dynamic_mixup_dynamic(PaperParts(options, epochs, "mixup"), hard)


@method("md-dyr-sh")
def md_dyr_sh(options: PaperOptions, epochs: int) -> Method:
    """As md-dyr-h with guesses that go from soft to hard; for extreme noise (Eqs. 13-16)."""
    parts = PaperParts(options, epochs, "mixup", soft_guess=True)
    first = parts.timeline.start(parts.corrects_from + GUIDED_FOR)
    coldest = round(parts.details.coldest_epoch * epochs / PUBLISHED["mixup"][0])
    temperature = linear((first, 1.0), (max(first, coldest), options.coldest))
    return _dynamic_mixup_dynamic(parts, Tempered(temperature))
