"""The run directory of predictions that were judged: all of a run's files but those of training."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from ..data.preflight import Preflight
from ..data.samples import Samples
from ..detect.summary import detection_quality
from ..detect.table import LabelTable
from ..errors import InputError
from ..files import write_atomic
from .description import versions, write_description
from .directory import RunDirectory
from .evidence import MOST_SUSPECTS, suspects_table
from .labels import parquet_bytes, write_labels
from .lock import owned
from .noise import write_noise
from .preflight import write_preflight

KIND = "judged"


def write_judged(
    run: RunDirectory,
    table: LabelTable,
    *,
    config: Mapping[str, Any],
    samples: Samples | None,
    auc: float | None,
    seconds: float,
    afterwards: Callable[[RunDirectory], None],
) -> None:
    """Write a finished run of this label table, whose samples are in the same order.

    A new folder that could not be filled is removed. `afterwards` is called with the finished run while this process
    still owns it, for instance to build a report.
    """
    new, finished = not run.path.exists(), False
    try:
        run.path.mkdir(parents=True, exist_ok=True)
        with owned(run.path):
            write_labels(run, table)
            write_noise(run, table.noise or {})
            write_preflight(run, Preflight(checked=len(table)))
            run.evidence.mkdir(exist_ok=True)
            if samples is not None:
                rows = table.suspects()[:MOST_SUSPECTS].tolist()
                write_atomic(run.suspects, parquet_bytes(suspects_table(samples, rows)))
            write_description(run.run_json, _description(table, config, samples, auc, seconds))
            finished = True
            afterwards(run)
    except BaseException as error:
        if new and not finished:
            shutil.rmtree(run.path, ignore_errors=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InputError(f"cannot write to {run.path}: {reason}; choose another --out") from None
        raise


def _description(
    table: LabelTable, config: Mapping[str, Any], samples: Samples | None, auc: float | None, seconds: float
) -> dict[str, Any]:
    """What run.json says."""
    noise, wrong = table.noise or {}, table.wrong
    quality = detection_quality(table) or dict.fromkeys(("precision", "recall", "f1", "calibration_error"))
    return {
        "status": "finished",
        "kind": KIND,
        "config": dict(config),
        "data": {
            "name": config["source"] or config["labels"],
            "samples": len(table),
            "shape": None,
            "classes": list(table.class_names),
            "test_samples": None,
            "trusted": None,
            "fingerprint": _fingerprint(table) if samples is None else samples.fingerprint(),
        },
        "noise": None
        if wrong is None
        else {"kind": f"truth {config['truth']}", "nominal": None, "real": float(wrong.mean())},
        "preflight": {"skipped": 0, "notes": 0},
        "versions": versions(),
        "summary": {
            "best_accuracy": None,
            "last_accuracy": None,
            "noise_rate": noise["rate"],
            "auc": auc,
            **quality,
            "mixture": None,
            "degenerate": None if noise["evidence"] else noise["reason"],
            "finding": noise["finding"],
            "suspects": len(table.suspects()),
            "seconds": round(seconds, 1),
        },
    }


def _fingerprint(table: LabelTable) -> str:
    """SHA-256 over ids, class names and labels: which labels were judged."""
    digest = hashlib.sha256("\0".join([*table.ids, *table.class_names]).encode(errors="surrogateescape"))
    digest.update(table.given.tobytes())
    return digest.hexdigest()
