"""Record isolation in the long audit: many pairs on every source, and how much of its own list the generator drew."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from threading import local
from typing import Any

from fogline_research.audit_campaign.forms import SOURCES, Source, is_available, source_named
from fogline_research.audit_campaign.isolation import IsolationReport, check_isolation
from fogline_research.audit_campaign.lines import Line

__all__ = ["Campaign", "check_sources", "coverage_lines", "joined", "pairs_of", "parts_of", "report_line"]

PAIRS = 10_000
"""Pairs for each source that is read in this process."""

SERVER_PAIRS = 1_000
"""Pairs for each server, for printed queries, which an engine runs, and for random features, leaves and strata of
sources that were read on a grid already."""

VERB_PAIRS = 100
"""Pairs for each source of a verb: its readers are those of the other lines, which have 10 000."""

PROCESSES = 2

MOST_SAID = 200
"""Characters of an error that the page shows."""

PART = 1_000
"""Most pairs of a task: small, so that processes end together, and little is lost with one that dies."""

_SCRIPTS = Path(__file__).parents[4] / "benchmarks"
_STARTERS = {"postgres": "loopback_postgres", "spark": "local_spark"}
"""Scripts that start a server of their own on this machine, with a function of the same name."""


def check_sources(seed: int, short: bool) -> Iterator[Line]:
    """Try all sources that are installed: a line for each, then what the generator drew."""
    sources = [source for source in SOURCES if is_available(source.form)]
    here = [source for source in sources if not source.form.server]
    there = {name: [source for source in sources if source.form.server == name] for name in _STARTERS}
    there = {name: tried if _starter(name) is not None else [] for name, tried in there.items()}
    drawn: Counter[str] = Counter()
    with Campaign(PROCESSES) as campaign:
        # servers first: theirs are the longest tasks, and the small ones of the others fill what is left
        asked = {name: [(source.name, pairs_of(source, short)) for source in tried] for name, tried in there.items()}
        on_servers = {
            name: campaign.submit(_tried_on_server, name, asked[name], seed, short) for name in there if asked[name]
        }
        cut = {source.name: parts_of(pairs_of(source, short), seed) for source in here}
        parts = {name: [campaign.submit(_tried, name, *part) for part in cut[name]] for name in cut}
        for source in here:
            report = joined(source.name, [part.result() for part in parts[source.name]])
            drawn.update(report.drawn)
            yield report_line(source, report)
        for name, tried in there.items():
            if not tried:
                yield Line(name, "not run", True, "it is not installed", "isolation", "-")
                continue
            reports = on_servers[name].result()
            for source in tried:
                report = joined(source.name, [reports if isinstance(reports, str) else reports[source.name]])
                drawn.update(report.drawn)
                yield report_line(source, report)
    yield from coverage_lines(drawn, short)


class Campaign:
    """Tasks in several processes, of which each fails alone.

    A reader may crash, or fill the memory until the system ends its process, and a library may refuse to write a table:
    that is a finding about one source, and must not hide what the others would show.

    Parameters
    ----------
    processes : int
        How many tasks run at a time.
    """

    def __init__(self, processes: int) -> None:
        self._threads = ThreadPoolExecutor(processes)
        self._own = local()
        self._pools: list[ProcessPoolExecutor] = []

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for pool in self._pools:
            pool.shutdown()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Add a task; its result is a text where there is none: an error, or that its process died."""
        return self._threads.submit(self._run, function, *arguments)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a task in the process that belongs to this thread."""
        if getattr(self._own, "pool", None) is None:
            self._own.pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
            self._pools.append(self._own.pool)
        try:
            return self._own.pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            self._own.pool = None
            return "its process died"
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def parts_of(pairs: int, seed: int) -> list[tuple[int, int]]:
    """Cut a campaign into parts: pairs and seed of each.

    Examples
    --------
    >>> parts_of(2500, 7)
    [(1000, 7), (1000, 8), (500, 9)]
    """
    return [(min(PART, pairs - start), seed + number) for number, start in enumerate(range(0, pairs, PART))]


def joined(source: str, reports: Sequence[IsolationReport | str]) -> IsolationReport:
    """Reports of all parts as one; a text says why a part has none."""
    whole = IsolationReport(source)
    for report in reports:
        if isinstance(report, str):
            whole.failures.append(report)
            continue
        whole.pairs += report.pairs
        whole.read += report.read
        whole.refused += report.refused
        whole.violations += report.violations
        whole.seeds += report.seeds
        whole.drawn.update(report.drawn)
    return whole


def pairs_of(source: Source, short: bool) -> int:
    """How many pairs of a source the audit tries."""
    is_verb = source.state in ("release", "named releases", "profile", "profile found")
    if short:
        return 4 if is_verb else 13 if source.form.server else 40
    if is_verb:
        return VERB_PAIRS
    # The same readers as on a grid; labels, which no other line has, are tried in full in the form that holds anything.
    is_repeated = source.state in ("random", "leaves", "printed") or (
        source.is_labelled and source.name != "strata: unit ids in a list"
    )
    return SERVER_PAIRS if source.form.server or is_repeated else PAIRS


def _tried(name: str, pairs: int, seed: int) -> IsolationReport:
    report = check_isolation(name, pairs, seed, shrinking=False)
    report.found = []  # its cells need not survive the way between processes; the seed finds them again
    return report


def _tried_on_server(name: str, asked: Sequence[tuple[str, int]], seed: int, short: bool) -> dict[str, IsolationReport]:
    """Sources of one server, which is started for them: a report for each. The long audit reads each pair alone."""
    with _starter(name)() as server:
        reports = {}
        for each, pairs in asked:
            source = source_named(each) if short else source_named(each).unbundled
            reports[each] = check_isolation(source, pairs, seed, servers={name: server}, shrinking=False)
            reports[each].found = []
    return reports


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
    passed = report.violations == 0 and is_whole and not report.failures
    tried = f"{report.pairs}" + (f", {report.refused} of them refused by their type" if report.refused else "")
    verdict = str(report.violations) if passed else f"**{report.violations}**, {report.read} read"
    if report.failures:
        verdict += f", {len(report.failures)} parts failed: {' '.join(report.failures[0].split())[:MOST_SAID]}"
    if report.seeds:
        verdict += f", seeds {', '.join(map(str, report.seeds))}"
    return Line(source.name, tried, passed, claim, "isolation", verdict)


def coverage_lines(drawn: Counter[str], short: bool) -> Iterator[Line]:
    """How often each feature of the generator's list was drawn, a line for each kind; a short audit may miss some."""
    for kind in ("cell", "id", "row", "step", "place", "public"):
        counts = {name.partition(": ")[2]: n for name, n in drawn.items() if name.startswith(f"{kind}: ")}
        missed = [name for name, n in counts.items() if not n]
        shown = "; ".join(f"{name} {counts[name]}" for name in sorted(counts))
        yield Line(f"{kind} ({len(counts)})", shown, short or not missed, "each is drawn", "coverage", f"{len(missed)}")
