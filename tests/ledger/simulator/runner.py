"""Run the simulator: ``python -m tests.ledger.simulator [--seeds N] [--jobs J] [--short]``, from the project's root.

Seeds are fresh unless `--first` is given, and printed. Each failing seed is shrunk, and printed with the command that
repeats it; the exit code is then 1. ``--seed S [--keep 0,2,5]`` repeats one run and tells what happened in it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.ledger.simulator.plan import FAMILIES, draw
from tests.ledger.simulator.run import carry_out, only, shrunk

_BATCH = 500
_REPORTED = 5
"""The most failures of a batch that are shrunk and told; all are counted."""


def batch(first: int, runs: int) -> tuple[int, Counter[str], list[str]]:
    """Carry out runs of consecutive seeds; return their number, what was seen, and reports of failures."""
    seen: Counter[str] = Counter()
    failures = []
    for seed in range(first, first + runs):
        outcome = carry_out(draw(seed))
        seen.update(outcome.seen)
        seen[f"runs: {outcome.plan.family}"] += 1
        if outcome.violation is not None:
            seen["broken"] += 1
            failures += [report(seed)] if len(failures) < _REPORTED else []
    return runs, seen, failures


def report(seed: int) -> str:
    """Return what goes wrong with a seed, with as little else as possible."""
    plan, kept = shrunk(draw(seed))
    outcome = carry_out(plan)
    command = f"python -m tests.ledger.simulator --seed {seed} --keep {','.join(map(str, kept))}"
    items = [f"    {item}" for item in plan.items]
    return "\n".join([f"seed {seed}: {outcome.violation}", f"  {command}", *items, *outcome.trace])


def repeat(seed: int, keep: str | None) -> int:
    """Repeat one run and tell of it."""
    plan = draw(seed)
    if keep is not None:
        plan = only(plan, [int(number) for number in keep.split(",") if number])
    outcome = carry_out(plan)
    print(plan)
    for line in [*map(str, plan.items), *outcome.trace]:
        print(line)
    print(outcome.violation or "all invariants hold")
    return int(outcome.violation is not None)


def _batches(first: int, runs: int, jobs: int) -> Iterator[tuple[int, Counter[str], list[str]]]:
    starts = [(first + done, min(_BATCH, runs - done)) for done in range(0, runs, _BATCH)]
    if jobs == 1:
        yield from (batch(*start) for start in starts)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(batch, *start) for start in starts]):
            yield future.result()


def many(first: int, runs: int, jobs: int) -> int:
    """Carry out many runs; return 1 if any failed."""
    start, done = time.perf_counter(), 0
    seen: Counter[str] = Counter()
    for number, found, failures in _batches(first, runs, jobs):
        done += number
        seen.update(found)
        for failure in failures:
            print(failure, flush=True)
        spent = time.perf_counter() - start
        print(f"\r{done} of {runs} runs, {seen['broken']} broken, {spent:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(summary(first, done, seen))
    return int(seen["broken"] > 0)


def summary(first: int, runs: int, seen: Counter[str]) -> str:
    """Say in one line what was tried and what came of it."""
    crashes = sum(seen[f"event: {kind}"] for kind in ("kill", "kill another", "power"))
    copies = sum(
        seen[f"event: {kind}"] for kind in ("copy beside", "beside", "over by rename", "over in place", "move")
    )
    marks = sum(seen[f"event: {kind}"] for kind in ("marks lost", "marks back"))
    flips = sum(seen[f"event: {kind}"] for kind in ("flip file", "flip mark"))
    full = sum(seen[f"event: {kind}"] for kind in ("full", "sick"))
    refused = sum(count for what, count in seen.items() if what.startswith("refused"))
    families = ", ".join(f"{seen[f'runs: {family}']:,} {family}" for family in FAMILIES)
    return (
        f"{runs:,} runs from seed {first} ({families}): {seen['broken']} broken; {crashes:,} crashes,"
        f" {copies:,} copies put back or beside, {marks:,} marks lost or put back, {flips:,} bits flipped,"
        f" {full:,} times no room or a sick disk; {seen['data touched']:,} releases,"
        f" {seen['answered'] + seen['answered from the ledger']:,} answers, {refused:,} refusals"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.ledger.simulator", description="Simulate the ledger.")
    parser.add_argument("--seeds", type=int, default=100_000, help="how many runs")
    parser.add_argument("--first", type=int, default=None, help="the first seed; fresh by default")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many processes")
    parser.add_argument("--short", action="store_true", help="a hundredth of the runs")
    parser.add_argument("--seed", type=int, default=None, help="repeat one run")
    parser.add_argument("--keep", default=None, help="with --seed: the items of the plan to keep, such as 0,2,5")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return repeat(options.seed, options.keep)
    first = secrets.randbits(40) if options.first is None else options.first
    return many(first, max(1, options.seeds // (100 if options.short else 1)), options.jobs)
