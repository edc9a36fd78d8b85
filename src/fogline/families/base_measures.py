r"""Public densities that draws begin with: a base knows how to make points of uniform numbers, and nothing of the data.

A base :math:`Q_0` turns uniform numbers :math:`u \in (0, 1)^d` into points, by the inverse distribution function of
each column. What a program draws is on a grid of floats: the law of ``points(u)`` for u on the grid of 52 bits *is* the
base, for all that is proved about ratios to it, since it does not depend on the data either. It differs from the
textbook density as any float draw does, by the last bits and by tails that end (a normal draw stays within 8.3
deviations).

Mollifiers: sets of densities so close to each other that draws from any of them look alike.

A set of densities is an :math:`\varepsilon`-mollifier when no two of them differ anywhere by a factor of more than
:math:`e^\varepsilon`. The one used here is relative to a public base :math:`Q_0`,

.. math:: M_\varepsilon = \{Q : -\varepsilon/2 \le \log (dQ/dQ_0)(x) \le \varepsilon/2 \text{ for all } x\} .

Any density with a finite ratio to the base can be brought into it by scaling and shifting the ratio (:func:`mollify`),
which keeps its modes; :func:`log_ratio_range` is how membership is checked.

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees
(Definition 3, figure 3).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtr, ndtri

from fogline._typing import BoolArray, FloatArray
from fogline._validation import check_bounds, check_count, check_epsilon

__all__ = [
    "Base",
    "LogRange",
    "Mollified",
    "NormalBase",
    "OtherBase",
    "ProductBase",
    "UniformBase",
    "base_named",
    "log_ratio_range",
    "mollify",
    "scale_into",
]


_FARTHEST = 50.0
"""Learners are shown no coordinate beyond this many widths of the base: a record out there is as far as any."""

_MARKS = np.arange(1, 64) / 64
"""Quantiles by which a distribution that has no name of its own is told from others."""


class Base(ABC):
    """A public density with a way to draw from it.

    Attributes
    ----------
    d : int
        Number of columns.
    reason : str
        Why draws that begin here cannot be certified; empty if they can.
    """

    d: int
    reason: ClassVar[str] = ""

    @abstractmethod
    def points(self, uniforms: FloatArray) -> FloatArray:
        """Return a point for each row of uniform numbers strictly between 0 and 1, a function of that row."""

    def uniforms(self, x: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the uniform numbers of points, as `points` takes them; not every base can."""
        raise TypeError(f"{type(self).__name__} has no distribution function to go back by")

    @abstractmethod
    def log_density(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the textbook density at each point."""

    @abstractmethod
    def standardised(self, x: FloatArray) -> FloatArray:
        """Return coordinates of about unit size, for learners."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the base in terms of JSON, for a ledger's question."""

    def inside(self, x: FloatArray) -> BoolArray:
        """Say which points lie in the support; what is missing or infinite does not."""
        return np.asarray(np.isfinite(x).all(axis=1))

    def draws(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return points drawn with numpy's generator: for training and simulation, not for publication."""
        # middles of 2^52 parts: never 0 or 1, where quantiles may be infinite
        return self.points((rng.integers(2**52, size=(size, self.d)) + 0.5) / 2**52)

    def shown(self, x: FloatArray) -> FloatArray:
        """Return the coordinates of points as learners see them: standardised, and nowhere beyond all measure."""
        with np.errstate(all="ignore"):
            # learners fail on infinities, and a failure would tell that there was one
            return np.asarray(np.clip(np.nan_to_num(self.standardised(x)), -_FARTHEST, _FARTHEST))


class NormalBase(Base):
    """A normal density with public mean and covariance.

    Examples
    --------
    >>> base = NormalBase([0.0, 10.0], [[1.0, 0.5], [0.5, 4.0]])
    >>> base.points(np.full((1, 2), 0.5))
    array([[ 0., 10.]])
    """

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        self.mean = np.atleast_1d(np.asarray(mean, dtype=np.float64))
        self.covariance = np.atleast_2d(np.asarray(covariance, dtype=np.float64))
        self.d = len(self.mean)
        if self.covariance.shape != (self.d, self.d) or not np.isfinite(self.mean).all():
            raise ValueError("base: the covariance must have one row and one column for each entry of the mean")
        try:
            self._root = np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError:
            raise ValueError("base: the covariance must be positive definite") from None

    def points(self, uniforms: FloatArray) -> FloatArray:
        """Return the mean plus the root of the covariance times normal quantiles."""
        made = np.tile(self.mean, (len(uniforms), 1))
        for quantile, column in zip(ndtri(uniforms).T, self._root.T, strict=True):
            made += quantile[:, None] * column  # a matrix product would round a row by the company it is in
        return made

    def uniforms(self, x: FloatArray) -> FloatArray:
        """Return the normal distribution function of the standardised coordinates."""
        return np.asarray(ndtr(self.standardised(x)))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Return the normal log-density."""
        z = self.standardised(x)
        constant = 0.5 * self.d * np.log(2 * np.pi) + np.log(np.diag(self._root)).sum()
        return np.asarray(-0.5 * (z**2).sum(axis=1) - constant)

    def standardised(self, x: FloatArray) -> FloatArray:
        """Return the point in units of the covariance's root."""
        return np.asarray(np.linalg.solve(self._root, (x - self.mean).T).T)

    def to_dict(self) -> dict[str, Any]:
        """Return mean and covariance."""
        return {"law": "normal", "mean": self.mean.tolist(), "covariance": self.covariance.tolist()}


class UniformBase(Base):
    """The flat density on a public box.

    Examples
    --------
    >>> UniformBase([(0, 10)]).points(np.array([[0.25]]))
    array([[2.5]])
    """

    def __init__(self, bounds: object) -> None:
        self.bounds = check_bounds(bounds)
        self.d = len(self.bounds)

    def points(self, uniforms: FloatArray) -> FloatArray:
        """Return points of the box."""
        low, high = self.bounds.T
        # Rounding may put a point a last bit beyond the box.
        return np.asarray(np.clip(low + uniforms * (high - low), low, high))

    def uniforms(self, x: FloatArray) -> FloatArray:
        """Return the place in the box."""
        return np.asarray((x - self.bounds[:, 0]) / np.ptp(self.bounds, axis=1))

    def inside(self, x: FloatArray) -> BoolArray:
        """Say which points lie in the box, its faces included."""
        return np.asarray(((x >= self.bounds[:, 0]) & (x <= self.bounds[:, 1])).all(axis=1))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Return minus the logarithm of the volume, minus infinity outside."""
        return np.where(self.inside(x), -np.log(np.ptp(self.bounds, axis=1)).sum(), -np.inf)

    def standardised(self, x: FloatArray) -> FloatArray:
        """Return the box as one of side 2, around 0."""
        return np.asarray((x - self.bounds.mean(axis=1)) / (np.ptp(self.bounds, axis=1) / 2))

    def to_dict(self) -> dict[str, Any]:
        """Return the box."""
        return {"law": "uniform", "bounds": self.bounds.tolist()}


class ProductBase(Base):
    """Independent columns, each with a frozen distribution of `scipy.stats`.

    Examples
    --------
    >>> from scipy.stats import expon, norm
    >>> ProductBase([norm(5, 2), expon()]).points(np.array([[0.5, 0.5]])).round(3)
    array([[5.   , 0.693]])
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = tuple(columns)
        self.d = len(self.columns)
        if not self.d or not all(_has_quantiles(column) for column in self.columns):
            raise TypeError("base: each column needs a frozen distribution of scipy.stats, such as norm(5, 2)")
        marks = np.array([column.ppf([0.25, 0.5, 0.75]) for column in self.columns], dtype=np.float64)
        if not np.isfinite(marks).all():
            raise ValueError("base: a column's distribution has no finite quartiles")
        self._middle = marks[:, 1]
        # The quartiles of a normal law are 1.35 deviations apart; a discrete law may have equal ones.
        self._width = np.where(marks[:, 2] > marks[:, 0], (marks[:, 2] - marks[:, 0]) / 1.35, 1.0)

    def points(self, uniforms: FloatArray) -> FloatArray:
        """Return the quantiles of each column."""
        return np.column_stack([column.ppf(u) for column, u in zip(self.columns, uniforms.T, strict=True)])

    def uniforms(self, x: FloatArray) -> FloatArray:
        """Return the distribution function of each column."""
        return np.column_stack([column.cdf(values) for column, values in zip(self.columns, x.T, strict=True)])

    def inside(self, x: FloatArray) -> BoolArray:
        """Say which points lie in the support of every column."""
        ends = np.array([column.support() for column in self.columns], dtype=np.float64)
        within = (x >= ends[:, 0]) & (x <= ends[:, 1]) & np.isfinite(x)
        return np.asarray(within.all(axis=1))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Return the sum of the columns' log-densities (log-probabilities where they are discrete)."""
        # Discrete laws of scipy have a mass and no density.
        parts = [getattr(c, "logpdf" if hasattr(c.dist, "logpdf") else "logpmf") for c in self.columns]
        return np.asarray(sum(part(column) for part, column in zip(parts, x.T, strict=True)))

    def standardised(self, x: FloatArray) -> FloatArray:
        """Return the distance to the median in widths."""
        return np.asarray((x - self._middle) / self._width)

    def to_dict(self) -> dict[str, Any]:
        """Return names and parameters."""
        return {"law": "product", "columns": [_words(column) for column in self.columns]}


class FrozenLaw(Protocol):
    """What is asked of a frozen distribution of ``scipy.stats``."""

    def rvs(self, *, random_state: np.random.Generator) -> ArrayLike:
        """Draw one point."""

    def logpdf(self, x: FloatArray, /) -> ArrayLike:
        """Return the logarithm of the density."""


class OtherBase(Base):
    """Any other frozen distribution of several columns, drawn by its own sampler.

    Its sampler takes numpy's generators only, whose draws do not hide those that come after them from whoever can
    compute backwards: rejected proposals might come to light. So what is drawn here is not certified.

    Examples
    --------
    >>> from scipy.stats import multivariate_t
    >>> OtherBase(multivariate_t([0.0, 0.0], df=3)).points(np.full((3, 2), 0.1)).shape
    (3, 2)
    """

    reason = "the base was drawn by a generator that is not made to keep secrets"

    def __init__(self, frozen: FrozenLaw) -> None:
        self.frozen = frozen
        if not hasattr(frozen, "rvs") or not hasattr(frozen, "logpdf"):
            raise TypeError('base must be "normal", "uniform" or a frozen distribution of scipy.stats')
        # a draw from a fixed seed, to count its columns
        self.d = int(np.atleast_1d(frozen.rvs(random_state=np.random.default_rng(0))).shape[-1])

    def points(self, uniforms: FloatArray) -> FloatArray:
        """Return a draw for each row, of a generator that the row seeds."""
        # The bits of the uniform numbers are the seed, so that a point is a function of its row.
        seeds = np.ascontiguousarray(uniforms).view(np.uint64).tolist()
        drawn = [self.frozen.rvs(random_state=np.random.default_rng(seed)) for seed in seeds]
        return np.asarray(drawn, dtype=np.float64).reshape(len(uniforms), self.d)

    def inside(self, x: FloatArray) -> BoolArray:
        """Say where the density is positive."""
        with np.errstate(all="ignore"):
            return np.asarray(super().inside(x) & (self.log_density(np.nan_to_num(x)) > -np.inf))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Return its log-density."""
        return np.asarray(self.frozen.logpdf(x), dtype=np.float64).reshape(len(x))

    def standardised(self, x: FloatArray) -> FloatArray:
        """Return the point as it is."""
        return x

    def to_dict(self) -> dict[str, Any]:
        """Return its name and parameters."""
        return {"law": "other", "frozen": _words(self.frozen)}


def base_named(base: object, *, width: int, bounds: object = None) -> Base:
    """Return the base that a user means.

    Parameters
    ----------
    base : "normal", "uniform", Base or frozen distribution(s) of scipy.stats
        "normal" is the standard normal density or, with bounds, the one whose mean is the middle of each range and
        whose deviation is a quarter of it. "uniform" needs bounds. A distribution of one column serves all columns; a
        list has one for each.
    width : int
        Number of columns of the data, from their schema.
    bounds : array-like of shape (d, 2), optional
        Public.

    Examples
    --------
    >>> base_named("normal", width=1, bounds=[(0, 100)]).to_dict()
    {'law': 'normal', 'mean': [50.0], 'covariance': [[625.0]]}
    >>> base_named("triangular", width=1)
    Traceback (most recent call last):
    ValueError: base must be "normal", "uniform" or a frozen distribution of scipy.stats, got 'triangular'
    """
    box = None if bounds is None else check_bounds(bounds)
    # One pair of bounds serves all columns.
    if box is not None and len(box) == 1 < width:
        box = np.repeat(box, width, axis=0)
    found = _made(base, width, box)
    if box is not None and base not in ("normal", "uniform"):
        raise ValueError('bounds are of use only with base="normal" or base="uniform"')
    if found.d != width:
        name = "bounds" if box is not None else "base"
        raise ValueError(f"{name} must have {width} column{'' if width == 1 else 's'}, as the data have, got {found.d}")
    return found


def _made(base: object, width: int, box: FloatArray | None) -> Base:
    if isinstance(base, Base):
        return base
    if isinstance(base, str):
        if base == "normal" and box is None:
            return NormalBase(np.zeros(width), np.eye(width))
        if base == "normal" and box is not None:
            return NormalBase(box.mean(axis=1), np.diag((np.ptp(box, axis=1) / 4) ** 2))
        if base == "uniform":
            return UniformBase(box)
        raise ValueError(f'base must be "normal", "uniform" or a frozen distribution of scipy.stats, got {base!r}')
    if isinstance(base, list | tuple):
        return ProductBase(base)
    if _has_quantiles(base):
        return ProductBase([base] * width)
    if type(base).__name__ == "multivariate_normal_frozen":
        return NormalBase(base.mean, base.cov)  # type: ignore[attr-defined]
    return OtherBase(cast(FrozenLaw, base))  # which says what it is missing


def _has_quantiles(frozen: object) -> bool:
    return all(hasattr(frozen, name) for name in ("ppf", "support", "dist"))


def _words(frozen: object) -> str:
    """Return the name and parameters of a frozen distribution, without addresses in memory.

    The name tells which law it is where it is one of scipy's own; that of any other may be anything, and is told by
    some of its quantiles.
    """
    law: Any = frozen
    kind = getattr(law, "dist", None)
    if kind is not None and hasattr(law, "args"):
        named = f"{kind.name}{tuple(law.args)!r}{sorted(law.kwds.items())!r}"
        if type(getattr(stats, str(kind.name), None)) is type(kind):
            return named
        return f"{named} with quantiles {[f'{quantile:.9g}' for quantile in law.ppf(_MARKS).tolist()]}"
    given = {name: value for name, value in vars(frozen).items() if isinstance(value, int | float | np.ndarray)}
    return re.sub(r"\s+", " ", f"{type(frozen).__name__}{sorted((name, repr(v)) for name, v in given.items())}")


Function = Callable[[FloatArray], ArrayLike]

_MARGIN = 1.0 - 2.0**-40
"""Scales are shortened by this factor, which is more than floats round."""


@dataclass(frozen=True)
class LogRange:
    """The least and the greatest value of a log-density ratio over a domain.

    Examples
    --------
    >>> LogRange(-0.5, 0.5).in_mollifier(1.0), LogRange(-0.5, 0.6).in_mollifier(1.0)
    (True, False)
    """

    low: float
    high: float

    @property
    def spread(self) -> float:
        """How far apart the ends are."""
        return self.high - self.low

    def within(self, bound: float) -> bool:
        """Say whether both ends lie within plus or minus `bound`, compared without rounding."""
        finite_values = math.isfinite(self.low) and math.isfinite(self.high)
        return finite_values and max(-Fraction(self.low), Fraction(self.high)) <= Fraction(bound)

    def in_mollifier(self, epsilon: float) -> bool:
        """Say whether a density with this range of log-ratios to the base lies in the mollifier of `epsilon`."""
        return self.within(check_epsilon(epsilon) / 2.0)


def log_ratio_range(
    log_ratio: Function,
    domain: ArrayLike,
    *,
    cells: int | None = None,
    lipschitz: float = 0.0,
) -> LogRange:
    """Return the range of a log-density ratio over a domain.

    Parameters
    ----------
    log_ratio : callable
        Takes points of shape (n, d), returns n numbers. One that is NaN makes both ends NaN.
    domain : array-like of shape (n, d), or of shape (d, 2) with `cells`
        The points themselves, for which the range is exact; or, with `cells`, a box, whose lattice of this many cells
        an axis, corners included, takes its place.
    cells : int, optional
    lipschitz : float
        If the ratio is known to change by no more than this a unit of distance, the range is widened by what could
        happen between the lattice's points, and holds for all of the box.

    Examples
    --------
    >>> log_ratio_range(lambda x: 0.1 * x[:, 0], [(-2, 3)], cells=10)
    LogRange(low=-0.2, high=0.30000000000000004)
    >>> log_ratio_range(lambda x: 0.1 * x[:, 0], [[1.0], [2.0]])
    LogRange(low=0.1, high=0.2)
    """
    if cells is None:
        points, gap = np.asarray(domain, dtype=np.float64), 0.0
        if points.ndim != 2 or len(points) == 0:
            raise ValueError(f"domain must hold points, of shape (n, d), got shape {points.shape}")
    else:
        box = check_bounds(domain, name="domain")
        axes = [np.linspace(low, high, check_count(cells, "cells") + 1) for low, high in box]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))
        gap = float(np.linalg.norm(np.ptp(box, axis=1) / cells)) / 2.0
    values = np.asarray(log_ratio(points), dtype=np.float64)
    if values.shape != (len(points),):
        raise ValueError(f"log_ratio must return one number per point, got shape {values.shape}")
    return LogRange(float(values.min()) - lipschitz * gap, float(values.max()) + lipschitz * gap)


def scale_into(least: float, most: float, *, epsilon: float) -> float:
    r"""Return the largest s for which :math:`1 - s + s r` lies in the mollifier for every r from `least` to `most`.

    A ratio r to the base has mean 1 under it, so `least` is at most 1 and `most` at least 1, and so has
    :math:`1 - s + s r`: the mixture of base and density with weights 1 - s and s.

    Examples
    --------
    >>> round(scale_into(0.0, 5.0, epsilon=2.0), 4)       # the upper end decides: (e - 1) / 4
    0.4296
    >>> scale_into(0.9, 1.1, epsilon=2.0)                 # it is there already
    1.0
    """
    half = check_epsilon(epsilon) / 2.0
    if not (0.0 <= least <= 1.0 <= most < math.inf):
        raise ValueError(f"a density's ratio to the base runs from at most 1 to at least 1, got {least} to {most}")
    below = math.inf if least == 1.0 else -math.expm1(-half) / (1.0 - least)
    above = math.inf if most == 1.0 else math.expm1(half) / (most - 1.0)
    return 1.0 if min(below, above) > 1.0 else min(below, above) * _MARGIN


@dataclass(frozen=True)
class Mollified:
    """A density ratio brought into a mollifier: ``1 - scale + scale * ratio``.

    Modes stay where they are, and gradients of the ratio keep their direction.
    """

    ratio: Function
    scale: float

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the new ratio to the base."""
        return 1.0 - self.scale + self.scale * np.asarray(self.ratio(x), dtype=np.float64)

    def log_ratio(self, x: FloatArray) -> FloatArray:
        """Return its logarithm."""
        return np.asarray(np.log(self(x)))


def mollify(ratio: Function, domain: ArrayLike, *, epsilon: float, cells: int | None = None) -> Mollified:
    """Bring a density into the mollifier by scaling and shifting its ratio to the base.

    Parameters
    ----------
    ratio : callable
        Takes points of shape (n, d), returns the ratio of the density to the base, not its logarithm.
    domain, cells
        As for :func:`log_ratio_range`. The extremes are taken from there; for the result to lie in the mollifier the
        domain must hold the places where the ratio is least and greatest.
    epsilon : float

    Examples
    --------
    >>> peak = lambda x: 3 * x[:, 0] ** 2                 # a density on (0, 1)
    >>> tame = mollify(peak, [(0, 1)], cells=100, epsilon=1.0)
    >>> log_ratio_range(tame.log_ratio, [(0, 1)], cells=100).in_mollifier(1.0)
    True
    >>> round(tame.scale, 3)
    0.324
    """
    extremes = log_ratio_range(ratio, domain, cells=cells)
    return Mollified(ratio, scale_into(min(extremes.low, 1.0), max(extremes.high, 1.0), epsilon=epsilon))
