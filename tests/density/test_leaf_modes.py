"""Modes of a release on leaves: none where there is none, and the others with errors that hold them."""

import re

import numpy as np
import pytest

import fogline
from fogline import DensitySketch
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.modes.leaf_peaks import find_heaps, measure_roundness
from fogline.density.modes.leaf_positions import ReflectedReading
from fogline.density.private_density import PrivateDensity
from fogline.testing import seeded_noise


def density_of(values, bounds, epsilon=1.0, seed=1, steps=None):
    sketch = DensitySketch(bounds, features="leaves", steps=steps).update(np.asarray(values).reshape(-1, len(bounds)))
    with seeded_noise(seed):
        return sketch.release(epsilon=epsilon)


def modes_of(values, bounds, **options):
    return density_of(values, bounds, **options).modes()


WITHOUT_MODE = {
    "uniform": (lambda rng, n: rng.uniform(0, 1, n), (0, 1)),
    "exponential in a wide box": (lambda rng, n: rng.exponential(1, n), (0, 60)),
    "half-normal": (lambda rng, n: np.abs(rng.normal(0, 1, n)), (0, 6)),
    "Pareto": (lambda rng, n: rng.pareto(1.5, n), (0, 50)),
    "U-shaped": (lambda rng, n: rng.beta(0.5, 0.5, n), (0, 1)),
    "ramp": (lambda rng, n: np.sqrt(rng.random(n)), (0, 1)),
    "plateau": (lambda rng, n: rng.uniform(0.3, 0.7, n), (0, 1)),
    "zeros and a tail": (lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.exponential(5, n)), (0, 60)),
    "stairs": (lambda rng, n: np.where(rng.random(n) < 0.7, rng.uniform(0, 0.5, n), rng.uniform(0.5, 1, n)), (0, 1)),
}


@pytest.mark.parametrize("kind", WITHOUT_MODE)
def test_no_mode_where_there_is_none(kind):
    draw, box = WITHOUT_MODE[kind]
    found = 0
    for seed, n, epsilon in [(0, 2000, 1.0), (1, 20_000, 1.0), (2, 20_000, 0.2), (3, 500, 3.0)]:
        found += len(modes_of(draw(np.random.default_rng(seed), n), [box], epsilon=epsilon, seed=seed).positions)
    assert found == 0


WITH_MODE = {
    "normal near a wall of a wide box": (lambda rng, n: rng.normal(2.6, 0.7, n), (0, 60), 2.6),
    "gamma": (lambda rng, n: rng.gamma(3, 1, n), (0, 20), 2.0),
    "lognormal": (lambda rng, n: rng.lognormal(1, 0.6, n), (0, 20), float(np.exp(1 - 0.36))),
    "Laplace": (lambda rng, n: rng.laplace(5, 1, n), (0, 20), 5.0),
}


@pytest.mark.parametrize("kind", WITH_MODE)
def test_one_mode_is_found_and_its_interval_holds_it(kind):
    draw, box, true = WITH_MODE[kind]
    covered = 0
    for seed in range(6):
        found = modes_of(draw(np.random.default_rng(seed), 10_000), [box], seed=seed)
        assert len(found.positions) == 1
        assert found.p_values[0] <= 0.05
        covered += abs(found.positions[0, 0] - true) <= 1.96 * found.standard_errors[0, 0]
    assert covered >= 5


def test_a_skewed_mode_is_not_told_more_surely_than_it_is_known():
    errors, stated = [], []
    for seed in range(6):
        found = modes_of(np.random.default_rng(seed).gamma(2, 3, 20_000), [(0, 60)], seed=seed)
        errors.append(found.positions[0, 0] - 3.0)
        stated.append(found.standard_errors[0, 0])
    assert np.sqrt(np.mean(np.square(errors))) < 2.5 * np.sqrt(np.mean(np.square(stated)))
    assert max(np.abs(errors)) < 1.0


def test_a_wall_is_a_result_of_its_own():
    found = modes_of(np.random.default_rng(0).exponential(1, 5000), [(0, 10)])
    (wall,) = found.boundary_modes
    assert wall.ends == ((0, "low"),)
    assert wall.position == (0.0,)
    assert wall.p_value <= 0.05
    assert 0.7 < wall.height < 1.2
    assert 0.9 < wall.share <= 1.0
    assert "low end of column 1" in found.message
    assert "neither more records nor more epsilon would make it one" in found.message


