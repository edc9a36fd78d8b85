"""Exact integer counts of records for a density, whichever features its specification has.

The proof is in ``exact_counts.proof.md`` beside this file.
"""

from __future__ import annotations

from fogline.density.random_spec import RandomSpec, Spec
from fogline.queries.fourier_sums import CellCounts
from fogline.queries.random_feature_sums import PhaseSums

__all__ = ["ExactCounts", "exact_counts"]

ExactCounts = CellCounts | PhaseSums
"""Counts of cells, or sums of random features: equal record sets have equal states, in any order and partition."""


def exact_counts(spec: Spec) -> ExactCounts:
    """Return counts of no records, to add records to.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline.density.random_spec import plan_spec
    >>> counts = exact_counts(plan_spec([(0, 10)], "auto", None))
    >>> counts.add_rows(np.array([[2.5], [2.5], [np.nan]]))
    >>> counts.state()[1].tolist()
    [2]
    """
    return PhaseSums(spec) if isinstance(spec, RandomSpec) else CellCounts(spec)
