"""Journeys in a real browser: what a custodian and an analyst do, by mouse, by keyboard, on a phone, in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from asgi_client import Client
from browser import free_port, launched, served
from hospital import TOKENS, hospital_config, open_studio, released

import fogline
from fogline.report.interactive import write_interactive
from fogline.studio.app import links, make_app
from fogline.testing import seeded_noise

PATIENCE = 300_000
"""Milliseconds after which a page has not come; a bound for hanging, not for speed."""

CONTRAST = Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A studio of these journeys, its address and its links; it has one release, whichever journey comes first."""
    port = free_port()
    config = hospital_config(tmp_path_factory.mktemp("journeys"), port=port, cap=(10.0, 0.0))
    studio = open_studio(config)
    app = make_app(studio)
    client = Client(app, host=f"127.0.0.1:{port}", origin=f"http://127.0.0.1:{port}")
    client.post("/enter", {"token": TOKENS["custodian"]})
    released(studio, client, "lab", "column=heart_rate&epsilon=0.9")
    with served(app, port) as address:
        yield studio, address, links(config, TOKENS)
    studio.close()


@pytest.fixture
def visitor(browser, place):
    """Opens pages as somebody, and fails where a page complains on its console."""
    contexts, complaints = [], []

    def come(role=None, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if role is not None:
            page.goto(place[2][role])
            page.wait_for_selector("#datasets")
        return page

    yield come
    for context in contexts:
        context.close()
    assert complaints == []


def release(page, column="heart_rate", dataset="Laboratory", epsilon=None):
    """Release a column, and count the clicks."""
    clicks = 0
    page.get_by_role("link", name=re.compile(f"^{dataset}")).first.click()
    page.get_by_label(column, exact=True).click()
    clicks += 2
    if epsilon is not None:
        page.get_by_label("ε =").fill(epsilon)
    page.get_by_role("button", name="Review the release").click()
    page.get_by_role("button", name="Release once").click()
    clicks += 2
    page.wait_for_url("**/releases/**")
    return clicks


def test_a_first_release_takes_at_most_six_clicks(visitor, place):
    page = visitor("custodian")
    assert "#" not in page.url  # the token is not left in the address
    before = place[0].ledger.remaining("visits").pure
    clicks = release(page, "age", "Hospital visits")
    assert clicks <= 6
    assert page.get_by_role("heading", level=1).inner_text() == "age"
    assert page.locator("svg.figure:visible").count() >= 1
    assert place[0].ledger.remaining("visits").pure == pytest.approx(before - 1.0)


def test_the_slider_shows_accuracy_risk_and_what_would_be_left(visitor):
    page = visitor("custodian")
    page.get_by_role("link", name=re.compile("^Hospital visits")).first.click()
    page.get_by_label("stay", exact=True).check()
    page.wait_for_selector("#outlook table")
    slider = page.locator("#slider")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowLeft")
    epsilon = float(page.get_by_label("ε =").input_value())
    assert epsilon < 1
    assert slider.get_attribute("aria-valuetext") == f"epsilon {epsilon:g}"
    words = f"this release {epsilon:g}"
    page.wait_for_function("words => document.getElementById('outlook').innerText.includes(words)", arg=words)
    after = page.locator("#outlook").inner_text()
    assert "right with 10%" in after


def test_a_form_guides_to_what_is_missing(visitor):
    page = visitor("custodian")
    page.get_by_role("link", name=re.compile("^Hospital visits")).first.click()
    page.get_by_role("button", name="Review the release").click()
    assert page.get_by_role("alert").first.inner_text() == "Choose one to three columns."
    page.get_by_label("name", exact=True).check()
    page.get_by_role("button", name="Review the release").click()
    assert "lowest and the highest value" in page.get_by_role("alert").first.inner_text()
    page.get_by_label("name from").fill("0")
    page.get_by_label("name to", exact=True).fill("10")
    page.get_by_role("button", name="Review the release").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Release this?"


def test_a_named_range_fills_in_its_ends(visitor):
    page = visitor("custodian")
    page.get_by_role("link", name=re.compile("^Laboratory")).first.click()
    page.get_by_label("ward", exact=True).check()
    page.get_by_label("Public range of ward").select_option("stars")
    assert page.get_by_label("ward from").input_value() == "1"
    assert page.get_by_label("ward to", exact=True).input_value() == "5"
    page.get_by_label("ward to", exact=True).fill("9")
    assert page.get_by_label("Public range of ward").input_value() == ""


def test_an_analyst_proposes_and_the_custodian_accepts(visitor, place):
    analyst, custodian = visitor("analyst"), visitor("custodian")
    before = place[0].ledger.remaining("other-lab").pure
    analyst.get_by_role("link", name=re.compile("^Other laboratory")).first.click()
    analyst.get_by_label("heart_rate", exact=True).check()
    analyst.get_by_label("ε =").fill("0.5")
    analyst.get_by_role("button", name="Review the proposal").click()
    analyst.get_by_label("Why it is wanted").fill("For the spring report")
    analyst.get_by_role("button", name="Propose it").click()
    analyst.wait_for_selector("text=open")
    assert place[0].ledger.remaining("other-lab").pure == before
    custodian.reload()
    custodian.get_by_role("link", name="One proposal waits for your decision.").click()
    custodian.locator("section[aria-labelledby=proposals] a").first.click()
    assert "For the spring report" in custodian.inner_text("main")
    custodian.get_by_role("link", name="Review it for release").click()
    custodian.get_by_role("button", name="Release once").click()
    custodian.wait_for_url("**/releases/**")
    analyst.reload()
    analyst.get_by_role("link", name="see the release").click()
    assert analyst.get_by_role("heading", level=1).inner_text() == "heart_rate"
    assert analyst.get_by_role("link", name="Propose a second measurement").is_visible()


def test_a_release_is_explored_from_tab_to_tab(visitor, place):
    page = visitor("custodian")
    release(page, "stay", "Hospital visits", "0.8")
    spent = place[0].ledger.remaining("visits").pure
    tabs = page.get_by_role("navigation", name="Readings of the release")
    tabs.get_by_role("link", name="Slices and quantiles").click()
    page.get_by_label("Resolution").select_option("32")
    page.get_by_role("button", name="Show").click()
    assert page.get_by_label("Resolution").input_value() == "32"
    tabs.get_by_role("link", name="Ask").click()
    page.get_by_label("A question in words").fill("P(stay > 10)")
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:has-text('P(stay > 10)')")
    tabs.get_by_role("link", name="Modes").click()
    page.wait_for_selector("h2:has-text('The released density')")
    tabs.get_by_role("link", name="Clusters").click()
    page.wait_for_selector("h2:has-text('The map')")
    assert place[0].ledger.remaining("visits").pure == spent


def test_a_release_is_measured_again_with_more_budget(visitor, place):
    page = visitor("custodian")
    before = place[0].ledger.remaining("lab").pure
    release(page, "heart_rate", "Laboratory", "0.4")
    page.get_by_role("link", name="Measure again with more budget").click()
    assert page.get_by_label("heart_rate", exact=True).is_checked()
    assert page.get_by_label("ε =").input_value() == "0.8"
    page.get_by_role("button", name="Review the release").click()
    page.get_by_role("button", name="Release once").click()
    page.wait_for_url("**/releases/**")
    page.get_by_role("link", name="Compare").click()
    label = next(text for text in page.locator("select[name=with] option").all_inner_texts() if "epsilon 0.4" in text)
    page.get_by_label("Compare with").select_option(label=label)
    page.get_by_role("button", name="Compare").click()
    assert "Both are releases of the same data" in page.inner_text("main")
    assert place[0].ledger.remaining("lab").pure == pytest.approx(before - 0.4 - 0.8)


def test_exports_are_downloaded(visitor, tmp_path):
    page = visitor("custodian")
    page.locator("section[aria-labelledby=releases] tbody a").first.click()
    page.get_by_role("link", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("^Page to explore")).click()
    assert download.value.suggested_filename.endswith(".html")
    download.value.save_as(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 1_000_000


def test_the_back_button_does_not_spend_again(visitor, place):
    page = visitor("custodian")
    release(page, "heart_rate", "Laboratory", "0.3")
    spent = place[0].ledger.remaining("lab").pure
    first = page.url
    page.go_back()
    page.go_back()
    if page.get_by_role("button", name="Release once").count():
        page.get_by_role("button", name="Release once").click()
        page.wait_for_url("**/releases/**")
        assert page.url == first
    assert place[0].ledger.remaining("lab").pure == spent


def test_the_budget_page_lists_what_was_taken(visitor):
    page = visitor("analyst")
    page.get_by_role("navigation", name="Studio").get_by_role("link", name="Budget").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Budget"
    assert page.locator("svg.budget").count() == 3


def test_leaving_closes_the_door(visitor, place):
    page = visitor("custodian")
    page.get_by_role("button", name="Leave").click()
    page.wait_for_url("**/enter")
    page.goto(place[1] + "/ledger")
    assert page.url.endswith("/enter")


def test_everything_is_reached_by_keyboard_alone(visitor):
    page = visitor("custodian")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(12):
        if page.evaluate("document.activeElement.classList.contains('card')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/data/**")
    box = page.locator(".pick input").first
    box.focus()
    page.keyboard.press("Space")
    assert box.is_checked()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_the_form_works_without_a_script(browser, place):
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(place[1] + "/enter")
    page.get_by_label("Token").fill(TOKENS["custodian"])
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("link", name=re.compile("^Hospital visits")).first.click()
    page.get_by_label("age", exact=True).check()
    page.get_by_role("button", name="Update the numbers").click()
    assert page.get_by_label("age from").input_value() == "0"
    page.get_by_role("button", name="Review the release").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Release this?"
    context.close()


PAGES = ("/", "/ledger", "/data/visits", "/data/visits?column=age", "/data/visits/review?column=age&epsilon=0.1")
TABS = (
    "",
    "/curve",
    "/ask",
    "/ask?q=quartiles+heart_rate",
    "/ask?q=nonsense",
    "/modes",
    "/clusters",
    "/branches",
    "/compare",
    "/export",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_and_named(visitor, place, scheme):
    """Contrast of all text, labels of all fields, names of all pictures and links, headings in order."""
    page = visitor("custodian", color_scheme=scheme)
    shown = place[0].store.releases()[0].id
    for path in (*PAGES, *(f"/releases/{shown}{tab}" for tab in TABS)):
        page.goto(place[1] + path)
        assert page.evaluate(CONTRAST) == [], path
    stranger = visitor(color_scheme=scheme)
    stranger.goto(place[1] + "/enter")
    assert stranger.evaluate(CONTRAST) == []


def test_a_phone_shows_all_of_a_page_without_moving_it_sideways(visitor, place):
    page = visitor("custodian", viewport={"width": 390, "height": 844}, device_scale_factor=2)
    shown = place[0].store.releases()[0].id
    for path in (*PAGES, *(f"/releases/{shown}{tab}" for tab in TABS)):
        page.goto(place[1] + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_can_be_read_and_named_on_a_phone(visitor, place, tmp_path, scheme):
    path = place[0].store.density(place[0].store.releases()[0].id).report(tmp_path / "report.html")
    page = visitor(color_scheme=scheme, viewport={"width": 390, "height": 844}, offline=True)
    page.goto(path.as_uri())
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_to_explore_works_from_a_file(visitor, place, tmp_path, scheme):
    stored = place[0].store.releases()[0]
    path = write_interactive(place[0].store.density(stored.id), tmp_path / "page.html")
    page = visitor(color_scheme=scheme, viewport={"width": 390, "height": 844}, offline=True)
    page.goto(path.as_uri())
    page.wait_for_selector("#drawing svg")
    before = page.inner_text("#told")
    page.locator("#quantile").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("text => document.getElementById('told').innerText !== text", arg=before)
    assert page.inner_text("#told").startswith("51% have")
    page.get_by_label("Show").select_option("below")
    assert page.locator("#numbers tbody tr").count() == 7
    page.get_by_role("button", name="Begin again").click()
    page.wait_for_function("text => document.getElementById('told').innerText === text", arg=before)
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def shown_numbers(page):
    """Rows of the table of numbers: value, lower and upper end."""
    rows = page.eval_on_selector_all("#numbers tbody tr", "rows => rows.map(row => row.innerText)")
    return {
        row.split("\t")[0]: [float(x) for x in row.replace("%", "").split("\t")[1:2]]
        + [float(x) for x in row.replace("%", "").split("\t")[2].split(" to ")]
        for row in rows
    }


def test_the_page_to_explore_is_no_surer_than_the_release(visitor, tmp_path):
    rng = np.random.default_rng(3)
    age = rng.uniform(20, 80, 4000)
    stay = np.where(rng.random(4000) < 0.2, 0.0, rng.gamma(2.0, 1.0 + age / 20))
    with seeded_noise(5):
        density = fogline.release(
            pd.DataFrame({"age": age, "stay": stay}), bounds={"age": (0, 100), "stay": (0, 60)}, epsilon=1.0
        )
    page = visitor(offline=True)
    page.goto(write_interactive(density, tmp_path / "page.html").as_uri())
    page.wait_for_selector("#drawing svg")
    whole, mean, early = shown_numbers(page), density.mean("stay"), density.quantile(0.05, "stay")
    assert whole["mean"] == pytest.approx([mean.value, mean.low, mean.high], rel=0.02)
    assert whole["5% quantile"] == pytest.approx([early.value, early.low, early.high], rel=0.02, abs=0.01)
    page.evaluate(
        "() => { const from = document.querySelector('[aria-label=\"age from\"]'); from.value = 60;"
        " from.dispatchEvent(new Event('input')); }"
    )
    page.wait_for_function("() => document.getElementById('told').innerText.startsWith('Where age')")
    slice_, old = shown_numbers(page), density.given(age=(60, 100))
    for name, own in (("mean", old.mean("stay")), ("median", old.quantile(0.5, "stay"))):
        _, low, high = slice_[name]
        assert high - low > 0.8 * (own.high - own.low)
        assert low <= own.value <= high


def test_the_script_of_accessibility_finds_what_is_planted(visitor):
    page = visitor()
    page.set_content(
        "<h1>A</h1><h3>B</h3><p style='color:#999;background:#aaa'>faint</p><input name='x'><svg></svg><a href='#'></a>"
    )
    found = " ".join(page.evaluate(CONTRAST))
    for words in ("contrast", "no label: x", "a picture without a name", "a link without a name", "out of order"):
        assert words in found
