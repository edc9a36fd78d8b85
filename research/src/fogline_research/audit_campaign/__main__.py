"""The page that the long audit writes: claims beside what attacks have found.

The long audit: ``make audit``, or ``python -m fogline.audit [--short] [--seed S] [--output PATH]``.

Replays and attacks on everything certified, the fit of the system's noise, attacks that must succeed, and the
ledger's trials. Writes ``docs/audit.md``. The seed of the random pairs is fresh and printed, so that a failure
can be looked at again. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import platform
import resource
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from fogline.audit.binomial_bounds import visible_probability
from fogline_research.audit_campaign.as_published import check_diffprivlib, check_published
from fogline_research.audit_campaign.estimators import (
    check_draws,
    check_event_kinds,
    check_leaf_ratio,
    check_likelihood_ratio,
    check_mechanisms,
    check_mixture_outlier,
    check_mixture_replay,
    check_noise,
    check_outlier,
    check_outlier_elsewhere,
    check_published_draws,
    check_replay,
)
from fogline_research.audit_campaign.isolation_audit import PROCESSES, Campaign, check_sources
from fogline_research.audit_campaign.lines import CONFIDENCE, Check, Line, lines_of
from fogline_research.audit_campaign.verbs import check_verbs

__all__ = ["CHECKS", "doors_table", "ledger_table", "main", "page"]

_RUNS = (100, 834, 8_700, 100_000)
_PACKAGES = ("fogline", "opendp", "numpy", "scipy", "scikit-learn")

_SECTIONS = {
    "estimators": (
        "Certified estimators",
        "The claim rests on [replay](glossary.md#replay): a run on a data set D is recorded and played back on a "
        "[neighbour](glossary.md#neighbours) D'. Everything that can be seen must then be the same, while the "
        "exact query moves by no more than the declared [sensitivity](glossary.md#sensitivity). What can be seen "
        "is the result with all that can be reached from it, what is printed, logged, warned, raised and written, "
        "and the state that is left behind: modules, classes, caches, environment, threads. It counts as a failure "
        "if something cannot be looked into, or if noise is of a kind that no check knows. Attacks bound the "
        "privacy from below. They are smoke tests: a claim that stands is not proved by them (the proofs are "
        "beside the code). The likelihood ratio is the best score there is for a vector with Gaussian noise. [mu "
        "and rho](glossary.md#rho-zcdp-mu-gdp) are other units of epsilon; [add-remove and "
        "replace](glossary.md#add-remove-replace) are the two kinds of neighbours; d is the number of columns. "
        "PrivateModes publishes the release of a DensitySketch and what is read from it, so that one attack is on "
        "both.",
    ),
    "mechanisms": (
        "Mechanisms",
        "Each mechanism was tried on a pair of neighbours that brings it near its claim. Where it is known, the "
        "table says what the pair would show with endless runs; the distance to that is the price of the "
        "confidence.",
    ),
    "noise": (
        "Noise",
        "Draws from the operating system's entropy are compared with the exact law. For each kind of event the "
        "audit also checks that the answer is the function of the exact value and the draws that the event states, "
        "even on values where the noise decides.",
    ),
    "published": (
        "Published algorithms",
        "`fogline_research.as_published` has the algorithms of the [papers](papers.md) to the letter. Their claims "
        "are false where the paper's argument has a gap ([gaps](gaps.md)). These attacks must succeed, which shows "
        "that the audit can find a leak.",
    ),
    "isolation": (
        "Record isolation",
        "The audit draws pairs of [hostile tables](isolation.md) that differ in one record, or in all records of "
        "one [unit](glossary.md#unit). They are written in the form of each source and read through the public "
        "functions. A violation is a pair whose exact states differ by more than that record's vector (with a "
        "unit, by more than c of its records), or whose errors, warnings, log or schema differ.",
    ),
    "coverage": (
        "What the hostile tables were made of",
        "How often the generator drew each feature of its own list, over all sources.",
    ),
    "others": (
        "For comparison: diffprivlib",
        "diffprivlib was attacked as a black box through `audit.attack`, in an environment of its own "
        "(`benchmarks/diffprivlib_kmeans.py`). D is 600 records at 0; D' has one more, at 1. In version 0.6.6 a "
        "cluster without records is left where it is (`if cluster not in labels: continue`), with no noise, so "
        "that the one record that falls into it makes its centre move. `labels_` and `inertia_` are exact "
        "functions of the records.",
    ),
}

_HEADING = ("what was checked", "claim", "best found", "the claim")
_HEADINGS = {
    "isolation": ("source", "property", "pairs tried", "violations"),
    "coverage": ("features", "wanted", "times drawn", "never drawn"),
}


def page(
    lines: Sequence[Line],
    *,
    seed: int,
    short: bool,
    date: str,
    seconds: float,
    ledger: str,
    processor: float = 0,
    only: Sequence[str] = (),
) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    lines : sequence of Line
    seed : int
    short : bool
    date : str
    seconds : float
        That the audit took.
    ledger : str
        The ledger's table in Markdown, or what stands in its place.
    processor : float
        Seconds of processor time of all its processes; not told if 0.
    only : sequence of str
        The parts that were run, if not all.

    Examples
    --------
    >>> line = Line("a check", "0.9", True, "at most 1")
    >>> text = page([line], seed=1, short=True, date="2026-11-15", seconds=60, ledger="none")
    >>> "| a check | at most 1 | 0.9 | stands |" in text
    True
    """
    failed = sum(not line.passed for line in lines)
    length, command = ("short", "python -m fogline.audit --short") if short else ("full", "make audit")
    if only:
        command = f"python -m fogline.audit {'--short ' if short else ''}--only {' '.join(only)}"
    parts = [
        "# What the audit found",
        f"Made by `{command}`: {'everything is as it should be' if not failed else f'**{failed} lines FAILED**'}. "
        "Do not edit.",
        _facts(seed, length, date, seconds, processor),
    ]
    said = "A *door* is a place at which records, or a budget, could get out."
    parts += ["## Doors, properties, cases", said, doors_table(lines)]
    for section, (title, introduction) in _SECTIONS.items():
        chosen = [line for line in lines if line.section == section]
        if chosen:
            parts += [f"## {title}", introduction, _table(chosen, _HEADINGS.get(section, _HEADING))]
    parts += [
        "## The ledger under stress",
        "`python -m tests.ledger.torture` checks that the [ledger](glossary.md#ledger) never releases more than was "
        "reserved, never reserves more than its cap, and refuses every file that was tampered with. Speeds are those "
        "of the machine on which it ran.",
        ledger.strip(),
    ]
    return "\n\n".join(parts) + "\n"


