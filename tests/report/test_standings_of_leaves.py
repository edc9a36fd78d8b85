"""A mode that was found stands above the fogline of its own page, also where its hill leans on a wall."""

import fogline
from fogline.datasets import hospital_visits
from fogline.report.modes import standings
from fogline.testing import seeded_noise


def test_a_mode_near_a_wall_stands_as_its_hill_was_tested():
    with seeded_noise(4):
        shape = fogline.release(
            hospital_visits(10_000).X[:, :2], columns=["age", "stay"], bounds=[(0, 125), (0, 60)], epsilon=1.0
        )
    found = shape.modes()
    seen = standings(shape, found.positions, level=0.05)
    assert found.positions[:, 0].min() < 20 < 50 < found.positions[:, 0].max()
    assert [standing.ratio > 1 for standing in seen.modes] == [True] * len(found.positions)
