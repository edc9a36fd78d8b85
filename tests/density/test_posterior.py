"""The posterior of one column: its likelihood, field and fit, and every question that it answers."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.posterior.field import FieldPrior, Mesh, Smoothness
from fogline.density.posterior.fit import _rough_evidence, _rough_mend, fit_counts, settings_for
from fogline.density.posterior.likelihood import CountLaw
from fogline.density.posterior.masses import _records_given
from fogline.density.posterior.posterior import Posterior

TARGETS = ("population", "records")


def release_of(counts, *, bounds=(0.0, 8.0), steps=None, scale=2.0, leaves=None, edges=None):
    """A release whose stages both published these counts in buckets along one column."""
    spec = LeafSpec.plan([bounds], steps, leaves=[leaves or len(counts)])
    edges = np.linspace(0, spec.leaves[0], len(counts) + 1).astype(int) if edges is None else np.asarray(edges)
    boxes = np.stack([edges[:-1], edges[1:]], axis=1)[:, None, :]
    stage = BucketCounts(boxes, np.asarray(counts, dtype=np.int64), Noise("laplace", scale))
    return LeafRelease(spec, pilot=stage, counts=stage)


def read(counts, **options):
    return Posterior.of_leaves(release_of(counts, **options), ["x"])


@pytest.fixture(scope="module")
def skewed():
    """A skewed column in 64 buckets of 4 leaves."""
    rng = np.random.default_rng(3)
    counts = np.histogram(rng.gamma(2.0, 6.0, 5000), np.linspace(0, 64, 65))[0]
    noise = rng.geometric(0.4, 64) - rng.geometric(0.4, 64)
    return read(counts + noise, bounds=(0.0, 64.0), leaves=256)


@pytest.fixture(scope="module")
def zeros():
    """Four of ten records are zero, in a leaf of its own."""
    rng = np.random.default_rng(5)
    counts = np.histogram(rng.gamma(3.0, 8.0, 6000), np.linspace(0, 64, 257))[0]
    counts[0] += 4000
    return read(counts, bounds=(0.0, 64.0))


@pytest.fixture(scope="module")
def grades():
    return read([50, 90, 210, 400, 250], bounds=(1.0, 5.0), steps=1.0)


# -- likelihood -----------------------------------------------------------------------------------------------------


def brute_force(y, intensity, scale, most=400):
    """Probability of a released count: the sum over all numbers of records."""
    n = np.arange(most)
    log_poisson = -intensity + n * math.log(intensity) - gammaln(n + 1)
    ratio = math.exp(-1 / scale)
    log_noise = np.abs(y - n) * math.log(ratio) + math.log1p(-ratio) - math.log1p(ratio)
    return float(np.exp(log_poisson + log_noise).sum())


@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
@pytest.mark.parametrize("intensity", [0.05, 1.0, 7.0])
def test_likelihood_is_the_convolution(scale, intensity):
    y = np.arange(-20.0, 21.0)
    found = np.exp(CountLaw(Noise("laplace", scale)).log_density(y, np.full(y.shape, intensity)))
    assert np.allclose(found, [brute_force(one, intensity, scale) for one in y], rtol=1e-8)


@pytest.mark.parametrize("scale", [2.0, 30.0])
@pytest.mark.parametrize("intensity", [0.5, 20.0, 150.0])
def test_likelihood_sums_to_one(scale, intensity):
    y = np.arange(-2000.0, 3000.0)
    total = np.exp(CountLaw(Noise("laplace", scale)).log_density(y, np.full(y.shape, intensity))).sum()
    assert abs(total - 1) < 5e-3  # the law for many records is the normal one, and joins the exact one with a seam


@pytest.mark.parametrize("y", [-7.0, 0.0, 3.0, 25.0])
def test_score_is_the_slope_of_the_exact_law(y):
    law, at, small = CountLaw(Noise("laplace", 2.0)), np.array([0.3, 2.0, 11.0]), 1e-5
    slope = (law.log_density(np.full(3, y), at + small) - law.log_density(np.full(3, y), at - small)) / (2 * small)
    assert np.allclose(law.curvature(np.full(3, y), at).score, slope, rtol=1e-4, atol=1e-6)


def test_score_for_many_records_vanishes_at_the_count():
    law = CountLaw(Noise("laplace", 5.0))
    y = np.array([1e3, 1e5])
    assert np.all(law.curvature(y, y * 0.9).score > 0)
    assert np.all(law.curvature(y, y * 1.1).score < 0)


@pytest.mark.parametrize("noise", [Noise("laplace", 0.25), Noise("laplace", 40.0), Noise("gaussian", 0.6)])
@pytest.mark.parametrize(("y", "intensity"), [(0.0, 0.05), (1.0, 0.05), (-1.0, 0.3), (3.0, 1.0), (7.0, 3.9)])
def test_few_records_are_drawn_from_their_law(noise, y, intensity):
    """A normal law cut at 0 gave a bucket that expects 0.05 records and shows none 60 times too many."""
    n, draws = np.arange(40), 40_000
    power = {"laplace": np.abs(y - n) / noise.scale, "gaussian": (y - n) ** 2 / (2 * noise.scale**2)}[noise.kind]
    weight = np.exp(n * math.log(intensity) - gammaln(n + 1) - power)
    weight /= weight.sum()
    found = _records_given(np.array([y]), np.full((1, draws), intensity), CountLaw(noise), np.random.default_rng(0))
    share = np.bincount(found[0].astype(int), minlength=40) / draws
    assert share == pytest.approx(weight, abs=5 * np.sqrt(0.25 / draws))
    assert share @ n == pytest.approx(weight @ n, abs=5 * np.sqrt(weight @ n**2 / draws) + 1e-3)


# -- field ----------------------------------------------------------------------------------------------------------


def dense_precision(mesh, smoothness):
    """The precision from its formula."""
    d = mesh.d
    rate = 2 / smoothness.length if smoothness.order == 1 else math.sqrt(8 * (2 - d / 2)) / smoothness.length
    flow = np.zeros((mesh.size, mesh.size))
    for i, j, g in zip(mesh.first, mesh.second, mesh.conductance, strict=True):
        flow[i, j] -= g
        flow[j, i] -= g
        flow[i, i] += g
        flow[j, j] += g
    stiffness = rate**2 * np.diag(mesh.volumes) + flow
    if smoothness.order == 1:
        return stiffness / (2 * rate) / smoothness.deviation**2
    return stiffness @ np.diag(1 / mesh.volumes) @ stiffness / (4 * rate**3) / smoothness.deviation**2


@pytest.mark.parametrize("order", [1, 2])
def test_bands_are_those_of_the_dense_precision(order):
    mesh = Mesh.of(np.array([[[0, 4]], [[4, 5]], [[5, 8]], [[8, 16]], [[16, 17]], [[17, 32]]]), (32,))
    smoothness = Smoothness(0.3, 1.7, order)
    prior, dense = FieldPrior(mesh, smoothness), dense_precision(mesh, smoothness)
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=6), rng.uniform(0.1, 3, 6)
    assert math.isclose(prior.quadratic(values), values @ dense @ values, rel_tol=1e-9)
    assert math.isclose(prior.log_determinant, np.linalg.slogdet(dense)[1], rel_tol=1e-9)
    factor, whole = prior.factor(weights), dense + np.diag(weights)
    assert np.allclose(factor.solve(values), np.linalg.solve(whole, values), rtol=1e-9)
    assert math.isclose(factor.log_determinant, np.linalg.slogdet(whole)[1], rel_tol=1e-9)
    assert np.allclose((prior.root @ prior.root.T).toarray(), dense, rtol=1e-9, atol=1e-12 * np.abs(dense).max())


def test_field_has_the_stated_deviation_and_length():
    edges = np.arange(513)
    mesh = Mesh.of(np.stack([edges[:-1], edges[1:]], axis=1)[:, None, :], (512,))
    for order in (1, 2):
        covariance = np.linalg.inv(dense_precision(mesh, Smoothness(0.05, 1.5, order)))
        assert math.isclose(math.sqrt(covariance[256, 256]), 1.5, rel_tol=0.02)
        assert 0.1 < covariance[256, 256 + 26] / covariance[256, 256] < 0.25  # about 0.14 at the correlation length


# -- fit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agreement", [0.0, 1.0])
@pytest.mark.parametrize("weight", [1e-3, 0.03, 0.1, 0.3, 1.0, 10.0, 1e3])
def test_evidence_of_a_rough_bucket_is_near_its_integral(weight, agreement):
    """One Student variable of scale 1 seen through a normal law; without the mend it is off by up to .2 per bucket."""
    seen, rough = agreement / math.sqrt(weight), 0.0
    for _ in range(200):  # as the fit finds its mode
        variance = (2 + rough**2) / 3
        rough = variance * weight * seen / (1 + variance * weight)
    variance = (2 + rough**2) / 3
    found = -0.5 * weight * (rough - seen) ** 2 - 0.5 * math.log1p(variance * weight)
    found += _rough_evidence(np.array([rough]), np.array([variance]), 1.0, 2.0)
    x = np.linspace(-60, 60, 240_001)
    likelihood = np.exp(-0.5 * weight * (x - seen) ** 2)
    exact = math.log(float(np.sum(likelihood * (2 + x**2) ** -1.5)) * (x[1] - x[0]))  # Student's density for two
    mended = found + _rough_mend(np.array([variance * weight]), 2.0)
    assert abs(mended - exact) < 0.07
    if not 0.3 <= weight <= 1:  # where it was right by chance
        assert abs(mended - exact) < 0.5 * abs(found - exact)


def test_many_narrow_buckets_of_even_data_are_not_rough():
    """With a few records each, a search that begins at a rough field comes back to none."""
    rng = np.random.default_rng(0)
    size, scale = 1024, 0.4
    coin = 1 - math.exp(-1 / scale)
    counts = rng.poisson(2.5, size) + rng.geometric(coin, size) - rng.geometric(coin, size)
    boxes = np.stack([np.arange(size), np.arange(size) + 1], axis=1)[:, None, :]
    mesh, law = Mesh.of(boxes, [size]), CountLaw(Noise("laplace", scale))
    settings = settings_for(1)
    found, before = (
        fit_counts(mesh, counts, law, replace(settings, mended=mended), emptiness=False) for mended in (True, False)
    )
    assert settings.roughness[found.fits[0].indices[2]] == 0
    assert np.log(found.intensity).std() < 0.5 * np.log(before.intensity).std()


def test_draws_of_a_fit_have_the_covariance_of_the_normal_law():
    release = release_of([30, 80, 60, 10, 4, 0, 2, 1])
    mesh = Mesh.of(release.counts.boxes, release.spec.leaves)
    fit = fit_counts(mesh, release.counts.counts, CountLaw(release.counts.noise), emptiness=False).fits[0]
    assert np.isfinite(fit.evidence)
    size = mesh.size
    prior = (fit.prior.root @ fit.prior.root.T).toarray()
    # unknowns: field, rough part, level; the count sees their sum
    look = np.hstack([np.eye(size), np.eye(size), np.ones((size, 1))])
    rough = np.diag(1 / np.maximum(fit.rough_variance, 1e-12))
    precision = np.zeros((2 * size + 1, 2 * size + 1))
    precision[:size, :size], precision[size:-1, size:-1] = prior, rough
    precision[-1, -1] = fit.level_precision
    precision += look.T @ np.diag(fit.weight) @ look
    wanted = look @ np.linalg.inv(precision) @ look.T
    drawn, _ = fit.draws(40_000, np.random.default_rng(0))
    found = np.cov(drawn)
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert np.abs(found - wanted).max() / scale.max() < 0.05


# -- questions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_masses_are_shares(skewed, target):
    masses = skewed.masses(target)
    for part in (masses.estimate, masses.draws, masses.even):
        assert part.min() >= 0
        assert np.allclose(part.sum(axis=-1), 1)


@pytest.mark.parametrize("name", ["skewed", "zeros"])
@pytest.mark.parametrize("target", TARGETS)
def test_probabilities_of_a_partition_add_up(name, target, request):
    posterior = request.getfixturevalue(name)
    cuts = [0.0, 0.1, 3.3, 17.77, 40.0, 64.0]
    parts = [posterior.probability(x=(a, b), target=target).value for a, b in itertools.pairwise(cuts)]
    assert math.isclose(sum(parts), 1, rel_tol=1e-12)
    assert posterior.probability(x=(None, None), target=target).value == pytest.approx(1, abs=1e-12)


def test_values_of_a_lattice_add_up(grades):
    singles = [grades.probability(x=(v, v)).value for v in range(1, 6)]
    assert math.isclose(sum(singles), 1, rel_tol=1e-12)
    assert math.isclose(grades.probability(x=(2, 4)).value, sum(singles[1:4]), rel_tol=1e-12)
    assert math.isclose(grades.cdf(2.0).value[0], sum(singles[:2]), rel_tol=1e-9)
    assert grades.probability(x=(2.2, 2.8)).value < 1e-6


@pytest.mark.parametrize("name", ["skewed", "zeros", "grades"])
def test_cdf_rises_from_none_to_all(name, request):
    posterior = request.getfixturevalue(name)
    low, high = posterior.axes[0].bounds
    x = np.linspace(low - 1, high + 1, 2000)
    for target in TARGETS:
        found = posterior.cdf(x, target=target)
        for part in (found.value, found.low, found.high):
            assert np.all(np.diff(part) >= -1e-12)
        assert found.value[0] == 0
        assert found.value[-1] == pytest.approx(1)
        assert np.all((found.low <= found.value) & (found.value <= found.high))


def test_quantile_inverts_the_cdf(skewed):
    q = np.linspace(0.02, 0.98, 33)
    found = skewed.quantile(q)
    assert np.allclose(skewed.cdf(found.value).value, q, atol=1e-9)
    assert np.all(np.diff(found.value) > 0)
    assert np.all(np.diff(found.low) >= 0)
    assert np.all(np.diff(found.high) >= 0)


def test_probability_is_a_difference_of_the_cdf(skewed):
    ends = skewed.cdf([5.3, 20.1]).value
    assert math.isclose(skewed.probability(x=(5.3, 20.1)).value, ends[1] - ends[0], rel_tol=1e-9)


def test_quantiles_of_a_lattice_are_its_values(grades):
    found = grades.quantile([0.01, 0.5, 0.99])
    for part in (found.value, found.low, found.high):
        assert np.all(np.isin(part, np.arange(1.0, 6.0)))
    assert found.value.tolist() == [1.0, 4.0, 5.0]


def test_a_heap_at_the_wall_is_an_atom(zeros):
    assert [atom.value for atom in zeros.atoms] == [0.0]
    width = zeros.axes[0].width
    share = zeros.probability(x=(None, 0.0))
    assert share.value == pytest.approx(0.4, abs=0.03)
    assert 0.38 < share.low < 0.4 < share.high < 0.42  # a heap in the outermost leaf is taken to be at the wall
    assert zeros.cdf(0.0).value[0] == pytest.approx(share.value)
    quantile = zeros.quantile([0.1, 0.3])
    assert quantile.value.tolist() == [0.0, 0.0]
    assert quantile.low.tolist() == [0.0, 0.0]
    assert quantile.high.tolist() == [width, width]
    assert (zeros.sample(2000, random_state=1) == 0).mean() == pytest.approx(0.4, abs=0.05)


def test_a_heap_between_walls_may_lie_anywhere_in_its_leaf():
    counts = np.full(64, 100)
    counts[20] = 5000
    posterior = read(counts)
    (atom,) = posterior.atoms
    found = posterior.quantile(0.4)
    assert (found.value, found.low, found.high) == (atom.value, atom.low, atom.high)
    middle = posterior.probability(x=(0.0, atom.value - 0.01))
    assert middle.low < 0.25
    assert middle.high > 0.6


def test_mean_of_one_leaf_may_lie_anywhere_in_it():
    counts = np.zeros(64, dtype=int)
    counts[20] = 100_000
    found = read(counts).mean()
    assert found.low < 20.05 / 8
    assert found.high > 20.95 / 8
    assert read([0, 0, 100_000, 0, 0], bounds=(1.0, 5.0), steps=1.0).mean().high < 3.01


def test_moments_are_those_of_the_masses(grades, skewed):
    p, x = grades.masses().estimate, np.arange(1.0, 6.0)
    assert math.isclose(grades.mean().value, p @ x)
    assert math.isclose(grades.variance().value, p @ x**2 - (p @ x) ** 2, rel_tol=1e-9)
    assert skewed.mean().value == pytest.approx(12, rel=0.05)
    assert skewed.variance().value == pytest.approx(72, rel=0.15)


def test_density_integrates_to_one(skewed):
    centres = skewed.axes[0].centres
    assert math.isclose(float(np.sum(skewed.pdf(centres).value)) * skewed.axes[0].width, 1, rel_tol=1e-9)
    assert skewed.pdf([-1.0, 65.0]).value.tolist() == [0.0, 0.0]


def test_bands_hold_their_curve_and_the_pointwise_intervals(skewed):
    for kind in ("pdf", "cdf"):
        band = skewed.band(kind=kind, points=64)
        assert np.all(band.low <= band.pointwise_low + 1e-12)
        assert np.all(band.pointwise_high <= band.high + 1e-12)
        assert np.all((band.pointwise_low <= band.value) & (band.value <= band.pointwise_high))


def test_marginal_of_the_only_column_is_the_posterior(skewed):
    alone = skewed.marginal("x")
    assert alone.quantile(0.5).value == skewed.quantile(0.5).value
    assert alone.columns == ("x",)


def test_given_is_the_ratio_of_probabilities(skewed):
    part = skewed.given(x=(8, 24))
    ratio = skewed.probability(x=(8, 16)).value / skewed.probability(x=(8, 24)).value
    assert math.isclose(part.probability(x=(8, 16)).value, ratio, rel_tol=1e-9)
    assert part.probability(x=(30, None)).value == 0
    assert part.count.value < skewed.count.value


def test_records_are_known_better_than_the_population(skewed):
    for question in (lambda t: skewed.probability(x=(0, 10), target=t), lambda t: skewed.mean(target=t)):
        population, records = question("population"), question("records")
        assert records.high - records.low < population.high - population.low
        assert records.sampling == 0 < population.sampling
    wide, narrow = (skewed.mean(level=level) for level in (0.99, 0.5))
    assert narrow.high - narrow.low < wide.high - wide.low


def test_parts_of_an_error_add_up(skewed):
    found = skewed.cdf([3.0, 10.0, 30.0])
    squares = found.privacy**2 + found.sampling**2 + found.smoothing**2
    assert np.allclose(squares, found.standard_error**2)


def test_a_release_gives_the_same_answers_again():
    counts = [400, 300, 200, 90, 10, 0, 1, -1]
    first, second = read(counts), read(counts)
    for target in TARGETS:
        assert np.array_equal(first.draws(target=target), second.draws(target=target))
        assert first.quantile(0.3, target=target) == second.quantile(0.3, target=target)
        assert first.mean(target=target) == second.mean(target=target)
    assert np.array_equal(first.sample(50, random_state=4), second.sample(50, random_state=4))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(st.integers(-60, 2000), min_size=1, max_size=24), st.sampled_from([0.4, 3.0, 40.0]))
def test_any_counts_give_a_distribution(counts, scale):
    posterior = read(counts, scale=scale, leaves=4 * len(counts))
    for target in TARGETS:
        masses = posterior.masses(target)
        assert all(np.isfinite(part).all() for part in (masses.estimate, masses.draws, masses.even))
        found = posterior.quantile([0.0, 0.3, 1.0], target=target)
        assert np.all((found.low >= 0) & (found.high <= 8) & (found.low <= found.value) & (found.value <= found.high))
        share = posterior.probability(x=(1, 5), target=target)
        assert 0 <= share.low <= share.value <= share.high <= 1
        assert 0 <= posterior.mean(target=target).value <= 8
        assert posterior.variance(target=target).low >= 0


DEGENERATE = {
    "all zero": [0] * 16,
    "one bucket": [500],
    "one empty bucket": [0],
    "all negative": [-5, -3, -8, -2, -9, -1, -4, -6],
    "huge": [2**60, 2**59, 0, 0, 2**60, 5, 0, 2**58],
    "one huge": [0, 0, 2**60, 0],
    "huge and negative": [-(2**60), 2**60, 0, 1],
    "one record": [0, 1, 0, 0],
    "two records": [0, 1, 0, 1],
}


@pytest.mark.parametrize("counts", DEGENERATE.values(), ids=DEGENERATE.keys())
@pytest.mark.parametrize("target", TARGETS)
def test_degenerate_releases_are_answered(counts, target):
    posterior = read(counts, leaves=8 * len(counts))
    for found in (
        posterior.probability(x=(1, 4), target=target),
        posterior.quantile(0.5, target=target),
        posterior.mean(target=target),
        posterior.variance(target=target),
    ):
        assert all(np.isfinite([found.value, found.low, found.high, found.standard_error]))
        assert found.low <= found.value <= found.high
    assert np.isfinite(posterior.band(points=8).high).all()
    assert posterior.sample(20, random_state=0).shape == (20, 1)


def test_a_release_that_saw_nothing_says_so():
    posterior = read([0] * 16, scale=1000.0, leaves=64)
    share = posterior.probability(x=(0, 4))
    assert share.high - share.low > 0.5
    median = posterior.quantile(0.5)
    assert median.high - median.low > 2


# -- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda p: p.mean("age"), "column 'age'"),
        (lambda p: p.mean(3), "column"),
        (lambda p: p.probability(age=(0, 1)), "column 'age'"),
        (lambda p: p.quantile(1.5), "q must"),
        (lambda p: p.quantile(float("nan")), "q must"),
        (lambda p: p.probability(x=(5, 1)), "x: the range must rise"),
        (lambda p: p.probability(x=(float("nan"), 1)), "x: the range must rise"),
        (lambda p: p.probability(x=5), "x: a range is two numbers"),
        (lambda p: p.probability(x=("a", 5)), "x: a range is two numbers"),
        (lambda p: p.probability([(0, 1), (0, 1)]), "box must have one range per column"),
        (lambda p: p.cdf([float("nan")]), "x must not be nan"),
        (lambda p: p.mean(level=1.0), "level"),
        (lambda p: p.mean(level=0.0), "level"),
        (lambda p: p.mean(target="sample"), "target must be"),
        (lambda p: p.band(kind="qf"), "kind must be"),
        (lambda p: p.band(points=0), "points"),
        (lambda p: p.pdf(np.zeros((2, 2))), "x must have shape"),
        (lambda p: p.given(), "given needs"),
        (lambda p: p.draws(10**6), "m must be at most"),
        (lambda p: p.sample(-1), "k"),
        (lambda p: p.correlation("x", "x"), "second"),
    ],
)
def test_errors_name_the_parameter(skewed, ask, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ask(skewed)


def test_columns_need_different_names():
    with pytest.raises(ValueError, match="columns must be"):
        Posterior.of_leaves(release_of([1, 2]), ["x", "y"])


def test_outside_the_bounds_there_is_nothing(skewed):
    for ends in ((70, 90), (-5, -1), (None, -0.5)):
        found = skewed.probability(x=ends)
        assert (found.value, found.low, found.high) == (0, 0, 0)
        assert "lies outside the released bounds 0 to" in found.message
        assert found.message in str(found)
    assert not skewed.probability(x=(-5, 3)).message
    assert skewed.probability(x=(-10, 100)).value == pytest.approx(1)
