"""The command line: options, documents, exit codes, bad input, silence about the records."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import PrivateDensity
from fogline.cli import common, release
from fogline.cli.app import app

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 1, (1500, 2)), rng.normal(3, 1, (1500, 2))])
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    return path


def as_parquet(path, columns):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), path)
    return path


# -- what it prints ---------------------------------------------------------------------------------------


def test_people_get_a_table_and_the_guarantee(table):
    result = run("modes", table, "--columns", "a,b", "--bounds", "-10:10,-10:10", *BUDGET)
    assert result.exit_code == 0, result.output
    for word in ("mode", "±", "p-value", "Certified", "Records within the bounds"):
        assert word in result.stdout
    assert result.stderr == ""


def test_json_is_one_document_and_nothing_else(table):
    result = run("modes", table, "--bounds=-10:10", *BUDGET, "--level", "1e-4", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert set(document) == {
        "format", "command", "columns", "bounds", "modes", "message", "count", "guarantee", "fogline", "bandwidths",
        "versions",
    }  # fmt: skip
    assert document["columns"] == ["a", "b"]
    assert document["bounds"] == [[-10, 10], [-10, 10]]
    assert document["command"].startswith("app modes ") or document["command"].startswith("fogline modes ")
    assert document["command"].endswith("--bounds=-10:10 --epsilon 1 --delta 1e-5 --level 1e-4 --json")
    assert len(document["modes"]) == 2
    for mode in document["modes"]:
        assert set(mode) == {
            "position", "standard_errors", "privacy_errors", "sampling_errors", "covariance", "height", "p_value",
            "bandwidth", "prominence", "fogline", "share", "share_error",
        }  # fmt: skip
        assert len(mode["position"]) == len(mode["standard_errors"]) == 2
        assert 0 <= mode["p_value"] <= 1e-4
        assert mode["share"] == pytest.approx(0.5, abs=0.1)
    assert document["count"]["value"] == pytest.approx(3000, abs=150)
    assert document["guarantee"]["certified"] is True
    assert document["guarantee"]["epsilon"] == 1
    assert {"fogline", "numpy", "opendp", "python"} <= set(document["versions"])


def test_every_option_reaches_the_release(table, tmp_path):
    words = ["--columns", "b,a", "--bounds", "-8:8,-9:9", "--epsilon", "2", "--delta", "1e-6", "--n-modes", "3"]
    words += ["--level", "0.01", "--steps", "none,0.01", "--neighbours", "replace", "--max-contributions", "2"]
    words += ["--bandwidth", "1.2,1.35", "--report", tmp_path / "r.html", "--save", tmp_path / "d.npz", "--json"]
    result = run("modes", table, *words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["columns"] == ["b", "a"]
    assert document["bounds"] == [[-8, 8], [-9, 9]]
    assert document["fogline"]["level"] == 0.01
    assert document["bandwidths"]["steps"] == [0, 0.01]
    assert document["bandwidths"]["planned"] == [[1.2, 1.35]]
    guarantee = document["guarantee"]
    assert (guarantee["epsilon"], guarantee["delta"]) == (2, 1e-6)
    assert (guarantee["neighbours"], guarantee["max_contributions"]) == ("replace", 2)
    density = PrivateDensity.load(tmp_path / "d.npz")
    assert density.count == document["count"]["value"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "--max-contributions 2" in page


def test_no_mode_is_not_an_error(tmp_path):
    path = tmp_path / "flat.csv"
    np.savetxt(path, np.random.default_rng(0).uniform(0, 1, (200, 1)), header="x", comments="")
    result = run("modes", path, "--bounds", "0:1", "--epsilon", "0.1", "--delta", "1e-6", "--level", "1e-4")
    assert result.exit_code == 0
    assert "above the fog" in result.stdout


def test_parquet_gives_what_csv_gives(tmp_path):
    x = np.random.default_rng(0).normal(5, 1, 4000)
    path = as_parquet(tmp_path / "x.parquet", {"x": x})
    result = run("modes", path, "--bounds", "0:10", *BUDGET, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["modes"][0]["position"][0] == pytest.approx(5, abs=0.5)


def test_a_column_name_with_a_comma(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a, b",c\n1,2\n', encoding="utf-8")
    result = run("modes", path, "--columns", '"a, b"', "--bounds", "0:10", *BUDGET, "--json")
    assert json.loads(result.stdout)["columns"] == ["a, b"]


# -- bad input: an error that names the parameter, exit code 2 --------------------------------------------


BAD = {
    "no bounds": ([*BUDGET], "--bounds"),
    "no epsilon": (["--bounds", "0:1", "--delta", "1e-5"], "--epsilon"),
    "no delta": (["--bounds", "0:1", "--epsilon", "1", "--features", "grid"], "--delta"),
    "reversed bounds": (["--bounds", "1:0", *BUDGET], "--bounds"),
    "half a bound": (["--bounds", "1", *BUDGET], "--bounds"),
    "bounds of words": (["--bounds", "low:high", *BUDGET], "--bounds"),
    "infinite bounds": (["--bounds", "0:inf", *BUDGET], "--bounds"),
    "nan bounds": (["--bounds", "nan:1", *BUDGET], "--bounds"),
    "too many bounds": (["--bounds", "0:1,0:1,0:1", *BUDGET], "--bounds"),
    "epsilon 0": (["--bounds", "0:1", "--epsilon", "0", "--delta", "1e-5"], "--epsilon"),
    "epsilon below 0": (["--bounds", "0:1", "--epsilon", "-1", "--delta", "1e-5"], "--epsilon"),
    "epsilon infinite": (["--bounds", "0:1", "--epsilon", "inf", "--delta", "1e-5"], "--epsilon"),
    "epsilon nan": (["--bounds", "0:1", "--epsilon", "nan", "--delta", "1e-5"], "--epsilon"),
    "epsilon a word": (["--bounds", "0:1", "--epsilon", "much", "--delta", "1e-5"], "--epsilon"),
    "delta 0": (["--bounds", "0:1", "--epsilon", "1", "--delta", "0"], "--delta"),
    "delta 1": (["--bounds", "0:1", "--epsilon", "1", "--delta", "1"], "--delta"),
    "unknown column": (["--bounds", "0:1", "--columns", "a,nope", *BUDGET], "--columns"),
    "column twice": (["--bounds", "0:1", "--columns", "a,a", *BUDGET], "--columns"),
    "empty column": (["--bounds", "0:1", "--columns", "a,,b", *BUDGET], "--columns"),
    "level 0": (["--bounds", "0:1", "--level", "0", *BUDGET], "--level"),
    "no modes wanted": (["--bounds", "0:1", "--n-modes", "0", *BUDGET], "--n-modes"),
    "no contributions": (["--bounds", "0:1", "--max-contributions", "0", *BUDGET], "--max-contributions"),
    "steps of words": (["--bounds", "0:1", "--steps", "wide", *BUDGET], "--steps"),
    "too many steps": (["--bounds", "0:1", "--steps", "1,1,1", *BUDGET], "--steps"),
    "negative steps": (["--bounds", "0:1", "--steps", "-0.1", *BUDGET], "--steps"),
    "bandwidth a word": (["--bounds", "0:1", "--bandwidth", "narrow", *BUDGET], "--bandwidth"),
    "bandwidth 0": (["--bounds", "0:1", "--bandwidth", "0", *BUDGET], "--bandwidth"),
    "bandwidth finer than steps": (["--bounds", "0:9", "--steps", "1", "--bandwidth", "0.03", *BUDGET], "--bandwidth"),
    "unknown neighbours": (["--bounds", "0:1", "--neighbours", "both", *BUDGET], "--neighbours"),
    "report nowhere": (["--bounds", "0:1", "--report", "/nowhere/at/all.html", *BUDGET], "--report"),
    "save nowhere": (["--bounds", "0:1", "--save", "/nowhere/at/all.npz", *BUDGET], "--save"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_parameter_and_spends_nothing(case, table, monkeypatch):
    monkeypatch.setattr(release, "fit", lambda *_: pytest.fail("the records were touched"))
    words, name = BAD[case]
    result = run("modes", table, *words)
    assert result.exit_code == 2, result.output
    assert name in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_four_columns_are_released_by_random_features(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "wide.csv"
    np.savetxt(path, rng.normal(0, 0.5, (3000, 4)), delimiter=",", header="a,b,c,d", comments="")
    result = run("modes", path, "--bounds=-4:4", "--epsilon", "2", "--delta", "1e-5", "--report", tmp_path / "w.html")
    assert result.exit_code == 0, result.output
    assert "p-value" in result.stdout
    assert "share of mass" not in result.stdout
    assert "Modes of 4 columns" in (tmp_path / "w.html").read_text(encoding="utf-8")


def test_a_text_column_in_parquet(tmp_path):
    path = as_parquet(tmp_path / "t.parquet", {"name": ["x", "y"], "n": [1, 2]})
    result = run("modes", path, "--columns", "name", "--bounds", "0:1", *BUDGET)
    assert result.exit_code == 2
    assert "--columns" in result.stderr
    assert "'name'" in result.stderr


@pytest.mark.parametrize("name", ["absent.csv", "folder", "photo.jpeg", "broken.parquet", "empty.csv", "latin.csv"])
def test_a_file_that_cannot_be_a_table(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif name != "absent.csv":
        path.write_bytes({"empty.csv": b"", "latin.csv": b"caf\xe9\n1\n"}.get(name, b"nothing of the kind"))
    result = run("modes", path, "--bounds", "0:1", *BUDGET)
    assert result.exit_code == 2, result.output
    assert "FILE" in result.stderr
    assert "Traceback" not in result.output


def test_records_that_cannot_be_read_end_with_3_and_a_constant_message(table, monkeypatch):
    from fogline.sources.files import FileTable, ReadFailed

    said = set()
    for error in (ReadFailed("secret 1"), ReadFailed("secret 2")):
        monkeypatch.setattr(FileTable, "state", lambda *_, error=error: (_ for _ in ()).throw(error))
        result = run("modes", table, "--bounds=-10:10", *BUDGET)
        assert result.exit_code == 3
        assert result.stdout == ""
        said.add(result.stderr)
    assert len(said) == 1
    assert "secret" not in said.pop()
    monkeypatch.setattr(FileTable, "state", lambda *_: 1 / 0)
    result = run("modes", table, "--bounds=-10:10", *BUDGET)
    assert result.exit_code == 3
    assert "ZeroDivision" not in result.output


def test_a_damaged_parquet_page_ends_with_3(tmp_path):
    path = as_parquet(tmp_path / "x.parquet", {"x": np.arange(5000.0)})
    content = bytearray(path.read_bytes())
    content[4:4000] = b"\x00" * 3996
    path.write_bytes(content)
    result = run("modes", path, "--bounds", "0:5000", *BUDGET)
    assert result.exit_code == 3, result.output
    assert result.stdout == ""


# -- conditions of the data: the same path as always ------------------------------------------------------

CONDITIONS = {
    "no rows": "a,b\n",
    "no line end": "a,b",
    "one row": "a,b\n1,2\n",
    "all missing": "a,b\n" + ",\n" * 50,
    "nan": "a,b\n" + "nan,1\n" * 50,
    "infinities": "a,b\n" + "inf,-inf\n" * 50,
    "unparsable cells": "a,b\n" + "one,two\n" * 50,
    "broken lines": "a,b\n1\n1,2,3,4\n\n\"1,2\n3,4\n" * 20,
    "all outside": "a,b\n" + "99,99\n" * 50,
    "huge numbers": "a,b\n" + "1e400,123456789012345678901234567890\n" * 50,
}  # fmt: skip


@pytest.mark.parametrize("case", CONDITIONS)
def test_no_condition_of_the_data_is_an_error_or_a_warning(case, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(CONDITIONS[case], encoding="utf-8")
    result = run("modes", path, "--bounds=-5:5", *BUDGET, "--report", tmp_path / "page.html", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["count"]["value"] >= 1
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_no_record_is_quoted(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("amount\n" + "123.456789\n" * 300 + "secret-cell\n", encoding="utf-8")
    page = tmp_path / "page.html"
    for words in (["--json"], ["--n-modes", "1"]):
        result = run("modes", path, "--bounds", "0:200", *BUDGET, "--report", page, *words)
        assert result.exit_code == 0, result.output
        for text in (result.output, page.read_text(encoding="utf-8")):
            assert "123.456" not in text
            assert "secret-cell" not in text


# -- demo and reproduce -----------------------------------------------------------------------------------


def test_demo_makes_one_release_and_reads_it_again_for_nothing(tmp_path):
    out = tmp_path / "new folder"
    result = run("demo", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"Open {out / 'index.html'}" in result.stdout
    assert "Certified: adding or removing one person" in result.stdout
    index = (out / "index.html").read_text(encoding="utf-8")
    pages = re.findall(r'href="([a-z]+\.html)"', index)
    assert {"density.html", "clusters.html", "branches.html", "mixture.html", "profile.html"} <= set(pages)
    for page in pages:
        assert str(out / page) in result.stdout
        assert "Certified" in (out / page).read_text(encoding="utf-8")
    assert "ε = 0</b><span>left" in index
    again = run("demo", "--out", out)  # the ledger has no budget left, and needs none
    assert again.exit_code == 0, again.output
    count = re.compile(r"count: .*")
    assert count.search(result.stdout).group() == count.search(again.stdout).group()


@pytest.fixture
def one_cell(monkeypatch):
    from fogline_research.experiments import modes as reproduce

    cells = reproduce.paper_cells()[4:5]
    monkeypatch.setattr(reproduce, "paper_cells", lambda which="all": cells)


@pytest.mark.usefixtures("one_cell")
def test_reproduce_prints_ratios_and_a_summary(tmp_path):
    result = run("reproduce", "modes", "--runs", "2", "--seed", "1", "--csv", tmp_path / "rows.csv")
    assert result.exit_code == 0, result.output
    assert "geometric mean" in result.stdout
    assert "of 1 cells" in result.stdout
    assert result.stderr == ""
    lines = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("mixture,n,epsilon,method,runs,mse")
    assert len(lines) == 2


@pytest.mark.usefixtures("one_cell")
def test_reproduce_warns_of_uncertified_methods_in_one_line():
    result = run("reproduce", "modes", "--runs", "1", "--published", "--contenders", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("warning: ")
    assert result.stderr.count("\n") == 1
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    methods = [row["method"] for row in document["rows"]]
    assert methods == ["certified", "published", "ascent", "mean_shift", "noisy_histogram"]
    assert document["summary"]["certified"]["cells"] == 1


def test_reproduce_names_a_bad_number_of_runs():
    result = run("reproduce", "modes", "--runs", "0")
    assert result.exit_code == 2
    assert "--runs" in result.stderr


# -- the machine ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["duckdb", "rich", "jinja2"])
def test_a_missing_library_is_named_before_anything_is_spent(library, table, monkeypatch, tmp_path):
    monkeypatch.setattr(common, "find_spec", lambda name: None if name == library else object())
    monkeypatch.setattr(release, "fit", lambda *_: pytest.fail("the records were touched"))
    result = run("modes", table, "--bounds=-10:10", *BUDGET, "--report", tmp_path / "r.html")
    assert result.exit_code == 1
    assert library in result.stderr
    assert "pip install 'fogline[cli]'" in result.stderr


def test_without_click_the_command_says_how_to_get_it():
    code = "import sys; sys.modules['click'] = None; from fogline.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "Error: the command line needs click, which is not installed: pip install 'fogline[cli]'"
    )


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs wait4")
@pytest.mark.parametrize("words", [["--help"], ["modes", "--help"], ["reproduce", "modes", "--help"]])
def test_help_answers_at_once(words):
    process = subprocess.Popen([sys.executable, "-m", "fogline.cli", *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert b"Usage" in text
    assert usage.ru_utime + usage.ru_stime < 0.8


@pytest.mark.parametrize("words", [["modes"], ["demo"], ["reproduce", "modes"]])
def test_help_has_examples(words):
    text = run(*words, "--help").stdout
    assert "Example" in text
    assert "fogline " + " ".join(words) in text


def test_version():
    assert run("--version").stdout.startswith("fogline, version 0")


def test_a_full_disk_is_reported_after_the_result(table, tmp_path, monkeypatch):
    def refuse(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PrivateDensity, "save", refuse)
    result = run("modes", table, "--bounds=-10:10", *BUDGET, "--save", Path(tmp_path) / "d.npz")
    assert result.exit_code == 1
    assert "--save" in result.stderr
    assert "Certified" in result.stdout


def test_a_demo_of_an_earlier_version_is_put_aside(tmp_path, monkeypatch):
    from fogline.cli import demo
    from fogline.ledger.question import LedgerRefused

    (tmp_path / "budget.ledger").write_text("old")
    (tmp_path / "marks").mkdir()

    def ask(out):
        if (out / "budget.ledger").exists():
            raise LedgerRefused("edition", "this was answered by another version")
        return "made anew"

    monkeypatch.setattr(demo, "_ask", ask)
    assert demo._asked(tmp_path) == "made anew"
    assert (tmp_path / "earlier-1" / "budget.ledger").read_text() == "old"
    assert (tmp_path / "earlier-1" / "marks").is_dir()
    (tmp_path / "marks").mkdir()
    (tmp_path / "budget.ledger").write_text("older")
    assert demo._asked(tmp_path) == "made anew"
    assert (tmp_path / "earlier-2" / "budget.ledger").read_text() == "older"
    monkeypatch.setattr(demo, "_ask", lambda out: (_ for _ in ()).throw(LedgerRefused("chain", "broken")))
    with pytest.raises(LedgerRefused, match="broken"):
        demo._asked(tmp_path)
