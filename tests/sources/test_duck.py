"""The database that reads files: kept for the next pass, but not for a forked process, and with nothing in it."""

import os
import subprocess
import sys

import pytest

from fogline.sources import files as duck

pytest.importorskip("duckdb")


def test_a_connection_sees_nothing_of_another():
    first = duck.connect()
    first.execute("CREATE TEMP TABLE visits AS SELECT 1 AS x")
    second = duck.connect()
    assert second.execute("SHOW TABLES").fetchall() == []
    first.close()
    assert second.execute("SELECT 1").fetchall() == [(1,)]
    second.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_process_reads_and_ends(tmp_path):
    """A database that is kept for the next pass must not be left to a child, which would wait for its threads."""
    code = f"""
import os, sys
from fogline.sources.files import FileTable
from fogline.density.random_spec import plan_spec
spec = plan_spec([(0, 10)], "auto", None)
source = FileTable({str(tmp_path / "f.csv")!r})
first = source.state(spec)[1].sum()
child = os.fork()
again = source.state(spec)[1].sum()
if child == 0:
    sys.exit(0 if again == first else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if again == first else 1)
"""
    (tmp_path / "f.csv").write_text("x\n1\n2\n")
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=100).returncode == 0
