"""Clusters read from one released density."""

from __future__ import annotations

import numpy as np
import pytest

import fogline
from fogline import DensitySketch, PrivateModeClustering
from fogline.accounting.cautions import PrivacyWarning
from fogline.testing import seeded_noise


def released(X, bounds, *, epsilon=1.0, seed=0, features="leaves", **more):
    with seeded_noise(seed):
        return DensitySketch(bounds, features=features).update(X).release(epsilon=epsilon, **more)


@pytest.fixture(scope="module")
def three():
    """Three groups in columns of different widths, skewed and unequal."""
    rng = np.random.default_rng(3)
    parts = [
        np.column_stack([rng.lognormal(1, 0.4, 1200), rng.normal(3000, 300, 1200)]),
        np.column_stack([12 + rng.gamma(3, 1, 900), 4500 + rng.gamma(2, 300, 900)]),
        np.column_stack([rng.normal(18, 1.5, 600), rng.normal(1200, 250, 600)]),
    ]
    return np.concatenate(parts), np.repeat([0, 1, 2], [1200, 900, 600])


@pytest.fixture(scope="module")
def read(three):
    return released(three[0], [(0, 30), (0, 9000)])


def agreement(found, groups):
    from sklearn.metrics import adjusted_rand_score

    return adjusted_rand_score(groups, found)


def test_number_and_labels_of_skewed_groups_in_columns_of_different_widths(three, read):
    X, groups = three
    found = PrivateModeClustering().read(read)
    assert len(found.weights_) == 3
    assert agreement(found.predict(X), groups) > 0.95
    assert found.weights_.sum() == pytest.approx(1.0)
    assert found.sizes_.sum() == pytest.approx(found.count_)


def test_sizes_and_centres_are_those_of_the_records_within_their_errors(three, read):
    X, _ = three
    found = read.clusters()
    label = found.predict(X)
    for k in range(3):
        inside = X[label == k]
        assert abs(len(inside) / len(X) - found.shares[k]) < 3 * found.share_errors[k]
        assert np.all(np.abs(inside.mean(axis=0) - found.centres[k]) < 4 * found.centre_errors[k])


def test_a_given_number_is_met_and_the_reading_is_deterministic(read):
    from fogline import PrivateDensity

    two = read.clusters(2)
    again = PrivateDensity.from_bytes(read.to_bytes()).clusters(2)
    assert len(two.shares) == 2
    assert np.array_equal(two.labels, again.labels)
    assert np.array_equal(two.centres, again.centres)
    assert len(read.clusters(4).shares) == 4


def test_no_centre_between_two_hills():
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(10, 2, (700, 1)), rng.normal(50, 4, (500, 1))])
    for seed in range(3):
        found = released(X, [(0, 60)], epsilon=0.5, seed=seed).clusters()
        assert len(found.shares) == 2
        assert np.all(np.abs(np.sort(found.centres[:, 0]) - [10, 50]) < 2)


def test_even_records_have_no_clusters_and_say_so():
    X = np.random.default_rng(5).uniform(0, 1, (3000, 1))
    found = PrivateModeClustering().read(released(X, [(0, 1)]))
    assert len(found.weights_) == 0
    assert "an even spread" in found.message_
    assert (found.predict(X[:2]) == -1).all()


def test_one_skewed_group_is_one_cluster():
    X = np.random.default_rng(6).gamma(2, 3, (5000, 1))
    assert len(released(X, [(0, 60)]).clusters().shares) == 1


def test_ages_that_end_in_0_are_one_cluster():
    rng = np.random.default_rng(6)
    age = rng.normal(50, 15, 5000)
    X = np.where(rng.random(5000) < 0.5, 10 * np.round(age / 10), age)[:, None]
    assert len(released(X, [(0, 110)]).clusters().shares) == 1


def test_a_release_of_fourier_sums_can_be_read():
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(10, 2, (3000, 1)), rng.normal(40, 4, (2000, 1))])
    found = released(X, [(0, 60)], features="grid", delta=1e-6).clusters()
    assert len(found.shares) == 2
    assert np.all(np.abs(np.sort(found.centres[:, 0]) - [10, 40]) < 1)


@pytest.mark.parametrize("rows", [np.empty((0, 1)), np.full((1, 1), 3.0), np.full((500, 1), 3.0)])
def test_nothing_one_record_and_one_value(rows):
    density = released(rows, [(0, 10)])
    for k in (None, 1, 2):
        found = density.clusters(k)
        assert np.isfinite(found.centres).all()
        assert np.isfinite(found.share_errors).all()
        assert np.all((found.centres >= 0) & (found.centres <= 10))


def test_a_missing_value_has_no_cluster_and_a_wrong_input_is_named(read):
    found = PrivateModeClustering(n_clusters=2).read(read)
    assert found.predict([[np.nan, 1.0]]).tolist() == [-1]
    assert found.score_samples([[3.0, 3000.0], [29.0, 100.0]])[0] > found.score_samples([[29.0, 100.0]])[0]
    with pytest.raises(TypeError, match="density must be a PrivateDensity"):
        PrivateModeClustering().read([1, 2])
    with pytest.raises(ValueError, match="n_clusters"):
        read.clusters(0)


