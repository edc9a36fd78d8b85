r"""What private minimum Hellinger distance needs of the data: the loss, its derivatives, and constants of its noise.

With a kernel density :math:`g_n` and a family :math:`f_\theta` with score :math:`u_\theta`, appendix E of the paper has

.. math:: L_n(\theta) = 2\,HD^2(g_n, f_\theta) = 4 - 4\int\sqrt{g_n f_\theta}, \qquad
          \nabla L_n = -2\int\sqrt{g_n f_\theta}\,u_\theta, \qquad
          H_n = -\int\sqrt{g_n f_\theta}\,(u_\theta u_\theta^\top + 2\nabla u_\theta).

Each integral is a weighted sum over nodes: a fine grid, or the paper's draws from :math:`g_n`. Both read raw records.

References
----------
Deng and Vidyashankar, *Private Minimum Hellinger Distance Estimation via Hellinger Distance Differential Privacy*,
supplement, sections 6.7 and 6.8 and appendix E.

What the two private Hellinger iterations share: the setting, the share of a step, the result, its intervals.

Theorem 24 puts the L2 sensitivity of the gradient at :math:`C\sqrt m\,n^{-1/p}` for some p in (1, 2], Proposition 20
at p = 2 for every data set. C is not given; where Proposition 20 has it, it depends on theta, and here is taken at the
current iterate.

PGD as published: private gradient descent on the Hellinger loss.

.. math:: \theta_{k} = \theta_{k-1} - \eta\bigl(\nabla L_n(\theta_{k-1}) + \Delta_n c_{\varepsilon'} Z_k\bigr),
          \qquad h_K(\varepsilon') = \varepsilon .

This module follows the paper; it does *not* make its privacy claim true. See `REASONS`.

References
----------
Deng and Vidyashankar, *Private Minimum Hellinger Distance Estimation via Hellinger Distance Differential Privacy*,
supplement, Propositions 12, 20 and 23, Theorem 24, appendix E.

PNR as published: private Newton-Raphson on the Hellinger loss.

.. math:: \theta_{k} = \theta_{k-1} - \eta\,(H_n(\theta_{k-1}) + W_k)^{-1}(\nabla L_n(\theta_{k-1}) + N_k),
          \qquad N_k = \Delta_n c_{\varepsilon'/2} Z_k, \quad W_k = \Delta_n^{(H)} c_{\varepsilon'/2} \tilde Z_k .

This module follows the paper; it does *not* make its privacy claim true. See
`fogline_research.as_published.hellinger.REASONS`.

References
----------
Deng and Vidyashankar, *Private Minimum Hellinger Distance Estimation via Hellinger Distance Differential Privacy*,
supplement, Propositions 12, 13, 20 and 23, Theorem 24, appendix E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_count, check_level, check_positive
from fogline.accounting import Guarantee, HellingerBudget, PowerBudget, zcdp
from fogline.families import UnivariateFamily, family_named
from fogline_research.as_published._checks import NotPrivate, check_fraction, complete_records, frozen_array

__all__ = [
    "REASONS",
    "ROOT_MASS",
    "HellingerResult",
    "Nodes",
    "Setting",
    "aberrant",
    "claim",
    "fisher_information",
    "gradient",
    "gradient_constant",
    "hessian",
    "hessian_constant",
    "kernel_values",
    "last_noise",
    "loss",
    "node_grid",
    "node_sample",
    "one_dimensional",
    "pgd",
    "pnr",
    "prepare",
    "privacy",
    "result",
    "rule_of_thumb",
    "sharp_sensitivity",
    "step_rho",
]

Array = NDArray[np.float64]

_GRID_CELLS = 600
_LOW, _HIGH = -2.4573, 2.5758
"""Standard normal quantiles of 0.7% and 99.5%."""

# Nodes for means under the family: probabilities expit(t) on an even grid of t, which converges geometrically.
_T = np.linspace(-22.0, 22.0, 177)
_PROBABILITY = 1.0 / (1.0 + np.exp(-_T))
_MASS = _PROBABILITY * _PROBABILITY[::-1] * (_T[1] - _T[0])


@dataclass(frozen=True, eq=False)
class Nodes:
    r"""Where an integral :math:`\int\sqrt{g_n}\,\phi` is summed: points, and the weights that take in :math:`g_n`."""

    x: Array
    weights: Array


def one_dimensional(family: object) -> UnivariateFamily:
    """Return a family on the line, from its name or as it is.

    Examples
    --------
    >>> one_dimensional("bivariate normal")
    Traceback (most recent call last):
    ValueError: family must have one dimension, got bivariate normal...
    """
    found = family_named(family)
    if found.dimension != 1:
        raise ValueError(f"family must have one dimension, got {family}")
    return cast(UnivariateFamily, found)


def rule_of_thumb(x: Array) -> float:
    r"""Half-width of the kernel, :math:`0.9 \min(s, \mathrm{IQR}/1.34)\, n^{-1/5}`; 1 where the data do not vary.

    The supplement asks for a compact kernel and a rate, no more. Silverman's figure, read as the *half-width* of
    Epanechnikov's kernel, gives the printed non-private means of sigma to about 0.01 at every n.

    Examples
    --------
    >>> round(rule_of_thumb(np.random.default_rng(0).normal(5, 2, size=1000)), 2)
    0.44
    """
    low, high = np.quantile(x, [0.25, 0.75])
    spreads = [value for value in (float(np.std(x)), float(high - low) / 1.34) if value > 0.0]
    return 0.9 * min(spreads) * len(x) ** -0.2 if spreads else 1.0


def kernel_values(at: Array, x: Array, bandwidth: float) -> Array:
    r"""Density estimate with Epanechnikov's kernel :math:`\tfrac34(1 - t^2)` on [-1, 1], from sorted records.

    Within a window of width 2h the estimate is a polynomial in sums of the records, so that a point costs two
    searches whatever the number of records.

    Examples
    --------
    >>> kernel_values(np.array([0.0, 0.5, 2.0]), np.array([0.0]), 1.0)
    array([0.75  , 0.5625, 0.    ])
    """
    middle = float(x[len(x) // 2])
    x, at = x - middle, at - middle
    first, second = (np.concatenate([[0.0], np.cumsum(power)]) for power in (x, x * x))
    low, high = np.searchsorted(x, at - bandwidth), np.searchsorted(x, at + bandwidth)
    number = high - low
    square = number * at * at - 2.0 * at * (first[high] - first[low]) + second[high] - second[low]
    values = 0.75 / (len(x) * bandwidth) * (number - square / bandwidth**2)
    return np.where(number > 0, np.maximum(values, 0.0), 0.0)


def node_grid(x: Array, bandwidth: float) -> Nodes:
    """Midpoints of even cells over where the density estimate of the sorted records is positive.

    Examples
    --------
    >>> nodes = node_grid(np.array([0.0]), 1.0)
    >>> round(float(np.sum(nodes.weights**2) / (nodes.x[1] - nodes.x[0])), 4)
    1.0
    """
    low, high = x[0] - bandwidth, x[-1] + bandwidth
    width = (high - low) / _GRID_CELLS
    points = low + width * (np.arange(_GRID_CELLS) + 0.5)
    return Nodes(points, width * np.sqrt(kernel_values(points, x, bandwidth)))


def node_sample(x: Array, bandwidth: float, size: int, rng: np.random.Generator) -> Nodes:
    """The paper's Monte-Carlo integrals: draws from the density estimate, which are records moved by the kernel.

    Examples
    --------
    >>> nodes = node_sample(np.array([7.0]), 1.0, 1000, np.random.default_rng(0))
    >>> float(abs(nodes.x - 7.0).max()) < 1.0
    True
    """
    points = rng.choice(x, size) + bandwidth * (2.0 * rng.beta(2.0, 2.0, size) - 1.0)
    # A draw at the very edge of all windows may round to an estimate of 0.
    values = np.maximum(kernel_values(points, x, bandwidth), 1e-12)
    return Nodes(points, 1.0 / (size * np.sqrt(values)))


def loss(family: UnivariateFamily, theta: ArrayLike, nodes: Nodes) -> float:
    r"""Return :math:`L_n(\theta) = 4 - 4\int\sqrt{g_n f_\theta}`.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> nodes = node_grid(np.sort(np.random.default_rng(0).normal(size=500)), 0.3)
    >>> loss(Normal(), [0.0, 1.0], nodes) < loss(Normal(), [1.0, 1.0], nodes) < 4.0
    True
    """
    inside, _ = _mirrored(family, theta)
    return 4.0 - 4.0 * float(_roots(family, inside, nodes).sum())


def gradient(family: UnivariateFamily, theta: ArrayLike, nodes: Nodes) -> Array:
    r"""Return :math:`\nabla L_n(\theta)`.

    A parameter that must be positive may be pushed below 0 by noise; the loss is then continued evenly, as the formulas
    of the normal density are in sigma.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> nodes = node_grid(np.sort(np.random.default_rng(0).normal(5, 2, size=500)), 0.5)
    >>> bool(gradient(Normal(), [4.0, 2.0], nodes)[0] < 0.0)
    True
    """
    inside, signs = _mirrored(family, theta)
    return signs * (-2.0 * _roots(family, inside, nodes) @ family.score(inside, nodes.x))


def hessian(family: UnivariateFamily, theta: ArrayLike, nodes: Nodes) -> Array:
    r"""Return :math:`H_n(\theta)`, continued as the gradient is.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> nodes = node_grid(np.sort(np.random.default_rng(0).normal(size=5000)), 0.2)
    >>> hessian(Normal(), [0.0, 1.0], nodes).round() + 0.0  # the Fisher information, about
    array([[1., 0.], [0., 2.]])
    """
    inside, signs = _mirrored(family, theta)
    parts = _curvature(family, inside, nodes.x)
    return np.outer(signs, signs) * -np.tensordot(_roots(family, inside, nodes), parts, axes=1)


def fisher_information(family: UnivariateFamily, theta: ArrayLike) -> Array:
    """Return the Fisher information of one record.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> fisher_information(Normal(), [5.0, 2.0]).round(6) + 0.0
    array([[0.25, 0.  ], [0.  , 0.5 ]])
    """
    inside, _ = _mirrored(family, theta)
    scores = family.score(inside, family.quantile(inside, _PROBABILITY))
    return np.asarray((scores * _MASS[:, None]).T @ scores)


def gradient_constant(family: UnivariateFamily, theta: ArrayLike) -> float:
    r"""Return the constant of Proposition 20, :math:`C = \max_i 2\sqrt2\,(\int f_\theta u_i^2)^{1/2}`, at one theta.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> round(gradient_constant(Normal(), [5.0, 2.0]), 6)
    2.0
    """
    return 2.0 * math.sqrt(2.0 * float(np.diag(fisher_information(family, theta)).max()))


ROOT_MASS = math.sqrt(0.75) * math.pi / 2.0
"""Integral of the root of Epanechnikov's kernel, the square root of 3/4 times (1 - t^2), over [-1, 1]."""


