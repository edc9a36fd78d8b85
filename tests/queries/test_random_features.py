"""The secret side of random features: exact, bounded, and the same however the records come."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fogline.density.random_spec import COORDINATE_BITS, PHASE_BITS, TABLE_BITS, UNIT, plan_spec
from fogline.queries import random_feature_sums as random_features
from fogline.queries.random_feature_sums import (
    BLOCK_ROWS,
    LIMIT,
    MOST_DECLARED,
    PhaseSums,
    coordinates,
    direction_table,
    random_sensitivity,
)

SPECS = {
    "unit": plan_spec([(0.0, 1.0)] * 5, 0.3, features=70),
    "awkward": plan_spec(
        [(-0.1, 0.7), (1e6, 1e6 + 3), (-5.0, -1.0), (0.0, 1e-30)], [[0.1, 0.4, 1.0, 2e-31]], features=33
    ),
    "one axis": plan_spec([(-2.0, 3.0)], 0.1, features=40),
    "wide": plan_spec([(0.0, 1.0)] * 4, 0.25, features=random_features.BLOCK_COLUMNS + 30),
}


@pytest.fixture(params=SPECS)
def spec(request):
    return SPECS[request.param]


@pytest.fixture(params=["numba", "numpy"])
def adder(request, monkeypatch):
    """Run with the compiled loop and without."""
    if request.param == "numba":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(random_features, "_fast_adder", lambda: None)
    return request.param


def vector(rows, spec):
    sums = PhaseSums(spec)
    sums.add_rows(np.asarray(rows, dtype=np.float64).reshape(-1, spec.d))
    return sums.table()


def exact_vector(row, spec):
    """The vector of one record in Python's unbounded integers, and in no company."""
    if not all(lo <= x <= hi for x, (lo, hi) in zip(row, spec.bounds, strict=True)):
        return [0] * spec.n_coefficients
    u = []
    for x, lo, width in zip(row, spec.lower.tolist(), spec.cell_widths.tolist(), strict=True):
        u.append(min(math.floor((x - lo) / width), 2**COORDINATE_BITS - 1) - 2 ** (COORDINATE_BITS - 1))
    cosines, sines = [], []
    for w in spec.frequencies.tolist():
        phase = sum(a * b for a, b in zip(w, u, strict=True)) % 2**PHASE_BITS
        angle = 2 * math.pi * (phase // 2 ** (PHASE_BITS - TABLE_BITS) + 0.5) / 2**TABLE_BITS
        cosines.append(math.trunc(UNIT * math.cos(angle) * (1 - 1e-12)))
        sines.append(math.trunc(UNIT * math.sin(angle) * (1 - 1e-12)))
    return [spec.count_unit, *cosines, *sines]


def squared_norm(vector):
    return sum(int(v) ** 2 for v in vector)


def rows_for(spec, low=0, high=60):
    """Rows of arbitrary doubles, and of doubles near the box."""
    values = st.one_of(st.floats(width=64), st.floats(-0.1, 1.1))
    shape = st.tuples(st.integers(low, high), st.just(spec.d))

    def placed(x):
        near = np.abs(x) <= 1.1
        return np.where(near, spec.lower + np.where(near, x, 0.0) * spec.widths, x)

    return shape.flatmap(lambda s: arrays(np.float64, s, elements=values)).map(placed)


# -- one record -------------------------------------------------------------------------------------------------


def test_the_table_is_cut_toward_zero_and_near_the_circle():
    table = direction_table().astype(np.int64)
    cosine, sine = table >> 16, (table << 48) >> 48
    assert len(table) == 2**TABLE_BITS
    squares = cosine**2 + sine**2
    assert squares.max() <= UNIT**2
    assert np.sqrt(squares.min()) > UNIT - 2
    angles = np.arctan2(sine, cosine) % (2 * np.pi)
    assert np.abs(angles - 2 * np.pi * (np.arange(len(table)) + 0.5) / len(table)).max() < 1e-4


@pytest.mark.parametrize("name", SPECS)
def test_any_bit_pattern_has_a_bounded_vector(name, adder):
    spec = SPECS[name]

    @settings(max_examples=40, deadline=None)
    @given(row=arrays(np.uint64, spec.d, elements=st.integers(0, 2**64 - 1)).map(lambda x: x.view(np.float64)))
    def holds(row):
        assert squared_norm(vector(row, spec)) == squared_norm(exact_vector(row.tolist(), spec))
        assert squared_norm(vector(row, spec)) <= spec.squared_norm

    holds()


@pytest.mark.parametrize("name", SPECS)
def test_a_record_has_the_vector_of_its_definition(name, adder):
    spec = SPECS[name]

    @settings(max_examples=40, deadline=None)
    @given(rows=rows_for(spec, 1, 1))
    def holds(rows):
        exact = exact_vector(rows[0].tolist(), spec)
        assert vector(rows, spec).tolist() == exact
        assert squared_norm(exact) <= spec.squared_norm

    holds()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1e-9, 1 + 1e-9, 1e300, -1e300])
