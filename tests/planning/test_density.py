"""Errors of a release on leaves, before it is made: monotone, of the right size, and without any data."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import DensitySketch
from fogline.cli.app import app
from fogline.datasets.simulated import Mixture
from fogline.density.leaves import LeafSpec, Noise
from fogline.planning.density import _draws, _noisy, expected_density_error, falling, simulated_release
from fogline.queries.exact_counts import exact_counts
from fogline.releases.leaf_release import plan_stages, settle_terms
from fogline.releases.terms import ReleaseTerms
from fogline.testing import seeded_noise

TWO = Mixture.of([0.6, 0.4], [[30.0], [65.0]], [6.0, 9.0])


@pytest.fixture(scope="module")
def expected():
    return expected_density_error({"age": "age"}, 3000, shape=TWO, epsilons=[1.0, 0.05, 0.3], runs=1)


def test_more_epsilon_never_looks_worse(expected):
    assert expected.epsilons == (0.05, 0.3, 1.0)
    numbers = []
    for row in expected.rows:
        parts = (row.means[0], row.boxes[0], *row.quantiles[0])
        numbers.append([row.count_error, *(part.total for part in parts)])
    assert (np.diff(np.array(numbers), axis=0) <= 1e-12).all()
    assert expected.rows[0].means[0].privacy > 2 * expected.rows[2].means[0].privacy


def test_expected_errors_are_those_that_a_release_states(expected):
    rows = TWO.sample(3000, np.random.default_rng(5))[0]
    with seeded_noise(5):
        density = DensitySketch([(0, 125)], features="leaves").update(rows).release(epsilon=1.0)
    row = expected.rows[2]
    for stated, planned in (
        (density.mean().standard_error, row.means[0].total),
        (density.quantile(0.25).standard_error, row.quantiles[0][1].total),
        (density.probability([(25, 37.5)]).standard_error, row.boxes[0].total),
    ):
        assert 0.4 < stated / planned < 2.5


def test_the_noise_is_exactly_that_of_a_release():
    spec = LeafSpec.plan([(0, 1)])
    terms = settle_terms(spec, ReleaseTerms.checked(0.7, 0.0, "replace", 3, allow_pure=True))
    counted = exact_counts(spec)
    counted.add_rows(np.full((50, 1), 0.5))
    made = simulated_release(spec, np.asarray(counted.table()).reshape(spec.leaves), terms, np.random.default_rng(0))
    pilot, counts = plan_stages(spec, terms)
    assert (made.pilot.noise, made.counts.noise) == (pilot.noise, counts.noise)
    assert made.total == pytest.approx(50, abs=6 * made.total_sd)


@pytest.mark.parametrize("noise", [Noise("laplace", 3.0), Noise("gaussian", 3.0)])
def test_draws_have_the_variance_of_their_law(noise):
    drawn = _draws(noise, 40_000, np.random.default_rng(0))
    assert drawn.var() == pytest.approx(noise.variance, rel=0.05)
    assert abs(drawn.mean()) < 0.1


def test_boxes_hold_the_sums_of_their_leaves():
    table = np.arange(24, dtype=np.int64).reshape(4, 6)
    boxes = np.array([[[0, 2], [1, 4]], [[2, 4], [0, 6]]])
    still = Noise("laplace", 0.02)  # hardly ever anything but zero
    found = _noisy(table, boxes, still, np.random.default_rng(0)).counts
    assert found.tolist() == [table[:2, 1:4].sum(), table[2:].sum()]


def test_a_falling_sequence_is_the_nearest_one():
    assert falling(np.array([3.0, 2.0, 1.0])).tolist() == [3, 2, 1]
    assert falling(np.array([1.0, 2.0, 6.0])).tolist() == [3, 3, 3]


def test_a_public_sample_keeps_its_heaps():
    sample = np.concatenate([np.zeros(300), np.random.default_rng(0).gamma(4.0, 3.0, 700)])[:, None]
    found = expected_density_error([(0, 60)], 2000, shape=sample, epsilons=[1.0], runs=1)
    assert found.shape == "like a public sample of 1000 rows"
    assert found.rows[0].quantiles[0][1].total < found.rows[0].quantiles[0][3].total  # a quartile in the heap is sure


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n": 0}, "^n must"),
        ({"n": 10**8}, "^n must be at most"),
        ({"shape": "square"}, "^shape must"),
        ({"shape": np.zeros((5, 2)), "bounds": [(0, 10)] * 3}, "^shape has 2 columns"),
        ({"shape": np.full((5, 1), 99.0)}, "^shape: a public sample needs"),
        ({"epsilons": []}, "^epsilons must"),
        ({"runs": 0}, "^runs must"),
    ],
)
def test_what_cannot_be_planned_is_named(changed, words):
    parameters = {"bounds": [(0, 10)], "n": 100, **changed}
    with pytest.raises(ValueError, match=words):
        expected_density_error(parameters.pop("bounds"), parameters.pop("n"), **parameters)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_needs_no_delta_and_writes_a_page(tmp_path):
    words = ["plan", "--for", "density", "--bounds", "0:10", "--n", 500, "--epsilons", "0.5,2", "--runs", 1]
    result = run(*words, "--columns", "stay", "--picture", tmp_path / "plan.html")
    assert result.exit_code == 0, result.output
    for word in ("stay", "count", "50%", "nothing was spent"):
        assert word in result.stdout
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    for word in ("Before spending: density", "error of the median stay", "prefers-color-scheme", "500"):
        assert word in page
    assert "nan" not in page
    refused = run(*words, "--picture", tmp_path / "plan.svg")
    assert refused.exit_code == 2
    assert "name a page" in refused.output
    document = json.loads(run(*words, "--json").stdout, parse_constant=pytest.fail)
    assert document["format"] == "fogline-plan-density-1"
    assert [row["epsilon"] for row in document["rows"]] == [0.5, 2]


def test_other_plans_still_need_delta():
    result = run("plan", "--for", "clusters", "--bounds", "0:10", "--n", 500)
    assert result.exit_code == 2
    assert "--delta" in result.output
