"""Who may release a sketch: forks, merges and counts made elsewhere do not get round the rule of one release."""

import multiprocessing
import warnings

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.releases import density_sketch as record_counts
from fogline.releases.density_sketch import AlreadyReleased
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def sketch_of(seed=0):
    return DensitySketch([(0, 10)]).update(np.random.default_rng(seed).normal(5, 1, (200, 1)))


def in_child(act) -> str:
    """Fork, act, and return what became of it."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run():
        try:
            act()
            there.send("released")
        except Exception as error:
            there.send(f"{type(error).__name__}: {error}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where threads are around
        child = context.Process(target=run)
        child.start()
    answer = here.recv()
    child.join()
    return answer


@pytest.mark.parametrize("order", ["mine first", "theirs first"])
def test_a_merge_does_not_get_round_the_fork_check(order):
    sketch = sketch_of()

    def merged():
        empty = DensitySketch.of(sketch.spec)
        pair = (sketch, empty) if order == "mine first" else (empty, sketch)
        return pair[0].merge(pair[1]).release(**BUDGET)

    assert in_child(lambda: sketch.release(**BUDGET)).startswith("AlreadyReleased")
    assert in_child(merged).startswith("AlreadyReleased")
    with seeded_noise(0):
        sketch.release(**BUDGET)


def test_a_child_may_merge_and_release_what_it_counted_itself():
    def own():
        with seeded_noise(0):
            sketch_of(1).merge(sketch_of(2)).release(**BUDGET)

    assert in_child(own) == "released"


def test_a_merge_adds_up_the_parts_that_were_taken_on_trust(monkeypatch):
    monkeypatch.setattr(record_counts, "MOST_PARTS", 3)
    key, count = np.array([0]), np.array([1])
    two = [DensitySketch([(0, 10)]).add_cells(key, count).add_cells(key, count) for _ in range(2)]
    one = DensitySketch([(0, 10)]).add_cells(key, count)
    assert int(two[0].merge(one).table().sum()) == 3
    with pytest.raises(ValueError, match="3 parts"):
        two[0].merge(two[1])
    with pytest.raises(ValueError, match="3 parts"):
        two[0].merge(one).add_cells(key, count)


def test_a_sketch_of_another_process_is_named_as_such():
    sketch = sketch_of()
    sketch._process += 1
    with pytest.raises(AlreadyReleased, match="another process"):
        sketch_of(1).merge(sketch)
