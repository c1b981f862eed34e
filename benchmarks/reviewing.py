"""A simulated reviewer, who knows the truth, answers what a run asks: what 100 and 150 answers are worth.

    labelmend train digits --noise asymmetric:0.4 --epochs 12 --threads 1 --out OUT/digits
    python ../shared/trials/make.py OUT --only photos4 --seed 7
    labelmend train OUT/photos4 --threads 1 --out OUT/photos4-run
    python benchmarks/reviewing.py --out benchmarks/results/reviewing.json --run digits=OUT/digits \
        --run photos4=OUT/photos4-run:OUT/photos4.truth.csv
    python benchmarks/reviewing.py --out benchmarks/results/reviewing.json --page docs/review.md

A row is one simulation: its seed decides which samples are taken at random. The reviewer is asked in the order of
`next_to_ask`, which is computed again after every five answers, and is never wrong.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from common import filled_blocks, kept_results, stamp, true_labels

from labelmend.detect.verified import Answers, Judged, Recalibrated, expected_left, next_to_ask, recalibrate

STOPS = (20, 50, 100, 150)
EVERY = 5
SEEDS, FIRST_SEED = 20, 100
"""Settings were chosen with seeds below 20 on the same two runs; these are others."""


def read_run(text: str) -> tuple[str, Judged, Any, Any, list[float]]:
    """Name, findings, which labels are wrong, which suggestions are, and the judge's own interval of a run."""
    name, _, where = text.partition("=")
    folder, _, truth_file = where.partition(":")
    table = pq.read_table(Path(folder) / "labels.parquet").to_pydict()
    column = {key: np.array(values) for key, values in table.items()}
    truth = true_labels(Path(truth_file), table["id"]) if truth_file else column["truth"]
    relabel = column["verdict"] == "relabel"
    given = np.unique(column["given"], return_inverse=True)[1]
    judged = Judged(column["noisy_probability"], given, relabel, np.where(relabel, column["confidence"], 0.0))
    interval = json.loads((Path(folder) / "noise.json").read_text())["interval"]
    return name, judged, column["given"] != truth, relabel & (column["suggested"] != truth), interval


def simulate(judged: Judged, wrong: Any, misled: Any, seed: int) -> list[dict[str, Any]]:
    """What is known and what is left after each stop of one simulation."""
    asked, found = np.zeros(0, dtype=np.int64), list[dict[str, Any]]()
    while len(asked) <= max(STOPS):
        state = recalibrate(judged, Answers(asked, wrong[asked]))
        if len(asked) in STOPS:
            found.append(measured(state, wrong, misled))
        asked = np.concatenate([asked, next_to_ask(state, count=EVERY, seed=seed)])
    return found


def measured(state: Recalibrated, wrong: Any, misled: Any) -> dict[str, Any]:
    """The figures of one stop; a label is left wrong if nobody answered and the verdict does not mend it."""
    left = int((state.open & np.where(state.relabel, misled, wrong)).sum())
    noise, rest = state.noise, expected_left(state)
    return {
        "answers": len(state.answers.rows),
        "rate": noise.share,
        "low": noise.low,
        "high": noise.high,
        "left": left,
        "expected_left": rest.expected,
        "left_low": rest.low,
        "left_high": rest.high,
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """The figures of the page, a line for each run and stop."""
    lines = [
        "| run | answers | truth | interval contains it | mean width | widest | half of the judge's own | "
        "wrong labels left, mean | most | a third of those after `apply` |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["run"] for row in rows):
        for stop in STOPS:
            chosen = [row for row in rows if row["run"] == name and row["answers"] == stop]
            inside = sum(row["low"] <= row["truth"] <= row["high"] for row in chosen)
            widths = [row["high"] - row["low"] for row in chosen]
            first, left = chosen[0], [row["left"] for row in chosen]
            lines.append(
                f"| {name} | {stop} | {first['truth']:.4f} | {inside} of {len(chosen)} | {np.mean(widths):.4f} | "
                f"{max(widths):.4f} | {first['own_width'] / 2:.4f} | {np.mean(left):.1f} | {max(left)} | "
                f"{first['left_before'] / 3:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", action="append", default=[], help="NAME=RUN, or NAME=RUN:TRUTH.csv")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--page", type=Path)
    wishes = parser.parse_args()
    rows = kept_results(wishes.out)
    for text in wishes.run:
        name, judged, wrong, misled, interval = read_run(text)
        about = {
            "run": name,
            "samples": len(wrong),
            "truth": float(wrong.mean()),
            "own_width": interval[1] - interval[0],
            "left_before": int(np.where(judged.relabel, misled, wrong).sum()),
        }
        rows = [row for row in rows if row["run"] != name]
        for seed in range(wishes.first_seed, wishes.first_seed + wishes.seeds):
            rows += [about | {"seed": seed} | each for each in simulate(judged, wrong, misled, seed)]
        wishes.out.write_text(json.dumps({**stamp(), "rows": rows}, indent=1) + "\n")
    if wishes.page:
        wishes.page.write_text(filled_blocks(wishes.page.read_text(), {"reviewing": summary(rows)}))
    print(summary(rows), file=sys.stderr)


if __name__ == "__main__":
    main()
