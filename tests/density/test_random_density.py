"""A density of more than three axes: released, read, kept in files, replayed."""

import math
import pickle

import numpy as np
import pytest
from canaries import by_turns, few_corners, first_failure

from fogline import DensitySketch, PrivateDensity
from fogline.audit import canary_pairs, replay
from fogline.density.random_spec import UNIT, plan_spec
from fogline.ledger import Ledger
from fogline.queries import fourier_sums as sensitivity
from fogline.queries import random_feature_sums as random_features
from fogline.queries.fourier_sums import lattice_sensitivity
from fogline.releases.density_sketch import AlreadyReleased, ReleaseTerms
from fogline.releases.passes import count_into, release_source
from fogline.sources.files import FileTable
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
BOX = [(0.0, 10.0)] * 5
CENTRES = np.array([[3.0] * 5, [7.0] * 5, [3.0, 7.0, 3.0, 7.0, 3.0]])
RELATIONS = ["add-remove", "replace"]


def mixture(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 3, n)] + rng.normal(0, 0.6, size=(n, 5))


def release(X, *, seed=1, neighbours="add-remove", **options):
    with seeded_noise(seed):
        return DensitySketch(BOX, **options).update(X).release(**BUDGET, neighbours=neighbours)


def kernel_density(X, points, h):
    logs = -0.5 * np.sum(((points[:, None] - X[None]) / h) ** 2, axis=2)
    return np.exp(logs).mean(axis=1) / np.prod(np.sqrt(2 * np.pi) * h)


@pytest.fixture(scope="module")
def density():
    return release(mixture())


# -- what it says -----------------------------------------------------------------------------------------------


def test_the_density_is_that_of_the_records(density):
    X = mixture()
    rng = np.random.default_rng(3)
    points = np.concatenate([CENTRES, rng.uniform(0, 10, size=(20, 5))])
    low, high = density.bandwidth_range
    for h in (low, *density.spec.planned, 0.9 * high):
        reading = density.reading(h)
        errors = density.pdf(points, h) - kernel_density(X, points, h)
        assert np.abs(errors).max() < 5 * math.hypot(reading.noise_sd, reading.feature_sd)
    assert density.pdf(CENTRES).min() > 20 * density.noise_sd()


def test_count_and_its_error(density):
    assert abs(density.count - 6000) < 5 * density.count_sd
    assert 3 < density.count_sd / density.noise_scale < 4.6
    assert density.coefficients.shape == density.weights.shape == (density.spec.n_features + 1,)
    assert density.coefficients[0].real == density.count


def test_the_noise_of_the_density_is_known():
    """Empty sketches hold only noise: with the count fixed by hand its spread is what noise_sd says."""
    values, told = [], 0.0
    for seed in range(150):
        density = release(np.zeros((0, 5)), seed=seed, bandwidths=0.3, features=128)
        reading = density.reading(density.spec.planned[0])
        values.append(reading.value(np.array([[2.0] * 5, [8.0] * 5])) * density.count)
        told = reading.noise_sd * density.count
    assert np.std(values) == pytest.approx(told, rel=0.15)


def test_the_noise_does_not_depend_on_the_number_of_features():
    X = mixture(500)
    few, many = (release(X, features=size, bandwidths=0.2).reading(0.2) for size in (256, 4096))
    assert few.noise_sd == pytest.approx(many.noise_sd, rel=0.1)
    assert 2 < few.feature_sd / many.feature_sd < 8


def test_derivatives_are_those_of_the_density(density):
    points = CENTRES + 0.3
    value, gradient, hessian = density.reading().jet(points)
    assert np.allclose(value, density.pdf(points))
    step = 1e-4
    for j in range(5):
        ahead, behind = (points + sign * step * np.eye(5)[j] for sign in (1, -1))
        slope = (density.pdf(ahead) - density.pdf(behind)) / (2 * step)
        bend = (density.gradient(ahead) - density.gradient(behind)) / (2 * step)
        assert np.allclose(slope, gradient[:, j], atol=1e-6 * np.abs(gradient).max())
        assert np.allclose(bend, hessian[:, j], atol=1e-6 * np.abs(hessian).max())
    assert np.array_equal(density.hessian(points), hessian)
    for mine, theirs in zip(density.reading().slope(points), (value, gradient), strict=True):
        assert np.allclose(mine, theirs)


