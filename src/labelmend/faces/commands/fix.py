"""Commands that fix wrong labels: `apply` and `undo`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import err, out
from ..options import Decisions, Run

if TYPE_CHECKING:
    from ...fix.corrections import Corrections

CHANGES_SHOWN = 15
MANY = 2000
"""Samples from which on copying shows a progress bar."""


def apply(
    run: Run,
    dest: Annotated[
        Path,
        typer.Option("--out", metavar="DEST", help="A new folder; or, if the source is a file, a new file like it."),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Write the corrected data set; without it you only see what would change.")
    ] = False,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Take only suggestions with at least this confidence; with --drop, drop only labels that are wrong "
            "with at least this probability."
        ),
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Leave out samples whose label looks wrong instead of relabelling them.")
    ] = False,
    link: Annotated[
        bool, typer.Option("--link", help="Hard links instead of copies of the images, where the disk supports them.")
    ] = False,
    decisions: Decisions = None,
) -> None:
    """Write the data set of a run with its labels corrected, in the form it came in; the source is not touched.

    Shows first what would change, and writes with --write. 'labelmend undo DEST' brings the original back.

    What reviewers decided stands over what was found: decided labels are taken, and samples that are bad or none of the
    classes are left out.

    Try: labelmend apply runs/mine --out corrected
    """
    from rich.progress import Progress

    from ...fix.plan import plan

    with err.status("comparing with the source"):
        planned = plan(run, confidence=confidence, drop=drop, decisions=decisions)
        planned.destination(dest)
    _show_plan(planned, dest)
    if not write:
        out.print("nothing was written; run the same command with --write to write it", highlight=False)
        return
    with Progress(console=err, transient=True, disable=len(planned.seen) < MANY or not err.is_terminal) as bar:
        task = bar.add_task("copying")
        planned.write(dest, link=link, advance=lambda done, total: bar.update(task, completed=done, total=total))
    back = f"labelmend undo {shlex.quote(str(dest))}"
    out.print(f"written; undo it with: {back}", highlight=False, markup=False, soft_wrap=True)


def undo(
    corrected: Annotated[Path, typer.Argument(metavar="DEST", help="What 'labelmend apply' wrote, or its undo.json.")],
    back: Annotated[
        Path | None,
        typer.Option("--out", metavar="BACK", help="Put the original here, and leave the corrected one as it is."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Undo even if the corrected data set was changed since.")
    ] = False,
) -> None:
    """Bring back the original of a corrected data set, byte by byte: in place, or at --out.

    Try: labelmend undo corrected
    """
    from ...fix.undo import undo

    restored = undo(corrected, out=back, force=force)
    out.print(f"the original is back in {restored}", highlight=False, markup=False, soft_wrap=True)


def _show_plan(plan: "Corrections", dest: Path) -> None:
    """Show what applying a run changes, and the most frequent changes."""
    from rich.table import Table
    from rich.text import Text

    changes = [(given, "dropped", count) for given, count in plan.dropped.items()]
    changes += [(given, new, count) for (given, new), count in plan.relabelled.items()]
    changes.sort(key=lambda change: -change[2])
    if changes:
        table = Table("given", "becomes", "samples", box=None, pad_edge=False)
        for given, new, count in changes[:CHANGES_SHOWN]:
            table.add_row(Text(given), Text(new), f"{count:,}")
        if len(changes) > CHANGES_SHOWN:
            table.add_row("others", "", f"{sum(count for *_, count in changes[CHANGES_SHOWN:]):,}")
        out.print(table, highlight=False)
    lines = Table.grid(padding=(0, 2))
    for name, count in (("relabelled", plan.relabelled.total()), ("dropped", plan.dropped.total())):
        if count or (name == "relabelled" and not changes):
            lines.add_row(name, f"{count:,}")
    if plan.decided:
        lines.add_row("decided", f"{plan.decided:,} samples by people, whose answers stand over what was found")
    look = f", of which {plan.look:,} look wrong without a sure suggestion" if plan.look else ""
    lines.add_row("kept", f"{plan.kept:,}{look}")
    if plan.unseen:
        lines.add_row("not judged", f"{plan.unseen:,} samples that were not in the run stay as they are")
    if plan.other_labels:
        lines.add_row("note", f"the run had {plan.other_labels}: kept samples have the run's label, not the source's")
    out.print(lines, highlight=False, markup=False)
    out.print(f"to {dest}", highlight=False, markup=False, soft_wrap=True)
