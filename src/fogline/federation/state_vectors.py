"""The state of a sketch as one vector of a public length: what masks are added to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.density_sketch import DensitySketch
from fogline.sketch.planning import Spec
from fogline.sketch.random_spec import RandomSpec

__all__ = ["state_of", "state_vector", "vector_size"]


def state_vector(sketch: DensitySketch) -> NDArray[np.int64]:
    """Secret: the whole state as one vector of a public length."""
    if isinstance(sketch.spec, RandomSpec):
        count, sums = sketch.state()
        return np.concatenate([count, sums.ravel()])
    return sketch.table().ravel()


def vector_size(spec: Spec) -> int:
    """Public: the length of a state as one vector."""
    return 1 + 2 * spec.n_features if isinstance(spec, RandomSpec) else math.prod(spec.cells)


def state_of(vector: NDArray[np.int64], spec: Spec) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Inverse of :func:`state_vector`."""
    if isinstance(spec, RandomSpec):
        return vector[:1], vector[1:].reshape(2, -1)
    keys = np.flatnonzero(vector)
    return keys.astype(np.int64), vector[keys]
