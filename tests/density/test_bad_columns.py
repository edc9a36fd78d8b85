"""Readings of columns that hold next to nothing: one value, walls, no records, bounds that are far too wide."""

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.testing import seeded_noise

RNG = np.random.default_rng(5)
DAY = 86_400.0

COLUMNS = {
    "no record": (np.zeros(0), (0, 10), None),
    "one record": (np.array([3.0]), (0, 10), None),
    "ten records": (RNG.normal(5, 1, 10), (0, 10), None),
    "fifty records": (RNG.normal(5, 1, 50), (0, 10), None),
    "one value": (np.full(3000, 4.2), (0, 10), None),
    "two values": (np.repeat([2.0, 7.0], 1500), (0, 10), None),
    "all zeros": (np.zeros(3000), (0, 10), None),
    "all at the upper wall": (np.full(3000, 10.0), (0, 10), None),
    "one whole number": (np.full(3000, 4.0), (0, 10), 1.0),
    "zeros and ones": (np.repeat([0.0, 1.0], 1500), (0, 1), None),
    "zeros and ones, declared": (np.repeat([0.0, 1.0], 1500), (0, 1), 1.0),
    "whole numbers": (RNG.poisson(7, 3000).astype(float), (0, 30), None),
    "whole numbers, declared": (RNG.poisson(7, 3000).astype(float), (0, 30), 1.0),
    "bounds far too wide": (RNG.normal(0.5, 0.1, 3000), (-1e6, 1e6), None),
    "bounds that cut the data": (RNG.normal(5, 3, 3000), (4.5, 5.5), None),
    "dates as numbers": (1.7e9 + DAY * RNG.normal(200, 40, 3000), (1.7e9, 1.7e9 + 400 * DAY), None),
    "nothing inside the bounds": (np.full(3000, 99.0), (0, 10), None),
    "nothing but gaps": (np.full(300, np.nan), (0, 10), None),
}

HEAPS = {
    "one value": 1,
    "two values": 2,
    "zeros and ones": 2,
    "all zeros": 1,
    "all at the upper wall": 1,
    "one whole number": 1,
}
"""Columns that are point masses and nothing else."""

NUMBERS = ("whole numbers", "whole numbers, declared")

NORMAL = {"dates as numbers": (1.7e9 + 200 * DAY, 15 * DAY), "bounds far too wide": (0.5, 1e4)}
"""Columns with one mode, and how far from it a reported one may be."""


@pytest.fixture(scope="module", params=COLUMNS)
def column(request):
    values, bounds, step = COLUMNS[request.param]
    sketch = DensitySketch([bounds], features="leaves", steps=None if step is None else [step])
    sketch.update(np.asarray(values, dtype=float)[:, None])
    with seeded_noise(3):
        return request.param, bounds, sketch.release(epsilon=1.0)


def test_modes(column):
    name, (low, high), density = column
    found = density.modes()
    assert np.all((found.positions >= low) & (found.positions <= high))
    assert np.all(found.standard_errors > 0)
    assert np.all(found.p_values <= 0.05)
    shares = [wall.share for wall in found.boundary_modes] + [heap.share for heap in found.point_masses]
    assert sum(shares) <= 1 + 1e-9
    if name in HEAPS:
        assert len(found.positions) == 0
        assert len(found.point_masses) == HEAPS[name]
        assert sum(shares) > 0.9
    elif name in NUMBERS:
        assert len(found.positions) == 1
        assert abs(found.positions[0, 0] - 6.5) < 3 * found.standard_errors[0, 0]
    elif name in NORMAL:
        true, reach = NORMAL[name]
        assert np.all(np.abs(found.positions - true) < reach)
    elif not len(found.positions):
        assert found.message


def test_point_masses_are_those_of_the_posterior(column):
    name, _, density = column
    told = sorted(heap.value[0] for heap in density.modes().point_masses)
    assert sorted(atom.value for atom in density.posterior.atoms) == pytest.approx(told, abs=0.05)
    assert (len(told) > 0) == (name in HEAPS or name == "bounds far too wide")


def test_quantiles_and_means(column):
    _, (low, high), density = column
    quantiles = density.quantile([0.1, 0.5, 0.9])
    # the interval of a quantile reaches to the ends of its leaf, and so does the error
    assert np.all(quantiles.high - quantiles.low <= 6 * np.asarray(quantiles.standard_error) + 1e-9 * (high - low))
    for found in (quantiles, density.mean()):
        for part in (found.low, found.value, found.high):
            assert np.all(np.isfinite(part))
            assert np.all((np.asarray(part) >= low) & (np.asarray(part) <= high))
        assert np.all(np.asarray(found.low) <= np.asarray(found.high))


