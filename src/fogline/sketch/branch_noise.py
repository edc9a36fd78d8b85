r"""How much of a branch noise alone would raise, anywhere along x.

A branch is judged as a whole: by its *strength*, the sum over its places of what their relief exceeds a threshold t by,
so that a long faint branch counts as much as a short clear one. Excursions of Gaussian noise by u above t are as long
as :math:`\sqrt u` in each axis of x, so that the strength of noise, to the power :math:`1/(1 + d_x/2)`, has
exponential tails. Privacy noise and sampling noise are simulated together for responses that are flat in y, and the
quantile of an exponential law, fitted to the upper half of the largest strengths, is what a branch must reach.

References
----------
.. [1] K. Friston, K. Worsley, R. Frackowiak, J. Mazziotta, A. Evans, "Assessing the significance of focal activations
   using their spatial extent", Human Brain Mapping 1, 1994.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.branch_threads import Threads, link
from fogline.sketch.landscape import find_peaks
from fogline.sketch.profiles import Profiles, mirror_basis

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["LEAST_RELIEF", "needed_strength", "strengths"]

FloatArray = NDArray[np.float64]

LEAST_RELIEF = 3.0
"""Peaks of less relief do not count towards a branch's strength: the threshold t."""

LINK_REACH = 1.5
"""Peaks at neighbouring places within so many bandwidths of y may be one branch."""

SIMULATIONS = {1: 120, 2: 24}
"""Simulated fields, by the number of axes of x."""

CAUTION = 2.5
"""The quantile is taken at the level over this: measured on even responses, faint releases let through about twice as
many branches as the simulation says."""

SEED = 1618033988
"""Simulations only calibrate a threshold: a fixed seed makes reading a release repeatable."""


def strengths(relief: FloatArray, threads: Threads) -> FloatArray:
    """Strength of each branch, from the relief of its nodes."""
    excess = np.maximum(relief - LEAST_RELIEF, 0.0)
    return np.bincount(threads.member, weights=excess, minlength=threads.count).astype(np.float64)


def needed_strength(
    density: PrivateDensity,
    profiles: Profiles,
    shape: tuple[int, ...],
    places: FloatArray,
    level: float,
    per_bandwidth: float,
) -> float:
    """Strength that some branch of noise reaches with probability `level`."""
    spec = density.spec
    rng = np.random.default_rng(SEED)
    fields = SIMULATIONS[spec.d - 1]
    size = (fields, len(spec.frequencies))
    # A sum over n records of exp(i w x) has parts of variance n/2, beside the privacy noise.
    deviation = np.sqrt((density.noise_scale**2 / density.weights) + density.count / 2)
    sums = deviation * (rng.standard_normal(size) + 1j * rng.standard_normal(size))
    y = profiles.y_axis(per_bandwidth)
    values = (profiles.simulated(sums, places) @ mirror_basis(profiles, y)).real
    standard = values / values.std(axis=0, ddof=1).mean(axis=0)
    peaks = find_peaks(standard.reshape(-1, standard.shape[2]))
    counted = peaks.interior & (peaks.prominence >= LEAST_RELIEF)
    field, place = np.divmod(peaks.field[counted], len(places))
    relief, position = peaks.prominence[counted], y[peaks.cell[counted]]
    power = 1 / (1 + (spec.d - 1) / 2)
    largest = np.zeros(fields)
    for k in range(fields):
        own = field == k
        threads = link(shape, place[own], position[own], LINK_REACH * profiles.y_bandwidth)
        largest[k] = strengths(relief[own], threads).max(initial=0.0) ** power
    # Many fields have no branch at all, so only the upper half is fitted: an exponential law above the median.
    middle = float(np.median(largest))
    excess = float(np.mean(np.maximum(largest - middle, 0.0))) / max(float(np.mean(largest > middle)), 1 / fields)
    quantile = middle + excess * max(np.log(0.5 * CAUTION / level), 0.0)
    return float(quantile ** (1 / power))
