r"""The secret state of several strata: one exact count of cells, or sum of features, for each public category.

A record is counted in the stratum that its label names. With survey weights it counts as
:math:`\lfloor 2^{10} \min(w, W)/W \rfloor` parts of :math:`2^{10}`, where :math:`W` is a public bound: integers, and
never more than a whole record. A record with a label that no stratum has, or with a weight that is missing or not
above zero, contributes nothing. The proof is in ``strata.proof.md`` beside this file.
"""

from __future__ import annotations

import math

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline._validation import records
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import RandomSpec, Spec
from fogline.density.spec import SketchSpec
from fogline.queries.exact_counts import exact_counts
from fogline.queries.fourier_sums import CHUNK_ROWS, cell_keys, lattice_sums

__all__ = ["WEIGHT_PARTS_BITS", "StrataCounts", "weight_parts"]


WEIGHT_PARTS_BITS = 10
"""A weight at its bound is 2**10 parts."""


def weight_parts(weights: FloatArray, bound: float) -> IntArray:
    """Weights as parts of the bound, from 0 to 2**10; a missing or negative one is 0."""
    with np.errstate(all="ignore"):
        parts = np.floor(weights / bound * 2.0**WEIGHT_PARTS_BITS)
        return np.where(parts > 0, np.minimum(parts, 2.0**WEIGHT_PARTS_BITS), 0.0).astype(np.int64)  # NaN is not > 0


class StrataCounts:
    """Exact counts of several strata.

    Parameters
    ----------
    spec : SketchSpec, RandomSpec or LeafSpec
    strata : int
    weight_bound : float, optional
        With weights, their public bound; grid features only.
    """

    def __init__(self, spec: Spec, strata: int, weight_bound: float | None = None) -> None:
        if weight_bound is not None and not isinstance(spec, SketchSpec):
            raise ValueError(
                "weight_bound: weights are counted for grid features, up to three columns: features='grid'"
            )
        self.spec = spec
        self.strata = strata
        self.weight_bound = weight_bound
        self._counts = [exact_counts(spec) for _ in range(strata if weight_bound is None else 0)]
        # weights are counted in tables of their own, in parts of a record
        cells = 0 if isinstance(spec, RandomSpec) or weight_bound is None else math.prod(spec.cells)
        self._tables = np.zeros((strata, cells), dtype=np.int64)

    def add(self, rows: FloatArray, stratum: IntArray, weights: FloatArray | None = None) -> None:
        """Count rows, each in its stratum; a stratum below zero is none."""
        if self.weight_bound is not None and isinstance(self.spec, SketchSpec):
            assert weights is not None
            parts = weight_parts(weights, self.weight_bound)
            for start in range(0, len(rows), CHUNK_ROWS):
                here = slice(start, start + CHUNK_ROWS)
                keys = cell_keys(rows[here], self.spec)
                counted = (keys < self._tables.shape[1]) & (stratum[here] >= 0)
                # add.at, not +=, which would count a cell once however often it comes
                np.add.at(self._tables, (stratum[here][counted], keys[counted]), parts[here][counted])
            return
        for index, counts in enumerate(self._counts):
            counts.add_rows(records(rows[stratum == index], self.spec.d))

    def vector(self) -> IntArray:
        """Secret: the exact integers of the release, stratum after stratum; for leaves their tables."""
        if self.weight_bound is not None and isinstance(self.spec, SketchSpec):
            tables = [table.reshape(self.spec.cells) for table in self._tables]
            return np.concatenate([lattice_sums(t, self.spec, record_bits=WEIGHT_PARTS_BITS) for t in tables])
        parts = [counts.table() for counts in self._counts]
        if isinstance(self.spec, LeafSpec):
            return np.stack(parts)
        if isinstance(self.spec, RandomSpec):
            return np.concatenate(parts)
        return np.concatenate([lattice_sums(part, self.spec) for part in parts])
