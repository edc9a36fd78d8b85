"""CPU seconds of commands on small files: what a user waits for before any work begins.

    python benchmarks/startup.py                    measures, and writes docs/benchmarks/startup.csv
    python benchmarks/startup.py --before OLD/src   measures another edition of the package beside it

CPU seconds are those of the child, user and system together, so other work on the machine changes them little. Each is
the median of some runs after one that is not counted, in which files are cached and compiled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import read_csv, write_csv
from fogline import release
from fogline.datasets import hospital_visits

SOURCE = Path(__file__).resolve().parent.parent / "src"
USAGE, MODES = 0.3, 1.5
"""Wanted: at most this many seconds for what computes nothing, and for the modes of a small file."""

BUDGET = ("--epsilon", "1", "--delta", "1e-5")
ONE = ("modes", "t.csv", "--columns", "a", "--bounds", "0:10", *BUDGET)
COMMANDS: dict[str, tuple[tuple[str, ...], int, float | None]] = {
    "fogline --help": (("--help",), 0, USAGE),
    "fogline modes --help": (("modes", "--help"), 0, USAGE),
    "unknown command": (("mode",), 2, USAGE),
    "unknown option": (("modes", "t.csv", "--bound", "0:1"), 2, USAGE),
    "missing file": (("modes", "none.csv", "--bounds", "0:10", *BUDGET), 2, USAGE),
    "wrong bounds": (("modes", "t.csv", "--bounds", "10:0", *BUDGET), 2, USAGE),
    "missing column": (("modes", "t.csv", "--columns", "z", "--bounds", "0:10", *BUDGET), 2, USAGE),
    "missing ledger": (("ledger", "show", "none.fogline"), 4, USAGE),
    "missing sketch": (("release", "none.sketch", *BUDGET), 2, USAGE),
    "modes, one column": (ONE, 0, MODES),
    "modes, one column, as JSON": ((*ONE, "--json"), 0, MODES),
    "modes, one column, with a page": ((*ONE, "--report", "page.html"), 0, MODES),
    "modes, two columns": (("modes", "t.csv", "--bounds", "0:10,0:10", *BUDGET), 0, MODES),
    "modes of a release, two columns": (("modes", "visits.fog"), 0, MODES),
    "clusters, eight columns": (("clusters", "w.csv", "--bounds", "0:10", *BUDGET), 0, None),
    "regress": (
        ("regress", "t.csv", "--x", "a", "--y", "b", "--x-bounds", "0:10", "--y-bounds", "0:10", *BUDGET),
        0,
        None,
    ),
}
"""Words, exit code, and how long it may take."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def write_files(folder: Path) -> None:
    """Write a small table of two columns and one of eight, and the release of the README's table."""
    release(hospital_visits(20_000).X[:, :2], columns=["age", "stay"], bounds=["age", (0, 60)], epsilon=1.0).save(
        folder / "visits.fog"
    )
    rng = np.random.default_rng(0)
    near, far = rng.normal(3, 0.5, (300, 8)), rng.normal(7, 0.5, (300, 8))
    wide = [",".join(f"{x:.4f}" for x in row) for row in np.concatenate([near, far])]
    narrow = [",".join(line.split(",")[:2]) for line in wide]
    (folder / "t.csv").write_text("\n".join(["a,b", *narrow, ""]))
    (folder / "w.csv").write_text("\n".join(["a,b,c,d,e,f,g,h", *wide, ""]))


def cpu_seconds(words: tuple[str, ...], code: int, folder: Path, source: Path) -> float:
    """Run a command once and return the CPU seconds of its process."""
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    environment["PYTHONPATH"] = str(source)
    began = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "fogline.cli", *words], cwd=folder, env=environment, capture_output=True, check=False
    )
    ended = os.times()
    if done.returncode != code:
        raise SystemExit(f"{words} ended with {done.returncode}, expected {code}: {done.stderr.decode()}")
    return round(ended.children_user - began.children_user + ended.children_system - began.children_system, 2)


def median_seconds(words: tuple[str, ...], code: int, source: Path, runs: int) -> float:
    """Median of some runs on fresh files, after one that is not counted."""
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        return statistics.median([cpu_seconds(words, code, Path(name), source) for _ in range(runs + 1)][1:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--before", type=Path, metavar="SRC", help="folder of another edition, to measure beside this")
    options = parser.parse_args()
    known = {row["command"]: row["before"] for row in read_csv("startup")}
    rows = []
    for command, (words, code, wanted) in COMMANDS.items():
        before: float | str = known.get(command, "")
        if options.before is not None:
            before = median_seconds(words, code, options.before.resolve(), options.runs)
        now = median_seconds(words, code, SOURCE, options.runs)
        rows.append({"command": command, "before": before, "now": now, "wanted": "" if wanted is None else wanted})
        print(rows[-1], flush=True)
    write_csv("startup", rows)


if __name__ == "__main__":
    main()
