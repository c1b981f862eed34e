"""What README, docs and docstrings show runs as it is printed, on small data under the names that the pages use."""

import doctest
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from fenced import GALLERY, PAGES, PYTHON, ROOT, SHELL, Block, blocks
from PIL import Image

import labelmend
from labelmend.methods import registry
from labelmend.training.budget import Cost

SPECIES = ("cat", "dog", "owl")
A_CLASS = 20
LEAST_EXECUTED = 0.9
WITH_COMMANDS = [page for page in PAGES if blocks(page.read_text(), SHELL)]
WITH_PYTHON = [page for page in PAGES if blocks(page.read_text(), PYTHON)]


def make_photos(folder: Path) -> None:
    """Images of one colour a class, some of them in the folder of another class."""
    rng = np.random.default_rng(0)
    for i in range(A_CLASS * len(SPECIES)):
        kind = i % len(SPECIES)
        pixels = rng.integers(0, 60, (16, 16, 3), dtype=np.uint8)
        pixels[:, :, kind] += 150
        given = SPECIES[(kind + (i % 10 == 0)) % len(SPECIES)]
        (folder / given).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / given / f"{i}.png")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A module in the folder of somebody who follows a page, with the names and files that pages take as given."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelmend.training.defaults.CPU_EPOCHS", ((1_000, 3),))
    monkeypatch.setattr("labelmend.training.defaults.default_seconds", lambda samples: 1.0)
    monkeypatch.setattr("labelmend.training.calibration.measure", lambda *net, **options: Cost(1e-3, 3e-4))
    monkeypatch.setattr(registry, "_registered", registry.methods())
    make_photos(tmp_path / "photos")
    (tmp_path / "my-photos").symlink_to("photos")
    paths = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("photos/*/*.png"))
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    module = ModuleType("page")
    module.x = (rng.normal(size=(60, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32)
    module.y = y
    module.new_x = module.x[:5]
    module.frame = pandas.DataFrame({"path": list(map(str, paths)), "species": [path.parent.name for path in paths]})
    monkeypatch.setitem(sys.modules, "page", module)
    return module


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:The 'train_dataloader' does not have many")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, reader, labelmend, monkeypatch):
    text = page.read_text()
    if "runs/pets" in text:
        assert labelmend("train", "photos", "--out", "runs/pets").returncode == 0
    if "init_process_group" in text:
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
            monkeypatch.setenv(name, value)
    for block in blocks(text, PYTHON):
        if not block.excused:
            # The empty lines before give tracebacks the line numbers of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), vars(reader))


def test_blocks_are_found_with_their_lines_and_only_a_reason_excuses_one():
    page = "a\n```python\nx = 1\n```\n```sh\nls\n```\n<!-- not executed: a GPU -->\n```python\ny\n```\n"
    assert blocks(page, PYTHON) == [Block(3, "x = 1", False), Block(10, "y", True)]
    assert blocks(page, SHELL) == [Block(6, "ls", False)]
    assert not blocks("<!-- not executed: -->\n```python\ny\n```\n", PYTHON)[0].excused
    assert blocks("a\n    ```sh\n    ls\n    ```\n", SHELL) == [Block(3, "ls", False)]


@pytest.fixture
def folder(reader, tmp_path, monkeypatch, tiny_timm, tiny_sentences):
    """The folder of somebody who follows a page, with every file that commands of the pages take as given."""
    import pandas
    import torch

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("labelmend.training.budget.MOST_EPOCHS", 4)
    monkeypatch.setattr(tiny_timm, "create_model", lambda name, **options: tiny_timm.body(options["pretrained"]))
    for name in ("my-images", "models/my-encoder"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(tmp_path / "photos")
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    rng, kinds = np.random.default_rng(0), np.arange(60) % 3
    species = np.array(SPECIES)[np.where(np.arange(60) % 10 == 0, (kinds + 1) % 3, kinds)]
    numbers = {f"size_{axis}": rng.normal(size=60) + 3 * (kinds == axis) for axis in range(3)}
    pandas.DataFrame({**numbers, "label": species}).to_csv("my-table.csv", index=False)
    owned = {"phone": np.arange(60) % 7, "zip": np.arange(60) % 4 + 1000}
    pandas.DataFrame({**numbers, **owned, "churn": species, "label": species}).to_csv("customers.csv", index=False)
    words = [f"the {SPECIES[kind]} of house {number} eats a lot" for number, kind in enumerate(kinds)]
    pandas.DataFrame({"text": words, "label": species}).to_csv("my-texts.csv", index=False)
    pandas.DataFrame({"text": words, "label": species}).to_csv("mails.csv", index=False)
    np.save("probabilities.npy", 0.8 * np.eye(3)[kinds] + 0.2 / 3)
    pandas.DataFrame({"label": np.searchsorted(SPECIES, species)}).to_csv("labels.csv", index=False)
    np.savez("clip-embeddings.npz", features=reader.x)
    make_cifar10(tmp_path / "data/cifar10")
    torch.save({"clean_label": np.arange(60) % 10, "worse_label": np.arange(60) % 9}, "CIFAR-10_human.pt")
    return tmp_path


def make_cifar10(root: Path) -> None:
    """CIFAR-10 in its parquet form, with sixty pictures."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    files = []
    for _ in range(60):
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(stream := io.BytesIO(), "png")
        files.append({"bytes": stream.getvalue(), "path": None})
    root.mkdir(parents=True)
    for part in ("train", "test"):
        pq.write_table(pa.table({"img": files, "label": np.arange(60) % 10}), root / f"{part}.parquet")


def commands(block: Block) -> list[list[str]]:
    """The words of each command of a block, without comments."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def follow(words: list[str], labelmend) -> None:
    """Run a command as the page has it: a server until it answers, and hours of reproduction as a plan of them."""
    program, *rest = [os.path.expanduser(word) for word in words]
    if program == "make":
        subprocess.run([program, "--dry-run", *rest], cwd=ROOT, check=True, capture_output=True)
        return
    assert program == "labelmend", f"{program} is not run by this test: say in the page why the block is not executed"
    if rest[0] == "review":
        command = re.sub(r"--port \d+", "", " ".join(rest)).split()  # that of the page may be taken
        command = [sys.executable, "-m", "labelmend", *command, "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            address = next(line.strip() for line in server.stdout if "http://127.0.0.1:" in line)
            with urllib.request.urlopen(address) as page:
                assert "<title>" in page.read().decode()
            server.kill()
        return
    if rest[0] == "reproduce":
        rest = [*rest, "--dry-run"]
    if rest[0] == "import":
        answered(Path("tasks.json"), Path(rest[2]))
    ended = labelmend(*rest)
    assert ended.returncode == 0, ended.stderr


def answered(tasks: Path, answers: Path) -> None:
    """What Label Studio would export if somebody took every suggestion."""
    given = [task for task in json.loads(tasks.read_text()) if task["predictions"]]
    assert given
    for task in given:
        task["annotations"] = [{"result": task["predictions"][0]["result"], "was_cancelled": False}]
    answers.write_text(json.dumps(given))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_run_from_top_to_bottom(page, folder, labelmend):
    text = page.read_text()
    followed = [words for block in blocks(text, SHELL) if not block.excused for words in commands(block)]
    given = {"runs/pets": "my-table.csv", "runs/mine": "photos", "runs/rows": "my-table.csv"}
    for run in set(given) & {word for words in followed for word in words}:
        assert labelmend("train", given[run], "--out", run).returncode == 0
    for words in followed:
        follow(words, labelmend)


def test_words_of_commands_are_read_without_comments():
    block = Block(1, "labelmend train a/ \\\n  --out b  # why\n# only said\nmake demo", excused=False)
    assert commands(block) == [["labelmend", "train", "a/", "--out", "b"], ["make", "demo"]]


def test_nine_tenths_of_what_pages_show_is_executed():
    every = [block for page in PAGES for block in blocks(page.read_text(), PYTHON + SHELL)]
    programs = len(list(GALLERY.glob("*.md"))) - 1  # run by test_gallery.py; the other page lists them
    executed = sum(not block.excused for block in every) + programs
    assert executed / (len(every) + programs) >= LEAST_EXECUTED


WITH_EXAMPLES = [path for path in sorted(Path(labelmend.__file__).parent.rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_of_docstrings_print_what_they_say(path):
    parts = path.relative_to(Path(labelmend.__file__).parents[1]).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert tried
    assert not failed
