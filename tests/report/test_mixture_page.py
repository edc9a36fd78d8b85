"""The page and the document of a Gaussian mixture."""

import json

import numpy as np
import pytest

from fogline import PrivateGaussianMixture
from fogline.queries.ball_search import NotSeparable
from fogline.report import document, find, render_report
from fogline.testing import seeded_noise


def fitted(d, **options):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(m, 1, size=(2000, d)) for m in (-3, 3)])
    with seeded_noise(0):
        return PrivateGaussianMixture(
            **{"n_components": 2, "epsilon": 2.0, "delta": 1e-6, "radius": 20.0, "steps": 1} | options
        ).fit(rows)


@pytest.fixture(scope="module", params=[1, 2, 3, 7])
def found(request):
    return find(fitted(request.param), [f"<b>column {j}</b>" for j in range(request.param)])


def test_the_page_is_self_contained(found, Page):
    page = Page(render_report(found))
    page.assert_self_contained()
    page.assert_tells_of(found.estimator)
    assert "column 0" in page.text
    assert "<b>column" not in page.source
    drawn = min(len(found.columns), 4)
    risk = 2  # pictures of what it means for a person
    assert page.source.count('class="figure"') == max(1, drawn * (drawn - 1) // 2) + risk


def test_the_document_is_plain(found):
    told = json.loads(json.dumps(document(found)))
    assert told["format"] == "fogline-mixture-1"
    assert len(told["components"]) == 2
    assert np.shape(told["components"][0]["covariance"]) == (len(found.columns),) * 2
    assert told["guarantee"]["statement"].startswith("Not certified")


def test_the_numbers_that_were_compared_are_shown(Page):
    model = fitted(2, n_components=None)
    page = Page(render_report(find(model)))
    assert "How many components" in page.text


def test_a_verdict_is_told(Page):
    model = fitted(2)
    model.verdict_ = NotSeparable("recursive", 2, 5, "take more records")
    model.message_ = str(model.verdict_)
    Page(render_report(find(model))).assert_tells_of(model)
