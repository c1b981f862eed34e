"""The import rules of the architecture, kept by a short walk over the syntax trees."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import labelmend

ROOT = Path(labelmend.__file__).parent
LEAVES = {"core", "learner", "errors", "files", "inert_pickle", "lazy", "markup"}
LIBRARY = {"mixture", "parts", "nets", "detect", "methods", "data", "run", "training"}
LIBRARY |= {"fix", "exchange", "report", "review"}
ALLOWED = {
    "learner": set(),
    "core": {"learner"},
    "errors": set(),
    "files": set(),
    "inert_pickle": {"errors"},
    "lazy": set(),
    "markup": {"errors"},
    "mixture": LEAVES,
    "parts": LEAVES,
    "nets": LEAVES,
    "detect": LEAVES | {"mixture"},
    "methods": LEAVES | {"parts", "mixture", "detect"},
    "data": LEAVES | {"nets"},
    "run": LEAVES | {"detect", "data", "nets"},
    "training": LEAVES | {"detect", "data", "nets", "methods", "run"},
    "fix": LEAVES | {"detect", "data", "run"},
    "exchange": LEAVES | {"detect", "data", "run"},
    "report": LEAVES | {"detect", "mixture", "run"},
    "review": LEAVES | {"detect", "mixture", "run", "report", "data", "fix"},
    "faces": LEAVES | LIBRARY,
    "hf": {"faces"},
    "lightning": {"faces"},
    "reproduce": LEAVES | LIBRARY | {"faces", "__init__"},
    "__init__": LEAVES | LIBRARY | {"faces"},
    "__main__": {"faces", "reproduce"},
}
"""For each package or module, what it may import beside itself; the order is that of the layers."""
TRUTH_READERS = {
    "data/noise.py",
    "data/samples.py",
    "data/label_file.py",
    "data/trusted.py",
    "detect/table.py",
    "faces/demo.py",
    "run/labels.py",
    "training/assemble.py",
    "training/evaluation.py",
    "training/session.py",
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _executed(tree: ast.AST) -> list[ast.AST]:
    """Every node but those that only type checkers read."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)
    return found


def imported_layers(path: Path) -> set[str]:
    """The layers that a module imports, by relative or absolute `from` imports or by plain ones."""
    depth, found = len(path.relative_to(ROOT).parts), set()
    for node in _executed(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= _ours(f"labelmend.{name}" for name in names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module] if node.module != "labelmend" else [f"labelmend.{alias.name}" for alias in node.names]
            found |= _ours(names)
        elif isinstance(node, ast.Import):
            found |= _ours(alias.name for alias in node.names)
    return found


def _ours(names) -> set[str]:
    dotted = [name.split(".") for name in names]
    found = {parts[1] if len(parts) > 1 else "__init__" for parts in dotted if parts[0] == "labelmend"}
    return {name if name in ALLOWED else "__init__" for name in found}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
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


def _imported(code: str, names: tuple[str, ...]) -> str:
    program = f"import sys; {code}; print([m for m in {names} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_does_not_import_what_is_slow():
    assert _imported("import labelmend, labelmend.__main__", ("torch", "sklearn", "matplotlib", "pyarrow")) == "[]"


def test_judging_needs_no_files_and_no_engine():
    assert _imported("import labelmend.detect.judge", ("pyarrow", "PIL", "accelerate", "typer", "matplotlib")) == "[]"


def test_reading_the_tables_of_a_run_needs_no_engine():
    program = "; ".join(f"import labelmend.run.{name}" for name in ("labels", "evidence", "noise", "decisions"))
    assert _imported(program, ("torch", "sklearn", "scipy")) == "[]"
