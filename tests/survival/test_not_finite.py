"""A NaN or an infinity that arises anywhere in a run ends it in one sentence and is never written."""

import contextlib
import math
import random
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from faults import EPOCHS, STEPS, newest, train
from safetensors.torch import load_file

import labelmend.training.session as training
from labelmend.core import Learner
from labelmend.data.feed import SampleFeed
from labelmend.detect.ledger import Ledger
from labelmend.methods.recipe import Recipe
from labelmend.run.directory import RunDirectory
from labelmend.training.finite import NotFiniteError
from labelmend.training.prepare import prepare

pytestmark = pytest.mark.usefixtures("without_looks")


def not_finite(folder):
    """Files under a folder that hold a number that is none."""
    readers = {".safetensors": _tensors, ".json": _json, ".jsonl": _json, ".parquet": _parquet, ".csv": _csv}
    readers[".f16"] = _f16
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return [str(path) for path in files if not readers[path.suffix](path)]


def _tensors(path):
    return all(tensor.isfinite().all() for tensor in load_file(path).values())


def _json(path):
    return not re.search(r"\b(NaN|Infinity)\b", path.read_text())


def _csv(path):
    return not {"nan", "inf", "-inf"} & set(re.split(r"[,\n]", path.read_text().lower()))


def _parquet(path):
    numbers = (column.to_numpy() for column in pq.read_table(path).columns if column.type in ("float", "double"))
    return all(np.isfinite(column).all() for column in numbers)


def _f16(path):
    return bool(np.isfinite(np.fromfile(path, "<f2")).all())


class Injection:
    """One number of a run replaced by one that is none, when and where chance will have it; some stop just then."""

    KINDS = ("input", "loss", "gradient", "weight", "statistic", "momentum", "one of N losses")
    heeded = staticmethod(contextlib.nullcontext)

    def __init__(self, number):
        self.chance = random.Random(number)
        self.kind = self.KINDS[number % len(self.KINDS)]
        self.method = ("ce", "m-dyr-h", "md-dyr-sh")[number % 3]
        self.value = self.chance.choice([math.nan, math.inf, -math.inf])
        self.left = self.chance.randrange(2, EPOCHS + 1)
        if self.kind != "one of N losses":
            self.left = (self.left - 1) * STEPS + self.chance.randrange(1, STEPS + 1)
        self.left += self.kind == "input"  # one batch is looked at before the first epoch
        self.stops, self.save_every = self.chance.choice([(False, 10.0), (True, 10.0), (False, 0.0)])
        self.sample = None
        self.done = False

    def __call__(self):
        return 15 if self.done and self.stops else None

    def due(self, *kinds):
        if self.kind not in kinds:
            return False
        self.left -= 1
        self.done = self.done or self.left == 0
        return self.left == 0

    def spoil(self, tensor):
        with torch.no_grad():
            tensor[tuple(self.chance.randrange(size) for size in tensor.shape)] = self.value

    def install(self, monkeypatch):
        shuffled, objective, write = SampleFeed.shuffled, Recipe.objective, Ledger.write

        def spoilt_batches(feed, *given, **named):
            for batch in shuffled(feed, *given, **named):
                if self.due("input"):
                    self.spoil(batch.inputs)
                yield batch

        def spoilt_objective(recipe, step):
            loss = objective(recipe, step)
            if not self.due("loss"):
                return loss
            return self.chance.choice([loss + self.value, loss * self.value])

        def spoilt_descend(learner, loss):
            learner.optimiser.zero_grad(set_to_none=True)
            learner.backward(loss)
            due = self.due("gradient", "weight", "statistic", "momentum")
            weight = self.chance.choice(list(learner.network.parameters()))
            if due and self.kind == "gradient":
                self.spoil(weight.grad)
            learner.optimiser.step()
            if due and self.kind != "gradient":
                statistics = [buffer for buffer in learner.network.buffers() if buffer.is_floating_point()]
                momentum = learner.optimiser.state[weight]["momentum_buffer"]
                places = {"weight": weight, "statistic": self.chance.choice(statistics), "momentum": momentum}
                self.spoil(places[self.kind])

        def spoilt_write(ledger, index, labels, logits):
            write(ledger, index, labels, logits)
            if self.due("one of N losses"):
                self.sample = int(self.chance.choice(index.tolist()))
                ledger.losses[self.sample] = self.value

        monkeypatch.setattr(SampleFeed, "shuffled", spoilt_batches)
        monkeypatch.setattr(Recipe, "objective", spoilt_objective)
        monkeypatch.setattr(Learner, "descend", spoilt_descend)
        monkeypatch.setattr(Ledger, "write", spoilt_write)


@pytest.mark.parametrize("count", [7, pytest.param(60, marks=pytest.mark.slow)])
def test_no_number_that_is_none_is_ever_written(count, run, config, monkeypatch, shown):
    expected = {}
    for method in ("ce", "m-dyr-h", "md-dyr-sh"):
        train(config(f"whole-{method}", method=method))
        expected[method] = run(f"whole-{method}").digest()
    written, resumed = [], 0
    for number in range(count):
        injection = Injection(number)
        asked = config(f"run{number}", method=injection.method, save_every=injection.save_every)
        prepared = prepare(asked)
        with monkeypatch.context() as patch:
            injection.install(patch)
            with pytest.raises(NotFiniteError, match="finite") as ended:
                training.train(prepared, signals=injection)
        assert injection.done
        if injection.sample is not None:
            assert f"first of {prepared.data.ids[injection.sample]};" in str(ended.value)
        written += not_finite(prepared.run.path)
        assert newest(prepared.run.path) >= "epoch-00001-step-0000000"
        assert prepared.run.read()["status"] == "failed"
        train(replace(asked, resume=True, save_every=10.0))
        resumed += run(f"run{number}").digest() == expected[injection.method]
    what = f"NaN or infinity in inputs, losses, gradients, weights or one of N losses, {count} times"
    shown(what, f"all stopped, {len(written)} of them written, {resumed} byte-identical after `--resume`")
    assert written == []
    assert resumed == count


def test_a_loss_that_half_precision_cannot_hold_is_kept_as_its_largest(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    run.append_losses(torch.tensor([1.0, 1e6]), after=0)
    assert np.fromfile(run.losses, "<f2").tolist() == [1.0, 65504.0]
