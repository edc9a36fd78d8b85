r"""Plain Gaussian mean shift: the non-private method that DP-GRAMS is compared with.

.. math:: x \leftarrow m(x) = \sum_i w_i(x) X_i, \qquad
          w_i(x) = \frac{K((x - X_i)/h)}{\sum_j K((x - X_j)/h)}.

Partial mean shift: conditional modes of y given x, without privacy.

The predictor stays, the response climbs the joint kernel density along its own axis,

.. math:: y \leftarrow \frac{\sum_j K\bigl(\tfrac{x - X_j}{h_x}\bigr) K\bigl(\tfrac{y - Y_j}{h_y}\bigr) Y_j}
                            {\sum_j K\bigl(\tfrac{x - X_j}{h_x}\bigr) K\bigl(\tfrac{y - Y_j}{h_y}\bigr)}.

`climb` is the loop that `fogline_research.as_published.dp_pms` shares; `PartialMeanShiftResult` reads the ends of the
climbs as conditional modes.

References
----------
Einbeck and Tutz (2006), COMPSTAT. Chen, Genovese, Tibshirani and Wasserman (2016), *Nonparametric modal
regression*, Annals of Statistics 44.

DP-PMS as published: partial mean shift with correlated Gaussian noise after every step.

.. math:: \hat Y_i \leftarrow \frac{\sum_j w_{ij} Y_j}{\sum_j w_{ij}} + \sigma Z_i, \qquad
          w_{ij} = K\bigl((X_j, \hat Y_j), (X_i, \hat Y_i)\bigr), \qquad Z \sim \mathcal N(0, K_{\text{mesh}}),

from :math:`\hat Y = Y`. This module follows the paper; it does *not* make its privacy claim true. See `REASONS`.

References
----------
*Gradient Ascent-based Mean Shift for Differentially Private Nonparametric Mode Estimation*, supplement,
Algorithm 2 and tables 3 and 4. Hall, Rinaldo and Wasserman (2013), JMLR 14, for the correlated noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline_research.as_published._checks import NotPrivate, complete_records, frozen_array
from fogline_research.as_published.dp_grams import (
    kernel_factor,
    kernel_weights,
    merge,
    row_blocks,
    shift,
    silverman_bandwidth,
)

__all__ = [
    "KERNEL_AT",
    "REASONS",
    "MeanShiftResult",
    "PartialMeanShiftResult",
    "Setting",
    "climb",
    "dp_pms",
    "mean_shift",
    "partial_mean_shift",
    "prepare",
    "step_noise",
]

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


def _clipped_shift(points: Array, records: Array, values: Array, ends: Array, clip: float) -> Array:
    """Ends moved by the mean of the terms n w_j (Y_j - y), each clipped, as DP-GRAMS clips its own."""
    moved = np.empty(len(points))
    for rows in row_blocks(len(points), len(records)):
        weights, totals = kernel_weights(points[rows], records, 1.0)
        terms = weights * (len(records) / totals) * (values[None] - ends[rows, None])
        moved[rows] = ends[rows] + np.clip(terms, -clip, clip).mean(axis=1)
    return moved


def climb(setting: Setting, disturb: Callable[[Array], Array] | None = None, clip: float | None = None) -> Array:
    """Take all steps from all starts at once; `disturb` changes the points after each step.

    With a `clip`, each record's term is clipped before terms are averaged.

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
        if clip is None:
            ends = shift(points, records, setting.y[:, None], 1.0).ravel()
        else:
            ends = _clipped_shift(points, records, setting.y, ends, clip)
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


REASONS = (
    "every climb starts from a raw response and one estimate is published for each record, so an outlier comes out; "
    "the weighted average divides by raw weights, and Algorithm 2 does not clip it, so that no noise scale bounds what "
    "one record does; "
    "the noise that fits the printed tables spends the whole epsilon in every step; "
    "the bandwidths and the covariance of the noise read the raw data"
)


