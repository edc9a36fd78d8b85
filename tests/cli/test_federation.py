"""Commands of several sites, private bounds and strata: what they print, how they end, what they refuse."""

from __future__ import annotations

import json
import re
import shlex
import stat
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import Ledger, PrivateDensity
from fogline.cli.app import app
from fogline.density.strata import Strata
from fogline.federation import SiteSketch

SITES = "north,south,west"
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + result.stderr
    return result.output


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for site, centre in zip(SITES.split(","), (30, 55, 70), strict=True):
        lines = [f"{rng.choice(['f', 'm'])},{rng.normal(centre, 6):.0f},{rng.uniform(0, 2):.2f}" for _ in range(800)]
        (tmp_path / f"{site}.csv").write_text("sex,age,w\n" + "\n".join(lines) + "\n,oops\n")
    return tmp_path


def sketched(folder, site, *more, code=0):
    words = ["sketch", folder / f"{site}.csv", "--columns", "age", "--bounds", "age", "--steps", "1", "--site", site]
    out = ["--pass", "spring", "--out", folder / f"{site}.sketch"]
    return run(*words, *out, *more, code=code)


def with_keys(folder):
    for site in SITES.split(","):
        told = run("sketch", "--new-keys", folder / f"keys-{site}", "--site", site, "--sites", SITES)
        for line in told.splitlines():
            if found := re.match(r"(.*\.key): bring it to (\w+),", line):
                home = folder / f"keys-{found[2]}"
                home.mkdir(exist_ok=True)
                (home / found[1].split("/")[-1]).write_bytes(Path(found[1]).read_bytes())
    for site in SITES.split(","):
        told = sketched(folder, site, "--keys", folder / f"keys-{site}", "--sites", SITES)
        assert "masked" in told


@pytest.mark.parametrize("masked", [False, True])
def test_from_files_to_a_page(folder, masked):
    if masked:
        with_keys(folder)
    else:
        for site in SITES.split(","):
            assert "secret" in sketched(folder, site)
    parts = [folder / f"{site}.sketch" for site in SITES.split(",")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in parts} == {0o600}
    told = run("merge", *parts[:2], "--out", folder / "two.sketch")
    assert ("nothing can be read before west" in told) is masked
    if masked:
        assert "west are missing" in run("release", folder / "two.sketch", *BUDGET, code=2)
    again = run("merge", folder / "two.sketch", *parts, "--out", folder / "all.sketch", "--json")
    assert json.loads(again)["sites"] == SITES.split(",")
    out = ["--save", folder / "d.npz", "--report", folder / "page.html", "--json"]
    document = json.loads(run("release", folder / "all.sketch", *BUDGET, *out))
    assert document["guarantee"]["max_contributions"] == 3
    assert PrivateDensity.load(folder / "d.npz").count == pytest.approx(2400, abs=400)
    assert "age" in (folder / "page.html").read_text()
    assert "released before" in run("release", folder / "all.sketch", *BUDGET, code=2)


def test_release_with_a_ledger(folder):
    for site in ("north", "south"):
        sketched(folder, site)
    run("merge", folder / "north.sketch", folder / "south.sketch", "--out", folder / "all.sketch")
    Ledger.create(folder / "budget", dataset="hospitals", epsilon=1.2, delta=1e-5, high_water=folder / "marks").close()
    ledger = ["--ledger", folder / "budget", "--high-water", folder / "marks"]
    words = ["release", folder / "all.sketch", *BUDGET, "--disjoint-persons", *ledger, "--n-modes", "2"]
    assert "Paid" in run(*words)
    assert "Free" in run(*words)
    dear = ["release", folder / "all.sketch", "--epsilon", "3", "--delta", "1e-6", *ledger]
    assert "budget" in run(*dear, "--disjoint-persons", code=4).lower()
    assert "at most 2 records" in run(*dear, code=4)  # persons at several sites are another unit


def test_what_differs_is_named(folder):
    sketched(folder, "north")
    sketched(folder, "south", "--bandwidth", "0.1")
    words = ["merge", folder / "north.sketch", folder / "south.sketch", "--out", folder / "all.sketch"]
    assert "differ in scales" in run(*words, code=2)
    sketched(folder, "south", "--pass", "autumn")
    assert "differ in pass" in run(*words, code=2)
    first = (folder / "north.sketch").read_bytes()
    sketched(folder, "north")
    (folder / "old.sketch").write_bytes(first)
    words = ["merge", folder / "north.sketch", folder / "old.sketch", "--out", folder / "all.sketch"]
    assert "two sketches of different runs" in run(*words, code=2)
    assert "format" in run("merge", folder / "north.csv", "--out", folder / "all.sketch", code=2)
    assert not (folder / "all.sketch").exists()


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--site", "a/b"], "--site"),
        (["--pass", ""], "--pass"),
        (["--columns", "weight"], "--columns"),
        (["--bounds", "shoe"], "fogline units"),
        (["--max-contributions", "0"], "--max-contributions"),
        (["--sites", SITES], "--sites"),
        (["--keys", "nowhere", "--sites", SITES], "--keys"),
        (["--out", "/nowhere/x.sketch"], "--out"),
    ],
)
def test_sketch_refuses(folder, more, word):
    assert word in sketched(folder, "north", *more, code=2)


def test_sketch_needs_its_words(folder):
    assert "--pass" in run("sketch", folder / "north.csv", "--bounds", "age", "--site", "n", "--out", "x", code=2)
    assert "FILE" in run("sketch", "--site", "n", code=2)
    assert "--sites" in run("sketch", "--new-keys", folder / "k", "--site", "n", code=2)
    assert "--sites" in run("sketch", "--new-keys", folder / "k", "--site", "n", "--sites", "a,b", code=2)


