r"""Threads: peaks at neighbouring places linked into branches, and local polynomial fits along them.

Links are made nearest first, and never so that a branch would have two peaks at one place: where two branches cross,
one goes on and the other ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Threads", "by_length", "link", "local_fit"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SHRINKAGE = 1e-3
"""Ridge of a local fit, relative to its weights: a branch of few places gets a slope of zero."""


@dataclass(frozen=True)
class Threads:
    """Which branch each peak belongs to."""

    member: IntArray
    count: int

    def only(self, kept: NDArray[np.bool_]) -> Threads:
        """Branches of some of the peaks."""
        names, member = np.unique(self.member[kept], return_inverse=True)
        return Threads(member.astype(np.int64), len(names))

    def groups(self) -> list[IntArray]:
        """Peaks of each branch."""
        return [np.flatnonzero(self.member == k) for k in range(self.count)]

    def renumbered(self, kept: NDArray[np.bool_]) -> IntArray:
        """Numbers of the branches by how many of their peaks are kept, the longest first."""
        return by_length(self.member, kept)


def by_length(branch: IntArray, kept: NDArray[np.bool_] | None = None) -> IntArray:
    """Numbers of branches by how many places they have (of those that are kept), the longest first."""
    size = np.bincount(branch, kept)
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
    return np.asarray(rank[branch])


def link(shape: tuple[int, ...], place: IntArray, position: FloatArray, reach: float) -> Threads:
    """Link peaks at neighbouring places of a grid of x whose positions differ by at most `reach`."""
    at: dict[tuple[int, ...], list[int]] = {}
    for i, index in enumerate(zip(*np.unravel_index(place, shape), strict=True)):
        at.setdefault(tuple(map(int, index)), []).append(i)
    steps = [s for s in product((0, 1), repeat=len(shape)) if any(s)]
    pairs = []
    for index, here in at.items():
        for step in steps:
            there = at.get(tuple(a + b for a, b in zip(index, step, strict=True)), ())
            pairs += [(abs(position[i] - position[j]), i, j) for i, j in product(here, there)]
    owner = list(range(len(place)))
    held = [{i} for i in range(len(place))]
    taken = [{int(p)} for p in place]
    for distance, i, j in sorted(pairs):
        a, b = owner[i], owner[j]
        if distance <= reach and a != b and not taken[a] & taken[b]:
            for k in held[b]:
                owner[k] = a
            held[a] |= held[b]
            taken[a] |= taken[b]
    names, member = np.unique(owner, return_inverse=True)
    return Threads(member.astype(np.int64), len(names))


@dataclass(frozen=True)
class Fit:
    """A local polynomial fit: values, slopes, and the matrix that makes the values from the data."""

    values: FloatArray
    slopes: FloatArray
    weights: FloatArray


def local_fit(
    x: FloatArray,
    y: FloatArray,
    width: FloatArray,
    degree: int,
    *,
    at: FloatArray | None = None,
    errors: FloatArray | None = None,
) -> Fit:
    """Fit a polynomial of degree 0, 1 or 2 to y over places x of shape (P, dx), with Gaussian weights.

    A fit is made around each of the places `at`, by default those of the data; `errors` are standard errors of y.
    """
    away = (x[None, :, :] - (x if at is None else at)[:, None, :]) / width
    kernel = np.exp(-0.5 * np.sum(away**2, axis=2)) + 1e-12
    if errors is not None:
        kernel = kernel * (np.median(errors) / errors) ** 2
    axes = range(x.shape[1])
    columns = [np.ones(kernel.shape)]
    if degree >= 1:
        columns += [away[:, :, j] for j in axes]
    if degree == 2:
        columns += [away[:, :, j] ** 2 for j in axes]
        columns += [away[:, :, i] * away[:, :, j] for i, j in combinations(axes, 2)]
    design = np.stack(columns, axis=2)
    weighted = design * kernel[:, :, None]
    ridge = SHRINKAGE * kernel.sum(axis=1)[:, None, None] * np.diag(np.append(0.0, np.ones(design.shape[2] - 1)))
    solved = np.linalg.solve(np.einsum("pqi,pqj->pij", weighted, design) + ridge, weighted.transpose(0, 2, 1))
    slopes = (
        np.einsum("piq,q->pi", solved[:, 1 : 1 + x.shape[1]], y) / width
        if degree
        else np.zeros((len(away), x.shape[1]))
    )
    return Fit(solved[:, 0] @ y, slopes, solved[:, 0])
