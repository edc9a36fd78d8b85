"""What the methods of a density return shows itself as the estimator of the same reading does."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from fogline import (
    DensitySketch,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
)
from fogline.density.modes.tables import no_modes
from fogline.testing import seeded_noise

pytest.importorskip("pandas")

READINGS = {
    "modes": (lambda density: density.modes(), lambda density: PrivateModes().read(density)),
    "clusters": (
        lambda density: density.clusters(2),
        lambda density: PrivateModeClustering(n_clusters=2).read(density),
    ),
    "branches": (
        lambda density: density.branches(y="stay"),
        lambda density: PrivateModalRegression().read(density, y="stay"),
    ),
    "fit": (
        lambda density: density.fit("gamma", column="stay", level=0.9),
        lambda density: PrivateHellinger(family="gamma", confidence=0.9).read(density, "stay"),
    ),
    "mixture": (
        lambda density: density.mixture(2, sigma_min=0.5),
        lambda density: PrivateGaussianMixture(n_components=2, sigma_min=0.5).read(density),
    ),
}


@pytest.fixture(scope="module")
def density():
    rng = np.random.default_rng(0)
    old = rng.random(4000) < 0.5
    age = np.where(old, rng.normal(70, 6, 4000), rng.normal(30, 5, 4000))
    stay = np.where(old, rng.gamma(9.0, 3.0, 4000), rng.gamma(9.0, 0.8, 4000))
    with seeded_noise(1):
        sketch = DensitySketch([(0, 125), (0, 80)], features="leaves").update(np.column_stack([age, stay]))
        found = sketch.release(epsilon=2.0)
    found.columns = ("age", "stay")
    return found


@pytest.mark.parametrize("name", READINGS)
def test_reading_says_what_its_estimator_says(density, name):
    read, estimator = (make(density) for make in READINGS[name])
    told = estimator.to_json()
    assert read.to_json() == told
    assert json.loads(told)["format"].startswith("fogline-")
    assert str(read.summary()) == str(estimator.summary())
    assert read.to_frame().equals(estimator.to_frame())
    assert "stay" in read._repr_html_()


def test_readings_have_a_page_and_a_picture(density, tmp_path):
    assert "<!doctype html>" in density.modes().report(tmp_path / "page.html").read_text(encoding="utf-8")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = density.modes().plot()
    assert axes.get_xlabel() == "age"
    pyplot.close("all")


@pytest.mark.parametrize("name", READINGS)
def test_reading_prints_as_a_few_lines_with_names(density, name):
    read = READINGS[name][0](density)
    assert repr(read) == str(read)
    assert "stay" in str(read)
    assert "array(" not in str(read)
    assert len(str(read).splitlines()) <= 12


def test_the_same_reading_is_made_once(density):
    assert density.modes() is density.modes()
    assert density.modes(level=0.01) is not density.modes()
    assert density.fit("gamma", column="stay") is density.fit("gamma", column="stay")
    assert density.branches(y="stay") is not density.branches(y="age")


def test_reading_survives_a_pickle_with_its_density(density):
    copied = pickle.loads(pickle.dumps(density.modes()))
    assert copied.to_json() == density.modes().to_json()


def test_table_without_a_density_says_so():
    table = no_modes(2, "nothing was counted")
    assert str(table) == "nothing was counted"
    assert table._repr_html_() is None
    with pytest.raises(TypeError, match="was not read from a density"):
        table.summary()


def test_least_width_per_column_is_shown_too(density):
    read = density.mixture(2, sigma_min=[1.0, 0.5])
    assert "age" in str(read.summary())


def test_point_masses_and_walls_are_told():
    stay = np.where(np.arange(6000) % 3 == 0, 0.0, np.random.default_rng(2).exponential(4.0, 6000))
    found = DensitySketch([(0, 60)], features="leaves").update(stay[:, None]).release(epsilon=2.0)
    found.columns = ("stay",)
    assert "point mass at stay = 0: 3" in str(found.modes())
