"""What is released, in dist/: wheel, sdist, a bill of materials (CycloneDX), and the licences of all that is installed.

    python scripts/release.py [--out dist]

Wheel and sdist are built twice, from what is committed, and the wheels must be the same bytes (setuptools writes the
time of the build into an sdist); the wheel is then installed in an empty environment, which the bill of materials
lists, and whose licences must be ones that allow any use. Needs the extra release. `tests/test_release.py` (slow) tries
the commands of such an environment.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = ("MIT", "BSD", "Apache", "Python Software Foundation", "PSF", "MPL-2.0", "Mozilla Public License 2.0", "ISC")
ALLOWED += ("MIT-CMU", "HPND", "The Unlicense", "Unlicense", "Zlib", "CC0", "0BSD")
"""Parts of licence names; those that the packages say they have are compared with them."""


def run(*words: object, **options: object) -> str:
    """What a command prints; one that fails ends everything, and is shown."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(str(word) for word in words)}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build(out: Path) -> list[Path]:
    """Wheel and sdist of what is committed, with the time of the commit as that of every file."""
    when = run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        source.mkdir()
        run("git", "-C", ROOT, "archive", "--format=tar", "--output", Path(folder, "source.tar"), "HEAD")
        run("tar", "-xf", Path(folder, "source.tar"), "-C", source)
        run(sys.executable, "-m", "build", "--outdir", out, source, env=os.environ | {"SOURCE_DATE_EPOCH": when})
    return sorted(out.iterdir())


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def built_alike(out: Path) -> list[Path]:
    """Wheel and sdist; an error unless the wheel is the same bytes when it is built again."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        first, second = build(Path(folder, "first")), build(Path(folder, "second"))
        for one, other in zip(first, second, strict=True):
            if one.suffix == ".whl" and digest(one) != digest(other):
                raise SystemExit(f"{one.name} was built twice, and the bytes differ")
        return [path.rename(out / path.name) for path in first]


def empty_environment(folder: Path, wheel: Path) -> Path:
    """The Python of a new environment that has the wheel and what it needs, at the versions of constraints.txt."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    return python


def bill_of_materials(python: Path, out: Path) -> None:
    """What the environment holds, as CycloneDX."""
    words = ("environment", "--pyproject", ROOT / "pyproject.toml", "--output-reproducible", "-o", out, python)
    run(sys.executable, "-m", "cyclonedx_py", *words)


def licences(python: Path) -> str:
    """The licences of the environment's packages as a table; an error if one is not allowed, or not known."""
    words = ("--python", python, "--from", "mixed", "--partial-match", "--allow-only", ";".join(ALLOWED))
    return run(sys.executable, "-m", "piplicenses", *words)


def main() -> None:
    """Everything into one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out.resolve()
    files = built_alike(out)
    wheel = next(path for path in files if path.suffix == ".whl")
    with tempfile.TemporaryDirectory() as folder:
        python = empty_environment(Path(folder, "env"), wheel)
        bill_of_materials(python, out / f"{wheel.name.split('-')[0]}.cdx.json")
        (out / "licences.txt").write_text(licences(python))
    for path in sorted(out.iterdir()):
        print(digest(path), path.name)


if __name__ == "__main__":
    main()
