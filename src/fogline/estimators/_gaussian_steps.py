"""The Gaussian learner as stages of one release, for one part of the records or for many at once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._staged import Stages, asked
from fogline.locate.frames import Each, Frame
from fogline.locate.gaussian import Gaussian, PlaceQuery, ScatterQuery
from fogline.locate.partition import Parts
from fogline.locate.whitening import Reassigned, whitening_of

__all__ = ["learn_gaussians", "settled"]

FloatArray = NDArray[np.float64]

SCATTER_SHARES = (Fraction(1, 20), Fraction(1, 10), Fraction(3, 20), Fraction(7, 10))
"""Of the budget of the shape: steps that look for it, one that measures it."""

KEPT = 0.97
"""Part of the records that the radius of a part is made to hold."""

MARGIN = 1.1
"""Widening of that radius."""


def settled(
    stages: Stages,
    passes: Each | None,
    partition: Parts,
    frames: tuple[Frame, ...],
    *,
    portion: Fraction,
    steps: int,
    kept: float = KEPT,
    least: float = 0.0,
) -> tuple[tuple[Frame, ...], list[float]]:
    """Bring each part's frame to its records, and count them.

    Parameters
    ----------
    stages, passes, partition
    frames : tuple of Frame
        Where the search starts, one for each part.
    portion : Fraction
        Of the whole budget, for all steps.
    steps : int
        At least one.
    kept : float
        Part of the records that a frame should hold.
    least : float
        Radius below which no frame goes.
    """
    counts: list[float] = []
    for _ in range(steps):
        query = PlaceQuery(partition, frames)
        found = query.read(*asked(stages, passes, "place", query, portion / steps), kept)
        frames = tuple(Frame(frame.centre, max(frame.radius, least)) for frame, _ in found)
        counts = [count for _, count in found]
    return frames, counts


def learn_gaussians(
    stages: Stages, passes: Each | None, partition: Parts, frames: tuple[Frame, ...], portion: Fraction
) -> list[Gaussian]:
    """Mean and covariance of each part, from frames that hold most of its records."""
    d = partition.d
    whitenings = []
    for frame in frames:
        scale = MARGIN * frame.radius / math.sqrt(d)
        whitenings.append(whitening_of(frame.centre, scale * np.eye(d), math.sqrt(d)))
    for share in SCATTER_SHARES[:-1]:
        query = ScatterQuery(partition, tuple(whitenings))
        found = query.read(*asked(stages, passes, "shape", query, portion * share))
        whitenings = [scatter.next_whitening() for scatter in found]
    query = ScatterQuery(Reassigned(partition, tuple(whitenings)), tuple(whitenings))
    found = query.read(*asked(stages, passes, "shape", query, portion * SCATTER_SHARES[-1]))
    return [scatter.unclipped().gaussian() for scatter in found]
