"""Recipes: what they are turned into, what is refused before anything is read, and that running twice spends once."""

from __future__ import annotations

import json
import tomllib

import click
import numpy as np
import pytest
from click.testing import CliRunner

from fogline import PrivateDensity
from fogline.cli import init
from fogline.cli import recipe as recipes
from fogline.cli.app import app

RECIPE = """
[source]
file = "v.csv"

[release.visits]
columns = ["age", "stay"]
bounds = { age = "age", stay = [0, 60] }
steps = { stay = 0.5 }
epsilon = 1.0

[[reading]]
kind = "quantiles"
column = "stay"
q = [0.1, 0.9]
json = "q.json"

[[reading]]
kind = "ask"
questions = ["count", "P(stay > 10 | age > 70)"]

[[reading]]
kind = "sample"
draws = 5
out = "draws.csv"
"""


SHORT = RECIPE.partition("[[reading]]")[0]


def run(*words, code=0, **more):
    result = CliRunner().invoke(app, [str(word) for word in words], **more)
    assert result.exit_code == code, result.output + result.stderr
    return result.output


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{k % 500},{rng.integers(18, 90)},{rng.gamma(2.0, 3.0):.1f}" for k in range(1500)]
    (tmp_path / "v.csv").write_text("\n".join(["person,age,stay", *rows, ""]))
    (tmp_path / "fogline.toml").write_text(RECIPE)
    return tmp_path


def test_a_recipe_does_it_all_and_spends_once(folder):
    told = run("run", folder / "fogline.toml")
    assert "release: " in told
    assert "P(stay > 10 | age > 70): " in told
    density = PrivateDensity.load(folder / "visits.fog")
    assert density.spec.steps == (1.0, 0.5)
    assert len(json.loads((folder / "q.json").read_text())["answers"][0]["answers"]) == 2
    assert len((folder / "draws.csv").read_text().splitlines()) == 6
    assert "is there, and is read as it is" in run("run", folder / "fogline.toml")
    assert PrivateDensity.load(folder / "visits.fog") == density


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epsilon = 1.0", "epsilon = 2.0", "was released with epsilon 1"),
        ('columns = ["age", "stay"]', 'columns = ["stay", "age"]', "holds the columns"),
        ("[0, 60]", "[0, 50]", "other bounds"),
        ('file = "v.csv"', 'file = "v.csv"\nunit = "person"\nmax_contributions = 3', "max_contributions 1"),
        ('file = "v.csv"', 'file = "v.csv"\nunit = "person"', "was released for the unit"),
        ("epsilon = 1.0", 'epsilon = 1.0\nneighbours = "replace"', "was released with neighbours add-remove"),
    ],
)
@pytest.mark.parametrize("noted", [True, False])
def test_a_file_of_another_release_is_not_read_in_its_place(folder, old, new, said, noted):
    assert old in SHORT
    for text in (SHORT, SHORT.replace(old, new)):
        (folder / "fogline.toml").write_text(text)
        if text == SHORT:
            run("run", folder / "fogline.toml")
    if not noted:
        (folder / "visits.fog.made").unlink()
    told = run("run", folder / "fogline.toml", code=1)
    assert "delete it first" in told
    assert noted or said in told


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('file = "v.csv"', 'file = "w.csv"', "another 'file'"),
        ("[release", 'query = "SELECT * FROM v"\n[release', "query"),
        ("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6", "delta"),
        ("steps", "# steps", "steps"),
    ],
)
def test_a_note_beside_a_file_tells_which_question_it_answers(folder, old, new, said):
    """What the file itself does not tell: of which table it is, and how that was read."""
    (folder / "w.csv").write_text((folder / "v.csv").read_text())
    (folder / "fogline.toml").write_text(SHORT)
    run("run", folder / "fogline.toml")
    (folder / "fogline.toml").write_text(SHORT.replace(old, new, 1))
    assert said in run("run", folder / "fogline.toml", code=1)


