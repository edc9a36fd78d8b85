"""Simulated data have the shape they claim; the table has the bounds it claims."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

from fogline.datasets.simulated import (
    GAUSSIAN_MIXTURE4,
    OWN_MIXTURES,
    T_MIXTURE5,
    Mixture,
    gaussian_mixture4,
    mixture_modes,
    own_mixture,
    t_mixture5,
    uniform_box,
)
from fogline.datasets.tables import hospital_visits, load_faithful

pytestmark = pytest.mark.quick

MIXTURES = {"gaussian4": GAUSSIAN_MIXTURE4, "t5": T_MIXTURE5} | {f"own{d}": m for d, m in OWN_MIXTURES.items()}


@pytest.fixture(params=MIXTURES, name="mixture")
def _mixture(request):
    return MIXTURES[request.param]


def test_density_is_scipys(mixture):
    d = mixture.centers.shape[1]
    points = np.random.default_rng(0).normal(scale=4.0, size=(20, d))
    expected = np.zeros(20)
    for weight, centre, scale, dof in zip(mixture.weights, mixture.centers, mixture.scales, mixture.dof, strict=True):
        part = (
            multivariate_t(centre, np.diag(scale**2), df=dof)
            if np.isfinite(dof)
            else multivariate_normal(centre, np.diag(scale**2))
        )
        expected += weight * part.pdf(points)
    np.testing.assert_allclose(mixture.pdf(points), expected, rtol=1e-10)


def test_derivatives_agree_with_differences(mixture):
    d, step = mixture.centers.shape[1], 1e-5
    for x in mixture.centers + 0.3 * mixture.scales:
        _, gradient, hessian = mixture.derivatives(x)
        for axis, e in enumerate(step * np.eye(d)):
            up, down = mixture.derivatives(x + e), mixture.derivatives(x - e)
            assert gradient[axis] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5, abs=1e-8)
            np.testing.assert_allclose(hessian[axis], (up[1] - down[1]) / (2 * step), rtol=1e-4, atol=1e-6)


def test_modes_are_maxima(mixture):
    modes = mixture_modes(mixture)
    assert len(modes) == len(mixture.centers)
    for mode in modes:
        height, gradient, hessian = mixture.derivatives(mode)
        assert np.abs(gradient * mixture.scales.min()).max() < 1e-9 * height
        assert np.linalg.eigvalsh(hessian).max() < 0
    heights = mixture.pdf(modes)
    assert (np.diff(heights) <= 1e-12).all()


def test_own_mixtures_are_uneven_and_close():
    for mixture in OWN_MIXTURES.values():
        assert len(set(mixture.weights.tolist())) == len(mixture.weights)
        gaps = np.linalg.norm(mixture.centers[:, None] - mixture.centers, axis=2)
        nearest = gaps[gaps > 0].min()
        assert nearest < 4.0 * mixture.scales.max(axis=1).mean()
        shift = np.abs(np.sort(mixture_modes(mixture), axis=0) - np.sort(mixture.centers, axis=0)).max()
        assert shift > 1e-3, "close components must pull their modes off the centres"


def test_paper_modes_are_near_the_centres_but_not_at_them():
    modes = np.abs(mixture_modes(GAUSSIAN_MIXTURE4))
    assert (modes < 3.0).all()
    assert (modes > 3.0 - 1e-6).all()


def test_samples_follow_their_mixture(mixture):
    X, labels = mixture.sample(20_000, np.random.default_rng(1))
    shares = np.bincount(labels, minlength=len(mixture.weights)) / 20_000
    np.testing.assert_allclose(shares, mixture.weights, atol=0.015)
    for j, centre in enumerate(mixture.centers):
        np.testing.assert_allclose(np.median(X[labels == j], axis=0), centre, atol=0.1)


@pytest.mark.parametrize(
    ("draw", "shape"),
    [
        (lambda **k: gaussian_mixture4(50, **k), (50, 2)),
        (lambda **k: t_mixture5(50, **k), (50, 2)),
        (lambda **k: own_mixture(50, 1, **k), (50, 1)),
        (lambda **k: own_mixture(50, 2, **k), (50, 2)),
        (lambda **k: own_mixture(50, 3, **k), (50, 3)),
        (lambda **k: uniform_box(50, 4, **k), (50, 4)),
    ],
)
def test_draws_repeat_with_a_seed(draw, shape):
    first, second, other = draw(random_state=3), draw(random_state=3), draw(random_state=4)
    assert first.X.shape == shape
    assert first.labels.shape == (50,)
    assert first.modes.shape[1] == first.centers.shape[1] == shape[1]
    np.testing.assert_array_equal(first.X, second.X)
    assert (first.X != other.X).any()


def test_a_seed_shared_with_an_algorithm_does_not_tie_it_to_the_components():
    labels = gaussian_mixture4(2000, random_state=0).labels
    drawn = np.random.default_rng(0).random(2000) < 0.2
    assert len(set(labels[drawn])) == 4


def test_samples_do_not_share_their_modes():
    first = gaussian_mixture4(1, random_state=0)
    first.modes[:] = 0.0
    assert (gaussian_mixture4(1, random_state=0).modes != 0.0).all()


def test_uniform_box_stays_inside_and_has_no_mode():
    sample = uniform_box(1000, 2, low=-1.0, high=3.0, random_state=0)
    assert sample.X.min() >= -1.0
    assert sample.X.max() <= 3.0
    assert sample.modes.shape == (0, 2)
    assert uniform_box(0, 3).X.shape == (0, 3)


def test_bad_input_names_the_parameter():
    with pytest.raises(ValueError, match="n must be at least 0"):
        gaussian_mixture4(-1)
    with pytest.raises(TypeError, match="n must be a whole number"):
        t_mixture5(2.5)
    with pytest.raises(ValueError, match="d must be one of"):
        own_mixture(10, 4)
    with pytest.raises(ValueError, match="d must be at least 1"):
        uniform_box(10, 0)
    with pytest.raises(ValueError, match="low must lie below high"):
        uniform_box(10, 1, low=1.0, high=1.0)
    with pytest.raises(ValueError, match="weights must be positive and sum to 1"):
        Mixture.of([0.5, 0.6], [[0.0], [1.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match="same number of components"):
        Mixture.of([1.0], [[0.0], [1.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match="scales and dof must be positive"):
        Mixture.of([1.0], [[0.0]], [0.0])


def test_faithful_is_the_published_table():
    table = load_faithful()
    assert table.X.shape == (272, 2)
    np.testing.assert_array_equal(table.X[0], [3.6, 79.0])
    assert table.X[:, 0].sum() == pytest.approx(948.677)
    assert table.X[:, 1].sum() == 19284
    assert table.path.is_file()
    assert table.path.with_suffix(".md").is_file()


def test_faithful_bounds_hold_the_data_and_are_not_its_range():
    table = load_faithful()
    for column, (low, high), step in zip(table.X.T, table.bounds, table.steps, strict=True):
        assert low < column.min()
        assert column.max() < high
        if step is not None:
            np.testing.assert_array_equal(column, np.round(column / step) * step)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.columns = ()


def test_hospital_visits_lie_in_their_bounds_and_repeat():
    visits = hospital_visits(3000, random_state=4)
    low, high = np.array(list(visits.bounds.values())).T
    assert ((low <= visits.X) & (high >= visits.X)).mean() > 0.99
    assert np.array_equal(visits.X, hospital_visits(3000, random_state=4).X)
    assert not np.array_equal(visits.X, hospital_visits(3000, random_state=5).X)
    assert 0.1 < (visits.records["stay"] == 0).mean() < 0.3
    assert (visits.records["score"] == 20).mean() > 0.05
    assert hospital_visits(0).X.shape == (0, 4)


def test_hospital_visits_are_written_as_a_table(tmp_path):
    from fogline import table

    visits = hospital_visits(200)
    path = visits.to_csv(tmp_path / "visits.csv")
    assert path.read_text().splitlines()[0] == "person,sex,age,stay,cost,score"
    assert len(path.read_text().splitlines()) == 201
    assert table(path, ["age", "stay"], unit="person").columns == ("age", "stay")


def test_hospital_visits_refuse_a_negative_number():
    with pytest.raises(ValueError, match="n must be"):
        hospital_visits(-1)
