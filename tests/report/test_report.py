"""The page: well formed, self-contained, escaped, honest."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from fogline import PrivateModes
from fogline.datasets import gaussian_mixture4, own_mixture, uniform_box
from fogline.report import document, find, render_report, write_report
from fogline.report.svg import tick_label, ticks
from fogline.testing import seeded_noise

HOSTILE = '<script>alert(1)</script>" onload="x'
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Checks nesting and collects tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def fitted(X, bounds, **options):
    with seeded_noise(0):
        return PrivateModes(epsilon=1.0, delta=1e-5, bounds=bounds, **options).fit(X)


@pytest.fixture(scope="module")
def four():
    return fitted(gaussian_mixture4(5000, random_state=0).X, [(-10, 10)] * 2)


CASES = {
    "one column": lambda: fitted(own_mixture(5000, 1, random_state=0).X, [(-6, 6)]),
    "two columns": lambda: fitted(gaussian_mixture4(3000, random_state=0).X, [(-10, 10)] * 2),
    "three columns": lambda: fitted(own_mixture(5000, 3, random_state=0).X, [(-6, 6)] * 3),
    "nothing in one": lambda: fitted(uniform_box(500, 1, random_state=0).X, [(0, 1)]),
    "nothing in two": lambda: fitted(uniform_box(500, 2, random_state=0).X, [(0, 1)] * 2),
    "nothing in three": lambda: fitted(uniform_box(500, 3, random_state=0).X, [(0, 1)] * 3),
    "no records": lambda: fitted(np.empty((0, 2)), [(0, 1)] * 2),
    "asked for two of nothing": lambda: fitted(np.empty((0, 1)), [(0, 1)], n_modes=2),
    "more modes than hues": lambda: fitted(np.empty((0, 2)), [(0, 1)] * 2, n_modes=12),
    "fixed bandwidth": lambda: fitted(own_mixture(2000, 1, random_state=0).X, [(-6, 6)], bandwidth=0.05),
}


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_well_formed_and_self_contained(case):
    estimator = CASES[case]()
    text = render_report(find(estimator))
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "foreignobject"} & set(page.tags)
    assert set(re.findall(r"https?://[^\"' <]*", text)) <= {"http://www.w3.org/2000/svg"}
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name != "style"
        if name in ("href", "src", "xlink:href"):
            assert value.startswith("#")
    assert "default-src 'none'" in text
    assert not re.search(r"\b(nan|inf)\b", " ".join(str(value) for name, value in page.attributes if name != "content"))
    assert str(estimator.guarantee_).split("(")[0].strip() in page.text
    assert estimator.guarantee_.explain() in page.text
    if estimator.message_:
        assert estimator.message_[1:] in page.text
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_page_shows_what_was_released(four):
    page = Page(render_report(find(four, ["east", "north"]), title="A title", command="fogline modes x.csv"))
    for word in ("A title", "fogline modes x.csv", "east", "north", "opendp", "numpy", "python", "4 peaks stand"):
        assert word in page.text
    assert page.tags.count("ellipse") == 2 * len(four.modes_)
    assert "Not certified" in page.text  # the noise of this test is seeded


def test_a_certified_release_says_so():
    estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit(np.full((100, 1), 0.5))
    assert "Certified" in Page(render_report(find(estimator))).text


def test_names_title_and_command_are_escaped(four):
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


def test_columns_must_fit(four):
    with pytest.raises(ValueError, match="columns"):
        find(four, ["only one"])


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
