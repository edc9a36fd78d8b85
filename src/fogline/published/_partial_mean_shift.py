r"""Partial mean shift: conditional modes of y given x, without privacy.

The predictor stays, the response climbs the joint kernel density along its own axis,

.. math:: y \leftarrow \frac{\sum_j K\bigl(\tfrac{x - X_j}{h_x}\bigr) K\bigl(\tfrac{y - Y_j}{h_y}\bigr) Y_j}
                            {\sum_j K\bigl(\tfrac{x - X_j}{h_x}\bigr) K\bigl(\tfrac{y - Y_j}{h_y}\bigr)}.

`climb` is the loop that `fogline.published.dp_pms` shares; `PartialMeanShiftResult` reads the ends of the climbs
as conditional modes.

References
----------
Einbeck and Tutz (2006), COMPSTAT. Chen, Genovese, Tibshirani and Wasserman (2016), *Nonparametric modal
regression*, Annals of Statistics 44.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from fogline._validation import check_count, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline.published._checks import NotPrivate, complete_records, frozen_array
from fogline.published._kernel import shift, silverman_bandwidth

__all__ = ["KERNEL_AT", "PartialMeanShiftResult", "Setting", "climb", "partial_mean_shift", "prepare"]

Array = NDArray[np.float64]

KERNEL_AT = ("iterates", "responses")
NEAREST = 15
LEAST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class PartialMeanShiftResult:
    """Ends of the climbs of `partial_mean_shift` or `dp_pms`.

    Attributes
    ----------
    x : ndarray of shape (k, p)
        The predictors of the starts: those of the records, unless a mesh was given.
    branches : ndarray of shape (k,)
        The estimate at each of them.
    bandwidths : tuple of (float, float)
        For the predictors and for the response.
    n_steps : int
    noise_scale : float
        Standard deviation of the noise that each step added; 0 without privacy.
    guarantee : Guarantee or NotPrivate
        Never certified.
    """

    x: Array
    branches: Array
    bandwidths: tuple[float, float]
    n_steps: int
    noise_scale: float
    guarantee: Guarantee | NotPrivate

    def predict_modes(self, X: ArrayLike) -> list[Array]:
        """Conditional modes at each row of `X`, ascending.

        The paper gives one estimate a start and no rule to join them; this one is ours, the best for the two
        simulated data sets of several that we tried. Take the ends of the 15 nearest starts, cut them where two
        neighbours are more than a bandwidth of the response apart, drop groups with less than a tenth of them,
        and take each group's mean.

        Examples
        --------
        >>> x = np.linspace(0, 1, 200)
        >>> result = partial_mean_shift(x, np.arange(200) % 2 * 3.0)
        >>> [float(mode) for mode in result.predict_modes([0.5])[0].round(3)]
        [0.0, 3.0]
        """
        queries = complete_records(X, "X", self.x.shape[1])
        _, nearest = cKDTree(self.x).query(queries, k=list(range(1, min(NEAREST, len(self.x)) + 1)))
        return [_groups(self.branches[rows], self.bandwidths[1]) for rows in nearest]


def _groups(ends: Array, gap: float) -> Array:
    """Means of the groups into which the sorted ends fall where a gap is wider than `gap`."""
    ends = np.sort(ends)
    parts = np.split(ends, np.flatnonzero(np.diff(ends) > gap) + 1)
    return np.array([part.mean() for part in parts if part.size >= LEAST_SHARE * ends.size])


@dataclass(frozen=True, eq=False)
class Setting:
    """What both algorithms start from, checked.

    Attributes
    ----------
    X, y : ndarray of shape (n, p), (n,)
        The records.
    x, starts : ndarray of shape (k, p), (k,)
        Where the climbs begin.
    bandwidths : tuple of (float, float)
    n_steps : int
    at_iterates : bool
        Whether a record weighs by where its own climb stands, not by its response.
    """

    X: Array
    y: Array
    x: Array
    starts: Array
    bandwidths: tuple[float, float]
    n_steps: int
    at_iterates: bool


def prepare(
    X: ArrayLike,
    y: ArrayLike,
    *,
    mesh: ArrayLike | None,
    bandwidth: float | Sequence[float] | None,
    n_steps: int | None,
    kernel_at: str,
) -> Setting:
    """Check what both algorithms take; see `partial_mean_shift` for the parameters.

    Examples
    --------
    >>> prepare([0, 1], [2, 3], mesh=None, bandwidth=1.0, n_steps=None, kernel_at="responses").bandwidths
    (1.0, 1.0)
    """
    predictors = complete_records(X)
    n, p = predictors.shape
    responses = complete_records(y, "y", 1).ravel()
    if responses.size != n:
        raise ValueError(f"y must have the {n} rows of X, got {responses.size}")
    if kernel_at not in KERNEL_AT:
        raise ValueError(f"kernel_at must be one of {', '.join(KERNEL_AT)}, got {kernel_at!r}")
    points = np.column_stack([predictors, responses])
    if mesh is not None:
        points = complete_records(mesh, "mesh", p + 1)
    if bandwidth is None:
        h_x, h_y = silverman_bandwidth(predictors), silverman_bandwidth(responses[:, None])
    else:
        pair = list(bandwidth) if isinstance(bandwidth, Sequence) else [bandwidth, bandwidth]
        if len(pair) != 2:
            raise ValueError("bandwidth must be one number, or one for the predictors and one for the response")
        h_x, h_y = (check_positive(h, "bandwidth") for h in pair)
    steps = math.ceil(math.log(max(n, 3))) if n_steps is None else check_count(n_steps, "n_steps")
    at_iterates = kernel_at == "iterates" and mesh is None
    return Setting(predictors, responses, points[:, :p], points[:, p], (h_x, h_y), steps, at_iterates)


def climb(setting: Setting, disturb: Callable[[Array], Array] | None = None) -> Array:
    """Take all steps from all starts at once; `disturb` changes the points after each step.

    Examples
    --------
    >>> setting = prepare([0, 0], [0, 2], mesh=None, bandwidth=9.0, n_steps=1, kernel_at="responses")
    >>> climb(setting).round(2).tolist()
    [0.99, 1.01]
    """
    h_x, h_y = setting.bandwidths
    ends = setting.starts
    for _ in range(setting.n_steps):
        centres = ends if setting.at_iterates else setting.y
        points = np.column_stack([setting.x / h_x, ends / h_y])
        records = np.column_stack([setting.X / h_x, centres / h_y])
        ends = shift(points, records, setting.y[:, None], 1.0).ravel()
        if disturb is not None:
            ends = disturb(ends)
    return ends


def partial_mean_shift(
    X: ArrayLike,
    y: ArrayLike,
    *,
    mesh: ArrayLike | None = None,
    bandwidth: float | Sequence[float] | None = None,
    n_steps: int | None = None,
    kernel_at: str = "responses",
) -> PartialMeanShiftResult:
    """Conditional modes of `y` given `X` by partial mean shift; **not private at all**.

    Parameters
    ----------
    X : array-like of shape (n, p) or (n,)
        The predictors; finite.
    y : array-like of shape (n,)
        The responses; finite.
    mesh : array-like of shape (k, p + 1), optional
        Starts: predictors and a first response. None: the records themselves.
    bandwidth : float or pair of float, optional
        For the predictors and the response. None: Silverman's rule for each.
    n_steps : int, optional
        None: ``ceil(log n)``, as elsewhere in the DP-GRAMS paper.
    kernel_at : {"responses", "iterates"}
        Where a record's kernel sits: at its response, as Chen et al. have it, or at where its own climb
        stands, as Algorithm 2 of the DP-GRAMS supplement prints it. With a mesh, always at the responses:
        records then have no climb of their own.

    Returns
    -------
    PartialMeanShiftResult

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)
    >>> result = partial_mean_shift(x, 3.0 * x, bandwidth=0.1)
    >>> result.branches.shape, result.guarantee.certified
    ((100,), False)
    """
    setting = prepare(X, y, mesh=mesh, bandwidth=bandwidth, n_steps=n_steps, kernel_at=kernel_at)
    return PartialMeanShiftResult(
        x=frozen_array(setting.x),
        branches=frozen_array(climb(setting)),
        bandwidths=setting.bandwidths,
        n_steps=setting.n_steps,
        noise_scale=0.0,
        guarantee=NotPrivate(mechanism="partial mean shift", reason="a function of the raw records, without any noise"),
    )
