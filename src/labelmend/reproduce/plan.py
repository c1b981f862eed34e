"""A list of runs before they are made: every hyperparameter, and what each would cost here."""

from collections.abc import Sequence

from ..methods.paper import GUIDED_FOR, PUBLISHED
from ..methods.timeline import Timeline
from ..training.config import TrainConfig
from .catalogue import Planned
from .cost import Estimator, in_words

NEVER = ("ce", "m")
GUIDED = ("md-dyr-h", "md-dyr-sh")


def shared_settings(runs: Sequence[Planned]) -> dict[str, str]:
    """Settings that all the runs have in common."""
    first, *others = (run.config.settings for run in runs)
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def own_settings(run: Planned, shared: dict[str, str]) -> str:
    """A run's settings that not all of them have."""
    return " ".join(f"{name}={value}" for name, value in run.config.settings.items() if name not in shared)


def epochs_of(config: TrainConfig) -> dict[str, str]:
    """When the learning rate of one of the paper's methods drops, and from which epoch on labels are corrected."""
    if "schedule" not in config.settings:
        return {"drops": "", "corrects": ""}
    published, drops, warm_up = PUBLISHED[config.settings["schedule"]]
    timeline = Timeline(published, drops, config.epochs or published)
    start = warm_up + 1 + (GUIDED_FOR if config.method in GUIDED else 0)
    return {
        "drops": ", ".join(str(timeline.after(drop)) for drop in drops),
        "corrects": "" if config.method in NEVER else f"{timeline.start(start)}",
    }


def plan_lines(runs: Sequence[Planned], estimate: Estimator) -> list[list[str]]:
    """Header and one line a run."""
    shared = shared_settings(runs)
    header = ["", "data", "method", "noise", "seed", "net", "epochs", "lr / 10 after", "corrects from"]
    lines = [[*header, "own settings", "about"]]
    for number, run in enumerate(runs, start=1):
        config, when = run.config, epochs_of(run.config)
        place = [str(number), config.source, config.method, config.noise or "as it is", str(config.seed)]
        trained = [config.net or "", str(config.epochs), when["drops"], when["corrects"]]
        lines.append([*place, *trained, own_settings(run, shared), in_words(estimate(run))])
    return lines