def sharp_sensitivity(
    family: UnivariateFamily, theta: ArrayLike, *, n: int, bandwidth: float, replaced: int = 1
) -> float:
    r"""Return a bound on the gradient's move for *every* data set, of order :math:`\sqrt{h/n}`.

    .. math:: \|\nabla L_n - \nabla L'_n\|_2 \le 4c\sqrt{h/n}\;\int\sqrt K\;\sup_x\|\sqrt{f_\theta(x)}\,u_\theta(x)\|_2

    for c replaced records, a bandwidth h that does not depend on them and exact integrals: it repairs Theorem 24, whose
    :math:`n^{-1/p}` it gives for :math:`h = n^{2/p - 1}` up to a constant, without assumption (U3). The proof is in
    ``hellinger_sensitivity.md`` beside this file. The supremum is taken over a fine grid of quantiles.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> old = gradient_constant(Normal(), [0.0, 1.0]) * math.sqrt(2 / 10_000)
    >>> round(old / sharp_sensitivity(Normal(), [0.0, 1.0], n=10_000, bandwidth=0.9 * 10_000**-0.2), 1)
    3.3
    """
    inside, _ = _mirrored(family, theta)
    probability = np.concatenate([_PROBABILITY, np.linspace(0.0, 1.0, 2003)[1:-1]])
    x = family.quantile(inside, probability)
    heights = np.exp(0.5 * family.logpdf(inside, x)) * np.linalg.norm(family.score(inside, x), axis=1)
    return float(4.0 * replaced * math.sqrt(bandwidth / n) * ROOT_MASS * heights.max())


