"""Does speed cost quality: the details presets side by side, on the same wrong labels and from the same seeds.

    python benchmarks/presets.py --out benchmarks/results/presets.json [--rows digits-50,...] [--seeds 0,1,2]
        [--presets fast,paper] [--method m-dyr-h]

What is in the output file already is not measured again; `--table` prints the file as Markdown.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from common import kept_results, stamp

from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

NOISE = {"20": "symmetric:0.2", "50": "symmetric:0.5", "80": "symmetric:0.8"}
DATA: dict[str, dict[str, Any]] = {
    "digits": {"source": "digits"},
    "fashion-mnist": {"source": "fashion-mnist", "limit": 6000, "net": "mlp", "epochs": 60},
}
ROWS = {f"{name}-{rate}": source | {"noise": noise} for name, source in DATA.items() for rate, noise in NOISE.items()}


def measure(row: str, preset: str, seed: int, method: str) -> dict[str, Any]:
    """One run from beginning to end; a preset may carry more settings, as in fast+track_every=3."""
    details, *more = preset.split("+")
    settings = {"details": details} | dict(setting.split("=") for setting in more)
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            out=f"{folder}/run", method=method, seed=seed, threads=1, device="cpu", settings=settings, **ROWS[row]
        )
        run, _ = train(prepare(config))
        summary = run.read()["summary"]
    return {key: summary[key] for key in ("last_accuracy", "best_accuracy", "auc", "noise_rate", "seconds")}


def table(measured: list[dict[str, Any]]) -> str:
    """Last accuracy and AUC of every row: mean and spread by preset, and the difference of the means in points."""
    lines = [
        "| row | preset | seeds | last accuracy | from, to | AUC | from, to | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        for preset in dict.fromkeys(m["preset"] for m in measured if m["row"] == row):
            found = [m for m in measured if (m["row"], m["preset"]) == (row, preset)]
            cells = [_cells([m[key] for m in found]) for key in ("last_accuracy", "auc")]
            seconds = statistics.mean(m["seconds"] for m in found)
            lines.append(f"| {row} | `{preset}` | {len(found)} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines)


def _cells(values: list[float]) -> str:
    return f"{statistics.mean(values):.4f} | {min(values):.4f}, {max(values):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--presets", default="fast,paper")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--method", default="m-dyr-h")
    parser.add_argument("--table", action="store_true", help="only print what the output file holds, as Markdown")
    asked = parser.parse_args()
    measured = kept_results(asked.out)
    if asked.table:
        print(table(measured))
        return
    done = {(m["row"], m["preset"], m["method"], m["seed"]) for m in measured}
    for row in asked.rows.split(","):
        for seed in map(int, asked.seeds.split(",")):
            for preset in asked.presets.split(","):
                if (row, preset, asked.method, seed) in done:
                    continue
                named = {"row": row, "preset": preset, "method": asked.method, "seed": seed}
                measured.append(named | measure(row, preset, seed, asked.method) | {"commit": stamp()["commit"]})
                print(json.dumps(measured[-1]), flush=True)
                asked.out.write_text(json.dumps(stamp() | {"rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
