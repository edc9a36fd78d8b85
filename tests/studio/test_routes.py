"""Every address of the studio, as its two roles see it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hospital import enter, form_key, hospital_config, open_studio, released

from fogline import PrivateDensity
from fogline.studio.views import SLIDER, routes

TABS = ("curve", "ask", "modes", "clusters", "branches", "compare", "export")


def test_the_start_shows_data_sets_releases_and_budgets(hospital, custodian, analyst):
    for client, words in ((custodian, "Only a release spends budget"), (analyst, "Nothing you do here spends budget")):
        text = client.get("/").text
        assert words in text
        for title in ("Hospital visits", "Laboratory", "Other laboratory"):
            assert title in text
        assert text.count('class="budget"') == 3
        assert f"/releases/{hospital[2]['visits']}" in text


def test_the_ledger_lists_what_was_spent(custodian):
    text = custodian.get("/ledger").text
    assert "epsilon 1" in text
    assert "given" in text
    assert "reserved, not answered" not in text


def test_a_form_lists_the_header_and_suggests_public_ranges(custodian):
    text = custodian.get("/data/visits").text
    assert re.findall(r'name="column" value="(\w+)"', text) == ["age", "stay", "name"]  # not the unit's
    assert re.search(r'name="low.stay"[^>]* value="0"', text)
    assert "would count as" in text
    assert "Choose one to three columns." in text  # what the outlook waits for
    assert 'class="fault"' not in text  # nothing is wrong before somebody has begun
    free = custodian.get("/data/lab").text
    assert "all rows with the same ward" in free


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"column": ["age", "stay", "name", "patient"]}, "up to three columns"),
        ({"column": ["nothing"]}, "not in the header"),
        ({"column": ["name"]}, "lowest and the highest value"),
        ({"column": ["age"], "low.age": "5", "high.age": "1"}, "lowest and the highest value"),
        ({"column": ["age"], "range.age": "shoe_size"}, "no public range of that name"),
        ({"column": ["age"], "low.age": "0", "high.age": "1", "step.age": "-1"}, "a number above 0"),
        ({"column": ["age"], "low.age": "0", "high.age": "1", "step.age": "5"}, "do not fit together"),
        ({"column": ["age"], "epsilon": "0"}, "Choose an epsilon"),
        ({"column": ["age"], "epsilon": "nan"}, "Choose an epsilon"),
        ({"column": ["age"], "records": "many"}, "a whole number"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(custodian, fields, words):
    query = urlencode(fields, doseq=True)
    assert words in custodian.get(f"/data/visits?{query}").text
    assert words in custodian.get(f"/data/visits/outlook?{query}").text
    back = custodian.get(f"/data/visits/review?{query}")
    assert (back.status, back.header("location").startswith("/data/visits?")) == (303, True)


def test_a_unit_is_not_released_as_well(custodian):
    query = "column=ward&low.ward=0&high.ward=9&unit=ward"
    assert "not in the header" in custodian.get(f"/data/lab?{query}").text
    assert custodian.get(f"/data/lab/review?{query}").status == 303


def test_reading_options_are_checked_on_the_header_alone(custodian):
    shown = custodian.get("/data/lab?null=NA,-999").text
    assert "<code>-999</code>" in shown
    assert "of which only the header was read" in shown
    refused = custodian.get("/data/visits?delimiter=long").text
    assert "delimiter" in refused
    assert "With the administrator" in refused


def test_an_outlook_tells_accuracy_risk_and_budget(hospital, custodian):
    studio = hospital[0]
    query = "column=heart_rate&epsilon=0.5&records=800"
    custodian.get(f"/data/lab/outlook?{query}")
    studio.outlooks.wait()
    text = custodian.get(f"/data/lab/outlook?{query}").text
    for words in ("How exact", "How exposed", "right with 10%", "this release 0.5", "heart_rate", "tenth of the range"):
        assert words in text
    assert "data-pending" not in text
    more = custodian.get("/data/lab/outlook?column=heart_rate&epsilon=12&records=800").text
    assert "more than is left" in more
    assert "is above 10" in more


def test_the_slider_stops_at_rising_budgets():
    assert list(SLIDER) == sorted(SLIDER)
    assert 1.0 in SLIDER
    assert (SLIDER[0], SLIDER[-1]) == (0.05, 20.0)


def test_a_review_says_what_would_be_promised(custodian, analyst):
    text = custodian.get("/data/visits/review?column=stay&epsilon=0.5").text
    assert "one patient (at most 2 records, enforced)" in text
    assert "Release once, for ε = 0.5" in text
    proposed = analyst.get("/data/visits/review?column=stay&epsilon=0.5").text
    assert "Propose it to the custodian" in proposed
    assert "Release once" not in proposed


def test_a_question_that_was_paid_for_is_free(hospital, custodian):
    studio = hospital[0]
    query = "column=heart_rate&epsilon=1"
    assert "This was released before" in custodian.get(f"/data/lab/review?{query}").text
    before = studio.ledger.remaining("lab").pure
    again = released(studio, custodian, "lab", query)
    assert studio.ledger.remaining("lab").pure == before
    assert studio.store.density(again) == studio.store.density(hospital[2]["lab"])


def test_a_form_that_is_sent_twice_spends_once(tmp_path):
    studio = open_studio(hospital_config(tmp_path))
    from fogline.studio.app import make_app

    client = enter(make_app(studio), "custodian")
    key = form_key(client.get("/data/lab/review?column=heart_rate&epsilon=0.5").text)
    first, second = (client.post("/data/lab/release", {"key": key}) for _ in range(2))
    assert first.header("location") == second.header("location")
    studio.releasing.finish()
    assert studio.ledger.remaining("lab").pure == pytest.approx(5.5)
    assert len(studio.store.releases()) == 1
    studio.close()


def test_a_budget_that_does_not_suffice_is_refused_and_said(hospital, custodian):
    studio = hospital[0]
    shown = custodian.get("/data/lab/review?column=heart_rate&epsilon=19").text
    assert "more than is left" in shown
    assert "Release once" not in shown
    begun = custodian.post("/data/lab/release", {"key": form_key(shown)})  # a form of one's own
    studio.releasing.finish()
    place = begun.header("location")
    while not custodian.get(f"{place}/state").json["told"]:
        pass
    text = custodian.get(place).text
    assert "Nothing was spent." in text
    assert "less is left than this release would cost" in text


def test_a_proposal_goes_to_the_custodian_and_comes_back_as_a_release(hospital, custodian, analyst):
    studio = hospital[0]
    shown = analyst.get("/data/other-lab/review?column=heart_rate&epsilon=0.25")
    sent = analyst.post("/data/other-lab/propose", {"key": form_key(shown.text), "why": "For the <b>spring</b> report"})
    assert sent.header("location") == "/#proposals"
    [proposal] = [one for one in studio.store.proposals() if one.state == "open"]
    page = custodian.get(f"/proposals/{proposal.id}").text
    assert "For the &lt;b&gt;spring&lt;/b&gt; report" in page
    review = re.search(r'href="(/data/other-lab/review[^"]+)"', page)[1].replace("&amp;", "&")
    assert "Proposed by an analyst" in custodian.get(review).text
    made = released(studio, custodian, "other-lab", review.partition("?")[2])
    assert studio.store.proposal(proposal.id).release == made
    assert f"/releases/{made}" in analyst.get(f"/proposals/{proposal.id}").text
    assert f"/releases/{made}" in analyst.get("/").text


def test_a_proposal_can_be_declined_with_a_word(hospital, custodian, analyst):
    studio = hospital[0]
    shown = analyst.get("/data/lab/review?column=heart_rate&epsilon=0.3")
    analyst.post("/data/lab/propose", {"key": form_key(shown.text)})
    [proposal] = [one for one in studio.store.proposals() if one.state == "open"]
    key = form_key(custodian.get(f"/proposals/{proposal.id}").text)
    assert analyst.post(f"/proposals/{proposal.id}/decline", {"key": key}).status == 403
    assert custodian.post("/proposals/other/decline", {"key": key}).status == 403
    key = form_key(custodian.get(f"/proposals/{proposal.id}").text)
    assert custodian.post(f"/proposals/{proposal.id}/decline", {"key": key, "reply": "Not this year"}).status == 303
    assert "Not this year" in analyst.get(f"/proposals/{proposal.id}").text
    assert studio.store.proposal(proposal.id).state == "declined"


def test_too_many_proposals_are_not_taken(tmp_path, monkeypatch):
    from fogline.studio import store
    from fogline.studio.app import make_app

    monkeypatch.setattr(store, "MOST_OPEN", 1)
    studio = open_studio(hospital_config(tmp_path))
    client = enter(make_app(studio), "analyst")
    statuses = []
    for _ in range(2):
        key = form_key(client.get("/data/lab/review?column=heart_rate").text)
        statuses.append(client.post("/data/lab/propose", {"key": key}).status)
    assert statuses == [303, 409]
    studio.close()


@pytest.mark.parametrize("tab", ["", *TABS])
def test_every_reading_of_a_release_is_shown_to_both(hospital, custodian, analyst, tab):
    place = f"/releases/{hospital[2]['visits' if tab == 'branches' else 'lab']}" + (f"/{tab}" if tab else "")
    before = len(hospital[0].ledger.history())
    for client in (custodian, analyst):
        answer = client.get(place)
        assert answer.status == 200
        assert 'aria-current="page"' in answer.text
        assert "costs nothing" in answer.text
    assert len(hospital[0].ledger.history()) == before


def test_slices_and_groups_are_read_from_the_release(hospital, analyst):
    place = f"/releases/{hospital[2]['visits']}/curve"
    text = analyst.get(f"{place}?column=stay&points=32&low.age=70").text
    assert "age from 70" in text
    assert "of the population" in text
    groups = analyst.get(f"{place}?column=stay&split=age&at=65").text
    assert "age below 65" in groups
    assert "age from 65" in groups
    shares = [float(share) for share in re.findall(r"with age (?:below|from) 65: ([\d.]+)%", groups)]
    assert sum(shares) == pytest.approx(100, abs=0.3)  # nobody is in both groups, and nobody in none
    within = analyst.get(f"{place}?column=stay&split=age&at=65&low.age=40").text
    assert "age below 65 and age from 40" in within
    assert sum(float(share) for share in re.findall(r"and age from 40: ([\d.]+)%", within)) < 90
    assert analyst.get(f"{place}?column=nonsense&points=7").status == 200


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("low.age=80&high.age=20", "Only where age lies: “from” is above “to”."),
        ("low.age=ten", "“ten” is not a number."),
        ("split=age", "Say at which value of age the two groups part."),
        ("at=3", "Choose the column by which the two groups part."),
    ],
)
def test_a_slice_that_cannot_be_read_says_why(hospital, analyst, query, words):
    assert words in analyst.get(f"/releases/{hospital[2]['visits']}/curve?column=stay&{query}").text


def test_questions_in_words_are_answered_or_explained(hospital, analyst):
    place = f"/releases/{hospital[2]['visits']}/ask"
    assert "median stay" in analyst.get(f"{place}?q=median+stay").text
    assert 'class="message" role="alert"' in analyst.get(f"{place}?q=median+shoe").text
    escaped = analyst.get(f"{place}?q=%3Cscript%3E").text
    assert "<script>" not in escaped


def test_two_releases_are_compared(hospital, analyst):
    first, second = hospital[2]["lab"], hospital[2]["other-lab"]
    text = analyst.get(f"/releases/{first}/compare?with={second}").text
    assert "Hellinger distance" in text
    assert "p = " in text
    assert "mean move of heart_rate" in text
    assert ">Other laboratory</text>" in text  # a legend names the two by what they differ in
    assert analyst.get(f"/releases/{first}/compare?with={hospital[2]['visits']}").status == 200


def test_the_response_of_branches_can_be_chosen(hospital, analyst):
    text = analyst.get(f"/releases/{hospital[2]['visits']}/branches?y=age").text
    assert "<option selected>age</option>" in text


def test_a_second_measurement_begins_with_the_same_question(hospital, custodian, analyst):
    text = custodian.get(f"/releases/{hospital[2]['lab']}").text
    again = re.search(r'<a href="(/data/lab\?[^"]+)">Measure again', text)[1].replace("&amp;", "&")
    assert "epsilon=2" in again
    form = custodian.get(again).text
    assert re.search(r'value="heart_rate" checked', form)
    assert "Propose a second measurement" in analyst.get(f"/releases/{hospital[2]['lab']}").text


def test_everything_can_be_taken_home(hospital, analyst):
    studio, _, releases = hospital
    place = f"/releases/{releases['lab']}/export"
    found = {name: analyst.get(f"{place}/{name}") for name in ("report", "explore", "release", "recipe", "card")}
    assert all(answer.status == 200 for answer in found.values())
    assert PrivateDensity.from_bytes(found["release"].body) == studio.store.density(releases["lab"])
    assert json.loads(found["card"].body)["columns"][0]["name"] == "heart_rate"
    assert found["report"].text.startswith("<!doctype html>")
    assert f'filename="{releases["lab"]}.fog"' in found["release"].header("content-disposition")
    assert len({answer.header("content-disposition") for answer in found.values()}) == len(found)
    assert analyst.get(f"{place}/everything").status == 404


def test_there_is_nothing_where_nothing_is(hospital, custodian):
    names = ["/nowhere", *(f"/data/nobody{part}" for part in ("", "/outlook", "/review")), "/progress/nothing"]
    names += ["/progress/nothing/state", "/proposals/nothing", "/static/views.py", "/static/", "/releases/..%2Fwork"]
    tabs = [f"/releases/nothing{tab}" for tab in ("", *(f"/{tab}" for tab in TABS), "/export/report")]
    for path in (*names, *tabs, "/releases/../config", "/data/../../etc/passwd"):
        assert custodian.get(path).status == 404, path
    assert custodian.post("/data/nobody/release", {"key": "x"}).status == 404
    assert custodian.post("/progress/nothing/fetch", {"key": "x"}).status == 403


def test_who_is_there_need_not_enter_again(custodian):
    assert custodian.get("/enter").header("location") == "/"
    assert custodian.get("/static/icon.svg").header("content-type") == "image/svg+xml"
    assert custodian.get("/", method="HEAD").status == 200


def test_a_header_that_cannot_be_read_is_one_sentence(tmp_path):
    from fogline.studio.app import make_app

    config = hospital_config(tmp_path)
    studio = open_studio(config)
    client = enter(make_app(studio), "custodian")
    (tmp_path / "secret-place" / "lab.csv").unlink()
    for path in ("/data/lab", "/data/lab?column=heart_rate", "/data/lab/outlook?column=heart_rate"):
        text = client.get(path).text
        assert "cannot be opened at the moment" in text
        assert "secret-place" not in text
    assert client.get("/data/lab/review?column=heart_rate").status == 303
    studio.close()


def test_a_database_is_a_data_set_too(tmp_path):
    import sqlite3

    from hospital import STEPS

    from fogline.studio.app import make_app
    from fogline.studio.config import Dataset, StudioConfig

    with sqlite3.connect(tmp_path / "hidden.db") as connection:
        connection.execute("create table visits (stay real, ward integer)")
        connection.executemany("insert into visits values (?, ?)", [(k % 30 + 0.5, k % 4) for k in range(600)])
    connection.close()
    source = f"sqlite:///{tmp_path}/hidden.db"
    one = Dataset("db", source, "Database", account="db", query="select stay, ward from visits")
    studio = open_studio(
        StudioConfig((one,), tmp_path / "s", tmp_path / "l", tmp_path / "m", cap=(4.0, 0.0), time_steps=STEPS)
    )
    client = enter(make_app(studio), "custodian")
    text = client.get("/data/db").text
    assert re.findall(r'name="column" value="(\w+)"', text) == ["stay", "ward"]
    name = released(studio, client, "db", "column=stay&low.stay=0&high.stay=40&epsilon=2")
    assert studio.store.density(name).count == pytest.approx(600, abs=30)
    recipe = client.get(f"/releases/{name}/export/recipe").text
    assert "hidden" not in recipe
    assert 'query = "SELECT ..."' in recipe
    studio.close()


def test_every_route_is_visited_here(hospital):
    """All addresses but the one for what is nowhere are named in this file."""
    source = Path(__file__).read_text(encoding="utf-8") + "/enter /leave"
    for route in routes(hospital[0])[:-1]:
        parts = [part for part in re.split(r"\{[^}]*\}|/", route.path) if part]
        for part in parts:
            assert part in source, route.path
