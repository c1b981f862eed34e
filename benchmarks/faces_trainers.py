"""Trainers of others with labelmend: a `transformers.Trainer` on texts, and Lightning on digits, 40 % of labels wrong.

    python benchmarks/faces_trainers.py --out benchmarks/results/faces_trainers.json [--rows ...] [--seeds 0,1,2]
    python benchmarks/faces_trainers.py --out benchmarks/results/faces_trainers.json --pages

Rows are the programs of docs/faces/hugging-face.md and docs/faces/lightning.md: `corrected` as they are printed,
`plain` without their added lines, `watched` with `correct=False`, and `mixed` with `mix=True`. `fortunes` is the
program of `docstrings` on short texts of Debian's package fortunes. CPU seconds are those of the line that trains, and
of the table. Needs the extras transformers and lightning. Rows that are there are not made again.
"""

import argparse
import json
import logging
import os
import re
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import LOOP_COLUMNS, filled_blocks, kept_results, results_table, scores, stamp

DOCS = Path(__file__).resolve().parents[1] / "docs/faces"
PAGES = {"transformers": DOCS / "hugging-face.md", "lightning": DOCS / "lightning.md"}
ROWS = {"transformers": ("docstrings", "fortunes"), "lightning": ("digits",)}
SYSTEMS = ("plain", "watched", "corrected", "mixed")
LINES = {"transformers": "trainer.train()", "lightning": "trainer.fit(module, loader)"}
FORTUNES = """
names = ["computers", "law", "food", "love", "medicine", "politics", "riddles", "songs-poems"]


def docstrings(name):
    texts = Path("/usr/share/games/fortunes", name).read_text(encoding="utf8", errors="replace").split("\\n%\\n")
    texts = [text.strip() for text in texts if 20 < len(text.strip()) < 1500]
    return [texts[position] for position in rng.permutation(len(texts))[:350]]


pairs = """
"""Texts and class names in place of those of the page; where its numbers count texts and classes, so do these."""
COUNTS = {"3200": "1443", "1280": "577", "rng.integers(1, 4,": "rng.integers(1, 8,", ") % 4": ") % 8"}


def program(face: str, row: str, system: str, seed: int) -> str:
    """The program of a face's page for this row, system and seed."""
    code = re.search(r"```python\n(.*?)```", PAGES[face].read_text(), re.DOTALL)[1]
    code = code.replace("seed, epochs = 0,", f"seed, epochs = {seed},")
    if row == "fortunes":
        code = re.sub(r"\ndef docstrings\(.*?\npairs = ", lambda found: FORTUNES, code, count=1, flags=re.DOTALL)
        for old, new in COUNTS.items():
            code = code.replace(old, new)
    if system == "plain":
        code = "\n".join(line for line in code.splitlines() if not line.endswith("# added"))
    elif system != "corrected":
        option = "correct=False" if system == "watched" else "mix=True"
        code = re.sub(r"(track\(trainer|Tracker\(y, classes=10, epochs=epochs\))\)", rf"\1, {option})", code)
    timed = LINES[face]
    assert code.count(f"\n{timed}\n") == 1
    return code.replace(f"\n{timed}\n", f"\nbegun = clock()\n{timed}\ntaken = clock() - begun\n")


def measured(face: str, row: str, system: str, seed: int) -> dict[str, Any]:
    """The figures of one run of a program."""
    known: dict[str, Any] = {"clock": time.process_time, "__name__": "page"}
    exec(program(face, row, system, seed), known)
    found = {"accuracy": known["accuracy"], "net": face, "epochs": known["epochs"], "cpu_seconds": known["taken"]}
    if system == "plain":
        return found
    begun = time.process_time()
    table = known["tracker"].table()
    found["cpu_seconds"] += time.process_time() - begun
    assert len(known["y"]) == len(table)
    flags = scores(np.asarray(known["wrong"]), -table.rank, table.flagged)
    return found | flags | {"estimated_rate": table.noise_rate, "finding": table.finding}


COLUMNS = LOOP_COLUMNS | {"cpu_seconds": ("CPU seconds", 1)}


def tables(results: list[dict[str, Any]]) -> dict[str, str]:
    """For each face, the means over the seeds as Markdown."""
    shown = ("epochs", lambda row: str(row["epochs"]))
    return {face: results_table(results, rows, SYSTEMS, COLUMNS, learner=shown) for face, rows in ROWS.items()}


def filled(page: str, results: list[dict[str, Any]]) -> str:
    """A page with its table as the results have it now."""
    return filled_blocks(page, {face: text for face, text in tables(results).items() if f"<!-- {face} -->" in page})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(row for rows in ROWS.values() for row in rows))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--pages", action="store_true", help="only bring what the output file holds into the pages")
    asked = parser.parse_args()
    out, results = asked.out.resolve(), kept_results(asked.out)
    if asked.pages:
        for page in PAGES.values():
            page.write_text(filled(page.read_text(), results))
        return
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    done = {(row["row"], row["system"], row["seed"]) for row in results}
    wanted = product(asked.rows.split(","), map(int, asked.seeds.split(",")), asked.systems.split(","))
    for row, seed, system in wanted:
        face = next(face for face, rows in ROWS.items() if row in rows)
        if (row, system, seed) in done or (system == "mixed" and face == "transformers"):
            continue
        made, home = stamp(), Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                results.append(
                    {"row": row, "system": system, "seed": seed, **measured(face, row, system, seed), **made}
                )
            finally:
                os.chdir(home)
        print(json.dumps(results[-1]), flush=True)
        out.write_text(json.dumps({"rows": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
