"""CPU seconds of the command line on small files: what a user waits for before any work begins.

    python benchmarks/startup.py            prints a table
    python benchmarks/startup.py --runs 9   of the median of nine runs each

CPU seconds are those of the child, user and system together, so other work on the machine changes them little.
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

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
COMMANDS = {
    "import fogline": (["-c", "import fogline"], 0),
    "help": (["-m", "fogline.cli", "--help"], 0),
    "modes help": (["-m", "fogline.cli", "modes", "--help"], 0),
    "unknown command": (["-m", "fogline.cli", "mode"], 2),
    "unknown option": (["-m", "fogline.cli", "modes", "t.csv", "--bound", "0:1"], 2),
    "missing file": (["-m", "fogline.cli", "modes", "none.csv", "--bounds", "0:10", *BUDGET], 2),
    "wrong bounds": (["-m", "fogline.cli", "modes", "t.csv", "--bounds", "10:0", *BUDGET], 2),
    "missing column": (["-m", "fogline.cli", "modes", "t.csv", "--columns", "z", "--bounds", "0:10", *BUDGET], 2),
    "modes": (["-m", "fogline.cli", "modes", "t.csv", "--columns", "a", "--bounds", "0:10", *BUDGET], 0),
    "modes as JSON": (
        ["-m", "fogline.cli", "modes", "t.csv", "--columns", "a", "--bounds", "0:10", *BUDGET, "--json"],
        0,
    ),
    "modes, two columns": (["-m", "fogline.cli", "modes", "t.csv", "--bounds", "0:10,0:10", *BUDGET], 0),
    "modes with a page": (
        ["-m", "fogline.cli", "modes", "t.csv", "--columns", "a", "--bounds", "0:10", *BUDGET, "--report", "page.html"],
        0,
    ),
    "clusters": (["-m", "fogline.cli", "clusters", "w.csv", "--bounds", "0:10", *BUDGET], 0),
}
"""Name, words for Python, exit code."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def write_files(folder: Path) -> None:
    """Write a small table of two columns and one of eight."""
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.normal(3, 0.5, 300), rng.normal(7, 0.5, 300)])
    rows = [f"{x:.4f},{y:.4f}" for x, y in zip(a, rng.normal(5, 1, 600), strict=True)]
    (folder / "t.csv").write_text("\n".join(["a,b", *rows, ""]))
    wide = np.concatenate([rng.normal(3, 0.5, (300, 8)), rng.normal(7, 0.5, (300, 8))])
    lines = [",".join(f"{x:.4f}" for x in row) for row in wide]
    (folder / "w.csv").write_text("\n".join([",".join("abcdefgh"), *lines, ""]))


def cpu_seconds(words: list[str], code: int, folder: Path) -> float:
    """Run Python once and return the CPU seconds of the child."""
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    told = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != code:
        raise SystemExit(f"{words} ended with {process.returncode}, expected {code}: {told}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("only", nargs="*", metavar="NAME", help="commands to run; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        print("command,cpu_seconds")
        for command, (words, code) in COMMANDS.items():
            if options.only and command not in options.only:
                continue
            seconds = [cpu_seconds(words, code, folder) for _ in range(options.runs)]
            print(f"{command},{statistics.median(seconds):.2f}", flush=True)


if __name__ == "__main__":
    main()