def hessian_constant(family: UnivariateFamily, theta: ArrayLike) -> float:
    r"""Return its counterpart for the Hessian, :math:`\max_{ij} \sqrt2\,(\int f (u_i u_j + 2 u_{ij})^2)^{1/2}`.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> round(hessian_constant(Normal(), [5.0, 2.0]), 3)  # sqrt(2 * 36)/4
    2.121
    """
    inside, _ = _mirrored(family, theta)
    parts = _curvature(family, inside, family.quantile(inside, _PROBABILITY))
    return math.sqrt(2.0 * float(np.tensordot(_MASS, parts**2, axes=1).max()))


def aberrant(estimates: ArrayLike, center: ArrayLike, scale: ArrayLike) -> NDArray[np.bool_]:
    """Say which private estimates of a mean section E.3 leaves out of its tables.

    Those outside the 0.7% and 99.5% quantiles of a normal law with the *non-private* estimates of mean and standard
    deviation: a rule for a simulation, which no user of a private release could follow.

    Examples
    --------
    >>> aberrant([5.0, 11.0, -1.0, np.nan], center=5.0, scale=2.0)
    array([False,  True,  True,  True])
    """
    values, middle, width = (np.asarray(part, dtype=np.float64) for part in (estimates, center, scale))
    z = (values - middle) / width
    return ~((z >= _LOW) & (z <= _HIGH))


