r"""Which noise suits: Laplace or Gaussian, for one release, and for a year of them under one cap.

Laplace noise on a vector of L1 sensitivity :math:`\Delta_1` has the standard deviation
:math:`\sqrt2\,\Delta_1/\varepsilon` and needs no delta; Gaussian noise has :math:`\Delta_2/\mu`, with :math:`\mu` from
the analytic curve. Of k releases under one cap each has :math:`\varepsilon/k` of pure epsilon, but :math:`\mu/\sqrt k`:
for one release of few numbers Laplace noise is smaller, for many releases, or many numbers per record, Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting import zcdp
from fogline.accounting.analytic_gaussian import SLACK_SHARE, rho_of, suits

__all__ = ["NoiseChoice", "noise_choice"]

Law = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class NoiseChoice:
    """Standard deviations of the noise of each of several releases under one cap, by its law.

    Attributes
    ----------
    releases : int
    laplace : float
        In a ledger that adds up pure epsilon.
    gaussian : float
        In a ledger whose lane is Gaussian.
    zcdp : float
        Of Gaussian noise in a ledger whose lane is zCDP.
    turn : int
        The least number of releases from which on Gaussian noise is the smaller of the two.

    Examples
    --------
    >>> noise_choice(epsilon=1.0, delta=1e-6).best, noise_choice(epsilon=1.0, delta=1e-6, releases=50).best
    ('laplace', 'gaussian')
    """

    releases: int
    laplace: float
    gaussian: float
    zcdp: float
    turn: int

    @property
    def best(self) -> Law:
        """The law with the smaller noise."""
        return "laplace" if self.laplace <= self.gaussian else "gaussian"

    def __str__(self) -> str:
        which = "one release" if self.releases == 1 else f"each of {self.releases} releases"
        return (
            f"{which}: noise of {self.laplace:.3g} by Laplace (pure epsilon), {self.gaussian:.3g} by Gaussian noise;"
            f" Gaussian noise is smaller from {self.turn} release{'' if self.turn == 1 else 's'} on"
        )


def noise_choice(
    *, epsilon: float, delta: float, releases: int = 1, l1: float = 1.0, l2: float | None = None
) -> NoiseChoice:
    """Compare the noise of releases that share one cap of epsilon and delta.

    Parameters
    ----------
    epsilon, delta : float
        Of all releases together.
    releases : int
        How many, of equal noise.
    l1 : float
        How far a unit moves the numbers of one release, in the sum of absolute values: the number of levels of a
        hierarchy, for instance.
    l2 : float, optional
        The same in Euclidean length; by default the root of `l1`, as for that many counts that move by one each.

    Examples
    --------
    >>> print(noise_choice(epsilon=1.0, delta=1e-6))
    one release: noise of 1.41 by Laplace (pure epsilon), 4.23 by Gaussian noise; Gaussian noise is smaller from 9
    releases on
    >>> print(noise_choice(epsilon=1.0, delta=1e-6, releases=52))
    each of 52 releases: noise of 73.5 by Laplace (pure epsilon), 30.5 by Gaussian noise; Gaussian noise is smaller from
    9 releases on
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    k, moved = check_count(releases, "releases"), check_positive(l1, "l1")
    length = math.sqrt(moved) if l2 is None else check_positive(l2, "l2")
    by_zcdp = zcdp.rho_of(epsilon, delta)
    rho = rho_of(epsilon, delta * float(1 - SLACK_SHARE)) if suits(epsilon, delta) else by_zcdp
    once = length / math.sqrt(2.0 * rho), math.sqrt(2.0) * moved / epsilon
    return NoiseChoice(
        releases=k,
        laplace=k * once[1],
        gaussian=math.sqrt(k) * once[0],
        zcdp=math.sqrt(k) * length / math.sqrt(2.0 * by_zcdp),
        turn=math.floor((once[0] / once[1]) ** 2) + 1,
    )
