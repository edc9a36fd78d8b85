"""Probabilities of the cells of a released density under a family."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fogline._typing import FloatArray
from fogline.families import Family

__all__ = ["leaf_probabilities"]


def leaf_probabilities(family: Family, theta: FloatArray, edges: Sequence[FloatArray]) -> FloatArray:
    """Probabilities of cells under a family that is cut to the box, flat; they sum to one.

    Parameters
    ----------
    family : Family
    theta : array of shape (m,)
    edges : sequence of arrays
        Of the cells, one per axis.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> leaf_probabilities(Normal(), np.array([0.0, 1.0]), [np.array([-1.0, 0.0, 1.0])])
    array([0.5, 0.5])
    """
    if family.dimension == 1 and hasattr(family, "cdf"):
        # A cell holds its lower end: a family with a mass at zero has all of it in the cell that begins there.
        ends = np.append(np.nextafter(edges[0][:-1], -np.inf), edges[0][-1])
        mass = np.diff(family.cdf(theta, ends))
    else:
        centres = [(e[1:] + e[:-1]) / 2 for e in edges]
        points = np.stack([g.ravel() for g in np.meshgrid(*centres, indexing="ij")], axis=1)
        # The mean density of a cell is nearly that of the family with the variance of the cell added.
        widths = np.array([float(e[1] - e[0]) for e in edges]) / math.sqrt(12.0)
        try:
            mass = family.convolved(theta, points if family.dimension > 1 else points[:, 0], widths)
        except ValueError:  # correlations within their bounds need not belong to a distribution
            mass = np.zeros(len(points))
    mass = np.maximum(np.nan_to_num(mass), 0.0)
    total = float(mass.sum())
    return np.asarray(mass / total if total > 0 else np.full(len(mass), 1e-300))
