"""One rule for point masses, and areas of modes, walls and point masses that share out the records once."""

import numpy as np
import pytest

import fogline
from fogline import DensitySketch
from fogline.datasets import hospital_visits
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.modes.peaks import basins
from fogline.density.point_masses import column_heaps, take_out_heaps
from fogline.testing import seeded_noise


def density_of(values, bounds, epsilon=1.0, seed=1, steps=None):
    points = np.asarray(values, dtype=float).reshape(-1, len(bounds))
    sketch = DensitySketch(bounds, features="leaves", steps=steps).update(points)
    with seeded_noise(seed):
        return sketch.release(epsilon=epsilon)


def with_heaps(rng, n, smooth, *heaps):
    out, u, start = smooth, rng.random(n), 0.0
    for value, share in heaps:
        out = np.where((u >= start) & (u < start + share), value, out)
        start += share
    return out


N = 10_000
COLUMNS = {
    "zeros": (lambda r: with_heaps(r, N, r.gamma(2, 4, N), (0.0, 0.2)), (0, 60), None, [0.0]),
    "capped": (lambda r: np.minimum(r.exponential(30, N), 60), (0, 60), None, [60.0]),
    "a heap inside": (lambda r: with_heaps(r, N, r.normal(0, 20, N), (0.0, 0.3)), (-100, 100), None, [0.0]),
    "two heaps": (lambda r: with_heaps(r, N, r.uniform(0, 50, N), (0.0, 0.1), (30.0, 0.1)), (0, 50), None, [0.0, 30.0]),
    "heaped whole numbers": (
        lambda r: with_heaps(r, N, np.round(r.normal(50, 12, N)), (40.0, 0.15)), (0, 100), 1.0, [40.0],
    ),
    "uniform": (lambda r: r.uniform(0, 1, N), (0, 1), None, []),
    "a steep fall from the wall": (lambda r: r.exponential(0.05, N), (0, 60), None, []),
    "few whole numbers": (lambda r: r.geometric(0.6, N) - 1.0, (0, 20), 1.0, []),
    "rounded, not declared": (lambda r: np.round(r.gamma(4, 4, N)), (0, 60), None, []),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_modes_and_posterior_list_the_same_values(kind):
    draw, bounds, step, true = COLUMNS[kind]
    density = density_of(draw(np.random.default_rng(0)), [bounds], steps=None if step is None else [step])
    from_modes = sorted(heap.value[0] for heap in density.modes().point_masses)
    from_posterior = sorted(atom.value for atom in density.posterior.atoms)
    cell = (bounds[1] - bounds[0]) / 200
    assert from_modes == pytest.approx(true, abs=cell)
    assert from_posterior == pytest.approx(true, abs=cell)


def test_shares_agree_within_their_errors():
    rng = np.random.default_rng(0)
    density = density_of(with_heaps(rng, N, rng.gamma(2, 4, N), (0.0, 0.2)), [(0, 60)])
    (heap,), (atom,) = density.modes().point_masses, density.posterior.atoms
    assert abs(heap.share - 0.2) < 3 * heap.error
    assert abs(heap.share - atom.share.value) < 2 * heap.error


def test_a_rounded_column_is_cut_at_its_values():
    rng = np.random.default_rng(0)
    x = np.round(rng.gamma(4, 4, N))
    density = density_of(x, [(0, 60)])
    found = density.posterior.probability(x1=(None, 12.0))
    assert found.low < (x <= 12).mean() < found.high


def test_one_of_two_columns():
    rng = np.random.default_rng(0)
    stay = with_heaps(rng, N, rng.gamma(2, 4, N), (0.0, 0.2))
    density = density_of(np.column_stack([rng.normal(50, 10, N), stay]), [(0, 100), (0, 60)])
    assert [heap.value for heap in density.modes().point_masses] == [(None, 0.0)]
    assert [atom.value for atom in density.posterior.marginal(1).atoms] == [0.0]
    assert density.posterior.marginal(0).atoms == ()


def stage_of(counts, scale=2.0):
    spec = LeafSpec.plan([(0, 64)], leaves=[64])
    boxes = np.array([[[i, i + 1]] for i in range(64)])
    stage = BucketCounts(boxes, np.round(counts).astype(np.int64), Noise("laplace", scale))
    return LeafRelease(spec, stage, stage)


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.0, 4.0])
def test_an_exponential_fall_is_no_point_mass(rate):
    assert column_heaps(stage_of(20_000 * np.exp(-rate * np.arange(64))), 0).cells == ()