_DOORS = {
    "estimators": ("certified estimators, verbs and readings", "all that is seen is a function of what was released"),
    "mechanisms": ("mechanisms", "no event shows more than the claim"),
    "noise": ("noise", "draws follow the exact law"),
    "published": ("published algorithms", "the attack on a claim that is known to be false succeeds"),
    "ledger": ("the ledger's file, its mark, copies, crashes", "released <= reserved <= cap; nothing lost"),
}


def doors_table(lines: Sequence[Line]) -> str:
    """Return the table of doors: how many were tried, on how many cases, and how many of these were violations.

    Examples
    --------
    >>> tried = [Line(name, "1000", True, "isolated", "isolation", "0") for name in ("a list", "an array")]
    >>> table = doors_table([*tried, Line("a release: replay", "60 pairs, up to 1.0", True)]).splitlines()
    >>> [row.split(" | ")[2:] for row in table[2:]]
    [['1000 pairs each', '0 |'], ['1 line, of which 1 are replays', '0 |']]
    """
    rows = ["| door | property | cases tried | violations |", "| --- | --- | --- | ---: |"]
    isolated: dict[str, list[Line]] = {}
    for line in lines:
        if line.section == "isolation" and line.found != "not run":
            isolated.setdefault(line.found.split(",")[0], []).append(line)
    claimed = "one record moves the exact state by its vector or not at all; a unit by at most c records"
    for pairs, group in sorted(isolated.items(), key=lambda item: -int(item[0])):
        rows.append(
            f"| {len(group)} sources | {claimed} | {pairs} pairs each | {sum(not one.passed for one in group)} |"
        )
    for section, (entry, claim) in _DOORS.items():
        chosen = [line for line in lines if line.section == section]
        if chosen:
            replays = sum("replay" in line.check for line in chosen)
            cases = f"{len(chosen)} line{'s' * (len(chosen) > 1)}" + (
                f", of which {replays} are replays" if replays else ""
            )
            rows.append(f"| {entry} | {claim} | {cases} | {sum(not line.passed for line in chosen)} |")
    return "\n".join(rows)


def _facts(seed: int, length: str, date: str, seconds: float, processor: float) -> str:
    spent = f" ({processor / 60:.1f} of processor time)" if processor else ""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    return "\n".join(
        [
            f"- date: {date}; {length} version of the audit, {seconds / 60:.1f} minutes{spent}",
            f"- seed of the random pairs: {seed}; noise from the operating system",
            f"- versions: {versions}, Python {platform.python_version()}",
            f"- confidence: every lower bound holds with confidence {CONFIDENCE:g} on its own line; among some thirty "
            "lines, a bound that is a little too high is to be expected once in a few audits",
            f"- what attacks can see: {_sight()}; a rarer leak needs more runs (`fogline.audit.visible_probability`)",
        ]
    )