def test_the_page_of_a_reading(read, tmp_path):
    from fogline.report import write_report

    path = tmp_path / "clusters.html"
    write_report(PrivateModeClustering().read(read), path)
    assert "cluster" in path.read_text(encoding="utf-8")


def test_a_column_of_two_values_beside_another_is_two_groups():
    """Its values are all that the column has: what is left without them is noise, in the empty middle."""
    rng = np.random.default_rng(12)
    rows = np.column_stack([rng.integers(0, 2, 3000), rng.normal(5, 1, 3000)])
    with seeded_noise(7):
        found = DensitySketch([(0, 1), (0, 10)], features="leaves").update(rows).release(epsilon=1.0).clusters()
    assert np.sort(found.centres[:, 0]) == pytest.approx([0, 1], abs=0.05)
    assert found.shares == pytest.approx([0.5, 0.5], abs=0.05)


def test_a_centre_in_the_bend_of_a_cluster_is_no_typical_record():
    """Along y = x^2 the centre of mass is at (0, 3), where the density is 0."""
    rng = np.random.default_rng([7, 0])
    x = rng.uniform(-3, 3, 3000)
    bent = np.c_[x, x * x + rng.normal(0, 0.5, 3000)]
    with seeded_noise(0):
        shape = fogline.release(bent, columns=["x", "y"], bounds=[(-4, 4), (-3, 13)], epsilon=1.0)
    found = shape.clusters()
    assert found.hollow.tolist() == [True]
    assert found.message == "the centre of cluster 1 is a centre of mass: few records lie near it"
    page = shape_page(shape)
    assert "few records lie, as in a bend or a ring" in page
    assert "typical record" not in page


def test_the_centre_of_a_round_cluster_is_a_typical_record():
    rng = np.random.default_rng(0)
    with seeded_noise(0):
        shape = fogline.release(rng.normal(5, 1, (3000, 2)), columns=["x", "y"], bounds=[(0, 10)] * 2, epsilon=1.0)
    assert shape.clusters().hollow.tolist() == [False]
    assert shape.clusters().message == ""
    assert "is a typical record of its cluster" in shape_page(shape)


def shape_page(shape):
    from fogline.report import find, render_report

    return " ".join(render_report(find(PrivateModeClustering().read(shape))).split())


def towns_and_a_road(n):
    """Two towns, densities 199 and 212, and a road of density 114 between them."""
    rng = np.random.default_rng([8, 1])
    part, along, offset = rng.choice(3, n, p=[0.5, 0.3, 0.2]), rng.random((n, 1)), rng.normal(size=(n, 2))
    first, second = np.array([9.15, 48.78]), np.array([9.45, 48.6])
    road = first + along * (second - first) + 0.002 * offset
    return np.choose(part[:, None], [first + 0.02 * offset, second + 0.015 * offset, road])


@pytest.mark.parametrize("n", [3000, 30_000])
def test_two_towns_and_a_road_are_two_clusters_at_every_number_of_records(n):
    """There is no dip between a town and the road: what counts is the lowest place on the whole way."""
    found = released(towns_and_a_road(n), [(9.0, 9.6), (48.5, 48.9)]).clusters()
    assert len(found.shares) == 2
    towns = np.array([[9.15, 48.78], [9.45, 48.6]])
    apart = np.linalg.norm(found.peaks[:, None] - towns[None], axis=2)
    assert sorted(apart.argmin(axis=1).tolist()) == [0, 1]
    assert np.all(apart.min(axis=1) < 0.02)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_level_curve_is_one_cluster(seed):
    """Components side by side dip between each other where the records do not."""
    rng = np.random.default_rng([7, seed])
    x = rng.uniform(-3, 3, 3000)
    rows = np.column_stack([x, x**2 + rng.normal(0, 0.5, 3000)])
    assert len(released(rows, [(-4, 4), (-3, 13)], seed=seed).clusters().shares) == 1


def test_more_epsilon_does_not_hide_the_groups_of_a_small_table():
    """Buckets of one record or none had draws that gave nearly all records to the narrow group."""
    rng = np.random.default_rng(5)
    wide = rng.multivariate_normal((6, 5.2), [[1.2, 0.6], [0.6, 0.6]], 110)
    X = np.concatenate([rng.normal((2, 3), (0.3, 0.25), (60, 2)), wide])
    with pytest.warns(PrivacyWarning, match="epsilon = 30"):
        found = released(X, [(0, 10), (0, 8)], epsilon=30.0).clusters()
    assert len(found.shares) == 2
    assert found.share_errors.max() < 0.1
    assert abs(found.shares[1] - 60 / 170) < 0.1
