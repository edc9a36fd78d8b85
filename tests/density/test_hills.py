"""Which components of a mixture are one cluster."""

from __future__ import annotations

import numpy as np
import pytest

from fogline.density.components.hills import _heights, _lowest_passes, _normal, component_hills
from fogline.density.components.leaf_cells import LeafCells
from fogline.density.components.leaf_mixture import Gaussians


def line(density, draws=200, records=20_000):
    """Cells of one column from -10 to 10 with this density, and draws as of so many records."""
    edges = np.linspace(-10, 10, 401)
    places = (edges[1:] + edges[:-1]) / 2
    mass = density(places) / density(places).sum()
    drawn = np.random.default_rng(0).multinomial(records, mass, draws) / records
    width = edges[1] - edges[0]
    return LeafCells(
        mass=mass, draws=drawn, places=places[:, None], within=np.full((400, 1, 1), width**2 / 12),
        volume=np.full(400, width), centre=np.zeros(1), scale=np.ones(1), lower=np.array([-10.0]),
        upper=np.array([10.0]), floor=np.array([width**2 / 12]), count=float(records),
    )  # fmt: skip


def mixture(*parts):
    weights, means, widths = np.array(parts, dtype=float).T
    weights = 0.999 * weights / weights.sum()
    return Gaussians(weights, means[:, None], widths[:, None, None] ** 2, 0.001, -np.log(20.0))


def density_of(model):
    return lambda x: np.exp(model.log_density(np.asarray(x)[:, None]))


TOWNS = mixture((0.4, -6, 0.7), (0.4, 6, 0.7), (0.07, -3, 1.4), (0.07, 0, 1.4), (0.07, 3, 1.4))


def test_hills_that_a_shelf_joins_are_two_and_share_the_shelf():
    found = component_hills(line(density_of(TOWNS)), TOWNS, 0.05)
    assert found.max() == 1
    assert found[0] != found[1]
    assert (found[2], found[4]) == (found[0], found[1])


def test_dips_that_only_the_mixture_has_divide_nothing():
    lumps = mixture((1, -4, 1.15), (1, 0, 1.15), (1, 4, 1.15))  # as they are fitted to a level
    level = line(lambda x: np.where(np.abs(x) < 6, 1.0, 1e-4))
    assert component_hills(level, lumps, 0.05).tolist() == [0, 0, 0]
    assert len(set(component_hills(line(density_of(lumps)), lumps, 0.05).tolist())) == 3


def test_few_records_tell_no_hills_apart():
    close = mixture((1, -1.3, 1), (1, 1.3, 1))
    assert component_hills(line(density_of(close), records=50), close, 0.05).tolist() == [0, 0]


def test_heights_are_those_of_the_density_where_the_mixture_is_right():
    places = np.linspace(-6, 6, 7)[:, None]
    cells = line(density_of(TOWNS))
    assert _heights(cells, TOWNS, places, 0.4, cells.mass) == pytest.approx(density_of(TOWNS)(places[:, 0]), rel=0.02)


def test_the_lowest_pass_of_the_best_chain():
    passes = np.array([[9.0, 1.0, 5.0], [1.0, 8.0, 3.0], [5.0, 3.0, 7.0]])
    first, second = _lowest_passes(passes)
    assert passes[first[0, 1], second[0, 1]] == 3.0
    assert passes[first[0, 2], second[0, 2]] == 5.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_normal_densities_are_those_of_scipy(d):
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(d)
    places, means = rng.normal(size=(3, d)), rng.normal(size=(2, d))
    roots = rng.normal(size=(5, d, d))
    shapes = roots @ np.swapaxes(roots, 1, 2) + 0.1 * np.eye(d)
    found = _normal(places, shapes[:3], means, shapes[3:])
    for i in range(3):
        for j in range(2):
            assert found[i, j] == pytest.approx(multivariate_normal(means[j], shapes[i] + shapes[3 + j]).pdf(places[i]))
