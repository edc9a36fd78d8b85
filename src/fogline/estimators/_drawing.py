"""Ways to draw from a learnt density: by rejection, or from cells of equal base mass. What they hold is secret."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._boosting import TrainingPlan, quiet
from fogline.families.boosted import BoostedRatio
from fogline.mechanisms.mollified_cells import AXIS_BITS, cell_centres, counts_of, mollified_cells
from fogline.mechanisms.mollified_draws import COIN, LOG_STEPS, log_width, mollified_draws, on_lattice

__all__ = ["MECHANISMS", "PROOFS", "Model", "by_cells", "by_rejection"]

FloatArray = NDArray[np.float64]
Model = tuple[Callable[[int], FloatArray], Callable[[FloatArray], FloatArray]]
"""A function that makes draws, and the log-ratio to the base that they follow, up to a constant."""

PROOFS = {"rejection": "mollified-draws", "cells": "mollified-cells"}
MECHANISMS = {
    "rejection": "draws by rejection from a boosted density in a mollifier",
    "cells": "draws by cells from a boosted density in a mollifier",
}


def by_rejection(ratio: BoostedRatio, plan: TrainingPlan, constant_time: bool) -> Model:
    """Draw by rejection: the model as the sampler clamps it, and without a word from its learners."""
    widest = log_width(plan.epsilon)

    def log_acceptance(x: FloatArray) -> FloatArray:
        with quiet():
            return on_lattice(ratio(x), widest) / LOG_STEPS

    def draw(size: int) -> FloatArray:
        return mollified_draws(log_acceptance, plan.base, size=size, epsilon=plan.epsilon, constant_time=constant_time)

    return draw, log_acceptance


def by_cells(ratio: BoostedRatio, plan: TrainingPlan) -> Model:
    """Draw from cells: all that is kept of the model is a count for each."""
    with quiet():
        counts = counts_of(ratio.open(plan.base.points(cell_centres(plan.base.d))), epsilon=plan.epsilon)
    shape = (2 ** AXIS_BITS[plan.base.d],) * plan.base.d

    def draw(size: int) -> FloatArray:
        return mollified_cells(lambda: counts, plan.base, size=size, epsilon=plan.epsilon)

    def log_ratio(x: FloatArray) -> FloatArray:
        places = np.clip((plan.base.uniforms(x) * shape[0]).astype(np.int64), 0, shape[0] - 1)
        return np.asarray(np.log(counts[np.ravel_multi_index(tuple(places.T), shape)] * (len(counts) / COIN)))

    return draw, log_ratio
