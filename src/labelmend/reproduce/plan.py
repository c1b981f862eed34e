"""A list of runs before they are made: every hyperparameter, and what each would cost on this machine.

One training step is timed, other passes are counted in steps. Reading, augmenting and saving are not in it, so that
runs of the smallest networks take two or three times as long.
"""

from collections.abc import Sequence

import torch

from ..core import generator
from ..methods.paper import GUIDED_FOR, PUBLISHED
from ..methods.timeline import Timeline
from ..nets import build_net
from ..training.compilation import seconds_a_step
from ..training.config import TrainConfig
from .catalogue import Planned, labels_in_words
from .protocol import Scale, Stage

NEVER = ("ce", "m")
GUIDED = ("md-dyr-h", "md-dyr-sh")
FORWARD = 1 / 3
"""A pass without gradients, in training steps: the backward pass costs about two forward ones."""
STEPS = {"l2rw": 5.9, "iterative": 1.25, "mentornet": 1.2}
"""Methods whose steps cost more than a plain one, as measured in docs/methods.md."""


def in_words(seconds: float) -> str:
    """A duration as people say it."""
    hours = seconds / 3600
    if hours >= 48:
        return f"{hours / 24:,.1f} days"
    return f"{hours:.1f} h" if hours >= 1 else f"{seconds / 60:.1f} min"


class Estimator:
    """Times each network once, on batches of noise in the shape of its data."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        self.steps: dict[tuple[str, str, int], float] = {}

    def __call__(self, run: Planned) -> float:
        """Seconds of one run: training steps, tracking passes, guesses and the test split after each epoch."""
        stage, settings = self.scale.stages[run.data], run.config.settings
        epochs = run.config.epochs or 0
        step = STEPS.get(run.config.method or "", 1.0)
        extra = 0.0
        if "details" in settings:
            extra += FORWARD / float(settings["track_every"])
            if run.config.method not in NEVER:
                published, drops, warm_up = PUBLISHED[settings["schedule"]]
                corrected = 1 - Timeline(published, drops, epochs).after(warm_up) / epochs
                extra += corrected * FORWARD * (2 if settings["details"] == "released" else 1)
        samples = stage.samples * (step + extra) + stage.tested * FORWARD
        return epochs * samples / stage.batch_size * self._seconds_a_step(stage)

    def _seconds_a_step(self, stage: Stage) -> float:
        known = stage.net, str(stage.shape), stage.batch_size
        if known not in self.steps:
            network = build_net(stage.net, stage.shape, stage.classes, rng=generator(0, "estimate"))
            inputs = torch.randn(stage.batch_size, *stage.shape, generator=generator(0, "inputs"))
            network = network.to(self.device).train()
            update = torch.optim.SGD(network.parameters(), lr=1e-6, momentum=0.9, weight_decay=1e-4).step
            self.steps[known] = seconds_a_step(network, inputs.to(self.device), update)
        return self.steps[known]


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


def plan_lines(runs: Sequence[Planned], estimate: Estimator) -> tuple[list[str], list[list[str]]]:
    """What all runs have in common, in words, and a table of the rest: a header and one line a run."""
    shared = shared_settings(runs)
    lines = []
    for run in runs:
        config, when = run.config, epochs_of(run.config)
        line = {"data": config.source, "method": config.method or "", "noise": labels_in_words(config)}
        line |= {"seed": str(config.seed), "net": config.net or "", "epochs": str(config.epochs)}
        line |= {"lr / 10 after": when["drops"], "corrects from": when["corrects"]}
        lines.append(line | {"own settings": own_settings(run, shared), "about": in_words(estimate(run))})
    own = "method", "about"
    common = {name: lines[0][name] for name in lines[0] if name not in own and len({line[name] for line in lines}) == 1}
    header = [name for name in lines[0] if name not in common]
    table = [["", *header], *([str(number), *(line[name] for name in header)] for number, line in enumerate(lines, 1))]
    words = [f"{name} {word}" for name, word in common.items() if word]
    return [*words, *(f"{name}={value}" for name, value in shared.items())], table
