"""The page of modes of one column draws the posterior that the page of its density draws, not a kernel curve."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fogline
from fogline.report.density import read_curve
from fogline.report.modes import find_modes, modes_content, modes_document, modes_table
from fogline.report.page import render_report
from fogline.testing import seeded_noise


@pytest.fixture(scope="module")
def patients():
    """Ages of 30 000 patients: a quarter are infants, so that the density is 0.14 at 0 and 0.02 at 62."""
    rng = np.random.default_rng([10, 0])
    x = np.where(rng.random(30_000) < 0.25, rng.exponential(1.2, 30_000), rng.normal(62, 15, 30_000))
    with seeded_noise(1):
        shape = fogline.release(
            np.clip(np.floor(x), 0, 110)[:, None], columns=["age"], bounds=[(0, 125)], steps=[1], epsilon=1.0
        )
    return find_modes(fogline.PrivateModes().read(shape), ["age"])


def test_the_curve_shows_what_the_text_says(patients):
    (figure,) = modes_content(patients)["figures"]
    curve = read_curve(patients.estimator.density_.posterior, 0, "age")
    assert curve.band.value[0] == pytest.approx(0.14, abs=0.01)
    assert max(float(label) for label in re.findall(r">(0\.\d+)<", figure)) >= 0.1
    assert "densest at this end" in figure
    assert figure.count("badge-label") == 2  # the one mode, for a desk and for a phone
    page = " ".join(render_report(patients).split())
    assert "with a 95% band that holds all of it at once" in page
    assert "Read at bandwidth" not in page
    assert "A line along an end marks that the density is highest there." in page


def test_the_share_of_a_wall_is_told_with_its_error_everywhere(patients):
    (wall,) = patients.estimator.boundary_modes_
    assert abs(wall.share - 0.25) < 4 * wall.share_error < 0.1
    (told,) = modes_document(patients)["boundary_modes"]
    assert told["share_error"] == wall.share_error
    assert any(
        re.search(r"25\.\d% ± 0\.\d% of the records on its slopes", words) for words in modes_table(patients).sentences
    )


def test_the_plot_is_the_posterior_too(patients):
    pytest.importorskip("matplotlib").use("Agg")
    from fogline.report.modes import modes_plot

    ax = modes_plot(patients)
    assert ax.get_ylim()[1] > 0.14
