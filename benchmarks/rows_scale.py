"""What a table of a million rows takes: seconds and peak memory of `labelmend train` on the CSV file, without options.

    python benchmarks/rows_scale.py --out benchmarks/results/rows-scale.json [--samples 1000000] [--folder FOLDER]

The table has 30 columns: 20 numbers, 6 categories, a date, a truth value, and two columns with gaps; the label is one
of four classes that follow from some of them, and a tenth of the labels is wrong. `memory` is the peak of the command's
resident memory. The file takes 300 MB in `--folder` and is deleted afterwards.
"""

import argparse
import json
import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import labelmend_run, stamp

CLASSES = ("north", "east", "south", "west")
WRONG = 0.1


def write(folder: Path, samples: int) -> Path:
    """The table, and its truth beside it."""
    import pandas as pd

    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(samples, 22)).astype(np.float32)
    kinds = rng.integers(0, 12, (samples, 6))
    score = np.stack([numbers[:, k] + 0.8 * numbers[:, k + 4] * numbers[:, k + 8] for k in range(4)], axis=1)
    score += 1.5 * (kinds[:, :4] % 4 == np.arange(4)) + 0.3 * rng.gumbel(size=(samples, 4))
    truth = score.argmax(axis=1)
    wrong = rng.random(samples) < WRONG
    given = np.where(wrong, (truth + rng.integers(1, 4, samples)) % 4, truth)
    numbers[rng.random(samples) < 0.1, 20] = np.nan
    numbers[rng.random(samples) < 0.3, 21] = np.nan
    columns = {f"number {k}": numbers[:, k].round(4) for k in range(22)}
    columns |= {f"kind {k}": np.array([f"k{value}" for value in range(12)])[kinds[:, k]] for k in range(6)}
    columns["day"] = (np.datetime64("2020-01-01") + rng.integers(0, 1500, samples)).astype(str)
    columns["member"] = np.where(rng.random(samples) < 0.5, "yes", "no")
    ids, names = np.arange(samples).astype(str), np.array(CLASSES)
    path = folder / "million.csv"
    pd.DataFrame({"id": ids, **columns, "label": names[given]}).to_csv(path, index=False)
    pd.DataFrame({"id": ids, "truth": names[truth]}).to_csv(folder / "truth.csv", index=False)
    return path


def summary(row: dict[str, Any]) -> str:
    """What was measured, as docs/rows.md has it."""
    return (
        f"A table of {row['samples']:,} rows and {row['columns']} columns ({row['bytes'] / 1e6:.0f} MB as CSV) took "
        f"{row['seconds'] / 60:.1f} minutes and {row['memory'] / 1e9:.1f} GB from the file to the verdicts: "
        f"AUC {row['auc']:.3f}, F1 {row['f1']:.3f}, rate {row['estimated_rate']:.3f} for {row['real_rate']:.3f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where the table is written; by default the folder for temporary files")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as made:
        path = write(Path(made), asked.samples)
        size = path.stat().st_size
        found = labelmend_run([str(path)], Path(made), truth=Path(made, "truth.csv"))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    row = {"samples": asked.samples, "columns": 30, "bytes": size, "memory": memory, **found, **stamp()}
    asked.out.write_text(json.dumps({"rows": [row]}, indent=1) + "\n")
    print(json.dumps(row))
    print(summary(row))


if __name__ == "__main__":
    main()
