"""``make coverage-core``: run the tests of what privacy rests on, and fail if they leave a branch untaken.

Measured are the mechanisms, the accounting, the ledger, the sites, and the code through which a record goes from a
source into a release, also in the processes that tests start. What is left out is named here or in the code, with its
reason:

- lines marked ``pragma: no cover`` or ``pragma: no branch``, each with a comment that says why;
- compiled loops (``_*numba.py``): numba runs machine code, which cannot be traced. The same records go through their
  numpy twins, which are measured, and tests compare both integer by integer (``tests/sources/test_twins.py``,
  ``test_contributions.py``, ``tests/queries/test_histogram.py``, ``test_random_features.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

QUERIES = (
    "bucket_counts",
    "column_counts",
    "exact_counts",
    "fourier_sums",
    "magnitudes",
    "random_feature_sums",
    "strata",
)
RELEASES = (
    *("curator", "density_sketch", "joint_release", "leaf_release", "origins", "passes", "profile", "release"),
    *("sketch_file", "strata", "table_release", "terms"),
)
SOURCES = ("cell_sql", "contributions", "passes", "tables", "typed_cells")
MEASURED = [
    *(f"src/fogline/{part}/*.py" for part in ("mechanisms", "accounting", "ledger", "federation")),
    *(f"src/fogline/queries/{name}.py" for name in QUERIES),
    *(f"src/fogline/releases/{name}.py" for name in RELEASES),
    *(f"src/fogline/sources/{name}.py" for name in SOURCES),
]
LEFT_OUT = ["src/fogline/*/_*numba.py"]
TESTS = [
    *("tests/mechanisms", "tests/accounting", "tests/ledger", "tests/federation", "tests/releases"),
    *(
        f"tests/queries/test_{name}.py"
        for name in ("bucket_counts", "column_counts", "fourier", "histogram", "one_cluster", "random_features")
    ),
    *(f"tests/estimators/test_{name}.py" for name in ("bounds", "profile", "regression", "strata")),
    *(f"tests/density/test_{name}.py" for name in ("core_limits", "random_density", "strata")),
    *(
        f"tests/sources/test_{name}.py"
        for name in ("contributions", "core_guards", "feed", "tables", "twins", "typed_cells")
    ),
    *(f"src/fogline/{part}" for part in ("mechanisms", "accounting", "ledger", "federation", "releases", "sources")),
    "src/fogline/queries",
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
