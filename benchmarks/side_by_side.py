"""The paper's numbers and claims, and what the medium and the small scale make of them, row by row.

    python benchmarks/side_by_side.py docs/results

They are written as medium/side-by-side.md and medium/claims-beside.md in that folder, from what `labelmend reproduce`
wrote there as CSV; `fill_results.py` brings them into the page.
"""

import csv
import sys
from pathlib import Path

from labelmend.reproduce.catalogue import TABLES, Asked
from labelmend.reproduce.claims import CLAIMS, Verdict, tally, verdict_lines
from labelmend.reproduce.protocol import MEDIUM, SMALL
from labelmend.reproduce.tables import Cell, markdown_table, published

OF_THE_PAPER = ("table1", "table2", "table3", "table5", "fixed-weights", "noise-models")
ROLE = "cifar10"
NONE = "–"
HEADER = ["table", "row", "noise", "paper", "medium", "small (digits)"]

Place = tuple[str, str, str]


def measured(folder: Path) -> dict[Place, list[dict[str, str]]]:
    """Runs by table, row and noise, of the data that plays CIFAR-10."""
    places: dict[Place, list[dict[str, str]]] = {}
    for name in TABLES:
        file = folder / f"{name}.csv"
        if file.is_file():
            with file.open(encoding="utf-8", newline="") as lines:
                for line in csv.DictReader(lines):
                    if line["data"] == ROLE:
                        places.setdefault((name, line["row"], line["noise"]), []).append(line)
    return places


def _both(runs: list[dict[str, str]] | None) -> str:
    """Best and last accuracy over the seeds of a place."""
    if not runs:
        return NONE
    cells = (Cell(tuple(100 * float(run[which]) if run[which] else None for run in runs)) for which in ("best", "last"))
    return " / ".join(map(str, cells))


def _paper(name: str, row: str, noise: int) -> str:
    known = published().get((name, ROLE, row, str(noise)))
    if known is None:
        return NONE
    return " / ".join(NONE if value is None else f"{value:.1f}" for value in (known.best, known.last))


def table(results: Path) -> str:
    """Every row of the medium scale that is made, best / last accuracy in percent, and how many of its runs are."""
    medium, small = measured(results / MEDIUM.name), measured(results / SMALL.name)
    lines, made_runs, every = [HEADER], set[str](), set[str]()
    for name in OF_THE_PAPER:
        experiment = TABLES[name]
        every |= {run.key for run in experiment.runs(MEDIUM, Asked(1))}
        places = dict.fromkeys(
            (run.row, run.noise, run.config.noise) for run in experiment.runs(MEDIUM, Asked(1)) if run.data == ROLE
        )
        for row, noise, made in places:
            if noise is not None and (name, row, str(made)) in medium:
                title = experiment.title.partition(":")[0] if name.startswith("table") else "Appendix A"
                place = name, row, str(made)
                made_runs |= {run["key"] for run in medium[place]}
                ours = _both(medium[place]), _both(small.get(place))
                lines.append([title, row, f"{noise} %", _paper(name, row, noise), *ours])
    counted = f"{len(made_runs)} of the {len(every)} runs of these tables are made; rows of the others are left out."
    return f"{markdown_table(lines, right_from=2)}\n\n{counted}"


def verdicts(folder: Path) -> list[Verdict]:
    """The verdicts that are written in a folder, from the effect of every seed."""
    claims = {claim.id: claim for claim in CLAIMS}
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as lines:
        return [
            Verdict(claims[line["id"]], line["source"], tuple(map(float, line["by_seed"].split())))
            for line in csv.DictReader(lines)
        ]


def claims(results: Path) -> str:
    """Every claim that the medium scale decides, with what it came to there and at the small scale."""
    medium = verdicts(results / MEDIUM.name)
    decided = {each.claim.id for each in medium}
    small = [each for each in verdicts(results / SMALL.name) if each.claim.id in decided]
    counted = f"At the medium scale: {tally(medium)[0].lower()}{tally(medium)[1:]}."
    return f"{markdown_table(verdict_lines([*medium, *small]), right_from=3)}\n\n{counted}"


if __name__ == "__main__":
    results = Path(sys.argv[1])
    for name, make in {"side-by-side": table, "claims-beside": claims}.items():
        text = f"## Paper, medium and small\n\n{make(results)}\n"
        (results / MEDIUM.name / f"{name}.md").write_text(text, encoding="utf-8")
