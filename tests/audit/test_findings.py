"""What an adversary found in fogline. An xfail is an open fault: mend it, and take the mark away."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fogline import DensitySketch, PrivateModes
from fogline.audit import Pair, canary_pairs, replay
from fogline.density.spec import SketchSpec
from fogline.mechanisms.randomness import use_provider
from fogline.queries import fourier_sums as histogram
from fogline.queries.fourier_sums import lattice_sensitivity, lattice_sums
from fogline.testing import SeededProvider

BOX = [(0.0, 10.0)]
MODES = PrivateModes(epsilon=1.0, delta=1e-5, bounds=BOX, n_modes=1)


@pytest.mark.parametrize("bandwidth", [0.4, 0.5])
def test_replacing_a_record_by_a_missing_one_at_wide_bandwidths(bandwidth):
    """Once declared as sqrt(2 - 2 kappa), below 1 for a wide kernel; but a record may become a missing one."""

    def release(data):
        sketch = DensitySketch(BOX, bandwidths=[bandwidth]).update(data)
        return sketch.release(epsilon=1.0, delta=1e-5, neighbours="replace")

    report = replay(release, canary_pairs(BOX, neighbours="replace", n=20, block=None))
    assert report.passed, str(report)


@pytest.mark.parametrize("line", ['"5.5,1', '5.5,"1', '"'])
def test_one_line_of_a_file_moves_one_record(line, tmp_path):
    pytest.importorskip("duckdb")
    lines = [f"{i % 10}.5,1" for i in range(200)]
    paths = []
    for name, content in (("plain", lines), ("odd", [*lines[:50], line, *lines[50:]])):
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("\n".join(["x,y", *content, ""]))
    estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=BOX * 2, n_modes=1)
    report = replay(estimator, [Pair("one more line", *paths)])
    assert report.passed, str(report)


def test_no_rows_leave_the_same_pickle_without_numba(monkeypatch):
    monkeypatch.setattr(histogram, "_counter_known", True)
    monkeypatch.setattr(histogram, "_counter", None)
    report = replay(MODES, canary_pairs(BOX, neighbours="add-remove", n=10, block=None)[:1])
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("D", "D_prime"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0], [1.0]]),
        ([[[1.0]]], [[[1.0]], [1.0]]),
        ([[]], [[], [1.0]]),
        ([1.0], [1.0, np.timedelta64(5, "s")]),
        ([[1.0]], [[1.0], np.array(1.0)]),
        ([1.0], [1.0, np.ma.masked]),
    ],
    ids=["too wide", "too deep", "no columns", "timedelta", "0-d array", "masked"],
)
def test_broken_rows_of_a_list_are_not_news(D, D_prime):
    report = replay(MODES, [Pair("a broken row", D, D_prime)])
    assert report.passed, str(report)


@pytest.mark.parametrize("kind", ["frame", "masked"])
def test_casts_do_not_warn(kind):
    pandas = pytest.importorskip("pandas")
    huge = np.array([np.longdouble("1e4000")])
    if np.isinf(huge[0]):
        pytest.skip("long doubles are doubles here")
    wrap = (lambda x: pandas.DataFrame({"a": x})) if kind == "frame" else np.ma.masked_array
    report = replay(MODES, [Pair("overflow", wrap(np.ones(1, np.longdouble)), wrap(huge), "replace")])
    assert not [failure for failure in report.failures if "warnings" in failure], str(report)


def test_seeded_noise_is_never_certified():
    with pytest.raises(TypeError, match="certified"):
        SeededProvider(7, certified=True)
    boasting = SeededProvider(7)
    object.__setattr__(boasting, "certified", True)
    object.__setattr__(boasting, "reason", "")
    for provider in (SeededProvider(7), boasting):
        with use_provider(provider):
            guarantee = MODES.fit(np.zeros((3, 1))).guarantee_
        assert not guarantee.certified
        assert guarantee.reason


def test_merging_does_not_make_a_second_release_free():
    sketch = DensitySketch(BOX).update([[1.0]])
    copy = sketch.merge(DensitySketch(BOX))
    released = 0
    for one in (sketch, copy):
        try:
            one.release(epsilon=1.0, delta=1e-5)
            released += 1
        except RuntimeError:
            pass
    assert released == 1


def test_a_sketch_does_not_merge_with_itself():
    def release(data):
        sketch = DensitySketch(BOX).update(data)
        return sketch.merge(sketch).release(epsilon=1.0, delta=1e-5)

    with pytest.raises(ValueError, match="itself"):
        release(np.ones((1, 1)))


# -- searched, and not found ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "bandwidths"),
    [([(-3, 10)], "auto"), ([(0, 1)], [0.03]), ([(0, 1), (-5, 90)], [0.15]), ([(0, 1)] * 3, [0.3, 0.4])],
)
def test_no_pair_of_cells_exceeds_the_sensitivity(bounds, bandwidths):
    """All cells on an axis through the box, and random ones: norms and distances, in integers."""
    spec = SketchSpec.plan(bounds, bandwidths)
    rng = np.random.default_rng(0)
    cells = [tuple(rng.integers(spec.cells)) for _ in range(25)]
    cells += [
        tuple(c * corner for c, corner in zip(np.array(spec.cells) - 1, bits, strict=True))
        for bits in np.ndindex(*[2] * spec.d)
    ]
    vectors = []
    for cell in cells:
        table = np.zeros(spec.cells, dtype=np.int64)
        table[cell] = 1
        vectors.append([int(v) for v in lattice_sums(table, spec)])
    one, two = (lattice_sensitivity(spec, relation, 1) for relation in ("add-remove", "replace"))
    norms = [math.isqrt(sum(v * v for v in vector)) for vector in vectors]
    apart = [
        math.isqrt(sum((a - b) ** 2 for a, b in zip(u, v, strict=True)))
        for i, u in enumerate(vectors)
        for v in vectors[:i]
    ]
    assert max(norms) + 1 <= one
    assert max(apart) + 1 <= two


@pytest.mark.parametrize("size", [0, 10, 10**6, 2**40, 2**61])
def test_the_floor_to_the_lattice_on_any_ground(size):
    """One record more on random, huge histograms: the rounding stays within its square root."""
    spec = SketchSpec.plan(BOX, [0.05])
    rng = np.random.default_rng(size % 1000)
    declared = lattice_sensitivity(spec, "add-remove", 1)
    for _ in range(20):
        table = rng.multinomial(min(size, 2**62), np.full(spec.cells[0], 1 / spec.cells[0])).astype(np.int64)
        more = table.copy()
        more[rng.integers(spec.cells[0])] += 1
        move = sum(
            (int(a) - int(b)) ** 2 for a, b in zip(lattice_sums(more, spec), lattice_sums(table, spec), strict=True)
        )
        assert move <= declared**2
