"""model-card.md: what the model of a run is, how it came about, how to use it, and how far to trust it."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from ..data.kinds.encoded import Encoded
from ..data.kinds.table import Table
from ..detect.summary import headline
from ..files import write_atomic
from ..markup import markdown_table, markdown_text
from .directory import RunDirectory
from .model import Model

CLASSES_LISTED, COLUMNS_LISTED = 100, 20
Described = Mapping[str, Any]


def write_card(run: RunDirectory, described: Described, noise: Described, model: Model) -> None:
    """Write the card of a model; `described` and `noise` are what run.json and noise.json say of the finished run."""
    weights = sum(tensor.numel() for network in model.networks for tensor in network.state_dict().values())
    facts = {"takes": described_inputs(model), "networks": len(model.networks), "weights": weights}
    text = card(described, noise, facts | {"commit": source_commit()})
    write_atomic(run.card, text.encode(errors="surrogateescape"))


def card(described: Described, noise: Described, facts: Described) -> str:
    """The card in Markdown; names that come from the data are escaped.

    `facts` are those of the model: what it `takes` in Markdown, how many `networks` and `weights` it has, and the
    `commit` of labelmend, None if that is not known.
    """
    data, chosen = described["data"], described["chosen"]
    title = f"# Model card: {markdown_text(data['name'])}"
    what = (
        f"A classifier of {facts['takes']} into {len(data['classes']):,} classes, trained by labelmend on "
        f"{data['samples']:,} samples whose labels may be wrong."
    )
    parts = [
        [title, "", what],
        ["## Model", "", *_listed(_model(chosen, facts))],
        ["## Training data", "", *_listed(_data(described)), "", *_classes(noise)],
        ["## Training", "", *_listed(_training(described))],
        ["## Wrong labels", "", headline(noise, data["samples"]), *_detection(described)],
        ["## Accuracy", "", _accuracy(described)],
        ["## Use", "", *_use()],
        ["## Intended use and limits", "", *_limits(described, noise)],
        ["## Versions", "", *_listed([*described["versions"].items(), ("commit of labelmend", facts["commit"])])],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _listed(facts: Sequence[tuple[str, object]]) -> list[str]:
    """Lines of a list; what is not known is left out."""
    return [f"- {name}: {markdown_text(value)}" for name, value in facts if value is not None]


def described_inputs(model: Model) -> str:
    """What the model takes, in Markdown."""
    shape = "x".join(str(size) for size in model.shape)
    if isinstance(model.kind, Encoded) and model.encoding is not None:
        by = "your own" if model.encoding.from_file else f"{markdown_text(model.encoding.identity)}"
        return f"{'rows' if model.kind.of is None else model.kind.of.name} by {shape} features ({by})"
    if isinstance(model.kind, Table):
        names = [str(column["name"]) for column in model.kind.described().get("columns", []) if column["features"]]
        shown = ", ".join(map(markdown_text, names[:COLUMNS_LISTED]))
        more = f" and {len(names) - COLUMNS_LISTED:,} more" if len(names) > COLUMNS_LISTED else ""
        return f"rows of a table (columns {shown}{more}; {shape} numbers)"
    return f"images of {shape} (channels, height, width)" if len(model.shape) == 3 else f"rows of {shape} numbers"


def _model(chosen: Described, facts: Described) -> list[tuple[str, object]]:
    return [
        ("network", chosen["net"]),
        ("networks, of which the mean is taken", facts["networks"] if facts["networks"] > 1 else None),
        ("numbers stored", f"{facts['weights']:,}"),
        ("files", "model.safetensors, model.json"),
    ]


def _data(described: Described) -> list[tuple[str, object]]:
    data, noise = described["data"], described["noise"]
    made = None
    if noise is not None:
        made = f"{noise['kind']}: {noise['real']:.1%} of the labels are known to be wrong"
    return [
        ("name", data["name"]),
        ("samples", f"{data['samples']:,}"),
        ("unusable samples left out", described["preflight"]["skipped"] or None),
        ("samples with trusted labels", data.get("trusted")),
        ("labels made wrong on purpose", made if described["config"].get("noise") else None),
        ("labels from a file, with the truth known", None if described["config"].get("noise") else made),
        ("fingerprint (SHA-256)", data["fingerprint"]),
    ]


def _classes(noise: Described) -> list[str]:
    classes = noise["classes"]
    rows = [(c["name"], f"{c['samples']:,}", f"{c['rate']:.1%}", f"{c['flagged']:,}") for c in classes[:CLASSES_LISTED]]
    lines = markdown_table(("class", "labelled so", "estimated wrong", "flagged"), rows)
    more = len(classes) - CLASSES_LISTED
    return [*lines, "", f"and {more:,} more classes in noise.json"] if more > 0 else lines


def _training(described: Described) -> list[tuple[str, object]]:
    config, chosen = described["config"], described["chosen"]
    settings = ", ".join(f"{key}={value}" for key, value in config.get("settings", {}).items())
    return [
        ("method", chosen.get("method") or config.get("method")),
        ("settings of the method", ", ".join(f"{key}={value}" for key, value in described["options"].items()) or None),
        ("set by the user", settings or None),
        ("epochs", chosen["epochs"]),
        ("batch size", chosen["batch_size"]),
        ("augmentation", chosen.get("augment") or "none"),
        ("weights to start from", config.get("init")),
        ("seed", config["seed"]),
        ("device", f"{described['machine']['device']}, {described['machine']['processes']} process(es)"),
    ]


def _detection(described: Described) -> list[str]:
    auc = described["summary"]["auc"]
    return (
        []
        if auc is None
        else ["", f"Where the truth is known, wrong labels were told from right ones with AUC {auc:.4f}."]
    )


def _accuracy(described: Described) -> str:
    summary, tested = described["summary"], described["data"]["test_samples"]
    if summary["last_accuracy"] is None:
        return "Not measured: no test set was given. Measure it on samples with checked labels before you rely on it."
    return (
        f"{summary['last_accuracy']:.4f} on {tested:,} test samples after the last epoch (best epoch "
        f"{summary['best_accuracy']:.4f}); it is only as right as the labels of the test set."
    )


def _use() -> list[str]:
    return [
        "`RUN` is the folder of this file.",
        "",
        "```python",
        "import labelmend",
        "",
        'model = labelmend.load("RUN").model',
        "model.predict_proba(new_samples)  # [samples, classes], in the order of model.class_names",
        "```",
        "",
        "```sh",
        "labelmend predict RUN NEW-SAMPLES --out predictions.csv",
        "labelmend export RUN --to onnx --out model.onnx",
        "```",
    ]


def _limits(described: Described, noise: Described) -> list[str]:
    lines = [
        "For samples of the same kind and origin as the training data, and for finding wrong labels in those.",
        "Every sample gets one of the classes above, also one that belongs to none of them.",
        "The method allows for wrong labels that are not too many and not too regular: what nearly all labels of a "
        "class say wrongly, the model learns.",
        "Which labels are wrong is an estimate; no person has looked at them.",
        "Effects on people, and differences between groups of them, were not examined.",
    ]
    if noise.get("reason") and noise.get("finding") == "cannot judge":
        lines.append(f"Whether the labels are wrong could not be told, because {markdown_text(noise['reason'])}.")
    if described["chosen"].get("features") or described["config"].get("init"):
        lines.append("It builds on a network that others trained: its licence and what it learned apply here too.")
    return [f"- {line}" for line in lines]


def source_commit() -> str | None:
    """Commit of labelmend's own source, where it was installed from version control or runs from a checkout."""
    known = json.loads(distribution("labelmend").read_text("direct_url.json") or "{}")
    if "vcs_info" in known:
        return str(known["vcs_info"].get("commit_id"))
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip() or None