def test_clusters_and_mixtures(column):
    _, (low, high), density = column
    groups, model = density.clusters(), density.mixture(2)
    assert groups.shares.sum() <= 1 + 1e-9
    assert np.all((groups.centres >= low) & (groups.centres <= high))
    assert np.all(np.isfinite(groups.centre_errors))
    assert model.weights.sum() == pytest.approx(1)
    assert np.all(np.isfinite(model.mean_errors))
    assert np.all(np.linalg.eigvalsh(model.covariances) > 0)


def test_numbers_of_groups(column):
    """A value is a group where there are two of them, not where there are thirty."""
    name, _, density = column
    groups, model = density.clusters(), density.mixture(2)
    if name in NUMBERS:
        assert len(groups.shares) == 1
        assert np.all(model.covariances > 1)
    if name.startswith("zeros and ones") or name == "two values":
        assert len(groups.shares) == len(model.weights) == 2
        np.testing.assert_allclose(groups.shares, 0.5, atol=0.1)
    assert ("steps=" in groups.message) == ("steps=" in model.message) == (name == "whole numbers")


def test_few_records_are_told(column):
    name, _, density = column
    nothing = name in ("no record", "one record", "ten records", "nothing inside the bounds", "nothing but gaps")
    for found in (density.clusters(), density.mixture(), density.fit("normal")):
        assert ("may be none" in found.message) >= nothing


def test_a_fitted_family(column):
    name, (low_bound, high_bound), density = column
    fit = density.fit("normal")
    for low, high in (*fit.intervals.values(), *fit.robust_intervals.values()):
        assert np.isfinite([low, high]).all()
        assert low < high
    assert str(fit.assumption)
    if name in HEAPS or name == "zeros and ones, declared":
        assert fit.assumption.untold
        low, high = fit.intervals["mu"]
        assert high - low >= high_bound - low_bound
    if name == "dates as numbers":
        low, high = fit.intervals["mu"]
        assert low < 1.7e9 + 200 * DAY < high < low + 10 * DAY
        assert "1.717" in str(density.quantile(0.5))
        assert len(str(density.quantile(0.5)).split(" ")[0]) > len("1.717e+09")


def test_bounds_that_are_too_wide_are_named():
    sketch = DensitySketch([(0, 10_000)], features="leaves")
    sketch.update(np.random.default_rng(1).gamma(3.0, 2.0, (3000, 1)))
    with seeded_noise(3):
        density = sketch.release(epsilon=1.0)
    assert "only narrower bounds would show more" in density.modes().message
    # the mean of one component is the mean of the column, and as uncertain
    error = float(density.mixture(1).mean_errors[0, 0])
    assert 0.5 * float(density.mean().standard_error) < error < 2 * float(density.mean().standard_error)


def _released(values, bounds, steps=None, seed=2):
    values = np.asarray(values, dtype=float)
    table = values[:, None] if values.ndim == 1 else values
    with seeded_noise(seed):
        return DensitySketch(bounds, features="leaves", steps=steps).update(table).release(epsilon=1.0)


def test_values_are_not_called_hollow_and_uneven_ones_not_even():
    x = np.random.default_rng(1).choice(4, 5000, p=[0.4, 0.3, 0.2, 0.1])
    assert "few records lie near" not in _released(x, [(0, 3)]).clusters().message
    told = _released(x, [(0, 3)], steps=[1.0]).clusters().message
    assert "evenly" not in told


def test_a_value_of_two_columns_is_known_to_its_leaf():
    """Zeros of both columns, and ones: their centres were told with errors of next to nothing beside them."""
    rng = np.random.default_rng(3)
    zero = rng.random(4000) < 0.4
    pairs = np.column_stack([np.where(zero, 0, rng.poisson(4, 4000)), np.where(zero, 0, rng.lognormal(5, 0.8, 4000))])
    found = _released(pairs, [(0, 30), (0, 5000)]).clusters()
    at_zero = int(np.argmin(found.centres[:, 0]))
    assert np.all(found.centres[at_zero] < 2 * found.centre_errors[at_zero])
    assert np.all(found.centre_errors > 0.1 * np.array([30 / 256, 5000 / 256]) / np.sqrt(12))


def test_places_of_dates_are_told():
    """Three digits say nothing of a date."""
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + rng.exponential(40 * DAY, 4000) % (300 * DAY)
    told = _released(seconds, [(1.7e9, 1.7e9 + 300 * DAY)]).modes().message
    assert "1700000000" in told
    assert "e+09" not in told


def test_nothing_is_told_once():
    from fogline import PrivateGaussianMixture

    empty = _released(np.zeros(0), [(0, 10)])
    told = PrivateGaussianMixture(n_components=2).read(empty).message_
    assert told.count("may be none") == 1
    assert "bounds right" in told


def test_an_unknown_share_is_called_so():
    from fogline.density.hellinger.inference import Explained

    assert "±" not in str(Explained(1.0, 56.0, ()))
    assert "94% of the records (± 2%)" in str(Explained(0.94, 0.02, ()))
