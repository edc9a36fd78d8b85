"""Families by name, as a command line or an estimator's `family` parameter gives them."""

from __future__ import annotations

from collections.abc import Callable

from fogline.families.bounded_and_counts import Beta, Lomax, NegativeBinomial, Poisson, ZeroInflated
from fogline.families.family import Family
from fogline.families.multivariate_normal import MultivariateNormal
from fogline.families.univariate import Exponential, Gamma, Logistic, Lognormal, Normal, StudentT, Weibull

__all__ = ["NAMES", "family_id", "family_id_before", "family_named"]

_MAKERS: dict[str, Callable[[], Family]] = {
    "normal": Normal,
    "lognormal": Lognormal,
    "gamma": Gamma,
    "weibull": Weibull,
    "logistic": Logistic,
    "exponential": Exponential,
    "beta": Beta,
    "lomax": Lomax,
    "poisson": Poisson,
    "negative binomial": NegativeBinomial,
    "zero-inflated gamma": lambda: ZeroInflated(Gamma()),
    "zero-inflated lognormal": lambda: ZeroInflated(Lognormal()),
    "bivariate normal": lambda: MultivariateNormal(2),
    "trivariate normal": lambda: MultivariateNormal(3),
}

NAMES = (*_MAKERS, "t")
"""Names that `family_named` knows. Student's t is written with its degrees of freedom: "t4"."""


_IDS: dict[type, tuple[str, str]] = {
    Normal: ("normal", "fogline.families.location_scale.Normal"),
    Logistic: ("logistic", "fogline.families.location_scale.Logistic"),
    Lognormal: ("lognormal", "fogline.families.location_scale.Lognormal"),
    StudentT: ("student-t", "fogline.families.location_scale.StudentT"),
    MultivariateNormal: ("multivariate-normal", "fogline.families.multivariate_normal.MultivariateNormal"),
    Exponential: ("exponential", "fogline.families.positive.Exponential"),
    Gamma: ("gamma", "fogline.families.positive.Gamma"),
    Weibull: ("weibull", "fogline.families.positive.Weibull"),
}
"""For each family its id, which never changes, and where its class was when ledgers held that instead."""

_NEWER_IDS: dict[type, str] = {
    Beta: "beta",
    Lomax: "lomax",
    Poisson: "poisson",
    NegativeBinomial: "negative-binomial",
    ZeroInflated: "zero-inflated",
}
"""Ids of families that no ledger ever held by their class."""


def family_id(family: Family) -> str:
    """Return what a stored question calls a family: ours by an id that outlives its file, others by their class.

    Examples
    --------
    >>> family_id(family_named("t4"))
    'student-t t4'
    """
    kind = type(family)
    own = _IDS[kind][0] if kind in _IDS else _NEWER_IDS.get(kind, f"{kind.__module__}.{kind.__qualname__}")
    return f"{own} {family.name}"


def family_id_before(family: Family) -> str:
    """Return what questions called a family before there were ids.

    Examples
    --------
    >>> family_id_before(family_named("normal"))
    'fogline.families.location_scale.Normal normal'
    """
    kind = type(family)
    return f"{_IDS[kind][1]} {family.name}" if kind in _IDS else family_id(family)


def family_named(family: object) -> Family:
    """Return a family from its name, or `family` itself if it is one.

    Parameters
    ----------
    family : str or Family
        One of `NAMES`, where Student's t is written with its degrees of freedom.

    Examples
    --------
    >>> family_named("weibull").parameters
    ('shape', 'scale')
    >>> family_named("t2.5").name
    't2.5'
    >>> family_named("normla")
    Traceback (most recent call last):
    ValueError: family must be one of normal, lognormal, ...
    """
    if isinstance(family, Family) and not isinstance(family, type):  # a class has the attributes, too
        return family
    if not isinstance(family, str):
        raise TypeError(f"family must be a name or a Family, got {type(family).__name__}")
    if family in _MAKERS:
        return _MAKERS[family]()
    if family.startswith("t"):
        try:
            return StudentT(float(family[1:]))
        except ValueError:
            pass
    raise ValueError(f'family must be one of {", ".join(_MAKERS)} or "t4" (any degrees of freedom), got {family!r}')