def _sight() -> str:
    """Say how rare a leak of a record may be and still be seen, by the number of runs counted on each side."""
    seen = [
        f"{runs:,} runs show a leak of probability {100 * visible_probability(runs, confidence=1 - 1e-6):.2g}%"
        for runs in _RUNS
    ]
    return f"at epsilon 1, delta 1e-5 and an error of 1e-6, {', '.join(seen)}"


def _table(lines: Sequence[Line], headings: tuple[str, ...]) -> str:
    rows = [f"| {' | '.join(headings)} |", "| --- | --- | --- | --- |"]
    for line in lines:
        verdict = line.verdict or ("stands" if line.passed else "**FAILED**")
        rows.append(f"| {_cell(line.check)} | {_cell(line.claim)} | {_cell(line.found)} | {_cell(verdict)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


CHECKS: tuple[Check, ...] = (
    check_noise,
    check_event_kinds,
    check_mechanisms,
    check_published,
    check_published_draws,
    check_likelihood_ratio,
    check_leaf_ratio,
    check_outlier,
    check_outlier_elsewhere,
    check_mixture_outlier,
    check_replay,
    check_mixture_replay,
    check_verbs,
    check_draws,
    check_diffprivlib,
    check_sources,
)


_LONG: tuple[Check, ...] = (check_verbs, check_mixture_replay, check_replay)


def _all_lines(checks: Sequence[Check], seed: int, short: bool, processes: int) -> Iterator[Line]:
    """Lines of all checks, in their order; several checks run at a time, each in a process."""
    if processes == 1:
        for check in checks:
            yield from check(seed, short)
        return
    with Campaign(processes) as campaign:
        # isolation has processes of its own, which would wait for these; the longest begin first
        alone = [check for check in checks if check != check_sources]
        asked = {
            check: campaign.submit(lines_of, check, seed, short)
            for check in sorted(alone, key=lambda one: one not in _LONG)
        }
        for check in alone:
            found = asked[check].result()
            yield from [Line(check.__name__, found, False)] if isinstance(found, str) else found
    if check_sources in checks:
        yield from check_sources(seed, short)


def ledger_table(short: bool) -> tuple[str, bool]:
    """Run the ledger's trials in a process of their own; return their table and whether all held."""
    command = [sys.executable, "-m", "tests.ledger.torture", *(["--short"] if short else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shown = done.stdout.strip()
    return (shown if shown else "The trials did not run."), done.returncode == 0 and bool(shown)


def main(arguments: list[str] | None = None) -> int:
    """Run all checks, print a line for each, write the page and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fogline.audit", description="The long audit of fogline.")
    parser.add_argument("--seed", type=int, default=None, help="of the random pairs; fresh by default")
    parser.add_argument("--short", "--quick", action="store_true", help="a run of less than three minutes")
    parser.add_argument("--output", type=Path, default=Path("docs/audit.md"), help="the page; default docs/audit.md")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"at a time; default {PROCESSES}")
    names = [check.__name__.removeprefix("check_") for check in CHECKS]
    parser.add_argument(
        "--only", nargs="+", choices=[*names, "ledger"], metavar="PART", help=f"of {', '.join([*names, 'ledger'])}"
    )
    options = parser.parse_args(arguments)
    chosen = [check for check, name in zip(CHECKS, names, strict=True) if name in (options.only or names)]
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"fogline audit, seed {seed}; noise from the operating system")
    start, lines = time.perf_counter(), []
    # the ledger's trials mostly wait for the disk, or fill one core when the last checks leave it free
    beside = ThreadPoolExecutor(1)
    trials = beside.submit(ledger_table, options.short) if "ledger" in (options.only or ["ledger"]) else None
    for line in _all_lines(chosen, seed, options.short, options.processes):
        lines.append(line)
        spent = time.perf_counter() - start
        print(f"{'ok  ' if line.passed else 'FAIL'} {spent:5.0f} s  {line.check:<60}  {line.found}", flush=True)
    table = "Left out."
    if trials is not None:
        table, all_stood = trials.result()
        lines.append(Line("the ledger's trials", "see the table below", all_stood, "nothing is overspent", "ledger"))
    failed = sum(not line.passed for line in lines)
    seconds = time.perf_counter() - start
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    # a busy machine stretches minutes, not processor time
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(one.ru_utime + one.ru_stime for one in used)
    written = page(
        lines,
        seed=seed,
        short=options.short,
        date=date,
        seconds=seconds,
        ledger=table,
        processor=processor,
        only=options.only or (),
    )
    options.output.write_text(written, encoding="utf-8")
    took = f"{seconds:.0f} s; {options.output}"
    print(f"all passed, {took}" if not failed else f"{failed} FAILED, {took}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
