"""The Python of README, docs and docstrings runs as it is printed, on small data under the names that the pages use."""

import doctest
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import labelmend
from labelmend.methods import registry
from labelmend.training.budget import Cost

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs/gallery"
"""Pages of programs that are files, which `tests/test_gallery.py` runs."""
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.parent != GALLERY]
NOT_EXECUTED = re.compile(r"<!-- not executed: \S.* -->")
SPECIES = ("cat", "dog", "owl")
A_CLASS = 20


@dataclass(frozen=True)
class Block:
    """A fenced block of Python: the line that it begins in, its code, and whether the page says why it cannot run."""

    line: int
    code: str
    excused: bool


def blocks(page: str) -> list[Block]:
    """Every fenced block of Python of a page, in order."""
    lines, found, start = page.splitlines(), [], None
    for number, line in enumerate(lines):
        if start is None and line.startswith("```"):
            start = number
        elif start is not None and line.rstrip() == "```":
            if re.match(r"```(python|py|pycon)\b", lines[start]):
                code = "\n".join(lines[start + 1 : number])
                found.append(Block(start + 2, code, bool(start and NOT_EXECUTED.fullmatch(lines[start - 1]))))
            start = None
    assert start is None, f"the block of line {start} is not closed"
    return found


WITH_PYTHON = [page for page in PAGES if blocks(page.read_text())]


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
    monkeypatch.setattr("labelmend.training.defaults.measure", lambda *net, **options: Cost(1e-3, 3e-4))
    monkeypatch.setattr(registry, "_registered", registry.methods())
    make_photos(tmp_path / "photos")
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
def test_the_python_of_a_page_runs_from_top_to_bottom(page, reader, labelmend):
    text = page.read_text()
    if "runs/pets" in text:
        assert labelmend("train", "photos", "--out", "runs/pets").returncode == 0
    for block in blocks(text):
        if not block.excused:
            # The empty lines before give tracebacks the line numbers of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), vars(reader))


def test_blocks_are_found_with_their_lines_and_only_a_reason_excuses_one():
    page = "a\n```python\nx = 1\n```\n```sh\nls\n```\n<!-- not executed: a GPU -->\n```python\ny\n```\n"
    assert blocks(page) == [Block(3, "x = 1", False), Block(10, "y", True)]
    assert not blocks("<!-- not executed: -->\n```python\ny\n```\n")[0].excused


WITH_EXAMPLES = [path for path in sorted(Path(labelmend.__file__).parent.rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_of_docstrings_print_what_they_say(path):
    parts = path.relative_to(Path(labelmend.__file__).parents[1]).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert tried
    assert not failed
