"""``fogline sample``: draws as CSV or JSON, the guarantee beside them, mistakes by the name of the option."""

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app
from fogline.ledger import Ledger

OPTIONS = ["--per-draw-epsilon", "0.5", "--draws", "4", "--bounds", "0:100,0:240"]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(40, 8, 300), rng.normal(90, 20, 300)])
    path = tmp_path / "visits.csv"
    path.write_text("age,minutes\n" + "\n".join(f"{a:.2f},{m:.1f}" for a, m in rows) + "\nnone,3\n,\n")
    return path


def run(*words):
    return CliRunner().invoke(app, ["sample", *map(str, words)])


def test_draws_are_csv_and_the_guarantee_stands_beside_them(table):
    done = run(table, *OPTIONS)
    assert done.exit_code == 0, done.output
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0] == ["age", "minutes"]
    assert np.array(rows[1:], dtype=float).shape == (4, 2)
    assert "any number of records more, fewer or other ones" in done.stderr
    assert "exp(2)" in done.stderr


def test_a_file_and_a_document(table, tmp_path):
    out = tmp_path / "draws.csv"
    done = run(
        table,
        *OPTIONS,
        "--columns",
        "minutes,age",
        "--base",
        "uniform",
        "--bounds",
        "0:240,0:100",
        "--out",
        out,
        "--json",
    )
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["columns"] == ["minutes", "age"]
    assert len(content["draws"]) == 4
    assert content["guarantee"]["certified"] is True
    assert content["guarantee"]["per_draw"] == 0.5
    assert out.read_text().splitlines()[0] == "minutes,age"
    assert all(0 <= a <= 240 and 0 <= b <= 100 for a, b in content["draws"])


def test_a_ledger_pays_once(table, tmp_path):
    path, marks = tmp_path / "budget", tmp_path / "marks"
    Ledger.create(path, dataset="visits", epsilon=1.0, delta=1e-6, integral=3.0, high_water=marks).close()
    words = [table, *OPTIONS, "--ledger", path, "--high-water", marks, "--json"]
    first, second = json.loads(run(*words).stdout), json.loads(run(*words).stdout)
    assert first["draws"] == second["draws"]
    assert first["receipt"]["currency"] == "integral"
    with Ledger.open(path, high_water=marks) as opened:
        assert opened.remaining().integral == pytest.approx(1.0)
    refused = run(table, "--per-draw-epsilon", "0.5", "--draws", "5", "--bounds", "0:100,0:240", *words[7:])
    assert refused.exit_code == 4
    assert "budget" in refused.output


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--per-draw-epsilon", "0"], "--per-draw-epsilon"),
        (["--per-draw-epsilon", "inf"], "--per-draw-epsilon"),
        (["--per-draw-epsilon", "50"], "--per-draw-epsilon"),
        (["--draws", "0"], "--draws"),
        (["--bounds", "0:1"], None),
        (["--bounds", "0:1,0:1,0:1"], "--bounds"),
        (["--bounds", "5:1,0:1"], "--bounds"),
        (["--columns", "age,weight"], "--columns"),
        (["--dataset", "visits"], "--dataset"),
        (["--out", "nowhere/draws.csv"], "--out"),
    ],
)
def test_mistakes_name_the_option(table, words, option):
    done = run(table, *OPTIONS, *words)
    if option is None:  # one range serves all columns
        assert done.exit_code == 0
        return
    assert done.exit_code == 2
    assert option in done.output


def test_a_uniform_base_needs_its_box(table):
    done = run(table, "--per-draw-epsilon", "1", "--draws", "1", "--base", "uniform")
    assert done.exit_code == 2
    assert "--bounds" in done.output
    assert run("nowhere.csv", *OPTIONS).exit_code == 2
