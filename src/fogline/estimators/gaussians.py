"""The Gaussian learners as releases of their own."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from fogline import _validation
from fogline._typing import LedgerLike, SourceLike
from fogline.accounting.guarantee import Guarantee
from fogline.algorithms.mixture_recursive import learn_gaussians, refine_balls
from fogline.estimators.locating import public_frame
from fogline.queries.gaussian import Gaussian, SphericalGaussian, SphericalQuery
from fogline.queries.lattice import CentredBallLattice
from fogline.queries.moments import MOST_COLUMNS
from fogline.queries.partition import Partition
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import as_source, names_of, unit_of

__all__ = ["private_gaussian", "private_spherical_gaussian"]

CODE_VERSION = "gaussian-2"

PLACE_SHARE = Fraction(1, 10)
"""Share of the budget that finds where the records are; their covariance has the rest."""

PLACE_STEPS = 4

T = TypeVar("T")


def private_gaussian(
    X: SourceLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    radius: float | None = None,
    center: ArrayLike | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    ledger: LedgerLike | None = None,
) -> tuple[Gaussian, Guarantee]:
    """Learn the mean and the covariance of records that are about Gaussian, wherever they are in a large ball.

    Parameters
    ----------
    X : array, frame, path or engine table
        One row per record.
    epsilon, delta : float
        Privacy budget; both required.
    radius : float
        Of the public ball. It may be thousands of times larger than the records' spread.
    center : array-like of shape (d,), optional
        Of the public ball; the origin by default.
    neighbours, max_contributions, ledger
        As for :class:`fogline.PrivateModes`.

    Returns
    -------
    gaussian, guarantee
        The :class:`~fogline.queries.gaussian.Gaussian` has ``mean``, ``covariance``, ``count`` and ``mean_sd``.

    References
    ----------
    .. [1] S. Biswas, Y. Dong, G. Kamath, J. Ullman, "CoinPress: practical private mean and covariance estimation",
       NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import private_gaussian
    >>> X = np.random.default_rng(0).normal([300.0, -20.0], [1.0, 5.0], size=(20000, 2))
    >>> found, guarantee = private_gaussian(X, epsilon=1.0, delta=1e-6, radius=1000.0)
    >>> bool(np.abs(found.mean - [300, -20]).max() < 0.5)
    True
    >>> np.sqrt(np.diag(found.covariance)).round()
    array([1., 5.])
    """

    def algorithm(frame: CentredBallLattice, curator: Curator) -> Gaussian:
        whole = Partition(frame.d)
        frames, _ = refine_balls(curator, whole, (frame,), share=PLACE_SHARE, steps=PLACE_STEPS)
        (found,) = learn_gaussians(curator, whole, frames, 1 - PLACE_SHARE)
        kept = curator.remember("gaussian", lambda: dict(vars(found)))
        return Gaussian(
            kept["mean"], kept["covariance"], float(kept["count"]), float(kept["count_sd"]), kept["mean_sd"]
        )

    wishes = (epsilon, delta, neighbours, max_contributions)
    return _learnt(X, algorithm, "gaussian", wishes, center, radius, ledger)


def private_spherical_gaussian(
    X: SourceLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    radius: float | None = None,
    center: ArrayLike | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    ledger: LedgerLike | None = None,
) -> tuple[SphericalGaussian, Guarantee]:
    """Learn the mean and the one variance of a spherical Gaussian in a ball that fits it roughly.

    Parameters
    ----------
    X, epsilon, delta, center, neighbours, max_contributions, ledger
        As for :func:`private_gaussian`.
    radius : float
        Of the public ball, in which nearly all records should be: noise grows with it.

    Returns
    -------
    gaussian, guarantee
        The :class:`~fogline.queries.gaussian.SphericalGaussian` has ``mean``, ``sigma``, ``count``.

    References
    ----------
    .. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
       separated Gaussians", NeurIPS 2019, Algorithm 6.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import private_spherical_gaussian
    >>> X = np.random.default_rng(0).normal([3.0, -2.0, 0.0], 2.0, size=(20000, 3))
    >>> found, guarantee = private_spherical_gaussian(X, epsilon=1.0, delta=1e-6, radius=15.0)
    >>> bool(np.abs(found.mean - [3, -2, 0]).max() < 0.2), bool(abs(found.sigma - 2) < 0.2)
    (True, True)
    """

    def algorithm(frame: CentredBallLattice, curator: Curator) -> SphericalGaussian:
        (found,) = curator.ask(SphericalQuery(Partition(frame.d), (frame,)), Fraction(1), "sphere")
        return found

    wishes = (epsilon, delta, neighbours, max_contributions)
    return _learnt(X, algorithm, "spherical_gaussian", wishes, center, radius, ledger)


def _learnt(
    X: SourceLike,
    algorithm: Callable[[CentredBallLattice, Curator], T],
    name: str,
    wishes: tuple[Any, Any, Any, Any],
    center: ArrayLike | None,
    radius: float | None,
    ledger: LedgerLike | None,
) -> tuple[T, Guarantee]:
    """Check what is public, then learn."""
    source = as_source(X)
    terms = ReleaseTerms.checked(*wishes, unit_of(source), ledger=ledger)
    _validation.check_ledger(ledger)
    frame = public_frame(source, center, radius)
    if frame.d > MOST_COLUMNS:
        raise ValueError(f"X has {frame.d} columns: the covariance of at most {MOST_COLUMNS} can be released")
    columns = names_of(source)
    curator = Curator(source, terms, width=frame.d)
    del X, source
    found, guarantee, _ = curator.release(
        lambda curator: algorithm(frame, curator),
        mechanism="discrete Gaussian noise on clipped first and second moments",
        proof=f"{name.replace('_', '-')}-learner",
        name=name.replace("_", " "),
        code_version=CODE_VERSION,
        parameters={
            "center": frame.centre.tolist(),
            "radius": frame.radius,
            "columns": None if columns is None else list(columns),
        },
        # The ledger reserves room on the disk before anything is released.
        max_payload=8 * (PLACE_STEPS * (frame.d + 32) + 5 * (frame.d + 1) ** 2 + 8) + 2**16,
        ledger=ledger,
    )
    return found, guarantee