def step_noise(*, n: int, bandwidth: float, epsilon: float, delta: float, n_steps: int, compose: bool = False) -> float:
    r"""Our reading of CalibrateNoise: the Gaussian mechanism at sensitivity :math:`2 C_*/n`.

    .. math:: \sigma = \frac{2 C_*}{n\,\varepsilon_t} \sqrt{2 \ln\frac{1.25}{\delta_t}}, \qquad
              C_* = \frac{K(0)}{h} = \frac{1}{\sqrt{2\pi}\,h}.

    Without `compose` every step has the whole epsilon and delta, which no theorem allows over T steps. With it
    the T steps share them as in the paper's proof for DP-GRAMS,
    :math:`\varepsilon_t = \varepsilon / \sqrt{8T\ln(2/\delta)}`, :math:`\delta_t = \delta / 2T`.

    Examples
    --------
    >>> setting = {"n": 300, "bandwidth": 0.285, "epsilon": 1.0, "delta": 1e-5, "n_steps": 6}
    >>> round(step_noise(**setting), 4), round(step_noise(**setting, compose=True), 2)
    (0.0452, 1.2)
    """
    step_epsilon, step_delta = epsilon, delta
    if compose:
        step_epsilon /= math.sqrt(8.0 * n_steps * math.log(2.0 / delta))
        step_delta /= 2.0 * n_steps
    clip = 1.0 / (math.sqrt(2.0 * math.pi) * bandwidth)
    return 2.0 * clip / (n * step_epsilon) * math.sqrt(2.0 * math.log(1.25 / step_delta))


def dp_pms(
    X: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    mesh: ArrayLike | None = None,
    bandwidth: float | Sequence[float] | None = None,
    n_steps: int | None = None,
    kernel_at: str = "iterates",
    clip: float | None = None,
    compose: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> PartialMeanShiftResult:
    """Conditional modes of `y` given `X` by DP-PMS, Algorithm 2 of the supplement. **Not certified**: see `REASONS`.

    The supplement names procedures without saying what they do; ours are marked. They were chosen by looking at
    its tables 3 and 4; on fresh seeds, 10 runs a cell, the mean squared error against partial mean shift with
    the same weights is within a factor of two of the printed one in 30 of 32 cells (the others: 2.3 and 2.1
    times higher). ``docs/gaps.md`` says what else was tried.

    Parameters
    ----------
    X : array-like of shape (n, p) or (n,)
        The predictors; finite.
    y : array-like of shape (n,)
        The responses; finite.
    epsilon, delta : float
        The privacy that the paper claims for the answer.
    mesh : array-like of shape (k, p + 1), optional
        Starts: predictors and a first response. None: the records themselves, as printed. With a mesh, records
        have no climb of their own, and `kernel_at` is "responses".
    bandwidth : float or pair of float, optional
        For the predictors and the response. Ours (ComputeBandwidth): Silverman's rule for each. The supplement
        prints one h, from the responses alone: with it the sinusoid of its second data set is smoothed away.
    n_steps : int, optional
        T. Ours: ``ceil(log n)``, as for DP-GRAMS.
    kernel_at : {"iterates", "responses"}
        Where a record's kernel sits: at where its own climb stands, as printed, or at its response.
    clip : float, optional
        The prose below Algorithm 2 speaks of clipped gradients, the algorithm of a weighted average. None: the
        average. Else every term n w (Y_j - y) is clipped to this, as in DP-GRAMS.
    compose : bool
        Ours (CalibrateNoise): False, every step spends the whole epsilon, as the errors in the tables ask for;
        True: the steps share it, and the noise is some 25 times larger. See `step_noise`.
    random_state : int, Generator or None
        Source of the noise, which is floating point from numpy: for experiments.

    Returns
    -------
    PartialMeanShiftResult

    Notes
    -----
    All starts move at once. The covariance of the noise is the kernel of the starting responses, whatever their
    predictors, as printed. Work is of order ``k * n * T``.

    Examples
    --------
    >>> x = np.linspace(0, 1, 300)
    >>> y = np.where(np.arange(300) % 2, 3.0, 1.0) + 0.2 * np.sin(np.arange(300))
    >>> result = dp_pms(x, y, epsilon=1.0, delta=1e-5, random_state=0)
    >>> result.branches.shape, result.guarantee.certified
    ((300,), False)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    setting = prepare(X, y, mesh=mesh, bandwidth=bandwidth, n_steps=n_steps, kernel_at=kernel_at)
    h_y, T = setting.bandwidths[1], setting.n_steps
    sigma = step_noise(n=len(setting.y), bandwidth=h_y, epsilon=epsilon, delta=delta, n_steps=T, compose=compose)
    rng = np.random.default_rng(random_state)
    factor = kernel_factor(setting.starts[:, None], h_y)
    bound = None if clip is None else check_positive(clip, "clip")
    ends = climb(setting, lambda points: points + sigma * (factor @ rng.standard_normal(factor.shape[1])), bound)
    return PartialMeanShiftResult(
        x=frozen_array(setting.x),
        branches=frozen_array(ends),
        bandwidths=setting.bandwidths,
        n_steps=T,
        noise_scale=sigma,
        guarantee=Guarantee.uncertified(
            epsilon=epsilon, delta=delta, reason=REASONS, neighbours="replace", mechanism="DP-PMS (as published)"
        ),
    )
