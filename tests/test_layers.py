"""The import rules of the architecture, kept by a short walk over the syntax trees."""

import ast
from pathlib import Path

import pytest

import labelmend

ROOT = Path(labelmend.__file__).parent
LEAVES = {"core", "errors"}
ALLOWED = {
    "core": set(),
    "errors": set(),
    "config": {"errors"},
    "settings": {"errors"},
    "mixture": LEAVES,
    "parts": LEAVES,
    "data": LEAVES,
    "nets": LEAVES,
    "methods": LEAVES | {"parts", "mixture"},
    "engine": LEAVES,
    "labels": LEAVES | {"data", "engine", "mixture"},
    "report": LEAVES | {"engine", "labels", "mixture"},
}
TRUTH_READERS = {
    "data/noise.py",
    "data/dataset.py",
    "data/label_file.py",
    "data/trusted.py",
    "engine/evaluation.py",
    "labels/table.py",
    "assembly.py",
    "training.py",
    "demo.py",
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    depth = len(path.relative_to(ROOT).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            found |= {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("labelmend"):
            found.add((node.module or "").split(".")[1])
    return found


@pytest.mark.parametrize("path", [p for p in modules() if layer(p) in ALLOWED], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_the_layers_below_it(path):
    assert imported_layers(path) <= ALLOWED[layer(path)] | {layer(path)}


def test_only_noise_and_evaluation_read_the_truth():
    readers = {
        str(path.relative_to(ROOT))
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "truth"
    }
    assert readers <= TRUTH_READERS


def test_nothing_seeds_globally_and_nothing_is_pickled():
    banned = ("torch.manual_seed", "random.seed(", "import pickle", "torch.load(", "torch.save(", "allow_pickle=True")
    for path in modules():
        text = path.read_text()
        assert not [name for name in banned if name in text], path


def test_importing_the_package_does_not_import_what_is_slow():
    import subprocess
    import sys

    slow = ("torch", "sklearn", "matplotlib")
    code = f"import sys, labelmend, labelmend.cli; print([m for m in {slow} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