def test_both_walls_of_a_u_shape():
    found = modes_of(np.random.default_rng(0).beta(0.5, 0.5, 20_000), [(0, 1)])
    assert sorted(wall.ends[0][1] for wall in found.boundary_modes) == ["high", "low"]
    assert sum(wall.share for wall in found.boundary_modes) == pytest.approx(1.0, abs=0.02)
    assert all(abs(wall.share - 0.5) < 3 * wall.share_error < 0.5 for wall in found.boundary_modes)


@pytest.mark.parametrize("seed", range(2))
def test_the_share_of_a_wall_has_an_error_that_holds_its_flat_valley(seed):
    """Half of a beta(0.5, 0.5) belongs to each wall; one noisy valley gave anything from 6% to 94%."""
    found = modes_of(np.random.default_rng([14, seed]).beta(0.5, 0.5, 3000), [(0, 1)], seed=seed)
    low, high = sorted(found.boundary_modes, key=lambda wall: wall.position)
    assert low.share + high.share == pytest.approx(1.0)
    assert abs(low.share - 0.5) < 3 * low.share_error
    assert 0.02 < low.share_error < 0.2
    assert f"densest at the low end of x1: {low.share:.1%} ± {low.share_error:.1%} of the records" in str(found)


def test_a_hump_that_is_no_mode_ends_the_slopes_of_a_wall():
    """A quarter of 300 patients are infants; the wall's slopes had all records where the hump at 62 was no mode."""
    rng = np.random.default_rng([41, 1])
    x = np.where(rng.random(300) < 0.25, rng.exponential(1.2, 300), rng.normal(62, 15, 300))
    x = np.clip(np.floor(x), 0, 110)
    with seeded_noise(1):
        found = fogline.release(x[:, None], columns=["age"], bounds=[(0, 125)], steps=[1], epsilon=3.0).modes()
    (wall,) = found.boundary_modes
    assert len(found.positions) == 0
    assert abs(wall.share - np.mean(x < 15)) < 4 * wall.share_error


def test_a_hill_near_a_wall_is_not_said_to_stay_one():
    """Lognormal invoices have their mode at 19 of 500: at epsilon 0.3 the hill looks as if it leaned on the wall."""
    rng = np.random.default_rng([4, 0])
    x = np.round(rng.lognormal(3.6, 0.8, 3000), 2)
    priced = rng.random(3000) < 0.25
    x[priced] = rng.choice([9.99, 19.99, 49.99, 99.99], priced.sum(), p=[0.4, 0.3, 0.2, 0.1])
    with seeded_noise(0):
        found = fogline.release(x[:, None], columns=["cost"], bounds=[(0, 500)], epsilon=0.3).modes()
    assert found.boundary_modes
    assert "neither more records" not in found.message
    within = re.search(
        r"more records or more epsilon could show whether there is a mode within (\d+) of", found.message
    )
    assert within is not None
    assert 10 < float(within[1]) < 60


def test_a_flat_column_has_no_wall_mode():
    ends = [
        modes_of(np.random.default_rng(seed).uniform(0, 0.5, 5000), [(0, 1)], seed=seed).boundary_modes
        for seed in range(4)
    ]
    assert sum(map(len, ends)) == 0


def test_zeros_are_a_point_mass_and_leave_the_mode_alone():
    rng = np.random.default_rng(0)
    found = modes_of(np.where(rng.random(20_000) < 0.3, 0.0, rng.normal(30, 5, 20_000)), [(0, 60)])
    (zeros,) = found.point_masses
    assert zeros.value == (0.0,)
    assert abs(zeros.share - 0.3) < 4 * zeros.error
    assert zeros.error < 0.01
    assert len(found.positions) == 1
    assert abs(found.positions[0, 0] - 30) < 4 * found.standard_errors[0, 0]
    assert "point masses, not modes" in found.message


def test_zeros_inside_the_box_are_no_tight_mode():
    rng = np.random.default_rng(0)
    found = modes_of(np.where(rng.random(50_000) < 0.3, 0.0, rng.gamma(3, 5, 50_000)), [(-1, 80)])
    assert [round(heap.value[0], 1) for heap in found.point_masses] == [0.0]
    assert np.all(np.abs(found.positions[:, 0]) > 3)