def _mirrored(family: UnivariateFamily, theta: ArrayLike) -> tuple[Array, Array]:
    """Return parameters that the family takes, and the signs that the mirror at 0 gives to derivatives."""
    values = np.asarray(theta, dtype=np.float64)
    mirrored = np.array([low == 0.0 for low, _ in family.limits]) & (values <= 0.0)
    inside = np.where(mirrored, np.maximum(-values, np.finfo(np.float64).tiny), values)
    return inside, np.where(mirrored, -1.0, 1.0)


def _roots(family: UnivariateFamily, theta: Array, nodes: Nodes) -> Array:
    return nodes.weights * np.exp(0.5 * family.logpdf(theta, nodes.x))


def _curvature(family: UnivariateFamily, theta: Array, x: Array) -> Array:
    score = family.score(theta, x)
    return score[:, :, None] * score[:, None, :] + 2.0 * family.log_hessian(theta, x)


_DELTA = 1e-5
"""At which a claim is put into epsilon and delta for a reader; the algorithms have none."""


@dataclass(frozen=True, eq=False)
class HellingerResult:
    """What a run of `pgd` or `pnr` returns.

    Attributes
    ----------
    params : mapping of str to float
        The last iterate. A scale may come out negative: see `fogline_research.as_published.hellinger.gradient`.
    iterates : ndarray of shape (K + 1, m)
        The path, from the start on.
    sampling_covariance, privacy_covariance : ndarray of shape (m, m)
        Of the last iterate: the inverse Fisher information over n, and what the noise adds (ours, linearised).
    bandwidth : float
        Half-width of the kernel.
    noise_scales : ndarray of shape (K,)
        Standard deviation of the noise that each step added to each coordinate of the gradient.
    guarantee : Guarantee or NotPrivate
        Never certified.
    """

    params: Mapping[str, float]
    iterates: Array
    sampling_covariance: Array
    privacy_covariance: Array
    bandwidth: float
    noise_scales: Array
    guarantee: Guarantee | NotPrivate

    def intervals(
        self, level: float = 0.95, *, corrected: bool = True, kappa: float | None = None
    ) -> dict[str, tuple[float, float]]:
        """Return Wald intervals; corrected ones take in the noise, uncorrected ones the sampling alone.

        The supplement reports coverage of both and says how neither is made. Ours add the linearised noise of the last
        iterate. With `kappa` they add kappa times the variance of one step's noise to either parameter alike: with 0.5,
        about the step size, this comes near the printed coverage of gradient descent.
        """
        z = NormalDist().inv_cdf(0.5 + 0.5 * check_level(level))
        added = self.privacy_covariance
        if kappa is not None:
            added = kappa * float(self.noise_scales[-1]) ** 2 * np.eye(len(added))
        total = self.sampling_covariance + (added if corrected else 0.0)
        errors = z * np.sqrt(np.diag(total))
        pairs = zip(self.params.items(), errors, strict=True)
        return {name: (value - float(error), value + float(error)) for (name, value), error in pairs}


@dataclass(frozen=True, eq=False)
class Setting:
    """What an iteration reads: all of it raw or chosen by hand."""

    family: UnivariateFamily
    n: int
    start: Array
    nodes: Nodes
    bandwidth: float
    n_iterations: int
    rate: float
    rng: np.random.Generator

    def sensitivity(self, constant: float, power: float) -> float:
        """Return the claimed sensitivity: constant times m to this power times n to minus the rate."""
        return float(constant * len(self.start) ** power * self.n**-self.rate)


