"""The density benchmark's own arithmetic: families, ratios, coverage, and the stored table."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import density
import density_coverage
import density_figures
from density_figures import Errors, family_table, floored, geometric_mean, ratio_rows, show_ratios
from density_methods import METHODS, Sample, baselines
from fogline_research.datasets.columns import COLUMNS, generator
from fogline_research.datasets.joints import JOINTS
from fogline_research.metrics.cell_masses import NEUTRAL_CELLS


def rows_of(method, *values, n=1000, metric="w1"):
    return [Errors("tune", f"set {k}", n, 1.0, method, {metric: value}) for k, value in enumerate(values)]


def test_a_family_has_one_variant_for_all_sets_and_hindsight_the_best_of_each():
    rows = [
        *rows_of("a@1", 1.0, 8.0),
        *rows_of("a@2", 4.0, 1.0),  # geometric mean 2 < sqrt(8)
        *rows_of("b@1", 3.0, 3.0),
        *rows_of("smoother@1", 0.1, 0.1),
    ]
    cells, chosen = family_table(rows)
    found = {(cell["family"], cell["set"]): cell["w1"] for cell in cells}
    assert (found["a", "set 0"], found["a", "set 1"]) == (4.0, 1.0)
    assert (found["hindsight", "set 0"], found["hindsight", "set 1"]) == (1.0, 1.0)  # the smoother is not private
    assert {(row["family"], row["variant"], round(row["mean"], 9)) for row in chosen} == {
        ("a", "2", 2.0), ("b", "1", 3.0), ("smoother", "1", 0.1),
    }  # fmt: skip


def test_ratios_are_to_the_family_with_the_least_mean():
    cells, _ = family_table([*rows_of("a@1", 4.0, 1.0), *rows_of("b@1", 3.0, 3.0), *rows_of("limit@leaves", 1.0, 1.0)])
    rows = ratio_rows(rows_of("method", 2.0, 2.0), cells)
    assert [row["baseline"] for row in rows] == ["a", "a"]
    assert [row["fixed"] for row in rows] == [0.5, 2.0]
    assert [row["hindsight"] for row in rows] == [pytest.approx(2 / 3), 2.0]
    assert [row["limit"] for row in rows] == [2.0, 2.0]
    text = show_ratios(rows, "made")
    assert "pooled" in text
    assert "worst 2.00 set 1 (1000, 1)" in text


def test_errors_count_from_half_of_the_sampling_error():
    assert floored("w1", 0.001, 1000) == density_figures.FLOORS["w1"]
    assert floored("w1", 0.1, 1000, limit=0.5) == 0.25
    assert floored("w1", 0.3, 1000, limit=0.5) == 0.3
    assert floored("hellinger", 0.0, 800) == pytest.approx(1 / 80)
    assert math.isnan(geometric_mean([]))


def test_the_stored_table_has_every_made_set_and_every_cell():
    for dim in (1, 2, 3):
        table = density.baseline_table(dim)
        stored = {(cell["set"], cell["n"], cell["epsilon"]) for cell in table if cell["family"] == "hindsight"}
        made = [one.name for one in (*COLUMNS, *JOINTS) if one.d == dim]
        assert {(name, *cell) for name in made for cell in density.CELLS} <= stored
        assert {baseline.family for baseline in baselines(dim)} | {"fourier"} <= {cell["family"] for cell in table}


def test_tables_keep_what_was_not_measured_anew(tmp_path, monkeypatch):
    import common

    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(density, "RAW", tmp_path)
    common.write_csv("density", [{"dim": 1, "half": "tune", "set": "x", "n": 1000, "epsilon": 1, "family": family,
                                  **dict.fromkeys(density_figures.METRICS, "0.5")}
                                 for family in ("dawa", "hindsight", "fogline")])  # fmt: skip
    line = {"half": "tune", "set": "x", "n": 1000, "epsilon": 1.0, "run": 0, "method": "fogline"}
    header = ",".join(density.FIELDS)
    values = [str(line.get(name, 0.25)) for name in density.FIELDS]
    (tmp_path / "d1.csv").write_text(f"{header}\n{','.join(values)}\n")
    density.write_tables()
    stored = {cell["family"]: cell["w1"] for cell in density.baseline_table(1)}
    assert stored == {"dawa": 0.5, "hindsight": 0.5, "fogline": 0.25}
    assert [row["family"] for row in common.read_csv("density_baselines")] == ["fogline"] * 6


class Exact:
    """A method that knows the population."""

    def __init__(self, one):
        self.one = one

    def cell_masses(self, resolution):
        return self.one.cell_masses(resolution)


@pytest.mark.parametrize("dim", [1, 2])
def test_whoever_knows_the_population_is_ahead_everywhere(dim, capsys):
    one = next(one for one in density.density_sets(dim, "tune") if one.kind not in ("few values", "wide box"))
    if dim > 1:
        one = next(one for one in density.density_sets(dim, "tune") if one.kind == "DPBench" or one.name == "checkers")
    rows = density.score(lambda *_: Exact(one), dim=dim, cells=[(1000, 0.3)], names=[one.name])
    judged = [row for row in rows if row["metric"] != "rank"]  # ranks are those of the records
    assert {row["metric"] for row in judged} == {"hellinger", "w1", "prefix", "boxes", "squared"}
    assert all(row["fixed"] <= 1.0 and row["limit"] <= 0.5 + 1e-9 for row in judged)
    assert "over no privacy" not in capsys.readouterr().out  # n * epsilon is too small for that figure


def test_methods_see_the_same_records_and_their_own_noise():
    name = COLUMNS[0].name
    assert density.draw(name, 1, 1000, 0) is density.draw(name, 1, 1000, 0)
    assert (density.draw(name, 1, 1000, 0).records != density.draw(name, 1, 1000, 1).records).any()
    seeds = {density.noise_seed(name, n, epsilon, run) for n, epsilon in density.CELLS for run in (0, 1)}
    assert len(seeds) == 24


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_baseline_gives_a_distribution(dim):
    one = density.density_sets(dim)[0]
    sample = Sample(one.draw(500, generator("baseline")), one.bounds, one.steps)
    assert len({baseline.name for baseline in baselines(dim)}) == len(baselines(dim))
    for baseline in baselines(dim):
        masses = baseline.masses(sample, 0.5, generator(baseline.name), NEUTRAL_CELLS[dim])
        assert masses.shape == (NEUTRAL_CELLS[dim],) * dim
        assert masses.min() >= 0.0, baseline.name
        assert masses.sum() == pytest.approx(1.0), baseline.name


def test_todays_release_is_a_method():
    one = COLUMNS[0]
    records = one.draw(2000, generator("fourier"))
    answers = [METHODS["fourier"](records, one.bounds, one.steps, 1.0, seed).cell_masses(4096) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(answers[0], answers[1])
    assert (answers[0] != answers[2]).any()
    assert answers[0].sum() == pytest.approx(1.0)


class Binomial:
    """A method without privacy: the records' own shares, and Clopper-Pearson intervals."""

    def __init__(self, records, bounds, *_):
        self.records, self.bounds = records, np.array(bounds)

    def interval(self, kind, questions, level, target):
        tail, n = (1 - level) / 2, len(self.records)
        if kind == "quantile":
            ends = [np.quantile(self.records, np.clip(questions + sign * 0.06, 0, 1)) for sign in (-1, 1)]
            return ends[0], ends[1]
        upper = np.where(questions[..., 1] >= self.bounds[:, 1], np.inf, questions[..., 1])
        hits = np.array([
            ((self.records >= box[:, 0]) & (self.records < top)).all(axis=1).sum()
            for box, top in zip(questions, upper, strict=True)
        ])  # fmt: skip
        if target == "records":
            return hits / n, hits / n
        low = np.where(hits == 0, 0.0, beta.ppf(tail, hits, n - hits + 1))
        return low, np.where(hits == n, 1.0, beta.ppf(1 - tail, hits + 1, n - hits))


def test_coverage_of_intervals_that_are_known_to_cover():
    options = {"cells": [(1000, 1.0)], "runs": 5, "names": ["normal in -5:5", "heaps at both walls", "Poisson(4)"]}
    rows = density_coverage.coverage(Binomial, **options)
    assert len(rows) == 6
    for row in rows:
        assert row["releases"] == 5
        assert row["coverage"] >= 0.9, row
    boxes = [row for row in density_coverage.coverage(Binomial, target="records", **options) if row["kind"] == "box"]
    assert [row["coverage"] for row in boxes] == [1.0] * 3
    assert [row["width"] for row in boxes] == [0.0] * 3


def test_coverage_of_intervals_that_miss():
    class Wrong(Binomial):
        def interval(self, kind, questions, level, target):
            low, high = super().interval(kind, questions, level, target)
            return low + 1e3, high + 1e3

    rows = density_coverage.coverage(Wrong, cells=[(1000, 1.0)], names=["normal in -5:5"])
    assert [row["coverage"] for row in rows if row["kind"] == "box"] == [0.0]
    assert [row["coverage"] for row in rows if row["kind"] == "quantile"] == [0.0]
