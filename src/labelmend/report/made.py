"""How a run was made: the command that asks for the same, and what was chosen."""

import shlex
from typing import Any

from .read import Findings


def made(findings: Findings) -> list[tuple[str, str]]:
    """Names and values of what is known about the making of a run."""
    described, data, config = findings.described, findings.described["data"], findings.described["config"]
    chosen = described.get("chosen") or {}
    reasons = chosen.get("reasons", {})
    shape = f" of {' × '.join(map(str, data['shape']))}" if data.get("shape") else ""
    rows = [("data", f"{data['name']}: {data['samples']:,} samples{shape}, {len(data['classes'])} classes")]
    if noise := described.get("noise"):
        nominal = "" if noise["nominal"] is None else f", nominal {noise['nominal']:.1%}"
        rows.append(("known wrong labels", f"{noise['kind']}{nominal}, really wrong {noise['real']:.1%}"))
    rows += [("method", str(config["method"]))] if config.get("method") and "method" not in chosen else []
    rows += [("seed", str(config["seed"]))] if "seed" in config else []
    for key, name in (("method", "method"), ("net", "network"), ("epochs", "epochs"), ("batch_size", "batch size")):
        if key in chosen:
            rows.append((name, f"{chosen[key]} ({reasons[key]})"))
    if "augment" in reasons:
        rows.append(("augmentation", reasons["augment"]))
    if chosen.get("precision", "no") != "no":
        rows.append(("precision", reasons.get("precision", chosen["precision"])))
    if findings.summary["seconds"] is not None:
        rows.append(("time", f"{findings.summary['seconds']:,.0f} s"))
    if "machine" in described:
        rows.append(("device", described["machine"]["device"] + _threads(chosen)))
    versions = described.get("versions", {})
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    return [row for row in rows if row[1]]


def _threads(chosen: dict[str, Any]) -> str:
    count = chosen.get("threads")
    return f", {count} thread{'s' if count != 1 else ''} ({chosen['reasons']['threads']})" if count else ""


def repeated(described: dict[str, Any]) -> dict[str, Any]:
    """The configuration that makes the same run again: what was chosen by the clock is asked for by name."""
    config, chosen = described["config"], described.get("chosen") or {}
    if not chosen.get("seconds"):
        return dict(config)
    settings = dict(config.get("settings", {}))
    if chosen.get("precision", "no") != "no":
        settings["precision"] = chosen["precision"]
    folds = (described.get("options") or {}).get("folds")
    if config.get("time") and folds is not None:
        settings["folds"] = str(folds)
    return dict(config) | {"time": None, "net": chosen["net"], "epochs": chosen["epochs"], "settings": settings}


def command_line(config: dict[str, Any]) -> str:
    """The command that asks for the same run, with every option that had a value."""
    verb, subject = ("judge", "probabilities") if "probabilities" in config else ("train", "source")
    parts = ["labelmend", verb, str(config[subject]), "--out", config["out"]]
    for name, value in config.items():
        if name in (subject, "out", "settings", "resume") or value is None or value is False:
            continue
        flag = f"--{name.replace('_', '-')}"
        parts += [flag] if value is True else [flag, str(value)]
    for key, value in config.get("settings", {}).items():
        parts += ["--set", f"{key}={value}"]
    return shlex.join(parts)
