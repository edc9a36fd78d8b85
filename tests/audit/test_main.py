"""The long audit runs, in its short form, writes its page, and its exit code tells."""

import subprocess
import sys

import pytest

from fogline_research.audit_campaign import __main__ as audit
from fogline_research.audit_campaign import as_published as broken
from fogline_research.audit_campaign.__main__ import Line, main, page


@pytest.fixture(autouse=True)
def no_trials(monkeypatch):
    monkeypatch.setattr(audit, "ledger_table", lambda short: ("| trial | seen |", True))


def test_short_form(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(audit, "CHECKS", (audit.check_noise,))
    assert main(["--short", "--seed", "3", "--output", str(tmp_path / "docs" / "audit.md")]) == 0
    shown = capsys.readouterr().out
    assert "seed 3" in shown
    assert "all passed" in shown
    written = (tmp_path / "docs" / "audit.md").read_text()
    for part in ("seed of the random pairs: 3", "short version", "confidence 0.99", "opendp 0.", "| trial | seen |"):
        assert part in written
    assert "| laplace noise of scale 20 | the exact law |" in written


def test_checks_in_processes_of_their_own(monkeypatch, capsys, tmp_path):
    """Each fails alone, and the lines come in the order of the checks."""
    monkeypatch.setattr(audit, "CHECKS", (failing_check, audit.check_event_kinds))
    assert main(["--short", "--seed", "3", "--output", str(tmp_path / "audit.md")]) == 1
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("ok", "FAIL"))]
    assert "failing_check" in shown[0]
    assert "ZeroDivisionError" in shown[0]
    assert all(line.startswith("ok") for line in shown[1:])
    assert len(shown) == 8


def failing_check(seed, short):
    raise ZeroDivisionError


def test_a_failure_is_an_exit_code(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(audit, "CHECKS", (lambda seed, short: [Line("a claim", "a gap", False)],))
    assert main(["--short", "--processes", "1", "--output", str(tmp_path / "audit.md")]) == 1
    assert "FAIL" in capsys.readouterr().out
    assert "**FAILED**" in (tmp_path / "audit.md").read_text()


def test_trials_that_break_are_a_failure(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(audit, "CHECKS", ())
    monkeypatch.setattr(audit, "ledger_table", lambda short: ("**BROKEN**", False))
    assert main(["--short", "--processes", "1", "--output", str(tmp_path / "audit.md")]) == 1
    assert "BROKEN" in (tmp_path / "audit.md").read_text()


def test_the_page_keeps_its_tables_whole():
    line = Line("|z' - z|", "two\nlines", True, "a claim", "mechanisms", "stands")
    text = page([line], seed=1, short=False, date="today", seconds=600, ledger="none")
    assert "| \\|z' - z\\| | a claim | two lines | stands |" in text
    assert "make audit" in text


def test_without_diffprivlib_the_page_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(broken, "_SCRIPT", tmp_path / "nothing.py")
    (line,) = broken.check_diffprivlib(0, True)
    assert line.passed
    assert "not run" in line.found


def test_a_black_box_in_another_process(monkeypatch):
    """The attack on k-means, with answers as its process gives them: a centre that moves only for the one record."""
    runs = 300
    still = [{"centres": [[0.0], [0.5]], "inertia": 0.0, "labels": 600}] * runs
    moved = [{"centres": [[0.0], [0.5 + i / 600]], "inertia": 0.1, "labels": 601} for i in range(runs)]
    monkeypatch.setattr(broken, "_fits", lambda pair, runs: ([still, moved], {"diffprivlib": "0.0"}))
    lines = list(broken.check_diffprivlib(0, True))
    assert [line.verdict for line in lines] == ["false"] * 2


def test_checks_run_in_processes_of_their_own(tmp_path):
    """As ``make audit`` starts it: what other processes run must not stand in the program's main module."""
    command = [sys.executable, "-m", "fogline_research.audit_campaign", "--short", "--processes", "2", "--only"]
    page = tmp_path / "page.md"
    done = subprocess.run([*command, "event_kinds", "--output", page], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all passed" in done.stdout
    assert "--short --only event_kinds" in page.read_text()
