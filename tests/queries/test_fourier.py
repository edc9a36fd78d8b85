"""Exact sums: equal to Python's unbounded integers, and never further apart than the proof says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.density.spec import LATTICE_BITS, WEIGHT_BITS, SketchSpec
from fogline.queries.fourier_sums import TABLE_BITS, lattice_sensitivity, lattice_sums, least_kernel, phase_table

SPECS = {
    1: SketchSpec.plan([(0.0, 1.0)], [0.1, 0.25]),
    2: SketchSpec.plan([(0.0, 1.0), (-2.0, 3.0)], [[0.3, 1.0]]),
    3: SketchSpec.plan([(0.0, 1.0), (0.0, 1.0), (0.0, 4.0)], 0.6),
}
"""Small ones: a reference in pure Python visits every frequency at every record."""

UNIT = 2**TABLE_BITS
SHIFT = {d: TABLE_BITS * d + WEIGHT_BITS - LATTICE_BITS for d in SPECS}


def axis_tables(spec):
    """Integer phases of each axis as Python integers: tables[j][m_j] is a list over the cells."""
    tables = []
    for j in range(spec.d):
        indices = np.arange(-spec.reach[j], spec.reach[j] + 1)
        cosine, sine = phase_table(spec.cells[j], spec.torus_cells[j], indices)
        tables.append(
            {int(m): list(zip(cosine[:, k].tolist(), sine[:, k].tolist(), strict=True)) for k, m in enumerate(indices)}
        )
    return tables


TABLES = {d: axis_tables(spec) for d, spec in SPECS.items()}


def reference_sums(counts, spec):
    """``floor(q_m F_m / 2**shift)`` for counts given as {cell: count}, all in unbounded integers."""
    real, imaginary = [], []
    for q, frequency in zip(spec.integer_weights.tolist(), spec.frequencies.tolist(), strict=True):
        sum_re = sum_im = 0
        for cell, count in counts.items():
            re, im = 1, 0
            for j, (m, c) in enumerate(zip(frequency, cell, strict=True)):
                cosine, sine = TABLES[spec.d][j][m][c]
                re, im = re * cosine - im * sine, re * sine + im * cosine
            sum_re += count * re
            sum_im += count * im
        real.append((q * sum_re) >> SHIFT[spec.d])
        imaginary.append((q * sum_im) >> SHIFT[spec.d])
    limit = 2**61
    return [min(max(v, -limit), limit) for v in real + imaginary[1:]]


def as_table(counts, spec):
    table = np.zeros(spec.cells, dtype=np.int64)
    for cell, count in counts.items():
        table[cell] += count
    return table


def random_cells(rng, spec, size):
    return [tuple(int(rng.integers(n)) for n in spec.cells) for _ in range(size)]


CORNERS = {d: [tuple(0 for _ in spec.cells), tuple(n - 1 for n in spec.cells)] for d, spec in SPECS.items()}


@pytest.mark.parametrize("d", SPECS)
@pytest.mark.parametrize(
    "sizes",
    [[1], [1, 2, 3, 1000], [2**40, 1, 2**31 + 7], [2**60, 2**60 - 1, 1]],
    ids=["one", "few", "40bit", "60bit"],
)
def test_sums_equal_unbounded_integers(d, sizes):
    spec = SPECS[d]
    rng = np.random.default_rng(len(sizes))
    cells = dict.fromkeys([*CORNERS[d], *random_cells(rng, spec, 6)])
    counts = {cell: sizes[i % len(sizes)] for i, cell in enumerate(cells)}
    while sum(counts.values()) >= 2**63:
        counts.popitem()
    assert lattice_sums(as_table(counts, spec), spec).tolist() == reference_sums(counts, spec)


@settings(max_examples=25)
@given(data=st.data(), d=st.sampled_from([1, 2]))
def test_sums_of_random_histograms(data, d):
    spec = SPECS[d]
    size = st.integers(0, 2**58) | st.integers(0, 10)
    cell = st.tuples(*[st.integers(0, n - 1) for n in spec.cells])
    counts = data.draw(st.dictionaries(cell, size, max_size=8))
    assert lattice_sums(as_table(counts, spec), spec).tolist() == reference_sums(counts, spec)


def test_a_full_table_of_ordinary_counts():
    spec = SPECS[1]
    table = np.random.default_rng(5).integers(0, 10**6, size=spec.cells)
    counts = {(c,): int(n) for c, n in enumerate(table)}
    assert lattice_sums(table, spec).tolist() == reference_sums(counts, spec)


def test_no_records_give_zero():
    for spec in SPECS.values():
        sums = lattice_sums(np.zeros(spec.cells, dtype=np.int64), spec)
        assert sums.shape == (spec.n_coefficients,)
        assert sums.dtype == np.int64
        assert not sums.any()


def squared_distance(a, b):
    return sum((int(x) - int(y)) ** 2 for x, y in zip(a, b, strict=True))


def within(squared, bound):
    """``sqrt(squared) <= bound``, decided in integers: the float bound is a ratio of two."""
    numerator, denominator = bound.as_integer_ratio()
    return squared * denominator**2 <= numerator**2


@settings(max_examples=40)
@given(data=st.data(), d=st.sampled_from([1, 2, 3]), contributions=st.sampled_from([1, 1, 2, 7]))
def test_neighbours_are_no_further_apart_than_the_sensitivity(data, d, contributions):
    spec = SPECS[d]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shared = rng.poisson(rng.choice([0.0, 0.1, 3.0, 1000.0]), size=spec.cells)
    person, other = (random_cells(rng, spec, contributions) for _ in range(2))
    if data.draw(st.booleans()):  # the worst person has all records in one corner, the other in the opposite
        person, other = [CORNERS[d][0]] * contributions, [CORNERS[d][1]] * contributions
    base = lattice_sums(shared, spec)
    mine = lattice_sums(shared + as_table_of(person, spec), spec)
    theirs = lattice_sums(shared + as_table_of(other, spec), spec)
    assert within(squared_distance(mine, base), lattice_sensitivity(spec, "add-remove", contributions))
    assert within(squared_distance(mine, theirs), lattice_sensitivity(spec, "replace", contributions))


def as_table_of(cells, spec):
    table = np.zeros(spec.cells, dtype=np.int64)
    for cell in cells:
        table[cell] += 1
    return table


@pytest.mark.parametrize("d", SPECS)
def test_the_sensitivity_is_not_wasteful(d):
    spec = SPECS[d]
    empty = lattice_sums(np.zeros(spec.cells, dtype=np.int64), spec)
    one, other = (lattice_sums(as_table_of([corner], spec), spec) for corner in CORNERS[d])
    reached = math.sqrt(squared_distance(one, empty)) / lattice_sensitivity(spec, "add-remove", 1)
    assert 0.999 < reached <= 1
    # On the torus the farthest pair of cells is not the opposite corners: look along the diagonal.
    far = max(
        squared_distance(one, lattice_sums(as_table_of([tuple(int(t * (n - 1)) for n in spec.cells)], spec), spec))
        for t in np.linspace(0.2, 1, 30)
    )
    assert 0.98 < math.sqrt(max(far, squared_distance(one, other))) / lattice_sensitivity(spec, "replace", 1) <= 1


def test_sensitivity_grows_with_contributions_and_relation():
    spec = SPECS[2]
    single, triple = (lattice_sensitivity(spec, "add-remove", c) for c in (1, 3))
    assert single >= 2**LATTICE_BITS + math.sqrt(spec.n_coefficients)
    assert triple >= 3 * 2**LATTICE_BITS
    assert single < lattice_sensitivity(spec, "replace", 1) <= 2 * single


@settings(max_examples=100)
@given(cells=st.integers(1, 300), extra=st.integers(0, 300), reach=st.integers(0, 60))
def test_phases_never_exceed_modulus_one(cells, extra, reach):
    period = cells + extra
    cosine, sine = phase_table(cells, period, np.arange(-reach, reach + 1))
    assert np.all(cosine**2 + sine**2 <= UNIT**2)
    angle = -2 * np.pi * np.outer(np.arange(cells), np.arange(-reach, reach + 1)) / period
    assert np.abs(cosine / UNIT - np.cos(angle)).max() <= 3 / UNIT
    assert np.abs(sine / UNIT - np.sin(angle)).max() <= 3 / UNIT


def integer_kernel(spec, a, b):
    """Inner product of two records' vectors before the floor, in units of a record's norm; exact integers."""
    total = 0
    for q, frequency in zip(spec.integer_weights.tolist(), spec.frequencies.tolist(), strict=True):
        vectors = []
        for cell in (a, b):
            re, im = 1, 0
            for j, (m, c) in enumerate(zip(frequency, cell, strict=True)):
                cosine, sine = TABLES[spec.d][j][m][c]
                re, im = re * cosine - im * sine, re * sine + im * cosine
            vectors.append((re, im))
        total += q * q * (vectors[0][0] * vectors[1][0] + vectors[0][1] * vectors[1][1])
    return total / 2 ** (2 * TABLE_BITS * spec.d + 2 * WEIGHT_BITS)


def test_least_kernel_is_a_lower_bound_over_all_pairs_on_a_line():
    spec = SPECS[1]
    bound = least_kernel(spec)
    values = [integer_kernel(spec, (a,), (b,)) for a in range(spec.cells[0]) for b in range(a + 1)]
    assert bound <= min(values)
    assert bound > min(values) - 1e-4, "and not a loose one"


@pytest.mark.parametrize("d", [2, 3])
def test_least_kernel_is_a_lower_bound_for_random_pairs(d):
    spec = SPECS[d]
    rng = np.random.default_rng(d)
    bound = least_kernel(spec)
    assert -1 <= bound < 0.5
    pairs = [*zip(random_cells(rng, spec, 150), random_cells(rng, spec, 150), strict=True), tuple(CORNERS[d])]
    assert all(bound <= integer_kernel(spec, a, b) for a, b in pairs)


@pytest.mark.parametrize("spec", [SketchSpec.plan([(0, 1)]), SketchSpec.plan([(0, 1), (0, 5)])], ids=["1", "2"])
def test_replacing_costs_little_more_than_the_square_root_of_two(spec):
    ratio = lattice_sensitivity(spec, "replace", 1) / lattice_sensitivity(spec, "add-remove", 1)
    assert 1.35 < ratio < 1.5
