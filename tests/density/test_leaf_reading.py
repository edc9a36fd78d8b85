"""The linear reading of counts on leaves: a kernel on even buckets, its derivatives, and the exact noise."""

import numpy as np
import pytest
from scipy.stats import norm

from fogline.density.leaf_reading import LeafReading
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise

pytestmark = pytest.mark.quick

NOISE = Noise("laplace", 3.0)


def random_release(d, seed=0, cuts=30):
    rng = np.random.default_rng(seed)
    spec = LeafSpec.plan([(-3.0, 10.0), (0.0, 5.0), (100.0, 101.0)][:d], leaves=[16, 8, 8][:d])
    boxes = [tuple((0, n) for n in spec.leaves)]
    for _ in range(cuts):
        box = boxes.pop(rng.integers(len(boxes)))
        axis = int(rng.integers(d))
        start, stop = box[axis]
        middle = (start + stop) // 2
        halves = ((start, middle), (middle, stop)) if stop - start > 1 else ((start, stop),)
        boxes += [(*box[:axis], part, *box[axis + 1 :]) for part in halves]
    stage = BucketCounts(np.array(boxes), rng.integers(-5, 200, len(boxes)), NOISE)
    return LeafRelease(spec, stage, stage)


def direct(release, points, h, count):
    """Weights of all buckets at the points, straight from the formula."""
    spec, boxes = release.spec, release.counts.boxes
    weights = np.ones((len(points), len(boxes)))
    for axis in range(spec.d):
        low, high = spec.edges(axis)[boxes[:, axis]].T
        x = points[:, axis, None]
        weights *= (norm.cdf((x - low) / h[axis]) - norm.cdf((x - high) / h[axis])) / (high - low)
    return weights / count


@pytest.mark.parametrize("d", [1, 2, 3])
def test_values_and_noise_are_those_of_the_formula(d):
    release = random_release(d)
    h = 0.1 * release.spec.widths
    reading = LeafReading(release, 700.0, h)
    points = np.random.default_rng(1).uniform(release.spec.lower - h, release.spec.upper + h, (50, d))
    weights = direct(release, points, h, 700.0)
    assert np.allclose(reading.value(points), weights @ release.counts.counts, rtol=1e-10, atol=1e-15)
    assert np.allclose(reading.noise_sd_at(points), NOISE.sd * np.sqrt((weights**2).sum(axis=1)), rtol=1e-10)
    inside = np.random.default_rng(2).uniform(release.spec.lower, release.spec.upper, (3000, d))
    assert reading.noise_sd >= 0.97 * reading.noise_sd_at(inside).max()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_derivatives_are_those_of_the_values(d):
    release = random_release(d)
    h = 0.2 * release.spec.widths
    reading = LeafReading(release, 700.0, h)
    points = np.random.default_rng(3).uniform(release.spec.lower, release.spec.upper, (10, d))
    value, gradient, hessian = reading.jet(points)
    assert np.allclose(value, reading.value(points))
    for axis in range(d):
        step = np.zeros(d)
        step[axis] = 1e-5 * h[axis]
        up, down = reading.jet(points + step), reading.jet(points - step)
        largest = np.abs(gradient).max()
        assert np.allclose((up[0] - down[0]) / (2 * step[axis]), gradient[:, axis], rtol=1e-6, atol=1e-6 * largest)
        sharpest = np.abs(hessian).max()
        assert np.allclose((up[1] - down[1]) / (2 * step[axis]), hessian[:, axis], rtol=1e-6, atol=1e-6 * sharpest)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_has_the_values_and_the_mass(d):
    release = random_release(d)
    reading = LeafReading(release, float(release.counts.total), 0.07 * release.spec.widths)
    grid = reading.on_grid(4.0)
    some = np.random.default_rng(4).integers(grid.values.size, size=40)
    assert np.allclose(grid.values.ravel()[some], reading.value(grid.points(some)))
    assert all(a[0] == low and a[-1] == high for a, (low, high) in zip(grid.axes, release.spec.bounds, strict=True))
    even = LeafReading(_even(release), 1.0, np.full(d, 1e-3) * release.spec.widths)
    middle = (release.spec.lower + release.spec.upper) / 2
    assert even.value(middle[None]) == pytest.approx(1 / np.prod(release.spec.widths))


def _even(release):
    """One record, spread over all buckets by their sizes, times many."""
    sizes = release.counts.sizes
    stage = BucketCounts(release.counts.boxes, sizes, NOISE)
    total = LeafRelease(release.spec, stage, stage)
    return LeafRelease(total.spec, stage, BucketCounts(stage.boxes, sizes / sizes.sum(), NOISE))


def test_the_noise_of_readings_is_the_noise_that_was_added():
    """Over many draws of the noise, readings scatter as they say."""
    release = random_release(1)
    h = 0.05 * release.spec.widths
    points = np.linspace(-3, 10, 9)[:, None]
    rng = np.random.default_rng(5)
    a = np.exp(-1 / NOISE.scale)
    draws = rng.geometric(1 - a, (4000, len(release.counts))) - rng.geometric(1 - a, (4000, len(release.counts)))
    weights = direct(release, points, h, 100.0)
    scatter = (draws @ weights.T).std(axis=0)
    assert np.allclose(scatter, LeafReading(release, 100.0, h).noise_sd_at(points), rtol=0.06)
