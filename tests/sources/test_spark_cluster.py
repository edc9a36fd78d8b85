"""A cluster of Spark that runs a task twice, on speculation or since an executor is killed: it counts once."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tasks_that_run_twice.py"


def test_a_task_that_runs_twice_counts_once(tmp_path):
    """In a process of its own: the session that tests share runs on one machine, where Spark does not speculate."""
    try:
        socket.create_server(("127.0.0.2", 0)).close()
    except OSError:
        pytest.skip("this machine has one loopback address, and Spark speculates at another address than the first")
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True, capture_output=True, text=True)
    cases = {case.pop("case"): case for case in json.loads(done.stdout.splitlines()[-1])}
    assert set(cases) == {
        "rows run twice on speculation",
        "rows with a unit run twice on speculation",
        "states with a unit run twice on speculation",
        "states of random features run twice on speculation",
        "rows run again after its executor was killed",
        "rows with a unit run again after its executor was killed",
    }
    for name, case in cases.items():
        # two attempts at one task, of which one had handed over everything when the other did so, or was killed
        assert sum(mark.isdigit() for mark in case["marks"]) >= 2, name
        assert any(mark.startswith("killed" if "killed" in name else "all of") for mark in case["marks"]), name
    assert {name for name, case in cases.items() if not case["equal"]} == set()
    assert all(case["records"] > 250 for case in cases.values())
