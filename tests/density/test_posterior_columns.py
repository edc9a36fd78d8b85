"""The posterior of two and three columns: its mesh, its masses, its partition, and inputs with nothing in them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise, check_tiling
from fogline.density.partition import partition_settings, pilot_boxes, plan_partition
from fogline.density.posterior.field import FieldPrior, Mesh, Smoothness
from fogline.density.posterior.fit import FitSettings, fit_counts, settings_for
from fogline.density.posterior.likelihood import CountLaw
from fogline.density.posterior.masses import BucketPosterior
from fogline.density.posterior.posterior import Posterior


def noisy(table: np.ndarray, boxes: np.ndarray, scale: float, rng: np.random.Generator) -> BucketCounts:
    """Counts of a table of leaves in boxes, with discrete Laplace noise (of numpy: only the reading is tested here)."""
    exact = np.array([table[tuple(slice(a, b) for a, b in box)].sum() for box in boxes.tolist()])
    coin = 1 - math.exp(-1 / scale)
    noise = rng.geometric(coin, len(exact)) - rng.geometric(coin, len(exact))
    return BucketCounts(boxes, exact + noise, Noise("laplace", scale))


def release_of(table: np.ndarray, spec: LeafSpec, *, scale: float = 1.2, seed: int = 0) -> LeafRelease:
    rng = np.random.default_rng(seed)
    pilot = noisy(table, pilot_boxes(spec), 5 * scale, rng)
    counts = noisy(table, plan_partition(spec, pilot, Noise("laplace", scale)), scale, rng)
    return LeafRelease(spec, pilot, counts)


def table_of(records: np.ndarray, spec: LeafSpec) -> np.ndarray:
    places = np.floor((records - spec.lower) / spec.cell_widths + spec.shift).astype(int)
    places = np.clip(places, 0, np.array(spec.leaves) - 1)
    flat = np.ravel_multi_index(tuple(places.T), spec.leaves)
    return np.bincount(flat, minlength=spec.n_leaves).reshape(spec.leaves)


@pytest.fixture(scope="module")
def spec2() -> LeafSpec:
    return LeafSpec.plan([(0, 1), (0, 1)], leaves=[32, 32])


@pytest.fixture(scope="module")
def blob(spec2: LeafSpec) -> np.ndarray:
    records = np.random.default_rng(3).normal([0.4, 0.6], [0.1, 0.15], size=(4000, 2))
    return table_of(records[np.all((records > 0) & (records < 1), axis=1)], spec2)


@pytest.fixture(scope="module")
def read2(spec2: LeafSpec, blob: np.ndarray) -> Posterior:
    return Posterior.of_leaves(release_of(blob, spec2), ["x", "y"])


# -- mesh ----------------------------------------------------------------------------------------------------------


def test_conductances_of_two_columns_by_hand() -> None:
    # left half whole, right half cut in two: faces of length 1/2 between all three pairs
    boxes = np.array([[[0, 2], [0, 4]], [[2, 4], [0, 2]], [[2, 4], [2, 4]]])
    mesh = Mesh.of(boxes, (4, 4))
    pairs = dict(zip(zip(mesh.first.tolist(), mesh.second.tolist(), strict=True), mesh.conductance, strict=True))
    apart = math.hypot(0.5, 0.25)
    assert pairs == pytest.approx({(0, 1): 0.5 / apart, (0, 2): 0.5 / apart, (1, 2): 0.5 / 0.5})
    assert mesh.volumes.tolist() == [0.5, 0.25, 0.25]


def test_conductances_of_three_columns_by_hand() -> None:
    # two slabs of unequal thickness: one face of area 1, centres half of the box apart
    boxes = np.array([[[0, 2], [0, 2], [0, 1]], [[0, 2], [0, 2], [1, 4]]])
    mesh = Mesh.of(boxes, (2, 2, 4))
    assert mesh.conductance.tolist() == pytest.approx([1 / 0.5])
    assert mesh.volumes.tolist() == [0.25, 0.75]


def test_conductances_do_not_depend_on_leaves_per_axis() -> None:
    boxes = np.array([[[0, 1], [0, 8]], [[1, 2], [0, 8]]])
    assert Mesh.of(boxes, (2, 8)).conductance.tolist() == pytest.approx([1 / 0.5])


@pytest.mark.parametrize("order", [1, 2])
def test_factor_agrees_with_dense_algebra(order: int) -> None:
    boxes = plan_boxes((8, 8))
    mesh = Mesh.of(boxes, (8, 8))
    prior = FieldPrior(mesh, Smoothness(0.3, 1.5, order))
    weights = np.linspace(0.1, 5, mesh.size)
    root = prior.root.toarray()
    dense = root @ root.T + np.diag(weights)
    factor = prior.factor(weights)
    right = np.arange(mesh.size, dtype=float)
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(dense, right), rtol=1e-8)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(dense)[1])
    assert prior.log_determinant == pytest.approx(np.linalg.slogdet(root @ root.T)[1])
    # a factor leaves its prior as it was
    assert prior.factor(weights).log_determinant == factor.log_determinant


def plan_boxes(leaves: tuple[int, int]) -> np.ndarray:
    """A quarter in leaves of 2 x 2, the rest in quarters."""
    half = leaves[0] // 2
    small = [[[i, i + 2], [j, j + 2]] for i in range(0, half, 2) for j in range(0, half, 2)]
    return np.array([*small, [[0, half], [half, 2 * half]], [[half, 2 * half], [0, half]], [[half, 2 * half]] * 2])


# -- fit -----------------------------------------------------------------------------------------------------------


def test_newton_comes_to_rest_at_the_mode_under_much_noise(spec2: LeafSpec, blob: np.ndarray) -> None:
    # much noise makes the law of a count nearly kinked, where plain scoring circles
    counts = noisy(blob, pilot_boxes(spec2), 30.0, np.random.default_rng(1))
    mesh = Mesh.of(counts.boxes, spec2.leaves)
    fit = fit_counts(mesh, counts.counts.astype(float), CountLaw(counts.noise), emptiness=False).fits[0]
    # at the mode the slope of the likelihood is the gradient of the prior
    gradient = fit.prior.root @ (fit.prior.root.T @ fit.smooth)
    off = fit.slope - gradient
    newton = fit.factor.solve(off)
    assert math.sqrt(abs(float(off @ newton))) < 0.3


@pytest.mark.parametrize("d", [2, 3])
def test_few_even_records_are_read_as_flat(d: int) -> None:
    """Against the same search without the smallest deviations, which made slopes out of noise."""
    spec, now = LeafSpec.plan([(0, 1)] * d), settings_for(d)
    steeper = tuple(value for value in now.deviations if value >= 1)
    start = (now.start[0], steeper.index(now.deviations[now.start[1]]), *now.start[2:])
    before = replace(now, deviations=steeper, start=start)
    mesh = Mesh.of(pilot_boxes(spec), spec.leaves)
    side = round(mesh.size ** (1 / d))

    def distance(counts: BucketCounts, settings: FitSettings) -> float:
        """How far the distribution functions of the columns are from a straight line, on average."""
        fit = fit_counts(mesh, counts.counts.astype(float), CountLaw(counts.noise), settings)
        if d == 3 and settings is now:
            assert fit.empty.mean() < 0.5, "a flat field leaves nothing for emptiness to explain"
        content = (fit.intensity * (1 - fit.empty)).reshape((side,) * d)
        margins = [content.sum(axis=tuple(set(range(d)) - {axis})) / content.sum() for axis in range(d)]
        return float(np.mean([np.abs(np.cumsum(margin - 1 / side)).mean() for margin in margins]))

    found = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        table = table_of(rng.random((1000, d)), spec)
        released = noisy(table, pilot_boxes(spec), 12.0, rng)
        found.append([distance(released, settings) for settings in (now, before)])
    assert np.mean(found, axis=0)[0] < 0.7 * np.mean(found, axis=0)[1], found


def test_released_sum_is_given_back_to_a_thin_background(spec2: LeafSpec) -> None:
    # two records per bucket everywhere: no bucket shows them, their sum does
    table = np.full(spec2.leaves, 1)
    table[4:6, 4:6] = 200
    boxes = pilot_boxes(spec2)
    stage = noisy(table, boxes, 6.0, np.random.default_rng(4))
    expected = BucketPosterior(LeafRelease(spec2, stage, stage)).expected
    background = (boxes[:, 0, 0] // 2 != 2) | (boxes[:, 1, 0] // 2 != 2)
    assert 0.5 * 1020 < expected[background].sum() < 1.5 * 1020
    assert expected[~background].sum() == pytest.approx(800, abs=60)


# -- partition -----------------------------------------------------------------------------------------------------


def test_partition_tiles_and_is_finer_where_records_are(spec2: LeafSpec, blob: np.ndarray) -> None:
    release = release_of(blob, spec2)
    check_tiling(release.counts.boxes, spec2.leaves)
    label = np.argmax(release.counts.counts)
    assert release.counts.sizes[label] < release.counts.sizes.max()


def test_partition_is_a_function_of_released_numbers(spec2: LeafSpec, blob: np.ndarray) -> None:
    pilot = noisy(blob, pilot_boxes(spec2), 5.0, np.random.default_rng(0))
    first, second = (plan_partition(spec2, pilot, Noise("laplace", 1.0)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_partition_keeps_to_most_buckets() -> None:
    spec = LeafSpec.plan([(0, 1), (0, 1)], leaves=[128, 128])
    pilot = BucketCounts(pilot_boxes(spec), np.full(256, 10**6), Noise("laplace", 5.0))
    boxes = plan_partition(spec, pilot, Noise("laplace", 1.0))
    assert len(boxes) == partition_settings(2).most_buckets
    check_tiling(boxes, spec.leaves)


def test_partition_leaves_several_records_in_a_bucket_however_little_noise_there_is(
    spec2: LeafSpec, blob: np.ndarray
) -> None:
    pilot = noisy(blob, pilot_boxes(spec2), 0.3, np.random.default_rng(0))
    little, less = (plan_partition(spec2, pilot, Noise("laplace", scale)) for scale in (0.3, 0.125))
    np.testing.assert_array_equal(little, less)
    assert len(less) < partition_settings(2).most_buckets


def test_partition_of_three_columns_tiles() -> None:
    spec = LeafSpec.plan([(0, 1)] * 3, leaves=[16, 16, 16])
    table = table_of(np.random.default_rng(2).beta(2, 5, size=(3000, 3)), spec)
    check_tiling(release_of(table, spec).counts.boxes, spec.leaves)


# -- masses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["population", "records"])
def test_masses_and_draws_sum_to_one(read2: Posterior, target: str) -> None:
    masses = read2.masses(target)  # type: ignore[arg-type]
    assert masses.estimate.sum() == pytest.approx(1)
    assert masses.estimate.min() >= 0
    assert masses.draws.min() >= 0
    np.testing.assert_allclose(masses.draws.sum(axis=(1, 2)), 1)


def test_probabilities_of_disjoint_boxes_add_up(read2: Posterior) -> None:
    parts = [read2.probability(x=(a, b), y=(0.2, 0.9)).value for a, b in ((0, 0.3), (0.3, 0.55), (0.55, 1))]
    assert sum(parts) == pytest.approx(read2.probability(y=(0.2, 0.9)).value)  # type: ignore[arg-type]


def test_margin_is_the_direct_sum(read2: Posterior) -> None:
    margin = read2.marginal("y")
    np.testing.assert_allclose(margin.masses().estimate, read2.masses().estimate.sum(axis=0))
    np.testing.assert_allclose(margin.masses().draws, read2.masses().draws.sum(axis=1))
    direct = read2.probability(y=(0.5, 0.75))
    assert margin.probability(y=(0.5, 0.75)).value == pytest.approx(direct.value)
    assert margin.probability(y=(0.5, 0.75)).interval == pytest.approx(direct.interval)


def test_the_truth_is_near(read2: Posterior, blob: np.ndarray) -> None:
    exact = blob[8:16, 16:24].sum() / blob.sum()
    found = read2.probability(x=(0.25, 0.5), y=(0.5, 0.75), target="records")
    assert abs(float(found) - exact) < 4 * float(found.standard_error)
    assert abs(float(read2.correlation("x", "y"))) < 0.15


def test_reading_is_deterministic(spec2: LeafSpec, blob: np.ndarray, read2: Posterior) -> None:
    again = Posterior.of_leaves(release_of(blob, spec2), ["x", "y"])
    np.testing.assert_array_equal(again.masses().draws, read2.masses().draws)


def test_three_columns_answer() -> None:
    spec = LeafSpec.plan([(0, 1)] * 3, leaves=[16, 16, 16])
    records = np.random.default_rng(5).beta(2, 5, size=(5000, 3))
    posterior = Posterior.of_leaves(release_of(table_of(records, spec), spec), ["a", "b", "c"])
    assert posterior.masses().estimate.sum() == pytest.approx(1)
    found = posterior.probability(a=(0, 0.25), c=(0, 0.5))
    exact = np.mean((records[:, 0] < 0.25) & (records[:, 2] < 0.5))
    assert abs(float(found) - exact) < 0.05
    np.testing.assert_allclose(posterior.marginal("b").masses().estimate, posterior.masses().estimate.sum(axis=(0, 2)))


# -- nothing, and lattices -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
def test_no_records_at_all(d: int) -> None:
    spec = LeafSpec.plan([(0, 1)] * d, leaves=[8] * d)
    posterior = Posterior.of_leaves(release_of(np.zeros(spec.leaves, dtype=int), spec))
    assert posterior.masses().estimate.sum() == pytest.approx(1)
    assert np.isfinite(posterior.masses().draws).all()


def test_negative_counts_only() -> None:
    spec = LeafSpec.plan([(0, 1), (0, 1)], leaves=[8, 8])
    boxes = pilot_boxes(spec)
    stage = BucketCounts(boxes, np.full(len(boxes), -3), Noise("laplace", 2.0))
    posterior = Posterior.of_leaves(LeafRelease(spec, stage, stage))
    assert posterior.masses().estimate.sum() == pytest.approx(1)


@pytest.mark.parametrize("d", [2, 3])
def test_one_bucket(d: int) -> None:
    spec = LeafSpec.plan([(0, 1)] * d, leaves=[4] * d)
    stage = BucketCounts(np.array([[[0, 4]] * d]), np.array([100]), Noise("laplace", 2.0))
    posterior = Posterior.of_leaves(LeafRelease(spec, stage, stage), ["a", "b", "c"][:d])
    assert float(posterior.probability(a=(0, 0.5))) == pytest.approx(0.5)


def test_all_in_one_leaf(spec2: LeafSpec) -> None:
    table = np.zeros(spec2.leaves, dtype=int)
    table[21, 9] = 3000
    posterior = Posterior.of_leaves(release_of(table, spec2), ["x", "y"])
    inside = posterior.probability(x=(21 / 32, 22 / 32), y=(9 / 32, 10 / 32))
    assert float(inside) > 0.97


def test_a_lattice_beside_a_continuous_column() -> None:
    spec = LeafSpec.plan([(0, 100), (0, 1)], steps=[1, None], leaves=[256, 32])
    assert spec.leaves == (101, 32)
    rng = np.random.default_rng(6)
    ages = np.where(rng.random(20_000) < 0.4, 40.0, np.round(rng.uniform(0, 100, 20_000)))
    table = table_of(np.column_stack([ages, rng.random(20_000)]), spec)
    posterior = Posterior.of_leaves(release_of(table, spec), ["age", "share"])
    assert float(posterior.probability(age=(40, 40))) == pytest.approx(np.mean(ages == 40), abs=0.03)
    values = posterior.sample(500, random_state=0)[:, 0]
    np.testing.assert_array_equal(values, np.round(values))


def test_a_flag_beside_a_continuous_column() -> None:
    # two values are the fewest that a lattice can have
    spec = LeafSpec.plan([(0, 1), (0, 1)], steps=[1.0, None], leaves=[8, 16])
    assert spec.leaves == (2, 16)
    table = np.stack([np.arange(16) * 20, np.zeros(16, dtype=int)])
    posterior = Posterior.of_leaves(release_of(table, spec), ["flag", "y"])
    assert float(posterior.probability(flag=(0, 0))) == pytest.approx(1, abs=0.03)
    assert float(posterior.probability(y=(0.5, 1))) == pytest.approx(table[0, 8:].sum() / table.sum(), abs=0.05)


def test_an_axis_with_one_leaf() -> None:
    spec = LeafSpec.plan([(0, 1), (0, 1)], leaves=[1, 16])
    table = np.arange(16).reshape(1, 16) * 20
    posterior = Posterior.of_leaves(release_of(table, spec), ["x", "y"])
    assert float(posterior.probability(x=(0, 0.5))) == pytest.approx(0.5)
    assert float(posterior.probability(y=(0.5, 1))) == pytest.approx(table[0, 8:].sum() / table.sum(), abs=0.05)