def test_a_note_that_is_not_of_this_file_is_refused(folder):
    (folder / "fogline.toml").write_text(SHORT)
    run("run", folder / "fogline.toml")
    note = folder / "visits.fog.made"
    kept = note.read_text()
    note.write_text(kept.replace('"sha256": "', '"sha256": "0'))
    assert "is not the file that visits.fog.made tells of" in run("run", folder / "fogline.toml", code=1)
    note.write_text("{}")
    assert "is no note of fogline run" in run("run", folder / "fogline.toml", code=1)
    note.write_text(kept)
    assert "is there, and is read as it is" in run("run", folder / "fogline.toml")


@pytest.mark.parametrize("labels", [["A/B", "C"], ["C,x=1"], ['f"g'], [" f"], [""]])
def test_a_label_that_would_be_read_as_another_question_is_refused(labels, tmp_path):
    content = {
        "source": {"file": "v.csv"},
        "profile": {"all": {"category": {"ward": labels}, "epsilon": 1.0, "delta": 1e-6}},
    }
    with pytest.raises(click.ClickException, match="cannot be a label"):
        recipes.Recipe(content, tmp_path).steps()


def test_with_a_ledger_it_is_asked_again_for_nothing(folder):
    create = ["--dataset", "visits", "--epsilon", "1", "--delta", "0", "--high-water", folder / "marks"]
    run("ledger", "create", folder / "budget", *create)
    ledger = '[ledger]\npath = "budget"\nhigh_water = "marks"\n'
    (folder / "fogline.toml").write_text(SHORT.replace("[release", ledger + "[release", 1))
    assert "Paid: pure epsilon = 1" in run("run", folder / "fogline.toml")
    assert "Free: this question was asked before" in run("run", folder / "fogline.toml")


def test_a_page_shows_the_recipe_that_made_it(folder):
    grid = SHORT.replace("epsilon = 1.0", 'epsilon = 1.0\ndelta = 1e-6\nfeatures = "grid"').replace("steps", "# steps")
    grid = grid.replace('columns = ["age", "stay"]', 'columns = ["stay"]').replace('age = "age", ', "")
    reading = '[[reading]]\nkind = "modes"\nreport = "p.html"\n# postgres://ada:secret@host/v\n'
    (folder / "fogline.toml").write_text(grid + reading)
    run("run", folder / "fogline.toml")
    page = (folder / "p.html").read_text()
    assert "# a step of the recipe fogline.toml:" in page
    assert "[release.visits]" in page
    assert "secret" not in page


def test_the_commands_of_a_recipe():
    content = tomllib.loads("""
        source = { file = "postgres://ada:secret@host/v", query = "SELECT 1", unit = "id", max_contributions = 2 }
        ledger = { path = "b", dataset = "d", afresh = false }
        [release."a,b"]
        columns = ["income, net", "age"]
        bounds = { "income, net" = [-5.5, 10], age = "age" }
        steps = ["none", 1]
        epsilon = 0.5
        out = "x.fog"
        [[reading]]
        kind = "regress"
        x = ["age"]
        y = "income, net"
        report = "p.html"
        [[reading]]
        kind = "ask"
        questions = "count"
    """)
    found = recipes.Recipe(content, recipes.Path("here"))
    release, regress, ask = found.steps()
    assert list(release.words) == [
        *("release", "postgres://ada:secret@host/v", "--columns", '"income, net",age'),
        *("--bounds", '"income, net"=-5.5:10,age=age', "--steps", "none,1", "--epsilon", "0.5"),
        *("--query", "SELECT 1", "--unit", "id", "--max-contributions", "2"),
        *("--ledger", "here/b", "--dataset", "d", "--out", "here/x.fog"),
    ]
    assert "secret" not in str(release)
    assert list(regress.words) == [
        "regress",
        "here/x.fog",
        "--x",
        "age",
        "--y",
        "income, net",
        "--report",
        "here/p.html",
    ]
    assert list(ask.words) == ["ask", "here/x.fog", "count"]
    assert recipes._option("bounds", [[-3, 4], "age"]) == ["--bounds=-3:4,age"]


