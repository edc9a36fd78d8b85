"""``fogline mixture``: table, document, page, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import PrivateDensity
from fogline.cli.app import app

WORDS = ["--center", "50,40", "--radius", "80", "--components", "2", "--epsilon", "1", "--delta", "1e-6"]


def run(*words):
    return CliRunner().invoke(app, ["mixture", *(str(word) for word in words)])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "visits.csv"
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal((30, 20), (6, 4), (3000, 2)), rng.normal((60, 45), (5, 9), (3000, 2))])
    np.savetxt(path, rows, delimiter=",", header="age,minutes", comments="")
    return path


def test_people_get_a_table_and_the_guarantee(table):
    result = run(table, *WORDS)
    assert result.exit_code == 0, result.output
    for word in ("Components", "age", "minutes", "weight", "Certified"):
        assert word in result.stdout


def test_the_document_page_and_density(table, tmp_path):
    result = run(table, *WORDS, "--json", "--report", tmp_path / "m.html", "--save", tmp_path / "m.npz")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout, parse_constant=pytest.fail)
    ages = sorted(part["mean"][0] for part in told["components"])
    np.testing.assert_allclose(ages, [30, 60], atol=2)
    assert "A mixture for age and minutes" in (tmp_path / "m.html").read_text(encoding="utf-8")
    assert PrivateDensity.load(tmp_path / "m.npz").guarantee.certified


def test_a_method_that_cannot_tell_says_so(table):
    words = ["--method", "recursive", "--sigma-min", "0.1", "--sigma-max", "20", "--components", "6", "--json"]
    result = run(table, *WORDS[:4], *words, "--epsilon", "0.1", "--delta", "1e-6")
    assert result.exit_code == 0, result.output
    assert "could be told apart" in json.loads(result.stdout)["message"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--radius", "-1"], "radius"),
        (["--center", "1,2,3"], "center"),
        (["--components", "0"], "n_components"),
        (["--method", "recursive"], "sigma_min"),
        (["--sigma-min", "3", "--sigma-max", "1"], "sigma_min"),
        (["--columns", "age,shoes"], "shoes"),
        (["--epsilon", "0"], "epsilon"),
        (["--dataset", "x"], "dataset"),
        (["--method", "spherical", "--sigma-min", "1", "--sigma-max", "2", "--save", "x.npz"], "save"),
    ],
)
def test_what_is_wrong_is_named(table, words, named):
    result = run(table, *WORDS, *words)
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert "Traceback" not in result.stderr
