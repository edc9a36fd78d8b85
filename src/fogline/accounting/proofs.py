"""Proofs by name. Everything that is stored names a proof by an id, which outlives the place of its file."""

from __future__ import annotations

__all__ = ["PROOFS", "proof_file", "proof_id"]

PROOFS = {
    "above-threshold": "mechanisms/above_threshold.proof.md",
    "analytic-gaussian": "accounting/analytic_gaussian.proof.md",
    "ball": "queries/lattice.proof.md",
    "bernstein": "fogline_research/baselines/bernstein.proof.md",
    "block-learners": "queries/block_learners.proof.md",
    "boosted-density": "queries/boosted_density.proof.md",
    "bucket-counts": "queries/bucket_counts.proof.md",
    "clustering": "algorithms/clustering.proof.md",
    "column-counts": "queries/column_counts.proof.md",
    "continual": "releases/continual.proof.md",
    "contribution-bound": "sources/contributions.proof.md",
    "count": "mechanisms/discrete_laplace.proof.md",
    "density-sketch": "releases/density_sketch.proof.md",
    "dp-em": "fogline_research/baselines/dp_em.proof.md",
    "dp-kmeans": "fogline_research/baselines/dp_kmeans.proof.md",
    "dpgan": "fogline_research/baselines/dpgan.proof.md",
    "exact-counts": "queries/exact_counts.proof.md",
    "exponential": "mechanisms/exponential.proof.md",
    "fourier-sums": "queries/fourier_sums.proof.md",
    "gaussian-cap": "ledger/gaussian_cap.proof.md",
    "gaussian-learner": "queries/gaussian.proof.md",
    "gaussian-noise": "mechanisms/discrete_gaussian.proof.md",
    "gradient-ascent": "fogline_research/certified/gradient_ascent.proof.md",
    "hellinger": "algorithms/hellinger_descent.proof.md",
    "hellinger-privacy": "accounting/divergences.proof.md",
    "hellinger-queries": "queries/hellinger_descent.proof.md",
    "joint-release": "releases/joint_release.proof.md",
    "laplace-noise": "mechanisms/discrete_laplace.proof.md",
    "lattice": "mechanisms/lattice.proof.md",
    "leaf-release": "releases/leaf_release.proof.md",
    "magnitudes": "queries/magnitudes.proof.md",
    "mixture": "algorithms/mixture_from_density.proof.md",
    "mixture-aggregate": "algorithms/mixture_aggregate.proof.md",
    "mixture-recursive": "algorithms/mixture_recursive.proof.md",
    "mixture-spherical": "algorithms/mixture_spherical.proof.md",
    "mixture-step": "queries/em_step.proof.md",
    "mollified-cells": "mechanisms/mollified_cells.proof.md",
    "mollified-draws": "mechanisms/mollified_draws.proof.md",
    "noisy-histogram": "fogline_research/baselines/noisy_histogram.proof.md",
    "one-cluster": "queries/ball_search.proof.md",
    "pair-counts": "queries/pair_counts.proof.md",
    "private-pca": "queries/moments.proof.md",
    "profile": "releases/profile.proof.md",
    "projected-density": "queries/projected_density.proof.md",
    "random-features": "queries/random_feature_sums.proof.md",
    "regression": "estimators/regression.proof.md",
    "risk": "accounting/risk.proof.md",
    "rounded-gaussian-noise": "mechanisms/discrete_gaussian.proof.md",
    "sampler": "estimators/sampler.proof.md",
    "separated-mixtures": "fogline_research/certified/separated_mixtures.proof.md",
    "shared-cap": "ledger/shared_cap.proof.md",
    "site-sketch": "federation/site_sketch.proof.md",
    "slabs": "queries/partition.proof.md",
    "spherical-gaussian-learner": "queries/gaussian.proof.md",
    "stable-histogram": "mechanisms/stable_histogram.proof.md",
    "strata": "queries/strata.proof.md",
    "terms": "releases/terms.proof.md",
    "terrific-ball": "queries/ball_search.proof.md",
    "text-lines": "sources/text_lines.proof.md",
    "warehouse": "sources/warehouse.proof.md",
}
"""Where each proof is now, within the package, or within ``fogline_research``.

An id is never taken away or given to another proof.
"""

_FORMER = {
    "mechanisms/above_threshold.proof.md": "above-threshold",
    "locate/ball.proof.md": "ball",
    "contenders/bernstein.proof.md": "bernstein",
    "estimators/clustering.proof.md": "clustering",
    "engines/contributions.proof.md": "contribution-bound",
    "mechanisms/count.proof.md": "count",
    "sketch/density_sketch.proof.md": "density-sketch",
    "contenders/dp_em.proof.md": "dp-em",
    "contenders/dpgan.proof.md": "dpgan",
    "mechanisms/exponential.proof.md": "exponential",
    "locate/gaussian.proof.md": "gaussian-learner",
    "mechanisms/gaussian.proof.md": "gaussian-noise",
    "estimators/hellinger.proof.md": "hellinger",
    "accounting/hellinger_privacy.proof.md": "hellinger-privacy",
    "mechanisms/laplace.proof.md": "laplace-noise",
    "mechanisms/lattice.proof.md": "lattice",
    "locate/magnitudes.proof.md": "magnitudes",
    "estimators/mixture.proof.md": "mixture",
    "estimators/_mixture_aggregate.proof.md": "mixture-aggregate",
    "estimators/_mixture_recursive.proof.md": "mixture-recursive",
    "estimators/_mixture_spherical.proof.md": "mixture-spherical",
    "locate/mixture_step.proof.md": "mixture-step",
    "mechanisms/mollified_cells.proof.md": "mollified-cells",
    "mechanisms/mollified_draws.proof.md": "mollified-draws",
    "contenders/noisy_histogram.proof.md": "noisy-histogram",
    "locate/one_cluster.proof.md": "one-cluster",
    "locate/private_pca.proof.md": "private-pca",
    "sketch/random_features.proof.md": "random-features",
    "estimators/regression.proof.md": "regression",
    "estimators/sampler.proof.md": "sampler",
    "federation/site_sketch.proof.md": "site-sketch",
    "locate/slabs.proof.md": "slabs",
    "locate/spherical_gaussian.proof.md": "spherical-gaussian-learner",
    "mechanisms/stable_histogram.proof.md": "stable-histogram",
    "sketch/strata.proof.md": "strata",
    "locate/terrific_ball.proof.md": "terrific-ball",
    "engines/text_lines.proof.md": "text-lines",
}
"""Paths that were stored before there were ids, as they were in version 0.1."""


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
    'mechanisms/discrete_gaussian.proof.md'
    """
    return PROOFS.get(proof_id(proof), proof)
