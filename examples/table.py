"""A table with numbers, categories and gaps

Wisconsin's breast cancer data as a DataFrame with an index of its own, one column cut into categories, a few gaps, and
an eighth of the diagnoses wrong.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import labelmend as lm

rng = np.random.default_rng(0)
cancer = load_breast_cancer(as_frame=True)
table = cancer.data.iloc[:, :12].copy()
table.index = [f"patient-{number:03}" for number in range(len(table))]
table["mean area"] = pd.cut(table["mean area"], 4, labels=["small", "medium", "large", "huge"]).astype(str)
table = table.mask(rng.random(table.shape) < 0.03)
truth = np.array(["malignant", "benign"])[cancer.target]
wrong = rng.random(len(table)) < 1 / 8
table["diagnosis"] = np.where(wrong, np.where(truth == "benign", "malignant", "benign"), truth)

run = lm.train(table, label="diagnosis", out="runs/table", progress=False)
print(run.summary())
print(run.suspects(5)[["given", "suggested", "noisy_probability"]].round(3))

# What was found, against what was done to the labels above.
flagged = (run.labels["verdict"] != "keep").to_numpy()
print(f"{(flagged & wrong).sum()} of the {wrong.sum()} wrong labels are among the {flagged.sum()} flagged ones")
answers = np.array(run.model.predict(table.drop(columns="diagnosis")))
print(f"accuracy of the model against the true diagnoses: {(answers == truth).mean():.3f}")
