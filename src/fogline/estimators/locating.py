"""One cluster and terrific balls of private records, each as a release of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fogline import _validation
from fogline._typing import LedgerLike, SourceLike
from fogline.accounting.guarantee import Guarantee
from fogline.algorithms.ball_search import BallPlan, LocatedTerms, find_ball
from fogline.queries.ball_search import Ball, NotSeparable
from fogline.queries.lattice import CentredBallLattice
from fogline.releases.curator import Curator
from fogline.sources.passes import as_source, names_of, unit_of, width_of

__all__ = ["one_cluster", "public_frame", "terrific_ball"]

CODE_VERSION = "ball-1"

CONSTANTS = ("practical", "theory")

MOST_RECORDS = 2**40
"""Greatest number of records that a ball may be asked to hold: counts up to it fit the thresholds exactly."""


MOST_STRETCH = 2.0**40
"""Greatest c: beyond the ratio of the lattice's radii no ball leaves a record out, and squares must stay finite."""


def public_frame(source: SourceLike, center: ArrayLike | None, radius: float | None) -> CentredBallLattice:
    """Check the public ball; where no centre is given it is the origin."""
    if center is not None:
        return CentredBallLattice.around(center, radius)
    width = width_of(source)
    if width is None:
        raise ValueError("center must be given: the source does not tell how many columns it has")
    return CentredBallLattice.around(np.zeros(width), radius)


def one_cluster(
    X: SourceLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    radius: float | None = None,
    center: ArrayLike | None = None,
    radius_min: float | None = None,
    fraction: float | None = None,
    size: int | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    constants: str = "practical",
    ledger: LedgerLike | None = None,
) -> tuple[Ball | NotSeparable, Guarantee]:
    """Find a small ball that holds many records.

    Parameters
    ----------
    X : array, frame, path or engine table
        One row per record.
    epsilon, delta : float
        Privacy budget; both required.
    radius : float
        Of the public ball; records outside are moved to its surface.
    center : array-like of shape (d,), optional
        Of the public ball; the origin by default.
    radius_min : float, optional
        Smallest radius that is of interest; by default a millionth of `radius`.
    fraction : float, optional
        Part of all records that the ball should hold; a half by default.
    size : int, optional
        Number of records that the ball should hold, instead of a fraction.
    neighbours : {"add-remove", "replace"}
        What is hidden: whether a person is in the data at all, or which records they have. The second costs more here,
        since a replaced record is one that goes and one that comes.
    max_contributions, ledger
        As for :class:`fogline.PrivateModes`.
    constants : {"practical", "theory"}
        Those of the analysis, or such as work on moderate data. Privacy is the same.

    Returns
    -------
    ball, guarantee
        A :class:`~fogline.queries.ball_search.Ball`, or :class:`~fogline.queries.ball_search.NotSeparable`.

    References
    ----------
    .. [1] K. Nissim, U. Stemmer, S. Vadhan, "Locating a small cluster privately", PODS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import one_cluster
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal([30.0, -20.0], 1.0, size=(6000, 2)), rng.uniform(-100, 100, size=(3000, 2))])
    >>> ball, guarantee = one_cluster(X, epsilon=2.0, delta=1e-6, radius=200.0, radius_min=0.1)
    >>> bool(np.linalg.norm(ball.centre - [30, -20]) < 2), ball.radius < 20
    (True, True)
    >>> guarantee.certified
    True
    """
    return _ball(
        X,
        "one cluster",
        "one-cluster",
        (epsilon, delta, neighbours, max_contributions),
        (center, radius, radius_min, fraction, size, constants),
        ledger,
    )


