"""Where commands write: never over what they read, over the ledger, or over one another. What errors name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app

SPEND = ["--epsilon", "1", "--delta", "1e-6"]
MODES = ["modes", "--columns", "a", "--bounds", "0:100", *SPEND]
SAMPLE = ["sample", "--columns", "a", "--bounds", "0:100", "--per-draw-epsilon", "0.1", "--draws", "2"]
STRATA = ["strata", "--by", "b", "--categories", "f,m", "--columns", "a", "--bounds", "0:100", *SPEND]
SKETCH = ["sketch", "--columns", "a", "--bounds", "0:100", "--site", "north", "--pass", "spring"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def table(tmp_path):
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "table.csv"
    np.savetxt(path, np.random.default_rng(0).normal(50, 9, (300, 2)), delimiter=",", header="a,b", comments="")
    return path


@pytest.fixture
def ledger(tmp_path):
    path, marks = tmp_path / "budget.fogline", ["--high-water", tmp_path / "marks"]
    words = ["--dataset", "visits", "--epsilon", "1", "--delta", "1e-6", "--integral", "0.5"]
    assert run("ledger", "create", path, *words, *marks).exit_code == 0
    return path, marks


@pytest.mark.parametrize(
    ("command", "option"),
    [(MODES, "--report"), (MODES, "--save"), (SAMPLE, "--out"), (SKETCH, "--out"), (STRATA, "--save")],
)
@pytest.mark.parametrize("source", ["file", "folder", "pattern"])
def test_the_records_are_not_overwritten(table, command, option, source):
    before = table.read_bytes()
    read = {"file": table, "folder": table.parent, "pattern": table.parent / "*.csv"}[source]
    result = run(command[0], read, *command[1:], option, table)
    assert result.exit_code == 2
    assert f"Invalid value for {option}" in result.stderr
    assert "would be overwritten" in result.stderr
    assert table.read_bytes() == before


def test_a_link_to_the_records_is_the_records(table, tmp_path):
    (tmp_path / "page.html").symlink_to(table)
    assert run(*MODES[:1], table, *MODES[1:], "--report", tmp_path / "page.html").exit_code == 2
    assert table.read_text(encoding="utf-8").startswith("a,b")


def test_a_database_is_not_overwritten(tmp_path):
    path = tmp_path / "clinic.db"
    path.write_bytes(b"records")
    result = run(*MODES[:1], f"sqlite:///{path}", *MODES[1:], "--query", "visits", "--report", path)
    assert result.exit_code == 2
    assert path.read_bytes() == b"records"


def test_a_ledger_is_not_overwritten_and_nothing_is_spent(table, ledger):
    path, marks = ledger
    result = run(MODES[0], table, *MODES[1:], "--ledger", path, *marks, "--report", path)
    assert result.exit_code == 2
    assert run("ledger", "show", path, *marks, "--picture", path).exit_code == 2
    told = json.loads(run("ledger", "show", path, *marks, "--json").stdout)["datasets"][0]
    assert told["items"] == []


def test_two_outputs_are_two_files(table, tmp_path):
    place = tmp_path / "same"
    result = run(MODES[0], table, *MODES[1:], "--report", place, "--save", place)
    assert result.exit_code == 2
    assert "--save" in result.stderr
    assert not place.exists()


def test_an_old_page_may_be_written_anew(table, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old", encoding="utf-8")
    assert run(MODES[0], table, *MODES[1:], "--report", page).exit_code == 0
    assert "Certified" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [["plan", "--bounds", "0:1", "--n", "9", "--delta", "1e-6"], ["ledger", "show"]])
def test_a_picture_that_cannot_be_drawn_is_refused_first(ledger, tmp_path, words):
    path = [] if words[0] == "plan" else [ledger[0], *ledger[1]]
    result = run(*words, *path, "--picture", tmp_path / "picture.png")
    assert result.exit_code == 2
    assert ".svg" in result.stderr
    assert not (tmp_path / "picture.png").exists()


def test_a_picture_of_strata_has_a_known_ending(table, tmp_path):
    result = run(STRATA[0], table, *STRATA[1:], "--picture", tmp_path / "picture.foo")
    assert result.exit_code == 2
    assert ".svg, .png or .pdf" in result.stderr


def test_draws_are_paid_from_their_own_cap_and_it_is_said(table, ledger):
    path, marks = ledger
    words = [SAMPLE[0], table, *SAMPLE[1:], "--ledger", path, *marks]
    first, again = run(*words), run(*words)
    assert first.exit_code == again.exit_code == 0, first.output
    assert "Paid: 0.2 of the integral cap" in first.stderr
    assert "Free: this question was asked before" in again.stderr
    assert first.stdout == again.stdout
    result = run(*words, "--draws", "9")
    assert result.exit_code == 4
    assert "fogline ledger show" in result.stderr


def test_a_ledger_without_a_cap_for_draws_says_what_helps(table, tmp_path):
    path, marks = tmp_path / "plain.fogline", ["--high-water", tmp_path / "marks"]
    assert run("ledger", "create", path, "--dataset", "visits", *SPEND, *marks).exit_code == 0
    result = run(SAMPLE[0], table, *SAMPLE[1:], "--ledger", path, *marks)
    assert result.exit_code == 4
    assert "--integral" in result.stderr
    assert "--currency zcdp" in result.stderr


def test_a_ledger_that_was_moved_is_adopted(ledger, tmp_path):
    path, elsewhere = ledger[0], ["--high-water", tmp_path / "elsewhere"]
    assert "fogline ledger adopt" in run("ledger", "verify", path, *elsewhere).stderr
    result = run("ledger", "adopt", path, *elsewhere)
    assert result.exit_code == 0, result.output
    assert "3 entries" in result.stdout
    assert run("ledger", "verify", path, *elsewhere).exit_code == 0


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["mixture", "--radius", "-1", *SPEND], "--radius"),
        (["mixture", "--radius", "9", "--center", "a,b", *SPEND], "--center"),
        (["mixture", "--radius", "9", "--components", "0", *SPEND], "--components"),
        (["mixture", "--radius", "9", "--components", "2", "--method", "recursive", *SPEND], "--sigma-min"),
        (["clusters", "--bounds", "0:100", "--components", "5", *SPEND], "--components"),
        (["regress", "--x", "a", "--y", "c", "--x-bounds", "0:1", "--y-bounds", "0:1", *SPEND], "--x, --y"),
    ],
)
def test_an_error_names_the_option(table, words, option):
    result = run(words[0], table, *words[1:])
    assert result.exit_code == 2
    assert f"Invalid value for {option}:" in result.stderr


def test_epsilons_of_a_plan_are_named():
    result = run("plan", "--bounds", "0:1", "--n", "9", "--delta", "1e-6", "--epsilons", "0,1")
    assert result.exit_code == 2
    assert "Invalid value for --epsilons:" in result.stderr


def test_keys_that_are_there_are_not_made_again(tmp_path):
    words = ["sketch", "--new-keys", tmp_path / "keys", "--site", "north", "--sites", "north,south"]
    assert "bring it to south" in run(*words).stdout
    assert "already" in run(*words).stdout


def test_the_list_of_commands_is_not_cut_short():
    listed = run("--help").stdout.partition("Commands:")[2]
    assert "..." not in listed
    assert "fogline demo" in listed


def test_the_count_of_clusters_is_that_of_the_document(tmp_path):
    path = tmp_path / "wide.csv"
    rows = np.random.default_rng(0).normal(50, 5, (400, 4))
    np.savetxt(path, rows, delimiter=",", header="a,b,c,d", comments="")
    books, marks = tmp_path / "books.fogline", ["--high-water", tmp_path / "marks"]
    assert (
        run("ledger", "create", books, "--dataset", "visits", "--epsilon", "9", "--delta", "1e-5", *marks).exit_code
        == 0
    )
    words = ["clusters", path, "--bounds", "0:100", *SPEND, "--ledger", books, *marks]
    people, document = run(*words).stdout, json.loads(run(*words, "--json").stdout)
    assert f"as released: {document['count']['value']:.0f} ± {document['count']['standard_error']:.0f}." in people
