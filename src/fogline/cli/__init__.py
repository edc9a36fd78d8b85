"""The command line: ``fogline modes``, ``clusters``, ``regress``, ``fit``, ``plan``, ``ledger`` and more.

Nothing heavy is imported before it is needed: ``fogline --help`` answers at once.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def _use_one_blas_thread() -> None:
    """Have linear algebra run in one thread, unless the user has said how many: must come before numpy is imported.

    The problems here are many and small, and threads that wait for one another cost more than they bring.
    """
    if not any(name in os.environ for name in (*_THREADS, "OMP_NUM_THREADS")):
        os.environ.update(dict.fromkeys(_THREADS, "1"))


def main() -> None:
    """Run the command line; without its libraries, say how to get them."""
    _use_one_blas_thread()
    try:
        from fogline.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("Error: the command line needs click, which is not installed: pip install 'fogline[cli]'\n")
        raise SystemExit(1) from None
    app(prog_name="fogline")
