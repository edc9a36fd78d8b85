"""Public leaves: the grid, lattice values, the law of the noise, tilings, and files of both stages."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch
from fogline.density.leaves import MOST_LEAVES, BucketCounts, LeafRelease, LeafSpec, Noise, check_tiling
from fogline.density.random_spec import plan_spec, spec_from_dict
from fogline.queries.fourier_sums import cell_keys

pytestmark = pytest.mark.quick


# -- the grid ------------------------------------------------------------------------------------------------


def test_continuous_axes_have_powers_of_two():
    assert [LeafSpec.plan([(0, 1)] * d).leaves for d in (1, 2, 3)] == [(4096,), (256,) * 2, (64,) * 3]
    assert LeafSpec.plan([(0, 1)] * 3).n_leaves == MOST_LEAVES


@pytest.mark.parametrize(
    ("bounds", "step", "leaves", "group"),
    [
        ((0, 100), 1.0, 101, 1),
        ((0, 1), 0.5, 3, 1),
        ((0, 1), 1.0, 2, 1),
        ((-3, 10), 0.25, 53, 1),
        ((0, 10.3), 1.0, 11, 1),
        ((0, 10.6), 1.0, 12, 1),
        ((0, 4095), 1.0, 4096, 1),
        ((0, 4096), 1.0, 2049, 2),
        ((0, 1e6), 1.0, 4082, 245),
    ],
)
def test_lattice_axes_have_whole_values_per_leaf(bounds, step, leaves, group):
    spec = LeafSpec.plan([bounds], steps=step)
    assert spec.leaves == (leaves,)
    assert spec.values_per_leaf == (group,)
    values = bounds[0] + step * np.arange(math.floor((bounds[1] - bounds[0]) / step) + 1)
    found = cell_keys(values[:, None], spec)
    assert found.tolist() == (np.arange(len(values)) // group).tolist()
    assert len(spec.edges(0)) == leaves + 1
    assert np.all(np.searchsorted(spec.edges(0), values, side="right") - 1 == found)


@settings(max_examples=60, deadline=None)
@given(
    low=st.floats(-1e3, 1e3),
    values=st.integers(2, 9000),
    step=st.floats(1e-2, 1e3),
    d=st.integers(1, 2),
)
def test_a_value_of_a_lattice_is_never_split_from_its_equals(low, values, step, d):
    bounds = [(low, low + step * (values - 1)), (0.0, 1.0)][:d]
    spec = LeafSpec.plan(bounds, steps=[step, None][:d])
    near = low + step * np.arange(values)
    rows = np.column_stack([near, np.full(values, 0.5)])[:, :d]
    inside = np.all((rows >= spec.lower) & (rows <= spec.upper), axis=1)
    leaf = cell_keys(rows, spec) // (1 if d == 1 else spec.leaves[1])
    assert np.all(leaf[inside] == (np.arange(values) // spec.values_per_leaf[0])[inside])


def test_cells_tile_the_box_and_nothing_else():
    spec = LeafSpec.plan([(-3, 10), (0, 5)])
    rows = np.array([[-3, 0], [10, 5], [np.nextafter(10, 11), 1], [np.nan, 1], [-np.inf, 1], [0, np.nextafter(0, -1)]])
    assert cell_keys(rows, spec).tolist() == [0, 65535, 65536, 65536, 65536, 65536]
    rng = np.random.default_rng(0)
    inside = rng.uniform(spec.lower, spec.upper, (5000, 2))
    cells = np.stack(np.unravel_index(cell_keys(inside, spec), spec.cells), axis=1)
    for axis in range(2):
        edges = spec.edges(axis)
        assert np.all((inside[:, axis] >= edges[cells[:, axis]]) & (inside[:, axis] <= edges[cells[:, axis] + 1]))
    assert np.allclose(spec.origin, [spec.edges(a)[:2].mean() for a in range(2)])
    assert spec.leaf_volume == pytest.approx(65 / 65536)


def test_a_specification_survives_files_and_pickles():
    for spec in (LeafSpec.plan([(0, 1)]), LeafSpec.plan([(0, 1e6), (-3, 10)], steps=[1, None])):
        assert np.all(spec.cell_widths > 0)  # from here on it is cached
        assert spec_from_dict(spec.to_dict()) == spec == pickle.loads(pickle.dumps(spec))
        assert "cell_widths" not in spec.__getstate__()
        assert spec.to_dict()["kind"] == "leaves"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"leaves": [100]}, "equal numbers of values"),
        ({"leaves": [0]}, "leaves"),
        ({"leaves": [2.5]}, "leaves"),
        ({"leaves": [11, 11]}, "leaves"),
        ({"steps": [-1.0]}, "steps"),
        ({"bounds": [[3, 2]]}, "bounds"),
        ({"bounds": [[0, math.inf]]}, "bounds"),
        ({"kind": "twigs"}, "twigs"),
        ({"kind": ["leaves"]}, "no features of kind"),
    ],
)
def test_a_file_that_no_plan_made_is_refused(change, words):
    data = LeafSpec.plan([(0, 10)], steps=1).to_dict()
    with pytest.raises((ValueError, TypeError), match=words):
        spec_from_dict({**data, **change})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LeafSpec.plan([(0, 1)] * 4), "leaves serve up to 3"),
        (lambda: LeafSpec.plan([(0, 1)], leaves=[MOST_LEAVES + 1]), "at most"),
        (lambda: LeafSpec.plan([(0, 1)], leaves=[4, 4]), "one number per axis"),
        (lambda: LeafSpec.plan([(0, 1)], steps=2), "steps"),
        (lambda: LeafSpec.plan([(0, 1e60)]), "1e50"),
        (lambda: LeafSpec.plan([(-1e308, 1e308)]), "too far apart"),
        (lambda: LeafSpec.plan(None), "bounds must be given"),
        (lambda: plan_spec([(0, 1)], [0.1], features="leaves"), "bandwidths"),
        (lambda: plan_spec([(0, 1)], shares=[1.0], features="leaves"), "bandwidths"),
        (lambda: plan_spec([(0, 1)], features="twigs"), "'leaves'"),
    ],
)
def test_wishes_that_cannot_be_met(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_leaves_and_fourier_grids_do_not_merge():
    leaves, grid = DensitySketch([(0, 1)], features="leaves"), DensitySketch([(0, 1)], features="grid")
    for one, other in ((leaves, grid), (grid, leaves)):
        with pytest.raises(ValueError, match="count the records again, with the same features"):
            one.merge(other)
    with pytest.raises(ValueError, match="differ in bounds"):
        leaves.merge(DensitySketch([(0, 2)], features="leaves"))


# -- noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.5, 4.5, 30.0])
def test_variances_are_those_of_the_discrete_laws(scale):
    z = np.arange(-4000, 4001).astype(float)
    for kind, log_mass in (("laplace", -np.abs(z) / scale), ("gaussian", -(z**2) / (2 * scale**2))):
        mass = np.exp(log_mass)
        noise = Noise(kind, scale)
        assert noise.variance == pytest.approx(np.sum(z**2 * mass) / mass.sum(), rel=1e-9)
        assert noise.sd**2 == pytest.approx(noise.variance)


def test_extreme_scales_have_a_variance():
    assert Noise("laplace", 2.0**200).variance == pytest.approx(2.0**401)
    assert Noise("laplace", 2.0**-10).variance == 0.0
    assert Noise("gaussian", 2.0**-10).variance == 0.0
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="scale"):
            Noise("laplace", bad)
    with pytest.raises(ValueError, match="kind"):
        Noise("cauchy", 1.0)


# -- tilings -------------------------------------------------------------------------------------------------


@st.composite
def tilings(draw):
    """Boxes made by cutting at random: they tile, whatever the cuts."""
    leaves = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    boxes = [tuple((0, n) for n in leaves)]
    for _ in range(draw(st.integers(0, 12))):
        box = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        axis = draw(st.integers(0, len(leaves) - 1))
        start, stop = box[axis]
        if stop - start < 2:
            boxes.append(box)
            continue
        cut = draw(st.integers(start + 1, stop - 1))
        boxes += [(*box[:axis], part, *box[axis + 1 :]) for part in ((start, cut), (cut, stop))]
    return leaves, np.array(boxes)


@settings(max_examples=80, deadline=None)
@given(made=tilings(), data=st.data())
def test_tilings_pass_and_what_is_moved_does_not(made, data):
    leaves, boxes = made
    assert np.array_equal(check_tiling(boxes, leaves), boxes)
    one = data.draw(st.integers(0, len(boxes) - 1))
    with pytest.raises(ValueError, match="boxes must"):
        check_tiling(np.delete(boxes, one, axis=0), leaves)
    with pytest.raises(ValueError, match="boxes must"):
        check_tiling(np.concatenate([boxes, boxes[one : one + 1]]), leaves)
    axis, side = data.draw(st.integers(0, len(leaves) - 1)), data.draw(st.integers(0, 1))
    moved = boxes.copy()
    moved[one, axis, side] += data.draw(st.sampled_from([-1, 1]))
    with pytest.raises(ValueError, match="boxes must"):
        check_tiling(moved, leaves)


@pytest.mark.parametrize(
    "boxes",
    [
        np.array([[[0.0, 4.0]]]),
        np.array([[0, 4]]),
        np.array([[[0, 4], [0, 1]]]),
        np.zeros((0, 1, 2), dtype=int),
        np.array([[[0, 4]], [[2, 2]]]),
        np.array([[[0, 2]], [[0, 2]]]),
        np.array([[[0, 4]]], dtype=np.uint64),
    ],
)
def test_what_is_no_tiling(boxes):
    with pytest.raises(ValueError, match="boxes must"):
        check_tiling(boxes, (4,))


# -- both stages ---------------------------------------------------------------------------------------------


def released(pilot_scale=4.0):
    spec = LeafSpec.plan([(0, 1)], leaves=[4])
    pilot = BucketCounts(np.array([[[0, 2]], [[2, 4]]]), np.array([9, 4]), Noise("laplace", pilot_scale))
    return LeafRelease(spec, pilot, BucketCounts(np.array([[[0, 4]]]), np.array([12]), Noise("gaussian", 5.0)))


def test_the_total_weighs_both_stages_by_inverse_variance():
    release = released()
    variances = [2 * Noise("laplace", 4.0).variance, 25.0]
    expected = np.average([13, 12], weights=1 / np.array(variances))
    assert release.total == pytest.approx(expected)
    assert release.total_sd == pytest.approx(np.sum(1 / np.array(variances)) ** -0.5)
    assert released(2.0**-10).total == 13.0


def test_stages_survive_files_and_pickles():
    release = released()
    assert LeafRelease.from_arrays(release.spec, release.to_arrays()) == release == pickle.loads(pickle.dumps(release))
    assert release != released(3.0)
    assert release.pilot != "pilot"
    assert len(release.pilot) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("counts_boxes", np.array([[[0, 3]]])),
        ("counts_counts", np.array([1, 2])),
        ("counts_counts", np.array([1.5])),
        ("counts_counts", np.array([2**62])),
        ("pilot_noise", np.array(["cauchy", (1.0).hex()])),
        ("pilot_noise", np.array(["laplace", (0.0).hex()])),
        ("pilot_noise", np.array(["laplace", "one"])),
        ("pilot_noise", np.array(["laplace"])),
    ],
)
def test_stages_that_no_release_made_are_refused(name, value):
    release = released()
    with pytest.raises(ValueError, match=r"."):
        LeafRelease.from_arrays(release.spec, {**release.to_arrays(), name: value})
