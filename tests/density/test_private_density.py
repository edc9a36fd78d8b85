"""What is read from a release: a density with derivatives and a noise that is known exactly."""

import itertools
import json
import math
import pickle

import numpy as np
import pytest

from fogline import DensitySketch, PrivateDensity
from fogline.testing import seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # epsilon = 3000 for next to no noise

BOX = {1: [(0.0, 10.0)], 2: [(0.0, 10.0), (-4.0, 4.0)], 3: [(0.0, 10.0), (-4.0, 4.0), (-1.0, 1.0)]}
BANDWIDTHS = {1: [0.03, 0.06], 2: [0.06, 0.1], 3: 0.12}


def records(d, n, *, seed=0):
    """Two bumps well within the box."""
    rng = np.random.default_rng(seed)
    box = np.array(BOX[d])
    centres = box[:, 0] + (box[:, 1] - box[:, 0]) * np.array([[0.4], [0.62]])
    spread = (box[:, 1] - box[:, 0]) * 0.06
    return centres[rng.integers(0, 2, size=n)] + spread * rng.standard_normal((n, d))


def release(d, X=None, *, n=5000, epsilon=1.0, seed=0, **options):
    X = records(d, n) if X is None else X
    with seeded_noise(seed):
        sketch = DensitySketch(BOX[d], bandwidths=options.pop("bandwidths", BANDWIDTHS[d])).update(X)
        return sketch.release(epsilon=epsilon, delta=1e-5, **options)


@pytest.fixture(scope="module", params=[1, 2, 3])
def density(request):
    return release(request.param)


@pytest.fixture(scope="module")
def clear():
    """Releases with next to no noise, by dimension."""
    return {d: release(d, n=20_000, epsilon=3000.0) for d in (1, 2, 3)}


def inner_points(density, size, *, seed=1):
    spec = density.spec
    return np.random.default_rng(seed).uniform(spec.lower, spec.upper, size=(size, spec.d))


def centres_of(X, spec):
    """Centre of each record's cell, which is where the sketch sees it."""
    return spec.origin + np.floor((X - spec.lower) / spec.cell_widths + spec.shift) * spec.cell_widths


@pytest.mark.parametrize("d", [1, 2, 3])
def test_equals_a_kernel_density_estimate_of_the_cell_centres(clear, d):
    density = clear[d]
    X = records(d, 20_000)
    X = X[np.all((density.spec.lower <= X) & (density.spec.upper >= X), axis=1)]
    centres = centres_of(X, density.spec)
    points = records(d, 40, seed=9)
    for h in (density.spec.planned[0], density.spec.planned[-1] * 1.5):
        u = (points[:, None] - centres) / h
        kernel = np.exp(-0.5 * np.sum(u**2, axis=2)) / np.prod(math.sqrt(2 * math.pi) * h)
        direct = kernel.mean(axis=1)
        np.testing.assert_allclose(density.pdf(points, h), direct, atol=1.5e-3 * direct.max() + 5 * density.noise_sd(h))
        assert density.noise_sd(h) < 1e-4 * direct.max()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_integrates_to_one(d):
    box = np.array(BOX[d])
    middle, widths = box.mean(axis=1), box[:, 1] - box[:, 0]
    density = release(d, middle + 0.02 * widths * np.random.default_rng(0).standard_normal((5000, d)), epsilon=3000.0)
    grid = density.grid(density.spec.planned[0], per_bandwidth=4)
    cell = np.prod([a[1] - a[0] for a in grid.axes])
    assert grid.values.sum() * cell == pytest.approx(1.0, abs=2e-3)


def test_the_whole_torus_holds_exactly_the_count():
    density = release(1, epsilon=0.1)
    points = np.arange(4096)[:, None] / 4096 * density.spec.periods[0]
    assert density.pdf(points, 0.05).mean() * density.spec.periods[0] == pytest.approx(1.0, abs=1e-9)


def test_derivatives_agree_with_differences(density):
    points = inner_points(density, 6)
    h = density.spec.planned[0]
    d = density.spec.d
    gradient, hessian = density.gradient(points, h), density.hessian(points, h)
    assert gradient.shape == (6, d)
    assert hessian.shape == (6, d, d)
    for j in range(d):
        e = np.zeros(d)
        e[j] = 1e-4 * h[j]
        slope = (density.pdf(points + e, h) - density.pdf(points - e, h)) / (2 * e[j])
        np.testing.assert_allclose(gradient[:, j], slope, atol=1e-5 * np.abs(gradient).max() + 1e-12)
        turn = (density.gradient(points + e, h) - density.gradient(points - e, h)) / (2 * e[j])
        np.testing.assert_allclose(hessian[:, :, j], turn, atol=1e-5 * np.abs(hessian).max())
    np.testing.assert_array_equal(hessian, np.swapaxes(hessian, 1, 2))


