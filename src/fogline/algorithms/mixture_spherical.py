r"""Mixtures of spherical Gaussians: parts as in the recursive method, one mean and one variance for each.

A sphere has d + 1 parameters, a Gaussian d(d + 3)/2: its noise is smaller by about the root of the dimension, and far
fewer records do. The parts come from the same cuts along private leading directions; each part is then brought
into a ball that fits it, and number, sum and summed squared length of its records are released twice, the second time
from the ball that the first gave. All parts are in the same releases. Proof: ``mixture_spherical.proof.md``.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019, Algorithms 1 and 6.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fogline.algorithms.mixture_recursive import (
    LAST_STEPS,
    RECURSIVE,
    MixtureFit,
    RecursivePlan,
    ball_constraints,
    gaussian_fit,
    partition_recursively,
    refine_balls,
)
from fogline.queries.gaussian import Gaussian, SphericalGaussian, SphericalQuery
from fogline.queries.lattice import CentredBallLattice
from fogline.releases.curator import Curator

__all__ = ["PROOF", "learn_spherical"]

PROOF = "mixture-spherical"

PLACE, FIRST, SECOND = Fraction(1, 4), Fraction(1, 8), Fraction(5, 8)
"""Shares of what the cuts left."""

REACH = 3.0
"""Radius of the last ball beyond the root of the dimension, in standard deviations."""


def learn_spherical(plan: RecursivePlan, curator: Curator) -> MixtureFit:
    """Cut the records into parts and learn the sphere of each."""
    partition, frames, spent = partition_recursively(plan, curator)
    left = 1 - spent
    frames, _ = refine_balls(curator, partition, frames, share=left * PLACE, steps=LAST_STEPS, **ball_constraints(plan))
    balls = tuple(CentredBallLattice(frame.centre, RECURSIVE.margin * frame.radius) for frame in frames)
    rough = curator.ask(SphericalQuery(partition, balls, plan.sigma_min), left * FIRST, "sphere")
    fitting = tuple(_ball(found, ball) for found, ball in zip(rough, balls, strict=True))
    spheres = curator.ask(SphericalQuery(partition, fitting, plan.sigma_min), left * SECOND, "sphere")
    learnt = [_gaussian(sphere, plan.sigma_max) for sphere in spheres]
    return gaussian_fit(learnt, curator, "spherical", plan.n_components)


def _ball(found: SphericalGaussian, before: CentredBallLattice) -> CentredBallLattice:
    """A ball that holds nearly all records of a sphere, never wider than the one before."""
    d = before.d
    sigma = math.sqrt(found.sigma**2 + found.variance_sd)
    reach = sigma * (math.sqrt(d) + REACH) + 2 * found.mean_sd * math.sqrt(d)
    return CentredBallLattice(found.mean, min(reach, before.radius))


def _gaussian(sphere: SphericalGaussian, sigma_max: float) -> Gaussian:
    """A sphere as a Gaussian, not wider than is allowed."""
    d = len(sphere.mean)
    variance = min(sphere.sigma, sigma_max) ** 2
    error = math.sqrt(variance / max(sphere.count, 1.0) + sphere.mean_sd**2)
    return Gaussian(sphere.mean, variance * np.eye(d), sphere.count, sphere.count_sd, np.full(d, error))
