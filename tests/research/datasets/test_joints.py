"""Made pairs and triples, and the histograms of DPBench."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import fogline_research.datasets.joints as module
from fogline_research.datasets.columns import generator
from fogline_research.datasets.dpbench import HistogramSet, dpbench_sets
from fogline_research.datasets.joints import JOINTS, Joint

NAMES = [joint.name for joint in JOINTS]


def test_there_are_enough_and_both_halves_have_every_difficulty():
    assert len(set(NAMES)) == len(JOINTS)
    assert sum(joint.d == 2 for joint in JOINTS) >= 12
    assert sum(joint.d == 3 for joint in JOINTS) >= 6
    counts = Counter((joint.d, joint.kind, joint.half) for joint in JOINTS)
    for d, kind in {(joint.d, joint.kind) for joint in JOINTS}:
        assert counts[d, kind, "tune"] == counts[d, kind, "judge"] >= 1, kind


@pytest.mark.parametrize("joint", JOINTS, ids=NAMES)
def test_records_are_in_the_box_and_on_the_lattice(joint):
    rows = joint.draw(3000, generator("test", joint.name))
    low, high = np.array(joint.bounds).T
    assert rows.shape == (3000, joint.d)
    assert ((rows >= low) & (rows <= high)).all()
    for axis, step in enumerate(joint.steps or ()):
        if step is not None:
            places = (rows[:, axis] - low[axis]) / step
            np.testing.assert_allclose(places, np.round(places), atol=1e-9)
    np.testing.assert_array_equal(rows, joint.draw(3000, generator("test", joint.name)))


def test_a_population_is_counted_kept_and_counted_anew_for_another_sampler(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGLINE_POPULATIONS", str(tmp_path))
    monkeypatch.setattr(module, "POPULATION_DRAWS", 100_000)
    monkeypatch.setattr(module, "_CHUNK", 50_000)

    def made(power):
        return Joint("made", "flat", "tune", ((0.0, 1.0),) * 2, lambda n, rng: rng.random((n, 2)) ** power)

    masses = made(1.0).cell_masses(2)
    np.testing.assert_allclose(masses, np.full((2, 2), 0.25), atol=0.01)
    (kept,) = tmp_path.iterdir()
    np.save(kept, np.array([[1.0, 0.0], [0.0, 0.0]]))  # what is in the file is what is read
    assert made(1.0).cell_masses(2)[0, 0] == 1.0
    side = 0.5**0.5  # P(u^2 < 1/2)
    np.testing.assert_allclose(made(2.0).cell_masses(2), np.outer(*[[side, 1 - side]] * 2), atol=0.01)


def test_a_sampler_that_misses_its_box_is_named():
    with pytest.raises(RuntimeError, match="'astray' hardly meets"):
        Joint("astray", "x", "tune", ((0.0, 1.0),), lambda n, rng: np.full((n, 1), 2.0)).draw(1, generator(0))


def test_histograms_fall_to_the_halves_in_turn(tmp_path, monkeypatch):
    path = tmp_path / "histograms.npz"
    np.savez(path, b_2d=np.array([[3, 1], [0, 0]]), a=np.array([1, 0, 2, 1]), c=np.array([5, 5]))
    monkeypatch.setenv("FOGLINE_DPBENCH", str(path))
    sets = dpbench_sets()
    assert [(one.name, one.half, one.d) for one in sets] == [("a", "tune", 1), ("b_2d", "judge", 2), ("c", "tune", 1)]
    np.testing.assert_allclose(sets[0].cell_masses(2), [0.25, 0.75])
    rows = sets[1].draw(4000, generator("histograms"))
    assert rows[:, 0].max() < 1.0  # the second row of cells is empty
    assert np.mean(rows[:, 1] < 1.0) == pytest.approx(0.75, abs=0.03)
    assert dpbench_sets(tmp_path / "nothing.npz") == ()
    with pytest.raises(ValueError, match="divide"):
        HistogramSet("x", "tune", np.full(4, 0.25)).cell_masses(3)
