"""fogline check, and reading options on every command that takes FILE."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app

pytestmark = pytest.mark.quick

BUDGET = ["--epsilon", "2", "--delta", "1e-5"]
READING = ["--delimiter", ";", "--decimal", ",", "--thousands", ".", "--encoding", "latin-1", "--null=-999,NA"]

COMMANDS = {
    "modes": ["--columns", "pay", "--bounds", "0:10000", *BUDGET, "--json"],
    "clusters": ["--columns", "pay,rent", "--bounds", "0:10000,0:10000", *BUDGET, "--json"],
    "regress": ["--x", "pay", "--y", "rent", "--x-bounds", "0:10000", "--y-bounds", "0:10000", *BUDGET, "--json"],
    "fit": [
        *("--column", "pay", "--family", "normal", "--parameter-bounds", "mu=0:10000,sigma=100:2000"),
        *(*BUDGET, "--json"),
    ],
    "mixture": [
        *("--columns", "pay,rent", "--center", "5000,5000", "--radius", "9000", "--components", "1"),
        *(*BUDGET, "--json"),
    ],
    "bounds": ["--columns", "pay", *BUDGET, "--json"],
    "strata": ["--columns", "pay", "--bounds", "0:10000", "--by", "sex", "--categories", "f,m", *BUDGET, "--json"],
    "sample": ["--columns", "pay", "--bounds", "0:10000", "--per-draw-epsilon", "0.5", "--draws", "2", "--json"],
}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """A German export without a header."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("exports") / "löhne.csv"
    rows = [("fm"[i % 2], _german(x), _german(x / 3)) for i, x in enumerate(rng.normal(5000, 400, 1500))]
    path.write_bytes("\r\n".join(";".join(row) for row in rows).encode("latin-1"))
    return path


def _german(x):
    return f"{x:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_by_the_options(command, export):
    words = [*READING, "--header", "sex,pay,rent", *COMMANDS[command]]
    result = run(command, export, *words)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert "--thousands ." in told["command"]
    assert "--header sex,pay,rent" in told["command"]
    if command == "modes":
        assert told["count"]["value"] == pytest.approx(1500, abs=150)
        assert told["modes"][0]["position"][0] == pytest.approx(5000, abs=400)


def test_a_site_and_a_plan_do_too(export, tmp_path):
    words = [*READING, "--header", "sex,pay,rent", "--columns", "pay", "--bounds", "0:10000"]
    site = run("sketch", export, *words, "--site", "north", "--pass", "spring", "--out", tmp_path / "n")
    assert site.exit_code == 0, site.output
    more = ["--n", "500", "--delta", "1e-6", "--epsilons", "2", "--runs", "1", "--json", "--shape", export]
    planned = run("plan", *words, *more)
    assert planned.exit_code == 0, planned.output
    assert json.loads(planned.stdout)["modes"][0][0] == pytest.approx(5000, abs=400)


@pytest.mark.parametrize("command", [*COMMANDS, "check"])
def test_a_record_in_place_of_a_header_is_not_shown(command, export):
    result = run(command, export, *COMMANDS.get(command, []))
    assert result.exit_code == 2
    assert "looks like values" in result.stderr
    first = export.read_bytes().decode("latin-1").split("\r\n")[0].split(";")
    assert not any(cell in result.output for cell in first[1:])


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--delimiter", ";;"], "--delimiter"),
        (["--decimal", ";"], "--decimal"),
        (["--thousands", "."], "--thousands"),
        (["--encoding", "utf-16"], "--encoding"),
        (["--null", ","], "--null"),
        (["--header", "a,a"], "--header"),
        (["--columns", "age"], "--columns"),
        (["--unit", "who"], "--unit"),
    ],
)
def test_what_is_wrong_is_named(words, option, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("secretname;b\n1;2\n")
    for command in (["check", path], ["modes", path, "--bounds", "0:1", *BUDGET]):
        result = run(*command, *words)
        assert result.exit_code == 2, result.output
        assert option in result.stderr
        assert "secretname" not in result.output


def test_a_check_shows_what_would_be_used(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who;weight;note\n4711;70,5;x\n")
    result = run("check", path, "--columns", "weight", "--unit", "who", "--decimal", ",", "--thousands", ".")
    assert result.exit_code == 0, result.output
    for word in ("weight", "who", "note", "1234.5", "missing", "line break", "Parquet"):
        assert word in result.stdout
    assert "4711" not in result.stdout
    told = json.loads(run("check", path, "--decimal", ",", "--json").stdout)
    assert told["format"] == "fogline-check-1"
    assert told["delimiter"] == ";"
    assert {"cell": "1234,5", "counts_as": 1234.5} in told["made_up"]


def test_a_check_is_for_files(tmp_path):
    assert run("check", "postgres://ada:hunter2@host/db").exit_code == 2
    assert "hunter2" not in run("check", "postgres://ada:hunter2@host/db").output
    assert "FILE" in run("check", tmp_path / "nowhere.csv").stderr


def test_a_delimiter_can_be_called_tab(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("1\t2\n")
    told = json.loads(run("check", path, "--delimiter", "tab", "--header", "a,b", "--json").stdout)
    assert told["delimiter"] == "\t"


def test_a_header_writes_no_escapes_to_the_terminal(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\x1b[31mred\x07,\xc2\x9bb,fine\n1,2,3\n")
    told = run("check", tmp_path / "t.csv", "--columns", "fine")
    assert told.exit_code == 0
    assert all(line.isprintable() for line in told.stdout.splitlines())
    assert "\\x1b[31mred\\x07, \\x9bb" in told.stdout


def test_a_column_whose_name_cannot_be_printed_is_refused_before_anything_is_paid(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\x1b[31mred,fine\n1,2\n")
    told = run("bounds", tmp_path / "t.csv", *BUDGET)
    assert told.exit_code == 2
    assert "printable" in told.stderr
    assert "\x1b" not in told.output
