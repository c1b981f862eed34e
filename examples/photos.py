"""Photos in folders, one folder a class

Six hundred photographs of clothes; every eighth was put in the folder of another class. They are seen by the small
pretrained network of the extra `labelmend[photos]`; with `features="none"` a network is trained from scratch, which
takes minutes.
"""

from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image

import labelmend as lm

# Photographs that come with the package, 50 in a line of one large picture, written to folders as you may have them.
embedded = files("labelmend") / "data/embedded"
sheet = Image.open(embedded / "clothes.png")
truth = [line.split(",")[1] for line in (embedded / "clothes.csv").read_text().splitlines()[1:]]
names = sorted(set(truth))
rng = np.random.default_rng(0)
moved = {}
for number, row in enumerate(rng.permutation(len(truth))[:600]):
    others = [name for name in names if name != truth[row]]
    given = rng.choice(others) if number % 8 == 0 else truth[row]
    path = Path("photos", given, f"{number:03}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    left, top = 28 * (row % 50), 28 * (row // 50)
    sheet.crop((left, top, left + 28, top + 28)).save(path)
    if given != truth[row]:
        moved[f"{given}/{number:03}.png"] = truth[row]

run = lm.train("photos", out="runs/photos", features="efficientnet-lite0", progress=False)
print(run.summary())
for suspect in run.suspects(5).itertuples():
    really = moved.get(suspect.id, "right as it was")
    print(f"{suspect.id:20} {suspect.noisy_probability:.0%} wrong; {suspect.suggested}? Really {really}")

# A copy in which relabelled photos are in the folder where they belong; the photos themselves are not touched.
corrections = run.corrections()
corrections.write("photos-fixed")
print(corrections)
print(f"the report is {run.report()}")
