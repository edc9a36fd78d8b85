"""One cluster and terrific balls: sensitivities by brute force, places that are there, replay and mutants."""

from types import SimpleNamespace

import numpy as np
import pytest
from canaries import by_turns, few_corners
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import Ledger, one_cluster, terrific_ball
from fogline.audit import canary_pairs, replay
from fogline.queries import ball_search as parts
from fogline.queries.ball_search import (
    AverageQuery,
    BoxQuery,
    CellQuery,
    RadiusQuery,
    RingQuery,
    SeclusionQuery,
    TerrificRadiusQuery,
    capped_average,
)
from fogline.queries.lattice import CentredBallLattice, Thinning, near_counts
from fogline.testing import seeded_noise

FRAME = CentredBallLattice.around([0.0, 0.0], 8.0)
EVERY = Thinning(0, 1.0)
CELL = st.sampled_from([-9.0, -7.0, -1.0, -0.9, 0.0, 0.1, 0.2, 3.0, 6.5, 1e300, float("nan"), float("inf")])
ROW = st.lists(CELL, min_size=2, max_size=2)
TERMS = {"epsilon": 1.0, "delta": 1e-6, "radius": 300.0, "radius_min": 0.1}


class Batches:
    """Records in batches of three."""

    def __init__(self, rows):
        self.rows = np.array(rows, dtype=np.float64).reshape(-1, 2)

    def each(self, take):
        for start in range(0, len(self.rows), 3):
            take(self.rows[start : start + 3])


def squared(first, second):
    return sum((int(a) - int(b)) ** 2 for a, b in zip(first, second, strict=True))


def radius_queries(t):
    plain = (FRAME, EVERY, 15, 11, t)
    return [
        RadiusQuery(*plain),
        TerrificRadiusQuery(*plain, stretch=3.0),
        TerrificRadiusQuery(*plain, stretch=1.5, largest=True),
        RadiusQuery(FRAME, Thinning(5, 0.5), 15, 11, t),
    ]


def sum_queries():
    cells = CellQuery(FRAME, np.array([[2.0**20, 0.0], [0.0, 2.0**20]]), np.array([0.3, 0.6]), 2.0**41)
    near = (cells, np.array([0, 0]), 0.5)
    low = np.full(2, -(2.0**43))
    return [
        parts.CountQuery(),
        BoxQuery(*near, np.array([[2.0**20, 0.0], [0.0, 2.0**20]]), low, 2.0**38),
        AverageQuery(*near, CentredBallLattice.around([0.1, 0.0], 2.0)),
        RingQuery(np.array([0.1, 0.1]), np.array([0.1, 1.0, 5.0]), 5),
    ]


@settings(max_examples=120, deadline=None)
@given(st.lists(ROW, max_size=12), ROW, st.integers(1, 6))
def test_neighbours_are_within_the_sensitivity(rows, record, t):
    before, after = Batches(rows), Batches([*rows, record])
    for query in radius_queries(t):
        assert np.abs(query.exact(before) - query.exact(after)).max() <= query.sensitivity("add-remove", 1)
    check = SeclusionQuery(np.zeros(2), np.array([0.2, 1.0, 4.0]), 2.0, t)
    assert np.abs(check.exact(before) - check.exact(after)).max() <= check.sensitivity("add-remove", 1)
    for query in sum_queries():
        assert squared(query.exact(before), query.exact(after)) <= query.sensitivity("add-remove", 1) ** 2


@settings(max_examples=120, deadline=None)
@given(st.lists(ROW, max_size=12), ROW, ROW, st.integers(1, 6))
def test_replaced_records_are_within_the_sensitivity(rows, record, other, t):
    before, after = Batches([*rows, record]), Batches([*rows, other])
    for query in radius_queries(t):
        moved = np.abs(query.exact(before) - query.exact(after)).max()
        assert moved <= 2  # what the proof of the plain search has; the terrific one declares more
        assert query.sensitivity("replace", 1) >= 2
    check = SeclusionQuery(np.zeros(2), np.array([0.2, 1.0, 4.0]), 2.0, t)
    assert np.abs(check.exact(before) - check.exact(after)).max() <= check.sensitivity("replace", 1)
    for query in sum_queries():
        assert squared(query.exact(before), query.exact(after)) <= query.sensitivity("replace", 1) ** 2


