"""Texts, without any extra

Docstrings of three installed libraries; the label of each is its library, and 15 % of the labels are wrong.
"""

import importlib.util
import re
from pathlib import Path

import numpy as np

import labelmend as lm

rng = np.random.default_rng(0)


def docstrings(library):
    """Five hundred long docstrings of an installed library, without the name of the library."""
    folder = Path(importlib.util.find_spec(library).origin).parent
    found = set()
    for path in sorted(folder.rglob("*.py")):
        for text in re.findall(r'^ *r?"""([A-Z].+?)"""', path.read_text(encoding="utf8"), re.DOTALL | re.MULTILINE):
            found.add(re.sub(library, "it", " ".join(text.split())[:300], flags=re.IGNORECASE))
    return rng.permutation(sorted(text for text in found if len(text) > 120))[:500].tolist()


libraries = ["matplotlib", "scipy", "torch"]
texts, truth = zip(*((text, library) for library in libraries for text in docstrings(library)), strict=True)
wrong = rng.random(len(truth)) < 0.15
labels = [rng.choice([name for name in libraries if name != own]) if bad else own for own, bad in zip(truth, wrong)]

run = lm.train(list(texts), labels, out="runs/texts", progress=False)
print(run.summary())
table = run.labels
for row in np.argsort(-table["noisy_probability"].to_numpy(), kind="stable")[:4]:
    print(f"{table['given'][row]} or {table['suggested'][row]}? Really {truth[row]}: {texts[row][:70]}...")
flagged = (table["verdict"] != "keep").to_numpy()
print(f"{(flagged & wrong).sum()} of the {wrong.sum()} wrong labels are among the {flagged.sum()} flagged ones")
