r"""The discrete Gaussian mechanism on integer vectors.

To an integer vector that neighbours move by at most :math:`\Delta` in Euclidean norm, add independent noise
with

.. math:: P(z) \propto e^{-z^2 / (2\sigma^2)}, \quad z \in \mathbb Z, \qquad
          \sigma \ge \frac{\Delta}{\sqrt{2\rho}} .

The answer is :math:`\rho`-zCDP. Proof: ``discrete_gaussian.proof.md``, beside this file.

`add_rounded_gaussian` draws the same noise on a finer lattice where it needs one, so that what is added is a rounded
Gaussian but for a total variation that no delta notices: it is :math:`\sqrt{2\rho}`-GDP up to that
(`fogline.accounting.analytic_gaussian`).

References
----------
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from fogline._typing import IntArray
from fogline._validation import check_count, check_positive
from fogline.accounting._rounding import round_up, square_root_up
from fogline.accounting.analytic_gaussian import LEAST_SCALE, UNIT_DISTANCE
from fogline.accounting.costs import GaussianCost, cost, gaussian_cost
from fogline.accounting.events import GaussianEvent
from fogline.mechanisms import randomness as _opendp
from fogline.mechanisms.lattice import exact_integers, in_steps, noisy_sum, sampled_scale
from fogline.mechanisms.randomness import (
    Call,
    EntropySource,
    Finish,
    Parameters,
    ask_provider,
    current_provider,
)

__all__ = ["FineScale", "NoisyVector", "add_gaussian", "add_rounded_gaussian", "fine_scale", "gaussian_scale"]

# OpenDP rounds its own bound up, by a few units in the last place: with this much more noise it is satisfied as well.
_MARGIN = 1 + Fraction(1, 2**49)


@dataclass(frozen=True)
class NoisyVector:
    """A released integer vector.

    Parameters
    ----------
    values : int64 array
        The noisy values, clipped to plus or minus 2^61.
    scale : float
        The sigma of the discrete Gaussian. Its standard deviation is never more than this.
    event : GaussianEvent
        What was done, for the accounting.
    price : GaussianCost or None
        What that costs in GDP, where it was asked for in it.
    """

    values: IntArray
    scale: float
    event: GaussianEvent
    price: GaussianCost | None = None


@dataclass(frozen=True)
class FineScale:
    """The lattice on which rounded Gaussian noise is drawn; public.

    Parameters
    ----------
    scale : float
        Of the discrete Gaussian, in steps of the fine lattice.
    bits : int
        A step of the released lattice has 2 to this power of fine steps. 0 leaves the lattice as it is.

    Examples
    --------
    >>> FineScale(2.0**20, 20).released
    1.0408329997330665
    """

    scale: float
    bits: int

    @property
    def released(self) -> float:
        """The standard deviation of what is added, in steps of the released lattice; never less than it is."""
        if self.bits == 0:
            return self.scale
        # rounding to coarse steps adds the variance of a uniform error
        return square_root_up(Fraction(self.scale) ** 2 / 4**self.bits + Fraction(1, 12))

    def event(self, sensitivity: float) -> GaussianEvent:
        """Return what is done on the fine lattice, where the vector moves by at most `sensitivity` coarse steps."""
        return GaussianEvent(sensitivity=sensitivity * 2.0**self.bits, scale=self.scale)

    def rounded(self, noise: IntArray) -> IntArray:
        """Return noise of the fine lattice in steps of the released one."""
        # half a coarse step is added, and the shift cuts downward: rounding to the nearest
        return noise if self.bits == 0 else (noise + (1 << (self.bits - 1))) >> self.bits


def fine_scale(sensitivity: float, rho: float) -> FineScale:
    r"""Return the lattice and the scale at which rounded Gaussian noise is :math:`\sqrt{2\rho}`-GDP.

    Parameters
    ----------
    sensitivity : float
        Greatest Euclidean distance between the exact vectors of neighbours, in steps of the released lattice.
    rho : float

    Examples
    --------
    >>> fine_scale(2.0**22, 0.03).bits, fine_scale(1.0, 0.03).bits
    (0, 18)
    >>> round(fine_scale(1.0, 0.03).released, 3), round(gaussian_scale(1.0, 0.03), 3)
    (4.093, 4.082)
    """
    coarse = gaussian_scale(sensitivity, rho)
    bits = 0
    # what a discrete Gaussian lacks to a rounded one falls with the fourth power of the scale: finer steps pay for it
    while coarse * 2.0**bits < LEAST_SCALE:
        bits += 1
    moved = Fraction(sensitivity) * 2**bits
    # 1/12 more: the price is that of a Gaussian whose variance is so much smaller
    square = moved**2 / (2 * Fraction(rho)) + Fraction(1, 12)
    return FineScale(max(round_up(Fraction(square_root_up(square)) * _MARGIN), LEAST_SCALE), bits)


def gaussian_scale(sensitivity: float, rho: float) -> float:
    """Return the scale at which the discrete Gaussian is rho-zCDP, rounded up and at least 2^-10.

    Parameters
    ----------
    sensitivity : float
        Greatest Euclidean distance between the exact vectors of neighbours, in lattice steps.
    rho : float

    Examples
    --------
    >>> round(gaussian_scale(1.0, 0.125), 12)
    2.0
    """
    sensitivity, rho = check_positive(sensitivity, "sensitivity"), check_positive(rho, "rho")
    # In rationals, rounded up once at the end: a float quotient could fall short of the scale that is needed.
    square = sampled_scale(Fraction(sensitivity) ** 2 / (2 * Fraction(rho)), "sensitivity / sqrt(2 rho)", power=2)
    return round_up(Fraction(square_root_up(square)) * _MARGIN)


def add_gaussian(
    query: Callable[[], NDArray[Any]],
    *,
    size: int,
    sensitivity: float,
    rho: float,
    parameters: Parameters = (),
) -> NoisyVector:
    """Release an integer vector under rho-zCDP.

    Parameters
    ----------
    query : callable
        Returns the exact vector, int64 of shape (size,). Called once, after the noise was drawn.
    size : int
        Public length of the vector.
    sensitivity : float
        Greatest Euclidean distance between the exact vectors of neighbours, in lattice steps. May well be fractional;
        below 1, which integers cannot move by, it counts as 1.
    rho : float
        The zCDP of this release.
    parameters : tuple of (name, value)
        Further public facts for the record.

    Returns
    -------
    NoisyVector

    Examples
    --------
    >>> import numpy as np
    >>> release = add_gaussian(lambda: np.array([1000, 0]), size=2, sensitivity=1.0, rho=0.5)
    >>> release.values.shape, round(release.scale, 6)
    ((2,), 1.0)
    """
    size = check_count(size, "size", minimum=0)
    # integers move by whole steps or not at all
    sensitivity, rho = in_steps(sensitivity), check_positive(rho, "rho")
    scale = gaussian_scale(sensitivity, rho)
    event = GaussianEvent(sensitivity=sensitivity, scale=scale)
    # Two opinions before any noise is drawn: our own accounting, and for certified releases OpenDP's map.
    provider = current_provider()
    if cost(event).rho > rho or (provider.certified and _opendp.gaussian_rho(scale, sensitivity) > rho):
        raise RuntimeError("the noise scale does not meet rho: nothing was released")

    def sample(source: EntropySource) -> Finish:
        noise = source.gaussian(scale, size)
        return lambda exact: noisy_sum(exact_integers(exact, size), noise)

    call = Call("gaussian", (("size", size), ("scale", scale), *parameters), sensitivity, "l2", event)
    return NoisyVector(ask_provider(call, query, sample), scale, event)


def add_rounded_gaussian(
    query: Callable[[], NDArray[Any]],
    *,
    size: int,
    sensitivity: float,
    rho: float,
    distance: Fraction = UNIT_DISTANCE,
    parameters: Parameters = (),
) -> NoisyVector:
    r"""Release an integer vector under :math:`\sqrt{2\rho}`-GDP, up to a total variation that `price` states.

    It is rho-zCDP as well.

    Parameters
    ----------
    query, size, sensitivity, rho, parameters
        As for :func:`add_gaussian`.
    distance : Fraction
        The most total variation, in all coordinates together.

    Examples
    --------
    >>> import numpy as np
    >>> release = add_rounded_gaussian(lambda: np.array([1000, 0]), size=2, sensitivity=1.0, rho=0.5)
    >>> release.values.shape, round(release.scale, 3), release.price.rho <= 0.5, release.price.distance < 1e-26
    ((2,), 1.041, True, True)
    """
    size = check_count(size, "size", minimum=0)
    sensitivity, rho = in_steps(sensitivity), check_positive(rho, "rho")
    fine = fine_scale(sensitivity, rho)
    event = fine.event(sensitivity)
    price = gaussian_cost(event, size)
    # Before any noise is drawn: the price, its distance, and for certified releases OpenDP's map.
    provider = current_provider()
    if price.rho > rho or (provider.certified and _opendp.gaussian_rho(fine.scale, event.sensitivity) > rho):
        raise RuntimeError("the noise scale does not meet rho: nothing was released")
    if price.distance > distance:
        raise RuntimeError("the noise is too far from a rounded Gaussian: nothing was released")

    def sample(source: EntropySource) -> Finish:
        noise = fine.rounded(source.gaussian(fine.scale, size))
        return lambda exact: noisy_sum(exact_integers(exact, size), noise)

    public: Parameters = (("size", size), ("scale", fine.released), ("bits", fine.bits), *parameters)
    call = Call("gaussian", public, sensitivity, "l2", event)
    return NoisyVector(ask_provider(call, query, sample), fine.released, event, price)