def test_an_average_really_moves_by_more_than_one():
    # Nothing is near anything until z comes: then t records gain one each, and z itself counts t.
    t = 4
    ring = [[np.cos(angle), np.sin(angle)] for angle in 2 * np.pi * np.arange(t) / t]
    apart = RadiusQuery(CentredBallLattice.around([0.0, 0.0], 1.0), EVERY, 24, 1, t)
    moved = apart.exact(Batches([*ring, [0.0, 0.0]])) - apart.exact(Batches(ring))
    assert moved.max() >= 1
    assert apart.sensitivity("add-remove", 3) == 6


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-40, 40), min_size=2, max_size=2), min_size=1, max_size=15))
def test_distances_are_counted_exactly(points):
    vectors = np.array(points, dtype=np.float64)
    distances = np.sqrt(((vectors[:, None] - vectors) ** 2).sum(axis=2))
    for stretch in (1.0, 3.0):
        wanted = np.stack([(distances <= stretch * 2.0**i).sum(axis=1) for i in range(1, 7)], axis=1)
        assert near_counts(vectors, 1, 6, stretch).tolist() == wanted.tolist()


def test_blocks_do_not_matter(monkeypatch):
    vectors = np.rint(np.random.default_rng(0).normal(size=(200, 5)) * 2**20)
    whole = near_counts(vectors, 15, 9)
    monkeypatch.setattr("fogline.queries.lattice.BLOCK_CELLS", 700)
    assert near_counts(vectors, 15, 9).tolist() == whole.tolist()


def test_fewer_records_than_wanted_are_no_special_case():
    assert capped_average(np.array([3, 3]), 6) == 1
    assert RadiusQuery(FRAME, EVERY, 0, 3, 9).exact(Batches([])).tolist() == [0, 0, 0]


def test_thinning_asks_one_record_at_a_time():
    vectors = np.rint(np.random.default_rng(0).normal(size=(500, 3)) * 1e6)
    kept = Thinning(11, 0.3).kept(vectors)
    assert kept.tolist() == [bool(Thinning(11, 0.3).kept(row[None])[0]) for row in vectors]
    assert 0.2 < kept.mean() < 0.4
    assert Thinning(12, 0.3).kept(vectors).tolist() != kept.tolist()


def two_groups(n=4000, d=5, apart=60.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[: n // 2, 0] += apart
    return X


@pytest.mark.parametrize("constants", ["practical", "theory"])
def test_a_cluster_is_found(constants):
    X = np.vstack([two_groups(6000), np.random.default_rng(1).uniform(-200, 200, size=(500, 5))])
    with seeded_noise(3):
        ball, guarantee = one_cluster(X, **TERMS, fraction=0.3, constants=constants)
    assert min(np.linalg.norm(ball.centre), np.linalg.norm(ball.centre - [60, 0, 0, 0, 0])) < 1.5
    assert 1.0 < ball.radius < 25
    inside = np.linalg.norm(X - ball.centre, axis=1) <= ball.radius
    assert abs(inside.sum() - ball.count) < 6 * ball.count_sd
    assert guarantee.delta == 1e-6
    assert guarantee.rho is None  # zCDP holds outside an event of its own, which epsilon and delta have paid for


@pytest.mark.parametrize("largest", [False, True])
def test_a_terrific_ball_is_a_cut(largest):
    X = two_groups(8000)
    with seeded_noise(4):
        ball, _ = terrific_ball(X, **TERMS, c=3.0, largest=largest)
    far = np.linalg.norm(X - ball.centre, axis=1)
    inside, beyond = far <= ball.radius, far > 3 * ball.radius
    assert 3500 <= inside.sum() <= 4100
    assert beyond.sum() >= 3900


def test_one_group_has_no_terrific_ball():
    with seeded_noise(5):
        found, _ = terrific_ball(two_groups(8000, apart=0.0), **TERMS)
    assert not found
    assert found.wanted == 1
    assert "take" in found.advice


@pytest.mark.parametrize("search", [one_cluster, terrific_ball])
@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"radius": -1.0}, "radius"),
        ({"radius": None}, "radius"),
        ({"radius_min": 400.0}, "radius_min"),
        ({"center": [0.0, np.nan]}, "center"),
        ({"fraction": 1.5}, "fraction"),
        ({"size": 0}, "size"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"constants": "other"}, "constants"),
        ({"fraction": 0.5, "size": 3}, "fraction"),
        ({"fraction": None, "size": 2**60}, "size"),
    ],
)
def test_bad_input_is_named(search, wrong, name):
    with pytest.raises((TypeError, ValueError), match=name):
        search(np.zeros((3, 2)), **(TERMS | wrong))


