"""Mistakes that leave no trace but in the released count: said on the terminal, in the document and on the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app
from fogline.testing import seeded_noise

SPEND = ["--epsilon", "1", "--delta", "1e-6"]
MODES = ["modes", "--columns", "cost", "--bounds", "0:3000", *SPEND]
RNG = np.random.default_rng(0)
COSTS = RNG.normal(1500, 400, 3000).clip(1, 2999)


def run(*words):
    with seeded_noise(0):  # one count in 740 is more than three deviations above its truth
        return CliRunner().invoke(app, [str(word) for word in words])


def flat(text):
    return " ".join(text.split())


def written(path, cells, *, header="cost,kind"):
    lines = [f"{cell},{kind}" for cell, kind in zip(cells, RNG.choice(["f", "m"], len(cells)), strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


MISTAKES = {
    "decimal comma": [f'"{cost:.2f}"'.replace(".", ",") for cost in COSTS],
    "text": ["high" if cost > 1500 else "low" for cost in COSTS],
    "percent sign": [f"{cost:.0f}%" for cost in COSTS],
    "header only": [],
    "8 rows": [f"{cost:.2f}" for cost in COSTS[:8]],
    "bounds that miss the data": [f"{cost + 50_000:.2f}" for cost in COSTS],
}
SPEND_MORE = ("times the epsilon", "more epsilon", "larger epsilon", "more records", "times the records")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_by_the_released_count(mistake, tmp_path):
    table, page = written(tmp_path / "costs.csv", MISTAKES[mistake]), tmp_path / "page.html"
    told = run(*MODES[:1], table, *MODES[1:], "--report", page)
    assert told.exit_code == 0, told.output
    message = json.loads(run(*MODES[:1], table, *MODES[1:], "--json").stdout)["message"]
    for text in (flat(told.stdout), flat(page.read_text(encoding="utf-8")), flat(message)):
        assert "he release counts " in text
        assert "which may be none: is the column numeric, are the decimal mark and the bounds right?" in text
        assert "right?." not in text
        assert not any(advice in text for advice in SPEND_MORE)


def test_thousands_separators_are_told_by_what_was_expected(tmp_path):
    cells = [f'"{cost:,.2f}"' for cost in COSTS]  # "1,234.50" is no number, "889.20" is one
    table, page = written(tmp_path / "costs.csv", cells), tmp_path / "page.html"
    plain = json.loads(run(*MODES[:1], table, *MODES[1:], "--json").stdout)
    assert plain["count"]["value"] < 600
    assert "the release counts" not in plain["message"]
    words = [*MODES[:1], table, *MODES[1:], "--expect-records", "3000"]
    told = run(*words, "--report", page)
    wanted = "of the 3000 records that you expect: is every value a plain number (thousands separators, decimal mark)"
    assert wanted in flat(told.stdout)
    assert wanted in flat(page.read_text(encoding="utf-8"))
    assert wanted in json.loads(run(*words, "--json").stdout)["message"]


@pytest.mark.parametrize(
    "words",
    [
        ["clusters", "--columns", "cost", "--bounds", "0:3000"],
        ["regress", "--x", "cost", "--y", "cost2", "--x-bounds", "0:3000", "--y-bounds", "0:3000"],
        ["fit", "--column", "cost", "--family", "normal", "--parameter-bounds", "mu=0:3000,sigma=100:900"],
        ["mixture", "--columns", "cost", "--radius", "3000", "--components", "1"],
        ["bounds", "--columns", "cost"],
        ["strata", "--by", "kind", "--categories", "f,m", "--columns", "cost", "--bounds", "0:3000"],
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_releases_a_count_compares_it(words, tmp_path):
    cells = [f"{cost:.2f},{cost:.2f}" for cost in COSTS]
    table = written(tmp_path / "costs.csv", cells, header="cost,cost2,kind")
    command = [words[0], table, *words[1:], *SPEND, "--expect-records", "90000"]
    wanted = "of the 90000 records that you expect"
    assert wanted in flat(run(*command).stdout)
    document = json.loads(run(*command, "--json").stdout)
    told = document["columns"][0]["message"] if words[0] == "bounds" else document["message"]
    assert wanted in told
    assert run(*command[:-1], "0").exit_code == 2


def test_sites_are_counted_together(tmp_path):
    table = written(tmp_path / "costs.csv", [f"{cost:.2f}" for cost in COSTS])
    secret = tmp_path / "north.sketch"
    made = ["--columns", "cost", "--bounds", "0:3000", "--site", "north", "--pass", "spring", "--out", secret]
    assert run("sketch", table, *made).exit_code == 0
    told = run("release", secret, *SPEND, "--expect-records", "90000")
    assert "of the 90000 records that you expect" in flat(told.stdout)


def test_wrong_category_names_are_asked_about(tmp_path):
    table = written(tmp_path / "costs.csv", [f"{cost:.2f}" for cost in COSTS])
    words = ["strata", table, "--by", "kind", "--categories", "female,male", "--columns", "cost", "--bounds", "0:3000"]
    told = flat(run(*words, *SPEND).stdout)
    assert "no more records than noise in 'female'" in told
    assert "check that these categories are spelled as in the data." in told
    document = json.loads(run(*words, *SPEND, "--json").stdout)
    assert "'male'" in document["message"]
    assert not any(advice in part["message"] for part in document["strata"] for advice in SPEND_MORE)


def test_a_descent_releases_no_count(tmp_path):
    table = written(tmp_path / "costs.csv", [f"{cost:.2f}" for cost in COSTS])
    law = ["--column", "cost", "--family", "normal", "--parameter-bounds", "mu=0:3000,sigma=100:900"]
    told = run("fit", table, *law, *SPEND, "--method", "newton", "--rows", "3000", "--expect-records", "9")
    assert told.exit_code == 2
    assert "--expect-records" in told.stderr


def test_a_large_budget_is_pointed_out(tmp_path):
    table, page = written(tmp_path / "costs.csv", [f"{cost:.2f}" for cost in COSTS]), tmp_path / "page.html"
    words = ["modes", table, "--columns", "cost", "--bounds", "0:3000", "--epsilon", "100", "--delta", "0.01"]
    told = run(*words, "--report", page)
    document = json.loads(run(*words, "--json").stdout)
    html = page.read_text(encoding="utf-8")
    for text in (flat(told.stdout), flat(html), document["message"]):
        assert "psilon = 100 is above 10" in text
        assert "elta = 0.01 is above 1/" in text
    assert '<div class="bad"><b>ε = 100</b>' in html
    assert "Beware: epsilon = 100" in html
    modest = run(*MODES[:1], table, *MODES[1:], "--report", page)
    assert "is above" not in modest.stdout
    assert '<div class="bad"><b>ε' not in page.read_text(encoding="utf-8")


def test_many_draws_are_pointed_out(tmp_path):
    table = written(tmp_path / "costs.csv", [f"{cost:.2f}" for cost in COSTS])
    words = ["sample", table, "--columns", "cost", "--bounds", "0:3000", "--per-draw-epsilon", "2", "--draws", "6"]
    told = run(*words)
    assert "Epsilon = 12 is above 10" in flat(told.stderr)
    assert json.loads(run(*words, "--json").stdout)["message"].startswith("epsilon = 12 is above 10")
