"""Build `report.html` from a run directory."""

import base64
import hashlib
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..detect.summary import headline
from ..errors import InputError
from ..files import write_atomic
from ..run.directory import RunDirectory
from . import figures
from .confusion import confusion
from .embedding import embedding
from .gallery import gallery
from .read import Findings, read_findings

SUSPECTS = 200
DECIDING = {"losses": "losses", "rival_log_odds": "log-odds of the best other class against the given label"}
"""What the noise model that decided in an epoch was fitted to, in words."""
OPENING = '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>labelmend'


def build_report(
    run: RunDirectory, *, suspects: int = SUSPECTS, embedding_kind: str = "pca", out: Path | None = None
) -> None:
    """Write the report of a finished run, one self-contained file."""
    if out is not None:
        check_replaceable(out)
    findings = read_findings(run)
    page = render(
        "template.html",
        title=findings.name,
        run=findings.described,
        summary=findings.summary,
        noise=findings.noise,
        headline=headline(findings.noise, len(findings.table)),
        precision=known_precision(findings),
        seen=_seen(findings),
        gallery=gallery(findings, suspects),
        confusion=confusion(findings),
        training=_training(findings),
        phases=figures.phases(findings.epochs),
        embedding=embedding(findings, embedding_kind),
        command=command_line(findings.described["config"]),
    )
    write_atomic(out or run.report, page)


def check_replaceable(out: Path) -> None:
    """Refuse to replace a file that is not a page of labelmend, or to write into a missing folder."""
    if not out.parent.is_dir():
        raise InputError(f"{out.parent} is not a folder; make it first or choose another --out")
    if not out.exists():
        return
    if not out.is_file() or not _opening(out).startswith(OPENING.encode()):
        raise InputError(f"{out} exists and is not a report; choose another file with --out")


def _opening(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(OPENING))


def render(template: str, **values: Any) -> bytes:
    """A page from a template, with style and script inside; all text is escaped, figures are not."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    package = files(__package__)
    environment = Environment(
        loader=FunctionLoader(lambda name: package.joinpath(name).read_text()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "svg": Markup}
    script = package.joinpath("script.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = package.joinpath("style.css").read_text()
    page = environment.get_template(template).render(
        script=Markup(script), script_hash=digest, style=Markup(style), **values
    )
    return page.encode(errors="replace")


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent, or a dash where it is unknown."""
    return "–" if share is None else f"{100 * share:.{digits}f}\u00a0%"


def known_precision(findings: Findings) -> float | None:
    """The share of flagged labels that are really wrong, where the truth is known."""
    if not findings.has_truth or not findings.flagged.any():
        return None
    wrong = findings.column("given") != findings.column("truth")
    return float(wrong[findings.flagged].mean())


def command_line(config: dict[str, Any]) -> str:
    """The command that asks for the same run, with every option that had a value."""
    parts = ["labelmend", "train", config["source"], "--out", config["out"]]
    for name, value in config.items():
        if name in ("source", "out", "settings", "resume") or value is None or value is False:
            continue
        flag = f"--{name.replace('_', '-')}"
        parts += [flag] if value is True else [flag, str(value)]
    for key, value in config.get("settings", {}).items():
        parts += ["--set", f"{key}={value}"]
    return shlex.join(parts)


def _seen(findings: Findings) -> list[tuple[str, str]]:
    """Figures of the margins, by which the labels were judged, and of the losses, each with its caption."""
    last = findings.epochs[-1] if findings.epochs else {"decided_by": None}
    fitted = last["mixture"] if last["decided_by"] == "losses" else None
    margins = "Log-odds against the given label, averaged over the tracking passes of the run (margin)."
    losses = "Cross-entropy of every sample against its given label after the last epoch."
    threshold, drawn = findings.noise["threshold"], []
    for on, mixture, caption in (("margin", findings.summary["mixture"], margins), ("loss", fitted, losses)):
        values = findings.column(on), findings.flagged, mixture
        drawn.append((figures.both_widths(figures.group_histogram, *values, on=on, threshold=threshold), caption))
    return drawn


def _training(findings: Findings) -> list[tuple[str, str]]:
    """Figures over the epochs, each with its caption."""
    accuracy = figures.both_widths(figures.curves, findings.epochs)
    shown = [(accuracy, "Accuracy on the test split, AUC for wrong labels and estimated noise rate.")]
    recorded = findings.losses_by_epoch()
    if recorded is not None:
        losses, rows = recorded
        bands = figures.loss_bands(losses, findings.flagged[rows], findings.epochs)
        shown.append((bands, "Loss of kept and of flagged samples: median and quartiles."))
    for decided_by, name in DECIDING.items():
        path = figures.mixture_path(findings.epochs, decided_by)
        if path is not None:
            shown.append((path, f"The two groups of {name}, after each tracking pass in which they decided."))
    return shown
