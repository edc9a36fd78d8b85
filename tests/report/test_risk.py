"""Risk in plain numbers: never below the bound, the same in words, table, card, plan and picture."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import DensitySketch
from fogline.accounting import Guarantee
from fogline.accounting.guarantee import IntegralGuarantee
from fogline.accounting.risk import BEFORE, TIMES, percent_up, risk_table
from fogline.cli.app import app
from fogline.density.release_card import card_text
from fogline.report.outlook import Terms, planned_guarantee
from fogline.report.risk import risk_headings, risk_picture, risk_pictures, risk_rows


def promise(**changed):
    given = {"epsilon": 1.0, "delta": 1e-6, "rho": 0.0283, "gaussian": True, "neighbours": "add-remove"}
    return Guarantee.certified_release(**{**given, **changed}, mechanism="Gaussian noise", proof="gaussian-noise")


def test_percents_are_never_below_what_they_say():
    for share in np.random.default_rng(0).uniform(0, 1, 300):
        shown = float(percent_up(share).removesuffix("%")) / 100
        assert share - 1e-10 <= shown < share * 1.011
    assert percent_up(0.25 + 1e-12) == "25%"  # what is added for rounding does not show


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_rows_say_what_risk_says(neighbours):
    guarantee = promise(neighbours=neighbours, max_contributions=3)
    rows = risk_rows(guarantee)
    assert [row[0] for row in rows] == ["1%", "10%", "50%"]
    for row, before in zip(rows, BEFORE, strict=True):
        found = guarantee.risk(before)
        assert float(row[1].removesuffix("%")) / 100 >= found.content - 1e-10
        assert len(row) == len(risk_headings(guarantee)) == (2 if neighbours == "replace" else 3)
    table = risk_table(guarantee)
    assert (table["membership_advantage"] is None) == (neighbours == "replace")
    assert [each["records"] for each in table["more_records"]] == [3 * times for times in TIMES]
    contents = [each["content"] for each in table["more_records"]]
    assert contents == sorted(contents)
    assert contents[0] == pytest.approx(guarantee.risk(0.1).content)
    assert json.loads(json.dumps(table)) == table


def test_words_picture_and_card_have_the_same_numbers():
    guarantee = promise()
    explained, drawn = guarantee.explain(), risk_picture(guarantee)
    for row in risk_rows(guarantee):
        assert f"at most {row[1]} after" in explained
        assert f"at most {row[1]}" in drawn
    assert f"at most {percent_up(guarantee.risk(0.01).presence)} of those who are" in explained
    assert "membership advantage" in explained
    twice = percent_up(guarantee.risk(0.1, records=2).content)
    assert f"For someone with 2 records, a guess of 10% is right with at most {twice} after" in explained
    density = DensitySketch([(0, 10)]).update([[5.0]] * 200).release(epsilon=1.0, delta=1e-6)
    text = card_text(density.card())
    for each in density.card()["risk"]["guesses"]:
        assert f"right with {percent_up(each['before'])}: {percent_up(each['content'])} after" in text
    assert "about someone with 10 records" in text


def test_people_whose_further_records_were_left_out_are_not_told_that_they_are_protected_less():
    enforced, declared = (promise(unit="person", max_contributions=2, enforced=how) for how in (True, False))
    assert "At most 2 records of one person count; any others are left out." in enforced.explain()
    assert "For someone listed under 2 values of 'person', a guess of 10%" in enforced.explain()
    assert "It is assumed that one person has at most 2 records, which was declared" in declared.explain()
    assert "For someone with 4 records, a guess of 10%" in declared.explain()
    assert "by values of person per human being" in risk_picture(enforced)
    assert "20 records" in risk_picture(declared)
    assert "20 records" not in risk_picture(enforced)
    assert [each["content"] for each in risk_table(enforced)["more_records"]] == [
        each["content"] for each in risk_table(declared)["more_records"]
    ]
    once = promise(unit="person", enforced=True).explain()
    assert "At most 1 record of one person counts" in once
    assert "(s)" not in once


def widths(drawing, name):
    parts = ET.fromstring(drawing).iter("{http://www.w3.org/2000/svg}rect")
    return [float(part.get("width")) for part in parts if part.get("class") == name]


def test_bars_are_as_long_as_the_numbers_say():
    guarantee = promise()
    guess, more = risk_pictures(guarantee)
    whole = widths(guess, "track")[0]
    assert np.array(widths(guess, "after")) / whole == pytest.approx(
        [guarantee.risk(p).content for p in BEFORE], abs=1e-4
    )
    assert np.array(widths(guess, "before")) / whole == pytest.approx(BEFORE, abs=1e-4)
    numbers = [guarantee.risk(0.1, records=k).content for k in TIMES]
    assert np.array(widths(more, "after")) / whole == pytest.approx(numbers, abs=1e-4)


def test_the_picture_stands_alone_for_light_and_dark_and_escapes_names():
    drawn = risk_picture(promise(unit='<person & "co">', enforced=False))
    ET.fromstring(drawn)
    assert "prefers-color-scheme: dark" in drawn
    assert "<person" not in drawn
    assert not re.search(r"(href|src|url\()", drawn)


def test_draws_of_a_secret_model_promise_the_same_to_groups():
    guarantee = IntegralGuarantee.of(0.1, draws=5, mechanism="MBDE", proof="mollified-draws")
    assert len({each["content"] for each in risk_table(guarantee)["more_records"]}) == 1


def test_a_plan_speaks_of_the_noise_that_a_release_would_have():
    terms = Terms(("x",), ((0.0, 10.0),), 1e-6, "replace", "")
    planned = planned_guarantee(1.0, terms)
    made = (
        DensitySketch([(0, 10)]).update([[5.0]] * 200).release(epsilon=1.0, delta=1e-6, neighbours="replace").guarantee
    )
    assert (planned.rho, planned.gaussian, planned.risk(0.1)) == (made.rho, made.gaussian, made.risk(0.1))
    assert planned_guarantee(30.0, terms).gaussian is False  # the curve does not suit it
    assert planned_guarantee(1.0, terms, pure=True).delta == 0.0


def test_the_command_line_draws_the_card_and_tells_the_risk_of_a_plan(tmp_path):
    path, picture, page = tmp_path / "x.fog", tmp_path / "risk.svg", tmp_path / "plan.html"
    density = DensitySketch([(0, 10)]).update([[5.0]] * 200).release(epsilon=1.0, delta=1e-6)
    density.save(path)
    told = CliRunner().invoke(app, ["card", str(path), "--picture", str(picture)])
    assert told.exit_code == 0, told.output
    assert picture.read_text() == risk_picture(density.guarantee)
    assert CliRunner().invoke(app, ["card", str(path), "--picture", "risk.bmp"]).exit_code == 2
    words = ["plan", "--bounds", "0:10", "--n", "500", "--delta", "1e-6", "--epsilons", "1,20", "--runs", "1"]
    planned = CliRunner().invoke(app, [*words, "--picture", str(page)])
    assert planned.exit_code == 0, planned.output
    assert "Beware: epsilon = 20" in planned.stderr
    assert percent_up(density.guarantee.risk(0.1).content) in planned.stdout
    assert "What each epsilon means for a person" in page.read_text()
    assert "Beware: epsilon = 20" in page.read_text()
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [each["epsilon"] for each in document["risk"]] == [1.0, 20.0]
    assert document["risk"][0]["guesses"][1]["content"] == density.guarantee.risk(0.1).content
    quiet = CliRunner().invoke(app, [*words[:-4], "--epsilons", "1", "--runs", "1"])
    assert quiet.stderr == ""
