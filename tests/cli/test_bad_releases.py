"""Bad input at the command line: releases that cannot be opened, questions that a release does not answer, recipes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import release
from fogline.cli.app import app
from fogline.testing import seeded_noise

READINGS = {
    "ask": ("count",),
    "card": (),
    "clusters": (),
    "fit": ("--column", "stay", "--family", "gamma"),
    "mixture": ("--components", "2"),
    "modes": (),
    "notebook": ("--out", "x.py"),
    "quantiles": ("--column", "stay"),
    "regress": ("--y", "stay"),
    "sample": ("--draws", "3"),
}
"""Every command that opens a release, with what it needs."""


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, " ".join((result.output + result.stderr).split())


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 2000)
    rows = np.column_stack([age, rng.gamma(3.0, 1 + age / 40)])
    folder = tmp_path_factory.mktemp("bad")
    with seeded_noise(0):
        shape = release(rows, columns=["age", "stay"], bounds={"age": "age", "stay": (0, 60)}, epsilon=1.0)
    shape.save(folder / "good.fog")
    data = (folder / "good.fog").read_bytes()
    (folder / "future.fog").write_bytes(data.replace(b"fogline release 1", b"fogline release 2", 1))
    (folder / "cut.fog").write_bytes(data[: len(data) // 2])
    (folder / "altered.fog").write_bytes(data.replace(b'"stay"', b'"stax"', 1))
    (folder / "table.fog").write_text("age,stay\n1,2\n")
    return folder


FILES = {
    "future": "has version 2 of its format, and this fogline reads up to version 1",
    "cut": "was cut short or altered",
    "altered": "was cut short or altered",
    "table": "not a release of fogline",
    "nowhere": "there is no file",
}


@pytest.mark.parametrize("command", READINGS)
def test_every_reading_refuses_a_release_that_cannot_be_trusted(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    for name, said in FILES.items():
        code, words = run(command, f"{name}.fog", *READINGS[command])
        assert code == 2, (name, words)
        assert said in words, (name, words)
    assert not (folder / "x.py").exists()


def test_seeded_noise_is_said_to_be_not_certified(folder):
    code, words = run("card", folder / "good.fog")
    assert code == 0
    assert "NOT certified" in words
    code, words = run("ask", folder / "good.fog", "count", "--json")
    assert json.loads(words)["guarantee"]["certified"] is False


UNKNOWN = [
    (("ask", "median cost"), "there is no column 'cost'"),
    (("ask", "P(sty > 3)"), "did you mean 'stay'"),
    (("quantiles", "--column", "cost"), "'cost' was not released; there are age, stay"),
    (("regress", "--y", "cost"), "'cost'"),
    (("fit", "--column", "cost", "--family", "gamma"), "'cost'"),
]


@pytest.mark.parametrize(("words", "said"), UNKNOWN, ids=[" ".join(words) for words, _ in UNKNOWN])
def test_a_column_that_was_not_released_is_named(folder, words, said):
    command, *rest = words
    code, told = run(command, folder / "good.fog", *rest)
    assert code == 2
    assert said in told


def test_a_box_outside_the_bounds_is_answered_as_zero_and_said(folder):
    code, words = run("ask", folder / "good.fog", "P(stay > 70)", "count where stay > 70")
    assert code == 0
    assert "P(stay > 70): 0 ± 0" in words
    assert words.count("lies outside the released bounds 0 to 60, where nothing was counted") == 2


def test_more_than_three_columns_are_refused_before_anything_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n" + "1,2,3,4\n" * 9)
    bounds = "a=0:9,b=0:9,c=0:9,d=0:9"
    code, words = run(
        "release", path, "--columns", "a,b,c,d", "--bounds", bounds, "--epsilon", 1, "--out", tmp_path / "x.fog"
    )
    assert code == 2
    assert "a density has up to 3 columns, got 4" in words
    assert not (tmp_path / "x.fog").exists()


def test_a_recipe_with_an_unknown_key_names_the_nearest(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    recipe = tmp_path / "r.toml"
    recipe.write_text('[source]\nfile = "t.csv"\n[release.a]\nbounds = { a = [0, 9] }\nepslion = 1\n')
    code, words = run("run", recipe)
    assert code == 1
    assert "[release.a] has an unknown key 'epslion'; did you mean 'epsilon'?" in words
