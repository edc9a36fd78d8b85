"""Counts of many columns: one cell per record and column, declared distances that are attained and never exceeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch
from fogline.density.columns import CategoryColumn, NumberColumn, day_number, text_key
from fogline.density.leaves import LeafSpec, Noise
from fogline.density.partition import pilot_boxes
from fogline.queries.column_counts import ColumnGroups, ColumnsQuery, ColumnTables, KeyCounts, number_cells
from fogline.sources.typed_cells import CellCoder, spelled, unspelled

SPECS = [LeafSpec.plan([(0, 10)]), LeafSpec.plan([(0, 10)], steps=1), LeafSpec.plan([(-3, 1e6)], steps=7)]


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=60, deadline=None)
@given(value=st.floats(allow_nan=True, allow_infinity=True))
def test_a_value_has_one_cell_that_says_where_it_is(value, spec):
    cell = int(number_cells(np.array([value]), spec)[0])
    beyond = cell - spec.n_leaves
    assert 0 <= cell < spec.n_leaves + 3
    assert (beyond == 0) == bool(np.isnan(value))
    assert (beyond == 1) == (value < spec.lower[0])
    assert (beyond == 2) == (value > spec.upper[0])


def test_leaves_are_those_of_a_sketch():
    values = np.random.default_rng(0).normal(5, 3, 5000)
    for spec in SPECS[:2]:
        tables = ColumnTables([spec.n_leaves + 3])
        tables.add(number_cells(values, spec)[:, None])
        exact = DensitySketch.of(spec).update(values[:, None]).table()
        assert np.array_equal(tables.counts[0][: spec.n_leaves], exact)
        assert tables.counts[0].sum() == len(values)


def groups():
    return [
        ColumnGroups(SPECS[1].n_leaves, pilot_boxes(SPECS[1]), 3),
        ColumnGroups(0, None, 4),
        ColumnGroups(SPECS[0].n_leaves, pilot_boxes(SPECS[0]), 3),
    ]


def plans():
    return [NumberColumn("a", (0.0, 10.0), 1.0), CategoryColumn.of("b", ["x", "y"]), NumberColumn("c", (0.0, 10.0))]


def exact(rows):
    numbers, texts = np.array([[a, c] for a, _, c in rows], dtype=float).reshape(-1, 2), [[b for _, b, _ in rows]]
    tables = ColumnTables([plan.cells for plan in plans()])
    tables.add(CellCoder(plans()).code(numbers, texts).astype(np.int64))
    return ColumnsQuery(groups()).exact(tables.counts)


record = st.tuples(
    st.sampled_from([np.nan, -1.0, 0.0, 3.0, 10.0, np.inf]),
    st.sampled_from(["x", "y", "z", "", None, 5]),
    st.sampled_from([np.nan, 0.0, 9.99, 10.0, 11.0]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(record, max_size=6), st.lists(record, min_size=1, max_size=3), st.lists(record, min_size=1, max_size=3))
def test_neighbours_are_never_further_apart_than_declared(rows, first, second):
    query = ColumnsQuery(groups())
    came = (exact(rows + first) - exact(rows)).astype(float)
    assert np.abs(came).sum() == query.l1_sensitivity("add-remove", len(first)), "every record is in one cell of each"
    assert np.linalg.norm(came) <= query.sensitivity("add-remove", len(first))
    many = max(len(first), len(second))
    changed = (exact(rows + (first * 3)[:many]) - exact(rows + (second * 3)[:many])).astype(float)
    assert np.abs(changed).sum() <= query.l1_sensitivity("replace", many)
    assert np.linalg.norm(changed) <= query.sensitivity("replace", many)


def test_declared_distances_are_attained():
    query = ColumnsQuery(groups())
    low, high = (0.0, "x", 0.0), (10.0, "y", 10.0)
    came = exact([low] * 3).astype(float)
    assert np.linalg.norm(came) == pytest.approx(query.sensitivity("add-remove", 3), rel=1e-12)
    changed = came - exact([high] * 3)
    assert np.abs(changed).sum() == query.l1_sensitivity("replace", 3)
    assert np.linalg.norm(changed) == pytest.approx(query.sensitivity("replace", 3), rel=1e-12)


def test_groups_that_overlap_or_leave_cells_out_are_refused():
    for boxes in ([[[0, 3]], [[2, 4]]], [[[0, 3]]]):
        with pytest.raises(ValueError, match="tile"):
            ColumnsQuery([ColumnGroups(4, np.array(boxes), 1)])
    with pytest.raises(ValueError, match="boxes where they have leaves"):
        ColumnsQuery([ColumnGroups(4, None, 1)])
    with pytest.raises(ValueError, match="one table of cells"):
        ColumnsQuery([ColumnGroups(0, None, 2)]).exact([np.zeros(3, dtype=np.int64)])
    with pytest.raises(ValueError, match="at least one column"):
        ColumnsQuery([])


def test_noisy_numbers_go_back_to_their_columns():
    query = ColumnsQuery(groups())
    values = np.arange(query.size)
    answers = query.decode(values, Noise("laplace", 2.0))
    assert [len(answer.others) for answer in answers] == [3, 4, 3]
    assert sum(answer.total for answer in answers) == values.sum()
    assert answers[1].boxes is None
    assert answers[1].others.tolist() == [14, 15, 16, 17]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=60)), min_size=1, max_size=5))
def test_keys_survive_their_spelling(texts):
    keys = np.array([text_key(text) for text in texts], dtype="S48")
    assert unspelled(spelled(keys)).tolist() == keys.tolist()
    counts = KeyCounts()
    counts.add(keys)
    assert sorted(counts.elements()) == sorted(key for key in keys.tolist() if key)


@pytest.mark.parametrize(
    "cell", ["2020-13-01", "2020-1-1", "20-01-01", "2020-01-01x", "0000-01-01", 5, None, float("nan"), "٢٠٢٠-01-01"]
)
def test_what_is_no_date_is_missing(cell):
    assert np.isnan(day_number(cell))