def test_grid_by_fft_equals_pdf_at_its_points(density):
    h = density.spec.planned[-1]
    grid = density.grid(h, per_bandwidth=2)
    assert grid.values.shape == tuple(len(a) for a in grid.axes)
    for axis, (low, high) in zip(grid.axes, density.spec.bounds, strict=True):
        assert axis[0] == pytest.approx(low)
        assert high - (axis[1] - axis[0]) < axis[-1] <= high + 1e-9
    chosen = np.random.default_rng(0).integers(0, grid.values.size, size=50)
    expected = density.pdf(grid.points(chosen), h)
    np.testing.assert_allclose(grid.values.ravel()[chosen], expected, atol=1e-10 * np.abs(grid.values).max())


def test_noise_sd_is_that_of_many_releases():
    X = records(1, 2000)
    points = np.array([[1.0], [4.0], [6.2], [9.0]])
    pdf, counts, known, count_sd = {}, [], {}, 0.0
    for seed in range(300):
        density = release(1, X, seed=seed)
        counts.append(density.count)
        count_sd = density.count_sd
        for h in (0.03, 0.06):
            # In records: the density of this release is divided by its own noisy count.
            pdf.setdefault(h, []).append(density.pdf(points, h) * density.count)
            known[h] = density.noise_sd(h) * density.count
    for h in pdf:
        seen = np.sqrt(np.var(pdf[h], axis=0, ddof=1).mean())
        assert seen == pytest.approx(known[h], rel=0.1)
    assert np.std(counts, ddof=1) == pytest.approx(count_sd, rel=0.13)
    assert abs(np.mean(counts) - 2000) < 4 * count_sd / math.sqrt(300)


def test_the_count_is_at_least_one():
    counts = [release(1, np.zeros((0, 1)), seed=s, epsilon=0.5).count for s in range(20)]
    assert min(counts) == 1.0
    assert max(counts) > 1.0


def test_what_researchers_get_is_what_was_released(density):
    assert density.coefficients.shape == density.weights.shape == (len(density.spec.frequencies),)
    assert density.weights.sum() <= 1.0
    assert density.coefficients[0].imag == 0
    assert density.count == pytest.approx(max(density.coefficients[0].real, 1.0))
    assert density.count == pytest.approx(5000, abs=5 * density.count_sd)
    assert density.noise_scale > 0


@pytest.mark.parametrize("factor", [0.5, 2.1])
def test_a_bandwidth_out_of_range_is_refused_with_the_range(density, factor):
    planned = density.spec.planned
    h = planned[0] * factor if factor < 1 else planned[-1] * factor
    for question in (density.pdf, density.gradient, density.hessian):
        with pytest.raises(ValueError, match=r"bandwidth.*range"):
            question(inner_points(density, 1), h)
    with pytest.raises(ValueError, match="bandwidth"):
        density.noise_sd(h)


