"""Print the lowest versions that pyproject.toml allows, as ``==`` pins for ``pip install --constraint``.

    python tools/lowest_requirements.py [PYPROJECT] > lowest.txt
    python -m pip install --constraint lowest.txt -e '.[test]'

Every requirement of the project and of its extras is pinned, for the Python that runs this: requirements whose marker
does not hold are left out, and of several that hold the highest minimum counts. References of the project to itself
are followed by pip, not here.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
MINIMUM = (">=", "==", "~=")


def requirements(project: dict[str, Any]) -> Iterator[Requirement]:
    """All requirements of a ``[project]`` table but those on the project itself.

    Raises
    ------
    ValueError
        If one cannot be parsed.
    """
    for line in chain(project.get("dependencies", []), *project.get("optional-dependencies", {}).values()):
        try:
            parsed = Requirement(line)
        except InvalidRequirement as problem:
            raise ValueError(f"{line!r} is not a requirement: {problem}") from problem
        if canonicalize_name(parsed.name) != canonicalize_name(project["name"]):
            yield parsed


def minimum(requirement: Requirement) -> Version:
    """Return the lowest version that a requirement allows.

    Raises
    ------
    ValueError
        If it names none, or excludes it in the same breath.
    """
    named = [Version(part.version) for part in requirement.specifier if part.operator in MINIMUM]
    if not named:
        raise ValueError(f"{requirement.name} has no minimum: write it as '{requirement.name}>=VERSION'")
    lowest = max(named)
    if not requirement.specifier.contains(lowest, prereleases=True):
        raise ValueError(f"{requirement} excludes its own minimum {lowest}")
    return lowest


def lowest_pins(found: Iterable[Requirement], environment: dict[str, str] | None = None) -> list[str]:
    """Return one pin per distribution, sorted by name.

    Parameters
    ----------
    found : iterable of Requirement
    environment : dict of str to str, optional
        Values of markers, for instance ``{"python_version": "3.13"}``; those of the running Python by default.
    """
    lowest: dict[str, Version] = {}
    for requirement in found:
        if requirement.marker is None or requirement.marker.evaluate(environment):
            name = canonicalize_name(requirement.name)
            lowest[name] = max(minimum(requirement), lowest.get(name, Version("0")))
    return [f"{name}=={version}" for name, version in sorted(lowest.items())]


def main(words: list[str] | None = None) -> int:
    """Print the pins, and return the exit code."""
    parser = argparse.ArgumentParser(description="Print the lowest versions that a pyproject.toml allows, as pins.")
    parser.add_argument("pyproject", nargs="?", type=Path, default=ROOT / "pyproject.toml")
    asked = parser.parse_args(words)
    try:
        project = tomllib.loads(asked.pyproject.read_text(encoding="utf-8"))["project"]
        print("\n".join(lowest_pins(requirements(project))))
    except (OSError, KeyError, ValueError) as problem:
        print(f"{asked.pyproject.name}: no pins: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
