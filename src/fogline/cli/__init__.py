"""The command line: ``fogline modes``, ``clusters``, ``regress``, ``fit``, ``plan``, ``ledger`` and more.

Nothing heavy is imported before it is needed: ``fogline --help`` answers at once.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its libraries, say how to get them."""
    try:
        from fogline.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("Error: the command line needs click, which is not installed: pip install 'fogline[cli]'\n")
        raise SystemExit(1) from None
    app(prog_name="fogline")
