"""What fails under a run, be it files, disk, numbers or data, is said in one sentence and costs no checkpoint."""

import contextlib
import errno
import math
import multiprocessing
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import labelmend.training.session as training
from labelmend.core import Learner, generator
from labelmend.data.feed import SampleFeed
from labelmend.detect.ledger import Ledger
from labelmend.errors import InputError, InterruptedRunError
from labelmend.methods.recipe import Recipe
from labelmend.run.directory import RunDirectory
from labelmend.training import checkpoint
from labelmend.training.checkpoint import load_newest, saved
from labelmend.training.config import TrainConfig
from labelmend.training.finite import NotFiniteError
from labelmend.training.prepare import prepare
from labelmend.training.trainer import Observer, Trainer

EPOCHS, LIMIT, STEPS = 4, 96, 3
SETTINGS = {"track_every": "1", "noise_model": "bmm"}
PAIRS = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
SMALL = ("--net", "mlp", "--epochs", EPOCHS, "--limit", LIMIT, *PAIRS)
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
BEGIN = 4
"""Waits for the disk before a run is under way: run.json, preflight.json, and their names."""
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_looks(monkeypatch):
    """Nobody looks at these runs, and a report and a narrow interval take longer than they do."""
    monkeypatch.setattr("labelmend.faces.terminal.build_report", lambda run: None)
    monkeypatch.setattr("labelmend.detect.judge.RESAMPLED", 2)


@pytest.fixture
def config(tmp_path):
    """A run of the same size as `run(name, *SMALL)`."""

    def of(name, **changes):
        options = {"noise": "symmetric:0.5", "net": "mlp", "epochs": EPOCHS, "limit": LIMIT, "threads": 1}
        options |= {"settings": SETTINGS} | changes
        return TrainConfig(source="digits", out=str(tmp_path / name), **options)

    return of


def train(config, **watched):
    return training.train(prepare(config), **watched)


def wrapped(monkeypatch, owner, name, action, *, call=1):
    """Do something before one call of a function, counted from 1."""
    original, calls = getattr(owner, name), []

    def first(*given, **named):
        calls.append(1)
        if len(calls) == call:
            action()
        return original(*given, **named)

    monkeypatch.setattr(owner, name, first)


def sentence(ended):
    """The one line that the command said about what went wrong."""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("labelmend: ")
    return line


def newest(folder):
    """Name of the newest checkpoint, which is whole, and none of them is damaged."""
    found, warnings = load_newest(Path(folder) / "checkpoints")
    assert warnings == []
    return None if found is None else found.name


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


@pytest.mark.parametrize(("cuts", "flips"), [(12, 30), pytest.param(100, 256, marks=slow)])
def test_every_truncation_and_changed_byte_is_detected_and_the_checkpoint_before_is_used(cuts, flips, config):
    run, _ = train(config("run"))
    older, damaged = saved(run.checkpoints)
    files, chance, detected = sorted(damaged.iterdir()), random.Random(0), 0
    for number in range(cuts + flips):
        path = files[number % len(files)]
        content = path.read_bytes()
        place = chance.randrange(len(content))
        rest = b"" if number < cuts else bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
        path.write_bytes(content[:place] + rest)
        found, warnings = load_newest(run.checkpoints)
        detected += found is not None and found.name == older.name and [damaged.name in w for w in warnings] == [True]
        path.write_bytes(content)
    print(f"\n{detected}/{cuts + flips} damaged checkpoints detected, the one before used")
    assert detected == cuts + flips
    assert newest(run.path) == damaged.name


@pytest.mark.parametrize("spared", [0, 1])
def test_a_run_with_damaged_checkpoints_ends_the_same_and_keeps_what_it_saves(spared, run, config, monkeypatch, after):
    train(config("whole"))
    with pytest.raises(InterruptedRunError):
        train(config("cut", save_every=0.0), signals=after(20))
    folder = run("cut").folder / "checkpoints"
    for path in saved(folder)[spared:]:
        (path / "values.json").write_bytes(b"{}")
    kept, save = [], checkpoint.save

    def counted(place, state):
        save(place, state)
        kept.append((place / state.name).is_dir() and load_newest(place)[0].name == state.name)

    monkeypatch.setattr(checkpoint, "save", counted)
    _, warnings = train(config("cut", resume=True))
    assert len(warnings) == 2 - spared
    assert kept
    assert all(kept)
    assert newest(run("cut").folder) == newest(run("whole").folder)
    assert run("cut").digest() == run("whole").digest()


