"""The page: well formed, self-contained, escaped, honest."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from fogline.datasets.simulated import gaussian_mixture4, own_mixture, uniform_box
from fogline.estimators import PrivateModalRegression, PrivateModeClustering, PrivateModes
from fogline.report import WideFindings, document, find, render_report, write_report
from fogline.report._svg import tick_label, ticks
from fogline.testing import seeded_noise

HOSTILE = '<script>alert(1)</script>" onload="x'


def fitted(X, bounds, **options):
    with seeded_noise(0):
        return PrivateModes(epsilon=1.0, delta=1e-5, bounds=bounds, **options).fit(X)


def clustered(X, bounds, epsilon=1.0, **options):
    with seeded_noise(0):
        return PrivateModeClustering(epsilon=epsilon, delta=1e-5, bounds=bounds, **options).fit(X)


def regressed(X, y, x_bounds, y_bounds, **options):
    with seeded_noise(0):
        model = PrivateModalRegression(epsilon=1.0, delta=1e-5, x_bounds=x_bounds, y_bounds=y_bounds, **options)
        return model.fit(X, y)


def three_groups(d, n=3000):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 0.5, (n // 3, d)) for m in (2.0, 5.0, 8.0)])


def two_lines(n=3000):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (n, 1))
    return x, x[:, 0] + rng.choice([0.0, 2.0], n) + rng.normal(0, 0.1, n)


@pytest.fixture(scope="module")
def four():
    return fitted(gaussian_mixture4(5000, random_state=0).X, [(-10, 10)] * 2)


CASES = {
    "one column": lambda: fitted(own_mixture(5000, 1, random_state=0).X, [(-6, 6)]),
    "two columns": lambda: fitted(gaussian_mixture4(3000, random_state=0).X, [(-10, 10)] * 2),
    "three columns": lambda: fitted(own_mixture(5000, 3, random_state=0).X, [(-6, 6)] * 3),
    "four columns": lambda: fitted(np.random.default_rng(0).normal(0, 0.5, (2000, 4)), [(-4, 4)] * 4),
    "nothing in four": lambda: fitted(np.empty((0, 4)), [(0, 1)] * 4),
    "nothing in one": lambda: fitted(uniform_box(500, 1, random_state=0).X, [(0, 1)]),
    "nothing in two": lambda: fitted(uniform_box(500, 2, random_state=0).X, [(0, 1)] * 2),
    "nothing in three": lambda: fitted(uniform_box(500, 3, random_state=0).X, [(0, 1)] * 3),
    "no records": lambda: fitted(np.empty((0, 2)), [(0, 1)] * 2),
    "asked for two of nothing": lambda: fitted(np.empty((0, 1)), [(0, 1)], n_modes=2),
    "more modes than hues": lambda: fitted(np.empty((0, 2)), [(0, 1)] * 2, n_modes=12),
    "clusters in one": lambda: clustered(three_groups(1), [(0, 10)]),
    "clusters in two": lambda: clustered(three_groups(2), [(0, 10)] * 2),
    "clusters in three": lambda: clustered(three_groups(3), [(0, 10)] * 3, n_clusters=3),
    "clusters in one component": lambda: clustered(three_groups(5), (0, 10), n_clusters=3, components=1),
    "clusters in two components": lambda: clustered(three_groups(5), (0, 10), n_clusters=3, components=2),
    "clusters in random directions": lambda: clustered(three_groups(8), (0, 10), n_clusters=3, projection="random"),
    "no clusters in two": lambda: clustered(np.empty((0, 2)), [(0, 1)] * 2),
    "no clusters in five": lambda: clustered(np.empty((0, 5)), [(0, 1)] * 5),
    "branches": lambda: regressed(*two_lines(), (0, 1), (-1, 4)),
    "no branches": lambda: regressed(np.empty((0, 1)), np.empty(0), (0, 1), (0, 1)),
    "fixed bandwidth": lambda: fitted(own_mixture(2000, 1, random_state=0).X, [(-6, 6)], bandwidth=0.05),
}


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_well_formed_and_self_contained(case, Page):
    estimator = CASES[case]()
    text = render_report(find(estimator))
    page = Page(text)
    page.assert_self_contained()
    assert str(estimator.guarantee_).split("(")[0].strip() in page.text
    page.assert_tells_of(estimator)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_page_shows_what_was_released(four, Page):
    page = Page(render_report(find(four, ["east", "north"]), title="A title", command="fogline modes x.csv"))
    for word in ("A title", "fogline modes x.csv", "east", "north", "opendp", "numpy", "python", "4 peaks stand"):
        assert word in page.text
    assert page.tags.count("ellipse") == 2 * 2 * len(four.modes_)  # for a desk and for a phone
    assert "Not certified" in page.text  # the noise of this test is seeded


def test_a_certified_release_says_so(Page):
    estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit(np.full((100, 1), 0.5))
    assert "Certified" in Page(render_report(find(estimator))).text


def test_names_title_and_command_are_escaped(four, Page):
    text = render_report(find(four, [HOSTILE, "a & b"]), title=HOSTILE, command=HOSTILE)
    page = Page(text)
    assert "script" not in page.tags
    assert "<script" not in text
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert "alert(1)" in page.text


def test_the_style_has_the_hash_of_the_policy(four):
    import base64
    import hashlib

    text = render_report(find(four))
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    claimed = re.search(r"sha256-([^' ]+)", text).group(1).replace("&#43;", "+").replace("&#x2B;", "+")
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() == claimed


def test_no_record_in_page_or_document():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(50, 5, 500), np.full(100, 123.456789), [987.654321]])[:, None]
    findings = find(fitted(X, [(0, 200)]), ["amount"])
    for text in (render_report(findings), json.dumps(document(findings))):
        assert "123.456" not in text
        assert "987.65" not in text


def test_write_report_takes_names_from_the_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"height of a person": np.random.default_rng(0).normal(170, 9, 500)})
    path = write_report(fitted(frame, [(100, 250)]), tmp_path / "page.html")
    assert path == tmp_path / "page.html"
    assert "height of a person" in path.read_text(encoding="utf-8")


def test_many_columns_show_those_that_tell_the_modes_apart(Page):
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.3, (4000, 7))
    X[::2, [2, 5]] += 2.0
    findings = find(fitted(X, [(-3, 5)] * 7, n_modes=2))
    assert isinstance(findings, WideFindings)
    assert findings.picture.names == ("x3", "x6")
    page = Page(render_report(findings))
    assert "1 more is in the JSON document" in page.text
    assert [len(mode["position"]) for mode in document(findings)["modes"]] == [7, 7]


def test_columns_must_fit(four):
    with pytest.raises(ValueError, match="columns"):
        find(four, ["only one"])
    with pytest.raises(ValueError, match="columns"):
        find(CASES["no branches"](), ["only one"])


def test_the_cluster_page_shows_centres_sizes_and_shares(Page):
    model = clustered(three_groups(5), (0, 10), n_clusters=3, components=2)
    findings = find(model, ["a", "b", "c", "d", "e"])
    page = Page(render_report(findings))
    assert findings.picture.names == ("component 1", "component 2")
    assert page.tags.count("ellipse") == 2 * 2 * 3
    for word in ("3 clusters, as asked for", "component 1", "scale", "projection", "share of ρ", "predict"):
        assert word in page.text
    for size in model.sizes_:
        assert f"{size:.0f}" in page.text
    content = document(findings)
    assert sum(content["shares"].values()) == pytest.approx(1)
    assert [len(cluster["center"]) for cluster in content["clusters"]] == [5, 5, 5]
    assert sum(cluster["share"] for cluster in content["clusters"]) == pytest.approx(1)


def test_the_map_of_clusters_has_each_centre_in_its_own_region():
    picture = find(clustered(three_groups(2), [(0, 10)] * 2)).picture
    for k, place in enumerate(picture.places):
        i, j = (int(np.argmin(np.abs(axis - value))) for axis, value in zip(picture.axes, place, strict=True))
        assert picture.labels[i, j] == k


def test_fewer_clusters_than_asked_for_are_said(Page):
    model = clustered(three_groups(2), [(0, 10)] * 2, n_clusters=60)
    page = Page(render_report(find(model)))
    assert len(model.cluster_centers_) < 60
    assert f"{len(model.cluster_centers_)} of the 60 clusters asked for can be seen" in page.text
    assert "clusters of 60 asked for" in page.text


def test_the_branch_page_shows_both_branches_and_their_set(Page):
    findings = find(CASES["branches"](), ["age", "pay"])
    page = Page(render_report(findings))
    for word in ("pay by age", "2 branches stand above the fog", "typical pay", "90% prediction set"):
        assert word in page.text
    middle = findings.rows[len(findings.rows) // 2]
    assert np.sort(middle.positions) == pytest.approx([0.5, 2.5], abs=0.2)
    assert len(middle.intervals) == 2
    (panel,) = findings.panels
    assert not panel.inside[:, np.argmin(np.abs(panel.set_axes[1] - 1.5))].any()  # nothing is predicted between
    assert len(document(findings)["rows"]) == len(findings.rows)


def test_two_x_give_three_panels():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (3000, 2))
    findings = find(regressed(X, X.sum(axis=1) + rng.normal(0, 0.1, 3000), [(0, 1)] * 2, (-0.5, 2.5), bandwidth=0.15))
    assert [panel.fixed for panel in findings.panels] == [(0.25,), (0.5,), (0.75,)]
    assert render_report(findings).count("<svg") >= 3


def test_a_missing_jinja_is_named(four, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"fogline\[cli\]"):
        render_report(find(four))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-10, 10), (0.5, 6.5), (1e-6, 3e-6), (-1e9, 1e9), (1000, 1000.5)])
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert all(low - 1e-9 * abs(low) <= t <= high * (1 + 1e-9) for t in found)
    assert len({tick_label(t) for t in found}) == len(found)
