"""Certified mixtures by terrific balls and by halves: what they find, and that neighbours cannot be told apart."""

import gc
import re
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.accounting import Guarantee
from fogline.algorithms.ball_search import LocatedTerms
from fogline.algorithms.mixture_recursive import RecursivePlan
from fogline.audit import Pair, canary_pairs, replay
from fogline.queries.ball_search import Ball
from fogline.queries.lattice import CentredBallLattice, integer_directions
from fogline.releases.curator import Curator
from fogline.testing import seeded_noise
from fogline_research.certified import pegme, pgme, separated_mixtures
from fogline_research.certified.separated_mixtures import (
    BallParts,
    CellRadiusQuery,
    FirstBall,
    Halves,
    Projected,
    ViewQuery,
    _terrific_parts,
    _within,
)

SETTINGS = {"n_components": 2, "epsilon": 2.0, "delta": 1e-6, "radius": 100.0, "sigma_min": 0.5, "sigma_max": 2.0}


class Rows:
    """Records as a query meets them."""

    memory = {}  # noqa: RUF012

    def __init__(self, rows):
        self.rows = rows

    def each(self, take):
        take(self.rows)


def spheres(places, n=3000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(place, 1.0, size=(n, d)) for place in places])


@pytest.mark.parametrize("learn", [pgme, pegme])
def test_components_far_apart_are_found(learn):
    with seeded_noise(0):
        fit, _ = learn(spheres((-40.0, 0.0, 40.0), n=8000), **SETTINGS | {"n_components": 3})
    np.testing.assert_allclose(np.sort(fit.means.mean(axis=1)), [-40, 0, 40], atol=0.3)
    np.testing.assert_allclose(fit.weights, 1 / 3, atol=0.05)
    np.testing.assert_allclose(np.sqrt(fit.covariances[:, 0, 0]), 1.0, atol=0.2)
    assert fit.verdict is None


@pytest.mark.parametrize("learn", [pgme, pegme])
def test_what_has_no_parts_is_an_answer(learn):
    with seeded_noise(0):
        for rows in (spheres((0.0,), n=4000), np.zeros((0, 4)), np.zeros((1, 4)), np.full((3, 4), np.nan)):
            fit, _ = learn(rows, **SETTINGS)
            assert np.isfinite(fit.means).all()


