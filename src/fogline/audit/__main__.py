"""The long audit: ``make audit``, or ``python -m fogline.audit [--short] [--seed S] [--output PATH]``.

Replays and attacks on everything certified, the fit of the system's noise, attacks that must succeed, and the
ledger's trials. Writes ``docs/audit.md``. The seed of the random pairs is fresh and printed, so that a failure
can be looked at again. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from fogline.audit.broken import check_diffprivlib, check_published
from fogline.audit.certified import (
    check_event_kinds,
    check_likelihood_ratio,
    check_mechanisms,
    check_noise,
    check_outlier,
    check_outlier_elsewhere,
    check_replay,
)
from fogline.audit.draws import check_draws, check_published_draws
from fogline.audit.isolation_audit import check_sources
from fogline.audit.lines import Check, Line
from fogline.audit.mixtures import check_mixture_outlier, check_mixture_replay
from fogline.audit.page import page

__all__ = ["CHECKS", "ledger_table", "main"]

CHECKS: tuple[Check, ...] = (
    check_noise,
    check_event_kinds,
    check_mechanisms,
    check_published,
    check_published_draws,
    check_likelihood_ratio,
    check_outlier,
    check_outlier_elsewhere,
    check_mixture_outlier,
    check_replay,
    check_mixture_replay,
    check_draws,
    check_diffprivlib,
    check_sources,
)


def ledger_table(short: bool) -> tuple[str, bool]:
    """Run the ledger's trials in a process of their own; return their table and whether all held."""
    command = [sys.executable, "-m", "fogline.ledger.stress", *(["--short"] if short else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shown = done.stdout.strip()
    return (shown if shown else "The trials did not run."), done.returncode == 0 and bool(shown)


def main(arguments: list[str] | None = None) -> int:
    """Run all checks, print a line for each, write the page and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fogline.audit", description="The long audit of fogline.")
    parser.add_argument("--seed", type=int, default=None, help="of the random pairs; fresh by default")
    parser.add_argument("--short", "--quick", action="store_true", help="a run of less than three minutes")
    parser.add_argument("--output", type=Path, default=Path("docs/audit.md"), help="the page; default docs/audit.md")
    options = parser.parse_args(arguments)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"fogline audit, seed {seed}; noise from the operating system")
    start, lines = time.perf_counter(), []
    for check in CHECKS:
        for line in check(seed, options.short):
            lines.append(line)
            spent = time.perf_counter() - start
            print(f"{'ok  ' if line.passed else 'FAIL'} {spent:5.0f} s  {line.check:<60}  {line.found}", flush=True)
    table, held = ledger_table(options.short)
    lines.append(Line("the ledger's trials", "see the table below", held, "nothing is overspent", "ledger"))
    failed = sum(not line.passed for line in lines)
    seconds = time.perf_counter() - start
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    written = page(lines, seed=seed, short=options.short, date=date, seconds=seconds, ledger=table)
    options.output.write_text(written, encoding="utf-8")
    took = f"{seconds:.0f} s; {options.output}"
    print(f"all passed, {took}" if not failed else f"{failed} FAILED, {took}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
