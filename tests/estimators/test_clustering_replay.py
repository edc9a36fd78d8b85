"""Replay of PrivateModeClustering on neighbours, and mutants that it must notice."""

from dataclasses import replace
from dataclasses import replace as changed

import numpy as np
import pytest

from fogline import PrivateModeClustering
from fogline.algorithms import clustering as _clustering_staged
from fogline.audit import canary_pairs, replay
from fogline.density.components import pursuit
from fogline.queries import moments as private_pca
from fogline.queries.em_step import StepQuery
from fogline.queries.lattice import RecordLattice
from fogline.queries.moments import MomentQuery, Spread, SpreadQuery

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
def _short_pursuit(monkeypatch):
    """What is read from a release is not what is tested here."""
    fewer = replace(pursuit.PURSUIT, restarts=1, swaps=1, candidates=64)
    monkeypatch.setattr(pursuit, "PURSUIT", fewer)
    monkeypatch.setattr(_clustering_staged, "FREQUENCIES", 96)


def audit(relation="add-remove", d=5, contributions=1, **options):
    box = [(2.0, 10.0)] * d
    pairs = canary_pairs(box, neighbours=relation, n=40, block=None, max_contributions=contributions)
    settings = {"n_clusters": 2, "refinement": 2} if d > 3 else {"n_clusters": 2, "bandwidth": 0.15}
    model = PrivateModeClustering(
        epsilon=1.0,
        delta=1e-5,
        bounds=box,
        neighbours=relation,
        max_contributions=contributions,
        **(settings | options),
    )
    return replay(model, [pair for pair in pairs if pair.name in NAMES], until_failure=True)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("d", [2, 5])
def test_neighbours_cannot_be_told_apart(relation, d):
    report = audit(relation, d)
    assert report.passed, str(report)
    assert max(pair.calls for pair in report.pairs) == (1 if d == 2 else 5)
    assert report.largest_ratio > 0.8


@pytest.mark.parametrize(
    "options",
    [
        {"projection": "identity"},
        {"n_clusters": None},
        {"refinement": "auto"},
        {"contributions": 3},
        {"expect_records": 100},
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


def test_no_clip_is_noticed(monkeypatch):
    monkeypatch.setattr(private_pca, "clipped", lambda vectors, radius: vectors)
    monkeypatch.setattr(Spread, "radius", lambda self, lattice: 1000)
    assert not audit().passed


def test_a_missing_value_that_passes_the_box_is_noticed(monkeypatch):
    def vectors(self, rows):
        outside = np.any((rows < self.box[:, 0]) | (rows > self.box[:, 1]), axis=1)
        return np.nan_to_num(np.rint((rows[~outside] - self.middle) / self.half_widths * self.steps * 3), nan=1e6)

    monkeypatch.setattr(RecordLattice, "vectors", vectors)
    assert not audit().passed


def test_the_raw_count_is_noticed(monkeypatch):
    """Sums are divided by the exact number of records, which is kept on the way."""
    counted = {}
    real_exact, real_decode = SpreadQuery.exact, SpreadQuery.decode

    def exact(self, records):
        result = real_exact(self, records)
        counted["n"] = result[0] / self.count_unit
        return result

    monkeypatch.setattr(SpreadQuery, "exact", exact)
    monkeypatch.setattr(SpreadQuery, "decode", lambda *args: changed(real_decode(*args), count=counted["n"]))
    assert not audit().passed


def test_a_clip_from_the_data_is_noticed(monkeypatch):
    """The radius of the second release is the length of the longest record."""
    seen = {"radius": 1}
    real = SpreadQuery.vectors

    def vectors(self, q):
        seen["radius"] = max(seen["radius"], int(np.sqrt(np.max(np.sum(q**2, axis=1), initial=0.0))))
        return real(self, q)

    monkeypatch.setattr(SpreadQuery, "vectors", vectors)
    monkeypatch.setattr(Spread, "radius", lambda self, lattice: seen.pop("radius", 1))
    assert not audit().passed


def test_a_double_spend_is_noticed(monkeypatch):
    real = _clustering_staged._later_portions
    monkeypatch.setattr(
        _clustering_staged, "_later_portions", lambda plan, steps: {n: 2 * p for n, p in real(plan, steps).items()}
    )
    assert not audit().passed
