"""Everything that can be checked, read and chosen before the first epoch."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core import generator
from ..data import Samples, inject
from ..data.columns import ColumnWishes
from ..data.encode import Progress
from ..data.label_file import read_labels
from ..data.noise import NoiseSpec, nominal_rate, wrong_rate
from ..data.preflight import Preflight
from ..data.readers.table import Columns
from ..data.sources import SourceOptions, check_samples, read_with_test
from ..data.trusted import trust
from ..errors import InputError
from ..methods import RegisteredMethod, find
from ..nets import build_net, start_from
from ..run.description import versions
from ..run.directory import RunDirectory
from .budget import parse_duration
from .config import Optimisation, TrainConfig
from .decided import take_decisions
from .defaults import Defaults, Situation, choose_defaults, default_method, suited_options
from .engine import Engine
from .features import plan_features
from .settings import check_keys, parse, split_names


@dataclass
class Prepared:
    """A run that has been checked and built, and has not touched the disk."""

    config: TrainConfig
    entry: RegisteredMethod
    options: Any
    optimisation: Optimisation
    data: Samples
    preflight: Preflight
    choices: Defaults
    engine: Engine
    run: RunDirectory
    noise: dict[str, Any] | None

    def description(self) -> dict[str, Any]:
        """What run.json says before the first epoch."""
        return {
            "status": "running",
            "config": asdict(self.config),
            "options": asdict(self.options),
            "optimisation": asdict(self.optimisation),
            "chosen": asdict(self.choices),
            "data": {
                "name": self.data.name,
                "samples": len(self.data),
                "shape": list(self.data.shape),
                "classes": list(self.data.class_names),
                "test_samples": None if self.data.test is None else len(self.data.test),
                "trusted": None if self.data.trusted is None else len(self.data.trusted),
                "fingerprint": self.data.fingerprint(),
                **({"notes": [str(note) for note in self.data.notes]} if self.data.notes else {}),
                **self.data.kind.described(),
            },
            "noise": self.noise,
            "preflight": {"skipped": self.preflight.skipped, "notes": len(self.preflight.notes)},
            "machine": {"device": self.engine.device, "processes": self.engine.processes},
            "versions": versions(),
        }


def prepare(
    config: TrainConfig,
    *,
    data: Samples | None = None,
    advance: Callable[[int], None] = lambda done: None,
    progress: Progress = lambda done, of: None,
) -> Prepared:
    """Check everything that can be checked before the first epoch; raises InputError and leaves nothing behind.

    `data` are samples of Python objects, used in place of the configuration's source. `advance` is told of samples that
    were read, `progress` of those whose features were computed. Without a place for its run directory, a run can only
    be kept in memory.
    """
    engine = Engine.choose(config, parse(Optimisation, config.settings))
    named = None if config.method is None else _method(config, config.method)
    seconds = None if config.time is None else parse_duration(config.time)
    spec = None if config.noise is None else NoiseSpec.parse(config.noise)
    run = RunDirectory(Path(config.out), writes=engine.rank == 0 and bool(config.out))
    if run.writes:
        try:
            _check_place(run, config)
        except OSError as error:
            raise InputError(f"cannot use {run.path}: {error.strerror or error}; choose another --out") from None
    options_of_source = source_options(config)
    found = read_with_test(config.source, options_of_source) if data is None else data
    features = plan_features(found, config, on_gpu=engine.on_gpu)
    data, preflight = check_samples(found, features.reading(options_of_source), advance=advance)
    data, noise = apply_label_options(data, config, spec)
    data = features.applied(data, engine, config, progress)
    entry, options, optimisation = named or _method(config, default_method(data, config, on_gpu=engine.on_gpu))
    options = suited_options(options, data, seconds)
    before = run.read().get("chosen") if config.resume else None
    networks = entry.build(options, 1).networks
    rounds, controls = getattr(options, "rounds", 1), getattr(options, "controls", None) or 0
    chosen = before if isinstance(before, dict) else {}
    situation = Situation(data, engine, entry.id, networks, seconds, chosen, rounds, controls)
    choices = features.explained(choose_defaults(situation, config, optimisation), data)
    engine = engine.in_precision(choices.precision)
    trial = build_net(choices.net, data.shape, len(data.class_names), rng=generator(0, "check"))
    if config.init is not None:
        start_from(trial, config.init)
    return Prepared(config, entry, options, optimisation, data, preflight, choices, engine, run, noise)


def _method(config: TrainConfig, id: str) -> tuple[RegisteredMethod, Any, Optimisation]:
    """A method with its options and those of the optimisation, as far as they can be checked without the data."""
    entry = find(id)
    check_keys(config.settings, entry.options, Optimisation)
    options: Any = parse(entry.options, config.settings)
    if entry.needs_trusted and config.trusted is None and config.decisions is None:
        raise InputError(
            f"{entry.id} needs some samples whose labels are known to be right: --trusted ids.csv names them in a "
            "column 'id', and if the given labels are not right, gives those in a column 'label'; or, where the truth "
            "is known as after --noise, --trusted 10-per-class takes ten of each class; or --decisions RUN takes "
            "those that people decided"
        )
    return entry, options, parse(Optimisation, config.settings)


def source_options(config: TrainConfig) -> SourceOptions:
    """How the source of a configuration is read."""
    columns = Columns(config.image_column, config.label_column, config.id_column, column_wishes(config))
    return SourceOptions(config.test, config.root, columns, config.size, config.skip_bad, config.memory, config.seed)


def column_wishes(config: TrainConfig) -> ColumnWishes:
    """What the options say about the columns of a table to learn from."""
    asked = (config.columns, config.drop_columns, config.category, config.text_column)
    return ColumnWishes(*(split_names(names) for names in asked))


def apply_label_options(
    data: Samples, config: TrainConfig, spec: NoiseSpec | None
) -> tuple[Samples, dict[str, Any] | None]:
    """Other labels, fewer samples, wrong labels, trusted and decided ones, in this order, as far as asked for."""
    if config.labels is not None:
        data = read_labels(config.labels, data)
    if config.limit is not None and config.limit < len(data):
        data = data.random_subset(config.limit, generator(config.seed, "limit"))
    if spec is not None:
        data = inject(data, spec, generator(config.seed, "noise"))
    if config.trusted is not None:
        data = trust(config.trusted, data, generator(config.seed, "trusted"))
    if config.decisions is not None:
        data = take_decisions(config.decisions, data)
    real = wrong_rate(data.labels)
    if spec is not None:
        return data, {"kind": spec.kind, "nominal": nominal_rate(data, spec), "real": real}
    return data, None if real is None else {"kind": f"labels {config.labels}", "nominal": None, "real": real}


def _check_place(run: RunDirectory, config: TrainConfig) -> None:
    if not config.resume:
        run.check_unused("continue it with --resume or choose another --out")
    elif not run.run_json.is_file():
        raise InputError(f"there is no run to resume in {run.path}")


def check_same(before: dict[str, Any], now: dict[str, Any], *, allow_drift: bool) -> None:
    """Refuse to go on with other settings; and, unless drift is allowed, where the same bytes could not come out."""
    if not all(isinstance(before.get(key), dict) for key in ("config", "chosen", "machine", "versions")):
        raise InputError("run.json is damaged: it does not say what was run")
    for key in ("method", "seed", "noise", "labels", "trusted", "decisions"):
        if before["config"].get(key) != now["config"][key]:
            raise InputError(
                f"the run was made with --{key} {before['config'].get(key)}, not {now['config'][key]}; "
                "resume it with the options it was started with"
            )
    same = ("features", "method", "net", "epochs", "batch_size", "augment", "optimiser")
    chosen = {name: (before["chosen"].get(name), now["chosen"][name]) for name in same}
    for name, (old, new) in chosen.items():
        if old != new:
            raise InputError(f"the run was made with {name} {old}, not {new}; resume it with the options it had")
    for key in ("options", "optimisation", "data"):
        if before.get(key) != now[key]:
            raise InputError(f"the run was made with another {key}; resume it with the options it was started with")
    drift = _drift(before, now)
    if drift and not allow_drift:
        raise InputError(
            f"{drift[0]}; the result would not be the same to the last bit. Go on all the same with --allow-drift"
        )


def _drift(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    pairs = {"threads": (before["chosen"].get("threads"), now["chosen"]["threads"])}
    pairs |= {name: (before["machine"].get(name), value) for name, value in now["machine"].items()}
    pairs |= {name: (before["versions"].get(name), value) for name, value in now["versions"].items()}
    return [f"the run was made with {name} {old}, not {new}" for name, (old, new) in pairs.items() if old != new]
