"""Run directories written by the contract of their files, without training."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from safetensors.numpy import save_file

from labelmend.detect.judge import CLEAN, FOUND, UNKNOWN, judge_predictions
from labelmend.detect.summary import ADVICE, describe_noise
from labelmend.detect.table import LabelTable
from labelmend.run.description import write_description
from labelmend.run.directory import RunDirectory
from labelmend.run.evidence import BESIDE
from labelmend.run.labels import write_labels
from labelmend.run.noise import write_noise

CLASSES = ("cat", "dog", "owl")


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def write_run(
    path: Path,
    *,
    samples: int = 120,
    classes: Sequence[str] = CLASSES,
    ids: Sequence[str] | None = None,
    pictures: Sequence[np.ndarray] | None = None,
    columns: Sequence[str] = (),
    texts: Sequence[str] | None = None,
    neighbours: bool = False,
    truth: Sequence[int] | np.ndarray | None = None,
    rate: float = 0.3,
    finding: str = FOUND,
    epochs: int = 12,
    method: str = "m-dyr-h",
    features: np.ndarray | None = None,
    seed: int = 0,
) -> RunDirectory:
    """A finished run on made-up losses: images of noise, a table if `columns` are named, or `texts`.

    With `neighbours`, three samples of each of two classes stand beside every suspect, and one value is unusual.
    """
    rng = np.random.default_rng(seed)
    run = RunDirectory(path)
    run.create({})
    run.evidence.mkdir(exist_ok=True)
    count = len(classes)
    names = np.asarray(classes, dtype=object)
    truth = np.arange(samples) % count if truth is None else np.asarray(truth)
    wrong = rng.random(samples) < (0 if finding == CLEAN else rate)
    given = np.where(wrong, (truth + rng.integers(1, max(count, 2), samples)) % count, truth)
    log_loss = np.where(wrong, rng.normal(1.0, 0.35, samples), rng.normal(-4.0, 1.2, samples))
    loss = np.exp(log_loss)
    probability = np.where(wrong, rng.beta(30, 1, samples), rng.beta(1, 60, samples))
    flagged = wrong & (finding == FOUND)
    verdict = np.where(~flagged, "keep", np.where(rng.random(samples) < 0.9, "relabel", "look"))
    confidence = np.where(flagged, rng.beta(20, 2, samples), 1 - probability)
    table = {
        "id": [f"train/{i:05}" for i in range(samples)] if ids is None else list(ids),
        "given": names[given],
        "noisy_probability": probability,
        "suggested": names[np.where(verdict == "relabel", truth, given)],
        "confidence": confidence,
        "loss": loss,
        "margin": log_loss,
        "steadiness": np.where(wrong, 0.9, 0.0),
        "verdict": verdict,
        "rank": np.argsort(np.argsort(-probability, kind="stable")) + 1,
        "truth": names[truth],
    }
    text = {"id", "given", "suggested", "verdict", "truth"}
    arrow = pa.table({name: pa.array(list(v), pa.string() if name in text else None) for name, v in table.items()})
    pq.write_table(arrow, run.labels_parquet)
    order = np.argsort(-probability, kind="stable")[:1000]
    suspects: dict[str, Any] = {"id": pa.array([table["id"][i] for i in order], pa.string())}
    if columns:
        suspects["features"] = pa.array(rng.normal(size=(len(order), len(columns))).tolist(), pa.list_(pa.float32()))
    elif texts is not None:
        suspects["text"] = pa.array([texts[i] for i in order], pa.string())
        suspects["marks"] = pa.array([[1, 3]] * len(order), pa.list_(pa.int32()))
    else:
        noise = rng.integers(0, 255, (len(order), 8, 8, 3), dtype=np.uint8)
        shown = noise if pictures is None else [pictures[i] for i in order]
        suspects["picture"] = pa.array([png(picture) for picture in shown], pa.binary())
    evidence_table = pa.table(suspects)
    if neighbours:
        evidence_table = _write_neighbours(run, evidence_table, names[given], names[truth], order)
    if columns:
        evidence_table = evidence_table.replace_schema_metadata({b"columns": json.dumps(list(columns)).encode()})
    pq.write_table(evidence_table, run.suspects)
    _write_noise(run, classes, given, truth, flagged, finding=finding, verdict=verdict)
    _write_losses(run, rng, epochs, wrong)
    rows = np.sort(rng.choice(samples, min(samples, 5000), replace=False))
    if features is None:
        centres = rng.normal(0, 3, (count, 8)).astype(np.float32)
        features = centres[truth] + rng.normal(size=(samples, 8)).astype(np.float32)
    tensors = {"index": rows.astype(np.int64), "features": np.ascontiguousarray(features[rows], dtype=np.float32)}
    save_file(tensors, run.features, {"explained": "0.41,0.22,0.1"})
    _write_epochs(run, epochs, rate)
    run.run_json.write_text(
        json.dumps(_description(path, samples, classes, log_loss, wrong, finding == FOUND, epochs, method))
    )
    return run


def _write_neighbours(
    run: RunDirectory, suspects: pa.Table, given: np.ndarray, rival: np.ndarray, order: np.ndarray
) -> pa.Table:
    """The table of suspects with the first three of them beside the label, and the next three beside its rival."""
    few = suspects.slice(0, 6)
    pq.write_table(few.append_column("given", pa.array(given[order[:6]].tolist(), pa.string())), run.neighbours)
    entry = {"column": 1, "value": 9.5, "given": [0.0, 1.0], "rival": [8.0, 12.0]}
    unusual = [entry] if "features" in suspects.column_names else None
    values = {"rival": rival[order].tolist(), "like_given": [0, 1, 2], "like_rival": [3, 4, 5], "unusual": unusual}
    for name, kind in BESIDE.items():
        if name.startswith("near"):
            continue
        value = values[name] if name == "rival" else [values[name]] * len(order)
        suspects = suspects.append_column(name, pa.array(value, kind))
    return suspects


def _write_noise(
    run: RunDirectory, classes: Sequence[str], given: np.ndarray, truth: np.ndarray, wrong: np.ndarray, **rest: Any
) -> None:
    count = len(classes)
    transition = np.zeros((count, count))
    np.add.at(transition, (truth, given), 1)
    transition /= np.maximum(transition.sum(axis=1, keepdims=True), 1)
    by_class = [(name, int((given == i).sum()), int((given == i)[wrong].sum())) for i, name in enumerate(classes)]
    rate = float(wrong.mean())
    noise = {
        "finding": rest["finding"],
        "advice": ADVICE if rest["finding"] == UNKNOWN else None,
        "evidence": rest["finding"] == FOUND,
        "reason": "the network said so",
        "rate": rate,
        "interval": [max(rate - 0.02, 0), rate + 0.02],
        "threshold": 0.41,
        "flagged": int(wrong.sum()),
        "relabel": int((rest["verdict"] == "relabel").sum()),
        "look": int((rest["verdict"] == "look").sum()),
        "expected_precision": 0.97 if rest["finding"] == FOUND else None,
        "classes": [{"name": n, "samples": s, "rate": f / max(s, 1), "flagged": f} for n, s, f in by_class],
        "transition": transition.tolist(),
    }
    run.noise_json.write_text(json.dumps(noise))


def _write_losses(run: RunDirectory, rng: np.random.Generator, epochs: int, wrong: np.ndarray) -> None:
    columns = min(len(wrong), 20_000)
    which = wrong[np.arange(columns) * len(wrong) // columns]
    time = np.linspace(0, 1, epochs)[:, None]
    level = np.where(which, 2.3 + time, 2.3 * (1 - time) + 0.05)
    losses = level * rng.gamma(9, 1 / 9, (epochs, columns))
    run.losses.write_bytes(losses.astype("<f2").tobytes())


def _write_epochs(run: RunDirectory, epochs: int, rate: float) -> None:
    for epoch in range(1, epochs + 1):
        time = epoch / epochs
        late = time > 0.35
        mixture = {"weight_clean": 1 - rate, "weight_noisy": rate, "alpha_clean": 2 - time, "beta_clean": 5 + 3 * time}
        mixture |= {"alpha_noisy": 4 + 3 * time, "beta_noisy": 4.0, "low": 0.0, "span": 5 + time}
        run.append_epoch(
            {
                "epoch": epoch,
                "phase": "mixup + dynamic bootstrapping" if late else "mixup warm-up",
                "lr": 0.1,
                "train_loss": 2 - time,
                "test_accuracy": 0.4 + 0.55 * time**0.3,
                "noise_rate": rate * min(1, 1.5 - time),
                "auc": 0.7 + 0.29 * time**0.5,
                "mixture": mixture if epoch > 1 else None,
                "decided_by": "losses",
                "degenerate": None,
                "seconds": 1.5,
            }
        )


def _description(
    path: Path,
    samples: int,
    classes: Sequence[str],
    log_loss: np.ndarray,
    wrong: np.ndarray,
    evidence: bool,
    epochs: int,
    method: str,
) -> dict[str, Any]:
    mixture = None
    if evidence:
        mixture = {
            "weight_noisy": float(wrong.mean()),
            "mean_noisy": float(log_loss[wrong].mean()),
            "variance_noisy": float(log_loss[wrong].var()),
            "means_clean": [float(log_loss[~wrong].mean())] * len(classes),
            "variance_clean": float(log_loss[~wrong].var()),
        }
    reasons = dict.fromkeys(("net", "epochs", "batch_size", "augment", "threads"), "because it fits")
    config = {"source": "made-up.npz", "out": str(path), "method": method, "noise": None, "seed": 0, "settings": {}}
    return {
        "status": "finished",
        "config": config | {"labels": None, "skip_bad": False, "resume": False},
        "options": {"noise_model": "bmm"},
        "chosen": {"net": "convnet", "epochs": epochs, "batch_size": 32, "threads": 1, "reasons": reasons},
        "data": {"name": "made-up", "samples": samples, "shape": [3, 8, 8], "classes": list(classes)},
        "noise": {"kind": "symmetric", "nominal": 0.35, "real": float(wrong.mean())},
        "machine": {"device": "cpu"},
        "versions": {"python": "3.11", "labelmend": "0.1.0"},
        "summary": {
            "best_accuracy": 0.951,
            "last_accuracy": 0.95,
            "noise_rate": float(wrong.mean()),
            "auc": 0.99,
            "mixture": mixture,
            "suspects": int(wrong.sum()),
            "seconds": 18.0,
        },
    }


def write_judged(path: Path, *, samples: int = 300, truth_known: bool = True) -> RunDirectory:
    """A run that was made from predictions: no epochs, no model, no evidence, and nothing chosen."""
    rng = np.random.default_rng(0)
    truth = np.arange(samples) % len(CLASSES)
    given = np.where(rng.random(samples) < 0.2, (truth + 1) % len(CLASSES), truth)
    judgement = judge_predictions(given, 0.8 * np.eye(3)[truth] + 0.2 * rng.dirichlet(np.ones(3), samples))
    ids = [str(row) for row in range(samples)]
    table = LabelTable.of(judgement, given, ids=ids, class_names=CLASSES, truth=truth if truth_known else None)
    path.mkdir(parents=True)
    run = RunDirectory(path)
    write_labels(run, table)
    write_noise(run, describe_noise(table, judgement))
    data = {"name": "probs.npy", "samples": samples, "shape": None, "classes": list(CLASSES), "fingerprint": None}
    description = {
        "status": "finished",
        "kind": "judged",
        "config": {"probabilities": "probs.npy", "labels": "labels.csv:label", "source": None},
        "data": data | {"test_samples": None, "trusted": None},
        "noise": None,
        "versions": {"labelmend": "0.2"},
        "summary": {"best_accuracy": None, "last_accuracy": None, "noise_rate": judgement.rate, "auc": None},
    }
    write_description(run.run_json, description)
    return run


@pytest.fixture(scope="session", name="write_run")
def writer() -> Callable[..., RunDirectory]:
    """For fixtures that outlive a test: the same with a path."""
    return write_run


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDirectory]:
    return lambda name="run", **options: write_run(tmp_path / name, **options)


@pytest.fixture
def make_judged(tmp_path: Path) -> Callable[..., RunDirectory]:
    return lambda name="judged", **options: write_judged(tmp_path / name, **options)