def test_no_points_and_many_points_are_fine(density):
    assert density.pdf(np.zeros((0, 5))).shape == (0,)
    assert density.gradient(np.zeros((0, 5))).shape == (0, 5)
    assert density.hessian(np.zeros((0, 5))).shape == (0, 5, 5)
    points = np.random.default_rng(0).uniform(0, 10, size=(1500, 5))
    assert np.allclose(density.pdf(points)[::100], density.pdf(points[::100]))


def test_densities_of_many_axes_do_not_overflow():
    X = np.random.default_rng(0).normal(50, 5, size=(500, 100))
    with seeded_noise(1):
        density = DensitySketch([(0, 100)] * 100, features=256).update(X).release(**BUDGET)
    reading = density.reading()
    value, gradient, hessian = (part / reading.unit for part in reading.jet(np.full((1, 100), 50.0)))
    assert np.isfinite(reading.unit)
    assert 0 < reading.unit < 1e-150
    assert 0.01 < value[0] < 1.5
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert np.isfinite(reading.noise_sd / reading.unit)


def test_a_grid_is_refused_with_what_to_use(density):
    for question in (density.grid, lambda: density.reading().on_grid(2.0)):
        with pytest.raises(ValueError, match=r"modes\(\)"):
            question()


def test_bandwidths_out_of_range_are_refused(density):
    with pytest.raises(ValueError, match="bandwidth"):
        density.pdf(CENTRES, 0.9)
    with pytest.raises(ValueError, match="bandwidth"):
        density.pdf(CENTRES, [0.5, 1.0])


def test_the_default_bandwidth_is_finer_where_there_are_more_records():
    few, many = (release(mixture(n)).bandwidth[0] for n in (150, 6000))
    assert many < few


def test_an_empty_sketch_is_an_ordinary_one():
    empty = release(np.zeros((0, 5)), bandwidths=0.2, features=200)
    assert empty.count >= 1
    assert np.isfinite(empty.pdf(CENTRES)).all()
    for rows in ([[math.nan] * 5], [[math.inf] * 5, [-1.0] * 5]):
        assert release(np.array(rows), bandwidths=0.2, features=200) == empty


def test_random_features_in_the_plane():
    X = mixture()[:, :2]
    with seeded_noise(2):
        density = DensitySketch(BOX[:2], features="random").update(X).release(**BUDGET)
    h = density.spec.planned[-1]
    assert density.pdf([[3.0, 3.0]], h) == pytest.approx(kernel_density(X, np.array([[3.0, 3.0]]), h), rel=0.1)


# -- files, merging, ledger -------------------------------------------------------------------------------------


def test_a_release_survives_files_and_pickle(density, tmp_path):
    density.save(tmp_path / "density.npz")
    assert PrivateDensity.load(tmp_path / "density.npz") == density == pickle.loads(pickle.dumps(density))


def test_sketches_merge_and_survive_files(tmp_path):
    X = mixture(700)
    X[::50] = np.nan
    options = {"bandwidths": 0.2, "features": 300}
    whole = DensitySketch(BOX, **options).update(X)
    parts = [DensitySketch(BOX, **options).update(part) for part in np.array_split(X[::-1], [5, 400])]
    parts[1].save(tmp_path / "part.npz")
    merged = parts[0].merge(DensitySketch.load(tmp_path / "part.npz")).merge(parts[2])
    assert all(np.array_equal(a, b) for a, b in zip(whole.state(), merged.state(), strict=True))
    with seeded_noise(4):
        mine = whole.release(**BUDGET)
    with seeded_noise(4):
        assert merged.release(**BUDGET) == mine
    with pytest.raises(AlreadyReleased):
        parts[0].release(**BUDGET)
    with pytest.raises(ValueError, match="n_features"):
        whole.merge(DensitySketch(BOX, bandwidths=0.2, features=301))
    with pytest.raises(TypeError, match="update"):
        whole.add_cells(np.array([0]), np.array([1]))