@pytest.mark.parametrize("bandwidth", [-0.1, 0.0, math.nan, [0.1] * 4])
def test_a_senseless_bandwidth_is_named(density, bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        density.noise_sd(bandwidth)


def test_the_default_bandwidth_can_be_read(density):
    low, high = density.bandwidth_range
    assert np.all((density.bandwidth >= low * (1 - 1e-9)) & (density.bandwidth <= high))
    points = inner_points(density, 3)
    np.testing.assert_array_equal(density.pdf(points), density.pdf(points, density.bandwidth))


def test_points_of_the_wrong_shape_are_named(density):
    with pytest.raises(ValueError, match="x must have shape"):
        density.pdf(np.zeros((3, density.spec.d + 1)))


def test_one_dimension_takes_a_flat_list_and_no_points_are_fine():
    density = release(1)
    np.testing.assert_array_equal(density.pdf([1.0, 4.0]), density.pdf([[1.0], [4.0]]))
    assert density.pdf(np.zeros((0, 1))).shape == (0,)
    assert density.gradient(np.zeros((0, 1))).shape == (0, 1)
    assert density.hessian(np.zeros((0, 1))).shape == (0, 1, 1)


def test_many_points_are_read_in_blocks_without_a_change():
    density = release(2)
    points = inner_points(density, 9000)
    whole = density.pdf(points, 0.06)
    np.testing.assert_allclose(whole[8990:], density.pdf(points[8990:], 0.06), atol=1e-12)


# -- samples ------------------------------------------------------------------------------------------------


def test_samples_stay_in_the_box_and_repeat(density):
    a, b = (density.sample(500, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert a.shape == (500, density.spec.d)
    assert np.all((a >= density.spec.lower) & (a <= density.spec.upper))
    assert not np.array_equal(a, density.sample(500, random_state=5))
    assert density.sample(0).shape == (0, density.spec.d)


@pytest.mark.parametrize(("k", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_a_senseless_number_of_samples_is_named(k, error):
    with pytest.raises(error, match="k must"):
        release(1).sample(k)


def test_samples_follow_the_density(clear):
    density = clear[1]
    h = density.spec.planned[0]
    drawn = np.sort(density.sample(20_000, bandwidth=h, random_state=0)[:, 0])
    grid = np.linspace(0, 10, 4001)
    mass = np.maximum(density.pdf(grid, h), 0)
    cumulative = np.cumsum(mass) / mass.sum()
    distance = np.abs(np.interp(drawn, grid, cumulative) - np.arange(1, 20_001) / 20_000).max()
    assert distance < 0.02


def test_an_empty_release_can_still_be_sampled():
    density = release(2, np.zeros((0, 2)))
    assert density.sample(10, random_state=0).shape == (10, 2)


# -- files --------------------------------------------------------------------------------------------------


def test_a_file_and_a_pickle_lose_nothing(density, tmp_path):
    density.save(tmp_path / "release.npz")
    for again in (PrivateDensity.load(tmp_path / "release.npz"), pickle.loads(pickle.dumps(density))):
        assert again == density
        assert again.coefficients.tobytes() == density.coefficients.tobytes()
        assert again.noise_scale == density.noise_scale
        assert again.guarantee == density.guarantee
        points = inner_points(density, 4)
        np.testing.assert_array_equal(again.pdf(points), density.pdf(points))


def test_releases_are_equal_only_when_all_of_them_is():
    a, b = release(1, seed=1), release(1, seed=2)
    assert a == release(1, seed=1)
    assert a != b
    assert a != release(1, seed=1, neighbours="replace")
    assert a != "a density"


def test_only_a_density_is_loaded(tmp_path):
    DensitySketch(BOX[1]).save(tmp_path / "secret.npz")
    with pytest.raises(ValueError, match="fogline-density-1"):
        PrivateDensity.load(tmp_path / "secret.npz")
    np.savez(tmp_path / "future.npz", header=np.array(json.dumps({"format": "fogline-density-7"})))
    with pytest.raises(ValueError, match="fogline-density-7"):
        PrivateDensity.load(tmp_path / "future.npz")


def test_repr_has_released_numbers_only():
    X = np.full((1000, 1), 4.321987)
    density = release(1, X)
    assert f"{density.count:.0f}" in repr(density)
    assert "4.321" not in repr(density)


# -- the fogline --------------------------------------------------------------------------------------------


def test_the_fogline_sinks_with_budget_and_with_records():
    lines = [release(1, n=2000, epsilon=e).fogline(0.06) for e in (0.1, 0.5, 5.0)]
    assert all(a > b for a, b in itertools.pairwise(lines))
    lines = [release(1, n=n, epsilon=1.0).fogline(0.06) for n in (500, 5000, 50_000)]
    assert all(a > b for a, b in itertools.pairwise(lines))


def test_the_fogline_rises_with_certainty_and_with_a_smaller_bandwidth():
    density = release(1)
    levels = [density.fogline(0.05, level) for level in (0.5, 0.05, 0.001)]
    assert all(a < b for a, b in itertools.pairwise(levels))
    assert density.fogline(0.03) > density.fogline(0.1) > 0
    assert isinstance(density.fogline(0.05), float)


def test_the_fogline_at_points_is_highest_where_the_density_is():
    density = release(1, n=50_000)
    top, slope, nothing = density.fogline(0.05, at=[[4.0], [3.0], [0.7]])
    assert top > slope > nothing > 0
    assert density.fogline(0.05) >= 0.95 * top
    assert density.fogline(0.05, at=np.zeros((0, 1))).shape == (0,)


@pytest.mark.parametrize("level", [0, 1, -0.1, math.nan])
def test_a_senseless_level_is_named(level):
    density = release(1)
    with pytest.raises(ValueError, match="level"):
        density.fogline(0.05, level)
    with pytest.raises(ValueError, match="level"):
        density.modes(level=level)


def test_reading_a_release_is_repeatable():
    first, second = release(2), release(2)
    assert first.fogline(0.1) == second.fogline(0.1)
    np.testing.assert_array_equal(first.modes().positions, second.modes().positions)