@pytest.mark.parametrize("axis", [0, 4])
def test_a_record_that_is_not_in_the_box_contributes_nothing(bad, axis, adder):
    spec = SPECS["unit"]
    row = np.full((1, 5), 0.5)
    row[0, axis] = bad
    assert not vector(row, spec).any()
    assert np.array_equal(vector(np.vstack([row, np.full((1, 5), 0.5)]), spec), vector(np.full((1, 5), 0.5), spec))


def test_the_edges_of_the_box_belong_to_it(spec):
    for corner in (spec.lower, spec.upper):
        u = coordinates(corner[None], spec)
        assert u.shape == (1, spec.d)
        assert np.abs(u).max() <= 2 ** (COORDINATE_BITS - 1)
    assert coordinates(spec.upper[None], spec).max() == 2 ** (COORDINATE_BITS - 1) - 1


def test_the_vector_has_nearly_the_norm_that_is_declared(spec):
    middle = (spec.lower + spec.upper) / 2
    assert 0.9998 < squared_norm(vector(middle[None], spec)) / spec.squared_norm <= 1


def test_features_make_the_kernel_of_the_frequencies():
    spec = plan_spec([(0.0, 1.0)] * 5, 0.3, features=2000)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.uniform(size=(2, 1, 5))
        made = float(vector(x, spec).astype(float) @ vector(y, spec)) / spec.squared_norm
        a_0 = float(spec.feature_weights[0])
        kernel = np.exp(-0.5 * np.sum((x - y) ** 2) / 0.3**2)
        assert made == pytest.approx(a_0 + (1 - a_0) * kernel, abs=5 / np.sqrt(2 * 2000))


# -- many records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_sums_do_not_depend_on_order_batches_or_the_compiled_loop(name, monkeypatch):
    spec = SPECS[name]
    adders = {"numpy": lambda: None}
    if random_features._fast_adder() is not None:
        adders["numba"] = random_features._fast_adder

    @settings(max_examples=25, deadline=None)
    @given(rows=rows_for(spec), data=st.data())
    def holds(rows, data):
        whole = sum((np.array(exact_vector(row, spec), dtype=object) for row in rows.tolist()), np.int64(0))
        order = np.array(data.draw(st.permutations(range(len(rows)))), dtype=int)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
        for adder, block in itertools.product(adders.values(), (1, 3, BLOCK_ROWS)):
            monkeypatch.setattr(random_features, "_fast_adder", adder)
            monkeypatch.setattr(random_features, "BLOCK_ROWS", block)
            parts = [PhaseSums(spec) for _ in range(len(cuts) + 1)]
            for part, piece in zip(parts, np.split(rows[order], cuts), strict=True):
                part.add_rows(piece)
            merged = PhaseSums(spec)
            for part in reversed(parts):
                merged.add_state(*part.state())
            assert np.array_equal(merged.table(), np.zeros(spec.n_coefficients) + whole)
        monkeypatch.undo()

    holds()