def prepare(
    x: ArrayLike,
    *,
    family: object,
    start: ArrayLike | Mapping[str, float],
    bandwidth: float | None,
    n_iterations: int,
    rate: float,
    draws: int | None,
    random_state: int | np.random.Generator | None,
) -> Setting:
    """Check everything and lay out the nodes."""
    known = one_dimensional(family)
    if isinstance(start, Mapping):
        if set(start) != set(known.parameters):
            raise ValueError(f"start must name {', '.join(known.parameters)}, got {', '.join(map(str, start))}")
        start = [start[name] for name in known.parameters]
    first = np.array(start, dtype=np.float64)
    if first.shape != (len(known.parameters),) or not np.isfinite(first).all():
        raise ValueError(f"start must be a finite number for each of {', '.join(known.parameters)}")
    for name, (low, high), value in zip(known.parameters, known.limits, first, strict=True):
        if not low < value < high:
            raise ValueError(f"start: {name} must lie strictly between {low} and {high}, got {value}")
    n_iterations, rate = check_count(n_iterations, "n_iterations"), check_fraction(rate, "rate")
    h = None if bandwidth is None else check_positive(bandwidth, "bandwidth")
    size = None if draws is None else check_count(draws, "draws")
    rows = complete_records(x, "x")
    if rows.shape[1] != 1:
        raise ValueError(f"x must be one column, got {rows.shape[1]}")
    values = np.sort(rows[:, 0])
    h = rule_of_thumb(values) if h is None else h
    rng = np.random.default_rng(random_state)
    nodes = node_grid(values, h) if size is None else node_sample(values, h, size, rng)
    return Setting(known, len(values), first, nodes, h, n_iterations, rate, rng)


def privacy(hdp: float | None, pdp: object) -> PowerBudget | None:
    """Return the claim as a power divergence; None for a run without noise.

    Examples
    --------
    >>> privacy(0.5, None)
    PowerBudget(power=-0.5, epsilon=1.0)
    """
    if hdp is not None and pdp is not None:
        raise TypeError("a budget is given in one currency: got hdp and pdp")
    if hdp is not None:
        return HellingerBudget(hdp).power
    if pdp is None:
        return None
    if not isinstance(pdp, tuple | list) or len(pdp) != 2:
        raise TypeError("pdp must be a pair (power, epsilon)")
    return PowerBudget(*pdp)


def step_rho(budget: PowerBudget, n_iterations: int, releases: int) -> float:
    r"""Return the rho of each release: :math:`\varepsilon' = h_K^{-1}(\varepsilon)`, split evenly between releases.

    Examples
    --------
    >>> round(step_rho(PowerBudget(-0.5, 0.4), 50, 1), 5)  # -4 log(0.9) / 50
    0.00843
    """
    step = budget.share(n_iterations)
    return PowerBudget(step.power, step.epsilon / releases).gaussian_rho(sensitivity=math.inf)


def last_noise(setting: Setting, step: float, scale: float, information: Array) -> Array:
    r"""Return the covariance that the noise leaves in the last of K gradient steps, linearised at the optimum.

    .. math:: \eta^2 s^2 \sum_{k<K} (1 - \eta I)^{2k} .

    Examples
    --------
    >>> from fogline.families import Exponential
    >>> setting = prepare([1.0, 2.0], family="exponential", start=[1.0], bandwidth=None, n_iterations=1, rate=0.5,
    ...                   draws=None, random_state=0)
    >>> last_noise(setting, 0.5, 2.0, np.eye(1)).tolist()
    [[1.0]]
    """
    eigenvalues, vectors = np.linalg.eigh(information)
    shrinkage = (1.0 - step * eigenvalues) ** 2
    with np.errstate(over="ignore"):
        total: Array = np.sum([shrinkage**k for k in range(setting.n_iterations)], axis=0)
    return np.asarray(step**2 * scale**2 * (vectors * total) @ vectors.T)


