"""The skeletons that newcomers copy: they run, replay, and are answered from a ledger."""

import re
from pathlib import Path

import numpy as np
import pytest
from docs.skeletons.estimator import DensestIntervals
from docs.skeletons.query import IntervalCountsQuery

from fogline import Ledger
from fogline.audit import canary_pairs, replay
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick

FOLDER = Path(__file__).parent.parent / "docs" / "skeletons"
BOX = [(-8.0, 8.0), (-8.0, 8.0)]


def audit(relation, **options):
    model = DensestIntervals(epsilon=1.0, delta=1e-6, bounds=BOX, neighbours=relation)
    return replay(model, canary_pairs(BOX, neighbours=relation, n=20, block=None)[::3], **options)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_neighbours_cannot_be_told_apart(relation):
    report = audit(relation)
    assert report.passed, str(report)
    assert report.largest_ratio > 0.9


def test_half_the_sensitivity_is_noticed(monkeypatch):
    real = IntervalCountsQuery.sensitivity
    monkeypatch.setattr(IntervalCountsQuery, "sensitivity", lambda self, *told: real(self, *told) / 2)
    assert not audit("add-remove", until_failure=True).passed


def test_a_question_that_was_asked_before_is_answered_without_records(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal([3.1, -2.2], 0.1, size=(2000, 2))
    budget = {"epsilon": 1.0, "delta": 1e-6}
    with Ledger.create(tmp_path / "budget", dataset="d", **budget, high_water=tmp_path / "marks") as ledger:
        model = DensestIntervals(**budget, bounds=BOX, ledger=ledger)
        first = model.fit(X).intervals_
        left = ledger.remaining().rho

        def never(self, records):
            raise AssertionError("a stored answer was asked of the records")

        monkeypatch.setattr(IntervalCountsQuery, "exact", never)
        assert model.fit(X).intervals_.tolist() == first.tolist()
        assert ledger.remaining().rho == left


def test_the_proof_quotes_the_query():
    squeezed = re.sub(r"\s+", "", (FOLDER / "query.py").read_text())
    quotes = re.findall(r"```python\n(.*?)```", (FOLDER / "query.proof.md").read_text(), flags=re.DOTALL)
    assert quotes
    assert all(re.sub(r"\s+", "", quote) in squeezed for quote in quotes)


def test_the_noise_is_the_same_for_the_same_seed():
    X = np.zeros((50, 2))
    found = []
    for _ in range(2):
        with seeded_noise(3):
            found.append(DensestIntervals(epsilon=1.0, delta=1e-6, bounds=BOX).fit(X).counts_.counts.tolist())
    assert found[0] == found[1]
