"""fogline release, card, quantiles, ask, and commands that open a release: what they print, what they refuse."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import DensitySketch, PrivateDensity, release
from fogline.cli.app import app
from fogline.testing import seeded_noise

RELEASE = ["--columns", "age,stay", "--bounds", "age,0:60", "--epsilon", "1"]


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + result.stderr
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("visits")
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 3000)
    stay = rng.gamma(2.0, 1 + age / 30)
    cost = rng.lognormal(6, 1, 3000)
    rows = [f"{k % 1000},{age[k]},{stay[k]:.2f},{cost[k]:.2f}" for k in range(3000)]
    (place / "v.csv").write_text("\n".join(["person,age,stay,cost", *rows, "1,oops,3,4", ""]))
    run("release", place / "v.csv", *RELEASE, "--out", place / "v.fog")
    return place


# -- release -------------------------------------------------------------------------------------------------


def test_a_release_is_made_once_and_says_what_it_is(folder, tmp_path):
    told = run("release", folder / "v.csv", *RELEASE, "--out", tmp_path / "v.fog")
    assert "age, stay: about " in told
    assert "Certified: " in told
    assert f"release: {tmp_path / 'v.fog'}" in told
    density = PrivateDensity.load(tmp_path / "v.fog")
    assert (density.columns, density.units, density.spec.steps) == (("age", "stay"), ("years", ""), (1.0, 0.0))
    assert density.guarantee.delta == 0.0
    assert abs(density.count - 3000) < 6 * density.count_sd


def test_options_reach_the_release(folder, tmp_path):
    words = ["--bounds", "stay=0:60,age=0:100", "--steps", "age=2,stay=none", "--epsilon", "0.5", "--delta", "1e-6"]
    more = ["--unit", "person", "--max-contributions", "3", "--neighbours", "replace", "--expect-records", "90000"]
    out = tmp_path / "v.fog"
    document = json.loads(run("release", folder / "v.csv", *words, *more, "--out", out, "--json"))
    guarantee = document["release"]["guarantee"]
    assert (guarantee["unit"], guarantee["max_contributions"], guarantee["enforced"]) == ("person", 3, True)
    assert (guarantee["neighbours"], guarantee["epsilon"]) == ("replace", 0.5)
    assert [column["name"] for column in document["release"]["columns"]] == ["stay", "age"]
    assert [column["step"] for column in document["release"]["columns"]] == [None, 2.0]
    assert "90000 records that you expect" in document["message"]
    fourier = tmp_path / "f.fog"
    run("release", folder / "v.csv", *RELEASE, "--delta", "1e-6", "--features", "grid", "--out", fourier)
    assert PrivateDensity.load(fourier).leaves is None


def test_several_densities_go_to_a_folder(folder, tmp_path):
    words = ["--columns", "age,stay;cost", "--bounds", "age=age,stay=0:60,cost=0:9000", "--epsilon", "1"]
    told = run("release", folder / "v.csv", *words, "--shares", "age+stay=2/3,cost=1/3", "--out", tmp_path / "shapes")
    assert "cost: about" in told
    assert sorted(path.name for path in (tmp_path / "shapes").iterdir()) == ["age+stay.fog", "cost.fog"]
    document = json.loads(run("release", folder / "v.csv", *words, "--out", tmp_path / "shapes", "--json"))
    assert list(document["releases"]) == ["age+stay", "cost"]


def test_a_ledger_pays_once(folder, tmp_path):
    ledger = ["--ledger", tmp_path / "budget", "--high-water", tmp_path / "marks"]
    create = ["--dataset", "visits", "--epsilon", "1.5", "--delta", "0", "--unit", "line of the file"]
    run("ledger", "create", tmp_path / "budget", *create, "--high-water", tmp_path / "marks")
    told = run("release", folder / "v.csv", *RELEASE, *ledger, "--out", tmp_path / "a.fog")
    assert "Paid: pure epsilon = 1" in told
    again = run("release", folder / "v.csv", *RELEASE, *ledger, "--out", tmp_path / "b.fog")
    assert "Free: this question was asked before" in again
    assert PrivateDensity.load(tmp_path / "a.fog") == PrivateDensity.load(tmp_path / "b.fog")
    assert "entry 3" in run("card", tmp_path / "a.fog")
    other = ["--columns", "age", "--bounds", "age", "--epsilon", "1", *ledger]
    assert "budget" in run("release", folder / "v.csv", *other, "--out", tmp_path / "c.fog", code=4)
    assert not (tmp_path / "c.fog").exists()


REST = ["--epsilon", "1", "--out", "x.fog"]
WRONG = {
    "no bounds": (["--columns", "age", *REST], "--bounds: is needed"),
    "no place": (RELEASE, "--out: is needed"),
    "no budget": (["--columns", "age", "--bounds", "age", "--out", "x.fog"], "Missing option '--epsilon'"),
    "kind of place": ([*RELEASE, "--out", "x.csv"], "ends in .fog"),
    "place of several": (["--columns", "age;stay", "--bounds", "age=age,stay=0:60", *REST], "expected a folder"),
    "column": (["--columns", "aeg", "--bounds", "age", *REST], "no column 'aeg'"),
    "bounds of no column": (["--columns", "age", "--bounds", "aeg=age", *REST], "--bounds: .* did you mean 'age'"),
    "four columns": (["--bounds", "0:9", *REST], "such as --columns 'person,age;stay,cost' with a folder"),
    "four named columns": (
        ["--columns", "cost,age,stay,person", "--bounds", "0:9", *REST],
        "--columns: a density has up to 3 columns, got 4; .* --columns 'cost,age;stay,person' .* --features random",
    ),
    "option of sketches": ([*RELEASE, "--n-modes", "2", "--out", "x.fog"], "--n-modes"),
    "named bounds": (["--bounds", "age=age,0:60", *REST], "expected column=low:high"),
    "shares": ([*RELEASE, "--shares", "1/2", "--out", "x.fog"], "expected name=part"),
    "ledger's options": ([*RELEASE, "--dataset", "d", "--out", "x.fog"], "only with --ledger"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_release(name, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, said = WRONG[name]
    result = CliRunner().invoke(app, ["release", str(folder / "v.csv"), *words])
    assert result.exit_code == 2
    assert re.search(said, " ".join(result.stderr.replace("for ", "").replace("Invalid value ", "").split())), (
        result.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_not_released_again_and_sketches_still_are(folder, tmp_path):
    assert "is a release already" in run("release", folder / "v.fog", "--epsilon", "1", code=2)
    sketch = ["--columns", "age", "--bounds", "age", "--site", "n", "--pass", "p", "--out", tmp_path / "n"]
    run("sketch", folder / "v.csv", *sketch)
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    assert "FILE is a sketch" in run("release", tmp_path / "n", *budget, "--bounds", "age", code=2)
    assert "--delta" in run("release", tmp_path / "n", "--epsilon", "1", code=2)
    run("release", tmp_path / "n", *budget, "--save", tmp_path / "d.fog")
    assert PrivateDensity.load(tmp_path / "d.fog").columns == ("age",)


# -- what is read --------------------------------------------------------------------------------------------


def test_card(folder):
    words = run("card", folder / "v.fog")
    for part in ("the shape of age, stay", "0 to 125 years, in steps of 1", "What is promised", "no ledger"):
        assert part in words
    document = json.loads(run("card", folder / "v.fog", "--json"))
    assert document["registry"]["privacy_loss"]["epsilon"] == 1.0


def test_page_of_a_condition(folder, tmp_path):
    page = tmp_path / "old.html"
    run("card", folder / "v.fog", "--report", page, "--given", "age >= 70 and age < 80")
    text = page.read_text(encoding="utf-8")
    assert "The shape of stay, given age from 70 to 79</h1>" in text
    for words, said in (
        ("aeg > 70", "there is no column 'aeg' in 'aeg > 70'; did you mean 'age'?"),
        ("age > 200", "age above 200 lies outside the released bounds 0 to 125"),
        ("age > 70 by stay 0:9:3", "needs 'and' or the end where there is 'by'"),
        (" ", "is empty"),
    ):
        told = run("card", folder / "v.fog", "--report", page, "--given", words, code=2)
        assert said in " ".join(told.split())
    assert "--report writes" in run("card", folder / "v.fog", "--given", "age > 70", code=2)


def test_saved_strata_and_profiles_are_shown_again(folder, tmp_path):
    rows = [f"{'fm'[k % 2]},{k % 50}" for k in range(3000)]
    (tmp_path / "g.csv").write_text("\n".join(["sex,stay", *rows, ""]))
    group = ["--by", "sex", "--categories", "f,m", "--columns", "stay", "--bounds", "0:60", "--delta", "1e-6"]
    saved, first = tmp_path / "s.npz", tmp_path / "s.html"
    run("strata", tmp_path / "g.csv", *group, "--epsilon", "1", "--save", saved, "--report", first)
    assert "stay in 3 groups" in run("card", saved, "--report", tmp_path / "again.html")
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("s.html", "again.html")]
    assert len({re.sub(r"<pre>.*?</pre>", "", page) for page in pages}) == 1
    run(
        "profile",
        folder / "v.csv",
        "--columns",
        "age",
        "--bounds",
        "age=age",
        "--epsilon",
        "1",
        "--out",
        tmp_path / "p",
    )
    assert json.loads(run("card", tmp_path / "p" / "profile.npz", "--json"))["format"] == "fogline-profile-1"
    assert "one density" in run("card", saved, "--report", first, "--given", "stay > 1", code=2)
    (tmp_path / "x.npz").write_bytes(b"PK no zip")
    assert "not a density" in " ".join(run("card", tmp_path / "x.npz", code=2).split())


def test_compare(folder, tmp_path):
    with seeded_noise(2):
        for name, scale in (("2024", 2.0), ("2025", 3.0)):
            stay = np.random.default_rng(1).gamma(2.0, scale, 2000)
            release(stay, columns=["stay"], bounds=(0, 60), epsilon=1.0).save(tmp_path / f"{name}.fog")
    pair = [tmp_path / "2024.fog", tmp_path / "2025.fog"]
    told = run("compare", *pair, "--report", tmp_path / "c.html")
    assert "The shapes differ (p = 0.0010)" in told
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "The difference is 2025 less 2024" in page
    document = json.loads(run("compare", *pair, "--names", "before,after", "--json"))
    assert (document["names"], document["test"]["p_value"]) == (["before", "after"], 0.001)
    assert "two different names" in run("compare", *pair, "--names", "a,a", code=2)
    assert "cannot be compared" in run("compare", pair[0], folder / "v.fog", code=2)


def test_quantiles(folder):
    words = run("quantiles", folder / "v.fog", "--column", "stay", "--q", ".25,.5,.75")
    assert [line.strip().partition(":")[0] for line in words.splitlines()[1:]] == ["0.25", "0.5", "0.75"]
    document = json.loads(
        run("quantiles", folder / "v.fog", "--column", "age", "--q", "0.9", "--json", "--target", "records")
    )
    answer = document["answers"][0]["answers"][0]["estimate"]
    density = PrivateDensity.load(folder / "v.fog")
    assert answer["value"] == density.marginal("age").quantile(0.9, "age", target="records").value
    assert (answer["sampling"], answer["level"], document["target"]) == (0.0, 0.95, "records")
    assert "one of age, stay" in run("quantiles", folder / "v.fog", code=2)
    assert "'cost' was not released" in run("quantiles", folder / "v.fog", "--column", "cost", code=2)
    assert "levels from 0 to 1" in run("quantiles", folder / "v.fog", "--column", "age", "--q", "2", code=2)


def test_ask(folder):
    questions = ["count", "P(stay > 10 | age > 70)", "mean stay by age 20:80:30", "P(stay > 70)"]
    words = run("ask", folder / "v.fog", *questions)
    assert len(words.splitlines()) == 6
    assert "lies outside the released bounds" in words
    assert "privacy" in words
    document = json.loads(run("ask", folder / "v.fog", *questions, "--json"))
    assert [len(answer["answers"]) for answer in document["answers"]] == [1, 1, 2, 1]
    assert document["guarantee"]["certified"]
    assert "did you mean 'stay'" in run("ask", folder / "v.fog", "count", "median sty", code=2)
    assert "Missing argument" in run("ask", folder / "v.fog", code=2)


def test_seeded_noise_is_told(tmp_path):
    with seeded_noise(0):
        release([[3.0]] * 900, columns=["x"], bounds=(0, 9), epsilon=1.0).save(tmp_path / "s.fog")
    assert "Not certified (the noise was seeded" in run("ask", tmp_path / "s.fog", "median x")
    assert "NOT certified" in run("card", tmp_path / "s.fog")


@pytest.mark.parametrize("command", [["card"], ["ask", "count"], ["quantiles"], ["modes"], ["sample", "--draws", "3"]])
def test_files_that_are_no_release(command, folder, tmp_path):
    name, *rest = command
    data = (folder / "v.fog").read_bytes()
    for content, said in (
        (data[:-3], "cut short or altered"),
        (data.replace(b"release 1", b"release 3", 1), "version 3"),
        (b"age,stay\n1,2\n", "not a density"),
    ):
        (tmp_path / "x.fog").write_bytes(content)
        assert said in " ".join(run(name, tmp_path / "x.fog", *rest, code=2).split())
    assert "there is no file" in " ".join(run(name, tmp_path / "none.fog", *rest, code=2).split())


def test_modes_of_a_release_take_no_budget(tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(3, 0.5, 3000), rng.normal(7, 0.5, 3000)])[:, None]
    DensitySketch([(0, 10)]).update(x).release(epsilon=1.0, delta=1e-6).save(tmp_path / "x.npz")
    document = json.loads(run("modes", tmp_path / "x.npz", "--json", "--report", tmp_path / "p.html"))
    assert len(document["modes"]) == 2
    assert "<svg" in (tmp_path / "p.html").read_text()
    for words in (["--epsilon", "1"], ["--bounds", "0:1"], ["--columns", "a"], ["--ledger", "b"], ["--steps", "1"]):
        told = " ".join(run("modes", tmp_path / "x.npz", *words, code=2).split())
        assert f"'{words[0]}': FILE is a release" in told
    assert len(json.loads(run("modes", tmp_path / "x.npz", "--json", "--n-modes", "1"))["modes"]) == 1
    assert "--level" in run("modes", tmp_path / "x.npz", "--level", "7", code=2)
    assert "Missing option '--bounds'" in run("modes", tmp_path / "x.csv", code=2)


def test_samples_of_a_release(folder, tmp_path):
    words = run("sample", folder / "v.fog", "--draws", "4", "--out", tmp_path / "d.csv")
    assert "draws: " in words
    rows = (tmp_path / "d.csv").read_text().splitlines()
    assert (rows[0], len(rows)) == ("age,stay", 5)
    document = json.loads(run("sample", folder / "v.fog", "--draws", "4", "--json"))
    assert document["draws"][0][0] == float(rows[1].split(",")[0])
    assert "FILE is a release" in " ".join(
        run("sample", folder / "v.fog", "--draws", "4", "--bounds", "0:1", code=2).split()
    )
    assert "--draws" in run("sample", folder / "v.fog", code=2)


def test_columns_of_a_regression_must_have_been_released(folder):
    assert "'cost' was not released" in run("regress", folder / "v.fog", "--y", "cost", code=2)
    assert "all its other columns, age" in " ".join(
        run("regress", folder / "v.fog", "--y", "stay", "--x", "stay", code=2).split()
    )
    assert "--family" in run("fit", folder / "v.fog", "--column", "stay", code=2)
