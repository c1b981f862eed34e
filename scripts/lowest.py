"""Constraints that take every direct dependency at its lowest version in pyproject.toml, for `make test-lowest`.

    python scripts/lowest.py > lowest.txt

What constraints.txt pins (PyTorch, and the tools of the checks) stays as it is there.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOWEST = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?\s*(?:>=|==)\s*([\w.]+)")


def requirements(project: dict) -> Iterator[str]:
    """What the project and its extras ask for, without its own name."""
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from (each for each in group if not each.startswith(f"{project['name']}["))


def lowest(project: dict, pinned: str) -> list[str]:
    """One line for each direct dependency, and the pins after them.

    >>> project = {"name": "a", "dependencies": ["b>=2", "c[d]>=1.5,!=1.6"], "optional-dependencies": {"e": ["a[f]"]}}
    >>> lowest(project, "b==3")
    ['c==1.5', 'b==3']
    """
    pins = [line for line in pinned.splitlines() if line and not line.startswith("#")]
    names = {line.partition("==")[0] for line in pins}
    found = []
    for requirement in requirements(project):
        match = LOWEST.match(requirement)
        if match is None:
            raise SystemExit(f"{requirement} in pyproject.toml has no lowest version")
        if match[1] not in names:
            found.append(f"{match[1]}=={match[2]}")
    return [*sorted(set(found)), *pins]


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    print("\n".join(lowest(project, (ROOT / "constraints.txt").read_text())))
