"""``fogline fit``: options, document, exit codes, bad input, silence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_diabetes

from fogline import PrivateDensity
from fogline.cli import common, release
from fogline.cli.app import app
from fogline.sources.files import CountedFile, FileTable

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
LAW = ["--column", "bmi", "--family", "lognormal", "--parameter-bounds", "mu=2.5:4,sigma=0.05:0.5"]
NORMAL = ["--column", "bmi", "--family", "normal", "--parameter-bounds", "mu=10:50,sigma=1:15"]
FIT = [*LAW, *BUDGET]
DESCENT = [*NORMAL, "--hdp", "0.6", "--rows", "442", "--method"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Body mass index and blood pressure of 442 people: the former is close to lognormal, (3.26, 0.165)."""
    path = tmp_path_factory.mktemp("tables") / "diabetes.csv"
    X = load_diabetes(scaled=False).data[:, [2, 3]]
    np.savetxt(path, X, delimiter=",", header="bmi,pressure", comments="")
    return path


def test_people_get_a_table_and_the_guarantee(table):
    result = run("fit", table, *FIT)
    assert result.exit_code == 0, result.output
    for word in ("bmi: a lognormal fit", "sigma", "95% interval", "explains", "Records within", "Certified"):
        assert word in result.stdout
    assert "budget was given" not in result.stdout
    assert result.stderr == ""


