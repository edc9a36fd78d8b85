"""The page of a fit: well formed, self-contained, escaped, and says what was released."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from fogline.estimators import PrivateHellinger
from fogline.families import Normal
from fogline.report import FitFindings, document, find, render_report, write_report
from fogline.testing import seeded_noise

NORMAL = {"family": "normal", "parameter_bounds": {"mu": (-5, 15), "sigma": (0.5, 6)}}
HOSTILE = '<script>alert(1)</script>" onload="x'


def fitted(x, **options):
    with seeded_noise(0):
        return PrivateHellinger(**(NORMAL | options)).fit(x)


def sample(n=2000, outliers=0):
    x = np.random.default_rng(0).normal(5.0, 2.0, size=n)
    x[:outliers] = 9.8
    return x


def in_columns(d, n=1500):
    names = [f"mu_{i + 1}" for i in range(d)], [f"sigma_{i + 1}" for i in range(d)]
    box = dict.fromkeys(names[0], (-3, 3)) | dict.fromkeys(names[1], (0.5, 2))
    box |= {f"corr_{i + 1}{j + 1}": (-0.9, 0.9) for i in range(d) for j in range(i + 1, d)}
    family = {2: "bivariate normal", 3: "trivariate normal"}[d]
    return fitted(np.random.default_rng(0).normal(size=(n, d)), family=family, parameter_bounds=box, rho=0.5)


class Hollow(Normal):
    """A family without quantiles: the picture spans the bounds."""

    quantile = property()


CASES = {
    "clean": lambda: fitted(sample(), hdp=0.2),
    "a lump": lambda: fitted(sample(outliers=200), epsilon=1.0, delta=1e-5),
    "power divergence": lambda: fitted(sample(), pdp=(1.0, 0.4)),
    "an infinite density": lambda: fitted(
        np.random.default_rng(0).gamma(0.5, 2.0, 2000),
        family="gamma",
        parameter_bounds={"shape": (0.2, 3), "scale": (0.5, 5)},
        bounds=[(0, 40)],
        rho=0.5,
    ),
    "no quantiles": lambda: fitted(sample(), family=Hollow(), bounds=[(-10, 20)], rho=0.5),
    "two columns": lambda: in_columns(2),
    "three columns": lambda: in_columns(3),
    "gradient": lambda: fitted(sample(), method="gradient", hdp=0.2),
    "newton of one step": lambda: fitted(sample(), method="newton", iterations=1, epsilon=1.0, delta=1e-5),
    "no records": lambda: fitted(np.empty((0, 1)), epsilon=1.0, delta=1e-5),
    "no records, gradient": lambda: fitted(np.empty((0, 1)), method="gradient", rho=0.1),
}


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_well_formed_and_self_contained(case, Page):
    estimator = CASES[case]()
    findings = find(estimator)
    assert isinstance(findings, FitFindings)
    text = render_report(findings)
    page = Page(text)
    page.assert_self_contained()
    page.assert_tells_of(estimator)
    for name in estimator.params_:
        assert name in page.text
    assert json.loads(json.dumps(document(findings), allow_nan=False))["format"] == "fogline-fit-1"


def test_the_page_says_what_was_released(Page):
    estimator = CASES["a lump"]()
    page = Page(render_report(find(estimator, ["pay"]), command="fogline fit pay.csv"))
    (lump,) = estimator.explained_.lumps
    told = ["pay: a normal fit", "95% interval", "fogline fit pay.csv", "of the records explained"]
    told += [f"{100 * lump.share:.0f}% of the records in excess", "family, as smooth", "family, as it is"]
    told += [find(estimator).rows[0].words[0], f"{100 * estimator.explained_.share:.0f}%", "Not certified"]
    for words in told:
        assert words in page.text
    assert "budget was given" not in page.text


def test_hdp_is_told_in_plain_words(Page):
    page = Page(render_report(find(CASES["clean"]())))
    for words in ("0.2-HDP", "right with a chance of at most 0.718", "epsilon = 4.287 at delta = 1e-05"):
        assert words in page.text
    assert "No place holds clearly more records" in page.text


def test_curves_are_densities():
    curve = find(CASES["a lump"]()).curve
    step = curve.axis[1] - curve.axis[0]
    assert curve.released.sum() * step == pytest.approx(1, abs=0.05)
    assert curve.smoothed.sum() * step == pytest.approx(0.9, abs=0.05)
    assert curve.plain.max() > curve.smoothed.max()
    assert curve.axis[0] < 0 < 9.8 < curve.axis[-1] < 20
    assert np.all(curve.sd > 0)


def test_ellipses_of_a_normal_law(Page):
    text = render_report(find(CASES["three columns"](), ["a", "b", "c"]))
    assert Page(text).tags.count("ellipse") == 3 * 4
    assert "hold half and 95%" in Page(text).text


def test_a_descent_has_no_density(Page):
    findings = find(CASES["gradient"]())
    page = Page(render_report(findings))
    assert "4 noisy steps of a descent" in page.text
    assert "records, as released" not in page.text
    assert document(findings)["count"] is None


def test_names_are_escaped(tmp_path, Page):
    path = write_report(CASES["clean"](), tmp_path / "r.html", columns=[HOSTILE], title=HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "alert(1)" in Page(text).text


def test_columns_must_fit():
    with pytest.raises(ValueError, match="columns"):
        find(CASES["clean"](), ["a", "b"])


def test_a_missing_jinja_is_named(monkeypatch):
    findings = find(CASES["clean"]())
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"fogline\[cli\]"):
        render_report(findings)
