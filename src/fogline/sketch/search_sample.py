r"""Draws from a released density where no grid can go.

The positive part of a reading is no use beyond a few dimensions: noise covers the whole box, and half of it is
positive, so that nearly all draws would be noise. Drawn from is instead

.. math:: t(x) = \bigl[\, g_h(x) + \mathrm{soft}\bigl(\tilde f_h(x) - g_h(x),\; u\,s(x)\bigr) \bigr]_+ \quad\text{in the
   box},

where the ground :math:`g_h` is the mixture of atoms (:mod:`fogline.sketch.search_atoms`), smoothed by the kernel, with
an even density over the box for the share of the records that the atoms do not hold; :math:`s(x)` is the deviation of
the fog (:mod:`fogline.sketch.search_fog`), which reaches :math:`u` deviations somewhere in the box with probability
0.05, and :math:`\mathrm{soft}(r, c) = \mathrm{sign}(r)(|r| - c)_+` keeps of the rest what noise does not explain. So t
is within :math:`u\,s(x)` of the density everywhere, and equal to a smooth mixture where the two cannot be told apart.

Points are drawn from the ground, nine tenths, and evenly over the box, one tenth, and then resampled in proportion to
:math:`t` over their own density: the law is t up to the error of that resampling, and points may repeat where t is far
above the ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.modes import make_ladder
from fogline.sketch.search import survey_of
from fogline.sketch.search_atoms import Atoms, ClearedReading
from fogline.sketch.search_fog import Fog

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["sample_anywhere"]

FloatArray = NDArray[np.float64]

EVEN = 0.1
"""Share of the proposals that are spread evenly over the box."""

PROPOSALS = 4
"""Proposals a draw."""

REACHED = 0.05
"""What the ground misses is shrunk by the height that the fog reaches somewhere in the box with this chance."""


def sample_anywhere(density: PrivateDensity, k: int, bandwidth: Any, rng: np.random.Generator) -> FloatArray:
    """Draw k points from a released density without a grid; free, and as private as the density itself.

    Parameters
    ----------
    density : PrivateDensity
    k : int
    bandwidth : optional
        As in :meth:`PrivateDensity.pdf`.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (k, d)
        Within the box. The law is that of this module: the density where it is clear of the noise, not its positive
        part.
    """
    spec = density.spec
    if k == 0:
        return np.zeros((0, spec.d))
    plain = density.reading(bandwidth)
    atoms = survey_of(density, make_ladder(density)).atoms or Atoms(
        np.zeros(0), np.zeros((0, spec.d)), np.zeros((0, spec.d, spec.d))
    )
    reading = ClearedReading(plain, atoms)
    fog = Fog.of(reading, density.count)
    rest = max(0.0, 1.0 - float(atoms.weights.sum()))
    shares = np.append(atoms.weights, rest)
    even = float(np.exp(-np.log(reading.unit) - np.log(spec.widths).sum()))  # even density as a kernel average

    points = _proposals(reading, shares / shares.sum(), PROPOSALS * k + 1000, rng)
    known = atoms.smoothed(points, reading.bandwidth)[0]
    inside = fog.inside(points)
    ground = known + rest * even * inside
    missed = fog.field.relative(points) - ground
    threshold = fog.highest(REACHED) * np.sqrt(fog.variance + fog.sampling * np.maximum(ground, 0))
    target = np.maximum(ground + np.sign(missed) * np.maximum(np.abs(missed) - threshold, 0), 0)
    proposed = (1 - EVEN) * (known + rest * even) / shares.sum() + EVEN * even
    weights = target / proposed
    if weights.sum() <= 0:
        weights = np.ones(len(points))
    # Systematic resampling: each point is drawn about as often as its weight says.
    grid = (rng.random() + np.arange(k)) / k
    cumulative = np.cumsum(weights / weights.sum())
    chosen = np.minimum(np.searchsorted(cumulative, grid), len(points) - 1)
    return np.asarray(rng.permutation(points[chosen]))


def _proposals(reading: ClearedReading, shares: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Points of the box from the ground and from an even density; the last share is that of the even part."""
    spec, atoms, d = reading.spec, reading.atoms, reading.spec.d
    component = rng.choice(len(shares), size=size, p=shares)
    component[rng.random(size) < EVEN] = len(shares) - 1
    points = rng.uniform(spec.lower, spec.upper, (size, d))
    for j, (centre, covariance) in enumerate(zip(atoms.centres, atoms.covariances, strict=True)):
        here = component == j
        wide = covariance + np.diag(reading.bandwidth**2)
        points[here] = centre + rng.standard_normal((int(here.sum()), d)) @ np.linalg.cholesky(wide).T
    within = np.all((points >= spec.lower) & (points <= spec.upper), axis=1)
    if not within.any():
        return np.asarray(rng.uniform(spec.lower, spec.upper, (size, d)))
    return np.asarray(points[within])
