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
    private_strata,
)
from fogline.density.modes.tables import no_modes
from fogline.density.posterior.posterior import example_posterior
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


def test_posterior_of_a_release_says_what_the_release_says(density):
    assert density.posterior.to_frame().equals(density.to_frame())
    assert str(density.posterior.summary()) == str(density.summary())


def test_conditional_density_tells_its_condition_its_records_and_its_column(density):
    old = density.given(age=(60, 90))
    lines = str(old.summary()).splitlines()
    assert lines[0].strip() == "Density of stay, given age from 60 to 90"
    assert "with age from 60 to 90, of 40" in lines[2]
    told = old.to_frame().set_index("quantity")
    assert 1700 < told.loc["count", "value"] < 2100
    assert told.loc["mean", ["privacy", "sampling", "smoothing"]].pow(2).sum() == pytest.approx(
        told.loc["mean", "standard_error"] ** 2
    )
    document = json.loads(old.to_json())
    assert document["given"] == [["age", 60.0, 90.0]]
    assert document["columns"] == ["stay"]
    assert document["command"].endswith(".given(age=(60, 90))")
    assert float(old.count.value) == pytest.approx(float(density.ask("count where age in 60:90").estimate.value))


def test_conditions_and_marginals_follow_each_other(density):
    found = density.given(age=(60, None)).given(stay=(10, 40)).marginal("stay")
    document = json.loads(found.to_json())
    assert document["given"] == [["age", 60.0, None], ["stay", 10.0, 40.0]]
    assert "Density of stay, given age from 60 and stay from 10 to 40" in str(found.summary())
    assert document["command"].endswith(".given(age=(60, None)).given(stay=(10, 40)).marginal('stay')")
    assert "stay" in found._repr_html_()


def test_marginal_has_a_page_and_a_picture_with_its_unit(density, tmp_path):
    named = density.labelled(units=("years", ""))
    page = named.marginal("age").report(tmp_path / "age.html").read_text(encoding="utf-8")
    assert "age (years)" in page
    assert "half of the population is below" in page
    page = named.given(stay=(0, 20)).report(tmp_path / "short.html").read_text(encoding="utf-8")
    assert "half of those with stay from 0 to 20 is below" in page
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert named.given(stay=(0, 20)).plot().get_xlabel() == "age (years)"
    pyplot.close("all")


def test_posterior_without_a_density_says_so():
    alone = example_posterior().marginal("stay")
    assert alone._repr_html_() is None
    with pytest.raises(TypeError, match="was not read from a density"):
        alone.to_frame()


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"age": (130, 150)}, "age from 130 to 150 lies outside the released bounds 0 to 125"),
        ({"stay": (None, -1)}, "stay below -1 lies outside the released bounds 0 to 80"),
    ],
)
def test_nothing_is_told_of_a_condition_outside_the_bounds(density, ranges, words):
    with pytest.raises(ValueError, match=words):
        density.given(**ranges)


@pytest.fixture(scope="module")
def change():
    rng = np.random.default_rng(3)
    made = []
    with seeded_noise(5):
        for scale in (2.0, 2.6):
            visits = np.column_stack([rng.integers(20, 60, 4000), rng.gamma(3.0, scale, 4000)])
            sketch = DensitySketch([(0, 100), (0, 60)], features="leaves", steps=[1, None]).update(visits)
            made.append(sketch.release(epsilon=2.0))
            made[-1].columns = ("age", "stay")
    first, second = (one.labelled(units=("years", "days")) for one in made)
    return first.compare(second, names=("2024", "<2025>"), simulations=99)


def test_comparison_tells_distances_differences_and_a_verdict(change):
    found = change
    frame = found.to_frame().set_index(["column", "quantity"])
    mean = frame.loc[("stay", "mean, <2025> less 2024")]
    assert mean["low"] < 1.8 < mean["high"]
    assert np.hypot(np.hypot(mean["privacy"], mean["sampling"]), mean["smoothing"]) == pytest.approx(
        mean["standard_error"]
    )
    assert mean["unit"] == "days"
    assert frame.loc[("", "p-value of equal shapes"), "value"] == found.p_value
    assert frame.loc[("stay", "values moved by"), "value"] == found.wasserstein.value[1]
    median = frame.loc[("age", "median, <2025> less 2024")]
    assert {median["value"], median["low"], median["high"]} <= set(range(-5, 6))
    words = str(found.summary())
    assert "The shapes differ (p = 0.010), most clearly around age = " in " ".join(words.split())
    assert "stay moved by" in repr(found)


def test_comparison_has_a_document_a_page_and_a_picture(change, tmp_path):
    found = change
    document = json.loads(found.to_json())
    assert document["distances"][0]["privacy"] is None
    assert len(document["guarantees"]) == 2
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;2025&gt; less 2024" in page
    assert "<2025>" not in page
    assert "age (years)" in page
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert [one.get_xlabel() for one in found.plot()] == ["age (years)", "stay (days)"]
    pyplot.close("all")


def test_names_of_a_comparison_are_two_and_different(density):
    with pytest.raises(ValueError, match="two different names"):
        density.compare(density, names=("a", "a"))


def test_comparison_of_strata_shows_itself_too():
    rng = np.random.default_rng(4)
    stay = rng.gamma(3.0, 2.0, 6000)
    by = np.where(np.arange(6000) % 2 == 0, "north", "south")
    strata = private_strata(stay[:, None], by, categories=["north", "south"], bounds=[(0, 60)], epsilon=2.0, delta=1e-6)
    found = strata.compare("north", "south")
    assert "north and south" in str(found.summary()).splitlines()[0]
    assert found.to_frame()["value"][0] == found.p_value
