"""``fogline clusters`` and ``fogline regress``: options, documents, exit codes, bad input, silence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import PrivateDensity
from fogline.cli import common, release
from fogline.cli.app import app

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Five columns: three groups along all, and y in two lines over x in the first two."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.5, (800, 5)) for m in (2.0, 5.0, 8.0)])
    X[:, 1] = 0.5 * X[:, 0] + rng.choice([1.0, 5.0], len(X)) + rng.normal(0, 0.2, len(X))
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c,d,e", comments="")
    return path


CLUSTERS = ["--columns", "c,d", "--bounds", "0:10", *BUDGET]
AB = ["--x", "a", "--y", "b"]
REGRESS = ["--x", "a", "--y", "b", "--x-bounds", "0:10", "--y-bounds", "0:12", *BUDGET]
COMMANDS = {"clusters": CLUSTERS, "regress": REGRESS}


@pytest.mark.parametrize("command", COMMANDS)
def test_people_get_a_table_and_the_guarantee(command, table):
    result = run(command, table, *COMMANDS[command])
    assert result.exit_code == 0, result.output
    for word in ("±", "Certified", "Records within the bounds"):
        assert word in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_page_and_density_are_written(command, table, tmp_path):
    words = ["--report", tmp_path / "r.html", "--save", tmp_path / "d.npz", "--json"]
    result = run(command, table, *COMMANDS[command], *words)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert PrivateDensity.load(tmp_path / "d.npz").count == content["count"]["value"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"{command} " in page
    assert "--delta 1e-5" in page


def test_the_document_of_clusters(table):
    result = run("clusters", table, *CLUSTERS, "--n-clusters", 3, "--json")
    content = json.loads(result.stdout)
    assert content["format"] == "fogline-clusters-1"
    assert content["columns"] == ["c", "d"]
    assert content["projection"] is None
    assert np.sort([c["center"][0] for c in content["clusters"]]) == pytest.approx([2, 5, 8], abs=0.5)
    assert [c["size"] for c in content["clusters"]] == pytest.approx([800] * 3, abs=250)


def test_options_of_clusters_reach_the_release(table):
    words = ["--bounds", "0:10,0:12,0:10,0:10,0:10", "--epsilon", "2", "--delta", "1e-6", "--n-clusters", "3"]
    words += ["--projection", "private", "--components", "2", "--neighbours", "replace", "--max-contributions", "2"]
    content = json.loads(run("clusters", table, *words, "--level", "0.01", "--json").stdout)
    assert np.shape(content["projection"]["components"]) == (2, 5)
    assert content["bounds"][1] == [0, 12]
    assert content["level"] == 0.01
    guarantee = content["guarantee"]
    assert (guarantee["epsilon"], guarantee["neighbours"], guarantee["max_contributions"]) == (2, "replace", 2)


def test_the_document_of_a_regression(table):
    content = json.loads(run("regress", table, *REGRESS, "--json").stdout)
    assert content["format"] == "fogline-regression-1"
    assert (content["x"], content["y"]) == (["a"], "b")
    middle = content["rows"][len(content["rows"]) // 2]
    assert sorted(mode["position"] for mode in middle["modes"]) == pytest.approx([3.5, 7.5], abs=0.6)
    assert all(low < high for low, high in middle["prediction_set"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_ledger_pays_once_and_answers_again_for_free(command, table, tmp_path):
    ledger, mark = tmp_path / "b.fogline", ["--high-water", tmp_path / "marks"]
    assert run("ledger", "create", ledger, "--dataset", "t", "--epsilon", 1.5, "--delta", 1e-5, *mark).exit_code == 0
    words = [command, table, *COMMANDS[command], "--ledger", ledger, *mark, "--json"]
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    assert (first.pop("cached"), second.pop("cached")) == (False, True)
    assert first == second
    refused = run(*words, "--epsilon", "1.4")
    assert refused.exit_code == 4
    assert refused.stdout == ""


BAD = {
    "no bounds": ("clusters", [*BUDGET], "--bounds"),
    "no epsilon": ("clusters", ["--bounds", "0:1", "--delta", "1e-5"], "--epsilon"),
    "epsilon 0": ("clusters", ["--bounds", "0:1", "--epsilon", "0", "--delta", "1e-5"], "--epsilon"),
    "delta 1": ("clusters", ["--bounds", "0:1", "--epsilon", "1", "--delta", "1"], "--delta"),
    "too few bounds": ("clusters", ["--bounds", "0:1,0:1", *BUDGET], "--bounds"),
    "reversed bounds": ("clusters", ["--bounds", "1:0", *BUDGET], "--bounds"),
    "unknown column": ("clusters", ["--columns", "a,z", "--bounds", "0:1", *BUDGET], "--columns"),
    "no clusters wanted": ("clusters", ["--bounds", "0:1", "--n-clusters", "0", *BUDGET], "--n-clusters"),
    "too many clusters": ("clusters", ["--bounds", "0:1", "--n-clusters", "9999", *BUDGET], "--n-clusters"),
    "unknown projection": ("clusters", ["--bounds", "0:1", "--projection", "best", *BUDGET], "--projection"),
    "too many components": ("clusters", ["--bounds", "0:1", "--components", "6", *BUDGET], "--components"),
    "no components": ("clusters", ["--bounds", "0:1", "--components", "0", *BUDGET], "--components"),
    "level 0 for clusters": ("clusters", ["--bounds", "0:1", "--level", "0", *BUDGET], "--level"),
    "page nowhere": ("clusters", ["--bounds", "0:1", "--report", "/nowhere/at/all.html", *BUDGET], "--report"),
    "analyst without ledger": ("clusters", ["--bounds", "0:1", "--analyst", "ada", *BUDGET], "--analyst"),
    "no y": ("regress", ["--x", "a", "--x-bounds", "0:1", "--y-bounds", "0:1", *BUDGET], "--y"),
    "no x": ("regress", ["--y", "a", "--x-bounds", "0:1", "--y-bounds", "0:1", *BUDGET], "--x"),
    "no y bounds": ("regress", [*AB, "--x-bounds", "0:1", *BUDGET], "--y-bounds"),
    "broken x bounds": ("regress", [*AB, "--x-bounds", "0", "--y-bounds", "0:1", *BUDGET], "--x-bounds"),
    "broken y bounds": ("regress", [*AB, "--x-bounds", "0:1", "--y-bounds", "x", *BUDGET], "--y-bounds"),
    "reversed y bounds": (
        "regress", [*AB, "--x-bounds", "0:1", "--y-bounds", "1:0", *BUDGET], "--y-bounds",
    ),
    "two y bounds": (
        "regress", [*AB, "--x-bounds", "0:1", "--y-bounds", "0:1,0:1", *BUDGET], "--y-bounds",
    ),
    "three x": ("regress", ["--x", "c", "--x", "d", *REGRESS], "--x-bounds"),
    "more bounds than x": (
        "regress", [*AB, "--x-bounds", "0:1,0:1", "--y-bounds", "0:1", *BUDGET], "--x-bounds",
    ),
    "y is x": ("regress", ["--x", "a", "--y", "a", "--x-bounds", "0:1", "--y-bounds", "0:1", *BUDGET], "--x"),
    "unknown y": ("regress", ["--x", "a", "--y", "z", "--x-bounds", "0:1", "--y-bounds", "0:1", *BUDGET], "z"),
    "bandwidth a word": ("regress", [*REGRESS, "--bandwidth", "narrow"], "--bandwidth"),
    "too many steps": ("regress", [*REGRESS, "--steps", "1,1,1"], "--steps"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_parameter_and_spends_nothing(case, table, monkeypatch):
    monkeypatch.setattr(release, "fit", lambda *_: pytest.fail("the records were touched"))
    command, words, name = BAD[case]
    result = run(command, table, *words)
    assert result.exit_code == 2, result.output
    assert name in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_records_that_cannot_be_read_end_with_3_and_a_constant_message(command, table, monkeypatch):
    from fogline.sources.files import FileTable

    def secret(*_):
        raise ValueError("secret 1234")

    monkeypatch.setattr(FileTable, "state", secret)
    result = run(command, table, *COMMANDS[command])
    assert result.exit_code == 3
    assert "secret" not in result.output


def test_batches_that_cannot_be_read_end_with_3(table, monkeypatch):
    from fogline.sources.files import FileTable

    def secret(*_):
        raise ValueError("secret 1234")

    monkeypatch.setattr(FileTable, "each_batch", secret)
    result = run("clusters", table, "--bounds", "0:10", *BUDGET)
    assert result.exit_code == 3
    assert "secret" not in result.output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("library", ["duckdb", "rich", "jinja2"])
def test_a_missing_library_is_named_before_anything_is_spent(command, library, table, monkeypatch, tmp_path):
    monkeypatch.setattr(common, "find_spec", lambda name: None if name == library else object())
    monkeypatch.setattr(release, "fit", lambda *_: pytest.fail("the records were touched"))
    result = run(command, table, *COMMANDS[command], "--report", tmp_path / "r.html")
    assert result.exit_code == 1
    assert library in result.stderr


def test_no_rows_are_no_error(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("a,b,c,d\n", encoding="utf-8")
    for words in (["clusters", path, "--bounds", "0:1", *BUDGET], ["regress", path, *REGRESS]):
        result = run(*words)
        assert result.exit_code == 0, result.output
        assert "Certified" in result.stdout
