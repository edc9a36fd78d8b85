"""What the mixture paper's parts get wrong, in numbers, and that the parts here do not."""

import numpy as np

from fogline.queries.ball_search import RadiusQuery
from fogline.queries.gaussian import SphericalQuery
from fogline.queries.lattice import CentredBallLattice, Thinning
from fogline.queries.partition import Partition

CENTRE, RADIUS = np.array([100.0, 0.0]), 1.0


class Rows:
    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=np.float64)

    def each(self, take):
        take(self.rows)


def printed_sum(X):
    """The sum that Algorithm 6 releases: points in the ball, as they are."""
    return X[np.linalg.norm(X - CENTRE, axis=1) <= RADIUS].sum(axis=0)


def printed_squares(X):
    """Its squared differences of rows paired by their index."""
    kept = X[np.linalg.norm(X - CENTRE, axis=1) <= RADIUS]
    pairs = kept[: len(kept) // 2 * 2].reshape(-1, 2, kept.shape[1])
    return float((((pairs[:, 0] - pairs[:, 1]) / np.sqrt(2)) ** 2).sum())


def test_an_uncentred_sum_moves_by_far_more_than_two_radii():
    X = CENTRE + np.random.default_rng(0).uniform(-0.5, 0.5, size=(50, 2))
    moved = np.linalg.norm(printed_sum(X) - printed_sum(X[1:]))
    assert moved > 40 * 2 * RADIUS
    query = SphericalQuery(Partition(2), (CentredBallLattice(CENTRE, RADIUS),))
    apart = (query.exact(Rows(X)) - query.exact(Rows(X[1:]))).astype(float)
    assert np.linalg.norm(apart) <= query.sensitivity("add-remove", 1)
    assert query.sensitivity("add-remove", 1) < 1.3 * query.steps  # a little more than one radius


def test_pairs_by_index_are_all_shifted_by_one_record():
    aside = np.array([0.9, 0.0])
    left, right = CENTRE - aside, CENTRE + aside
    X = np.array([left, left, right, right] * 50)
    assert abs(printed_squares(X) - printed_squares(X[1:])) > 50 * 2 * RADIUS**2
    query = SphericalQuery(Partition(2), (CentredBallLattice(CENTRE, RADIUS),))
    assert abs(int(query.exact(Rows(X))[-1]) - int(query.exact(Rows(X[1:]))[-1])) <= query.square_unit


def test_fewer_than_t_records_have_an_average():
    query = RadiusQuery(CentredBallLattice(CENTRE, RADIUS), Thinning(0, 1.0), 10, 5, 40)
    few = CENTRE + np.zeros((7, 2))
    assert query.exact(Rows(few)).tolist() == [7 * 7 // 40] * 5