def test_a_ledger_answers_the_same_question_once(tmp_path):
    sketch = DensitySketch(BOX, bandwidths=0.2, features=300).update(mixture(300))
    with Ledger.create(tmp_path / "a", dataset="x", epsilon=3.0, delta=1e-4, high_water=tmp_path / "marks") as ledger:
        first = sketch.release(**BUDGET, ledger=ledger)
        again = sketch.release(**BUDGET, ledger=ledger)
    assert np.array_equal(again.coefficients, first.coefficients)
    assert first.guarantee.certified
    assert first.guarantee.proof == "random-features"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_read_as_arrays_are(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("fogline.sources.files.BATCH_ROWS", 64)
    X = mixture(300).round(3)
    X[5, 2] = np.nan
    X[6] = 99.0
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        lines = [",".join("" if math.isnan(v) else repr(v) for v in row) for row in X.tolist()]
        lines[7] = "one,2,3,4,5"
        lines[8] = '"1,2,3'
        lines[9] = f'"{X[9, 0]}",' + ",".join(map(repr, X[9, 1:].tolist()))
        X[7:9] = np.nan
        path.write_text("\n".join(["a,b,c,d,e", *lines]) + "\n")
    else:
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame(X, columns=list("abcde")).to_parquet(path)
    spec = plan_spec(BOX, 0.2, features=200)
    by_file, by_array = DensitySketch.of(spec), DensitySketch.of(spec).update(X)
    count_into(by_file, FileTable(path))
    assert all(np.array_equal(a, b) for a, b in zip(by_file.state(), by_array.state(), strict=True))
    terms = ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1)
    with seeded_noise(3):
        released = release_source(str(path), spec, terms)
    with seeded_noise(3):
        assert np.array_equal(released.coefficients, by_array.release(**BUDGET).coefficients)


# -- privacy ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("contributions", [1, 4])
def test_the_noise_is_calibrated_to_the_sensitivity(neighbours, contributions):
    sketch = DensitySketch(BOX, bandwidths=0.2, features=100)
    with seeded_noise(1):
        density = sketch.release(**BUDGET, neighbours=neighbours, max_contributions=contributions)
    least = lattice_sensitivity(sketch.spec, neighbours, contributions) / math.sqrt(2 * density.guarantee.rho)
    assert least <= density.noise_scale * math.sqrt(sketch.spec.squared_norm) <= least * (1 + 1e-9)


