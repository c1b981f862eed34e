"""What networks cost on the machine at hand, and so which one, for how many epochs and in which precision."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..data import Samples
from .budget import Cost, Fit, Work, fit_budget, measure
from .config import Optimisation
from .engine import Engine, bf16_on_cpu, cpu_threads, precision_around
from .evaluation import most_views
from .optimiser import OptimiserSettings, optimiser_settings
from .threads import suited_threads

WORTH_HALVING = 1.2
"""How much faster bf16 must be on a CPU to be used."""


@dataclass(frozen=True)
class Calibration:
    """A short timing of steps as the run would make them; nothing is timed before it is asked for."""

    data: Samples
    engine: Engine
    optimisation: Optimisation
    batch: int
    threads: int | None = None
    known: dict[tuple[str, str], Cost] = field(default_factory=dict)

    def precision(self, nets: Sequence[str]) -> tuple[str, str]:
        """The precision of the run, and why: bf16 on a CPU only where steps are clearly faster in it."""
        engine = self.engine
        asked = self.optimisation.precision != "auto" or precision_around() is not None
        if engine.on_gpu or asked or not all(engine.from_first([bf16_on_cpu()])):
            return engine.precision, engine.why_precision
        halved = replace(self, engine=replace(engine, precision="bf16"))
        net = nets[min(1, len(nets) - 1)]
        gain = self.cost(net).learning / halved.cost(net).learning
        if gain < WORTH_HALVING:
            return engine.precision, f"single: bf16 is only {gain:.2f} times as fast here"
        return "bf16", f"bf16, {gain:.1f} times as fast on this CPU"

    def fit(self, nets: Sequence[str], seconds: float, *, epochs: int | None, networks: int) -> Fit:
        """The network, of these from narrow to wide, and the epochs that fit the time."""
        data, optimiser = self.data, self._optimiser(nets[0])
        tested = 0 if data.test is None else len(data.test)
        views = most_views(data, nets[0], published=optimiser.rates == "published")
        work = Work(len(data), tested, networks, optimiser.small_until, views)
        return fit_budget(((net, self.cost(net)) for net in nets), work, seconds, epochs=epochs)

    def cost(self, net: str) -> Cost:
        """What a network costs on this machine; several processes go by what the first one measured."""
        data, engine = self.data, self.engine
        if (net, engine.precision) in self.known:
            return self.known[net, engine.precision]
        with cpu_threads(self.threads or suited_threads(net, len(data))[0]):
            cost = measure(
                net,
                data.shape,
                len(data.class_names),
                batch_size=max(2, self.batch // engine.processes),
                optimiser=self._optimiser(net),
                device=engine.device,
                precision=engine.precision,
            )
        learning, looking = engine.from_first([cost.learning, cost.looking])
        self.known[net, engine.precision] = Cost(learning / engine.processes, looking / engine.processes)
        return self.known[net, engine.precision]

    def _optimiser(self, net: str) -> OptimiserSettings:
        return optimiser_settings(net, self.batch, self.optimisation, side=shorter_side(self.data.shape))[0]


def shorter_side(shape: Sequence[int]) -> int | None:
    """The shorter side of images [channels, height, width], None for rows.

    >>> shorter_side((3, 32, 24)), shorter_side((1280,))
    (24, None)
    """
    return None if len(shape) == 1 else min(shape[1:])
