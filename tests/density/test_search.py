"""Modes without a grid: right number, right place, no false ones from noise, side lobes or walls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import chi2

from fogline import DensitySketch
from fogline.density.modes.on_grid import make_scale_space
from fogline.density.modes.side_lobes import ClearedReading, Field, SideLobeModel, fit_side_lobes, scan
from fogline.density.modes.without_grid import ReadingNoise, excursion_chances, survey_of
from fogline.testing import seeded_noise


def release(X, d, *, seed=0, epsilon=1.0, features=2048, **options):
    with seeded_noise(seed):
        sketch = DensitySketch([(-8, 8)] * d, features=features, **options).update(np.reshape(X, (-1, d)))
        return sketch.release(epsilon=epsilon, delta=1e-5)


def clusters(centres, sizes, *, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return np.concatenate([c + scale * rng.standard_normal((n, len(c))) for c, n in zip(centres, sizes, strict=True)])


THREE = np.array([[-3.0, -3, 0, 2], [3.0, 0, -2, -3], [0.0, 4, 3, 0]])


@pytest.fixture(scope="module")
def three():
    return release(clusters(THREE, [4000, 3000, 3000]), 4)


# -- what noise does ------------------------------------------------------------------------------------------


def test_in_one_dimension_the_excursions_are_rices():
    u = np.linspace(1.5, 6, 11)
    assert excursion_chances(u, np.array([9.0])) == pytest.approx(ndtr(-u) + 9 / (2 * np.pi) * np.exp(-(u**2) / 2))


@given(st.lists(st.floats(0.1, 60), min_size=1, max_size=12))
def test_chances_fall_with_height_and_grow_with_the_box(lengths):
    u = np.linspace(0, 30, 200)
    small, large = excursion_chances(u, np.array(lengths)), excursion_chances(u, 2 * np.array(lengths))
    assert np.all(np.diff(small) <= 0)
    assert small[-1] < 1e-9
    assert np.all(large >= small)


def test_simulated_noise_reaches_the_heights_it_should():
    rng = np.random.default_rng(0)
    axis = np.linspace(0, 10, 61)
    highest = []
    for _ in range(400):
        w = rng.standard_normal((200, 2))
        phase = np.exp(1j * rng.uniform(0, 2 * np.pi, 200))
        field = np.exp(1j * np.outer(axis, w[:, 0])) * phase @ np.exp(1j * np.outer(axis, w[:, 1])).T
        highest.append(field.real.max() / np.sqrt(100))
    for u in (2.8, 3.2, 3.6):
        expected = excursion_chances(np.array([u]), np.array([10.0, 10.0]))[0]
        assert np.mean(np.array(highest) > u) == pytest.approx(expected, abs=4 * np.sqrt(expected / 400) + 0.03)


def test_the_fog_is_the_noise_where_there_are_no_records():
    density = release(np.zeros((0, 5)), 5)
    reading = density.reading(0.15)
    noise = ReadingNoise.of(reading, density.count)
    assert noise.variance == pytest.approx(noise.privacy, rel=0.15)
    assert noise.privacy * reading.unit**2 == pytest.approx(reading.noise_sd**2)
    points = np.random.default_rng(0).uniform(-8, 8, (4000, 5))
    assert np.std(noise.field.relative(points)) == pytest.approx(np.sqrt(noise.variance), rel=0.2)


def test_the_fog_holds_the_side_lobes():
    density = release(np.zeros((10**5, 5)), 5, features=256)
    noise = ReadingNoise.of(density.reading(0.1), density.count)
    far = np.random.default_rng(0).uniform(-8, 8, (4000, 5))
    far = far[np.linalg.norm(far, axis=1) > 7]
    assert noise.variance > 100 * noise.privacy
    assert np.std(noise.field.relative(far)) == pytest.approx(np.sqrt(noise.variance), rel=0.3)


# -- fast fields and atoms ------------------------------------------------------------------------------------


def some_atoms(d):
    rng = np.random.default_rng(d)
    factors = rng.standard_normal((2, d, d))
    return SideLobeModel(np.array([0.6, 0.4]), rng.uniform(-3, 3, (2, d)), factors @ factors.transpose(0, 2, 1) / d)


@pytest.mark.parametrize("cleared", [False, True])
def test_a_field_is_its_reading(three, cleared):
    reading = three.reading(0.12)
    if cleared:
        reading = ClearedReading(reading, some_atoms(4))
    points = np.random.default_rng(1).uniform(-6, 6, (50, 4))
    for fast, exact in zip(Field(reading).jet(points), reading.jet(points), strict=True):
        assert fast == pytest.approx(exact, abs=2e-4 * np.abs(exact).max())
    value = reading.value(points)
    assert Field(reading).value(points) == pytest.approx(value, abs=1e-4 * np.abs(value).max())
    known = some_atoms(4).smoothed(points, reading.bandwidth)[0] if cleared else 0.0
    scanned = reading.unit * (scan([reading], points)[0] + known)
    assert scanned == pytest.approx(value, abs=1e-4 * np.abs(value).max())


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.floats(0.3, 2.0))
def test_derivatives_of_smoothed_atoms(d, h):
    atoms, bandwidth = some_atoms(d), np.full(d, h)
    point, step = np.linspace(-1, 1, d)[None], 1e-4
    _, gradient, hessian = atoms.smoothed(point, bandwidth)
    moved = [atoms.smoothed(point + s * step * h * np.eye(d), bandwidth) for s in (1, -1)]
    assert (moved[0][0] - moved[1][0]) / (2 * step) == pytest.approx(gradient[0], abs=1e-6)
    assert (moved[0][1] - moved[1][1]) / (2 * step) == pytest.approx(hessian[0], abs=1e-6)


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # hardly any noise
def test_smoothed_atoms_are_what_many_records_of_them_give():
    atoms = some_atoms(4)
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.multivariate_normal(c, s, int(1e5 * w)) for w, c, s in zip(*vars(atoms).values(), strict=True)]
    )
    density = release(X, 4, epsilon=20.0, features=4096)
    reading = density.reading(0.15)
    exact = atoms.smoothed(atoms.centres, reading.bandwidth)[0]
    assert reading.value(atoms.centres) / reading.unit == pytest.approx(exact, rel=0.08)
    # Cleared of the side lobes, much closer: what is left is the draw of the records.
    assert ClearedReading(reading, atoms).value(atoms.centres) / reading.unit == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("d", [2, 5, 9])
def test_atoms_are_recovered_from_their_spectrum(d):
    atoms = some_atoms(d)
    reading = release(np.zeros((0, d)), d).reading(0.2)
    sums = atoms.spectrum(reading.spec.angular, reading.spec.origin)
    fitted = fit_side_lobes(reading, sums, atoms.centres + 0.3, np.ones((2, d)))
    assert fitted.weights == pytest.approx(atoms.weights, abs=0.02 if d < 9 else 0.1)
    assert fitted.centres == pytest.approx(atoms.centres, abs=0.05 if d < 9 else 0.3)
    if d == 5:  # with few parameters, covariances too
        assert fitted.covariances == pytest.approx(atoms.covariances, abs=0.15)


def test_atoms_invent_nothing():
    """Whatever the atoms, a cleared reading is the reading up to their side lobes."""
    density = release(clusters(THREE[:1], [5000]), 4, features=8192)
    reading = density.reading(0.15)
    wrong = SideLobeModel(np.array([0.5]), np.full((1, 4), 4.0), np.eye(4)[None])
    points = np.random.default_rng(0).uniform(-6, 6, (300, 4))
    points[:20] = 4.0 + 0.3 * np.random.default_rng(1).standard_normal((20, 4))
    difference = (ClearedReading(reading, wrong).value(points) - reading.value(points)) / reading.unit
    assert np.abs(difference).max() < 0.5 * 5 / np.sqrt(2 * 8192) * 2


# -- modes ----------------------------------------------------------------------------------------------------


def test_three_clusters(three):
    found = three.modes()
    assert found.positions.shape == (3, 4)
    order = [int(np.argmin(np.linalg.norm(found.positions - c, axis=1))) for c in THREE]
    assert sorted(order) == [0, 1, 2]
    offset = found.positions[order] - THREE
    assert np.linalg.norm(offset, axis=1).max() < 0.2  # the limit of sampling is 0.04
    distance = np.einsum("ki,kij,kj->k", offset, np.linalg.inv(found.covariances[order]), offset)
    assert distance.max() < chi2.ppf(0.999, 4)
    assert found.p_values.max() < 0.01
    assert order[0] == 0  # the largest is the highest, whatever the bandwidths they are read at
    assert np.all(np.diff(found.heights) <= 0)
    assert found.message == ""


def test_reading_twice_gives_the_same(three):
    again = release(clusters(THREE, [4000, 3000, 3000]), 4)
    assert np.array_equal(three.modes().positions, again.modes().positions)


def test_so_many_modes_as_asked_for(three):
    assert three.modes(3).positions == pytest.approx(three.modes().positions, abs=0.3)
    assert len(three.modes(2).positions) == 2
    many = three.modes(500)
    assert 3 <= len(many.positions) < 500
    assert "of 500 peaks were found" in many.message


def test_a_bandwidth_that_is_asked_for(three):
    found = three.modes(bandwidth=0.12)
    assert found.positions.shape == (3, 4)
    assert np.all(found.bandwidths == 0.12 * 16)


def test_random_and_grid_features_agree_in_two_dimensions():
    X = clusters(np.array([[-3.0, 0], [3.0, 1]]), [6000, 4000])
    grid, random = (release(X, 2, features=kind).modes() for kind in ("grid", "random"))
    assert len(grid.positions) == len(random.positions) == 2
    assert random.positions == pytest.approx(grid.positions, abs=0.15)


def flat(n, d):
    return lambda rng: rng.uniform(-8, 8, (n, d))


NO_MODE = {
    "no records": (5, lambda _: np.zeros((0, 5))),
    "uniform": (5, flat(5000, 5)),
    "uniform, few columns and much data": (4, flat(30_000, 4)),
    "a slope": (5, lambda rng: np.column_stack([16 * np.sqrt(rng.random(10_000)) - 8, flat(10_000, 4)(rng)])),
    "a corner": (4, lambda rng: -8 + rng.exponential(2, (10_000, 4))),
}


@pytest.mark.parametrize("case", NO_MODE)
def test_nothing_where_there_is_no_mode(case):
    d, draw = NO_MODE[case]
    for seed in range(2):
        found = release(draw(np.random.default_rng(seed)), d, seed=seed, features=1024).modes()
        assert found.positions.shape == (0, d)
        assert found.message.startswith("nothing stands above the fog")


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0, (4, 0.7, 0.7, 0.7, 0.7)], ids=str)
def test_one_cluster_is_one_mode_whatever_its_side_lobes(scale):
    X = clusters(np.zeros((1, 5)), [60_000], scale=np.array(scale))
    found = release(X, 5, features=512).modes()
    assert len(found.positions) == 1
    assert np.abs(found.positions).max() < 0.3


def test_a_light_cluster_beside_a_heavy_one():
    """Its peak is below the side lobes of the other: only the cleared reading shows it."""
    X = clusters(np.array([[-2.0] * 5, [2.0] * 5]), [19_000, 1000])
    density = release(X, 5)
    found = density.modes()
    assert len(found.positions) == 2
    assert found.positions[1] == pytest.approx(np.full(5, 2.0), abs=0.6)
    survey = survey_of(density, make_scale_space(density))
    assert survey.atoms is not None
    assert survey.atoms.weights.sum() == pytest.approx(1, abs=0.05)


def test_what_would_help_counts_records():
    """With the records it asks for, such a group is seen; with a quarter of them it is not."""
    d = 6
    message = release(flat(40, d)(np.random.default_rng(0)), d, seed=1).modes().message
    wanted = float(message.split(", or ")[1].split(" records")[0])
    width = float(message.split("deviations of ")[1].split(",")[0])
    assert "times the epsilon" in message
    rng = np.random.default_rng(0)
    seen = []
    for n in (round(2 * wanted), round(wanted / 4)):
        X = np.concatenate([width * rng.standard_normal((n // 2, d)), flat(n - n // 2, d)(rng)])
        seen.append(len(release(X, d, seed=2).modes().positions))
    assert seen == [1, 0]


# -- samples --------------------------------------------------------------------------------------------------


def test_draws_follow_the_density(three):
    X = three.sample(3000, bandwidth=0.08, random_state=0)
    assert X.shape == (3000, 4)
    assert np.all(np.abs(X) <= 8)
    nearest = np.argmin(np.linalg.norm(X[:, None] - THREE, axis=2), axis=1)
    assert np.bincount(nearest) / 3000 == pytest.approx([0.4, 0.3, 0.3], abs=0.05)
    spread = np.sqrt(1 + (0.08 * 16) ** 2)
    for k, centre in enumerate(THREE):
        assert X[nearest == k].mean(axis=0) == pytest.approx(centre, abs=0.3)
        assert X[nearest == k].std(axis=0) == pytest.approx(np.full(4, spread), rel=0.12)


def test_draws_repeat_with_a_seed(three):
    assert np.array_equal(three.sample(50, random_state=1), three.sample(50, random_state=1))
    assert three.sample(0).shape == (0, 4)


def test_draws_from_even_data_are_even():
    density = release(flat(20_000, 5)(np.random.default_rng(0)), 5, features=1024)
    X = density.sample(2000, random_state=0)
    assert X.mean(axis=0) == pytest.approx(np.zeros(5), abs=0.6)
    assert X.std(axis=0) == pytest.approx(np.full(5, 16 / np.sqrt(12)), rel=0.15)
