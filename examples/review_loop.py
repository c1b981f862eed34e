"""A person decides, and the run learns from it

`labelmend review RUN` opens a page in the browser and appends each answer to `RUN/decisions.csv`. Here a program that
knows the truth answers in place of a person.
"""

import csv
import subprocess
import sys

import numpy as np
from sklearn.datasets import load_wine

import labelmend as lm

rng = np.random.default_rng(1)
wine = load_wine(as_frame=True)
names = np.array(["Barolo", "Grignolino", "Barbera"])
truth = names[wine.target]
wrong = rng.random(len(truth)) < 0.2
table = wine.data.assign(label=np.where(wrong, names[(wine.target + rng.integers(1, 3, len(truth))) % 3], truth))
table.to_csv("wine.csv", index_label="id")

run = lm.train("wine.csv", out="runs/wine", progress=False)
print(run.summary())

# The reviewer looks at the thirty most suspicious labels; a name in the column `label` is the right one.
asked = run.suspects(30).to_dict("records")
with open("runs/wine/decisions.csv", "w", newline="") as file:
    write = csv.writer(file)
    write.writerow(["id", "decision", "label", "reviewer", "time"])
    for row in asked:
        right = truth[int(row["id"])]
        decision = ("keep", "") if row["given"] == right else ("relabel", right)
        write.writerow([row["id"], *decision, "me", "2026-01-01T00:00:00.000Z"])

# Decisions stand over what was found, in the table, in the report, and in the corrected copy.
decided = lm.load("runs/wine")
kept = sum(row["given"] == truth[int(row["id"])] for row in asked)
print(f"{len(asked)} decided: {kept} labels were right, {len(asked) - kept} wrong")
print(decided.corrections())
decided.corrections().write("wine-fixed.csv")
with open("wine-fixed.csv") as file:
    left = sum(row["label"] != truth[int(row["id"])] for row in csv.DictReader(file))
print(f"wrong labels: {wrong.sum()} as given, {left} in wine-fixed.csv")

# Trained again, with decided labels as trusted ones.
words = ["train", "wine.csv", "--decisions", "runs/wine", "--out", "runs/wine-again"]
subprocess.run([sys.executable, "-m", "labelmend", *words], check=True, capture_output=True)
print(lm.load("runs/wine-again").summary())
