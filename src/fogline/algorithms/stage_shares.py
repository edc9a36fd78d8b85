r"""How clusters and mixtures divide a budget between their stages: functions of public numbers alone.

A stage that has the share s of a budget rho adds noise of the deviation :math:`1/\sqrt{2 s\rho}`, in units of what one
record can move. Means of n records then err by :math:`1/(n\sqrt{2 s\rho}) = 1/(L\sqrt s)`, with the *level*
:math:`L = n\sqrt{2\rho}`: the number of records over the noise that a count would have if it had the whole budget. To
first order the squared error of what is published last is a sum over the stages,

.. math:: E(s) = \sum_i \frac{a_i}{s_i L^2} + \frac{c}{n}, \qquad \sum_i s_i = 1,

where :math:`a_i` says how much of a stage's noise arrives in the centres: for the scale that of the mean across the
directions, for the projection (the moments) that of directions which turn, for the steps that of a centre. The second
term is the draw of the records, which no share changes. The minimum is at

.. math:: s_i = \sqrt{a_i} \Big/ \sum_j \sqrt{a_j},

whatever L is: where all stages work, one division suits all numbers of records. L matters below the *thresholds*: a
stage finds nothing (a direction, a group, a step that is worth making) unless :math:`s_i L^2 > t_i^2`. With few records
the shares go to the stages that fail first. The constants a and t depend on the records, so that the shares were
measured, on made data (``benchmarks/stage_shares.py``, docs/budget.md); the functions choose between them by L.

Nothing here has seen a record: the number of records is a guess that the user declares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from fogline import _validation
from fogline.releases.curator import Curator

__all__ = [
    "CLUSTERING_SHARES",
    "MIXTURE_SHARES",
    "cluster_shares",
    "mixture_shares",
    "paid_portions",
    "records_over_noise",
]

CLUSTERING_SHARES = {"scale": "1/5", "projection": "3/10", "density": "1/5", "refinement": "3/10"}
"""Default shares of the budget."""

MIXTURE_SHARES = {"scale": "1/50", "moments": "1/10", "density": "9/50", "steps": "7/10"}
"""Default shares of the budget."""

FEW = 600.0
"""Level below which directions are what fails."""

CLUSTERS_BY_LEVEL: tuple[tuple[float, Mapping[str, str]], ...] = (
    (FEW, {"scale": "1/5", "projection": "1/2", "density": "1/10", "refinement": "1/5"}),
    (math.inf, {"scale": "1/10", "projection": "2/5", "density": "1/20", "refinement": "9/20"}),
)
"""Shares of clusters by the level below which they are taken."""

ONE_GAUSSIAN_SHARES = {"scale": "1/50", "moments": "1/10", "density": "1/50", "steps": "43/50"}
"""Of a mixture of one component: there is nothing to be found in the density, which is released to be looked at."""

ONE_GAUSSIAN_LEVEL = 200.0
"""Below this level they are not taken: more budget for the steps would have them ask for a covariance that drowns."""


def records_over_noise(expected: int, rho: float, neighbours: str = "add-remove", max_contributions: int = 1) -> float:
    r"""Return how many times the noise of a count with the whole budget the expected number of records is.

    Parameters
    ----------
    expected : int
        About how many records there are, as a guess.
    rho : float
        Of the whole fit.
    neighbours, max_contributions
        Of the fit. A replaced record moves sums of vectors twice as far as one that is added.

    Examples
    --------
    >>> round(records_over_noise(4000, 0.03125)), round(records_over_noise(4000, 0.03125, "replace", 5))
    (1000, 100)
    """
    n, c = (
        _validation.check_count(expected, "expected"),
        _validation.check_count(max_contributions, "max_contributions"),
    )
    moved = c * (1.0 if _validation.check_neighbours(neighbours) == "add-remove" else 2.0)
    return n * math.sqrt(2.0 * _validation.check_positive(rho, "rho")) / moved


def cluster_shares(
    expected: int | None,
    rho: float,
    n_clusters: int | None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
) -> dict[str, Fraction]:
    """Return the shares of scale, projection, density and refinement of clusters in many columns; they sum to one.

    Parameters
    ----------
    expected : int or None
        About how many records there are, as a guess; None for the fixed shares.
    rho : float
        Of the whole fit.
    n_clusters : int or None
        That is asked for. Where it is open, the density has to tell it, and the shares are the fixed ones.
    neighbours, max_contributions
        Of the fit.

    Examples
    --------
    >>> [str(share) for share in cluster_shares(2000, 0.01, 3).values()]
    ['1/5', '1/2', '1/10', '1/5']
    >>> [str(share) for share in cluster_shares(None, 0.01, 3).values()]
    ['1/5', '3/10', '1/5', '3/10']
    """
    if expected is None or n_clusters is None:
        return _exact(CLUSTERING_SHARES)
    level = records_over_noise(expected, rho, neighbours, max_contributions)
    return _exact(next(shares for below, shares in CLUSTERS_BY_LEVEL if level < below))


def mixture_shares(
    expected: int | None,
    rho: float,
    n_components: int | None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
) -> dict[str, Fraction]:
    """Return the shares of scale, moments, density and steps of a mixture; they sum to one.

    Parameters
    ----------
    expected : int or None
        About how many records there are, as a guess; None for the fixed shares.
    rho : float
        Of the whole fit.
    n_components : int or None
        That is asked for. Where it is open, or more than one, the shares are the fixed ones.
    neighbours, max_contributions
        Of the fit.

    Examples
    --------
    >>> [str(share) for share in mixture_shares(5000, 0.03, 1).values()]
    ['1/50', '1/10', '1/50', '43/50']
    >>> str(mixture_shares(5000, 0.03, 3)["moments"])
    '1/10'
    >>> mixture_shares(None, 0.03, 1) == mixture_shares(5000, 0.03, None)
    True
    """
    if expected is None or n_components is None:
        return _exact(MIXTURE_SHARES)
    level = records_over_noise(expected, rho, neighbours, max_contributions)
    if n_components == 1:
        return _exact(ONE_GAUSSIAN_SHARES if level >= ONE_GAUSSIAN_LEVEL else MIXTURE_SHARES)
    # for several components no other shares were better on data that had not chosen them
    return _exact(MIXTURE_SHARES)


def paid_portions(
    curator: Curator, planned: dict[str, Fraction], fixed: dict[str, Fraction] | None
) -> dict[str, Fraction]:
    """Return the portions by which a release is made or, where a ledger had the answers already, was made.

    A question with a number of records that is expected is answered by what was released for it before that number
    chose shares: whoever paid does not pay again. Such answers have the fixed shares, and nothing is written beside
    them.

    Parameters
    ----------
    curator : Curator
    planned : dict of Fraction
    fixed : dict of Fraction or None
        The portions without that number, where these are others; None where there are no others.
    """
    if fixed is None:
        return planned
    written = {name: np.array([part.numerator, part.denominator]) for name, part in planned.items()}
    try:
        kept = curator.remember("portions", lambda: written)
    except ValueError:  # nothing was written
        return fixed
    return {name: Fraction(*map(int, kept[name])) for name in planned}


def _exact(shares: Mapping[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(share) for name, share in shares.items()}