@pytest.mark.parametrize("n", [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 7])
def test_batches_of_any_size_agree(n, monkeypatch):
    pytest.importorskip("numba")
    spec = SPECS["wide"]
    rows = np.random.default_rng(n).uniform(-0.02, 1.02, size=(n, 4))
    compiled = vector(rows, spec)
    one_by_one = sum(
        (vector(row, spec) for row in rows[: BLOCK_ROWS + 1]), np.zeros(spec.n_coefficients, dtype=np.int64)
    )
    monkeypatch.setattr(random_features, "_fast_adder", lambda: None)
    assert np.array_equal(vector(rows, spec), compiled)
    assert np.array_equal(vector(rows[: BLOCK_ROWS + 1], spec), one_by_one)
    assert np.array_equal(vector(np.asfortranarray(rows), spec), compiled)


def test_sums_are_cut_before_they_can_wrap(spec):
    sums = PhaseSums(spec)
    huge = np.full((2, spec.n_features), LIMIT)
    for sign in (1, 1, -1):
        sums.add_state(np.array([LIMIT]), sign * huge)
        assert np.abs(sums.table()).max() <= LIMIT
    assert sums.table()[0] == LIMIT
    assert not sums.table()[1:].any()


@pytest.mark.parametrize(
    ("count", "sums", "match"),
    [
        ([2], np.zeros((2, 7), dtype=int), "shape"),
        ([2.0], np.zeros((2, 70), dtype=int), "integers"),
        ([2], np.zeros((2, 70)), "integers"),
        ([-1], np.zeros((2, 70), dtype=int), "count"),
        ([MOST_DECLARED + 1], np.zeros((2, 70), dtype=int), "count"),
        ([1], np.full((2, 70), UNIT + 1), "larger"),
        ([1], np.full((2, 70), -UNIT - 1), "larger"),
        ([1, 2], np.zeros((2, 70), dtype=int), "integers"),
    ],
)
def test_sums_that_no_records_can_have_made_are_refused(count, sums, match):
    mine = PhaseSums(SPECS["unit"])
    with pytest.raises(ValueError, match=match):
        mine.checked(np.array(count), sums)
    assert not mine.table().any()


# -- sensitivity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_neighbours_stay_within_the_declared_sensitivity(name):
    spec = SPECS[name]

    @settings(max_examples=30, deadline=None)
    @given(crowd=rows_for(spec, 0, 5), unit=rows_for(spec, 1, 3), data=st.data())
    def holds(crowd, unit, data):
        other = data.draw(rows_for(spec, len(unit), len(unit)))
        base, mine, theirs = (vector(np.vstack([crowd, *more]), spec) for more in ([], [unit], [other]))
        for distance, relation in ((mine - base, "add-remove"), (mine - theirs, "replace")):
            declared = random_sensitivity(spec, relation, len(unit))
            assert squared_norm(distance) <= declared**2

    holds()


def test_the_sensitivity_is_hardly_larger_than_it_must_be():
    spec = SPECS["one axis"]
    one = random_sensitivity(spec, "add-remove", 1)
    assert 0.9999 < math.sqrt(squared_norm(vector([[0.3]], spec))) / one <= 1
    assert 1.9 < random_sensitivity(spec, "replace", 1) / one < 2
    assert random_sensitivity(spec, "add-remove", 3) == pytest.approx(3 * one)
    assert one**2 >= spec.squared_norm


def test_no_rows_take_the_same_path_as_one(monkeypatch):
    """An empty table left the loop alone and the compiler unloaded: the process told whether there was a record."""
    spec = plan_spec([(0, 1)] * 5, [0.3], None, features=64)
    seen = []

    def loop(phases, *rest):
        seen.append(phases.shape[0])
        random_features.add_phases(phases, *rest)

    monkeypatch.setattr(random_features, "_fast_adder", lambda: loop)
    for n in (0, 1):
        sums = random_features.PhaseSums(spec)
        sums.add_rows(np.full((n, 5), 0.5))
        assert sums.count == n
    assert seen == [0, 0, 0, 1]  # once when it is made, since a source without records hands over no batch