def test_c_is_checked_and_a_list_needs_a_centre():
    with pytest.raises(ValueError, match="c must be greater than 1"):
        terrific_ball(np.zeros((3, 2)), **TERMS, c=1.0)
    with pytest.raises(ValueError, match="center"):
        one_cluster([[0.0, 0.0]], **TERMS)


def test_a_ledger_pays_once_and_remembers(tmp_path):
    X = two_groups(1500)
    with Ledger.create(tmp_path / "l", dataset="x", epsilon=1.0, delta=1e-6, high_water=tmp_path / "m") as ledger:
        first, _ = one_cluster(X, **TERMS, fraction=0.3, ledger=ledger)
        again, _ = one_cluster(X, **TERMS, fraction=0.3, ledger=ledger)
        assert type(first) is type(again)
        if first:
            assert np.array_equal(first.centre, again.centre)
            assert first.radius == again.radius
        assert ledger.remaining().rho < 1e-6


def released(search, **more):
    def release(data):
        found, guarantee = search(data, epsilon=1.0, delta=1e-5, radius=20.0, radius_min=0.1, **more)
        told = (found.centre, found.radius, found.count) if found else str(found)
        return SimpleNamespace(told=told, guarantee=guarantee)

    return release


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("search", [one_cluster, terrific_ball])
def test_replay(search, relation):
    pairs = canary_pairs([(0.0, 10.0)] * 3, neighbours=relation, n=40, block=None)
    pairs = by_turns(few_corners(pairs), relation)
    report = replay(released(search, neighbours=relation), pairs, neighbours=relation)
    assert report.passed, str(report)


def dense_pairs(relation="add-remove"):
    """Neighbours with a real cluster, so that all stages are reached."""
    X = two_groups(1200, d=3, apart=60.0)
    Pair = type(canary_pairs([(0.0, 10.0)], neighbours="add-remove", n=40)[0])
    if relation == "replace":
        far = X.copy()
        far[0] = (1e6, 0, 0)
        return [
            Pair("a member is replaced", X, np.vstack([X[1:], X[-1:]]), "replace"),
            Pair("by a far one", X, far, "replace"),
        ]
    return [
        Pair("a member leaves", X, X[1:], "add-remove"),
        Pair("an outlier leaves", np.vstack([X, [[1e6, 0, 0]]]), X, "add-remove"),
    ]


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # so that few records reach all stages
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("search", [one_cluster, terrific_ball])
def test_replay_of_all_stages(search, relation):
    def release(data):
        terms = {"epsilon": 20.0, "delta": 1e-3, "neighbours": relation}
        found, guarantee = search(data, **terms, radius=80.0, radius_min=0.1, fraction=0.3)
        assert found
        assert guarantee.neighbours == relation
        return SimpleNamespace(told=(found.centre, found.radius, found.count), guarantee=guarantee)

    report = replay(release, dense_pairs(relation), neighbours=relation)
    assert report.passed, str(report)
    assert 0.3 < report.largest_ratio <= 1


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (parts, "capped_average", lambda scores, t: int(np.sort(scores)[::-1][:t].sum())),  # not divided by t
        (parts.RadiusQuery, "sensitivity", lambda self, relation, c: 1 if c else 0),
        (parts.BoxQuery, "sensitivity", lambda self, relation, c: 1.0),
        (parts.AverageQuery, "sensitivity", lambda self, relation, c: 0.2 * self.reach),
        (parts.RingQuery, "sensitivity", lambda self, relation, c: 0.5),
        (parts.RingQuery, "centre", None),
    ],
)
def test_a_mutant_is_caught(monkeypatch, owner, name, mutant):
    rows = [[0.0, 0.0]] * 3 + [[0.1, 0.1]] * 2
    if name == "centre":  # a ring around the mean of the raw records
        original = RingQuery.exact
        monkeypatch.setattr(
            RingQuery,
            "exact",
            lambda self, seen: original(RingQuery(self.centre + 0.12 * len(seen.rows), self.radii, self.target), seen),
        )
    else:
        monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(AssertionError):
        small_neighbours_are_close(rows)


def small_neighbours_are_close(rows):
    for t in (2, 3, 5):
        for extra in ([0.0, 0.0], [0.1, 0.0], [0.2, 0.2]):
            before, after = Batches(rows), Batches([*rows, extra])
            query = radius_queries(t)[0]
            assert np.abs(query.exact(before) - query.exact(after)).max() <= min(query.sensitivity("add-remove", 1), 2)
            assert query.sensitivity("add-remove", 1) >= 2  # t of its own, and one to each of t others
            for query in sum_queries():
                assert squared(query.exact(before), query.exact(after)) <= query.sensitivity("add-remove", 1) ** 2
