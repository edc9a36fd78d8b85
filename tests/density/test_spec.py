"""The public geometry: what is refused and why, and what the proof needs of the weights."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.density.spec import COUNT_WEIGHT, MAX_COEFFICIENTS, SketchSpec, as_bandwidth

pytestmark = pytest.mark.quick

BOXES = {
    "line": [(0.0, 10.0)],
    "lopsided plane": [(-3.0, 1.0), (100.0, 1100.0)],
    "space": [(0.0, 1.0), (-1.0, 1.0), (5.0, 9.0)],
}


@pytest.fixture(params=BOXES.values(), ids=BOXES.keys())
def spec(request):
    return SketchSpec.plan(request.param)


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        (None, TypeError),
        ([(5, 2)], ValueError),
        ([(1, 1)], ValueError),
        ([(0, math.nan)], ValueError),
        ([(0, math.inf)], ValueError),
        ([(-math.inf, 0)], ValueError),
        ([(-1.7e308, 1.7e308)], ValueError),
        ([(-8e307, 8e307)], ValueError),
        ([(1e16, 1e16 + 4)], ValueError),
        ([(0, 5e-324)], ValueError),
        ([(0, 1, 2)], ValueError),
        ([], (TypeError, ValueError)),
        ([("a", "b")], TypeError),
        ([(0, 1)] * 4, ValueError),
    ],
)
def test_bad_bounds_are_named(bounds, error):
    with pytest.raises(error, match="bounds"):
        SketchSpec.plan(bounds)


@pytest.mark.parametrize("bounds", [(1.7e9, 1.7e9 + 3600), (1.7e18, 1.7e18 + 8.64e13), (0, 1e-40), (-1e40, 1e40)])
def test_unusual_units_are_fine(bounds):
    spec = SketchSpec.plan([bounds])
    centres = spec.origin[0] + np.arange(spec.cells[0]) * spec.cell_widths[0]
    assert len(np.unique(centres)) == spec.cells[0]


def test_more_than_three_axes_need_random_features():
    with pytest.raises(ValueError, match=r"4 axes.*features='random'"):
        SketchSpec.plan([(0, 1)] * 4)


@pytest.mark.parametrize(
    "bandwidths",
    [
        "silverman",
        [],
        0.0,
        -0.1,
        math.nan,
        math.inf,
        [0.1, -0.1],
        [[0.1, 0.1, 0.1]],
        [[0.1, 0.2], [0.2, 0.2]],
    ],
)
def test_bad_bandwidths_are_named(bandwidths):
    with pytest.raises(ValueError, match="bandwidths"):
        SketchSpec.plan([(0, 1), (0, 1)], bandwidths)


@pytest.mark.parametrize("steps", [-1, math.nan, math.inf, 10.0, [1, 1]])
def test_bad_steps_are_named(steps):
    with pytest.raises(ValueError, match="steps"):
        SketchSpec.plan([(0, 10)], steps=steps)


@pytest.mark.parametrize("shares", [[0.5], [0.7, 0.7], [1.0, 0.0], [1.5, -0.5]])
def test_bad_shares_are_named(shares):
    with pytest.raises(ValueError, match="shares"):
        SketchSpec.plan([(0, 10)], [0.05, 0.1], shares=shares)


@pytest.mark.parametrize(("d", "bandwidth"), [(1, 1e-6), (2, 1e-3), (3, 0.01)])
def test_a_bandwidth_too_small_says_which_would_fit(d, bandwidth):
    with pytest.raises(ValueError, match="bandwidths are too small") as error:
        SketchSpec.plan([(0, 4)] * d, bandwidth)
    proposed = json.loads(str(error.value).split("about ")[1].split("]")[0] + "]")
    assert len(proposed) == d
    assert SketchSpec.plan([(0, 4)] * d, min(proposed)).n_coefficients <= MAX_COEFFICIENTS
    assert min(proposed) > bandwidth


@given(
    d=st.integers(1, 2),
    width=st.floats(1e-2, 1e6),
    low=st.floats(-1e6, 1e6),
    bandwidth=st.floats(0.02, 0.25),
    ratio=st.floats(1.0, 4.0),
)
def test_geometry_of_any_box(d, width, low, bandwidth, ratio):
    spec = SketchSpec.plan([(low, low + width)] * d, [bandwidth, ratio * bandwidth])
    assert np.all(spec.cell_widths <= spec.planned[0] / 8 * (1 + 1e-12))
    covered = np.array(spec.cells) * spec.cell_widths
    np.testing.assert_allclose(covered, spec.widths, rtol=1e-9)
    assert np.all(spec.periods >= spec.widths + 5 * spec.planned[-1] * (1 - 1e-9))
    assert spec.n_coefficients == 2 * len(spec.frequencies) - 1 <= MAX_COEFFICIENTS


def test_integer_weights_have_norm_at_most_one(spec):
    squares = sum(int(q) ** 2 for q in spec.integer_weights)
    assert squares <= 2**48
    assert squares >= 2**48 * (1 - 1e-3), "little weight is lost to rounding down"
    assert spec.integer_weights.min() >= 1
    assert math.isclose(spec.pair_weights.sum(), 1.0, rel_tol=1e-9)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_the_count_has_its_floor_of_weight(bandwidth):
    spec = SketchSpec.plan([(0, 1), (0, 1)], bandwidth)
    assert spec.pair_weights[0] >= COUNT_WEIGHT * (1 - 1e-12)
    assert spec.integer_weights[0] >= math.floor(2**24 * math.sqrt(COUNT_WEIGHT)) - 1


def test_one_of_each_pair_of_frequencies_is_kept(spec):
    kept = {tuple(m) for m in spec.frequencies.tolist()}
    zero = (0,) * spec.d
    assert tuple(spec.frequencies[0]) == zero
    assert len(kept) == len(spec.frequencies)
    assert not any(tuple(-k for k in m) in kept for m in kept - {zero})
    # Nothing within the cut-off is left out: its mirror image or itself is kept.
    reach = np.stack(np.meshgrid(*[np.arange(-r, r + 1) for r in spec.reach], indexing="ij"), axis=-1)
    every = reach.reshape(-1, spec.d)
    inside = np.sum((2 * np.pi * every / spec.periods * spec.planned[0]) ** 2, axis=1) <= 16
    assert {tuple(m) for m in every[inside].tolist()} == kept | {tuple(-k for k in m) for m in kept}


def test_frequencies_fit_the_torus(spec):
    assert all(2 * r < n for r, n in zip(spec.reach, spec.torus_cells, strict=True)), "no aliasing"


def test_round_trip_through_json_is_exact(spec):
    again = SketchSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert again.cells == spec.cells
    assert np.array_equal(again.integer_weights, spec.integer_weights)


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("bounds", SketchSpec.plan([(0, 11)])),
        ("scales", SketchSpec.plan([(0, 10)], 0.05)),
        ("steps", SketchSpec.plan([(0, 10)], steps=0.01)),
        ("shares", SketchSpec.plan([(0, 10)], [1 / 64, 1 / 28, 1 / 12], shares=[0.2, 0.4, 0.4])),
    ],
)
def test_the_field_that_differs_is_named(field, other):
    mine = SketchSpec.plan([(0, 10)])
    with pytest.raises(ValueError, match=f"differ in {field}"):
        mine.require_same(other)
    mine.require_same(SketchSpec.plan([(0, 10)]))


def test_a_number_is_a_fraction_of_the_width_and_an_array_is_in_data_units():
    widths = np.array([10.0, 2.0])
    assert as_bandwidth(0.1, widths).tolist() == [1.0, 0.2]
    assert as_bandwidth([0.1, 0.5], widths).tolist() == [0.1, 0.5]
    with pytest.raises(ValueError, match="bandwidth"):
        as_bandwidth([0.1], widths)


def test_values_on_steps_fall_on_cell_centres_and_scales_are_lifted():
    spec = SketchSpec.plan([(0, 100)], [0.002, 0.05], steps=1)
    assert spec.planned[0][0] >= 0.75
    per_step = 1 / spec.cell_widths[0]
    assert math.isclose(per_step, round(per_step))
    centres = spec.origin[0] + np.arange(spec.cells[0]) * spec.cell_widths[0]
    assert np.abs(centres[:, None] - np.arange(101)).min(axis=0).max() < 1e-9
    assert SketchSpec.plan([(0, 100)], [0.02, 0.05], steps=[None]).steps == (0.0,)
