"""Gradient-boosted trees as the learner of rows: chosen where they fit best, cross-fitted, refused with a reason."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import labelmend as lm
from labelmend.core import generator
from labelmend.errors import InterruptedRunError
from labelmend.methods.fold_plan import stratified_folds
from labelmend.training import heads, trees
from labelmend.training.config import TrainConfig
from labelmend.training.heads import choose_head
from labelmend.training.prepare import prepare
from labelmend.training.session import train
from labelmend.training.trees import affordable, held_out_trees


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    monkeypatch.setattr(trees, "ROUNDS", (10, 25))
    monkeypatch.setattr(trees, "ENOUGH_ROUNDS", 10)
    monkeypatch.setattr(heads, "STEPS", 100)
    monkeypatch.setattr(heads, "MOST_EPOCHS", 10)


def stripes(count=600, wrong=0.15):
    """Classes by the stripe of one column, among others that say nothing; some labels are wrong."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (count, 8)).astype(np.float32)
    truth = (np.floor(x[:, 0]) % 2).astype(np.int64)
    given = np.where(rng.random(count) < wrong, 1 - truth, truth)
    return x, given, truth


def line(count=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 12)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy((x.sum(axis=1) > 0).astype(np.int64))


def test_classes_in_stripes_get_trees_and_the_reason_has_the_losses_of_the_others():
    x, given, _ = stripes()
    chosen = choose_head(torch.from_numpy((x - 3) / 1.7), torch.from_numpy(given), 2)
    assert chosen.net.startswith("trees-")
    assert chosen.epochs == 2
    assert chosen.reason.startswith("gradient-boosted trees, ")
    assert "for a linear classifier and " in chosen.reason
    assert chosen.reason.endswith("for an MLP")


def test_trees_that_are_clearly_behind_are_not_looked_at_further():
    x, labels = line()
    fold = stratified_folds(labels, 5)
    assert len(held_out_trees(x, labels, 2, fold, seed=0, rival=torch.full((len(x),), 0.01))) == 1
    found = held_out_trees(x, labels, 2, fold, seed=0)
    assert set(found) == {f"trees-{rounds}x{leaves}" for rounds in (10, 25) for leaves in trees.LEAVES}
    assert all(losses.isfinite().sum() == (fold < trees.FOLDS).sum() for losses in found.values())


def test_wide_rows_are_not_tried_with_trees():
    assert affordable(10_000, 30, 4)
    assert not affordable(10_000, 1_280, 10)
    assert not affordable(300, 1_280, 2)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    x, given, _ = stripes()
    return lm.train((x, given), net="trees-25x8", out=tmp_path_factory.mktemp("trees") / "run")


@pytest.mark.xdist_group("trees")
def test_a_run_with_trees_finds_wrong_labels(run):
    _, given, truth = stripes()
    table = run.labels
    table = table.iloc[np.argsort(table["id"].astype(int).to_numpy())]
    flagged, wrong = (table["verdict"] != "keep").to_numpy(), given != truth
    assert (flagged & wrong).sum() > 0.6 * wrong.sum()
    assert (flagged & wrong).sum() > 0.7 * flagged.sum()


@pytest.mark.xdist_group("trees")
def test_its_model_is_tensors_and_predicts_new_rows(run):
    x, _, truth = stripes()
    assert (np.array(run.model.predict(x), dtype=int) == truth).mean() > 0.85
    described = json.loads((run.path / "run.json").read_text())
    assert described["chosen"]["net"] == "trees-25x8"
    assert described["chosen"]["epochs"] == 2
    assert described["chosen"]["batch_size"] == len(x)
    assert not described["compile"]["compiled"]


@pytest.mark.xdist_group("trees")
def test_the_same_seed_gives_the_same_bytes(run, tmp_path):
    x, given, _ = stripes()
    again = lm.train((x, given), net="trees-25x8", out=tmp_path / "again")
    for name in ("model.safetensors", "labels.csv", "noise.json"):
        assert (again.path / name).read_bytes() == (run.path / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "m-dyr-h"}, "no gradients, which m-dyr-h learns by"),
        ({"settings": {"folds": 1}}, "mend with folds=1"),
        ({"epochs": 5}, "--epochs says nothing to trees"),
    ],
)
def test_what_trees_cannot_do_is_explained(options, said, tmp_path):
    x, given, _ = stripes(60)
    with pytest.raises(lm.InputError, match=said):
        lm.train((x, given), net="trees", out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_members_of_a_class_smaller_than_the_folds_are_in_different_folds():
    labels = torch.tensor([0] * 100 + [1] * 3 + [2] * 2)[torch.randperm(105, generator=generator(0, "test"))]
    fold = stratified_folds(labels, 7)
    assert len(set(fold[labels == 1].tolist())) == 3
    assert len(set(fold[labels == 2].tolist())) == 2


@pytest.mark.xdist_group("trees")
@pytest.mark.parametrize("polls", [2, 5])
def test_a_run_of_trees_resumes_exactly(polls, tmp_path, after):
    x, given, _ = stripes(count=120)
    np.savez(tmp_path / "rows.npz", x=x, y=given)
    config = TrainConfig(str(tmp_path / "rows.npz"), str(tmp_path / "whole"), net="trees-10x8", threads=1)
    whole, _ = train(prepare(config))
    cut = dataclasses.replace(config, out=str(tmp_path / "cut"))
    with pytest.raises(InterruptedRunError):
        train(prepare(cut), signals=after(polls))
    run, _ = train(prepare(dataclasses.replace(cut, resume=True)))
    for name in ("labels.csv", "noise.json", "model.safetensors"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name