def terrific_ball(
    X: SourceLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    radius: float | None = None,
    center: ArrayLike | None = None,
    radius_min: float | None = None,
    fraction: float | None = None,
    size: int | None = None,
    c: float = 5.0,
    largest: bool = False,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    constants: str = "practical",
    ledger: LedgerLike | None = None,
) -> tuple[Ball | NotSeparable, Guarantee]:
    """Find a ball that holds many records, leaves many out, and has hardly any around it.

    Parameters
    ----------
    X, epsilon, delta, radius, center, radius_min, neighbours, max_contributions, constants, ledger
        As for :func:`one_cluster`.
    fraction : float, optional
        Part of all records that the ball should hold, and leave out, at least; a fifth by default.
    size : int, optional
        The same as a number of records.
    c : float
        Between the ball and its c-fold there is next to nothing.
    largest : bool
        Whether the largest such ball is wanted, not the smallest.

    Returns
    -------
    ball, guarantee

    References
    ----------
    .. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
       separated Gaussians", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import terrific_ball
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-50.0, 1.0, size=(6000, 2)), rng.normal(50.0, 1.0, size=(6000, 2))])
    >>> ball, guarantee = terrific_ball(X, epsilon=2.0, delta=1e-6, radius=200.0, radius_min=0.1)
    >>> bool(min(np.linalg.norm(ball.centre - 50), np.linalg.norm(ball.centre + 50)) < 2), ball.stretch
    (True, 5.0)
    """
    return _ball(
        X,
        "terrific ball",
        "terrific-ball",
        (epsilon, delta, neighbours, max_contributions),
        (center, radius, radius_min, 0.2 if fraction is None and size is None else fraction, size, constants),
        ledger,
        stretch=c,
        largest=largest,
    )


def _ball(
    X: SourceLike,
    name: str,
    proof: str,
    wishes: tuple[Any, Any, Any, Any],
    where: tuple[Any, Any, Any, Any, Any, Any],
    ledger: LedgerLike | None,
    **terrific: Any,
) -> tuple[Ball | NotSeparable, Guarantee]:
    """Check what is public, then search."""
    source = as_source(X)
    terms = LocatedTerms.located(*wishes, unit_of(source))
    _validation.check_ledger(ledger)
    plan = _plan(source, *where, **terrific)
    columns = names_of(source)
    curator = Curator(source, terms, width=plan.frame.d)
    del X, source
    found, guarantee, _ = curator.release(
        lambda curator: find_ball(curator, plan, Fraction(1), Fraction(1)),
        mechanism="above threshold, stable histogram and discrete Gaussian noise",
        proof=proof,
        name=name,
        code_version=CODE_VERSION,
        parameters={**plan.to_dict(), "columns": None if columns is None else list(columns)},
        max_payload=plan.payload(),
        ledger=ledger,
    )
    return found, guarantee


def _plan(
    source: SourceLike,
    center: ArrayLike | None,
    radius: float | None,
    radius_min: float | None,
    fraction: float | None,
    size: int | None,
    constants: str,
    stretch: float | None = None,
    largest: bool = False,
) -> BallPlan:
    """Check the public parameters of a search; every error names its parameter."""
    frame = public_frame(source, center, radius)
    # A millionth of the public ball: twenty radii, each of which costs a comparison.
    smallest = frame.radius * 1e-6 if radius_min is None else _validation.check_positive(radius_min, "radius_min")
    if smallest > frame.radius:
        raise ValueError(f"radius_min must not exceed radius, got {smallest} and {frame.radius}")
    if fraction is not None and size is not None:
        raise TypeError("only one of fraction and size can be given")
    part = None if fraction is None else _validation.check_level(fraction, "fraction")
    target = None if size is None else _validation.check_count(size, "size")
    if target is not None and target > MOST_RECORDS:
        raise ValueError(f"size must be at most {MOST_RECORDS}: no table has as many records, got {target}")
    if constants not in CONSTANTS:
        raise ValueError(f"constants must be one of {', '.join(CONSTANTS)}, got {constants!r}")
    if stretch is not None and not 1 < _validation.check_positive(stretch, "c") <= MOST_STRETCH:
        raise ValueError(f"c must be greater than 1 and at most 2^40, got {stretch}")
    return BallPlan(
        frame, smallest, part, target, None if stretch is None else float(stretch), bool(largest), constants
    )
