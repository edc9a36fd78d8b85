r"""A skeleton to copy: a certified estimator, in fogline's style.

Say the idea here in a few sentences, with its formula. This one finds the densest place of the records,

.. math:: \hat x = \arg\max_x \hat f_h(x),

where :math:`\hat f_h` is one differentially private release of their density. The proof is that of the
release (``release/density_sketch.proof.md``): a maximum of published numbers is post-processing.

The file then reads top to bottom: ``__all__``, result types, pure helpers, the class. An estimator that adds
noise of its own needs a proof beside it, an event in ``accounting`` and a replay test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from fogline import PrivateDensity, _validation
from fogline.accounting import Cost
from fogline.density.spec import SketchSpec
from fogline.estimators._base import ReleasedState
from fogline.release.density_sketch import ReleaseTerms
from fogline.release.passes import release_source
from fogline.sources.passes import as_source, unit_of

__all__ = ["DensestPlace"]


def highest_point(density: PrivateDensity) -> NDArray[np.float64]:
    """Return the grid point where a released density is highest.

    Helpers are pure functions of released values: they cannot leak what they never see.
    """
    grid = density.grid()
    return grid.points(np.array([int(np.argmax(grid.values))]))[0]


class DensestPlace(ReleasedState, BaseEstimator):
    """Find the densest place of the records, privately.

    Parameters
    ----------
    epsilon, delta : float
        Privacy budget of one ``fit``; both required: a default would be a promise that nobody made.
    bounds : array-like of shape (d, 2)
        Public range of each column, d up to 3. Never take it from the data.
    neighbours : {"add-remove", "replace"}
        Hide whether a person is in the data at all, or only what their record says.
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept.

    Attributes
    ----------
    place_ : array of shape (d,)
        The densest place.
    density_ : PrivateDensity
        The release, open to further questions at no cost.
    guarantee_ : Guarantee
        What is promised, and to whom.

    References
    ----------
    .. [1] R. Hall, A. Rinaldo, L. Wasserman, "Differential privacy for functions and functional data",
       JMLR 14, 2013.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal([3.0, -2.0], 1.0, size=(5000, 2))
    >>> found = DensestPlace(epsilon=1.0, delta=1e-6, bounds=[(-10, 10), (-10, 10)]).fit(X)
    >>> bool(np.abs(found.place_ - [3.0, -2.0]).max() < 1.0)
    True
    >>> print(found.guarantee_)
    Certified: adding or removing one record changes the probability of anything published by a factor of at
    most exp(1) = 2.72, except with probability 1e-06 (...).

    A mistake is named, before any record is read and any budget spent:

    >>> DensestPlace(delta=1e-6, bounds=[(-10, 10), (-10, 10)]).fit(X)
    Traceback (most recent call last):
    TypeError: epsilon must be given: there is no default privacy budget, got None

    A fitted estimator holds released values only; anything else does not survive a pickle:

    >>> import pickle
    >>> found.records_ = X
    >>> hasattr(pickle.loads(pickle.dumps(found)), "records_")
    False
    """

    _released_attributes = ("place_", "density_", "guarantee_")

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        bounds: ArrayLike | None = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        ledger: Any = None,
    ) -> None:
        # Store, nothing else: scikit-learn clones by these names, and fit never changes them.
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.max_contributions = max_contributions
        self.ledger = ledger

    def cost(self) -> Cost:
        """What one ``fit`` costs, from the parameters alone: a ledger asks this to plan."""
        return ReleaseTerms.checked(self.epsilon, self.delta, self.neighbours, self.max_contributions).cost()

    def fit(self, X: Any, y: Any = None) -> DensestPlace:  # noqa: ARG002
        """Release the density of the records once and read its highest place.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row a record, one column an axis. What is wrong with a cell is never an error.
        y : ignored

        Returns
        -------
        DensestPlace
            The estimator itself.
        """
        # 1. Validate all that is public, each error naming its parameter.
        source = as_source(X)
        terms = ReleaseTerms.checked(self.epsilon, self.delta, self.neighbours, self.max_contributions, unit_of(source))
        _validation.check_ledger(self.ledger)
        spec = SketchSpec.plan(self.bounds)
        self._remember_features(source, spec.d)
        # 2. and 3. Release once: the budget is reserved, noise drawn, records counted, and from here on everything may
        # be published. Nothing else here sees the records.
        try:
            density = release_source(source, spec, terms, self.ledger)
        finally:
            del X, source  # an error's traceback must not lead to them
        # 4. Read, and set the results last: a fit that fails leaves no half-fitted estimator.
        place = highest_point(density)
        self.place_ = place
        self.density_ = density
        self.guarantee_ = density.guarantee
        return self
