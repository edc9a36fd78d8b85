"""Private minimum Hellinger distance as published: derivatives, noise by hand, the paper's tables, leaks, refusals."""

from __future__ import annotations

import csv
import dataclasses
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.accounting import PowerBudget
from fogline.cli.app import app
from fogline.families import Gamma, Normal
from fogline_research.as_published import pgd, pnr
from fogline_research.as_published.hellinger import (
    aberrant,
    fisher_information,
    gradient,
    gradient_constant,
    hessian,
    hessian_constant,
    kernel_values,
    loss,
    node_grid,
    node_sample,
    rule_of_thumb,
    step_rho,
)
from fogline_research.experiments import hellinger_cells, reproduce_hellinger

METHODS = pytest.mark.parametrize(("method", "start"), [(pgd, (2.0, 1.0)), (pnr, (4.0, 1.0))], ids=["pgd", "pnr"])


def normal_records(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(5, 2, size=n)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.floats(0.05, 20), st.lists(st.floats(-60, 60)))
@settings(max_examples=60, deadline=None)
def test_the_kernel_estimate_is_the_sum_of_its_kernels(records, bandwidth, points):
    x, at = np.sort(records), np.array(points, dtype=float)
    t = (at[:, None] - x) / bandwidth
    direct = np.where(np.abs(t) <= 1, 0.75 * (1 - t**2), 0.0).mean(axis=1) / bandwidth
    np.testing.assert_allclose(kernel_values(at, x, bandwidth), direct, atol=1e-7 / bandwidth**3 + 1e-9)


