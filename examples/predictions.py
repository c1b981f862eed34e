"""Predictions of a model of your own

Nothing is trained by labelmend: it judges labels by probabilities that scikit-learn predicted for samples which the
model had not learned.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

import labelmend as lm

rng = np.random.default_rng(0)
digits = load_digits()
wrong = rng.random(len(digits.target)) < 0.2
labels = np.where(wrong, (digits.target + rng.integers(1, 10, len(wrong))) % 10, digits.target)

model = LogisticRegression(max_iter=1000)
probabilities = cross_val_predict(model, digits.data / 16, labels, cv=5, method="predict_proba")

table = lm.judge(labels, probabilities)
print(table.summary())
print(table.to_pandas(table.suspects()).head()[["id", "given", "suggested", "noisy_probability", "verdict"]])
print(f"AUC of the ranking: {roc_auc_score(wrong, -table.rank):.4f}")

# Corrected labels, without those that somebody should look at.
corrected = np.where(table["verdict"] == "relabel", table["suggested"], table["given"]).astype(int)
sure = np.asarray(table["verdict"]) != "look"
print(f"{wrong.mean():.1%} of the labels are wrong as given, {(corrected != digits.target)[sure].mean():.1%} corrected")
