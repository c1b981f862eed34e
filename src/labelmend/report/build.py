"""Build `report.html` from a run directory."""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..detect.summary import headline
from ..errors import InputError
from ..files import write_atomic
from ..run.directory import RunDirectory
from . import figures
from .confusion import confusion
from .decided import decided
from .embedding import embedding
from .gallery import gallery
from .made import command_line, made, repeated
from .quality import flag_quality, reliability_bins, risks
from .read import Findings, read_findings
from .svg import both_widths

SUSPECTS = 200
COLUMNS = 100
"""Columns of a table that are listed."""
DECIDING = {"losses": "losses", "rival_log_odds": "log-odds of the best other class against the given label"}
"""What the noise model that decided in an epoch was fitted to, in words."""
OVER_EPOCHS = (
    "Accuracy on the test split, and the training's own view of the labels, with which it corrects them: AUC and noise "
    "rate. The labels were judged after it."
)
RELIABILITY = (
    "Reliability: labels by their P(wrong) in ten bins, and the share of each bin that is really wrong, with its "
    "95\u00a0% interval. Numbers count the labels. Bars that end at the dashed line keep what P(wrong) promises."
)
RISK_COVERAGE = (
    "Risk and coverage: the share of wrong labels among those that are kept, when the most doubtful are left out "
    "first. The right end keeps every label."
)
OPENING = '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>labelmend'


def build_report(
    run: RunDirectory,
    *,
    suspects: int = SUSPECTS,
    embedding_kind: str = "pca",
    out: Path | None = None,
    decisions: Path | None = None,
) -> None:
    """Write the report of a finished run, one self-contained file, with its decisions or those of another file."""
    if out is not None:
        check_replaceable(out)
    findings = read_findings(run, decisions)
    page = render(
        "template.html",
        title=findings.name,
        known=findings.described.get("noise"),
        summary=findings.summary,
        noise=findings.noise,
        headline=headline(findings.noise, len(findings.table)),
        decided=decided(findings),
        seen=_seen(findings),
        gallery=gallery(findings, suspects),
        checked=_checked(findings),
        confusion=confusion(findings),
        training=_training(findings),
        phases=figures.phases(findings.epochs),
        embedding=embedding(findings, embedding_kind),
        command=command_line({"out": str(run.path)} | repeated(findings.described)),
        made=made(findings),
        columns=findings.columns[:COLUMNS],
        columns_total=len(findings.columns),
        source_notes=findings.source_notes[:COLUMNS],
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


def _seen(findings: Findings) -> list[tuple[str, str]]:
    """Figures of the margins and, of a network that was trained, of the losses, each with its caption."""
    passes = ", averaged over the tracking passes of the run" if findings.epochs else ""
    drawn = [("margin", findings.summary["mixture"], f"Log-odds against the given label{passes} (margin).")]
    if findings.epochs:
        last = findings.epochs[-1]
        fitted = last["mixture"] if last["decided_by"] == "losses" and findings.flagged.any() else None
        drawn.append(("loss", fitted, "Cross-entropy of every sample against its given label after the last epoch."))
    threshold, probability = findings.noise["threshold"], findings.column("noisy_probability")
    return [
        (
            both_widths(
                figures.group_histogram, values, probability, findings.flagged, mixture, on=on, threshold=threshold
            ),
            caption,
        )
        for on, mixture, caption in drawn
        if np.isfinite(values := findings.column(on)).any()
    ]


def _checked(findings: Findings) -> dict[str, Any] | None:
    """How good the judgement was, in numbers and figures; None if the truth is not known."""
    wrong, flagged = findings.wrong, findings.flagged
    if wrong is None:
        return None
    bins = reliability_bins(findings.column("noisy_probability"), wrong)
    drawn = [(figures.reliability(bins), RELIABILITY)]
    if wrong.any():
        order = risks(findings.column("rank"), wrong)
        drawn.append((figures.risk_coverage(*order, kept=1 - float(flagged.mean())), RISK_COVERAGE))
    return flag_quality(flagged, wrong) | {
        "wrong": int(wrong.sum()),
        "calibration_error": bins.calibration_error,
        "figures": drawn,
    }


def _training(findings: Findings) -> list[tuple[str, str]]:
    """Figures over the epochs, each with its caption; none for predictions that were judged without training."""
    if not findings.epochs:
        return []
    accuracy = both_widths(figures.curves, findings.epochs)
    shown = [(accuracy, OVER_EPOCHS)]
    recorded = findings.losses_by_epoch()
    if recorded is not None:
        losses, rows = recorded
        groups = "kept and of flagged" if findings.flagged.any() else "all"
        bands = figures.loss_bands(losses, findings.flagged[rows], findings.epochs)
        shown.append((bands, f"Loss of {groups} samples: median and quartiles."))
    for decided_by, name in DECIDING.items():
        path = figures.mixture_path(findings.epochs, decided_by)
        if path is not None:
            shown.append((path, f"The two groups of {name}, after each tracking pass in which they decided."))
    return shown
