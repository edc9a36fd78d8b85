"""Private principal components: sensitivities in integers, directions that are there."""

from types import SimpleNamespace

import numpy as np
import pytest
from canaries import by_turns, few_corners
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import Ledger, private_pca
from fogline.audit import canary_pairs, replay
from fogline.queries.lattice import RecordLattice
from fogline.queries.moments import MomentQuery, SpreadQuery
from fogline.testing import seeded_noise

LATTICE = RecordLattice.of([(-1.0, 1.0)] * 3)
CELLS = st.sampled_from([-1.0, -0.999, -0.5, 0.0, 0.3, 1.0, 2.0, float("nan")])
ROW = st.lists(CELLS, min_size=3, max_size=3)


def moment(radius):
    return MomentQuery(LATTICE, np.array([100.0, -50.0, 0.0]), radius, None)


def total(query, rows):
    whole = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return query.exact(SimpleNamespace(each=lambda take: take(whole))).tolist()


def distance(first, second):
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


@settings(max_examples=80, deadline=None)
@given(st.lists(ROW, max_size=4), ROW, ROW, st.sampled_from([1, 7, 900, 20000, 60000]))
def test_neighbours_are_within_the_sensitivity(rows, record, other, radius):
    for query in (SpreadQuery(LATTICE), moment(radius)):
        with_one, with_other = total(query, [*rows, record]), total(query, [*rows, other])
        assert distance(total(query, rows), with_one) <= query.sensitivity("add-remove", 1) ** 2
        assert distance(with_one, with_other) <= query.sensitivity("replace", 1) ** 2


@pytest.mark.parametrize("query", [SpreadQuery(LATTICE), moment(5000)])
def test_the_sensitivity_is_nearly_reached(query):
    corner, opposite = [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]
    single = [total(query, [row]) for row in (corner, [1.0, 0.0, 0.0])]
    assert max(distance(total(query, []), one) for one in single) > 0.9 * query.sensitivity("add-remove", 1) ** 2
    assert distance(total(query, [corner]), total(query, [opposite])) > 0.4 * query.sensitivity("replace", 1) ** 2
    assert query.sensitivity("add-remove", 3) == pytest.approx(3 * query.sensitivity("add-remove", 1))


@pytest.mark.parametrize("query", [SpreadQuery(LATTICE), moment(3000)])
def test_sums_do_not_depend_on_the_batches(query):
    rows = np.random.default_rng(0).uniform(-1.1, 1.1, size=(500, 3))

    def parts(take):
        for part in np.array_split(rows, 7):
            take(part)

    assert query.exact(SimpleNamespace(each=parts)).tolist() == total(query, rows)


def sample(n=20000, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.2, 0.1, size=(n, d))
    X[:, 0] += 0.4 * rng.normal(size=n)
    X[:, 1] += 0.25 * rng.normal(size=n)
    return X


def test_leading_directions_are_found():
    with seeded_noise(0):
        found, guarantee = private_pca(sample(), epsilon=1.0, delta=1e-5, bounds=(-2, 2), components=2)
    directions = np.abs(found.projection.components)
    assert directions[0, 0] > 0.97
    assert directions[1, 1] > 0.95
    assert found.standing >= 2
    assert guarantee.rho is not None
    np.testing.assert_allclose(found.projection.mean, 0.2, atol=0.05)


def test_pure_noise_shows_no_direction():
    with seeded_noise(1):
        found, _ = private_pca(np.zeros((40, 30)), epsilon=1.0, delta=1e-5, bounds=(-1, 1))
    assert found.standing <= 1
    assert found.projection.r == 1


def test_bad_input_is_named_and_free(tmp_path):
    for wrong, name in [
        ({"components": 9}, "components"),
        ({"epsilon": None}, "epsilon"),
        ({"bounds": None}, "bounds"),
    ]:
        with pytest.raises((TypeError, ValueError), match=name):
            private_pca(np.zeros((3, 8)), **({"epsilon": 1.0, "delta": 1e-5, "bounds": (-1, 1)} | wrong))
    with Ledger.create(tmp_path / "l", dataset="x", epsilon=1.0, delta=1e-6, high_water=tmp_path / "m") as ledger:
        asked = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-2, 2), "ledger": ledger}
        first, _ = private_pca(sample(2000), **asked)
        again, _ = private_pca(sample(2000), **asked)
        assert np.array_equal(first.projection.directions, again.projection.directions)
        assert ledger.remaining().rho < 1e-6


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_replay(relation):
    box = [(0.0, 10.0)] * 4
    pairs = by_turns(few_corners(canary_pairs(box, neighbours=relation, n=40, block=None)), relation)

    def release(data):
        found, guarantee = private_pca(data, epsilon=1.0, delta=1e-5, bounds=box, neighbours=relation)
        return {"released": found, "guarantee": guarantee}

    report = replay(release, pairs, neighbours=relation)
    assert report.passed, str(report)
    assert report.largest_ratio > 0.5
