"""Peaks and prominences, against a definition that floods the field level by level."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from fogline.density.modes.peaks import find_peaks, join_basins

SHAPES = {1: (40,), 2: (9, 12), 3: (4, 5, 5)}


def fields_of(shape, count, *, seed, smooth=1.0):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((count, *shape))
    return ndimage.gaussian_filter(noise, sigma=[0] + [smooth] * len(shape), mode="nearest")


def neighbours_of(cell, shape, *, diagonal):
    for offset in product((-1, 0, 1), repeat=len(shape)):
        steps = sum(map(abs, offset))
        if steps == 0 or (steps > 1 and not diagonal):
            continue
        other = tuple(c + o for c, o in zip(cell, offset, strict=True))
        if all(0 <= c < n for c, n in zip(other, shape, strict=True)):
            yield other


def local_maxima(field):
    return [
        cell
        for cell in np.ndindex(field.shape)
        if all(field[cell] > field[other] for other in neighbours_of(cell, field.shape, diagonal=True))
    ]


def on_edge(cell, shape):
    return any(c in (0, n - 1) for c, n in zip(cell, shape, strict=True))


def climb(field):
    """Peak of each cell: step to the highest neighbour until none is higher."""

    def top(cell):
        best = max([cell, *neighbours_of(cell, field.shape, diagonal=True)], key=lambda c: field[c])
        return cell if best == cell else top(best)

    return {cell: top(cell) for cell in np.ndindex(field.shape)}


def flooded_prominence(field):
    """For each peak, its height above the level at which its land joins a higher peak or the sea outside.

    The land above a level is joined basin by basin over shared faces; at every pass level the components are
    made anew, from nothing: slow, and independent of any union-find.
    """
    basin = climb(field)
    peaks = local_maxima(field)
    levels = sorted(set(field.ravel().tolist()), reverse=True)
    found = {}
    for level in levels:
        ground = {cell for cell in np.ndindex(field.shape) if field[cell] >= level}
        joined = {peak: {peak} for peak in peaks}
        outside = set()
        for cell in ground:
            for other in neighbours_of(cell, field.shape, diagonal=False):
                if other in ground and basin[cell] != basin[other]:
                    joined[basin[cell]].add(basin[other])
            if on_edge(cell, field.shape):
                outside.add(basin[cell])
        for peak in peaks:
            if peak in found:
                continue
            seen, front = {peak}, [peak]
            while front:
                front = [p for q in front for p in joined[q] - seen if not seen.add(p)]
            if any(field[p] > field[peak] for p in seen) or seen & outside:
                found[peak] = field[peak] - level
    return found


@pytest.mark.parametrize("d", SHAPES)
@pytest.mark.parametrize("smooth", [0.0, 1.0, 2.0])
def test_peaks_and_prominences_equal_the_definition(d, smooth):
    fields = fields_of(SHAPES[d], 3, seed=10 * d, smooth=smooth)
    peaks = find_peaks(fields)
    for s, field in enumerate(fields):
        mine = peaks.field == s
        cells = [tuple(map(int, c)) for c in zip(*np.unravel_index(peaks.cell[mine], field.shape), strict=True)]
        assert sorted(cells) == sorted(local_maxima(field))
        reference = flooded_prominence(field)
        np.testing.assert_allclose(peaks.prominence[mine], [reference[c] for c in cells], rtol=1e-12)
        np.testing.assert_array_equal(peaks.height[mine], [field[c] for c in cells])
        np.testing.assert_array_equal(peaks.interior[mine], [not on_edge(c, field.shape) for c in cells])


@pytest.mark.parametrize("d", SHAPES)
def test_basins_are_where_climbing_ends(d):
    fields = fields_of(SHAPES[d], 3, seed=d)
    peaks = find_peaks(fields)
    assert peaks.basin.shape == fields.shape
    for s, field in enumerate(fields):
        for cell, top in climb(field).items():
            number = peaks.basin[(s, *cell)]
            assert peaks.field[number] == s
            assert np.unravel_index(peaks.cell[number], field.shape) == top


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=25, unique=True))
def test_prominence_on_a_line_is_the_schoolbook_one(values):
    field = np.array(values, dtype=float)
    peaks = find_peaks(field[None])
    for cell, prominence, height in zip(peaks.cell, peaks.prominence, peaks.height, strict=True):
        passes = []
        for way in (field[cell:], field[: cell + 1][::-1]):
            higher = np.flatnonzero(way > height)
            end = higher[0] if len(higher) else len(way)  # the way ends at higher ground or at the edge
            passes.append(way[:end].min())
        assert prominence == height - max(passes)


@pytest.mark.parametrize("d", SHAPES)
def test_a_batch_equals_one_by_one(d):
    fields = fields_of(SHAPES[d], 5, seed=77)
    batch = find_peaks(fields)
    for s in range(5):
        single = find_peaks(fields[s : s + 1])
        mine = batch.field == s
        for name in ("cell", "height", "prominence", "interior"):
            np.testing.assert_array_equal(getattr(batch, name)[mine], getattr(single, name))


def test_a_single_hill_stands_above_its_edge():
    x = np.linspace(-3, 3, 31)
    hill = np.exp(-(x[:, None] ** 2) - x**2)
    peaks = find_peaks(hill[None])
    assert len(peaks.cell) == 1
    assert peaks.interior.all()
    assert peaks.prominence[0] == pytest.approx(1 - hill[0, 15])


def test_a_slope_to_the_edge_has_no_interior_peak():
    slope = np.add.outer(np.arange(6.0), np.arange(5.0))
    peaks = find_peaks(slope[None])
    assert peaks.interior.tolist() == [False]
    assert peaks.prominence.tolist() == [0.0]


def test_ground_without_any_slope_is_no_trouble():
    peaks = find_peaks(np.zeros((2, 4, 4)))
    assert np.all(peaks.prominence <= 0)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_joined_basins_keep_marked_peaks_apart(d):
    for seed in range(5):
        (field,) = fields_of(SHAPES[d], 1, seed=seed)
        peaks = find_peaks(field[None])
        marked = np.random.default_rng(seed).random(len(peaks.height)) < 0.4
        root = join_basins(field, peaks.basin[0], marked)
        assert len(np.unique(root[marked])) == marked.sum()
        assert len(np.unique(root)) == max(1, marked.sum())
        above = join_basins(field, peaks.basin[0], marked, np.inf)
        assert len(np.unique(above)) == len(marked)


def test_a_bump_joins_the_peak_over_its_highest_pass():
    field = np.array([0.0, 9.0, 1.0, 4.0, 3.0, 5.0, 0.0])
    root = join_basins(field, find_peaks(field[None]).basin[0], np.array([True, False, True]))
    assert root[1] == root[2] != root[0]
