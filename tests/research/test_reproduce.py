"""Reruns of the paper's tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fogline_research.experiments import (
    METHODS,
    branch_error,
    cluster_cells,
    geometric_mean_ratio,
    paper_cells,
    regression_cells,
    reproduce_clusters,
    reproduce_modes,
    reproduce_regression,
)


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
    assert calls[-1][:2] == (2 * len(cells) * len(METHODS),) * 2
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


def test_all_runs_can_see_one_data_set():
    cells = [cell for cell in paper_cells() if (cell.n, cell.epsilon) == (700, 5.0)][:1]
    methods = ("published", "mean_shift")
    noisy, plain = reproduce_modes(runs=3, cells=cells, methods=methods, one_data_set=True, seed=1)
    assert plain.mse_se <= 1e-12 * plain.mse  # the same records every time, and no noise: only rounding is left
    assert noisy.mse_se > 0.0


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


# -- clusters and regression ------------------------------------------------------------------------------


def test_the_supplement_has_thirty_two_cells_of_regression():
    cells = regression_cells()
    assert len(cells) == 32
    assert {c.dataset for c in cells} == {"three_component", "sinusoidal"}
    assert cells[0].dp_pms_mse == 0.2461
    assert set(regression_cells("small")) < set(cells)


def test_every_method_of_regression_runs_and_reports():
    calls = []
    cells = [c for c in regression_cells() if c.n == 500 and c.epsilon == 1.0]
    rows = reproduce_regression(runs=2, cells=cells, seed=0, progress=lambda *call: calls.append(call))
    by_method = {row.method: row for row in rows}
    assert list(by_method) == ["certified", "published", "partial_mean_shift"]
    assert calls[-1][:2] == (6, 6)
    published, plain = by_method["published"], by_method["partial_mean_shift"]
    assert 0.3 < published.ratio < 3
    assert math.isnan(by_method["certified"].mse)
    assert plain.pms_mse == 0
    assert plain.right > 0.9
    assert plain.true_mse < 0.03
    assert plain.true_mse < published.true_mse + 0.01
    assert 0 <= by_method["certified"].right <= 1


def test_every_method_of_clustering_runs_and_reports():
    (cell,) = (c for c in cluster_cells() if c.dataset == "iris" and c.epsilon == 10.0)
    rows = {row.method: row for row in reproduce_clusters(runs=2, cells=[cell], seed=0)}
    assert rows["kmeans"].ari == pytest.approx(0.73, abs=0.02)
    assert rows["published"].ratio == pytest.approx(1.0, abs=0.15)
    assert rows["published"].paper_nmi == 0.7411
    assert rows["certified"].clusters >= 1
    assert rows["certified"].ari > 0.3


def test_missing_and_spurious_branches_cost():
    true = [np.array([0.0, 2.0]), np.array([1.0])]
    exact = branch_error(true, true, width=4.0)
    missing = branch_error(true, [np.array([0.0]), np.array([1.0])], width=4.0)
    spurious = branch_error(true, [np.array([0.0, 2.0]), np.array([1.0, 2.0])], width=4.0)
    nothing = branch_error(true, [np.array([]), np.array([])], width=4.0)
    assert exact == (0.0, 1.0)
    assert missing == (0.5, 0.5)
    assert spurious == (0.125, 0.5)
    assert nothing == (16.0, 0.0)


@pytest.mark.parametrize("rerun", [reproduce_clusters, reproduce_regression])
@pytest.mark.parametrize(
    ("options", "name"), [({"runs": 0}, "runs"), ({"cells": "big"}, "cells"), ({"methods": ("x",)}, "methods")]
)
def test_bad_wishes_of_other_reruns_are_named(rerun, options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        rerun(**options)


@pytest.mark.parametrize("name", ["clusters", "regression"])
def test_the_commands_print_a_table_and_write_rows(name, monkeypatch, tmp_path):
    from click.testing import CliRunner

    from fogline.cli.app import app
    from fogline_research.experiments import clusters, regression

    monkeypatch.setattr(clusters, "cluster_cells", lambda which: cluster_cells()[2:3])
    monkeypatch.setattr(regression, "regression_cells", lambda which: regression_cells()[3:4])
    words = ["reproduce", name, "--runs", "1", "--published", "--contenders", "--seed", "1"]
    shown = CliRunner().invoke(app, [*words, "--csv", str(tmp_path / "rows.csv")])
    assert shown.exit_code == 0, shown.output
    assert "published" in shown.stdout
    assert shown.stderr.count("warning") == 1
    lines = {"clusters": 6, "regression": 4}[name]
    assert len((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()) == lines
    printed = CliRunner().invoke(app, [*words, "--json"])
    document = json.loads(printed.stdout, parse_constant=pytest.fail)
    assert document["format"] == f"fogline-reproduce-{name}-1"
    assert [row["method"] for row in document["rows"]][:2] == ["certified", "published"]
