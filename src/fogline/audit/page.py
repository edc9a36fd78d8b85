"""The page that the long audit writes: claims beside what attacks have found."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata

from fogline.audit.clopper_pearson import visible_probability
from fogline.audit.lines import CONFIDENCE, Line

__all__ = ["page"]

_RUNS = (100, 834, 8_700, 100_000)
_PACKAGES = ("fogline", "opendp", "numpy", "scipy", "scikit-learn")

_SECTIONS = {
    "estimators": (
        "Certified estimators",
        "Replay carries the claim: a run on D is recorded and played back on a neighbour D', and everything that can "
        "be seen must be the same, while the exact query moves by no more than the declared sensitivity. Seen are the "
        "result with all that can be reached from it, what is printed, logged, warned, raised and written, and the "
        "state that is left behind: modules, classes, caches, environment, threads. What cannot be looked into, and "
        "noise of a kind that no check knows, is a failure. Attacks bound "
        "the privacy from below; they are smoke tests, and a claim that stands is not proved by them (the proofs are "
        "beside the code). The likelihood ratio is the best score there is for a vector with Gaussian noise. "
        "PrivateModes publishes a DensitySketch's release and what is read from it, so that attack is on both.",
    ),
    "mechanisms": (
        "Mechanisms",
        "Each on a pair of neighbours that brings it near its claim. Where it is known, the table says what the pair "
        "would show with endless runs: the distance to it is the price of the confidence.",
    ),
    "noise": (
        "Noise",
        "Draws from the operating system's entropy against the exact law; and for each kind of event that the answer "
        "is the function of exact value and draws that the event says, also on values where the noise decides.",
    ),
    "published": (
        "Published algorithms",
        "`fogline.published` has the papers' algorithms to the letter. Their claims are false where the paper's "
        "argument has a gap ([gaps](gaps.md)); these attacks must succeed, which shows that the audit has teeth.",
    ),
    "isolation": (
        "Record isolation",
        "Pairs of [hostile tables](isolation.md) that differ in one record, or in all records of one unit, written in "
        "the form of each source and read through the public functions. A violation is a pair whose exact states "
        "differ by more than that record's vector (with a unit, by more than c records of it), or whose errors, "
        "warnings, log or schema differ.",
    ),
    "coverage": (
        "What the hostile tables were made of",
        "How often the generator drew each feature of its own list, over all sources.",
    ),
    "others": (
        "For comparison: diffprivlib",
        "Attacked as a black box through `audit.attack`, in an environment of its own "
        "(`benchmarks/diffprivlib_kmeans.py`). D is 600 records at 0; D' has one more, at 1. In version 0.6.6 a "
        "cluster without records is left where it is (`if cluster not in labels: continue`), with no noise: the one "
        "record that falls into it makes its centre move. `labels_` and `inertia_` are exact functions of the records.",
    ),
}

_HEADING = ("what was checked", "claim", "best found", "the claim")
_HEADINGS = {
    "isolation": ("source", "property", "pairs tried", "violations"),
    "coverage": ("features", "wanted", "times drawn", "never drawn"),
}


def page(lines: Sequence[Line], *, seed: int, short: bool, date: str, seconds: float, ledger: str) -> str:
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

    Examples
    --------
    >>> line = Line("a check", "0.9", True, "at most 1")
    >>> text = page([line], seed=1, short=True, date="2026-11-15", seconds=60, ledger="none")
    >>> "| a check | at most 1 | 0.9 | stands |" in text
    True
    """
    failed = sum(not line.passed for line in lines)
    length, command = ("short", "python -m fogline.audit --short") if short else ("full", "make audit")
    parts = [
        "# What the audit found",
        f"Made by `{command}`: {'everything is as it should be' if not failed else f'**{failed} lines FAILED**'}. "
        "Do not edit.",
        _facts(seed, length, date, seconds),
    ]
    for section, (title, introduction) in _SECTIONS.items():
        chosen = [line for line in lines if line.section == section]
        if chosen:
            parts += [f"## {title}", introduction, _table(chosen, _HEADINGS.get(section, _HEADING))]
    parts += [
        "## The ledger under stress",
        "`python -m fogline.ledger.stress`: never more released than reserved, never more reserved than the cap, every "
        "tampering refused. Speeds are of the machine it ran on.",
        ledger.strip(),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(seed: int, length: str, date: str, seconds: float) -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    return "\n".join(
        [
            f"- date: {date}; {length} version of the audit, {seconds / 60:.1f} minutes",
            f"- seed of the random pairs: {seed}; noise from the operating system",
            f"- versions: {versions}, Python {platform.python_version()}",
            f"- confidence: every lower bound holds with confidence {CONFIDENCE:g} on its own line; among some thirty "
            "lines, one in a few audits may overstate what it found by a little",
            f"- what attacks can see: {_sight()}; a rarer leak needs more runs (`fogline.audit.visible_probability`)",
        ]
    )


def _sight() -> str:
    """Say how rare a leak of a record may be and still be seen, by the number of runs counted on each side."""
    seen = [f"{runs:,} runs one of {100 * visible_probability(runs, confidence=1 - 1e-6):.2g}%" for runs in _RUNS]
    return f"at epsilon 1, delta 1e-5 and an error of 1e-6, {', '.join(seen)}"


def _table(lines: Sequence[Line], headings: tuple[str, ...]) -> str:
    rows = [f"| {' | '.join(headings)} |", "| --- | --- | --- | --- |"]
    for line in lines:
        verdict = line.verdict or ("stands" if line.passed else "**FAILED**")
        rows.append(f"| {_cell(line.check)} | {_cell(line.claim)} | {_cell(line.found)} | {_cell(verdict)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
