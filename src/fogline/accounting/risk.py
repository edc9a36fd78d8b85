r"""What a guarantee means for a person, in numbers: how much better than before an attacker can do.

The attacker knows everything but what is asked, sees everything that is published, and has any computer. What they can
reach follows from the trade-off function :math:`f` of the release: a test that accuses a share :math:`p` of the
innocent finds at most :math:`1 - f(p)` of the guilty.

- *Presence.* A test that says "was there" of a share :math:`p` of those who were not says it of at most
  :math:`1 - f(p)` of those who were. The membership advantage is the largest difference of the two.
- *Content.* Whoever guesses something about a record, and is right with probability :math:`p` before, is right with
  probability at most :math:`1 - f(p)` after. For one of two equally likely values this is what telling them apart, at
  *twice* the step of presence, allows as well.

For Gaussian noise, :math:`1 - f(p) = \Phi(\Phi^{-1}(p) + \mu)`. A release of :math:`\rho`-zCDP is bounded by

.. math:: 1 - f(p) \le \min\bigl(e^{-(\sqrt{\log 1/p} - \sqrt\rho)^2},\
          1 - e^{-(\sqrt{\log 1/(1 - p)} + \sqrt\rho)^2}\bigr),

the first where :math:`\log 1/p \ge \rho`, and :math:`(\varepsilon, \delta)`-DP by :math:`\min(\delta + e^\varepsilon
p,\ 1 - e^{-\varepsilon}(1 - \delta - p))`. A person with :math:`k` times as many records as the guarantee allows for
has :math:`k\mu`, :math:`k^2\rho` or :math:`k\varepsilon`. The proofs are in ``risk.proof.md``, beside this file.

References
----------
Dong, Roth and Su (2022), Gaussian differential privacy.
Hayes, Mahloujifar and Balle (2023), Bounding training data reconstruction in DP-SGD.
Near, Darais, Lefkovitz and Howarth (2025), Guidelines for evaluating differential privacy guarantees, NIST SP 800-226.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from fogline._validation import check_count, check_level
from fogline.accounting._rounding import digits_up

if TYPE_CHECKING:
    from fogline.accounting.guarantee import Guarantee

__all__ = [
    "BEFORE",
    "ROWS",
    "TIMES",
    "Risk",
    "counts_units",
    "percent_up",
    "risk_of",
    "risk_table",
    "someone_with",
    "success_after",
]

BEFORE = (0.01, 0.1, 0.5)
"""Chances before a release for which its risk is told."""

TIMES = (1, 2, 5, 10)
"""How many times the records that a guarantee allows for it is told for."""

ROWS = ("record", "line of the file")
"""Units that are a row of the source and nothing more."""

_NORMAL = NormalDist()
_ROUNDING = 1e-12
"""More than the errors of floats here; what is told is rounded up."""


@dataclass(frozen=True)
class Risk:
    """What an attacker can reach at most, who is right with probability `before` without the release.

    Parameters
    ----------
    before : float
    presence : float or None
        Share of those who were in the data that a test can find which accuses a share `before` of those who were not.
        None under "replace", where the number of records is public and presence is not what is hidden.
    content : float
        Probability after the release that a guess about a record is right.
    advantage : float or None
        The membership advantage: the largest difference between the two shares of such a test, whatever `before`.
    records : int
        Number of records of the person that this is told for.

    Examples
    --------
    >>> from fogline.accounting import Guarantee
    >>> promise = Guarantee.certified_release(epsilon=1.0, delta=0.0, neighbours="add-remove",
    ...                                       mechanism="discrete Laplace noise", proof="laplace-noise")
    >>> found = promise.risk(0.1)
    >>> round(found.content, 3), round(found.advantage, 3)
    (0.272, 0.462)
    >>> round(promise.risk(0.1, records=2).content, 3)           # twice as many records as it allows for
    0.739
    """

    before: float
    presence: float | None
    content: float
    advantage: float | None
    records: int


def success_after(
    before: float,
    *,
    mu: float | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
) -> float:
    """Return the best bound of 1 - f(p) that follows from what is known of a release; 1 if nothing is.

    Parameters
    ----------
    before : float
        The p, strictly between 0 and 1.
    mu, rho, epsilon, delta : float, optional
        What is known: GDP, zCDP, and differential privacy.

    Examples
    --------
    >>> round(success_after(0.01, mu=0.268), 4), round(success_after(0.5, mu=0.268), 3)
    (0.0198, 0.606)
    >>> round(success_after(0.01, rho=0.036), 4)
    0.0218
    """
    p = check_level(before, "before")
    bounds = [1.0]
    if mu is not None:
        bounds.append(_NORMAL.cdf(_NORMAL.inv_cdf(p) + mu))
    if rho is not None:
        often, seldom, root = math.sqrt(-math.log1p(-p)), math.sqrt(-math.log(p)), math.sqrt(rho)
        # from both directions of the divergence; neither bound is the smaller for all p
        bounds.append(-math.expm1(-((often + root) ** 2)))
        # else this direction says nothing
        if seldom >= root:
            bounds.append(math.exp(-((seldom - root) ** 2)))
    if epsilon is not None:
        bounds.append(delta + math.exp(min(epsilon, 700.0)) * p)
        # the same with the roles of the two data sets exchanged
        bounds.append(1.0 - math.exp(-epsilon) * max(0.0, 1.0 - delta - p))
    return min(1.0, min(bounds) + _ROUNDING)


def risk_of(guarantee: Guarantee, before: float, records: int | None = None) -> Risk:
    """Return the risk of a release; see :meth:`fogline.accounting.Guarantee.risk`."""
    bound = guarantee.max_contributions
    number = bound if records is None else check_count(records, "records")
    known = _known(guarantee, guarantee.steps_of(number))
    success = success_after(before, **known)
    # presence is public there: all that is hidden is what a record holds
    if guarantee.neighbours == "replace":
        return Risk(before, None, success, None, number)
    return Risk(before, success, success, _advantage(known), number)


def percent_up(share: float) -> str:
    """Return an upper bound of a share for people, in three digits, rounded up.

    Examples
    --------
    >>> percent_up(0.14781), percent_up(1.0), percent_up(0.5)
    ('14.8%', '100%', '50%')
    """
    # what is added to floats for safety (1e-12) does not show
    return f"{digits_up(round(100.0 * share, 9), 3)}%"


def risk_table(guarantee: Guarantee) -> dict[str, Any]:
    """Return the risk of a release as values that JSON has: upper bounds, for some chances before and some numbers.

    Examples
    --------
    >>> from fogline.accounting import Guarantee
    >>> promise = Guarantee.certified_release(epsilon=1.0, delta=0.0, neighbours="add-remove",
    ...                                       mechanism="discrete Laplace noise", proof="laplace-noise")
    >>> [each["records"] for each in risk_table(promise)["more_records"]]
    [1, 2, 5, 10]
    """
    found = [risk_of(guarantee, before) for before in BEFORE]
    more = [risk_of(guarantee, 0.1, times * guarantee.max_contributions) for times in TIMES]
    return {
        "guesses": [{"before": each.before, "content": each.content, "presence": each.presence} for each in found],
        "membership_advantage": found[0].advantage,
        "more_records": [
            {"records": each.records, "who": someone_with(guarantee, times), "before": 0.1, "content": each.content}
            for times, each in zip(TIMES, more, strict=True)
        ],
    }


def counts_units(guarantee: Guarantee) -> bool:
    """Say whether further records of a unit were left out, so that only a second unit of a person adds to the risk."""
    return guarantee.enforced and guarantee.unit not in ROWS


def someone_with(guarantee: Guarantee, times: int) -> str:
    """Say who is protected by a guarantee only at so many times its loss: people with more than it allows for.

    Examples
    --------
    >>> from fogline.accounting import Guarantee
    >>> terms = dict(epsilon=1.0, delta=0.0, neighbours="add-remove", mechanism="noise", proof="laplace-noise")
    >>> someone_with(Guarantee.certified_release(**terms), 2)
    'someone with 2 records'
    >>> someone_with(Guarantee.certified_release(unit="person", max_contributions=3, enforced=True, **terms), 2)
    "someone listed under 2 values of 'person'"
    """
    if counts_units(guarantee):
        return f"someone listed under {times} values of {guarantee.unit!r}"
    return f"someone with {times * guarantee.max_contributions} records"


def _known(guarantee: Guarantee, times: int) -> dict[str, float]:
    """Return what is known of a release for a person with so many times the records that it allows for."""
    epsilon = guarantee.epsilon
    # the limit of the quotient below
    if epsilon == 0.0:
        growth = float(times)
    elif times * epsilon > 600.0:
        growth = math.inf
    else:
        # group privacy: delta grows by 1 + e^epsilon + ... + e^((times - 1) epsilon)
        growth = math.expm1(times * epsilon) / math.expm1(epsilon)
    known = {"epsilon": times * epsilon, "delta": min(1.0, guarantee.delta * growth if guarantee.delta else 0.0)}
    if guarantee.rho is not None:
        # group privacy of zCDP is quadratic, that of GDP linear in mu
        known["rho"] = times**2 * guarantee.rho
    if guarantee.mu is not None:
        known["mu"] = times * guarantee.mu
    return known


def _advantage(known: dict[str, float]) -> float:
    """Return a bound of the total variation between a release with a person and one without."""
    bounds = [1.0 - (1.0 - known["delta"]) * 2.0 / (1.0 + math.exp(min(known["epsilon"], 700.0)))]
    if "rho" in known:  # Pinsker, and Bretagnolle and Huber, with a divergence of at most rho
        bounds += [math.sqrt(known["rho"] / 2.0), math.sqrt(-math.expm1(-known["rho"]))]
    if "mu" in known:
        bounds.append(2.0 * _NORMAL.cdf(known["mu"] / 2.0) - 1.0)
    return min(1.0, min(bounds) + _ROUNDING)
