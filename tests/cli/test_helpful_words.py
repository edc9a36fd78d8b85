"""What a stranger stumbled over: warnings that some commands left out, pages that were refused, deltas nobody needs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app
from fogline.testing import seeded_noise


def run(*words):
    with seeded_noise(0):
        return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def nobody(tmp_path_factory):
    """The release of a table without records, and the page that was asked for with it."""
    folder = tmp_path_factory.mktemp("nobody")
    (folder / "e.csv").write_text("x\n")
    where = ["--out", folder / "e.fog", "--report", folder / "e.html"]
    made = run("release", folder / "e.csv", "--columns", "x", "--bounds", "0:10", "--epsilon", 1, *where)
    assert made.exit_code == 0, made.output
    assert f"report: {folder / 'e.html'}" in made.output
    return folder


def test_a_release_writes_the_page_of_its_density(nobody):
    page = (nobody / "e.html").read_text(encoding="utf-8")
    assert "The shape of x" in page


@pytest.mark.parametrize("words", [["ask", "median x", "count"], ["quantiles"]])
def test_answers_about_nobody_say_so_once(nobody, words):
    told = run(words[0], nobody / "e.fog", *words[1:])
    assert told.exit_code == 0, told.output
    flat = " ".join(told.stdout.split())
    assert flat.count("which may be none") == 1
    assert "records, which may be none: is the column numeric" in flat
    document = json.loads(run(words[0], nobody / "e.fog", *words[1:], "--json").stdout)
    assert all("which may be none" in answer["message"] for answer in document["answers"])


def test_no_interval_of_a_count_goes_below_zero(nobody):
    (row,) = json.loads(run("ask", nobody / "e.fog", "count", "--json").stdout)["answers"][0]["answers"]
    assert row["estimate"]["low"] == 0.0


def test_what_is_refused_is_said_with_the_way_to_it(nobody, tmp_path):
    words = ["release", nobody / "e.csv", "--columns", "x", "--bounds", "0:10", "--epsilon", 1, "--out"]
    told = run(*words, tmp_path / "a.fog", "--save", tmp_path / "a.npz")
    assert told.exit_code == 2
    assert "--out keeps the release" in " ".join(told.stderr.split())
    several = ["--columns", "x;y", "--bounds", "x=0:10,y=0:10", "--epsilon", 1, "--out", tmp_path / "folder"]
    told = run("release", nobody / "e.csv", *several, "--report", tmp_path / "a.html")
    assert told.exit_code == 2
    assert "fogline card RELEASE --report PAGE" in " ".join(told.stderr.split())
    (help_text,) = [" ".join(run("release", "--help").stdout.split())]
    assert "as fogline card --report does" in help_text
    assert "A table's release goes to --out." in help_text


def test_modes_are_planned_without_a_delta():
    """The release that `fogline modes` makes by default."""
    words = ["plan", "--bounds", "0:100", "--n", 3000, "--epsilons", "0.01,1", "--runs", 1]
    told = run(*words, "--shape", "gaussian:30,8;70,8", "--json")
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert document["delta"] == 0.0
    assert [row["detected"] for row in document["rows"]] == [0.0, 0.0, 1.0, 1.0]
    assert all(0 < row["standard_errors"][0] < 8 for row in document["rows"][2:])
    shares = [row["smallest_share"] for row in document["rows"]]
    assert 0 < shares[3] < shares[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bounds", "0:1,0:1,0:1,0:1"], "a pure release counts on leaves, which take up to 3 columns"),
        (["--bounds", "0:1", "--bandwidth", "0.1"], "a pure release counts on leaves, which take no bandwidth"),
        (["--for", "clusters", "--bounds", "0:1"], "Missing option '--delta': clusters cannot be had without one."),
    ],
)
def test_a_delta_that_is_needed_is_asked_for(words, said):
    told = run("plan", *words, "--n", 100, "--epsilons", 1)
    assert told.exit_code == 2
    assert said in " ".join(told.stderr.split())


def test_strata_need_no_delta(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{rng.choice(['f', 'm'])},{x:.2f},1" for x in rng.normal(50, 10, 600)]
    (tmp_path / "t.csv").write_text("\n".join(["sex,x,w", *rows]))
    words = ["strata", tmp_path / "t.csv", "--by", "sex", "--categories", "f,m", "--columns", "x", "--bounds", "0:100"]
    told = run(*words, "--epsilon", 1, "--json")
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert document["guarantee"]["delta"] == 0.0
    assert [part["name"] for part in document["strata"]][:2] == ["f", "m"]
    told = run(*words, "--epsilon", 1, "--weights", "w", "--weight-bound", 2)
    assert told.exit_code == 2
    assert "weights are added up in Fourier sums" in " ".join(told.stderr.split())