@pytest.mark.parametrize(
    ("family", "theta"),
    [(Normal(), [4.2, 1.7]), (Normal(), [4.2, -1.7]), (Gamma(), [3.0, 1.5])],
    ids=["normal", "normal, negative sigma", "gamma"],
)
def test_derivatives_are_those_of_the_loss(family, theta):
    x = np.sort(np.abs(normal_records(300)))
    nodes = node_grid(x, 0.5)
    step = 1e-5
    slopes, bends = [], []
    for i in range(2):
        shift = step * np.eye(2)[i]
        ends = np.array(theta) + shift, np.array(theta) - shift
        slopes.append((loss(family, ends[0], nodes) - loss(family, ends[1], nodes)) / (2 * step))
        bends.append((gradient(family, ends[0], nodes) - gradient(family, ends[1], nodes)) / (2 * step))
    np.testing.assert_allclose(gradient(family, theta, nodes), slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(hessian(family, theta, nodes), bends, rtol=1e-6, atol=1e-8)


def test_the_hessian_of_appendix_e_for_the_normal():
    x, (mu, sigma) = np.sort(normal_records(200)), (4.5, 1.8)
    nodes = node_sample(x, 0.6, 700, np.random.default_rng(1))
    t = nodes.x - mu
    ratio = np.sqrt(Normal().pdf([mu, sigma], nodes.x) / kernel_values(nodes.x, x, 0.6)) / 700
    u = np.array([t / sigma**2, (t**2 - sigma**2) / sigma**3])
    second = np.array(
        [
            [(t**2 - sigma**2) / sigma**4, t * (t**2 - 3 * sigma**2) / sigma**5],
            [t * (t**2 - 3 * sigma**2) / sigma**5, (t**4 - 5 * sigma**2 * t**2 + 2 * sigma**4) / sigma**6],
        ]
    )
    np.testing.assert_allclose(gradient(Normal(), [mu, sigma], nodes), -2 * u @ ratio, rtol=1e-10)
    expected = (u[:, None] * u[None] - 2 * second) @ ratio
    np.testing.assert_allclose(hessian(Normal(), [mu, sigma], nodes), expected, rtol=1e-9)


def test_monte_carlo_integrals_approach_the_quadrature():
    x = np.sort(normal_records(400))
    exact = gradient(Normal(), [4.0, 1.5], node_grid(x, 0.5))
    drawn = gradient(Normal(), [4.0, 1.5], node_sample(x, 0.5, 200_000, np.random.default_rng(0)))
    np.testing.assert_allclose(drawn, exact, atol=0.02)


@given(st.integers(2, 40), st.integers(0, 10**6), st.floats(-8, 8), st.floats(0.5, 3.0))
@settings(max_examples=80, deadline=None)
def test_the_sensitivity_of_proposition_20_holds_on_a_wide_grid(n, seed, other, sigma):
    """One record replaced moves the gradient by at most 2 sqrt(2/n) sqrt(lambda_max), within C sqrt(m) n^(-1/2)."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=n), -8, 8)
    neighbour = np.concatenate([[other], x[1:]])
    ends = np.array([-9.0, 9.0])  # the same grid for both: what the paper does not have
    slopes = []
    for records in (x, neighbour):
        points = np.linspace(*ends, 4001)
        roots = np.sqrt(kernel_values(points, np.sort(records), 0.4)) * np.sqrt(Normal().pdf([0.3, sigma], points))
        slopes.append(-2 * roots @ Normal().score([0.3, sigma], points) * (points[1] - points[0]))
    moved = float(np.linalg.norm(slopes[0] - slopes[1]))
    largest = np.linalg.eigvalsh(fisher_information(Normal(), [0.3, sigma])).max()
    assert moved <= 2 * math.sqrt(2 / n * largest) * 1.001
    assert moved <= gradient_constant(Normal(), [0.3, sigma]) * math.sqrt(2) * n**-0.5 * 1.001


def test_with_a_bandwidth_that_does_not_shrink_the_faster_rate_fails():
    """A crowd far from the model leaves one record alone there; at a fixed h it moves the gradient by n^(-1/2)."""
    points = np.linspace(-9, 9, 4001)
    weights = np.sqrt(Normal().pdf([0.0, 1.0], points))[:, None] * Normal().score([0.0, 1.0], points)
    moved = {}
    for n in (1000, 20_000):
        crowd = np.full(n - 1, 40.0)
        roots = [np.sqrt(kernel_values(points, np.sort(np.append(crowd, place)), 1.0)) for place in (-1.5, 1.5)]
        slope = 2 * (roots[0] - roots[1]) @ weights * (points[1] - points[0])
        moved[n] = float(np.linalg.norm(slope))
    assert moved[1000] / moved[20_000] == pytest.approx(math.sqrt(20), rel=1e-3)
    assert moved[20_000] > gradient_constant(Normal(), [0.0, 1.0]) * math.sqrt(2) * 20_000**-0.6


def test_constants_of_the_normal_by_hand():
    np.testing.assert_allclose(fisher_information(Normal(), [0.0, 0.5]), [[4, 0], [0, 8]], atol=1e-3)
    assert gradient_constant(Normal(), [1.0, -0.5]) == pytest.approx(2 * math.sqrt(2) * math.sqrt(8), rel=1e-4)
    assert hessian_constant(Normal(), [0.0, 1.0]) == pytest.approx(math.sqrt(72), rel=1e-3)


@METHODS
def test_noise_by_hand(method, start):
    releases, K, n = (1, 50, 400) if method is pgd else (2, 5, 400)
    found = method(normal_records(n), start=start, hdp=0.6, random_state=0)
    share = 2 * (1 - 0.7 ** (1 / K)) / releases  # in HDP
    rho = -4 * math.log(1 - share / 2)
    delta = gradient_constant(Normal(), start) * math.sqrt(2) * n**-0.6
    assert found.noise_scales[0] == pytest.approx(delta / math.sqrt(2 * rho), rel=1e-6)
    assert found.iterates.shape == (K + 1, 2)
    assert step_rho(PowerBudget(-0.5, 1.2), K, releases) == pytest.approx(rho, rel=1e-9)


def test_one_gradient_step_by_hand():
    x = normal_records(50)
    found = pgd(x, start=[4, 1.5], pdp=(1.0, 0.5), n_iterations=1, step=0.3, bandwidth=0.7, random_state=3)
    z = np.random.default_rng(3).standard_normal(2)
    slope = gradient(Normal(), [4, 1.5], node_grid(np.sort(x), 0.7))
    np.testing.assert_allclose(found.iterates[1], [4, 1.5] - 0.3 * (slope + found.noise_scales[0] * z), rtol=1e-12)
    np.testing.assert_allclose(np.diag(found.privacy_covariance), (0.3 * found.noise_scales[0]) ** 2, rtol=1e-9)


@METHODS
def test_without_noise_both_find_the_minimum(method, start):
    x = normal_records(400)
    options = {"step": 1.0} if method is pgd else {}
    found = method(x, start=start, **options)
    nodes = node_grid(np.sort(x), rule_of_thumb(x))
    assert np.linalg.norm(gradient(Normal(), list(found.params.values()), nodes)) < 1e-4
    assert not found.guarantee.certified
    assert found.guarantee.epsilon == math.inf
    assert found.privacy_covariance.max() == 0.0
    assert found.intervals() == found.intervals(corrected=False)


def test_another_family():
    x = np.random.default_rng(0).exponential(2.0, size=3000)
    (value,) = pgd(x, start={"scale": 1.0}, family="exponential", step=1.0).params.values()
    assert value == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize(("epsilon", "runs"), [(math.inf, 60), (0.6, 60)])
def test_gradient_descent_gives_the_printed_table(epsilon, runs):
    (cell,) = [cell for cell in hellinger_cells() if cell.table == "E.17" and cell.epsilon == epsilon]
    (row,) = reproduce_hellinger(runs=runs, cells=[cell], methods=("published",), seed=2)
    error = 1 / math.sqrt(runs)
    assert abs(row.mu - row.paper_mu) < 4 * row.paper_mu_sd * error
    assert abs(row.sigma - row.paper_sigma) < 4 * row.paper_sigma_sd * error
    assert abs(row.mu_sd / row.paper_mu_sd - 1) < 4 * error / math.sqrt(2)
    assert abs(row.sigma_sd / row.paper_sigma_sd - 1) < 4 * error / math.sqrt(2)


def test_the_slower_rate_that_always_holds_misses_the_printed_table():
    ends = [
        pgd(normal_records(500, s), start=[2, 1], hdp=0.6, rate=0.5, random_state=s).params["mu"] for s in range(40)
    ]
    assert np.std(ends) > 1.4 * 0.296


def test_newton_from_3_1_falls_apart_without_a_guard():
    def lost(floor: float | None) -> float:
        runs = [pnr(normal_records(500, s), start=[3, 1], hdp=0.6, floor=floor, random_state=s) for s in range(40)]
        return float(np.mean(aberrant([run.params["mu"] for run in runs], 5.0, 2.0)))

    assert lost(None) > 0.2
    assert lost(0.2) < 0.1


def test_one_newton_step_by_hand():
    x, start = normal_records(50), np.array([4.0, 1.5])
    nodes = node_grid(np.sort(x), 0.7)
    found = pnr(x, start=start, hdp=0.5, n_iterations=1, bandwidth=0.7, floor=None, random_state=3)
    rng = np.random.default_rng(3)
    slope = gradient(Normal(), start, nodes) + found.noise_scales[0] * rng.standard_normal(2)
    wobble = (
        found.noise_scales[0] * hessian_constant(Normal(), start) / gradient_constant(Normal(), start) * math.sqrt(2)
    )
    bend = hessian(Normal(), start, nodes) + wobble * rng.standard_normal((2, 2))
    np.testing.assert_allclose(found.iterates[1], start - np.linalg.solve(bend, slope), rtol=1e-9)
    guarded = pnr(x, start=start, hdp=0.5, n_iterations=1, bandwidth=0.7, floor=0.3, random_state=3)
    values, vectors = np.linalg.eigh((bend + bend.T) / 2)
    safe = vectors @ np.diag(np.maximum(np.abs(values), 0.3)) @ vectors.T
    np.testing.assert_allclose(guarded.iterates[1], start - np.linalg.solve(safe, slope), rtol=1e-9)


@pytest.mark.parametrize(("method", "start"), [(pgd, [2.0, 1.0]), (pnr, [3.0, 1.0])])
def test_one_record_empties_the_grid(method, start):
    """The quadrature ends where the records end: with one far out all the others fall between two nodes."""
    x = normal_records(2000)
    assert abs(method(x, start=start).params["mu"] - 5.0) < 0.3
    x[0] = 1e6
    assert abs(method(x, start=start).params["mu"] - 5.0) > 1.0


def test_draws_repeat_the_records():
    """Gap 6: the nodes are records moved by at most a bandwidth, so an outlier is among them."""
    x = np.append(normal_records(200), 1000.0)
    nodes = node_sample(np.sort(x), 0.5, 5000, np.random.default_rng(0))
    assert np.any(np.abs(nodes.x - 1000.0) < 0.5)
    assert node_grid(np.sort(x), 0.5).x.max() > 999.0


@METHODS
def test_results_are_frozen_and_say_why_they_are_not_certified(method, start):
    found = method(normal_records(100), start=start, hdp=0.2, draws=500, random_state=0)
    assert not found.guarantee.certified
    assert "0.2-HDP" in found.guarantee.mechanism
    assert found.guarantee.epsilon == pytest.approx(4.3, abs=0.1)
    for gap in ("draws from the kernel density of the raw records", "bandwidth reads", "faster than n^(-1/2)"):
        assert gap in found.guarantee.reason
    assert not found.iterates.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.params = {}
    with pytest.raises(TypeError):
        found.params["mu"] = 0.0
    low, high = found.intervals(0.9)["mu"]
    wide = found.intervals(0.99)["mu"]
    assert wide[0] < low < found.params["mu"] < high < wide[1]


@METHODS
def test_heavy_noise_ends_in_numbers(method, start):
    for seed in range(10):
        found = method(normal_records(5, seed), start=start, hdp=0.01, random_state=seed)
        assert np.isfinite(found.iterates).all()


def test_thresholding_leaves_the_stated_share_of_a_normal_law():
    z = np.random.default_rng(0).normal(3, 2, size=200_000)
    assert np.mean(aberrant(z, 3.0, 2.0)) == pytest.approx(0.012, abs=0.001)


@METHODS
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"hdp": 2.0}, "hdp"),
        ({"hdp": 0.1, "pdp": (1.0, 0.2)}, "hdp and pdp"),
        ({"pdp": 0.2}, "pdp"),
        ({"start": [5.0]}, "start"),
        ({"start": [5.0, -1.0]}, "start: sigma"),
        ({"start": {"mu": 1.0}}, "start"),
        ({"start": [math.nan, 1.0]}, "start"),
        ({"n_iterations": 0}, "n_iterations"),
        ({"rate": 1.5}, "rate"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"draws": 0}, "draws"),
        ({"family": "bivariate normal"}, "family"),
        ({"family": "nromal"}, "family"),
        ({"x": []}, "x must"),
        ({"x": [1.0, math.nan]}, "x must"),
        ({"x": [[1.0, 2.0]]}, "x must"),
    ],
    ids=str,
)
def test_bad_input_is_named(method, start, options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        method(**{"x": [4.0, 5.0, 6.0], "start": start, **options})


def test_a_bad_step_and_a_bad_floor_are_named():
    with pytest.raises(ValueError, match="step"):
        pgd([1.0], start=[0, 1], step=0.0)
    with pytest.raises(ValueError, match="floor"):
        pnr([1.0], start=[0, 1], floor=0.0)


@METHODS
def test_one_record_and_equal_records(method, start):
    for x in ([5.0], [5.0, 5.0, 5.0]):
        assert np.isfinite(list(method(x, start=start, hdp=0.5, random_state=0).params.values())).all()


def test_the_paper_has_twenty_tables():
    cells = hellinger_cells()
    assert {cell.table for cell in cells} == {f"E.{i}" for i in range(1, 21)}
    assert {cell.n for cell in cells} == {200, 300, 500, 1000}
    assert {cell.power for cell in cells} == {-0.5, -0.1, 0.5, 1.0}
    assert {cell.contamination for cell in cells} == {0, 5, 10, 20, 30}
    (cell,) = [cell for cell in cells if cell.table == "E.9" and cell.epsilon == 0.2]
    assert (cell.mu, cell.mu_sd, cell.sigma_sd, cell.mu_cover) == (4.844, 1.22, 6.164, 0.626)
    assert cell.thresholded
    assert not next(cell for cell in cells if cell.table == "E.8").thresholded


def test_reruns_repeat_with_the_seed_and_compare_like_with_like():
    cell = next(cell for cell in hellinger_cells() if cell.table == "E.19" and cell.contamination == 20)
    methods = ("published", "mhde", "mle")
    first, second = (reproduce_hellinger(runs=3, cells=[cell], methods=methods, seed=4) for _ in range(2))
    assert [row.mu for row in first] == [row.mu for row in second]
    published, robust, likely = first
    assert 5.0 < robust.mu < likely.mu
    assert likely.mu == pytest.approx(5.95, abs=0.3)
    assert published.paper_mu == cell.mu


@pytest.mark.parametrize(
    ("options", "name"), [({"runs": 0}, "runs"), ({"cells": "big"}, "cells"), ({"methods": ("x",)}, "methods")]
)
def test_bad_wishes_are_named(options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        reproduce_hellinger(**options)


def test_the_command_line_reruns_columns(tmp_path):
    words = ["reproduce", "hellinger", "--runs", "2", "--seed", "1"]
    target = tmp_path / "rows.csv"
    result = CliRunner().invoke(app, [*words, "--published", "--contenders", "--json", "--csv", str(target)])
    assert result.exit_code == 0
    assert "without a certified guarantee" in result.stderr
    document = json.loads(result.stdout)
    assert "E.1 to E.20" in document["source"]
    methods = [row["method"] for row in document["rows"]]
    assert methods == ["published", "mhde", "mle"] + 3 * ["certified", "published", "mhde", "mle"]
    private = [row for row in document["rows"] if row["method"] == "certified"]
    assert all(abs(row["mu"] - 5.0) < 1.5 and row["ratio"] < 1.0 for row in private)
    assert len(list(csv.DictReader(target.read_text().splitlines()))) == len(methods)
    table = CliRunner().invoke(app, words)
    assert table.exit_code == 0
    assert "E.17" in table.stdout
