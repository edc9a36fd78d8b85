"""Record isolation in the long audit: many pairs on every source, and how much of its own list the generator drew."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fogline.audit.forms import SOURCES, Source, is_available
from fogline.audit.isolation import IsolationReport, check_isolation
from fogline.audit.lines import Line

__all__ = ["check_sources", "coverage_lines", "pairs_of", "report_line"]

PAIRS = 10_000
"""Pairs for each source that is read in this process."""

SERVER_PAIRS = 1_000
"""Pairs for each server, and for random features and strata of files and frames, which the same readers read."""

PROCESSES = 2

_SCRIPTS = Path(__file__).parents[3] / "benchmarks"
_STARTERS = {"postgres": "loopback_postgres", "spark": "local_spark"}
"""Scripts that start a server of their own on this machine, with a function of the same name."""


def check_sources(seed: int, short: bool) -> Iterator[Line]:
    """Try all sources that are installed: a line for each, then what the generator drew."""
    here = [source for source in SOURCES if is_available(source.form) and not source.form.server]
    drawn: Counter[str] = Counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        tasks = [pool.submit(_tried, source.name, pairs_of(source, short), seed) for source in here]
        for source, task in zip(here, tasks, strict=True):
            report = task.result()
            drawn.update(report.drawn)
            yield report_line(source, report)
    for name in _STARTERS:
        yield from _check_server(name, seed, short, drawn)
    yield from coverage_lines(drawn, short)


def pairs_of(source: Source, short: bool) -> int:
    """How many pairs of a source the audit tries."""
    if short:
        return 13 if source.form.server else 40
    is_repeated = source.state == "random" or (source.is_labelled and not source.name.startswith("strata: unit ids"))
    return SERVER_PAIRS if source.form.server or is_repeated else PAIRS


def _tried(name: str, pairs: int, seed: int) -> IsolationReport:
    report = check_isolation(name, pairs, seed)
    report.found = []  # its cells need not survive the way between processes; the seed finds them again
    return report


def _check_server(name: str, seed: int, short: bool, drawn: Counter[str]) -> Iterator[Line]:
    """Sources of one server, which is started for them; a line says so where there is none."""
    sources = [source for source in SOURCES if source.form.server == name and is_available(source.form)]
    start = _starter(name)
    if not sources or start is None:
        yield Line(f"{name}", "not run", True, "it is not installed", "isolation", "-")
        return
    with ExitStack() as stack:
        servers = {name: stack.enter_context(start())}
        for source in sources:
            report = check_isolation(source, pairs_of(source, short), seed, servers=servers)
            drawn.update(report.drawn)
            yield report_line(source, report)


def _starter(name: str) -> Any:
    """The function that starts a server, from the scripts beside this installation; None where they are not."""
    script = _STARTERS[name]
    specification = importlib.util.spec_from_file_location(script, _SCRIPTS / f"{script}.py")
    if specification is None or specification.loader is None or not (_SCRIPTS / f"{script}.py").exists():
        return None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, script)


def report_line(source: Source, report: IsolationReport) -> Line:
    """One row of the table: what was tried, and how many pairs were not isolated."""
    has_unit = any(shape.ids is not None for shape in source.shapes)
    claim = "one record moves the state by its vector or not at all"
    if source.is_labelled:
        claim += ", in its stratum"
    elif has_unit:
        claim += "; a unit by at most c records"
    if source.form.is_refused:
        claim = "refused by its type, whatever the records are"
    is_whole = report.read + report.refused == report.pairs and bool(report.read) != source.form.is_refused
    passed = report.violations == 0 and is_whole
    tried = f"{report.pairs}" + (f", {report.refused} of them refused by their type" if report.refused else "")
    verdict = str(report.violations) if passed else f"**{report.violations}**, {report.read} read"
    return Line(source.name, tried, passed, claim, "isolation", verdict)


def coverage_lines(drawn: Counter[str], short: bool) -> Iterator[Line]:
    """How often each feature of the generator's list was drawn, a line for each kind; a short audit may miss some."""
    for kind in ("cell", "id", "row", "step", "place", "public"):
        counts = {name.partition(": ")[2]: n for name, n in drawn.items() if name.startswith(f"{kind}: ")}
        missed = [name for name, n in counts.items() if not n]
        shown = "; ".join(f"{name} {counts[name]}" for name in sorted(counts))
        yield Line(f"{kind} ({len(counts)})", shown, short or not missed, "each is drawn", "coverage", f"{len(missed)}")