def waits(monkeypatch, action=lambda: None):
    """Call something before each wait for the disk, of which every file and folder has one."""
    sync = os.fsync

    def waited(descriptor):
        action()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", waited)


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=slow)])
def test_a_disk_that_fails_at_any_write_costs_no_checkpoint(every, run, labelmend, monkeypatch):
    """Every file and folder that a run puts on the disk in turn, of 4 epochs and of the files that it leaves."""
    seen, whole = [], run("whole", *SMALL)
    with monkeypatch.context() as patch:
        waits(patch, lambda: seen.append(1))
        assert labelmend(*whole.words).returncode == 0
    expected, same = whole.digest(), 0
    for number in range(1, len(seen) + 1, every):
        cut, left = run(f"cut{number}", *SMALL), iter(range(number, 0, -1))

        def full(left=left):
            if next(left, 1) == 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            waits(patch, full)
            ended = labelmend(*cut.words)
        assert "No space left on device" in sentence(ended)
        assert ended.returncode == (2 if number <= BEGIN else 1)
        assert cut.folder.exists() is (number > BEGIN)
        if number > BEGIN:
            newest(cut.folder)
        assert labelmend(*cut.words, *(["--resume"] if number > BEGIN else [])).returncode == 0
        same += cut.digest() == expected
        shutil.rmtree(cut.folder)
    print(f"\n{same} runs byte-identical after one of {len(seen)} writes failed")
    assert same == len(range(1, len(seen) + 1, every))


