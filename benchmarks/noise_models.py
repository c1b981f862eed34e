"""Which mixture to train and judge with: m-dyr-h on digits with each noise model, rate and seed.

    python benchmarks/noise_models.py --out results.json [--seeds 0,1,2] [--rates 0,0.2,0.5,0.8] [--models bmm,log-gmm]

Gives last accuracy, AUC for wrong labels, real and estimated noise rate, precision and recall of what is flagged
(P(wrong) > 0.5), and the share of wrong labels after taking the suggestions. All with 60 epochs, on one thread.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from labelmend.config import TrainConfig
from labelmend.train import prepare, train


def measure(model: str, rate: str, seed: int, epochs: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            source="digits",
            out=f"{folder}/run",
            noise=f"symmetric:{rate}",
            seed=seed,
            epochs=epochs,
            threads=1,
            settings={"noise_model": model},
        )
        run, _ = train(prepare(config))
        summary, labels = run.read()["summary"], pq.read_table(run.labels_parquet).to_pydict()
    given, suggested, truth = (np.array(labels[name]) for name in ("given", "suggested", "truth"))
    wrong, flagged = given != truth, np.array(labels["noisy_probability"]) > 0.5
    hits = int((wrong & flagged).sum())
    return {
        "noise_model": model,
        "nominal": float(rate),
        "seed": seed,
        "accuracy": summary["last_accuracy"],
        "auc": summary["auc"],
        "real_rate": float(wrong.mean()),
        "estimated_rate": summary["noise_rate"],
        "flagged": float(flagged.mean()),
        "precision": hits / max(int(flagged.sum()), 1),
        "recall": hits / max(int(wrong.sum()), 1),
        "wrong_after": float((suggested != truth).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rates", default="0,0.2,0.5,0.8")
    parser.add_argument("--models", default="bmm,log-gmm")
    parser.add_argument("--epochs", type=int, default=60)
    asked = parser.parse_args()
    rows = []
    for seed in map(int, asked.seeds.split(",")):
        for rate in asked.rates.split(","):
            for model in asked.models.split(","):
                rows.append(measure(model, rate, seed, asked.epochs))
                print(json.dumps(rows[-1]), flush=True)
                asked.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
