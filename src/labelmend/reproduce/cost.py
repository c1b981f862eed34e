"""What runs would cost on the machine at hand: one training step is timed, other passes are counted in steps.

Reading, augmenting and saving are not in it, so that runs of the smallest networks take two or three times as long.
"""

import torch

from ..core import generator
from ..methods.paper import PUBLISHED
from ..methods.timeline import Timeline
from ..nets import build_net
from ..training.compilation import seconds_a_step
from .catalogue import Planned
from .protocol import Scale, Stage

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
        self.steps: dict[tuple[str, tuple[int, ...], int], float] = {}

    def __call__(self, run: Planned) -> float:
        """Seconds of one run: training steps, tracking passes, guesses and the test split after each epoch."""
        stage, settings = self.scale.stages[run.data], run.config.settings
        epochs = run.config.epochs or 0
        step = STEPS.get(run.config.method, 1.0)
        extra = 0.0
        if "details" in settings:
            extra += FORWARD / float(settings["track_every"])
            if run.config.method not in ("ce", "m"):
                published, drops, warm_up = PUBLISHED[settings["schedule"]]
                corrected = 1 - Timeline(published, drops, epochs).after(warm_up) / epochs
                extra += corrected * FORWARD * (2 if settings["details"] == "released" else 1)
        samples = stage.samples * (step + extra) + stage.tested * FORWARD
        return epochs * samples / stage.batch_size * self._seconds_a_step(stage)

    def _seconds_a_step(self, stage: Stage) -> float:
        known = stage.net, stage.shape, stage.batch_size
        if known not in self.steps:
            network = build_net(stage.net, stage.shape, stage.classes, rng=generator(0, "estimate"))
            inputs = torch.randn(stage.batch_size, *stage.shape, generator=generator(0, "inputs"))
            network = network.to(self.device).train()
            update = torch.optim.SGD(network.parameters(), lr=1e-6, momentum=0.9, weight_decay=1e-4).step
            self.steps[known] = seconds_a_step(network, inputs.to(self.device), update)
        return self.steps[known]