@pytest.fixture
def in_namespace(tmp_path):
    """Run a shell script where it may mount what nobody else sees; gives the exit codes that it printed, and errors."""
    (tmp_path / "probe").mkdir()
    tried = [("unshare", "--mount", "--user", "--map-root-user"), ("unshare", "--mount")]
    probe = f"mount -t tmpfs tmpfs {tmp_path}/probe"

    def permitted(words):
        return not subprocess.run([*words, "sh", "-c", probe], capture_output=True).returncode

    words = next((words for words in tried if shutil.which(words[0]) and permitted(words)), None)
    if words is None:
        pytest.skip("mounting is not permitted here, not even in a user namespace")

    def run(script):
        whole = [*words, "sh", "-c", script]
        shown = subprocess.run(whole, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        return list(map(int, re.findall(r"^code (\d+)$", shown.stdout, re.M))), shown.stderr

    return run


def command(run, *more):
    return shlex.join([sys.executable, "-m", "labelmend", *run.words, *more])


def test_a_full_disk_ends_a_run_in_a_sentence_and_it_goes_on_where_there_is_space(run, labelmend, in_namespace):
    whole, cut, copy = (run(name, *SMALL) for name in ("whole", "cut", "copy"))
    assert labelmend(*whole.words).returncode == 0
    one = sum(-(-path.stat().st_size // 4096) * 4 for path in saved(whole.folder / "checkpoints")[0].iterdir())
    cut.folder.mkdir()
    codes, shown = in_namespace(f"""
        mount -t tmpfs -o size={one * 5 // 2 + 40}k tmpfs {cut.folder}
        {command(cut)} >/dev/null; echo code $?
        cp -r {cut.folder} {copy.folder}""")
    assert codes == [1], shown
    assert "Traceback" not in shown
    assert re.search(r"^labelmend: No space left on device: .*; the last good checkpoint is kept", shown, re.M)
    assert newest(copy.folder) == "epoch-00002-step-0000000"
    assert labelmend(*copy.words, "--resume").returncode == 0
    assert copy.digest() == whole.digest()


@slow
def test_a_disk_that_becomes_read_only_ends_a_run_in_a_sentence_and_it_goes_on_later(run, config, in_namespace):
    cut, locked = run("cut", *SMALL, "--epochs", 40), run("locked").folder
    cut.folder.mkdir()
    locked.mkdir()
    codes, shown = in_namespace(f"""
        mount --bind {cut.folder} {locked} && mount -o remount,bind,ro {locked}
        {command(cut)} >/dev/null & train=$!
        until ls {cut.folder}/checkpoints/epoch-* >/dev/null 2>&1; do sleep 0.05; done
        mount --bind {locked} {cut.folder}
        wait $train; echo code $?
        {command(cut, "--resume")} >/dev/null; echo code $?""")
    assert codes == [1, 2], shown
    assert "Traceback" not in shown
    ended, refused = re.findall(r"^labelmend: .*$", shown, re.M)
    assert "Read-only file system" in ended
    assert refused == f"labelmend: cannot write to {cut.folder}: Read-only file system; choose another --out"
    assert newest(cut.folder) is not None
    train(config("cut", epochs=40, resume=True))
    train(config("whole", epochs=40))
    assert cut.digest() == run("whole").digest()


@pytest.mark.parametrize(("mode", "what"), [(0o500, "write to"), pytest.param(0o000, "use", marks=slow)])
def test_a_folder_that_cannot_be_written_is_refused_before_training(mode, what, run):
    """Root writes anywhere, unless it lets go of that right."""
    words = []
    if os.geteuid() == 0:
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        if not shutil.which("setpriv") or subprocess.run([*words, "true"], capture_output=True).returncode:
            pytest.skip("root may write anywhere, and setpriv is not there to stop it")
    cut = run("locked/run", *SMALL)
    cut.folder.parent.mkdir(mode=mode)
    script = shlex.join([*words, sys.executable, "-m", "labelmend", *cut.words])
    ended = subprocess.run(["sh", "-c", script], env=ENVIRONMENT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert sentence(ended) == f"labelmend: cannot {what} {cut.folder}: Permission denied; choose another --out"


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


@pytest.mark.parametrize("count", [7, pytest.param(60, marks=slow)])
def test_no_number_that_is_none_is_ever_written(count, run, config, monkeypatch):
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
    print(f"\n{len(written)} non-finite states written in {count} injections; {resumed} resumed to the same bytes")
    assert written == []
    assert resumed == count


def test_a_loss_that_half_precision_cannot_hold_is_kept_as_its_largest(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    run.append_losses(torch.tensor([1.0, 1e6]), after=0)
    assert np.fromfile(run.losses, "<f2").tolist() == [1.0, 65504.0]


@pytest.fixture
def folder(tmp_path):
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(12):
            pixels = torch.randint(0, 256, (8, 8, 3), dtype=torch.uint8, generator=generator(k, i)).numpy()
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{i}.png")
    return tmp_path / "set"


class Streamed:
    """The command that trains on an image folder which is read as it goes, and a file of it that fails."""

    def __init__(self, folder, out, workers):
        self.victim, self.out = folder / "dog" / "7.png", out
        self.content = self.victim.read_bytes()
        self.words = ["train", folder, "--out", out, "--memory", 0, "--workers", workers, "--threads", 1]
        self.words += ["--net", "convnet", "--epochs", 3, "--set", "batch_size=8", *PAIRS]

    def damage(self, how):
        if how == "gone":
            self.victim.unlink()
        else:
            self.victim.write_bytes(self.content[:60] if how == "cut" else b"garbage" * 20)

    def mend(self):
        self.victim.write_bytes(self.content)


@pytest.fixture
def streamed(folder, run):
    return lambda name, workers=0: Streamed(folder, run(name).folder, workers)


STAGES = {
    "before the first epoch": (training, "owned", 1),
    "learning": (Trainer, "learn", 2),
    "tracking": (Trainer, "track", 2),
    "the evidence": (training, "judge", 1),
}


@pytest.mark.parametrize(
    ("how", "workers", "stage"),
    [
        ("gone", 0, "before the first epoch"),
        ("gone", 2, "learning"),
        ("cut", 0, "tracking"),
        ("garbage", 0, "learning"),
        ("gone", 0, "the evidence"),
        *(
            pytest.param(how, workers, stage, marks=slow)
            for how in ("gone", "cut", "garbage")
            for workers in (0, 2)
            for stage in STAGES
        ),
    ],
)
def test_an_image_that_fails_under_a_run_is_named_and_the_run_goes_on_when_it_is_back(
    how, workers, stage, streamed, run, labelmend, monkeypatch
):
    cut, whole = streamed("cut", workers), streamed("whole")
    assert labelmend(*whole.words).returncode == 0
    owner, name, call = STAGES[stage]
    with monkeypatch.context() as patch:
        wrapped(patch, owner, name, lambda: cut.damage(how), call=call)
        ended = labelmend(*cut.words)
    assert ended.returncode == 1
    assert f"{cut.victim} was usable before the run and is not now" in sentence(ended)
    before = {"before the first epoch": None, "the evidence": "epoch-00003-step-0000000"}
    assert newest(cut.out) == before.get(stage, "epoch-00001-step-0000000")
    cut.mend()
    assert labelmend(*cut.words, "--resume").returncode == 0
    assert run("cut").digest() == run("whole").digest()


def test_unusable_images_are_refused_even_where_they_cannot_be_listed(streamed, labelmend):
    cut = streamed("run")
    cut.damage("cut")
    cut.out.parent.joinpath("run.preflight.json").mkdir()
    ended = labelmend(*cut.words)
    assert ended.returncode == 2
    assert str(cut.victim) in ended.stderr
    assert "cannot be listed in" in ended.stderr


def test_a_worker_that_is_killed_is_reported_and_the_run_goes_on_later(streamed, run, labelmend, monkeypatch):
    def kill():
        multiprocessing.active_children()[0].kill()
        time.sleep(1)

    cut, whole = streamed("cut", 2), streamed("whole")
    assert labelmend(*whole.words).returncode == 0
    with monkeypatch.context() as patch:
        wrapped(patch, Learner, "descend", kill, call=4)
        ended = labelmend(*cut.words)
    assert ended.returncode == 1
    assert "a process that decodes images ended" in sentence(ended)
    assert newest(cut.out) == "epoch-00001-step-0000000"
    assert labelmend(*cut.words, "--resume").returncode == 0
    assert run("cut").digest() == run("whole").digest()


def test_saving_at_every_step_changes_nothing(run, config, monkeypatch):
    names, save = [], checkpoint.save
    monkeypatch.setattr(checkpoint, "save", lambda folder, state: (names.append(state.name), save(folder, state)))
    train(config("seldom"))
    assert len(names) == EPOCHS
    train(config("always", save_every=0.0))
    assert len(set(names)) == EPOCHS * (STEPS + 1)
    assert run("always").digest() == run("seldom").digest()


def test_other_threads_are_drift_that_must_be_allowed(config, after):
    with pytest.raises(InterruptedRunError):
        train(config("run"), signals=after(5))
    other = config("run", threads=2, resume=True)
    try:
        with pytest.raises(InputError, match=r"with threads 1, not 2; .* --allow-drift"):
            train(other)
        run, _ = train(replace(other, allow_drift=True))
    finally:
        torch.set_num_threads(1)
    assert run.read()["status"] == "finished"


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=slow)])
def test_stopped_in_a_step_in_tracking_or_in_a_test_it_resumes_exactly(every, run, config, after):
    """At each moment in turn of two epochs at which a run looks for signals."""
    looks = after(10**9)
    train(config("whole", epochs=2), signals=looks)
    moments = range(0, 10**9 - looks.times, every)
    same, places = 0, set()
    for number in moments:
        with pytest.raises(InterruptedRunError):
            train(config(f"cut{number}", epochs=2), signals=after(number))
        places.add(newest(run(f"cut{number}").folder))
        train(config(f"cut{number}", epochs=2, resume=True))
        same += run(f"cut{number}").digest() == run("whole").digest()
    print(f"\n{same}/{len(moments)} byte-identical after a stop, at {len(places)} different places")
    assert same == len(moments)


class Meter(Observer):
    """Resident memory and open files after some epochs."""

    def __init__(self, *epochs):
        self.epochs, self.memory, self.files = epochs, [], []

    def epoch(self, record):
        if record["epoch"] in self.epochs:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
            self.files.append(len(os.listdir("/proc/self/fd")))


@slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_five_hundred_epochs_take_no_more_memory_and_files_than_fifty(config):
    meter = Meter(50, 500)
    train(config("soak", epochs=500, net="convnet"), observer=meter)
    (early, late), (few, many) = meter.memory, meter.files
    print(f"\nresident memory grew by {late / early - 1:.2%} from {early >> 20} MiB, open files by {many - few}")
    assert late <= 1.02 * early
    assert many <= few
