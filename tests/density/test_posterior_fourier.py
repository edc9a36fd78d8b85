"""The posterior reading of released Fourier sums: exact map, known densities, draws, old files, hardly any data."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fogline import DensitySketch, PrivateDensity
from fogline.density.posterior.field import FieldPrior, Mesh, Smoothness
from fogline.density.posterior.fourier import FourierPosterior, _Covariance, _spectrum
from fogline.density.posterior.fourier_sums import leaf_sums
from fogline.density.posterior.posterior import Posterior
from fogline.density.spec import LATTICE_BITS
from fogline.queries.fourier_sums import lattice_sums
from fogline.testing import seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")

OLD_FILE = Path(__file__).parent / "release_of_0_2_0.npz"
"""4000 records of gamma(3) with scale 2 in 0:40, epsilon 1 and delta 1e-6, written by version 0.2.0."""


def released(X, bounds, *, epsilon=1.0, seed=0, **options):
    sketch = DensitySketch(bounds, features="grid", **options).update(X)
    with seeded_noise(seed):
        return sketch.release(epsilon=epsilon, delta=1e-6)


def density_of_counts(table, bounds, *, noise=1.0, **options):
    """Sums of a table of cells as they would be released, with no noise in them but the stated one."""
    sketch = DensitySketch(bounds, features="grid", **options)
    table = np.asarray(table, dtype=np.int64)
    guarantee = sketch.release(epsilon=1.0, delta=1e-6).guarantee
    sums = lattice_sums(table, sketch.spec)
    return PrivateDensity(sketch.spec, sums, scale=noise * 2.0**LATTICE_BITS, guarantee=guarantee)


def normal(n, d=1, *, seed=0):
    return np.random.default_rng(seed).normal(4.0, 1.0, size=(n, d))


# -- the map from leaves to sums --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "steps", "side", "least"),
    [([(0, 10)], None, 512, 0), ([(0, 40)], [1], 512, 0), ([(0, 10)], None, 64, 100), ([(0, 99)], [1], 25, 100)],
)
def test_readings_are_those_of_even_leaves(bounds, steps, side, least):
    sketch = DensitySketch(bounds, features="grid", steps=steps)
    spec = sketch.spec
    rng = np.random.default_rng(5)
    cells = np.arange(spec.cells[0])
    step = spec.steps[0] or spec.cell_widths[0]
    places = spec.origin[0] + spec.cell_widths[0] * cells
    held = np.isclose((places - places[0]) / step, np.round((places - places[0]) / step))  # values of the lattice
    empty = leaf_sums(density_of_counts(np.zeros(spec.cells), bounds, steps=steps), side=side, most=600)
    grid = empty.grid
    leaf = np.clip(np.floor((places - grid.edges(0)[0]) / grid.cell_widths[0]).astype(int), 0, grid.leaves[0] - 1)
    contents = 1000 * rng.integers(1, 50, size=grid.leaves[0])
    per_cell = np.where(held, contents[leaf], 0)
    density = density_of_counts(per_cell, bounds, steps=steps)
    data = leaf_sums(density, side=side, most=600)
    totals = np.bincount(leaf, per_cell, minlength=grid.leaves[0])
    expected = data.response.T @ totals
    assert np.abs(data.values - expected).max() < 1e-4 * np.abs(expected).max() + least


def test_the_kernel_of_the_readings_is_that_of_the_features():
    density = released(normal(50_000, 2), [(0, 10), (0, 10)], epsilon=2.0)
    data = leaf_sums(density, side=6, most=36)
    assert data.response.shape == (36, 36)
    spec, grid = density.spec, data.grid
    centres = np.stack(np.meshgrid(*[grid.edges(j)[:-1] + grid.cell_widths[j] / 2 for j in (0, 1)], indexing="ij"), -1)
    apart = centres.reshape(-1, 1, 2) - centres.reshape(1, -1, 2)
    product = data.response @ data.response.T
    # every entry is a mean of cosines with the same weights, so equal distances have equal entries
    place = np.round(apart / grid.cell_widths).astype(int)
    same = (place[..., 0] == 1) & (place[..., 1] == -2)
    assert np.ptp(product[same]) < 1e-9
    assert np.all(np.diag(product) >= np.abs(product).max(axis=1) - 1e-9)
    assert float(np.diag(product)[0]) <= float(density.weights.sum()) + 1e-9
    assert len(spec.frequencies) > 36


@pytest.mark.parametrize("order", [1, 2])
def test_the_covariance_is_that_of_the_field_on_equal_buckets(order):
    smoothness, n = Smoothness(0.2, 1.5, order), 24
    boxes = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)[:, None, :]
    inverse = FieldPrior(Mesh.of(boxes, (n,)), smoothness).factor(np.zeros(n)).solve(np.eye(n))
    flat = np.eye(n) - 1 / n
    expected = flat @ inverse @ flat  # the level has a variance of its own
    found = _Covariance(_spectrum((n,), smoothness, 0.0), None).times(np.eye(n))
    assert np.allclose(found / np.trace(found), expected / np.trace(expected), atol=1e-12)
    assert np.trace(found) / n == pytest.approx(1.5**2)


def test_variances_of_the_field_are_the_diagonal_of_its_covariance():
    covariance = _Covariance(_spectrum((6, 5), Smoothness(0.3, 2.0, 2), 9.0), np.full(30, 0.25))
    assert np.allclose(covariance.variance(), np.diag(covariance.times(np.eye(30))))


# -- known densities --------------------------------------------------------------------------------------


def test_recovers_a_smooth_density_from_sums_without_noise():
    spec = DensitySketch([(0, 10)], features="grid").spec
    edges = np.linspace(0, 10, spec.cells[0] + 1)
    truth = 0.7 * np.diff(stats.norm.cdf(edges, 3, 0.7)) + 0.3 * np.diff(stats.norm.cdf(edges, 7, 0.5))
    density = density_of_counts(np.round(1e6 * truth), [(0, 10)])
    masses = Posterior.of_fourier(density).masses().estimate
    assert 1 - np.sqrt(masses * truth).sum() < 1e-5
    assert np.abs(np.cumsum(masses - truth)).max() < 1e-3


@pytest.mark.parametrize(("d", "n"), [(1, 3000), (2, 5000), (3, 5000)])
def test_masses_sum_to_one_and_draws_lie_around_the_estimate(d, n):
    posterior = Posterior.of_fourier(released(normal(n, d), [(0, 10)] * d))
    axes = tuple(range(-d, 0))
    exact = (stats.norm.cdf(1) - stats.norm.cdf(-1)) ** d
    for target in ("population", "records"):
        masses = posterior.masses(target)
        assert masses.estimate.min() >= 0
        assert masses.draws.min() >= 0
        assert masses.estimate.sum() == pytest.approx(1)
        assert np.allclose(masses.draws.sum(axis=axes), 1)
        share = posterior.probability([(3, 5)] * d, target=target)
        assert abs(share.value - exact) < 0.05
        assert 0 < share.standard_error < 0.05


def test_the_population_is_less_certain_than_the_records():
    posterior = Posterior.of_fourier(released(normal(2000), [(0, 10)], epsilon=8.0))
    population, records = (posterior.probability([(0, 4)], target=t) for t in ("population", "records"))
    assert population.standard_error > 1.3 * records.standard_error
    assert population.standard_error > 0.8 * np.sqrt(0.25 / 2000)


def test_intervals_hold_the_population_about_as_often_as_they_say():
    right = total = 0
    boxes = [(2.0, 3.5), (3.5, 5.0), (4.2, 4.6), (6.0, 10.0), (8.0, 10.0), (0.0, 2.5)]
    for seed in range(20):
        posterior = Posterior.of_fourier(released(normal(2000, seed=seed), [(0, 10)], seed=seed))
        law = stats.norm(4, 1)
        for low, high in boxes:
            share = posterior.probability([(low, high)])
            right += share.low <= (law.cdf(high) - law.cdf(low)) <= share.high
            total += 1
    assert right / total >= 0.88  # 120 intervals at 95%, not independent


def test_beats_the_kernel_reading_on_a_skewed_column():
    law = stats.gamma(3, scale=2)
    density = released(law.rvs(size=(10_000, 1), random_state=1), [(0, 60)])
    edges = np.linspace(0, 60, 65)
    truth = np.diff(law.cdf(edges))
    kernel = np.maximum(density.pdf(((edges[1:] + edges[:-1]) / 2)[:, None], density.bandwidth), 0)
    posterior = np.diff(Posterior.of_fourier(density).cdf(edges).value)
    hellinger = [np.sqrt(max(1 - np.sqrt(p / p.sum() * truth).sum(), 0)) for p in (kernel, posterior)]
    assert hellinger[1] < 0.6 * hellinger[0]


def test_a_lattice_is_read_value_by_value():
    x = np.random.default_rng(0).poisson(4, size=(20_000, 1)).astype(float)
    posterior = Posterior.of_fourier(released(x, [(0, 40)], steps=[1]))
    assert len(posterior.axes[0].centres) == 41
    assert posterior.masses().estimate[:9] == pytest.approx(stats.poisson(4).pmf(np.arange(9)), abs=0.01)
    assert posterior.probability([(2.2, 2.8)]).value == 0
    assert posterior.quantile(0.5).value == 4


# -- files, determinism, bad input ------------------------------------------------------------------------


def test_a_file_of_version_0_2_0_is_read():
    density = PrivateDensity.load(OLD_FILE)
    posterior = Posterior.of_fourier(density, ["stay"])
    law = stats.gamma(3, scale=2)
    share = posterior.probability(stay=(4, 12))
    assert share.low <= law.cdf(12) - law.cdf(4) <= share.high
    assert share.standard_error < 0.03
    median = posterior.quantile(0.5, "stay")
    assert median.low <= law.median() <= median.high
    assert posterior.probability(stay=(35, 40)).value < 0.01


def test_the_same_release_gives_the_same_answers_and_another_gives_others():
    density = released(normal(1000), [(0, 10)])
    again = PrivateDensity.from_bytes(density.to_bytes())
    other = released(normal(1000), [(0, 10)], seed=1)
    first, second, third = (Posterior.of_fourier(d).draws() for d in (density, again, other))
    assert np.array_equal(first, second)
    assert not np.array_equal(first[:50], third[:50])


@pytest.mark.parametrize(
    ("X", "epsilon"),
    [
        (np.empty((0, 1)), 1.0),
        (np.array([[5.0]]), 1.0),
        (normal(100), 0.001),
        (np.full((1000, 1), 7.3), 1.0),
        (np.full((10**6, 1), 0.0), 5.0),
    ],
    ids=["nobody", "one record", "tiny epsilon", "one cell", "a million at the wall"],
)
def test_hardly_any_data_is_read_all_the_same(X, epsilon):
    posterior = Posterior.of_fourier(released(X, [(0, 10)], epsilon=epsilon))
    for target in ("population", "records"):
        masses = posterior.masses(target)
        assert np.isfinite(masses.draws).all()
        assert masses.estimate.sum() == pytest.approx(1)
        found = posterior.quantile([0.1, 0.5, 0.9], target=target)
        assert np.all(found.low <= found.value)
        assert np.all(found.value <= found.high)


def test_all_records_in_one_cell_are_found_there():
    posterior = Posterior.of_fourier(released(np.full((5000, 1), 7.3), [(0, 10)]))
    assert posterior.probability([(7.1, 7.5)]).value > 0.9
    assert posterior.probability([(0, 6)]).low == 0


def test_nothing_is_said_surely_at_a_tiny_epsilon():
    posterior = Posterior.of_fourier(released(normal(100), [(0, 10)], epsilon=0.001))
    share = posterior.probability([(0, 5)])
    assert share.high - share.low > 0.3


@pytest.mark.parametrize("features", ["random", "auto"])
def test_other_features_are_refused(features):
    bounds = [(0, 10)] * (4 if features == "auto" else 1)
    sketch = DensitySketch(bounds, features=features).update(normal(100, len(bounds)))
    with seeded_noise(0):
        density = sketch.release(epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="grid features"):
        FourierPosterior(density)