def test_a_unit_is_cut_and_named(folder):
    (folder / "u.csv").write_text("id,x\n" + "".join(f"{i % 50},{i % 10}\n" for i in range(500)))
    words = [
        "sketch",
        folder / "u.csv",
        "--columns",
        "x",
        "--unit",
        "id",
        "--max-contributions",
        "2",
        "--bounds",
        "0:10",
    ]
    run(*words, "--site", "n", "--pass", "p", "--out", folder / "u.sketch")
    part = SiteSketch.load(folder / "u.sketch")
    assert part.sketch.table().sum() == 100
    guarantee = json.loads(run("release", folder / "u.sketch", *BUDGET, "--json"))["guarantee"]
    assert (guarantee["unit"], guarantee["max_contributions"], guarantee["enforced"]) == ("id", 2, True)
    site = ["--pass", "p", "--site", "m", "--out", folder / "m.sketch"]
    run(*words, *site, "--unit-name", "person")
    assert SiteSketch.load(folder / "m.sketch").unit == "person"
    unlike = run("merge", folder / "u.sketch", folder / "m.sketch", "--out", folder / "both.sketch", code=2)
    assert "differ in unit: id and person" in unlike
    assert "rows are not cut" in run(*words, *site, "--unit-name", "record", code=2)
    assert "--unit" in run(*words[:4], *words[-2:], *site, "--unit-name", "person", code=2)


# -- bounds, units, strata -----------------------------------------------------------------------------------


def test_bounds(folder):
    told = run("bounds", folder / "north.csv", "--columns", "age", *BUDGET)
    assert "Certified" in told
    assert "--bounds=" in told
    document = json.loads(
        run("bounds", folder / "north.csv", "--columns", "age,w", "--shares", "age=3/4,w=1/4", *BUDGET, "--json")
    )
    assert [column["name"] for column in document["columns"]] == ["age", "w"]
    low, high = document["columns"][0]["bounds"]
    assert low < 30 < high
    few = json.loads(
        run("bounds", folder / "north.csv", "--columns", "age", "--epsilon", "0.01", "--delta", "1e-6", "--json")
    )
    assert few["columns"][0]["bounds"] is None
    assert "too few" in few["columns"][0]["message"]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--columns", "nobody"], "--columns"),
        (["--coverage", "2"], "--coverage"),
        (["--shares", "age"], "--shares"),
        (["--shares", "age=1/2"], "--shares"),
        (["--epsilon", "-1"], "--epsilon"),
        (["--unit", "nobody"], "--unit"),
        (["--dataset", "x"], "--dataset"),
    ],
)
def test_bounds_refuse(folder, words, word):
    assert word in run("bounds", folder / "north.csv", "--columns", "age", *BUDGET, *words, code=2)


def test_bounds_with_a_ledger(folder):
    Ledger.create(folder / "budget", dataset="north", epsilon=1.0, delta=1e-6, high_water=folder / "marks").close()
    ledger = ["--ledger", folder / "budget", "--high-water", folder / "marks"]
    words = ["bounds", folder / "north.csv", "--columns", "age", *BUDGET, *ledger]
    assert "Paid" in run(*words)
    assert "Free" in run(*words)
    run("bounds", folder / "north.csv", "--columns", "w", *BUDGET, *ledger, code=4)


def test_units():
    told = run("units")
    assert "age: 0 to 125 years" in told
    assert "latitude" in told


def test_strata(folder):
    pytest.importorskip("matplotlib")
    words = [
        "strata",
        folder / "north.csv",
        "--by",
        "sex",
        "--categories",
        "f,m",
        "--columns",
        "age",
        "--bounds",
        "age",
    ]
    out = ["--picture", folder / "s.svg", "--save", folder / "s.npz"]
    told = run(*words, *BUDGET, *out)
    assert "f and m: test of equal shapes, p = " in told
    assert "Certified" in told
    assert "<svg" in (folder / "s.svg").read_text()
    assert Strata.load(folder / "s.npz").columns == ("age",)
    weighted = ["--weights", "w", "--weight-bound", "2", "--others", "none", "--json"]
    document = json.loads(run(*words, *BUDGET, *weighted))
    assert [part["name"] for part in document["strata"]] == ["f", "m"]
    assert document["weight_bound"] == 2
    for more, word in (
        (["--by", "nobody"], "--by"),
        (["--categories", "f,f"], "--categories"),
        (["--others", "f"], "--others"),
        (["--weights", "w"], "--weight"),
        (["--level", "2"], "--level"),
        (["--bounds", "0:1,0:1"], "--columns"),
    ):
        assert word in run(*words, *BUDGET, *more, code=2)


def test_the_recipes_of_the_page_run(tmp_path, monkeypatch):
    """Every command of docs/federation.md, as it stands there; what the other sites do is done for them."""
    page = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)).replace("\\\n", " ")
    commands = [shlex.split(line, comments=True) for line in blocks.splitlines() if line.startswith("fogline ")]
    assert [words[1] for words in commands] == ["sketch", "merge", "release", "sketch", "sketch"]
    rng = np.random.default_rng(0)
    rows = "".join(f"{rng.integers(20, 90)},{rng.gamma(3, 20):.1f}\n" for _ in range(600))
    (tmp_path / "visits.csv").write_text("age,minutes\n" + rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Ledger.create("budget.fogline", dataset="visits", epsilon=2.0, delta=1e-5).close()
    for words in commands:
        for site in SITES.split(",") if words[1] == "sketch" else [""]:
            mine = [re.sub(r"^north(?=$|\.sketch)", site, word) if site else word for word in words[1:]]
            run(*mine)
    assert PrivateDensity.load("density.npz").guarantee.max_contributions == 3
    assert "masked" in run("merge", "north.sketch", "south.sketch", "--out", "two.sketch")
