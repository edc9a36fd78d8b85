"""Strata: one vector, one noise, the right sensitivity under both relations, weights on a lattice."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch
from fogline.density.random_spec import plan_spec
from fogline.density.strata import Strata
from fogline.queries.fourier_sums import lattice_sensitivity, strata_sensitivity
from fogline.queries.strata import StrataCounts, weight_parts
from fogline.releases.strata import release_strata
from fogline.releases.terms import ReleaseTerms
from fogline.testing import seeded_noise

LINE = plan_spec([(0, 10)], [0.1])
SPECS = {"line": LINE, "four axes": plan_spec([(0, 10)] * 4, features=32)}
TERMS = {r: ReleaseTerms.checked(1.0, 1e-6, r, 1) for r in ("add-remove", "replace")}


def vector(spec, rows, strata, weights=None, *, size=3, bound=None):
    counts = StrataCounts(spec, size, bound)
    rows = np.asarray(rows, dtype=float).reshape(-1, spec.d)
    counts.add(rows, np.asarray(strata, dtype=np.int64), None if weights is None else np.asarray(weights, dtype=float))
    return [int(v) for v in counts.vector()]


def distance(one, two):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, two, strict=True)))


records = st.lists(st.tuples(st.integers(-1, 2), st.floats(-1, 11), st.floats(-1, 12)), min_size=1, max_size=8)


@pytest.mark.parametrize(("kind", "weighted"), [*((kind, False) for kind in SPECS), ("line", True)])
@settings(max_examples=30, deadline=None)
@given(crowd=records, person=records, other=records)
def test_a_person_moves_the_strata_no_further_than_declared(kind, weighted, crowd, person, other):
    spec = SPECS[kind]
    c = max(len(person), len(other))
    person, other = [(both + c * [(-1, 0.0, 0.0)])[:c] for both in (person, other)]

    def made(entries):
        rows = [[value] * spec.d for _, value, _ in entries]
        weights = [w for _, _, w in entries] if weighted else None
        return vector(spec, rows, [s for s, _, _ in entries], weights, bound=10.0 if weighted else None)

    base, one, two = made(crowd), made(crowd + person), made(crowd + other)
    assert distance(base, one) <= strata_sensitivity(spec, 3, "add-remove", c)
    assert distance(one, two) <= strata_sensitivity(spec, 3, "replace", c)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_the_bound_is_tight(spec):
    empty, first, second = (
        vector(spec, [], []),
        vector(spec, [[5.0] * spec.d], [0]),
        vector(spec, [[5.0] * spec.d], [2]),
    )
    assert distance(empty, first) / strata_sensitivity(spec, 3, "add-remove", 1) > 0.999
    # random features are nearly opposite at worst, which is farther than two strata are
    tight = 0.999 if spec is LINE else 0.7
    assert distance(first, second) / strata_sensitivity(spec, 3, "replace", 1) > tight


def test_one_stratum_is_a_sketch_and_two_cost_as_much_as_one():
    for spec in SPECS.values():
        for relation in TERMS:
            assert strata_sensitivity(spec, 1, relation, 2) == lattice_sensitivity(spec, relation, 2)
        one, two = lattice_sensitivity(spec, "add-remove", 1), strata_sensitivity(spec, 7, "add-remove", 1)
        assert two == one
    # under replace two strata pay: the noise of one, times the root of two
    ratio = strata_sensitivity(LINE, 2, "replace", 1) / strata_sensitivity(LINE, 2, "add-remove", 1)
    assert ratio >= math.sqrt(2)


def test_strata_are_the_sketches_of_their_records():
    rng = np.random.default_rng(0)
    rows, strata = rng.uniform(-1, 11, (500, 1)), rng.integers(-1, 3, 500)
    with seeded_noise(1):
        found = release_strata(LINE, "abc", TERMS["add-remove"], lambda: np.array(vector(LINE, rows, strata)))
    exact = vector(LINE, rows, strata)
    for i, name in enumerate("abc"):
        part = exact[i * LINE.n_coefficients : (i + 1) * LINE.n_coefficients]
        alone = DensitySketch.of(LINE).update(rows[strata == i])
        with seeded_noise(1):
            single = alone.release(epsilon=1.0, delta=1e-6)
        assert found[name].noise_scale == single.noise_scale
        shift = np.abs(np.asarray(part) - found[name]._released)
        assert shift.max() < 8 * found._scale
        assert abs(found[name].count - (strata == i).sum()) < 60


@settings(max_examples=50, deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(1e-6, 1e6))
def test_weights_are_parts_of_the_bound(weight, bound):
    (parts,) = weight_parts(np.array([weight]), bound).tolist()
    assert 0 <= parts <= 1024
    if weight >= bound:
        assert parts == 1024
    elif weight > 0:
        assert parts == math.floor(weight / bound * 1024)
    else:
        assert parts == 0


def test_weights_count_as_shares_of_a_record():
    rng = np.random.default_rng(1)
    rows = rng.normal(5, 1, (4000, 1))
    weights = np.where(rows[:, 0] > 5, 4.0, 1.0)
    counts = StrataCounts(LINE, 1, 4.0)
    counts.add(rows, np.zeros(len(rows), dtype=np.int64), weights)
    found = release_strata(LINE, ["all"], TERMS["add-remove"], counts.vector, weight_bound=4.0)
    assert abs(found["all"].count - weights.sum() / 4) < 60
    assert float(found["all"].pdf([[6.0]])[0] / found["all"].pdf([[4.0]])[0]) == pytest.approx(4.0, rel=0.5)
    with pytest.raises(ValueError, match="weight_bound"):
        StrataCounts(SPECS["four axes"], 2, 1.0)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_files_and_pickles(tmp_path, spec):
    with seeded_noise(2):
        found = release_strata(spec, ["f", "m"], TERMS["replace"], lambda: np.array(vector(spec, [], [], size=2)))
    found.save(tmp_path / "strata.npz")
    assert Strata.load(tmp_path / "strata.npz") == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(pickle.loads(pickle.dumps(found))) == hash(found)
    assert found != "strata"
    assert len(found) == 2
    assert "f: about" in repr(found)
    with pytest.raises(ValueError, match="fogline-strata-1"):
        Strata.from_bytes(b"")
    with pytest.raises(ValueError, match="fogline-density-1"):
        Strata.from_bytes(found["f"].to_bytes())


def test_too_many_strata():
    with pytest.raises(ValueError, match="categories"):
        release_strata(LINE, [str(i) for i in range(200_000)], TERMS["add-remove"], lambda: np.zeros(0))