def claim(budget: PowerBudget | None, name: str, reasons: str) -> Guarantee | NotPrivate:
    """Return what the paper says of a run, marked as not certified."""
    if budget is None:
        return NotPrivate(mechanism=f"{name} without noise", reason="a function of the raw records, without any noise")
    rho = budget.gaussian_rho(sensitivity=math.inf)
    stated = f"{budget.epsilon / 2.0:g}-HDP" if budget.power == -0.5 else f"({budget.power:g}, {budget.epsilon:g})-PDP"
    return Guarantee.uncertified(
        epsilon=zcdp.epsilon_of(rho, _DELTA),
        delta=_DELTA,
        rho=rho,
        reason=reasons,
        neighbours="replace",
        mechanism=f"{name} (as published), {stated}",
    )


def result(
    setting: Setting,
    path: list[Array],
    scales: list[float],
    privacy_covariance: Array,
    guarantee: Guarantee | NotPrivate,
) -> HellingerResult:
    """Freeze a run."""
    last = path[-1]
    sampling = np.full((len(last), len(last)), np.nan)
    if np.isfinite(last).all():
        sampling = np.linalg.pinv(fisher_information(setting.family, last)) / setting.n
    return HellingerResult(
        params=MappingProxyType(dict(zip(setting.family.parameters, map(float, last), strict=True))),
        iterates=frozen_array(np.array(path)),
        sampling_covariance=frozen_array(sampling),
        privacy_covariance=frozen_array(privacy_covariance),
        bandwidth=setting.bandwidth,
        noise_scales=frozen_array(np.array(scales)),
        guarantee=guarantee,
    )


REASONS = (
    "the integrals run over draws from the kernel density of the raw records, or over a grid that ends where they end; "
    "the bandwidth reads the raw records; "
    "a sensitivity that falls faster than n^(-1/2) is proved for data with a floor only; it holds for all with a "
    "bandwidth that does not read the records, and a constant that the paper does not give; "
    "the noise is floating point"
)