def test_two_modes_come_highest_first():
    rng = np.random.default_rng(0)
    found = modes_of(np.concatenate([rng.normal(3, 0.5, 6000), rng.normal(7, 0.5, 4000)]), [(0, 12)])
    assert found.positions[:, 0] == pytest.approx([3.0, 7.0], abs=0.15)
    assert found.heights[0] > found.heights[1] > 0


def test_two_columns():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal([3, 3], 0.6, (6000, 2)), rng.normal([7, 6], 0.6, (4000, 2))])
    found = modes_of(points, [(0, 10), (0, 10)])
    assert found.positions.shape == (2, 2)
    assert np.abs(found.positions - [[3, 3], [7, 6]]).max() < 0.4
    assert np.all(np.linalg.eigvalsh(found.covariances) > 0)


def test_two_columns_without_a_mode():
    rng = np.random.default_rng(0)
    assert len(modes_of(rng.uniform(0, 1, (5000, 2)), [(0, 1)] * 2).positions) == 0
    fallen = modes_of(rng.exponential(1, (5000, 2)), [(0, 8)] * 2)
    assert len(fallen.positions) == 0
    assert any({wall[0] for wall in mode.ends} for mode in fallen.boundary_modes)


def test_a_number_of_modes_is_kept_to():
    rng = np.random.default_rng(0)
    density = density_of(np.concatenate([rng.normal(3, 0.5, 3000), rng.normal(7, 0.5, 3000)]), [(0, 12)])
    assert len(density.modes(1).positions) == 1
    assert len(density.modes(2).positions) == 2


def test_a_bandwidth_is_kept_to():
    found = density_of(np.random.default_rng(0).normal(5, 1, 5000), [(0, 10)]).modes(bandwidth=0.05)
    assert found.bandwidths.tolist() == [[0.5]]


@pytest.mark.parametrize("bandwidth", ["fine", 0.0, -1.0])
def test_a_bad_bandwidth_is_named(bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        density_of(np.random.default_rng(0).normal(5, 1, 500), [(0, 10)]).modes(bandwidth=bandwidth)


def test_the_same_release_gives_the_same_answer():
    density = density_of(np.random.default_rng(0).gamma(3, 1, 3000), [(0, 20)])
    again = PrivateDensity.from_bytes(density.to_bytes())
    one, two = density.modes(), again.modes()
    assert np.array_equal(one.positions, two.positions)
    assert np.array_equal(one.covariances, two.covariances)
    assert one.message == two.message


@pytest.mark.parametrize("steps", [None, 1])
@pytest.mark.parametrize("value", [0, 3, 10])
@pytest.mark.parametrize("n", [50, 5000])
def test_one_value_is_a_point_mass_or_nothing(value, n, steps):
    found = modes_of(np.full(n, value), [(0, 10)], steps=steps)
    if n == 50:  # so few are seen through wide buckets: if a mode is told at all, then with their width in its error
        assert np.all(np.abs(found.positions - value) < 4 * found.standard_errors)
    else:
        assert len(found.positions) == 0
        (heap,) = found.point_masses
        assert heap.value[0] == pytest.approx(value, abs=0.01)
        assert heap.share == pytest.approx(1.0, abs=0.01)


def test_two_values_are_two_point_masses():
    rng = np.random.default_rng(0)
    found = modes_of(np.where(rng.random(5000) < 0.4, 2.0, 7.0), [(0, 10)])
    assert sorted(round(heap.value[0], 1) for heap in found.point_masses) == [2.0, 7.0]
    assert len(found.positions) == 0


@pytest.mark.parametrize("n", [0, 1, 10, 50])
def test_hardly_any_records(n):
    found = modes_of(np.random.default_rng(0).normal(5, 1, n), [(0, 10)], epsilon=0.5)
    assert len(found.positions) == 0
    assert found.message


def test_bounds_far_too_wide():
    found = modes_of(np.random.default_rng(0).normal(5, 1, 20_000), [(-1e6, 1e6)])
    near = [heap for heap in found.point_masses if heap.low[0] <= 5 <= heap.high[0]]
    assert len(near) == 1 or abs(found.positions[0, 0] - 5) < 3 * found.standard_errors[0, 0]


def test_rounded_values_are_not_modes_each():
    rng = np.random.default_rng(0)
    ages = np.clip(np.round(rng.normal(45, 15, 20_000)), 0, 100)
    heaped = np.where(rng.random(20_000) < 0.3, 10 * np.round(ages / 10), ages)
    found = modes_of(heaped, [(0, 100)], steps=1)
    assert len(found.positions) <= 1
    assert len(found.point_masses) >= 4


def test_the_fogline_of_leaves_falls_with_epsilon():
    values = np.random.default_rng(0).normal(5, 1, 3000)
    strict, loose = (density_of(values, [(0, 10)], epsilon=epsilon).fogline(0.05) for epsilon in (0.1, 2.0))
    assert strict > loose > 0
    density = density_of(values, [(0, 10)])
    assert density.fogline(0.05, at=[[5.0], [9.0]]).shape == (2,)


def exact(counts, bounds=(0, 64), scale=0.5):
    spec = LeafSpec.plan([bounds], leaves=[len(counts)])
    boxes = np.array([[[i, i + 1]] for i in range(len(counts))])
    stage = BucketCounts(boxes, np.asarray(counts), Noise("laplace", scale))
    return find_heaps(LeafRelease(spec, stage, stage))[0]


def test_a_block_is_flat_and_a_bell_is_round():
    x = np.arange(64) + 0.5
    block = exact(np.where((x > 20) & (x < 44), 400, 2))
    bell = exact((400 * np.exp(-0.5 * ((x - 32) / 6) ** 2)).astype(int) + 2)
    flat, rounded = (measure_roundness(counts, np.array([32.0])) for counts in (block, bell))
    assert flat.p_value > 0.05
    assert flat.is_block
    assert rounded.p_value < 1e-6
    assert not rounded.is_block


def test_derivatives_of_a_reading_with_walls_that_reflect():
    counts = exact((200 * np.exp(-0.5 * ((np.arange(64) - 10) / 6) ** 2)).astype(int))
    reading = ReflectedReading(counts, np.array([4.0]))
    points = np.array([[1.0], [9.0], [30.0]])
    value, gradient, hessian = reading.jet(points)
    step = 1e-4
    above, below = (reading.jet(points + sign * step)[0] for sign in (1, -1))
    assert gradient[:, 0] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-9)
    assert hessian[:, 0, 0] == pytest.approx((above + below - 2 * value) / step**2, rel=1e-3, abs=1e-6)
    places = np.linspace(0.05, 63.95, 640)[:, None]
    assert reading.jet(places)[0].sum() * 0.1 == pytest.approx(1.0, abs=0.01)  # nothing leaves the box


