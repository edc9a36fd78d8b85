"""The release: once, after every check, and never by accident."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

from fogline import DensitySketch, PrivateDensity
from fogline.accounting import analytic_gaussian, zcdp
from fogline.queries.fourier_sums import lattice_sensitivity
from fogline.releases.density_sketch import AlreadyReleased
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick

BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def sketch_of(n=500, *, bounds=((0, 10),), seed=0, **options):
    rng = np.random.default_rng(seed)
    sketch = DensitySketch(bounds, **options)
    return sketch.update(rng.normal(5, 1, size=(n, len(bounds))))


def same_state(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.state(), b.state(), strict=True))


def test_a_second_release_is_refused():
    sketch = sketch_of()
    with seeded_noise(1):
        sketch.release(**BUDGET)
        with pytest.raises(AlreadyReleased, match="ledger"):
            sketch.release(**BUDGET)
        with pytest.raises(AlreadyReleased):
            sketch.update([[1.0]]).release(**BUDGET)


@pytest.mark.parametrize("released_first", [True, False])
def test_a_merge_with_a_released_sketch_is_released(released_first):
    spent, fresh = sketch_of(seed=1), sketch_of(seed=2)
    with seeded_noise(1):
        spent.release(**BUDGET)
        merged = spent.merge(fresh) if released_first else fresh.merge(spent)
        with pytest.raises(AlreadyReleased):
            merged.release(**BUDGET)
        assert isinstance(fresh.release(**BUDGET), PrivateDensity)


@pytest.mark.parametrize("released", [True, False])
def test_a_file_remembers_whether_its_sketch_was_released(tmp_path, released):
    sketch = sketch_of(bounds=[(0, 10), (-5, 15)], steps=[None, 1])
    with seeded_noise(1):
        if released:
            sketch.release(**BUDGET)
        sketch.save(tmp_path / "hospital.npz")
        again = DensitySketch.load(tmp_path / "hospital.npz")
        assert again.spec == sketch.spec
        assert same_state(again, sketch)
        if released:
            with pytest.raises(AlreadyReleased):
                again.release(**BUDGET)
        else:
            assert again.release(**BUDGET).count > 1


def test_a_loaded_sketch_releases_what_the_original_would(tmp_path):
    sketch_of().save(tmp_path / "s.npz")
    with seeded_noise(4):
        mine = sketch_of().release(**BUDGET)
    with seeded_noise(4):
        theirs = DensitySketch.load(tmp_path / "s.npz").release(**BUDGET)
    assert mine == theirs


def test_only_a_sketch_is_loaded(tmp_path):
    with seeded_noise(1):
        sketch_of().release(**BUDGET).save(tmp_path / "density.npz")
    with pytest.raises(ValueError, match="fogline-sketch-2"):
        DensitySketch.load(tmp_path / "density.npz")
    header = np.array(json.dumps({"format": "fogline-sketch-999"}))
    np.savez(tmp_path / "future.npz", header=header)
    with pytest.raises(ValueError, match="fogline-sketch-999"):
        DensitySketch.load(tmp_path / "future.npz")
    np.savez(tmp_path / "objects.npz", header=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        DensitySketch.load(tmp_path / "objects.npz")


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy])
def test_secret_counts_are_not_pickled_or_copied(copier):
    with pytest.raises(TypeError, match="secret"):
        copier(sketch_of())


def test_repr_tells_nothing_of_the_records():
    assert repr(sketch_of(n=3)) == repr(sketch_of(n=700, seed=5))


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("bounds", {"bounds": [(0, 11)]}),
        ("scales", {"bounds": [(0, 10)], "bandwidths": 0.1}),
        ("steps", {"bounds": [(0, 10)], "steps": 0.01}),
    ],
)
def test_merging_unlike_sketches_names_the_field(field, options):
    with pytest.raises(ValueError, match=field):
        sketch_of().merge(DensitySketch(**options))


def test_merge_is_exact_and_changes_neither_part():
    rng = np.random.default_rng(3)
    X = rng.normal(5, 2, size=(1000, 2))
    bounds = [(0, 10), (0, 10)]
    whole = DensitySketch(bounds).update(X)
    parts = [DensitySketch(bounds).update(part) for part in np.array_split(rng.permutation(X), [10, 11, 400])]
    left = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    right = parts[3].merge(parts[1].merge(parts[2].merge(parts[0])))
    assert same_state(left, whole)
    assert same_state(right, whole)
    assert parts[0].state()[1].sum() <= 10
    with seeded_noise(8):
        released = whole.release(**BUDGET)
    with seeded_noise(8):
        assert left.release(**BUDGET) == released


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"epsilon": True}, TypeError, "epsilon"),
        ({"delta": None}, TypeError, "delta"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": math.nan}, ValueError, "delta"),
        ({"neighbours": "swap"}, ValueError, "neighbours"),
        ({"neighbours": None}, ValueError, "neighbours"),
        ({"max_contributions": 0}, ValueError, "max_contributions"),
        ({"max_contributions": 1.5}, TypeError, "max_contributions"),
        ({"ledger": object()}, TypeError, "ledger"),
    ],
)
def test_a_bad_request_names_its_parameter_and_releases_nothing(wrong, error, name):
    sketch = sketch_of()
    with pytest.raises(error, match=name):
        sketch.release(**(BUDGET | wrong))
    with seeded_noise(0):
        assert isinstance(sketch.release(**BUDGET), PrivateDensity)


def test_epsilon_and_delta_have_no_default():
    with pytest.raises(TypeError, match="epsilon"):
        sketch_of().release(delta=1e-5)
    with pytest.raises(TypeError, match="delta"):
        sketch_of().release(epsilon=1.0)


@pytest.mark.parametrize("features", ["fourier", None, 2.5, True, [1024], 0])
def test_features_are_of_a_known_kind(features):
    with pytest.raises(ValueError, match="features"):
        DensitySketch([(0, 1)], features=features)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    "rows",
    [[], [[math.nan] * 3], [[math.inf] * 3, [-math.inf] * 3], [[1e300] * 3]],
    ids=["none", "missing", "infinite", "outside"],
)
def test_no_usable_record_takes_the_usual_path(d, rows):
    X = np.array(rows, dtype=float).reshape(-1, 3)[:, :d]
    sketch = DensitySketch([(0, 1)] * d, bandwidths=0.15).update(X)
    with seeded_noise(2):
        density = sketch.release(**BUDGET)
    with seeded_noise(2):
        empty = DensitySketch([(0, 1)] * d, bandwidths=0.15).release(**BUDGET)
    assert density == empty
    assert density.count >= 1
    assert np.isfinite(density.pdf(np.full((1, d), 0.5))).all()


@pytest.mark.parametrize("X", [np.zeros((3, 2)), np.array([["a"]]), "text", None, np.zeros((2, 2, 2))])
def test_records_of_the_wrong_shape_or_type_are_refused_and_not_counted(X):
    sketch = DensitySketch([(0, 1)])
    with pytest.raises((TypeError, ValueError), match="X"):
        sketch.update(X)
    assert sketch.state()[1].sum() == 0


def test_the_system_noise_is_certified_and_a_seed_is_not():
    certified = sketch_of(bandwidths=0.2).release(**BUDGET)
    assert certified.guarantee.certified
    assert certified.guarantee.reason == ""
    assert certified.guarantee.proof == "density-sketch"
    with seeded_noise(1):
        seeded = sketch_of(bandwidths=0.2).release(**BUDGET)
    assert not seeded.guarantee.certified
    assert "seed" in seeded.guarantee.reason


def test_system_noise_is_fresh():
    a, b = (sketch_of(bandwidths=0.2).release(**BUDGET) for _ in range(2))
    assert a != b


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("contributions", [1, 4])
def test_guarantee_and_noise_say_what_was_asked(neighbours, contributions):
    sketch = sketch_of()
    with seeded_noise(1):
        density = sketch.release(**BUDGET, neighbours=neighbours, max_contributions=contributions)
    guarantee = density.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    assert guarantee.neighbours == neighbours
    assert guarantee.max_contributions == contributions
    assert guarantee.enforced is (contributions == 1)
    assert guarantee.gaussian
    assert analytic_gaussian.epsilon_of(guarantee.rho, guarantee.delta) <= 1.0 < zcdp.epsilon_of(guarantee.rho, 1e-5)
    least = lattice_sensitivity(sketch.spec, neighbours, contributions) / math.sqrt(2 * guarantee.rho)
    assert least <= density.noise_scale * 2**22 <= least * (1 + 1e-9)


def test_noise_does_not_depend_on_the_number_of_records():
    with seeded_noise(1):
        assert sketch_of(n=3).release(**BUDGET).noise_scale == sketch_of(n=900).release(**BUDGET).noise_scale


def test_counts_an_engine_made_are_added():
    X = np.random.default_rng(2).normal(5, 1, size=(300, 1))
    counted = DensitySketch([(0, 10)]).update(X)
    fed = DensitySketch([(0, 10)]).update(X[:100]).add_cells(*DensitySketch([(0, 10)]).update(X[100:]).state())
    assert same_state(counted, fed)


# -- what a reviewer broke ------------------------------------------------------------------------------------


def test_declared_counts_cannot_wrap():
    sketch = DensitySketch([(0.0, 1.0)])
    for counts in (np.array([2**63 - 1]), np.array([2**63 + 5], dtype=np.uint64), np.array([2**41, 1])):
        with pytest.raises(ValueError, match="counts"):
            sketch.add_cells(np.arange(len(counts)), counts)
    assert sketch.state()[0].size == 0


def test_only_one_of_many_threads_releases():
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    sketch = DensitySketch([(0.0, 1.0)]).update([[0.5]])
    barrier = Barrier(4)

    def release(_):
        barrier.wait()
        try:
            sketch.release(epsilon=1.0, delta=1e-6)
        except AlreadyReleased:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(release, range(4))) == 1


def test_a_release_without_a_ledger_is_not_mended_by_one(tmp_path):
    from fogline.ledger import Ledger

    X = np.full((50, 1), 0.5)
    with Ledger.create(tmp_path / "a", dataset="x", epsilon=2.0, delta=1e-6, high_water=tmp_path / "marks") as ledger:
        uncounted = DensitySketch([(0.0, 1.0)]).update(X)
        uncounted.release(epsilon=1.0, delta=1e-6)
        with pytest.raises(AlreadyReleased):
            uncounted.release(epsilon=1.0, delta=1e-6, ledger=ledger)
        counted = DensitySketch([(0.0, 1.0)]).update(X)
        first = counted.release(epsilon=0.5, delta=1e-6, ledger=ledger)
        again = counted.release(epsilon=0.5, delta=1e-6, ledger=ledger)
        assert first == again
        assert first.receipt is not None
        with pytest.raises(AlreadyReleased):
            counted.release(epsilon=0.5, delta=1e-6)


def test_more_cells_than_integers_hold_are_refused():
    with pytest.raises(ValueError, match="too small"):
        DensitySketch([(0, 2**22 - 1), (0, 2**21 - 1), (0, 2**21 - 1)], bandwidths=[0.3], steps=[1, 1, 1])
