r"""What the two private Hellinger iterations share: the setting, the share of a step, the result, its intervals.

Theorem 24 puts the L2 sensitivity of the gradient at :math:`C\sqrt m\,n^{-1/p}` for some p in (1, 2], Proposition 20
at p = 2 for every data set. C is not given; where Proposition 20 has it, it depends on theta, and here is taken at the
current iterate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_count, check_level, check_positive
from fogline.accounting import Guarantee, HellingerBudget, PowerBudget, zcdp
from fogline.families import UnivariateFamily
from fogline.published._checks import NotPrivate, check_fraction, complete_records, frozen_array
from fogline.published._hellinger import (
    Nodes,
    fisher_information,
    node_grid,
    node_sample,
    one_dimensional,
    rule_of_thumb,
)

__all__ = ["HellingerResult", "Setting", "claim", "last_noise", "prepare", "privacy", "result", "step_rho"]

Array = NDArray[np.float64]

_DELTA = 1e-5
"""At which a claim is put into epsilon and delta for a reader; the algorithms have none."""


@dataclass(frozen=True, eq=False)
class HellingerResult:
    """What a run of `pgd` or `pnr` returns.

    Attributes
    ----------
    params : mapping of str to float
        The last iterate. A scale may come out negative: see `fogline.published._hellinger.gradient`.
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

    def intervals(self, level: float = 0.95, *, corrected: bool = True) -> dict[str, tuple[float, float]]:
        """Return Wald intervals; corrected ones take in the noise, uncorrected ones the sampling alone.

        The supplement reports coverage of both and says how neither is made. Ours are these.
        """
        z = NormalDist().inv_cdf(0.5 + 0.5 * check_level(level))
        total = self.sampling_covariance + (self.privacy_covariance if corrected else 0.0)
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
