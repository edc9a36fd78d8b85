"""Replay of PrivateGaussianMixture on neighbours, and mutants that it must notice."""

from dataclasses import replace

import numpy as np
import pytest

from fogline import PrivateGaussianMixture
from fogline.algorithms import clustering as _clustering_staged
from fogline.algorithms import mixture_from_density as _mixture_sketch
from fogline.audit import canary_pairs, replay
from fogline.density.components import matching, pursuit
from fogline.queries import lattice as ball
from fogline.queries.em_step import StepQuery
from fogline.queries.lattice import BallLattice
from fogline.queries.moments import MomentQuery, SpreadQuery

RADIUS = 7.0
NAMES = {
    "empty and one record",
    "one record that changes",
    "an ordinary record",
    "corner 1",
    "missing",
    "just outside",
    "opposite corners",
    "opposite corners alone",
    "all missing, and one in the middle",
}


@pytest.fixture(autouse=True)
def _short_search(monkeypatch):
    """What is read from a release is not what is tested here."""
    fewer = replace(pursuit.PURSUIT, restarts=1, swaps=1, candidates=64)
    monkeypatch.setattr(pursuit, "PURSUIT", fewer)
    monkeypatch.setattr(matching, "MATCHING", replace(matching.MATCHING, iterations=10))
    monkeypatch.setattr(_clustering_staged, "FREQUENCIES", 96)


def audit(relation="add-remove", d=4, contributions=1, **options):
    # The sensitivity is that of records at the edge of the ball: a box inside it has none (0.74 of it with 5 for 7).
    box = [(-RADIUS, RADIUS)] * d
    pairs = canary_pairs(box, neighbours=relation, n=40, block=None, max_contributions=contributions)
    model = PrivateGaussianMixture(
        **{"n_components": 2, "steps": 2, "epsilon": 1.0, "delta": 1e-5, "radius": RADIUS} | options,
        neighbours=relation,
        max_contributions=contributions,
    )
    return replay(model, [pair for pair in pairs if pair.name in NAMES], until_failure=True)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("d", [1, 4])
def test_neighbours_cannot_be_told_apart(relation, d):
    report = audit(relation, d)
    assert report.passed, str(report)
    assert max(pair.calls for pair in report.pairs) == 5
    assert report.largest_ratio > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": None},
        {"contributions": 3},
        {"center": [1.0, 0, 0, 0]},
        {"n_components": 1, "expect_records": 5000},
    ],
)
def test_other_ways_through_the_stages(options):
    report = audit(**options)
    assert report.passed, str(report)


@pytest.mark.parametrize("query", [SpreadQuery, MomentQuery, StepQuery])
def test_half_the_sensitivity_is_noticed(monkeypatch, query):
    real = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, *args: real(self, *args) / 2)
    assert not audit().passed


def test_a_record_that_is_not_moved_into_the_ball_is_noticed(monkeypatch):
    monkeypatch.setattr(ball, "clipped", lambda vectors, radius: 2 * vectors)
    assert not audit().passed


def test_a_missing_value_that_passes_is_noticed(monkeypatch):
    def vectors(self, rows):
        return np.nan_to_num(np.rint((rows - self.middle) / self.half_widths * self.steps), nan=1e6)

    monkeypatch.setattr(BallLattice, "vectors", vectors)
    assert not audit().passed


def test_a_kind_of_step_from_the_data_is_noticed(monkeypatch):
    """How much is released of the shapes follows the number of records that were seen."""
    seen = {"rows": 0}
    real = SpreadQuery.exact

    def total(self, records):
        result = real(self, records)
        seen["rows"] = int(result[0] // self.count_unit)
        return result

    monkeypatch.setattr(SpreadQuery, "exact", total)
    monkeypatch.setattr(_mixture_sketch, "step_kind", lambda *args: "full" if seen["rows"] % 2 else "round")
    assert not audit().passed


def test_a_double_spend_is_noticed(monkeypatch):
    real = _mixture_sketch.Fraction
    monkeypatch.setattr(_mixture_sketch, "Fraction", lambda a, b: 2 * real(a, b))
    assert not audit().passed
