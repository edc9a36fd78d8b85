"""Reruns of the paper's tables."""

from __future__ import annotations

import math

import pytest

from fogline.reproduce import METHODS, geometric_mean_ratio, paper_cells, reproduce_modes


def test_the_paper_has_forty_cells():
    cells = paper_cells()
    assert len(cells) == 40
    assert {c.mixture for c in cells} == {"gaussian4", "t5"}
    assert {c.n for c in cells} == {700, 1000, 2000, 5000}
    assert cells[0].dp_grams_mse == 6.793
    assert set(paper_cells("small")) < set(cells)


def test_every_method_runs_and_reports():
    calls = []
    cells = [c for c in paper_cells() if c.n == 700 and c.epsilon == 5.0]
    rows = reproduce_modes(
        runs=2, cells=cells, methods=tuple(METHODS), seed=0, progress=lambda *call: calls.append(call)
    )
    assert [(r.mixture, r.method) for r in rows] == [(c.mixture, m) for c in cells for m in METHODS]
    assert calls[-1][:2] == (16, 16)
    for row in rows:
        assert row.runs == 2
        assert 0 < row.nearest_mse <= row.mse * (1 + 1e-9)
        assert row.seconds >= 0
        assert row.ratio == row.mse / row.paper_mse
    assert geometric_mean_ratio([r for r in rows if r.method == "certified"]) < 2


def test_data_repeat_with_the_seed_and_the_certified_noise_does_not():
    cells = paper_cells()[:1]
    first, second = (
        reproduce_modes(runs=1, cells=cells, methods=("certified", "mean_shift"), seed=5) for _ in range(2)
    )
    assert first[1].mse == second[1].mse
    assert first[0].mse != second[0].mse
    assert math.isnan(first[0].mse_se)


def test_mean_shift_is_run_once_for_all_epsilons():
    cells = paper_cells()[:2]
    rows = reproduce_modes(runs=1, cells=cells, methods=("mean_shift",), seed=0)
    assert rows[0].mse == rows[1].mse
    assert rows[0].seconds == rows[1].seconds


@pytest.mark.parametrize(
    ("options", "name"), [({"runs": 0}, "runs"), ({"cells": "big"}, "cells"), ({"methods": ("x",)}, "methods")]
)
def test_bad_wishes_are_named(options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        reproduce_modes(**options)
