"""``make coverage-core``: run the tests of what privacy rests on, and fail if they leave a branch untaken.

Measured are the mechanisms, the accounting, the ledger, the sites, and the code through which a record goes from a
source into a release, also in the processes that tests start. What is left out is named here or in the code, with its
reason:

- lines marked ``pragma: no cover`` or ``pragma: no branch``, each with a comment that says why;
- compiled loops (``_fast_*.py``): numba runs machine code, which cannot be traced. The same records go through their
  numpy twins, which are measured, and tests compare both integer by integer (``tests/sources/test_twins.py``,
  ``test_contributions.py``, ``tests/queries/test_histogram.py``, ``test_random_features.py``);
- programs that try a ledger out, of which no release makes use (``tests/ledger/torture/__main__.py``, ``full_disk.py``,
  ``power_loss.py``, ``trials.py``): they run in processes that are killed, which leave no measurement.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

SKETCH = (
    *("histogram", "fourier", "random_features", "sensitivity", "strata_counts", "strata", "terms"),
    *("density_sketch", "record_counts", "origins", "provenance", "release_marks", "sketch_file", "secret_files"),
)
ENGINES = ("contributions", "choice", "feed", "passes", "tables", "units", "cell_sql")
MEASURED = [
    *(f"src/fogline/{part}/*.py" for part in ("mechanisms", "accounting", "ledger", "federation")),
    *(f"src/fogline/sketch/{name}.py" for name in SKETCH),
    *(f"src/fogline/engines/{name}.py" for name in ENGINES),
]
LEFT_OUT = [
    "src/fogline/*/_fast_*.py",
    *(f"src/fogline/ledger/{name}.py" for name in ("stress", "full_disk", "power_loss", "trials")),
]
SKETCH_TESTS = (
    *("histogram", "fourier", "random_features", "random_density", "strata", "density_sketch", "streams"),
    *("origins", "provenance", "release_marks", "core_limits"),
)
TESTS = [
    *("tests/mechanisms", "tests/accounting", "tests/ledger", "tests/federation"),
    *(f"tests/density/test_{name}.py" for name in SKETCH_TESTS),
    *(f"tests/sources/test_{name}.py" for name in ("contributions", "feed", "tables", "twins")),
    *(f"src/fogline/{part}" for part in ("mechanisms", "accounting", "ledger", "federation", "sketch", "engines")),
]


def main() -> int:
    """Run the tests, print what they leave out, and return 0 only if that is nothing."""
    run, settings = [sys.executable, "-m"], ROOT / "tests" / "core_coverage.ini"
    environment = {**os.environ, "COVERAGE_FILE": str(ROOT / ".coverage.core")}
    measure = ["--cov=fogline", "--cov-branch", f"--cov-config={settings}", "--cov-report="]
    tested = subprocess.run([*run, "pytest", "-q", "-n", "2", *TESTS, *measure], cwd=ROOT, env=environment)
    chosen = [f"--include={','.join(MEASURED)}", f"--omit={','.join(LEFT_OUT)}"]
    report = ["coverage", "report", f"--rcfile={settings}", "--fail-under=100", *chosen]
    return tested.returncode or subprocess.run([*run, *report], cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
