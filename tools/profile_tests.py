"""CPU seconds of each test, each fixture and each collected file: where the time of `make test` goes.

Wall time says little on a machine that does other work beside, so this counts CPU time of the process and of the
children it has waited for. Record with it as a plugin of pytest, one process or many, and read the file afterwards:

    python -m pytest -q -p tools.profile_tests --cpu-profile build/cpu.tsv
    python tools/profile_tests.py build/cpu.tsv

A line holds a kind (`setup`, `call`, `teardown`, `fixture`, `collect`, `all`), the CPU seconds and a name. A setup
includes the fixtures that it makes; what a fixture takes to end stands in a teardown.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

Hook = Generator[None, object, object]
"""A wrapper of a hook: what is called comes between, and its result is handed on."""


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """Writes a line per phase of a test, per fixture that is made and per file that is collected."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1)

    def line(self, kind: str, seconds: float, name: str) -> None:
        """Write one line; lines shorter than a page are appended whole, so workers may share the file."""
        self.file.write(f"{kind}\t{seconds:.3f}\t{name}\n")

    def _measured(self, kind: str, name: str) -> Hook:
        before = cpu_seconds()
        result = yield
        self.line(kind, cpu_seconds() - before, name)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Hook:
        """Measure the making of what a test needs."""
        return (yield from self._measured("setup", item.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Hook:
        """Measure a test itself."""
        return (yield from self._measured("call", item.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Hook:
        """Measure what comes after a test."""
        return (yield from self._measured("teardown", item.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Hook:
        """Measure the making of one fixture."""
        return (yield from self._measured("fixture", f"{fixturedef.baseid}::{fixturedef.argname}"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Hook:
        """Measure the import of a file and the listing of its tests."""
        return (yield from self._measured("collect", collector.nodeid))

    def pytest_unconfigure(self) -> None:
        """Write what the whole process took."""
        self.line("all", cpu_seconds(), f"process {os.getpid()}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--cpu-profile", type=Path, help="append CPU seconds per test and fixture to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Record, if the option is given."""
    if path := config.getoption("--cpu-profile"):
        path.parent.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Recorder(path.absolute()), "cpu-profile")


def read(path: Path) -> Mapping[str, Mapping[str, float]]:
    """Return the CPU seconds per kind and name."""
    kinds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in path.read_text().splitlines():
        kind, seconds, name = line.split("\t", 2)
        kinds[kind][name] += float(seconds)
    return kinds


def table(title: str, seconds: Mapping[str, float], rows: int) -> None:
    """Print the largest sums and what all the others take together."""
    ordered = sorted(seconds.items(), key=lambda entry: -entry[1])
    print(f"\n{title}: {sum(seconds.values()):.0f} CPU s in {len(seconds)}")
    for name, value in ordered[:rows]:
        print(f"{value:9.2f}  {name}")
    if rest := ordered[rows:]:
        print(f"{sum(value for _, value in rest):9.2f}  {len(rest)} others")


def main() -> None:
    """Print what the largest files, functions and fixtures take."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=40)
    options = parser.parse_args()
    kinds = read(options.file)
    by_file, by_function, tests = (defaultdict[str, float](float) for _ in range(3))
    for kind in ("setup", "call", "teardown"):
        for name, seconds in kinds[kind].items():
            by_file[name.split("::")[0]] += seconds
            by_function[name.split("[")[0]] += seconds
            tests[name] += seconds
    table("files", by_file, options.rows)
    table("functions, all their parameters", by_function, options.rows)
    table("tests", tests, options.rows)
    table("fixtures (part of a setup)", kinds["fixture"], options.rows // 2)
    table("collected (a folder includes its files)", kinds["collect"], options.rows // 2)
    table("processes", kinds["all"], options.rows)


if __name__ == "__main__":
    main()
