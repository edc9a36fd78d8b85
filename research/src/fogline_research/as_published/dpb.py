"""DPB as the integral-privacy paper runs it: the Bernstein mechanism, its bandwidth chosen by ten folds of the records.

`fogline_research.baselines.BernsteinDensity` is the certified form, with a public bandwidth. Here the choice reads all
records and nothing pays for it: **not certified**.

References
----------
Integral privacy for sampling, section 5; Alda and Rubinstein, "The Bernstein mechanism", AAAI 2017.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_bounds, check_count
from fogline_research.as_published._checks import complete_records
from fogline_research.as_published.mixture_parts import claimed
from fogline_research.baselines.bernstein import BernsteinDensity

__all__ = ["cross_validated_bandwidth", "dpb"]

Array = NDArray[np.float64]

BANDWIDTHS = (0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.09)
"""Tried, as parts of a side; ours, since the paper names none."""

MOST = 2000
"""Records that the folds are made of, drawn from all; ours, for the sake of time."""

REASON = "ten folds of the records choose the bandwidth, and no budget pays for it"


def cross_validated_bandwidth(
    X: ArrayLike,
    bounds: ArrayLike,
    *,
    folds: int = 10,
    bandwidths: tuple[float, ...] = BANDWIDTHS,
    random_state: int | np.random.Generator | None = None,
) -> float:
    """Bandwidth of a Gaussian kernel, as a part of each side, with the greatest left_out-out likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wide, narrow = (cross_validated_bandwidth(rng.normal(size=(400, 1)) * s, [(-5, 5)], random_state=0)
    ...                 for s in (1.0, 0.2))
    >>> wide > narrow
    True
    """
    box, rng = check_bounds(bounds), np.random.default_rng(random_state)
    rows = (complete_records(X) - box[:, 0]) / (box[:, 1] - box[:, 0])
    rows = rng.permutation(rows)[:MOST]
    part = np.arange(len(rows)) % min(check_count(folds, "folds", minimum=2), len(rows))
    squares = ((rows[:, None] - rows) ** 2).sum(axis=2)
    apart = part[:, None] != part
    scores = []
    for bandwidth in bandwidths:
        kernel = np.exp(-0.5 * squares / bandwidth**2) / bandwidth ** rows.shape[1]
        left_out = np.where(apart, kernel, 0.0).sum(axis=1) / apart.sum(axis=1)
        scores.append(float(np.log(np.maximum(left_out, 1e-300)).mean()))
    return bandwidths[int(np.argmax(scores))]


def dpb(
    X: ArrayLike,
    *,
    epsilon: float,
    bounds: ArrayLike,
    folds: int = 10,
    degree: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> BernsteinDensity:
    """Density by DPB with a cross-validated bandwidth and the original's sensitivity. **Not certified**.

    Parameters
    ----------
    X, epsilon, bounds, degree
        As for `BernsteinDensity.fit`.
    folds : int
    random_state : int, Generator or None
        Of the folds.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> found = dpb(X, epsilon=1.0, bounds=[(-5, 5)], random_state=0)
    >>> found.guarantee.certified, found.bandwidth in BANDWIDTHS
    (False, True)
    """
    width = cross_validated_bandwidth(X, bounds, folds=folds, random_state=random_state)
    found = BernsteinDensity.fit(X, epsilon=epsilon, bounds=bounds, degree=degree, bandwidth=width, sensitivity="sup")
    return replace(found, guarantee=claimed("DPB", epsilon, 0.0, REASON))
