r"""What the Hellinger paper states in numbers beyond its budgets: noise radius, numbers of steps, limiting variance.

References
----------
Private minimum Hellinger distance estimation, supplement: Theorem 6 part 3, equation (13), proofs of Theorems 25 and
27, and the limit law of the estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count, check_positive

__all__ = ["gradient_steps", "limiting_variance", "newton_steps", "noise_radius", "separate_data_sets"]

Array = NDArray[np.float64]


def separate_data_sets(*budgets: float) -> float:
    """Theorem 6, part 3: mechanisms on *separate* data sets, of which neighbours change one, cost the greatest budget.

    The same is not true of parts of one data set that are cut by values, where a replaced record may leave one part and
    enter another: `fogline.accounting.PowerBudget.parallel` is for these.

    Examples
    --------
    >>> separate_data_sets(0.2, 0.6, 0.4)
    0.6
    """
    if not budgets:
        raise ValueError("budgets must have at least one number")
    return max(check_positive(budget, "budgets") for budget in budgets)


def noise_radius(scale: float, parameters: int, steps: int, failure: float) -> float:
    r"""Equation (13), the radius that the noise of one step exceeds with probability at most :math:`\xi/K`.

    .. math:: r_{noi} = \Delta_n c\,\bigl(4\sqrt m + 2\sqrt{2(\log K - \log\xi)}\bigr)

    Parameters
    ----------
    scale : float
        Standard deviation of a coordinate of the noise, the product of sensitivity and constant.
    parameters, steps : int
        m and K.
    failure : float
        The probability xi for all steps together.

    Examples
    --------
    >>> round(noise_radius(0.1, 2, 10, 0.05), 2)
    1.22
    """
    m, K = check_count(parameters, "parameters"), check_count(steps, "steps")
    if not 0.0 < failure < 1.0:
        raise ValueError(f"failure must be between 0 and 1, got {failure}")
    return scale * (4.0 * math.sqrt(m) + 2.0 * math.sqrt(2.0 * (math.log(K) - math.log(failure))))


def gradient_steps(n: int, constant: float = 1.0) -> int:
    r"""Theorem 25's number of steps of PGD, :math:`c\log n`; the constant is not printed.

    Examples
    --------
    >>> gradient_steps(500), gradient_steps(500, 3.0)
    (7, 19)
    """
    return math.ceil(check_positive(constant, "constant") * math.log(max(check_count(n, "n"), 2)))


def newton_steps(radius: float, constant: float = 1.0) -> int:
    r"""Theorem 27's number of steps of PNR: the least K with :math:`2^{-2^K} \le C r_{noi}`.

    Examples
    --------
    >>> newton_steps(0.01), newton_steps(1e-6), newton_steps(0.9)
    (3, 5, 1)
    """
    reached = check_positive(radius, "radius") * check_positive(constant, "constant")
    if reached >= 0.5:
        return 1
    return max(1, math.ceil(math.log2(math.log(reached) / math.log(0.5))))


def limiting_variance(density: Callable[[Array], Array], mu: float, sigma: float, *, reach: float = 12.0) -> Array:
    r"""The matrix :math:`\Sigma_g` of the normal family at (mu, sigma): n times the variance of the estimator.

    .. math:: \rho = -4\Bigl[\int\sqrt{g f}\,(uu^\top + 2\dot u)\Bigr]^{-1}\nabla\sqrt f, \qquad
              \Sigma_g = \tfrac14\int\rho\rho^\top

    Parameters
    ----------
    density : callable
        g, the law of the records; mu and sigma are where its Hellinger distance to the family is least.
    mu, sigma : float
    reach : float
        Integrals run so many sigmas to either side.

    Returns
    -------
    array of shape (2, 2)

    Examples
    --------
    >>> from scipy.stats import norm
    >>> limiting_variance(norm(5, 2).pdf, 5.0, 2.0).round(3).tolist()       # the inverse of Fisher's information
    [[4.0, 0.0], [0.0, 2.0]]
    """
    x = np.linspace(mu - reach * sigma, mu + reach * sigma, 20_001)
    step, z = x[1] - x[0], (x - mu) / sigma
    f = np.exp(-0.5 * z**2) / (sigma * math.sqrt(2.0 * math.pi))
    score = np.stack([z, z**2 - 1.0]) / sigma
    slope = np.array([[np.full_like(z, -1.0), -2.0 * z], [-2.0 * z, 1.0 - 3.0 * z**2]]) / sigma**2
    weight = np.sqrt(np.maximum(density(x), 0.0) * f)
    curvature = np.einsum("abx,x->ab", score[:, None] * score[None] + 2.0 * slope, weight) * step
    influence = -4.0 * np.linalg.solve(curvature, 0.5 * np.sqrt(f) * score)
    return np.asarray(0.25 * influence @ influence.T * step + 0.0).round(12) + 0.0