def test_the_document_page_and_density(table, tmp_path):
    words = ["--report", tmp_path / "r.html", "--save", tmp_path / "d.npz", "--confidence", "0.9", "--json"]
    result = run("fit", table, *FIT, *words)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert content["format"] == "fogline-fit-1"
    assert (content["family"], content["method"], content["columns"]) == ("lognormal", "sketch", ["bmi"])
    assert content["confidence"] == 0.9
    for parameter, truth in zip(content["parameters"], (3.26, 0.165), strict=True):
        assert abs(parameter["estimate"] - truth) < 5 * parameter["standard_error"]
        assert parameter["interval"][0] < parameter["estimate"] < parameter["interval"][1]
        parts = parameter["privacy_error"], parameter["sampling_error"]
        assert np.hypot(*parts) == pytest.approx(parameter["standard_error"])
    assert 0.5 < content["explained"]["share"] <= 1
    assert PrivateDensity.load(tmp_path / "d.npz").count == content["count"]["value"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "--family lognormal" in page
    assert "90% interval" in page


CURRENCIES = {
    "hdp": (["--hdp", "0.2"], ["0.2-HDP", "chance of at most 0.718", "epsilon = 4.287 at delta = 1e-05"]),
    "pdp": (["--pdp", "1:0.4", "--delta", "1e-6"], ["(1, 0.4)-PDP", "at delta = 1e-06"]),
    "rho": (["--rho", "0.1"], ["0.1-zCDP", "epsilon = "]),
}


@pytest.mark.parametrize("currency", CURRENCIES)
def test_other_currencies_are_told_in_epsilon_and_delta(currency, table):
    words, told = CURRENCIES[currency]
    text = " ".join(run("fit", table, *LAW, *words).stdout.split())
    for part in told:
        assert part in text


@pytest.mark.parametrize("method", ["gradient", "newton"])
def test_a_descent_with_a_declared_number_of_rows(method, table, tmp_path):
    words = [*DESCENT, method, "--iterations", "3", "--report", tmp_path / "r.html", "--json"]
    content = json.loads(run("fit", table, *words).stdout)
    assert len(content["path"]) == 4
    assert content["count"] is None
    assert content["explained"] is None
    assert content["guarantee"]["neighbours"] == "replace"
    assert content["guarantee"]["unit"] == "line of the file"
    assert "noisy steps of a descent" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert run("fit", table, *DESCENT, method).exit_code == 0


def test_options_reach_the_release(table):
    words = ["--bounds", "10:60", "--neighbours", "replace", "--max-contributions", "2", "--bandwidth", "0.05"]
    content = json.loads(run("fit", table, *FIT, *words, "--steps", "0.1", "--json").stdout)
    assert content["bounds"] == [[10, 60]]
    assert content["bandwidth"] == [2.5]
    assert (content["guarantee"]["neighbours"], content["guarantee"]["max_contributions"]) == ("replace", 2)


def test_two_columns(table):
    bounds = "mu_1=15:40,mu_2=60:130,sigma_1=2:8,sigma_2=8:25,corr_12=-0.9:0.9"
    words = ["--column", "bmi", "--column", "pressure", "--family", "bivariate normal", "--parameter-bounds", bounds]
    content = json.loads(run("fit", table, *words, *BUDGET, "--json").stdout)
    assert content["columns"] == ["bmi", "pressure"]
    assert [parameter["name"] for parameter in content["parameters"]][-1] == "corr_12"


@pytest.mark.parametrize("words", [FIT, [*DESCENT, "gradient"]], ids=["sketch", "gradient"])
def test_a_ledger_pays_once_and_answers_again_for_free(words, table, tmp_path):
    ledger, mark = tmp_path / "b.fogline", ["--high-water", tmp_path / "marks"]
    cap = ["--epsilon", 20, "--delta", 1e-5, "--neighbours", "replace" if words is not FIT else "add-remove"]
    assert run("ledger", "create", ledger, "--dataset", "t", *cap, *mark).exit_code == 0
    words = ["fit", table, *words, "--ledger", ledger, *mark, "--json"]
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    assert (first.pop("cached"), second.pop("cached")) == (False, True)
    assert first == second
    other = json.loads(run(*["pressure" if word == "bmi" else word for word in words]).stdout)
    assert not other["cached"]  # another column is another question


BAD = {
    "no budget": ([*LAW], "--hdp"),
    "two currencies": ([*FIT, "--hdp", "0.2"], "one currency"),
    "three currencies": ([*LAW, "--rho", "1", "--pdp", "1:1", "--hdp", "0.2"], "one currency"),
    "no delta": ([*LAW, "--epsilon", "1"], "--delta"),
    "epsilon 0": ([*LAW, "--epsilon", "0", "--delta", "1e-5"], "--epsilon"),
    "hdp 2": ([*LAW, "--hdp", "2"], "hdp"),
    "pdp a word": ([*LAW, "--pdp", "much"], "--pdp"),
    "no family": ([*BUDGET, "--column", "bmi", "--parameter-bounds", "mu=0:1"], "--family"),
    "unknown family": ([*FIT, "--family", "cauchyish"], "normal, lognormal, gamma, weibull"),
    "no parameter bounds": (["--column", "bmi", "--family", "normal", *BUDGET], "--parameter-bounds"),
    "bounds of one parameter": ([*FIT, "--parameter-bounds", "mu=0:1"], "sigma"),
    "bounds without a name": ([*FIT, "--parameter-bounds", "0:1,1:2"], "--parameter-bounds"),
    "bounds of one twice": ([*FIT, "--parameter-bounds", "mu=0:1,mu=0:1"], "twice"),
    "bounds of no parameter": ([*FIT, "--parameter-bounds", "mu=0:1,tau=0:1"], "--parameter-bounds"),
    "reversed parameter bounds": ([*FIT, "--parameter-bounds", "mu=4:2,sigma=0.1:1"], "--parameter-bounds"),
    "negative sigma": ([*FIT, "--parameter-bounds", "mu=2:4,sigma=-1:1"], "--parameter-bounds"),
    "parameters of all scales": ([*FIT, "--parameter-bounds", "mu=-1:3,sigma=0.1:9"], "--parameter-bounds"),
    "unknown column": ([*FIT, "--column", "z"], "--column"),
    "column not there": (["--column", "z", *FIT[2:]], "fogline check"),
    "too many columns": ([*FIT, "--column", "pressure"], "--column"),
    "bounds outside the support": ([*FIT, "--bounds", "-5:-1"], "--bounds"),
    "two bounds": ([*FIT, "--bounds", "0:1,0:1"], "--bounds"),
    "unknown method": ([*FIT, "--method", "simplex"], "--method"),
    "rows of a sketch": ([*FIT, "--rows", "9"], "--rows"),
    "iterations of a sketch": ([*FIT, "--iterations", "9"], "--iterations"),
    "a descent without rows": ([*FIT, "--method", "gradient"], "--rows"),
    "a descent of no rows": ([*DESCENT, "gradient", "--rows", "0"], "--rows"),
    "a descent hides no one": ([*DESCENT, "newton", "--neighbours", "add-remove"], "--neighbours"),
    "a descent has no density": ([*DESCENT, "newton", "--save", "d.npz"], "--save"),
    "confidence 1": ([*FIT, "--confidence", "1"], "--confidence"),
    "bandwidth a word": ([*FIT, "--bandwidth", "narrow"], "--bandwidth"),
    "page nowhere": ([*FIT, "--report", "/nowhere/at/all.html"], "--report"),
    "analyst without ledger": ([*FIT, "--analyst", "ada"], "--analyst"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_parameter_and_spends_nothing(case, table, monkeypatch):
    monkeypatch.setattr(release, "fit", lambda *_: pytest.fail("the records were touched"))
    words, name = BAD[case]
    result = run("fit", table, *words)
    assert result.exit_code == 2, result.output
    assert name in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("reader", "words"), [("state", FIT), ("each_batch", [*DESCENT, "gradient"])])
def test_records_that_cannot_be_read_end_with_3_and_a_constant_message(reader, words, table, monkeypatch):
    def secret(*_):
        raise ValueError("secret 1234")

    monkeypatch.setattr(FileTable, reader, secret)
    result = run("fit", table, *words)
    assert result.exit_code == 3
    assert "secret" not in result.output


@pytest.mark.parametrize("library", ["duckdb", "rich", "jinja2"])
def test_a_missing_library_is_named_before_anything_is_spent(library, table, monkeypatch, tmp_path):
    monkeypatch.setattr(common, "find_spec", lambda name: None if name == library else object())
    monkeypatch.setattr(release, "fit", lambda *_: pytest.fail("the records were touched"))
    result = run("fit", table, *FIT, "--report", tmp_path / "r.html")
    assert result.exit_code == 1
    assert library in result.stderr


def test_no_rows_are_no_error(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("bmi\n", encoding="utf-8")
    for words in (FIT, [*DESCENT, "gradient"]):
        result = run("fit", path, *words)
        assert result.exit_code == 0, result.output
        assert "Certified" in result.stdout


def test_a_counted_file_hands_over_as_many_rows_as_declared(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("x\n" + "\n".join(map(str, range(30_000))), encoding="utf-8")
    for rows, seen in ((5, 5), (20_000, 20_000), (90_000, 30_000)):
        batches = []
        CountedFile(path, ["x"], rows=rows).each_batch(batches.append)
        assert sum(len(batch) for batch in batches) == seen
    with pytest.raises(ValueError, match="rows"):
        CountedFile(path, ["x"], rows=0)
