"""Gaussian mixtures read from one released density."""

from __future__ import annotations

import numpy as np
import pytest

from fogline import DensitySketch, PrivateGaussianMixture
from fogline.density.components.leaf_cells import LeafCells
from fogline.density.components.leaf_mixture import Gaussians, _moved, parameter_scores
from fogline.testing import seeded_noise


def released(X, bounds, *, epsilon=1.0, seed=0, **more):
    with seeded_noise(seed):
        return DensitySketch(bounds, features="leaves").update(X).release(epsilon=epsilon, **more)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(20, 2, (n * 6 // 10, 1)), rng.normal(35, 4, (n * 4 // 10, 1))])


@pytest.fixture(scope="module")
def read():
    return released(draw(5000, 1), [(0, 60)])


def test_weights_means_and_spreads(read):
    found = PrivateGaussianMixture(n_components=2).read(read)
    assert found.weights_ == pytest.approx([0.6, 0.4], abs=0.03)
    assert found.means_[:, 0] == pytest.approx([20, 35], abs=0.4)
    assert np.sqrt(found.covariances_[:, 0, 0]) == pytest.approx([2, 4], abs=0.4)
    assert found.sample(3, random_state=0).shape == (3, 1)
    assert found.density_ is read


def test_the_number_is_found(read):
    assert len(PrivateGaussianMixture().read(read).weights_) == 2
    assert read.mixture().criteria[2] < read.mixture().criteria[1]


def test_errors_cover_and_grow_with_noise():
    inside, errors = [], []
    for seed in range(12):
        found = released(draw(1500, seed), [(0, 60)], seed=seed).mixture(2)
        inside.append(np.abs(found.means[:, 0] - [20, 35]) < 1.96 * found.mean_errors[:, 0])
        inside.append(np.abs(found.weights - [0.6, 0.4]) < 1.96 * found.weight_errors)
        inside.append(np.abs(found.covariances[:, 0, 0] - [4, 16]) < 1.96 * found.covariance_errors[:, 0, 0])
        errors.append(found.mean_errors[0, 0])
    assert np.mean(inside) > 0.8
    noisy = released(draw(1500, 0), [(0, 60)], epsilon=0.1).mixture(1)
    clear = released(draw(1500, 0), [(0, 60)], epsilon=10.0).mixture(1)
    assert noisy.mean_errors[0, 0] > 2 * clear.mean_errors[0, 0]


def test_few_records_are_published_as_one_gaussian():
    rng = np.random.default_rng(8)
    X = rng.normal((5, 5), (1, 2), (200, 2))
    found = PrivateGaussianMixture(n_components=4).read(released(X, [(0, 10), (0, 10)], epsilon=0.3))
    assert len(found.weights_) < 4
    assert "cannot tell" in found.message_
    held_out = rng.normal((5, 5), (1, 2), (2000, 2))
    truth = -np.log(2 * np.pi * 2) - 1
    assert found.score_samples(held_out).mean() > truth - 1.0


def test_slopes_are_those_of_the_log_density(read):
    cells = LeafCells.of(read.posterior)
    model = Gaussians(np.array([0.5, 0.4]), np.array([[-0.5], [0.8]]), np.array([[[0.3]], [[0.5]]]), 0.1, -1.0)
    slopes = parameter_scores(model, cells.places[:50], cells.within[:50])
    for i, step in enumerate(1e-6 * np.eye(slopes.shape[1])):
        ahead, behind = (_moved(model, s * step).log_density(cells.places[:50], cells.within[:50]) for s in (1, -1))
        assert slopes[:, i] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)


def test_cells_keep_mass_and_moments_of_the_leaves(read):
    cells, posterior = LeafCells.of(read.posterior), read.posterior
    x, p = posterior.axes[0].centres, posterior.masses().estimate
    found = cells.centre + cells.scale * cells.places
    assert cells.mass.sum() == pytest.approx(1.0)
    assert cells.mass @ found[:, 0] == pytest.approx(p @ x, abs=1e-3)
    second = cells.mass @ (cells.places[:, 0] ** 2 + cells.within[:, 0, 0])
    assert second == pytest.approx(1.0, abs=1e-3)


def test_a_least_width_is_kept(read):
    found = PrivateGaussianMixture(n_components=2, sigma_min=3.0).read(read)
    assert np.sqrt(found.covariances_[:, 0, 0]).min() > 2.99


@pytest.mark.parametrize("rows", [np.empty((0, 1)), np.full((400, 1), 7.0)])
def test_nothing_and_one_value(rows):
    found = released(rows, [(0, 10)]).mixture(2)
    assert np.isfinite(found.means).all()
    assert np.isfinite(found.mean_errors).all()


def test_wrong_input_is_named(read):
    with pytest.raises(TypeError, match="density must be a PrivateDensity"):
        PrivateGaussianMixture().read(3)
    with pytest.raises(ValueError, match="n_components"):
        read.mixture(0)


def test_the_page_of_a_reading_names_the_bounds(read, tmp_path):
    from fogline.report import write_report

    path = tmp_path / "mixture.html"
    write_report(PrivateGaussianMixture(n_components=2).read(read), path)
    assert "0 to 60" in path.read_text(encoding="utf-8")


def test_components_of_small_data_do_not_lose_to_one_gaussian():
    """Decided on released numbers: what more components gain must be worth the noise of their parameters."""
    rng = np.random.default_rng(3)
    laws = {"lognormal": lambda n: rng.lognormal(0.8, 0.5, (n, 1)), "uniform": lambda n: rng.uniform(1, 8, (n, 1))}
    lost = []
    for seed in range(2):
        for law in laws.values():
            density, fresh = released(law(200), [(0, 10)], epsilon=0.3, seed=seed), law(3000)
            gap = density.mixture(1).log_density(fresh).mean() - density.mixture(3).log_density(fresh).mean()
            lost.append(float(gap))
    assert max(lost) < 0.2
    assert np.mean(lost) < 0.05


def test_the_mean_of_one_value_is_not_known_better_than_its_leaf():
    with seeded_noise(2):
        density = (
            DensitySketch([(0, 10)], features="leaves").update(np.repeat([2.0, 7.0], 400)[:, None]).release(epsilon=1.0)
        )
    found = density.mixture(2)
    off = np.abs(np.sort(found.means[:, 0]) - [2.0, 7.0])
    assert np.all(off <= 1.96 * found.mean_errors[np.argsort(found.means[:, 0]), 0])
