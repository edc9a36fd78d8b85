"""No number has more digits than are known: point masses are told by their cells, tiny errors as such."""

from __future__ import annotations

import numpy as np
import pytest

import fogline
from fogline.density.modes.tables import PointMass
from fogline.report.clusters import cluster_content, cluster_table, find_clusters
from fogline.report.density import density_content, find_density
from fogline.report.modes import beside_words
from fogline.testing import seeded_noise


@pytest.fixture(scope="module")
def heaps():
    """A release of which a tenth is exactly 50, a fifth 0 and a seventh 100."""
    rng = np.random.default_rng([1, 2])
    r, x = rng.random(3000), 100 * rng.beta(5.2, 2.8, 3000)
    x = np.where(r < 0.2, 0, np.where(r < 0.3, 50, np.where(r < 0.45, 100, x)))
    with seeded_noise(2):
        return fogline.release(x[:, None], columns=["x"], bounds=[(0, 100)], epsilon=1.0)


def test_a_point_mass_is_told_by_its_cell(heaps):
    said = str(heaps.modes())
    assert "point mass at x = 50 to 50.025: " in said
    assert "x somewhere in 50 to 50.025 (10%)" in said
    assert "point mass at x = 0: " in said
    assert "is at x = 50 to 50.025 alone" in str(heaps.summary())
    page = density_content(find_density(heaps))
    assert [atom["at"] for atom in page["atoms"]] == ["0", "50 to 50.025", "100"]
    found = fogline.PrivateModes().read(heaps)
    assert any(words.startswith("Point mass: x = 50 to 50.025, ") for words in beside_words(found, ["x"]))


@pytest.mark.quick
def test_values_on_a_public_lattice_and_at_walls_are_known():
    mass = PointMass((7.0, None), (6.5, 0.0), (7.5, 1.0), 0.1, 0.01)
    assert mass.words(["age", "cost"], (1.0, None)) == "age = 7"
    assert mass.words(["age", "cost"]) == "age = 6.5 to 7.5"
    assert PointMass((-0.4,), (-0.5,), (-0.3,), 0.1, 0.01).words(["x"]) == "x = -0.5 to -0.3"


def test_the_centre_of_a_point_mass_is_known_to_its_cell(heaps):
    """That the records of a cluster are one value somewhere in a cell is part of the error of its centre."""
    found = heaps.clusters()
    near = np.abs(found.centres[:, 0] - 50) < 1
    assert near.sum() == 1
    assert np.abs(found.centres[near, 0] - 50) < 1.96 * found.centre_errors[near, 0]
    assert np.all(found.centre_errors[:, 0] > 0.2 * 100 / 4096)
    assert "e-0" not in str(found)


def test_errors_of_centres_have_sensible_digits(heaps):
    """Four decimals of a range of 100 are as much as any leaf says."""
    from fogline.estimators import PrivateModeClustering

    findings = find_clusters(PrivateModeClustering().read(heaps))
    told = [row[1] for row in cluster_table(findings).rows]
    told += [" ± ".join(pair) for row in cluster_content(findings)["clusters"] for pair in row["where"]]
    decimals = [len(part.partition(".")[2]) for words in told for part in words.split(" ± ")]
    assert max(decimals) <= 4
    assert "−0.0" not in str(heaps.clusters().summary())
