"""Run tests on each supported Python, with the lowest and the newest dependencies: one cell after the other.

    python tools/matrix.py -- TEST...                                   all cells
    python tools/matrix.py --python 3.11 --versions lowest -- TEST...   one cell

The Pythons are those of the classifiers in pyproject.toml. Each is looked for as ``python3.x`` on the path and among
the versions of pyenv; one that is not at hand is skipped, and the output says so. A cell has an environment of its own
in ``.venv-matrix``, which is kept: a second run installs nothing unless pyproject.toml has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".venv-matrix"
VERSIONS = ("lowest", "newest")
EXTRA = "test"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "opendp")


def supported(classifiers: list[str]) -> list[str]:
    """Versions of Python that classifiers name, such as 3.11, in order."""
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in classifiers]
    return sorted((match[1] for match in found if match), key=lambda version: int(version.split(".")[1]))


def candidates(version: str) -> Iterator[str]:
    """Commands that may be this Python: on the path first, then those of pyenv, the latest patch first."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if found := shutil.which(f"python{version}", path=folder):
            yield found
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    patches = [
        path for path in home.glob(f"versions/{version}.*/bin/python") if path.parts[-3].split(".")[-1].isdigit()
    ]
    yield from (str(path) for path in sorted(patches, key=lambda path: -int(path.parts[-3].split(".")[-1])))


def interpreter(version: str) -> str:
    """Return the first command that runs and is this Python; empty if there is none."""
    asking = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for command in candidates(version):
        said = subprocess.run([command, "-c", asking], capture_output=True, text=True, check=False)
        if said.returncode == 0 and said.stdout.strip() == version:
            return command
    return ""


def set_up(command: str, place: Path, versions: str) -> Path:
    """Make the environment of a cell, unless it is there for the same pyproject.toml, and return its Python."""
    python, stamp = place / "bin" / "python", place / ".ready"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([command, "-m", "venv", str(place)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip", "packaging"], check=True)
    pins = place / "lowest.txt"
    if versions == "lowest":
        said = subprocess.run(
            [str(python), "tools/lowest_requirements.py"], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        pins.write_bytes(said.stdout)
    constraint = ["--constraint", str(pins)] if versions == "lowest" else []
    subprocess.run([*pip, *constraint, "-e", f".[{EXTRA}]"], cwd=ROOT, check=True)
    stamp.write_text(wanted)
    return python


def run_cell(version: str, versions: str, tests: list[str]) -> str:
    """Run the tests in one cell and say in a sentence how it went; only a sentence with "failed" is bad news."""
    command = interpreter(version)
    if not command:
        return f"skipped: Python {version} is not at hand"
    try:
        python = set_up(command, PLACE / f"{version}-{versions}", versions)
    except subprocess.CalledProcessError as problem:
        return f"failed: the dependencies could not be installed (exit code {problem.returncode})"
    asking = f"from importlib.metadata import version as v; print(', '.join(f'{{n}} {{v(n)}}' for n in {LIBRARIES}))"
    installed = subprocess.run([str(python), "-c", asking], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run([str(python), "-m", "pytest", "-q", *tests], cwd=ROOT, check=False)
    return f"{'failed' if done.returncode else 'passed'}: {installed}"


def main(words: list[str] | None = None) -> int:
    """Run the cells that are asked for, and return the exit code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = supported(project["classifiers"])
    parser = argparse.ArgumentParser(description="Run tests on each supported Python, lowest and newest dependencies.")
    parser.add_argument("tests", nargs="+", metavar="TEST", help="what pytest is given, after --")
    parser.add_argument("--python", choices=known, action="append", help="only this Python; may be repeated")
    parser.add_argument("--versions", choices=VERSIONS, help="only these versions of the dependencies")
    asked = parser.parse_args(words)
    said = {}
    for version in asked.python or known:
        for versions in [asked.versions] if asked.versions else VERSIONS:
            cell = f"Python {version}, {versions} dependencies"
            print(f"-- {cell}", flush=True)
            said[cell] = run_cell(version, versions, asked.tests)
    print("\n".join(f"{cell}: {words}" for cell, words in said.items()))
    ran = [sentence for sentence in said.values() if not sentence.startswith("skipped")]
    if not ran:
        print("no supported Python is at hand: nothing was tested", file=sys.stderr)
    return int(not ran or any(sentence.startswith("failed") for sentence in ran))


if __name__ == "__main__":
    sys.exit(main())