def sketch_release(relation):
    def fit(data):
        sketch = DensitySketch(BOX, bandwidths=[0.2], features=150).update(data)
        return sketch.release(**BUDGET, neighbours=relation)

    return fit


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("relation", RELATIONS)
def test_replay_on_all_canaries(relation, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(random_features, "_fast_adder", lambda: None)
    pairs = few_corners(canary_pairs(BOX, neighbours=relation, block=random_features.BLOCK_ROWS))
    # The loop without numba is compared with the compiled one elsewhere: here it must cross a block, too.
    report = replay(sketch_release(relation), by_turns(pairs, relation) if compiled else [*pairs[::4], *pairs[-2:]])
    assert report.passed, str(report)
    assert report.largest_ratio > (0.99 if relation == "add-remove" else 0.5)


def no_cut_of_the_table(patch):
    """Directions rounded away from zero, beyond modulus one."""
    table = random_features.direction_table().astype(np.int64)
    cosine, sine = table >> 16, (table << 48) >> 48
    longer = ((cosine * 11 // 10).clip(-UNIT, UNIT) << 16) | ((sine * 11 // 10).clip(-UNIT, UNIT) & 0xFFFF)
    patch.setattr(random_features, "direction_table", lambda: longer.astype(np.int32))


def no_mask_of_the_box(patch):
    """Records outside are pulled to its edge instead of left out, missing ones to its middle."""
    real = random_features.coordinates

    def coordinates(rows, spec):
        return real(np.clip(np.nan_to_num(rows, nan=1.0), spec.lower, spec.upper) * 1.0, spec)

    patch.setattr(random_features, "coordinates", coordinates)


def half_the_sensitivity(patch):
    real = sensitivity.random_sensitivity
    patch.setattr(sensitivity, "random_sensitivity", lambda *given: real(*given) / 2)


def phases_that_depend_on_the_batch(patch):
    """The coordinates of a record are moved by the mean of its batch, as a rounded product might be."""
    real = random_features.coordinates

    def coordinates(rows, spec):
        u = real(rows, spec)
        return np.round(u + (u.mean() if u.size else 0.0)).clip(-2048, 2047)

    patch.setattr(random_features, "coordinates", coordinates)


def the_count_twice(patch):
    real = random_features.lattice_vector
    patch.setattr(random_features, "lattice_vector", lambda count, sums, spec: real(4 * count, sums, spec))


@pytest.mark.parametrize(
    "mutant",
    [no_cut_of_the_table, half_the_sensitivity, phases_that_depend_on_the_batch, the_count_twice],
    ids=lambda f: f.__name__,
)
def test_mutants_fail_the_replay(mutant, monkeypatch):
    mutant(monkeypatch)
    pairs = canary_pairs(BOX, neighbours="add-remove", block=None)[::4]
    first_failure(sketch_release("add-remove"), pairs, "sensitivity apart")


def test_a_missing_mask_of_the_box_is_noticed(monkeypatch):
    no_mask_of_the_box(monkeypatch)
    outside = DensitySketch(BOX, bandwidths=0.2, features=64).update([[99.0] * 5, [math.nan] * 5])
    assert outside.table().any()


def test_a_table_beyond_modulus_one_is_refused(monkeypatch):
    monkeypatch.setattr(random_features.np, "trunc", np.ceil)
    with pytest.raises(AssertionError, match="modulus"):
        random_features.direction_table.__wrapped__()


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # epsilon = 20, for the least fog
def test_the_fogline_has_its_level_where_there_is_no_grid():
    rows = np.random.default_rng(0).normal(5.0, 0.7, (3000, 5))
    with seeded_noise(1):
        densities = [
            DensitySketch([(0, 10)] * 5, features=512).update(rows).release(epsilon=e, delta=1e-5) for e in (0.3, 1, 20)
        ]
    weak, usual, strong = densities
    bandwidth = usual.spec.planned[-1]
    lines = [density.fogline(bandwidth) for density in densities]
    assert lines[0] > lines[1] > lines[2] > 0, "a larger budget lowers the fog"
    levels = [usual.fogline(bandwidth, level) for level in (0.5, 0.05, 0.001)]
    assert levels[0] < levels[1] < levels[2]
    assert isinstance(lines[0], float)
    top, nothing, nowhere = strong.fogline(bandwidth, at=[[5.0] * 5, [2.5] * 5, [np.nan] * 5])
    assert top > nothing > 0
    assert np.isnan(nowhere)
    assert strong.fogline(bandwidth) == pytest.approx(top, rel=0.1)
    assert strong.fogline(bandwidth, at=np.zeros((0, 5))).shape == (0,)
    highest = strong.modes(1, bandwidth=bandwidth).heights[0]
    assert highest > strong.fogline(bandwidth), "a clear mode stands above it"
    with pytest.raises(ValueError, match="level"):
        weak.fogline(bandwidth, 0.0)
