r"""How a fit in stages divides its budget, and the noise that each stage would have; free.

Stages of one release add up: their epsilons, or their :math:`\rho`. A stage with the share :math:`s` has Laplace noise
of the deviation :math:`\sqrt2\,\Delta_1/(s\varepsilon)`, or Gaussian noise of :math:`\Delta_2/\sqrt{2 s\rho}`. The
shares are functions of public numbers: of what is asked for, and of how many records are expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fogline._validation import check_count, check_delta, check_epsilon, check_neighbours
from fogline.accounting.costs import release_rho
from fogline.algorithms.stage_shares import mixture_shares
from fogline.density.columns import NumberColumn, magnitude_share, plan_shares

__all__ = ["STAGED", "Stage", "StagePlan", "expected_stages"]

STAGED = ("bounds", "mixture", "profile")
"""Fits whose stages are told here; those of clusters stand in their own plan."""


@dataclass(frozen=True)
class Stage:
    """One stage of a fit.

    Attributes
    ----------
    name : str
    share : Fraction
        Of the whole budget.
    noise : float
        Standard deviation of its counts, in records; NaN where it releases other numbers.
    """

    name: str
    share: Fraction
    noise: float


@dataclass(frozen=True)
class StagePlan:
    """Stages of one fit, in their order.

    Attributes
    ----------
    kind : str
    epsilon, delta : float
    n : int
        Records that are expected.
    stages : tuple of Stage

    Examples
    --------
    >>> print(expected_stages("bounds", 1000, epsilon=1.0, delta=1e-6, columns=2))
    bounds of about 1000 records at epsilon 1: magnitudes 1/6 (noise of 10), cells 1/3 (noise of 7.3), in each column
    """

    kind: str
    epsilon: float
    delta: float
    n: int
    stages: tuple[Stage, ...]

    def table(self) -> list[dict[str, object]]:
        """Rows for machines; shares are exact fractions."""
        return [
            {"stage": one.name, "share": str(one.share), "noise": None if math.isnan(one.noise) else one.noise}
            for one in self.stages
        ]

    def __str__(self) -> str:
        each = ", in each column" if self.kind == "bounds" else ""
        told = [
            f"{one.name} {one.share}" + ("" if math.isnan(one.noise) else f" (noise of {one.noise:.2g})")
            for one in self.stages
        ]
        return f"{self.kind} of about {self.n} records at epsilon {self.epsilon:g}: {', '.join(told)}{each}"


def expected_stages(
    kind: str,
    n: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    columns: int = 1,
    open_columns: int | None = None,
    n_components: int | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
) -> StagePlan:
    """Return how a fit of n records would divide its budget.

    Parameters
    ----------
    kind : {"bounds", "mixture", "profile"}
    n : int
        Number of records, as you guess it; what you would give as ``expect_records``.
    epsilon, delta : float
        Of the fit; a profile takes 0 as well.
    columns : int
        How many.
    open_columns : int, optional
        Of a profile: how many of them are numbers whose range is to be found; by default none.
    n_components : int, optional
        Of a mixture: how many components would be asked for.
    neighbours, max_contributions
        Of the fit.

    Examples
    --------
    >>> plan = expected_stages("profile", 20_000, epsilon=1.0, columns=4, open_columns=2)
    >>> sum(stage.share for stage in plan.stages), [stage.name for stage in plan.stages]
    (Fraction(1, 1), ['magnitudes', 'ranges', 'pilot', 'counts'])
    """
    if kind not in STAGED:
        raise ValueError(f"kind must be one of {', '.join(STAGED)}, got {kind!r}")
    count, width = check_count(n, "n"), check_count(columns, "columns")
    wanted = check_count(open_columns or 0, "open_columns", minimum=0)
    if wanted > width or (wanted and kind != "profile"):
        raise ValueError(f"open_columns must be at most the {width} columns of a profile, got {wanted}")
    components = None if n_components is None else check_count(n_components, "n_components")
    if components is not None and kind != "mixture":
        raise ValueError(f"n_components belongs to a mixture, not to {kind}")
    total, c = check_epsilon(epsilon), check_count(max_contributions, "max_contributions")
    pure = kind == "profile" and not delta
    spent = total if pure else release_rho(total, check_delta(delta))
    # a unit that is replaced takes c records away and brings c others
    cells = c if check_neighbours(neighbours) == "add-remove" else 2 * c
    noise: dict[str, float] = {}
    if kind == "mixture":
        shares = mixture_shares(count, spent, components, neighbours, c)
    elif kind == "bounds":
        first = magnitude_share(count, spent / width, neighbours, c)
        shares = {"magnitudes": first / width, "cells": (1 - first) / width}
        noise = {name: _bell(math.sqrt(cells * c), float(share) * spent) for name, share in shares.items()}
    else:
        whole = math.sqrt(2.0) * cells * width / spent if pure else _bell(math.sqrt(cells * c * width), spent)
        shares = plan_shares([NumberColumn(f"x{j}", None if j < wanted else (0.0, 1.0)) for j in range(width)])
        noise = _profile_noise(shares, whole, width, wanted, pure)
    stages = tuple(Stage(name, share, noise.get(name, math.nan)) for name, share in shares.items())
    return StagePlan(kind, total, float(delta), count, stages)


def _bell(sensitivity: float, rho: float) -> float:
    return sensitivity / math.sqrt(2.0 * rho)


def _profile_noise(
    shares: Mapping[str, Fraction], whole: float, columns: int, wanted: int, pure: bool
) -> dict[str, float]:
    """Noise of each stage: it has a share of the budget, and those that search have the open columns alone."""
    found = {}
    for name, share in shares.items():
        part = (wanted if name in ("magnitudes", "ranges") else columns) / columns
        found[name] = whole * (part / float(share) if pure else math.sqrt(part / float(share)))
    return found
