"""``fogline profile``: words to a profile, files, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app
from fogline.density.profile import Profile


@pytest.fixture(name="table", scope="module")
def _table(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("profile") / "visits.csv"
    rows = zip(rng.integers(0, 90, 900), rng.gamma(2, 3, 900).round(2), rng.choice(["f", "m"], 900), strict=True)
    path.write_text("age,stay,sex\n" + "".join(f"{a},{s},{x}\n" for a, s, x in rows))
    return path


def run(*words):
    return CliRunner().invoke(app, ["profile", *map(str, words)])


DECLARED = ("--bounds", "age=age,stay=0:60", "--category", "sex=f|m", "--epsilon", "3")


def test_everything_goes_into_a_folder(table, tmp_path):
    out = tmp_path / "out"
    result = run(table, *DECLARED, "--out", out, "--table", tmp_path / "table.csv")
    assert result.exit_code == 0, result.output
    assert "stay" in result.output
    assert "Certified" in result.output
    names = {path.name for path in out.iterdir()}
    assert names == {"age.fog", "stay.fog", "profile.html", "profile.json", "profile.csv", "profile.npz"}
    assert (tmp_path / "table.csv").read_text().startswith("column,kind")
    assert list(Profile.load(out / "profile.npz")) == ["age", "stay", "sex"]
    assert "--bounds age=age,stay=0:60" in (out / "profile.html").read_text(), "the command is on the page"


def test_pairs_are_asked_for_by_words(table, tmp_path):
    result = run(table, *DECLARED, "--pairs", "age:stay,age:sex", "--pairs-share", "0.3")
    assert result.exit_code == 0, result.output
    assert "Of 2 pairs no dependence is seen." in result.output
    document = json.loads(run(table, *DECLARED, "--pairs", "all", "--json").output)
    assert sorted(pair["columns"] for pair in document["pairs"]) == [["age", "sex"], ["age", "stay"], ["stay", "sex"]]
    assert all(0 <= pair["p_value"] <= 1 for pair in document["pairs"])


def test_categories_are_listed_with_slashes_or_bars(table):
    for words in ("sex=f/m", "sex=f|m"):
        document = json.loads(run(table, "--columns", "sex", "--category", words, "--epsilon", "3", "--json").output)
        assert sorted(share["category"] for share in document["columns"][0]["categories"]) == ["f", "m"]


def test_json_is_one_document_and_a_ledger_pays_once(table, tmp_path):
    ledger = tmp_path / "ledger"
    made = CliRunner().invoke(
        app, ["ledger", "create", str(ledger), "--dataset", "visits", "--epsilon", "3", "--delta", "0"]
    )
    if made.exit_code:
        pytest.skip(made.output)
    documents = [json.loads(run(table, *DECLARED, "--json", "--ledger", ledger).output) for _ in range(2)]
    assert [document["cached"] for document in documents] == [False, True]
    assert documents[0]["columns"] == documents[1]["columns"]


REFUSED = [
    (("--epsilon", "1"), "nothing says what 'age', 'stay', 'sex' hold; give numbers a range (--bounds age=0:110)"),
    ((*DECLARED[:2], "--category", "sex", "--epsilon", "1"), "--delta"),
    ((*DECLARED, "--table", "x.ods"), ".csv or .xlsx"),
    (("--bounds", "age", "--epsilon", "1"), "column=low:high"),
    (("--bounds", "age=1:x", "--epsilon", "1"), "low:high"),
    (("--date", "age=2015", "--epsilon", "1"), "FROM:TO"),
    (("--steps", "age=x", "--epsilon", "1"), "age=1"),
    ((*DECLARED, "--afresh"), "only with --ledger"),
    ((*DECLARED, "--pairs", "age:stay:sex"), "A:B,A:C"),
    ((*DECLARED, "--pairs", "age:stya"), "did you mean 'stay'"),
    ((*DECLARED, "--pairs", "all", "--pairs-share", "2"), "pairs_share must lie between 0 and 1"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[said[:30] for _, said in REFUSED])
def test_what_is_wrong_is_said_by_its_option(table, words, said):
    result = run(table, *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