WRONG = {
    "epslion = 1.0": ("epsilon = 1.0", r"[release.visits] has an unknown key 'epslion'; did you mean 'epsilon'?"),
    "[sorce]": ("[source]", "the recipe has an unknown key 'sorce'; did you mean 'source'?"),
    'flie = "v.csv"': ('file = "v.csv"', "[source] has an unknown key 'flie'; did you mean 'file'?"),
    'kind = "quantile"': ('kind = "quantiles"', "no kind 'quantile'; did you mean 'quantiles'?"),
    'column = "stay"\nlevels = 3': ('column = "stay"', "[[reading]] of kind 'quantiles' has an unknown key 'levels'"),
    'kind = "ask"\nrelease = "visit"': ('kind = "ask"', "no release 'visit'; did you mean 'visits'?"),
    'questions = ["median sty"]': ('questions = ["count", "P(stay > 10 | age > 70)"]', "no column 'sty'"),
    "questions = []": ('questions = ["count", "P(stay > 10 | age > 70)"]', "needs questions"),
    'out = "no/draws.csv"': ('out = "draws.csv"', "there is no folder"),
    'out = "q.json"': ('out = "draws.csv"', "has another part in this command"),
    'columns = [["age"], ["stay"]]': ('columns = ["age", "stay"]', "columns must be a list of names"),
    "": ("epsilon = 1.0", "[release.visits] needs epsilon"),
    "draws = ": ("draws = 5", "is no TOML"),
    "[ledger]\ndataset = 'd'\n[release.visits]": ("[release.visits]", "[ledger] needs path"),
    "reading = 3\n[source]": ("[source]", "Cannot mutate|is no TOML|write [[reading]]"),
}  # fmt: skip


@pytest.mark.parametrize("new", WRONG)
def test_what_is_wrong_is_told_before_anything_is_read(new, folder):
    old, said = WRONG[new]
    (folder / "fogline.toml").write_text(RECIPE.replace(old, new, 1))
    result = CliRunner().invoke(app, ["run", str(folder / "fogline.toml")])
    assert result.exit_code in (1, 2)
    told = " ".join(result.stderr.split())
    assert any(part in told for part in said.split("|")), told
    assert not (folder / "visits.fog").exists()


def test_other_things_that_are_no_recipe(tmp_path):
    assert "fogline init writes one" in run("run", tmp_path / "none.toml", code=2)
    (tmp_path / "a.toml").write_bytes(b"\xff")
    assert "cannot be read" in run("run", tmp_path / "a.toml", code=2)
    for text, said in (
        ("", "[source] needs file"),
        ("[source]\nfile = 'v'", "has no release"),
        ("source = 3", "source: expected a table"),
        ("reading = 3\n[source]\nfile = 'v'", "write [[reading]]"),
        ("[source]\nfile='v'\n[release.a]\nbounds=[[0,1]]\nepsilon=1\n[release.b]\nbounds=[[0,1]]\nepsilon=1\n"
         "[[reading]]\nkind='card'", "needs release: one of a, b"),
    ):  # fmt: skip
        (tmp_path / "a.toml").write_text(text)
        assert said in run("run", tmp_path / "a.toml", code=1)


def test_a_dry_run_prints_the_commands(folder):
    told = run("run", folder / "fogline.toml", "--dry-run")
    assert told.splitlines()[0].startswith("fogline release ")
    assert told.splitlines()[1].endswith("q.json")
    assert not (folder / "visits.fog").exists()


