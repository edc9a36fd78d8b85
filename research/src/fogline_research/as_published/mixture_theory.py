r"""What the separated-mixtures paper states in numbers: composition, sample sizes, conditions, the cost of its levels.

Each function is the paper's formula, whether it holds or not; where it does not, the docstring says so and
``docs/gaps.md`` says why.

References
----------
Kamath, Sheffet, Singhal and Ullman, *Differentially private algorithms for learning mixtures of separated Gaussians*
(2019): Lemmas 2.6, 2.9, 2.13, Condition 2.5, equations (6) and (7), Theorems 4.4 and 5.8.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fogline._validation import check_count, check_positive

__all__ = [
    "advanced_composition",
    "basic_composition",
    "gaussian_mechanism_scale",
    "has_condition_2_5",
    "has_condition_7",
    "level_cost",
    "needed_records",
    "needed_separation",
    "theorem_5_8",
]


def basic_composition(epsilon: float, delta: float, count: int) -> tuple[float, float]:
    """First part of Lemma 2.9.

    Examples
    --------
    >>> basic_composition(0.5, 1e-6, 4)
    (2.0, 4e-06)
    """
    return epsilon * count, delta * count


def advanced_composition(epsilon: float, delta: float, count: int, slack: float) -> tuple[float, float]:
    r"""Second part of Lemma 2.9, for adaptive mechanisms.

    .. math:: \varepsilon\sqrt{2T\log(1/\delta')} + \varepsilon(e^\varepsilon - 1)T, \qquad T\delta + \delta'

    Parameters
    ----------
    epsilon, delta : float
        Of one mechanism.
    count : int
        T.
    slack : float
        The lemma's delta prime.

    Examples
    --------
    >>> epsilon, delta = advanced_composition(0.1, 0.0, 100, 1e-6)
    >>> round(epsilon, 2), delta
    (6.31, 1e-06)
    """
    count, slack = check_count(count, "count"), check_positive(slack, "slack")
    first = epsilon * math.sqrt(2.0 * count * math.log(1.0 / slack))
    return first + epsilon * math.expm1(epsilon) * count, delta * count + slack


def gaussian_mechanism_scale(sensitivity: float, epsilon: float, delta: float) -> float:
    r"""Lemma 2.13: :math:`\Delta\sqrt{2\ln(2/\delta)}/\varepsilon`. Stated for every epsilon; it fails for large ones.

    Examples
    --------
    >>> round(gaussian_mechanism_scale(1.0, 1.0, 1e-5), 2)
    4.94
    """
    return sensitivity * math.sqrt(2.0 * math.log(2.0 / delta)) / epsilon


def needed_records(n_components: int, weight_min: float, alpha: float, beta: float) -> int:
    r"""Lemma 2.6: so many records satisfy Condition 2.5 with probability at least 1 - beta.

    .. math:: \max\{12 \ln(2k/\beta)/w_{\min},\; 405 k^2 \ln(2k/\beta)/(2\alpha^2)\}

    Examples
    --------
    >>> needed_records(2, 0.5, 1.0, 0.1)
    2988
    """
    k, least = check_count(n_components, "n_components"), check_positive(weight_min, "weight_min")
    log_term = math.log(2.0 * k / check_positive(beta, "beta"))
    return math.ceil(max(12.0 / least, 405.0 * k**2 / (2.0 * check_positive(alpha, "alpha") ** 2)) * log_term)


def has_condition_2_5(counts: ArrayLike, weights: ArrayLike, alpha: float) -> bool:
    """Condition 2.5: every component is about as often in the sample as its weight says.

    Examples
    --------
    >>> has_condition_2_5([490, 510], [0.5, 0.5], 0.9), has_condition_2_5([100, 900], [0.5, 0.5], 0.9)
    (True, False)
    """
    seen, expected = np.asarray(counts, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    n, k = seen.sum(), len(expected)
    coarse = (seen >= n * expected / 2) & (seen <= 3 * n * expected / 2)
    close = np.abs(seen - n * expected) <= n * alpha / (9 * k)
    return bool((coarse & (close | (expected < 4 * alpha / (9 * k)))).all())


def has_condition_7(covariance: ArrayLike, n: int, n_components: int, beta: float) -> bool:
    r"""Condition (7): a component is not too flat.

    .. math:: \|\Sigma\|_F\sqrt{\log(nk/\beta)} \le \tfrac18 \mathrm{tr}\,\Sigma, \qquad
              \|\Sigma\|_2\log(nk/\beta) \le \tfrac18 \mathrm{tr}\,\Sigma

    A round component satisfies it from :math:`d = 64\log(nk/\beta)` on.

    Examples
    --------
    >>> has_condition_7(np.eye(10), 1000, 2, 0.1), has_condition_7(np.eye(700), 1000, 2, 0.1)
    (False, True)
    """
    matrix = np.atleast_2d(np.asarray(covariance, dtype=np.float64))
    log_term = math.log(n * n_components / beta)
    eigenvalues = np.linalg.eigvalsh(matrix)
    trace = float(eigenvalues.sum()) / 8.0
    frobenius = math.sqrt(float((eigenvalues**2).sum()))
    return frobenius * math.sqrt(log_term) <= trace and float(eigenvalues.max()) * log_term <= trace


def needed_separation(sigmas: ArrayLike, weights: ArrayLike, n: int) -> float:
    r"""Theorem 5.1: the greatest distance that it asks for between any two means.

    .. math:: 100(\sigma_i + \sigma_j)\bigl(\sqrt{k\log n} + w_i^{-1/2} + w_j^{-1/2}\bigr)

    Examples
    --------
    >>> round(needed_separation([1.0, 1.0], [0.5, 0.5], 10_000))
    1424
    """
    spread, share = np.asarray(sigmas, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    k = len(spread)
    root = math.sqrt(k * math.log(n))
    pairs = [(i, j) for i in range(k) for j in range(i)]
    return max(float(100.0 * (spread[i] + spread[j]) * (root + share[i] ** -0.5 + share[j] ** -0.5)) for i, j in pairs)


def level_cost(epsilon: float) -> dict[str, float]:
    """What one level of Algorithm 3 costs by the paper's own lemmas, step by step, beside what Theorem 5.8 counts.

    Examples
    --------
    >>> cost = level_cost(1.0)
    >>> cost["lemmas"], cost["theorem 5.8"]
    (6.0, 4.0)
    """
    steps = {
        "step 2, count": epsilon / 2.0,
        "step 2, PGLOC": epsilon / 2.0,
        "step 3, PTerrificBall": 2.0 * epsilon,  # Lemma 5.7
        "step 5, PCA": epsilon,
        "step 6, PTerrificBall": 2.0 * epsilon,
    }
    return steps | {"lemmas": sum(steps.values()), "theorem 5.8": 4.0 * epsilon}


def theorem_5_8(epsilon: float, delta: float, n_components: int) -> tuple[float, float]:
    r"""Theorem 5.8 as printed: :math:`(2\varepsilon + 8\varepsilon\sqrt{2k\log(1/\delta)},\; (8k+1)\delta)`.

    Examples
    --------
    >>> epsilon, delta = theorem_5_8(0.1, 1e-6, 4)
    >>> round(epsilon, 2), round(delta, 7)
    (8.61, 3.3e-05)
    """
    k = check_count(n_components, "n_components")
    return 2.0 * epsilon + 8.0 * epsilon * math.sqrt(2.0 * k * math.log(1.0 / delta)), (8 * k + 1) * delta