def pgd(
    x: ArrayLike,
    *,
    start: ArrayLike | Mapping[str, float],
    family: object = "normal",
    hdp: float | None = None,
    pdp: tuple[float, float] | None = None,
    n_iterations: int = 50,
    step: float = 0.5,
    rate: float = 0.6,
    bandwidth: float | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> HellingerResult:
    r"""Minimum Hellinger distance fit by PGD. **Not certified**: see `REASONS`.

    The supplement does not print kernel, bandwidth, step, start, or the constant of the sensitivity. Ours are marked;
    they were chosen by looking at its tables: see ``docs/gaps.md``.

    Parameters
    ----------
    x : array-like of shape (n,)
        The records; finite.
    start : array-like of shape (m,) or mapping
        The first iterate. For the printed tables of N(5, 2^2) we use (2, 1): it gives the bias that they show.
    family : str or UnivariateFamily
    hdp : float, optional
        The claimed :math:`\varepsilon`-HDP.
    pdp : (power, epsilon), optional
        The claimed power-divergence privacy. With neither there is no noise: the non-private column.
    n_iterations : int
        K.
    step : float
        Ours: :math:`\eta = 0.5`.
    rate : float
        Ours: 1/p = 0.6 in Theorem 24's sensitivity :math:`C(\theta)\sqrt m\,n^{-1/p}`; 0.5 is Proposition 20, which
        holds for every data set if the integrals do.
    bandwidth : float, optional
        Half-width of Epanechnikov's kernel (ours). None: `fogline_research.as_published.hellinger.rule_of_thumb`
        (ours).
    draws : int, optional
        The paper's Monte-Carlo integrals over this many draws from the density estimate, made once; 5000 gives the
        spread of its non-private column. None: quadrature.
    random_state : int, Generator or None
        Source of draws and noise, which is floating point from numpy: for experiments.

    Returns
    -------
    HellingerResult

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(5, 2, size=1000)
    >>> plain = pgd(x, start=[2, 1])
    >>> {name: round(value, 1) for name, value in plain.params.items()}
    {'mu': 4.9, 'sigma': 1.9}
    >>> noisy = pgd(x, start=[2, 1], hdp=0.6, random_state=0)
    >>> noisy.guarantee.certified, noisy.iterates.shape, round(noisy.guarantee.epsilon, 1)
    (False, (51, 2), 8.7)
    """
    budget, step = privacy(hdp, pdp), check_positive(step, "step")
    setting = prepare(
        x,
        family=family,
        start=start,
        bandwidth=bandwidth,
        n_iterations=n_iterations,
        rate=rate,
        draws=draws,
        random_state=random_state,
    )
    multiplier = 0.0 if budget is None else 1.0 / math.sqrt(2.0 * step_rho(budget, n_iterations, 1))
    path, scales = [setting.start], []
    with np.errstate(all="ignore"):  # noise may send a scale to 0 or a mean out of sight: that is the method
        for _ in range(n_iterations):
            theta = path[-1]
            scale = multiplier * setting.sensitivity(gradient_constant(setting.family, theta), 0.5)
            noise = scale * setting.rng.standard_normal(len(theta))
            moved = theta - step * (gradient(setting.family, theta, setting.nodes) + noise)
            path.append(np.where(np.isfinite(moved), moved, theta))
            scales.append(scale)
        information = fisher_information(setting.family, path[-1])
    spread = last_noise(setting, step, scales[-1], information)
    return result(setting, path, scales, spread, claim(budget, "PGD", REASONS))


def pnr(
    x: ArrayLike,
    *,
    start: ArrayLike | Mapping[str, float],
    family: object = "normal",
    hdp: float | None = None,
    pdp: tuple[float, float] | None = None,
    n_iterations: int = 5,
    step: float = 1.0,
    rate: float = 0.6,
    floor: float | None = None,
    bandwidth: float | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> HellingerResult:
    r"""Minimum Hellinger distance fit by PNR. **Not certified**: the guarantee says why.

    Parameters
    ----------
    x, start, family, hdp, pdp, rate, bandwidth, draws, random_state
        As in `pgd`. For the printed tables we use the start (2, 1) with ``step=0.9`` and ``floor=0.2``.
    n_iterations : int
        K.
    step : float
        :math:`\eta`; the supplement sets it to 1 for ease of exposition (section 6.10), and does not print the value
        of its tables.
    floor : float, optional
        None: the inverse as printed. A guard that is *not* in the paper: eigenvalues of the symmetric part of the noisy
        Hessian are replaced by their absolute values, and by this where that is greater.

    Returns
    -------
    HellingerResult
        Its `privacy_covariance` is that of the gradient's noise alone, linearised at the optimum.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(5, 2, size=1000)
    >>> {name: round(value, 1) for name, value in pnr(x, start=[4, 1]).params.items()}
    {'mu': 4.9, 'sigma': 1.9}
    >>> pnr(x, start=[4, 1], hdp=0.6, random_state=0).guarantee.certified
    False
    """
    budget, step = privacy(hdp, pdp), check_positive(step, "step")
    least = None if floor is None else check_positive(floor, "floor")
    setting = prepare(
        x,
        family=family,
        start=start,
        bandwidth=bandwidth,
        n_iterations=n_iterations,
        rate=rate,
        draws=draws,
        random_state=random_state,
    )
    multiplier = 0.0 if budget is None else 1.0 / math.sqrt(2.0 * step_rho(budget, n_iterations, 2))
    known, m = setting.family, len(setting.start)
    path, scales = [setting.start], []
    with np.errstate(all="ignore"):  # a noisy Hessian may be nearly singular, the step huge: that is the method
        for _ in range(n_iterations):
            theta = path[-1]
            scale = multiplier * setting.sensitivity(gradient_constant(known, theta), 0.5)
            wobble = multiplier * setting.sensitivity(hessian_constant(known, theta), 1.0)
            slope = gradient(known, theta, setting.nodes) + scale * setting.rng.standard_normal(m)
            bend = hessian(known, theta, setting.nodes) + wobble * setting.rng.standard_normal((m, m))
            moved = theta - step * _solved(bend, slope, least)
            path.append(np.where(np.isfinite(moved), moved, theta))
            scales.append(scale)
        inverse = np.linalg.pinv(fisher_information(known, path[-1]))
    # Noise of step k is left after the later ones with a factor (1 - eta)^(K - k).
    left = step**2 * sum((1.0 - step) ** (2 * k) for k in range(n_iterations))
    return result(setting, path, scales, left * scales[-1] ** 2 * inverse @ inverse, claim(budget, "PNR", REASONS))


def _solved(matrix: Array, vector: Array, floor: float | None) -> Array:
    """Solve, guarded or not, and answer not a number where that cannot be done: the iterate then stays."""
    try:
        if floor is None:
            return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)
        eigenvalues, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        return np.asarray(vectors @ ((vectors.T @ vector) / np.maximum(np.abs(eigenvalues), floor)), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(vector, np.nan)