def test_init_writes_a_recipe_that_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["--file", "v.csv", "--columns", "age,stay", "--bounds", "age,0:60", "--epsilon", "0.5", "--unit", "person"]
    run("init", *words, "--max-contributions", "3", "--out", "b.toml")
    assert "median stay: " in run("run", "b.toml")
    density = PrivateDensity.load("v.fog")
    assert (density.guarantee.epsilon, density.guarantee.unit, density.guarantee.max_contributions) == (
        0.5,
        "person",
        3,
    )
    assert density.units == ("years", "")
    assert "is there already" in run("init", *words, "--out", "b.toml", code=2)


def test_init_asks_where_somebody_can_answer(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(init, "_is_person", lambda: True)
    run("init", "--out", "c.toml", input="v.csv\nage,stay\nage\n0:60\n\nnone\nbudget\nnone\nnone\n")
    content = tomllib.loads((folder / "c.toml").read_text())
    assert content["release"]["v"]["bounds"] == {"age": "age", "stay": [0.0, 60.0]}
    assert (content["release"]["v"]["epsilon"], content["ledger"], content["source"]) == (
        1.0,
        {"path": "budget"},
        {"file": "v.csv"},
    )


def test_init_asks_again_where_an_answer_is_wrong(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(init, "_is_person", lambda: True)
    answers = ["none.csv", "v.csv", "aeg", "age", "ages", "age", "much", "0.5", "persn", "person", "0", "3"]
    told = run("init", "--out", "d.toml", input="\n".join([*answers, "none", "none", ""]))
    for said in ("no file", "did you mean 'age'", "got 'ages'", "got 'much'", "did you mean 'person'", "0 is not in"):
        assert said in told
    content = tomllib.loads((folder / "d.toml").read_text())
    assert content["source"] == {"file": "v.csv", "unit": "person", "max_contributions": 3}
    assert content["reading"][1]["questions"] == ["count", "median age"]


def test_what_init_refuses(folder, monkeypatch):
    monkeypatch.chdir(folder)
    base = ["init", "--file", "v.csv"]
    assert "--file" in run("init", "--out", "c.toml", code=2)
    assert "where nobody can be asked" in run(*base, "--out", "c.toml", code=2)
    for words, said in (
        (["--columns", "aeg", "--bounds", "age"], "did you mean 'age'"),
        (["--columns", "age", "--bounds", "age,0:3"], "expected 1 ranges, got 2"),
        (["--columns", "age", "--bounds", "age", "--epsilon", "-1"], "--epsilon"),
    ):
        assert said in " ".join(run(*base, *words, "--out", "c.toml", code=2).split())
    assert "no file" in run("init", "--file", "none.csv", "--out", "c.toml", code=2)
    assert not (folder / "c.toml").exists()


# -- profiles, strata, notebooks -----------------------------------------------------------------------------

WHOLE = """
[source]
file = "v.csv"

[release.visits]
columns = ["age", "stay"]
bounds = { age = "age", stay = [0, 60] }
epsilon = 1.0

[profile.all]
columns = ["age", "stay", "sex"]
bounds = { age = "age", stay = [0, 60] }
category = { sex = ["f", "m"] }
pairs = [["age", "stay"]]
pairs_share = 0.25
epsilon = 0.5
report = "profile.html"
table = "profile.csv"

[strata.sexes]
by = "sex"
categories = ["f", "m"]
others = "none"
bounds = { stay = [0, 60] }
epsilon = 0.5
delta = 1e-6
report = "strata.html"
json = "strata.json"

[[reading]]
kind = "notebook"
out = "visits.ipynb"

[[reading]]
kind = "card"
report = "visits.html"
"""


@pytest.fixture
def whole(folder):
    lines = (folder / "v.csv").read_text().splitlines()
    rows = [f"{line},{'fm'[k % 2]}" for k, line in enumerate(lines[1:])]
    (folder / "v.csv").write_text("\n".join([f"{lines[0]},sex", *rows, ""]))
    (folder / "fogline.toml").write_text(WHOLE)
    return folder


def test_profiles_and_strata_are_made_once_and_every_page_shows_the_recipe(whole):
    told = run("run", whole / "fogline.toml")
    assert "Profile" in told
    assert json.loads((whole / "strata.json").read_text())["comparisons"][0]["first"] == "f"
    made = ["profile.html", "strata.html", "visits.html", "all-profile/profile.html", "visits.ipynb"]
    for name in made:
        text = (whole / name).read_text()
        assert "# a step of the recipe fogline.toml:" in text, name
        assert "[profile.all]" in text, name
    before = {name: (whole / name).read_bytes() for name in ("all-profile/profile.npz", "sexes-strata.npz")}
    again = run("run", whole / "fogline.toml")
    assert again.count("is there, and is read as it is") == 3
    assert before == {name: (whole / name).read_bytes() for name in before}
    for old, new, said in (
        ('columns = ["age", "stay", "sex"]', 'columns = ["age", "sex", "stay"]', "holds the columns"),
        ("epsilon = 0.5\ndelta", "epsilon = 0.4\ndelta", "was released with epsilon 0.5"),
    ):
        (whole / "fogline.toml").write_text(WHOLE.replace(old, new))
        assert said in run("run", whole / "fogline.toml", code=1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pairs_share", "pair_share", "[profile.all] has an unknown key 'pair_share'; did you mean 'pairs_share'?"),
        ('others = "none"', 'other = "none"', "[strata.sexes] has an unknown key 'other'; did you mean 'others'?"),
        ('by = "sex"\n', "", "[strata.sexes] needs by"),
        ("[profile.all]", "[profil.all]", "the recipe has an unknown key 'profil'; did you mean 'profile'?"),
        ('out = "visits.ipynb"', "", "of kind 'notebook' needs out"),
        ('file = "v.csv"', 'file = "v.csv"\nunit = "person"', "a source with a unit has no strata yet"),
        (
            "{ stay = [0, 60] }\nepsilon = 0.5",
            '{ stay = [0, 60] }\ncolumns = ["age"]\nepsilon = 0.5',
            "no range of 'age'",
        ),
    ],
)
def test_what_is_wrong_with_profiles_and_strata_is_said_before_anything_is_read(whole, old, new, said):
    assert old in WHOLE
    (whole / "fogline.toml").write_text(WHOLE.replace(old, new))
    assert said in " ".join(run("run", whole / "fogline.toml", code=1).split())
    assert not (whole / "visits.fog").exists()


def test_init_asks_for_a_profile_and_for_strata(whole, monkeypatch):
    monkeypatch.setattr(init, "_is_person", lambda: True)
    answers = ["age,stay", "age", "0:60", "1", "none", "none", "age=age,stay=0:60", "sex=f/m", "0.5", "sex=f/m", "0.25"]
    out = whole / "asked.toml"
    run("init", "--file", whole / "v.csv", "--out", out, input="\n".join([*answers, ""]))
    content = tomllib.loads(out.read_text())
    (name,) = content["profile"]
    assert content["profile"][name]["category"] == {"sex": ["f", "m"]}
    assert content["profile"][name]["bounds"] == {"age": "age", "stay": [0.0, 60.0]}
    assert content["strata"][name]["categories"] == ["f", "m"]
    assert (content["profile"][name]["epsilon"], content["strata"][name]["epsilon"]) == (0.5, 0.25)
    steps = run("run", out, "--dry-run").splitlines()
    assert [line.split()[1] for line in steps] == ["release", "profile", "strata", "card", "ask", "notebook"]
    run("run", out)
    assert (whole / "v.ipynb").exists()


def test_init_writes_a_profile_from_options(whole):
    out = whole / "given.toml"
    given = ("--columns", "age,stay", "--bounds", "age,0:60", "--epsilon", "1", "--profile", "age=age", "--category")
    run("init", "--file", whole / "v.csv", *given, "sex=f/m", "--profile-epsilon", "0.5", "--out", out)
    content = tomllib.loads(out.read_text())
    assert content["profile"]["v"]["columns"] == ["age", "sex"]
    assert "strata" not in content
