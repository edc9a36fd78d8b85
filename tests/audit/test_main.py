"""The long audit runs, in its short form, and its exit code tells."""

from fogline.audit import __main__ as audit
from fogline.audit.__main__ import Line, main


def test_short_form(monkeypatch, capsys):
    monkeypatch.setattr(audit, "CHECKS", (audit.check_noise,))
    assert main(["--quick", "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert "seed 3" in shown
    assert "all passed" in shown


def test_a_failure_is_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(audit, "CHECKS", (lambda seed, quick: [Line("a claim", "a gap", False)],))
    assert main(["--quick"]) == 1
    assert "FAIL  a claim" in capsys.readouterr().out
