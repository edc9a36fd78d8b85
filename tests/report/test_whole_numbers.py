"""Columns of whole numbers are drawn in steps, one per value, whether they were declared or only show."""

import re

import numpy as np
import pytest

from fogline import release
from fogline.report.density import column_step, find_density, read_curve
from fogline.report.strata import find_strata
from fogline.testing import seeded_noise

RNG = np.random.default_rng(5)
NIGHTS = RNG.poisson(6, 4000).astype(float)
HOURS = RNG.gamma(4.0, 2.0, 4000)
MANY_ZEROS = np.where(RNG.random(4000) < 0.5, 0.0, HOURS)
NARROW = RNG.normal(7.0, 0.05, 4000)


def posterior(x, **options):
    with seeded_noise(1):
        return release(x, columns=["x"], bounds=(0, 30), epsilon=1.0, **options).posterior


@pytest.mark.parametrize(
    ("x", "step"), [(NIGHTS, 1.0), (HOURS, 0.0), (MANY_ZEROS, 0.0), (NARROW, 0.0), (NIGHTS * 2.3, 0.0)]
)
def test_whole_numbers_show_and_others_do_not(x, step):
    assert column_step(posterior(x), 0) == step


def test_a_declared_step_is_taken_as_it_is():
    assert column_step(posterior(HOURS, steps=[0.5]), 0) == 0.5


@pytest.mark.parametrize("options", [{}, {"steps": [1.0]}])
def test_each_value_has_one_step_with_its_share(options):
    curve = read_curve(posterior(NIGHTS, **options), 0, "x")
    assert curve.step == 1.0
    assert curve.band.x.tolist() == list(range(31))
    assert curve.band.value.sum() == pytest.approx(1.0, abs=1e-6)
    true = np.bincount(NIGHTS.astype(int), minlength=31) / len(NIGHTS)
    assert np.abs(curve.band.value - true).max() < 0.03
    assert (curve.band.low <= curve.band.value + 1e-12).all()
    assert (curve.band.value <= curve.band.high + 1e-12).all()
    x, value, low, high = curve.outlines(curve.limits)
    assert (x[0], x[-1]) == (-0.5, 30.5)
    assert len(x) == len(value) == len(low) == len(high) == 62
    assert np.array_equal(value[::2], value[1::2])  # each step is level
    assert not curve.atoms  # they are the steps


def test_a_coarse_resolution_and_many_values_are_drawn_as_a_line():
    found = posterior(NIGHTS)
    assert read_curve(found, 0, "x", points=16).step == 0.0
    with seeded_noise(1):
        wide = release(np.round(HOURS * 100), columns=["x"], bounds=(0, 6000), steps=[1.0], epsilon=1.0)
    assert find_density(wide).curves[0].step == 0.0


def test_groups_of_one_column_are_drawn_alike():
    from fogline import private_strata

    pd = pytest.importorskip("pandas")
    ward = np.where(np.arange(4000) < 3700, "large", "small")
    frame = pd.DataFrame({"nights": NIGHTS, "ward": ward})
    with seeded_noise(1):
        strata = private_strata(
            frame, "ward", categories=["large", "small"], columns=["nights"], bounds=[(0, 30)], epsilon=1.0, delta=1e-6
        )
    read = find_strata(strata).read
    assert len(read) >= 2
    assert {found.curves[0].step for found in read.values()} == {1.0}
    heights = read["large"].curves[0].band.value
    turns = np.diff(np.sign(np.diff(heights[heights > 0.01])))
    assert np.count_nonzero(turns) <= 3  # no comb


def test_a_spike_does_not_flatten_the_rest():
    from fogline.density.posterior.estimates import Band
    from fogline.report._density_plots import DensityCurve, posterior_curve

    value = np.full(64, 0.01)
    value[3] = 0.5
    band = Band(np.arange(64.0), value, 0.9 * value, 1.1 * value, 0.9 * value, 1.1 * value, 0.95)
    curve = DensityCurve("stay", (0.0, 64.0), band, (), ())
    assert curve.top < 0.02
    assert "50% in one cell" in posterior_curve(curve)
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ (-?[\d.]+)", posterior_curve(curve))]
    assert min(heights) >= 0  # nothing is drawn above the picture


def test_names_of_a_legend_stay_apart():
    from fogline.report._density_plots import legend_words

    assert legend_words(["Hospital visits 2024", "Hospital visits 2025"], 12) == ["…visits 2024", "…visits 2025"]
