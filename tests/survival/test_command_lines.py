"""Command lines that nobody would type end with a documented exit code, and nothing asks for the network."""

import random
import socket

import numpy as np
import pytest
import torch
from hostile import STEERING

from labelmend.report.build import build_report

ODD = [
    "", " ", "-", "--", "0", "-1", "1", "2", "1e999", "nan", "-inf", "9" * 30, "9" * 5000, "0x10", "1,5", "½", "٣",
    "None", "..", "/proc/nowhere/x", "~", "*", "nowhere", "nowhere/x.csv", "x.npz", "x" * 300, "a:b:c", "=", "a=b",
    "--out", "-h", "[/red]", "[bold]", "日本", "\u202eabc", "\x1b[31m", "\r", "a\nb", "\udcff", "%s", "{0}",
    "; reboot", "digits", "cifar10", "rows.csv", "rows.npz", "run", "new", "keep,look", "symmetric:0.5",
    "symmetric:nan", "matrix:", "asymmetric:1:nowhere.json", "pca",
]  # fmt: skip
SENSIBLE = {
    "--noise": ["symmetric:0.2", "pair:0.1", "instance:0.1"],
    "--out": ["new", "new.npz", "new.csv", "new.parquet", "new.html"],
    "--set": ["eta=1", "details=paper", "batch_size=16", "learning_rate=0.1"],
    "--method": ["ce", "m-dyr-h"],
    "--net": ["mlp", "convnet"],
    "--device": ["cpu"],
    "--labels": ["rows.npz:y"],
    "--verdict": ["keep", "relabel,look"],
    "--embedding": ["pca"],
    "--data": ["digits", "clothes"],
    "--to": ["csv", "cvat", "label-studio", "fiftyone"],
    "--from": ["csv", "cvat", "label-studio", "fiftyone"],
    "--time": ["30s", "20m"],
    "--features": ["none", "rows.npz"],
    "--columns": ["f", "f,g"],
    "--decisions": ["run", "rows.csv"],
}
OPTIONS = {
    "train": [
        "--out", "--method", "--net", "--epochs", "--noise", "--labels", "--test", "--root", "--image-column", "--size",
        "--label-column", "--id-column", "--memory", "--workers", "--init", "--limit", "--seed", "--device",
        "--threads", "--compile", "--set", "--save-every", "--time", "--features", "--columns", "--drop-columns",
        "--category", "--text-column", "--decisions",
    ],
    "demo": ["--data", "--out", "--epochs", "--seed", "--threads"],
    "predict": ["--out", "--root", "--image-column", "--id-column"],
    "noise": ["--noise", "--out", "--seed", "--root", "--label-column", "--id-column"],
    "judge": ["--labels", "--out", "--source"],
    "export": ["--to", "--out"],
    "import": ["--from"],
    "report": ["--out", "--suspects", "--embedding"],
    "labels": ["--out", "--verdict", "--top"],
    "apply": ["--out", "--confidence"],
    "undo": ["--out"],
    "methods": [],
}  # fmt: skip
FLAGS = [
    "--skip-bad",
    "--resume",
    "--allow-drift",
    "--write",
    "--drop",
    "--link",
    "--force",
    "--cleanlab",
    "--help",
    "-x",
]
PLACES = dict.fromkeys(OPTIONS, 1) | {"demo": 0, "predict": 2, "import": 2}
NUMBERS = ["1", "2", "16", "0.5", "100"]


def command_line(rng: random.Random) -> list[str]:
    """A command line of our grammar, half of it sensible."""
    command = rng.choice([*OPTIONS, *OPTIONS, rng.choice(ODD)])
    words = [command]
    for place in range(PLACES.get(command, 0) + (rng.random() < 0.1)):
        usual = "run" if command not in ("train", "noise", "methods") and place == 0 else "digits"
        words.append(usual if rng.random() < 0.6 else rng.choice(["rows.csv", "rows.npz", rng.choice(ODD)]))
    asked = [option for option in ("--out", "--noise") if option in OPTIONS.get(command, ()) and rng.random() < 0.8]
    for option in [*asked, *(rng.choice(OPTIONS.get(command) or FLAGS) for _ in range(rng.randrange(4)))]:
        words += [option, rng.choice(SENSIBLE.get(option, NUMBERS)) if rng.random() < 0.6 else rng.choice(ODD)]
    words += rng.sample(FLAGS, rng.choice([0, 0, 0, 1, 2]))
    return [word for word in words if word != "--resume" or rng.random() < 0.5]


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_random_command_lines_end_with_a_documented_code(count, tmp_path, labelmend, train_digits, monkeypatch, shown):
    run = train_digits("kept")
    monkeypatch.setattr("labelmend.faces.terminal.train", lambda prepared, **rest: (run, []))
    monkeypatch.setattr("labelmend.report.build.build_report", lambda *rest, **more: None)
    rng, codes = random.Random(count), dict[int, int]()
    for number in range(count):
        here = tmp_path / str(number)
        here.mkdir()
        monkeypatch.chdir(here)
        (here / "run").symlink_to(run.path)
        (here / "rows.csv").write_text("f,g,label\n" + "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(40)))
        np.savez(here / "rows.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
        words = command_line(rng)
        try:
            ended = labelmend(*words)
        except BaseException as error:
            raise AssertionError(f"{words} ended with {type(error).__name__}: {error}") from error
        assert ended.returncode in (0, 1, 2, 130, 143), words
        assert not STEERING & set(ended.stdout + ended.stderr), words
        codes[ended.returncode] = codes.get(ended.returncode, 0) + 1
    torch.set_num_threads(1)
    ended_with = ", ".join(f"{times} with {code}" for code, times in sorted(codes.items()))
    shown(f"{count} random command lines", f"no traceback; ended {ended_with}")
    assert codes[0] > count // 20
    assert codes[2] > count // 5


def test_a_run_needs_no_network(train_digits, monkeypatch):
    def refuse(*words, **more):
        raise AssertionError(f"the network was asked for: {words}")

    for place, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
        monkeypatch.setattr(place, name, refuse)
    assert train_digits(afterwards=build_report).report.is_file()
