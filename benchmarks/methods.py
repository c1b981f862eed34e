"""Every method of the library side by side: the same wrong labels, network, epochs and seeds for all of them.

    python benchmarks/methods.py measure --data digits [--methods ce,elr,...] [--noise 0,20,50] [--seeds 0,1,2]
    python benchmarks/methods.py cost [--rounds 3]
    python benchmarks/methods.py table

Results go to benchmarks/results/methods-DATA.json and method-cost.json; what is there already is not measured again.
Methods that need trusted samples get ten of each class; `mentornet` is shown without them and, as mentornet+trusted,
with them. `table` prints all of it as Markdown.
"""

import argparse
import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import kept_results, stamp

from labelmend.data import Split
from labelmend.methods import methods
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

RESULTS = Path(__file__).with_name("results")
TESTED = 2000
TRUSTED = "10-per-class"
WITH_TRUSTED = "+trusted"
FASHION_MAP = Path(__file__).with_name("fashion-map.json")
NOISE = {
    "0": "symmetric:0",
    "20": "symmetric:0.2",
    "50": "symmetric:0.5",
    "80": "symmetric:0.8",
    "asym-40": "asymmetric:0.4",
}
DATA: dict[str, dict[str, Any]] = {
    "digits": {"source": "digits", "net": "mlp", "epochs": 60},
    "fashion-mnist": {
        "source": "fashion-mnist",
        "limit": 3000,
        "net": "mlp",
        "epochs": 30,
        "settings": {"augment": "none"},
    },
}
COST = {"source": "digits", "net": "convnet", "epochs": 12, "noise": "symmetric:0.5"}


def candidates() -> list[str]:
    """Every method, and `mentornet` once more with its learned mentor."""
    return [*methods(), f"mentornet{WITH_TRUSTED}"]


def has_trusted(method: str) -> bool:
    """Whether it is measured with trusted samples."""
    return method.endswith(WITH_TRUSTED) or methods()[method].needs_trusted


def named(method: str) -> str:
    """The method as tables show it, with an asterisk where it has trusted samples."""
    return f"`{method.removesuffix(WITH_TRUSTED)}`{'*' if has_trusted(method) else ''}"


def first(split: Split) -> Split:
    """The first samples of a test split, because it is evaluated after every epoch."""
    return Split(split.inputs[:TESTED], split.labels[:TESTED])  # type: ignore[index]


def run(method: str, seed: int, **options: Any) -> dict[str, Any]:
    """One run from beginning to end, without its report; gives its summary and the seconds of its epochs."""
    id, trusted = method.removesuffix(WITH_TRUSTED), TRUSTED if has_trusted(method) else None
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            out=f"{folder}/run",
            method=id,
            trusted=trusted,
            seed=seed,
            threads=1,
            device="cpu",
            compile="off",
            **options,
        )
        prepared = prepare(config)
        if prepared.data.test is not None:
            prepared.data = replace(prepared.data, test=first(prepared.data.test))
        finished, _ = train(prepared)
        summary: dict[str, Any] = finished.read()["summary"]
        return summary | {"epochs": [record["seconds"] for record in finished.epochs()]}


def measure(data: str, asked: argparse.Namespace) -> None:
    """All rows of one data set that are not measured yet."""
    file = RESULTS / f"methods-{data}.json"
    rows = kept_results(file)
    done = {(row["method"], row["noise"], row["seed"]) for row in rows}
    for seed in map(int, asked.seeds.split(",")):
        for noise in asked.noise.split(","):
            for method in asked.methods.split(",") if asked.methods else candidates():
                if (method, noise, seed) in done:
                    continue
                mapped = f":{FASHION_MAP}" if (data, noise) == ("fashion-mnist", "asym-40") else ""
                found = run(method, seed, noise=NOISE[noise] + mapped, **DATA[data])
                kept = {key: found[key] for key in ("best_accuracy", "last_accuracy", "auc", "noise_rate", "seconds")}
                rows.append({"method": method, "noise": noise, "seed": seed} | kept | {"commit": stamp()["commit"]})
                print(json.dumps(rows[-1]), flush=True)
                file.write_text(json.dumps(stamp() | {"rows": rows}, indent=1) + "\n")


def measure_cost(rounds: int) -> None:
    """Seconds of whole runs as multiples of plain cross-entropy's, interleaved; the best round of each counts."""
    seconds: dict[str, list[float]] = {method: [] for method in candidates()}
    for number in range(rounds):
        for method, times in seconds.items():
            times.append(sum(run(method, 0, **COST)["epochs"]))
            print(number, method, times[-1], flush=True)
    rows = [{"method": method, "cost": min(times) / min(seconds["ce"])} for method, times in seconds.items()]
    (RESULTS / "method-cost.json").write_text(json.dumps(stamp() | {"rounds": rounds, "rows": rows}, indent=1) + "\n")


def table() -> str:
    """Best and last accuracy by noise, then AUC and cost, as Markdown."""
    costs = {row["method"]: row["cost"] for row in kept_results(RESULTS / "method-cost.json")}
    parts = []
    for data in DATA:
        rows = kept_results(RESULTS / f"methods-{data}.json")
        parts.append(f"## {data}: accuracy, best / last\n\n" + _grid(rows, _accuracy))
        parts.append(f"## {data}: AUC for wrong labels\n\n" + _grid(rows, _auc, without="0"))
    lines = ["| method | cost |", "|---|---|", *(f"| {named(method)} | {cost:.2f} |" for method, cost in costs.items())]
    return "\n\n".join([*parts, "## cost, in runs of ce\n\n" + "\n".join(lines)])


def _grid(rows: list[dict[str, Any]], cell: Any, *, without: str = "") -> str:
    columns = [noise for noise in NOISE if noise != without]
    lines = ["| method | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for method in [name for name in candidates() if any(row["method"] == name for row in rows)]:
        cells = [cell([row for row in rows if (row["method"], row["noise"]) == (method, noise)]) for noise in columns]
        lines.append(f"| {named(method)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _accuracy(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    best, last = ([100 * row[f"{which}_accuracy"] for row in rows] for which in ("best", "last"))
    return f"{statistics.mean(best):.1f} / {statistics.mean(last):.1f} ± {(max(last) - min(last)) / 2:.1f}"


def _auc(rows: list[dict[str, Any]]) -> str:
    values = [row["auc"] for row in rows if row["auc"] is not None]
    return f"{statistics.mean(values):.3f}" if values else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "cost", "table"])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--methods")
    parser.add_argument("--noise", default=",".join(NOISE))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if asked.what == "measure":
        for data in asked.data.split(","):
            measure(data, asked)
    elif asked.what == "cost":
        measure_cost(asked.rounds)
    else:
        print(table())


if __name__ == "__main__":
    main()
