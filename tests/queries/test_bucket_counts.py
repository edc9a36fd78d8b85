"""Counts in boxes of leaves: exact, whatever the table, and as far apart as declared."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from fogline.density.leaves import LeafSpec, Noise
from fogline.queries.bucket_counts import BucketQuery, bucket_counts

pytestmark = pytest.mark.quick

SHAPES = [(7,), (5, 4), (3, 4, 5)]


def random_boxes(shape, rng, cuts=12):
    boxes = [tuple((0, n) for n in shape)]
    for _ in range(cuts):
        box = boxes.pop(rng.integers(len(boxes)))
        axis = int(rng.integers(len(shape)))
        start, stop = box[axis]
        if stop - start < 2:
            boxes.append(box)
            continue
        cut = int(rng.integers(start + 1, stop))
        boxes += [(*box[:axis], part, *box[axis + 1 :]) for part in ((start, cut), (cut, stop))]
    return np.array(boxes)


def plain(table, boxes):
    return [int(table[tuple(slice(*pair) for pair in box)].astype(object).sum()) for box in boxes.tolist()]


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_are_those_of_a_plain_sum(shape):
    rng = np.random.default_rng(0)
    for most in (5, 2**40):
        table = rng.integers(-most, most, shape)
        boxes = random_boxes(shape, rng)
        assert bucket_counts(table, boxes).tolist() == plain(table, boxes)


def test_sums_near_the_largest_are_exact():
    table = np.full((3, 4, 5), 2**61 // 60)
    table[0, 0, 0] += 1
    table[2, 3, 4] -= 2**61 // 60 + 7
    boxes = random_boxes((3, 4, 5), np.random.default_rng(1))
    assert bucket_counts(table, boxes).tolist() == plain(table, boxes)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("c", [1, 2, 3])
def test_no_neighbours_are_further_apart_than_declared_and_some_are_as_far(relation, c):
    """All ways in which a unit's records may lie in six leaves, or nowhere, of a table and of another."""
    spec = LeafSpec.plan([(0, 1), (0, 1)], leaves=[3, 2])
    query = BucketQuery(spec, [np.array([[[0, 2], [0, 2]], [[2, 3], [0, 1]], [[2, 3], [1, 2]]])])
    vectors = []
    for place in range(7):
        table = np.zeros(6, dtype=np.int64)
        table[place : place + 1] = 1
        vectors.append(query.exact(table.reshape(1, 3, 2)))
    moves = vectors if relation == "add-remove" else [b - a for a, b in itertools.product(vectors, repeat=2)]
    sums = [sum(part) for part in itertools.combinations_with_replacement(moves, c)]
    l1 = max(int(np.abs(v).sum()) for v in sums)
    square = max(int((v**2).sum()) for v in sums)
    assert query.l1_sensitivity(relation, c) == l1
    declared = Fraction(query.sensitivity(relation, c)) ** 2
    assert square <= declared < square * (1 + Fraction(1, 2**50))


def test_strata_stand_one_after_the_other():
    spec = LeafSpec.plan([(0, 1)], leaves=[4])
    first, second = np.array([[[0, 4]]]), np.array([[[0, 1]], [[1, 4]]])
    query = BucketQuery(spec, [first, second])
    tables = np.array([[1, 2, 3, 4], [5, 0, 0, 1]])
    exact = query.exact(tables)
    assert query.size == 3
    assert exact.tolist() == [10, 5, 1]
    parts = query.decode(exact, Noise("laplace", 1.0))
    assert [part.counts.tolist() for part in parts] == [[10], [5, 1]]
    assert parts[0].counts.base is None, "one stratum must not show another"
    with pytest.raises(ValueError, match="one table"):
        query.exact(tables[:1])


def test_boxes_that_do_not_tile_are_refused_before_anything_else():
    spec = LeafSpec.plan([(0, 1)], leaves=[4])
    for boxes in ([[[0, 3]]], [[[0, 3]], [[2, 4]]], [[[0, 4]], [[0, 4]]]):
        with pytest.raises(ValueError, match="tile"):
            BucketQuery(spec, [np.array(boxes)])
