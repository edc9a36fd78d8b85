r"""Plain Gaussian mean shift: the non-private method that DP-GRAMS is compared with.

.. math:: x \leftarrow m(x) = \sum_i w_i(x) X_i, \qquad
          w_i(x) = \frac{K((x - X_i)/h)}{\sum_j K((x - X_j)/h)}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_count, check_positive
from fogline.published._checks import NotPrivate, complete_records, frozen_array
from fogline.published._kernel import shift, silverman_bandwidth
from fogline.published._merging import merge

__all__ = ["MeanShiftResult", "mean_shift"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanShiftResult:
    """What a run of `mean_shift` returns.

    Attributes
    ----------
    modes : ndarray of shape (k, d)
        The merged modes, largest group of starts first.
    raw_modes : ndarray of shape (starts, d)
        The end of every ascent.
    bandwidth : float
        The h used.
    n_steps : int
        Steps taken by every start.
    guarantee : NotPrivate
        Not certified: mean shift is not private at all.
    """

    modes: Array
    raw_modes: Array
    bandwidth: float
    n_steps: int
    guarantee: NotPrivate


def mean_shift(
    X: ArrayLike,
    *,
    bandwidth: float | None = None,
    n_steps: int | None = None,
    n_modes: int | None = None,
    merge_factor: float = 1.0,
    max_starts: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> MeanShiftResult:
    r"""Modes of `X` by Gaussian mean shift from the records; **not private at all**.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The records; finite.
    bandwidth : float, optional
        h in the units of `X`. None: Silverman's rule, as in section 5 of the DP-GRAMS paper.
    n_steps : int, optional
        Steps from each start. None: ``ceil(log n)``, as in the paper.
    n_modes : int, optional
        Merge to this many modes (Ward's linkage). None: merge by distance.
    merge_factor : float
        Without `n_modes`, ends linked by steps of at most this many bandwidths are one mode.
    max_starts : int, optional
        Start from a random subset of this many records. None: from all.
    random_state : int, Generator or None
        For `max_starts` only.

    Returns
    -------
    MeanShiftResult

    References
    ----------
    Fukunaga and Hostetler (1975), IEEE Transactions on Information Theory 21. Cheng (1995), IEEE PAMI 17.

    Examples
    --------
    >>> X = np.concatenate([np.linspace(-1, 1, 21), np.linspace(9, 11, 21)])
    >>> sorted(mean_shift(X, bandwidth=1.0, n_modes=2).modes.round(6).ravel().tolist())  # equally high
    [0.0, 10.0]
    """
    records = complete_records(X)
    n = records.shape[0]
    h = silverman_bandwidth(records) if bandwidth is None else check_positive(bandwidth, "bandwidth")
    merge_factor = check_positive(merge_factor, "merge_factor")
    modes = None if n_modes is None else check_count(n_modes, "n_modes")
    steps = math.ceil(math.log(max(n, 3))) if n_steps is None else check_count(n_steps, "n_steps")
    points = records
    if max_starts is not None and check_count(max_starts, "max_starts") < n:
        points = records[np.random.default_rng(random_state).choice(n, max_starts, replace=False)]
    for _ in range(steps):
        points = shift(points, records, records, h)
    return MeanShiftResult(
        modes=frozen_array(merge(points, n_modes=modes, radius=merge_factor * h)),
        raw_modes=frozen_array(points),
        bandwidth=h,
        n_steps=steps,
        guarantee=NotPrivate(mechanism="mean shift", reason="a function of the raw records, without any noise"),
    )