def test_a_ball_of_the_projection_cuts_where_none_of_all_columns_does():
    """Many columns of noise widen every ball; along the leading directions two components are apart (steps 5 to 7)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 40))
    X[:6000, 0] += 30.0
    plan = RecursivePlan.checked(d=40, n_components=2, radius=60.0, sigma_min=0.9, sigma_max=2.0)
    terms = LocatedTerms.located(8.0, 1e-6, "add-remove", 1, "record")
    with seeded_noise(0):
        parts, _, _ = _terrific_parts(plan, 5.0, Curator(X, terms, width=40))
    assert [cut.along is not None for cut in parts.cuts] == [True]
    inside = parts.labels(X)
    assert {(inside[:6000] == part).mean() > 0.95 for part in (0, 1)} == {True, False}
    assert {(inside[6000:] == part).mean() > 0.95 for part in (0, 1)} == {True, False}


# -- views and parts ---------------------------------------------------------------------------------------------


def test_the_ring_is_left_out_and_parts_are_disjoint():
    parts = BallParts(2).divided(0, Ball(np.array([5.0, 0.0]), 1.0, 0.0, 0.0, stretch=3.0), None)
    along = Projected(CentredBallLattice.around([0.0, 0.0], 50.0), integer_directions(np.array([[0.0, 1.0]])))
    parts = parts.divided(1, Ball(np.array([9.0]), 1.0, 0.0, 0.0, stretch=2.0), along)
    rows = np.array([[5.5, 0.0], [5.0, 2.0], [0.0, 9.5], [0.0, 10.5], [0.0, -9.0]])
    assert parts.labels(rows).tolist() == [0, -1, 1, -1, 2]


def test_halves_are_complementary_and_a_records_half_is_its_own():
    frame, rows = CentredBallLattice.around(np.zeros(3), 10.0), np.random.default_rng(0).normal(size=(2000, 3))
    Y, Z = Halves(frame, 7), Halves(frame, 7, second=True)
    assert ((Y.labels(rows) == 0) ^ (Z.labels(rows) == 0)).all()
    assert abs((Y.labels(rows) == 0).mean() - 0.5) < 0.05
    assert (Y.labels(rows)[::-1] == Y.labels(rows[::-1])).all()


def test_the_first_of_two_balls_has_a_record_that_is_in_both():
    frame = CentredBallLattice.around([0.0], 20.0)
    along = Projected(frame, integer_directions(np.array([[1.0]])))
    balls = (Ball(np.array([0.0]), 3.0, 0.0, 0.0), Ball(np.array([2.0]), 3.0, 0.0, 0.0))
    rows = np.linspace(-10, 10, 400)[:, None]
    for second in (False, True):
        parts = FirstBall(Halves(frame, 5, second=second), along, balls)
        labels = parts.labels(rows)
        assert set(labels[np.abs(rows[:, 0]) < 2.9].tolist()) == {-1, 0}
        assert set(labels[rows[:, 0] > 5.1].tolist()) == {-1}
        # what is left to search: this half, outside of both balls
        mine = parts.half.labels(rows) == 0
        assert len(parts.rows(rows)) == int((mine & (labels < 0)).sum())


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), max_size=30),
    record=st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
    other=st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
)
def test_the_heaviest_cell_moves_by_one(rows, record, other):
    frame = CentredBallLattice.around([0.0, 0.0], 8.0)
    sides = frame.steps * 2.0**20 * np.array([0.05, 0.2, 1.0])
    query = CellRadiusQuery(frame, integer_directions(np.eye(2)), np.array([0.3, 0.7]), sides, np.ones(3))
    base = np.array(rows, dtype=float).reshape(-1, 2)
    numbers = [query.exact(Rows(np.append(base, extra, axis=0))) for extra in (np.zeros((0, 2)), [record], [other])]
    for one in numbers:
        for two in numbers:
            assert np.abs(one - two).max() <= query.sensitivity("replace", 1) == 1.0


# -- privacy -----------------------------------------------------------------------------------------------------


def held(learn, **options):
    """A fit as the audit expects it: one object with its guarantee."""

    def release(rows):
        fit, guarantee = learn(rows, **options)
        return SimpleNamespace(fit=fit, guarantee=guarantee)

    return release


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_neighbours_cannot_be_told_apart(neighbours):
    pairs = canary_pairs([(-15.0, 15.0)] * 2, neighbours=neighbours, n=60, block=None)[::6]
    report = replay(held(pgme, **SETTINGS | {"radius": 20.0, "neighbours": neighbours}), pairs)
    assert report.passed, str(report)


def test_neighbours_cannot_be_told_apart_by_halves():
    """The audit adds up all calls, and knows nothing of halves: two purses are two budgets to it."""
    options = SETTINGS | {"radius": 20.0}
    both = Guarantee.certified_release(
        epsilon=4.5, delta=2e-6, neighbours="add-remove", mechanism="two budgets", proof="separated-mixtures"
    )
    pairs = canary_pairs([(-15.0, 15.0)] * 2, neighbours="add-remove", n=60, block=None)[::6]
    report = replay(held(pegme, **options), pairs, claim=both)
    assert report.passed, str(report)


def test_a_purse_pays_for_its_own_half_only(monkeypatch):
    """What is asked of Y does not see Z, and what is asked of Z does not see Y; neither exceeds the budget."""
    rows, asked = spheres((-8.0, 8.0), n=600, d=2), []
    for name in ("ask", "first_above", "frequent"):
        real = getattr(Curator, name)

        def spy(self, query, *rest, real=real, **more):
            answer = real(self, query, *rest, **more)
            asked.append((self.__dict__["_half"], query, self.spent[-1], self.terms.rho))
            return answer

        monkeypatch.setattr(Curator, name, spy)
    with seeded_noise(0):
        pegme(rows, **SETTINGS | {"radius": 20.0, "epsilon": 10.0})
    for half in ("Y", "Z"):
        mine = [(query, spent, rho) for name, query, spent, rho in asked if name == half]
        assert mine
        assert sum(spent for _, spent, _ in mine) <= mine[0][2]
        for query, _, _ in mine:
            seen = query.view if isinstance(query, ViewQuery) else query.partition
            dealt = seen.half if isinstance(seen, FirstBall) else seen
            assert dealt.second == (half == "Z")
            other = rows[Halves(dealt.frame, dealt.key, second=half == "Y").labels(rows) == 0]
            assert (seen.labels(other) == -1).all()
            if isinstance(query, ViewQuery):
                assert len(query.view.rows(other)) == 0


def test_neighbours_cannot_be_told_apart_where_balls_are_found():
    X = spheres((-8.0, 8.0), n=400, d=2)
    records = ([8.0, 8.0], [0.0, 0.0], [15.0, -15.0])
    pairs = [Pair(str(record), X, np.append(X, [record], axis=0), "add-remove") for record in records]
    report = replay(held(pgme, **SETTINGS | {"radius": 20.0, "epsilon": 40.0}), pairs)
    assert report.passed, str(report)
    assert report.largest_ratio > 0.3


def test_half_the_sensitivity_of_the_heaviest_cell_is_noticed(monkeypatch):
    real = CellRadiusQuery.exact
    monkeypatch.setattr(CellRadiusQuery, "exact", lambda self, records: 8 * real(self, records))
    pairs = canary_pairs([(-15.0, 15.0)] * 2, neighbours="add-remove", n=60, block=None)
    options = SETTINGS | {"radius": 20.0}
    assert not replay(held(pgme, **options), pairs, until_failure=True).passed


@pytest.mark.parametrize(
    ("change", "name"),
    [({"epsilon": 0.0}, "epsilon"), ({"n_components": 0}, "n_components"), ({"radius": -1.0}, "radius")],
)
def test_bad_input_is_named(change, name):
    for learn in (pgme, pegme):
        with pytest.raises((ValueError, TypeError), match=name):
            learn(np.zeros((3, 2)), **SETTINGS | change)
    with pytest.raises(ValueError, match="stretch"):
        pgme(np.zeros((3, 2)), **SETTINGS, stretch=0.5)


def test_what_the_proof_quotes_is_in_the_code():
    file = Path(separated_mixtures.__file__)
    code = re.sub(r"\s+", "", file.read_text())
    quotes = re.findall(r"```python\n(.*?)```", file.with_suffix(".proof.md").read_text(), re.DOTALL)
    assert len(quotes) >= 6
    assert [line for quote in quotes for line in quote.splitlines() if re.sub(r"\s+", "", line) not in code] == []


@pytest.mark.parametrize("d", [1, 3, 50])
@pytest.mark.parametrize("stretch", [1.0, 5.0])
def test_in_or_out_of_a_ball_does_not_depend_on_how_far_out_records_are_cut(d, stretch):
    """By lattice vectors, which are shrunk into their frame, the same records are inside, huge ones included."""
    rng = np.random.default_rng(d)
    rows = np.concatenate([rng.normal(size=(500, d)) * size for size in (1.0, 10.0, 1e3, 1e300)])
    rows = np.append(rows, [np.full(d, 1.7e308), np.full(d, -1.7e308)], axis=0)
    ball = Ball(rng.normal(size=d), 3.0 * np.sqrt(d), 0.0, 0.0, stretch=stretch)
    frame = CentredBallLattice(ball.centre, 2.0 * stretch * ball.radius)
    squared = (frame.vectors(rows) ** 2).sum(axis=1)
    told = [squared <= (size * ball.radius / frame.radius * frame.steps) ** 2 for size in (1.0, stretch)]
    np.testing.assert_array_equal(_within(ball, rows, stretch), told)


def test_images_are_kept_for_one_view_only():
    class Doubled:
        def rows(self, rows):
            return 2.0 * rows

    class Sum:
        def exact(self, records):
            parts = []
            records.each(lambda rows: parts.append(rows.sum()))
            return sum(parts)

    records, first, second = (
        Rows(np.ones((3, 1))),
        Doubled(),
        Projected(CentredBallLattice.around([0.0], 8.0), integer_directions(np.eye(1))),
    )
    records.memory = {}
    assert ViewQuery(Sum(), first).exact(records) == 6.0
    records.rows = np.zeros((3, 1))
    assert ViewQuery(Sum(), first).exact(records) == 6.0  # the images, not another pass
    assert ViewQuery(Sum(), second).exact(records) == 0.0
    assert records.memory["view"][0] is second


def led_to(root):
    """Everything that an object refers to, through others; not through code, whose globals are the whole program."""
    found, left = {}, [root]
    while left:
        one = left.pop()
        if id(one) in found or isinstance(one, type | ModuleType | FunctionType):
            continue
        found[id(one)] = one
        left += gc.get_referents(one)
    return list(found.values())


@pytest.mark.parametrize("learn", [pgme, pegme])
def test_what_comes_back_leads_to_no_record_and_no_image_of_one(learn, monkeypatch):
    """Images of a view are kept with the records from one query to the next, and forgotten with them."""
    met, real = [], separated_mixtures._seen

    def spy(view, records):
        seen = real(view, records)
        met.append((records, sum(len(batch) for batch in records.memory["view"][1])))
        return seen

    monkeypatch.setattr(separated_mixtures, "_seen", spy)
    rows = spheres((-8.0, 8.0), n=400, d=2)
    with seeded_noise(0):
        answer = learn(rows, **SETTINGS | {"radius": 20.0, "epsilon": 10.0})
    assert max(kept for _, kept in met) > 100  # there was something to forget
    assert all(records.memory == {} for records, _ in met)
    with pytest.raises(RuntimeError, match="over"):
        met[0][0].each(lambda rows: None)
    there = led_to(answer)
    assert not any(isinstance(one, Curator | separated_mixtures._Seen | type(met[0][0])) for one in there)
    arrays = [one for one in there if isinstance(one, np.ndarray)]
    assert arrays
    assert max(array.size for array in arrays) < 100