def test_what_is_taken_out_and_what_is_kept_are_the_counts():
    counts = np.full(64, 40.0)
    counts[[0, 20]] = 900, 700
    found = take_out_heaps(stage_of(counts))
    assert sorted(heap.box[0, 0] for heap in found.heaps) == [0, 20]
    assert found.kept.tolist() == [40.0] * 64
    inner = next(heap for heap in found.heaps if heap.box[0, 0] == 20)
    assert inner.share * counts.sum() == pytest.approx(660)


def shares_of(density):
    found = density.modes()
    width = found.bandwidths.min(axis=0) if len(found.positions) else None
    walls = [wall.position for wall in found.boundary_modes]
    areas = basins(density, found.positions, width, boundary=walls)
    heaps = [heap.share for heap in found.point_masses]
    return areas.shares.tolist(), [wall.share for wall in found.boundary_modes], heaps


@pytest.mark.parametrize("seed", range(3))
def test_shares_of_all_kinds_add_up_to_at_most_one(seed):
    rng = np.random.default_rng(seed)
    parts = [rng.exponential(2, 5000), rng.normal(30, 3, 5000), np.zeros(2000), np.full(1000, 45.0)]
    modes, walls, heaps = shares_of(density_of(np.concatenate(parts), [(0, 60)], seed=seed))
    assert len(modes) == 1
    assert len(walls) == 1
    assert len(heaps) == 2
    assert 0.95 < sum(modes) + sum(walls) + sum(heaps) <= 1.0 + 1e-9
    assert modes[0] == pytest.approx(5 / 13, abs=0.03)
    assert walls[0] == pytest.approx(5 / 13, abs=0.04)


def test_the_hospital_table_has_two_groups_inside_and_same_day_visits(tmp_path):
    """What the README's commands say of its own table: the young at 5 years and a day, the old at 70 and three."""
    path = hospital_visits(20_000).to_csv(tmp_path / "visits.csv")
    for seed in range(3):
        with seeded_noise(seed):
            shape = fogline.release(path, bounds={"age": "age", "stay": (0, 60)}, unit="person", epsilon=1.0)
        found = shape.modes()
        young, old = found.positions[np.argsort(found.positions[:, 0])]
        assert abs(young[0] - 4.75) < 2.5
        assert 0.3 < young[1] < 2.6
        assert abs(old[0] - 70) < 4
        assert 1.5 < old[1] < 5
        assert found.boundary_modes == ()
        assert [heap.value for heap in found.point_masses] == [(None, 0.0)]
        modes, walls, heaps = shares_of(shape)
        assert sum(modes) + sum(walls) + sum(heaps) <= 1.0 + 1e-9
        assert max(modes) < 0.65  # 65% of the visits are those of the old, less their same-day visits


@pytest.mark.parametrize("seed", range(3))
def test_a_corner_where_the_density_is_highest_stays_a_wall(seed):
    rng = np.random.default_rng(seed)
    found = density_of(rng.exponential(1.0, (8000, 2)), [(0, 12)] * 2, seed=seed).modes()
    assert len(found.positions) == 0
    assert {end for wall in found.boundary_modes for end in wall.ends} >= {(0, "low"), (1, "low")}


def test_a_column_that_people_round_keeps_its_mode():
    """Blood pressures in even numbers and tens, taken for point masses where buckets are fine, left a hole at 126."""
    for seed in range(3):
        rng = np.random.default_rng([2, seed])
        pressure, how = rng.normal(126, 17, 30_000), rng.random(30_000)
        pressure = np.where(how < 0.2, 10 * np.round(pressure / 10), 2 * np.round(pressure / 2))
        modes = density_of(pressure, [(60, 240)], epsilon=0.3, seed=seed).modes()
        assert len(modes.positions) == 1
        assert abs(modes.positions[0, 0] - 126) < 2.6 * np.sqrt(modes.covariances[0, 0, 0])
        assert np.sqrt(modes.covariances[0, 0, 0]) < 3


def test_what_wide_buckets_may_hold_of_a_value_is_in_the_error():
    """Hours that are 20, 30, 38 or 40, beside a salary: most buckets are wider than a value."""
    shares = {20.0: 0.1, 30.0: 0.2, 38.0: 0.3, 40.0: 0.4}
    told = held = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        hours = rng.choice(list(shares), 4000, p=list(shares.values()))
        table = np.column_stack([1800 + rng.gamma(2.2, 700, 4000), hours])
        sketch = DensitySketch([(0, 12_000), (0, 60)], features="leaves").update(table)
        with seeded_noise(seed):
            found = sketch.release(epsilon=1.0).modes().point_masses
        for heap in found:
            (true,) = [share for value, share in shares.items() if heap.low[1] <= value <= heap.high[1]]
            told, held = told + 1, held + (abs(heap.share - true) < 1.96 * heap.error)
    assert told >= 4
    assert held >= told - 1