def _read(values, bounds, seed, epsilon=0.5):
    with seeded_noise(seed):
        return DensitySketch([bounds], features="leaves").update(values[:, None]).release(epsilon=epsilon).modes()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plateau_with_a_shoulder_has_no_mode(seed):
    """The shoulder makes the thirds of the whole hill differ, and its highest step is level all the same."""
    rng = np.random.default_rng(seed)
    steps = np.where(rng.random(40_000) < 0.75, rng.uniform(2, 5, 40_000), rng.uniform(5, 7.5, 40_000))
    found = _read(steps + rng.normal(0, 0.15, 40_000), (0, 10), seed)
    assert len(found.positions) == 0
    assert "plateau" in found.message


@pytest.mark.parametrize("draw", [
    lambda rng, n: rng.normal(4, 1, n),
    lambda rng, n: 3 + rng.exponential(1, n),                       # an edge
    lambda rng, n: 5 + 3 * np.sqrt(rng.random(n)) * np.cos(2 * np.pi * rng.random(n)),  # half a circle
    lambda rng, n: rng.triangular(2, 4, 9, n),
])  # fmt: skip
def test_other_tops_keep_their_mode(draw):
    assert len(_read(draw(np.random.default_rng(4), 40_000), (0, 10), 4).positions) == 1


def test_a_plateau_at_a_wall_is_not_densest_there():
    """What lies behind a notch says nothing about the wall."""
    told = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 10, 30_000)
        x = x[~((x > 4) & (x < 5) & (rng.random(30_000) < 0.9))][:20_000]
        told += len(_read(x, (0, 10), seed).boundary_modes)
    assert told <= 1


def test_a_wall_before_a_valley_stays_one():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(20_000) < 0.6, rng.exponential(1.0, 20_000), 10 - rng.exponential(0.5, 20_000))
    assert len(_read(x, (0, 10), 1).boundary_modes) == 2
