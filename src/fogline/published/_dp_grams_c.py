"""DP-GRAMS-C as published: clusters around the modes of DP-GRAMS, refined on the raw data.

Candidate modes by `dp_grams`; then plain mean shift *on the records* from each candidate; then a merge into k
clusters, or by distance; then a label for every record. This module follows the paper; it does *not* make its
privacy claim true: the second and the last step add no noise at all. See `REASONS`.

References
----------
*Gradient Ascent-based Mean Shift for Differentially Private Nonparametric Mode Estimation*, supplement,
Algorithm 3 and tables 5 to 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from fogline._validation import check_count, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline.published import _dp_grams
from fogline.published._checks import complete_records, frozen_array
from fogline.published._dp_grams import dp_grams
from fogline.published._kernel import shift, silverman_bandwidth
from fogline.published._merging import merge

__all__ = ["REASONS", "DPGramsCResult", "dp_grams_c"]

Array = NDArray[np.float64]

REASONS = (
    "the modes are refined by mean shift on the raw records, without noise; "
    "a label is published for every record, an exact function of that record; "
    f"and all that holds of DP-GRAMS: {_dp_grams.REASONS}"
)


@dataclass(frozen=True, eq=False)
class DPGramsCResult:
    """What a run of `dp_grams_c` returns.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
        The merged modes, largest group of candidates first.
    labels : ndarray of shape (n,)
        For each record the nearest centre: published by the paper, and a leak.
    raw_modes : ndarray of shape (starts, d)
        The candidates of DP-GRAMS.
    refined_modes : ndarray of shape (starts, d)
        Where mean shift on the raw records took them.
    bandwidth : float
    clip, noise_scale : float
        C* and sigma of DP-GRAMS.
    guarantee : Guarantee
        Never certified; its reason lists the gaps.
    """

    centers: Array
    labels: NDArray[np.int64]
    raw_modes: Array
    refined_modes: Array
    bandwidth: float
    clip: float
    noise_scale: float
    guarantee: Guarantee


def dp_grams_c(
    X: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    n_clusters: int | None = None,
    bandwidth: float | None = None,
    initial_fraction: float = 1.0,
    n_refinements: int | None = None,
    merge_factor: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> DPGramsCResult:
    """Clusters of `X` by DP-GRAMS-C, Algorithm 3 of the supplement. **Not certified**: see `REASONS`.

    Where the paper leaves a choice open, the default is ours and marked so.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The records; finite. The paper reduces MNIST to 50 principal components of the raw data first, which is
        not private either; that is left to the caller.
    epsilon, delta : float
        The privacy that the paper claims for the answer.
    n_clusters : int, optional
        k_est: merge to this many clusters (agglomerative; Ward's linkage is ours). None: merge by distance.
    bandwidth : float, optional
        h of DP-GRAMS and of the refinement. Ours: Silverman's rule, as the paper has it for mean shift.
    initial_fraction : float
        p_0. Ours: 1, every record a start, because then the paper's Digits row comes out to four digits; work
        grows as ``initial_fraction * n**2``, so give less for many records.
    n_refinements : int, optional
        Steps of mean shift. Ours: ``ceil(log n)``, as the paper has it for mean shift.
    merge_factor : float
        Without `n_clusters`, modes linked by steps of at most this many bandwidths are one. Ours: 1.
    random_state : int, Generator or None
        Source of batches, starts *and noise*. Noise here is floating point from numpy: for experiments.

    Returns
    -------
    DPGramsCResult

    Examples
    --------
    >>> from fogline.datasets import gaussian_mixture4
    >>> sample = gaussian_mixture4(500, random_state=0)
    >>> result = dp_grams_c(sample.X, epsilon=1.0, delta=1e-5, n_clusters=4, random_state=0)
    >>> result.centers.shape, result.labels.shape, result.guarantee.certified
    ((4, 2), (500,), False)
    """
    records = complete_records(X)
    n = records.shape[0]
    k = None if n_clusters is None else check_count(n_clusters, "n_clusters")
    h = silverman_bandwidth(records) if bandwidth is None else check_positive(bandwidth, "bandwidth")
    merge_factor = check_positive(merge_factor, "merge_factor")
    steps = math.ceil(math.log(max(n, 3))) if n_refinements is None else check_count(n_refinements, "n_refinements")
    private = dp_grams(
        records,
        epsilon=epsilon,
        delta=delta,
        bandwidth=h,
        initial_fraction=initial_fraction,
        random_state=random_state,
    )
    refined = private.raw_modes
    for _ in range(steps):
        refined = shift(refined, records, records, h)
    centers = merge(refined, n_modes=k, radius=merge_factor * h)
    _, labels = cKDTree(centers).query(records)
    labels = np.asarray(labels, dtype=np.int64)
    labels.setflags(write=False)
    return DPGramsCResult(
        centers=frozen_array(centers),
        labels=labels,
        raw_modes=private.raw_modes,
        refined_modes=frozen_array(refined),
        bandwidth=h,
        clip=private.clip,
        noise_scale=private.noise_scale,
        guarantee=Guarantee.uncertified(
            epsilon=private.guarantee.epsilon,
            delta=private.guarantee.delta,
            reason=REASONS,
            neighbours="replace",
            mechanism="DP-GRAMS-C (as published)",
        ),
    )
