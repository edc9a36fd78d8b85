"""Proofs by name. Everything that is stored names a proof by an id, which outlives the place of its file."""

from __future__ import annotations

__all__ = ["PROOFS", "proof_file", "proof_id"]

PROOFS = {
    "above-threshold": "mechanisms/above_threshold.proof.md",
    "ball": "locate/ball.proof.md",
    "bernstein": "contenders/bernstein.proof.md",
    "clustering": "estimators/clustering.proof.md",
    "contribution-bound": "engines/contributions.proof.md",
    "count": "mechanisms/count.proof.md",
    "density-sketch": "sketch/density_sketch.proof.md",
    "dp-em": "contenders/dp_em.proof.md",
    "dpgan": "contenders/dpgan.proof.md",
    "exponential": "mechanisms/exponential.proof.md",
    "gaussian-learner": "locate/gaussian.proof.md",
    "gaussian-noise": "mechanisms/gaussian.proof.md",
    "hellinger": "estimators/hellinger.proof.md",
    "hellinger-privacy": "accounting/hellinger_privacy.proof.md",
    "laplace-noise": "mechanisms/laplace.proof.md",
    "lattice": "mechanisms/lattice.proof.md",
    "magnitudes": "locate/magnitudes.proof.md",
    "mixture": "estimators/mixture.proof.md",
    "mixture-aggregate": "estimators/_mixture_aggregate.proof.md",
    "mixture-recursive": "estimators/_mixture_recursive.proof.md",
    "mixture-spherical": "estimators/_mixture_spherical.proof.md",
    "mixture-step": "locate/mixture_step.proof.md",
    "mollified-cells": "mechanisms/mollified_cells.proof.md",
    "mollified-draws": "mechanisms/mollified_draws.proof.md",
    "noisy-histogram": "contenders/noisy_histogram.proof.md",
    "one-cluster": "locate/one_cluster.proof.md",
    "private-pca": "locate/private_pca.proof.md",
    "random-features": "sketch/random_features.proof.md",
    "regression": "estimators/regression.proof.md",
    "sampler": "estimators/sampler.proof.md",
    "site-sketch": "federation/site_sketch.proof.md",
    "slabs": "locate/slabs.proof.md",
    "spherical-gaussian-learner": "locate/spherical_gaussian.proof.md",
    "stable-histogram": "mechanisms/stable_histogram.proof.md",
    "strata": "sketch/strata.proof.md",
    "terrific-ball": "locate/terrific_ball.proof.md",
    "text-lines": "engines/text_lines.proof.md",
}
"""Where each proof is now, within the package. An id is never taken away or given to another proof."""

_FORMER: dict[str, str] = {path: name for name, path in PROOFS.items()}
"""Paths that were stored before there were ids. A file that moves leaves its old path here."""


def proof_id(proof: str) -> str:
    """Return the id of a proof that was stored by its id or, formerly, by its path; other texts stay as they are.

    Examples
    --------
    >>> proof_id("sketch/density_sketch.proof.md"), proof_id("density-sketch")
    ('density-sketch', 'density-sketch')
    """
    return _FORMER.get(proof, proof)


def proof_file(proof: str) -> str:
    """Return the path of a proof within the package; what is no id or former path stays as it is.

    Examples
    --------
    >>> proof_file("gaussian-noise")
    'mechanisms/gaussian.proof.md'
    """
    return PROOFS.get(proof_id(proof), proof)
