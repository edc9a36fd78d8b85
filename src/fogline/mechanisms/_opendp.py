"""OpenDP's exact samplers, imported when the first noise is drawn and not before.

Integers only: OpenDP samples the discrete Gaussian and the discrete Laplace on the integers with rational
arithmetic and the operating system's entropy. A vector of zeros in is a vector of noise out; values beyond
int64 saturate.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw", "gaussian_rho", "laplace_epsilon"]


@lru_cache(maxsize=64)
def _mechanism(kind: str, scale: float) -> Any:
    from opendp import measurements, metrics
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    if kind == "gaussian":
        return measurements.make_gaussian(integers, metrics.l2_distance(T="f64"), scale=scale)
    return measurements.make_laplace(integers, metrics.l1_distance(T="f64"), scale=scale)


def draw(kind: str, scale: float, size: int) -> NDArray[np.int64]:
    """Return `size` draws of discrete noise ("gaussian" or "laplace").

    Examples
    --------
    >>> draw("gaussian", 2.0, 3).shape
    (3,)
    """
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.array(_mechanism(kind, scale)([0] * size), dtype=np.int64)


def gaussian_rho(scale: float, sensitivity: float) -> float:
    """Return OpenDP's own zCDP bound for the discrete Gaussian at this Euclidean sensitivity.

    Examples
    --------
    >>> gaussian_rho(2.0, 1.0)
    0.125
    """
    return float(_mechanism("gaussian", scale).map(sensitivity))


def laplace_epsilon(scale: float, sensitivity: float) -> float:
    """Return OpenDP's own epsilon for the discrete Laplace at this absolute sensitivity.

    Examples
    --------
    >>> laplace_epsilon(2.0, 1.0)
    0.5
    """
    return float(_mechanism("laplace", scale).map(sensitivity))
