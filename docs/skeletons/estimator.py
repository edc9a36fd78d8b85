r"""A skeleton to copy: a certified estimator, in fogline's style.

Say the idea here in a few sentences, with its formula. This one finds, in each column, a short interval that holds many
records: the densest of a few wide intervals first, then the densest of a few short ones within it,

.. math:: \hat I = \arg\max_{I \subset \hat J} \hat c(I), \qquad \hat J = \arg\max_J \hat c(J).

Both counts are noisy answers of :class:`IntervalCountsQuery` (``query.py`` beside this file, with its proof), paid from
one budget; what is asked second depends on the first *answer*, never on the records.

The file then reads top to bottom: ``__all__``, result types, the algorithm, the class. The algorithm belongs into
``algorithms`` where it is more than a few lines. A new query needs a proof beside it, a new release a golden answer
(``tests/golden``), and both a replay test.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from docs.skeletons.query import IntervalCounts, IntervalCountsQuery
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from fogline import _validation
from fogline.accounting import Cost, GaussianCost, PureCost
from fogline.estimators._base import ReleasedState
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import as_source, names_of, unit_of, width_of

__all__ = ["DensestIntervals", "densest_intervals"]

PROOF = "docs/skeletons/query.proof.md"
"""In fogline an id of ``accounting/proofs.py``."""

CODE_VERSION = "densest-1"
"""Changes whenever the same question may get an answer of another law: a ledger then takes it for another question."""

INTERVALS = 8
WIDE_SHARE = Fraction(1, 3)
"""Share of the budget for the wide intervals; the short ones have the rest."""


def densest_intervals(box: NDArray[np.float64], curator: Curator) -> IntervalCounts:
    """Ask for wide intervals, decide, ask for short ones.

    An algorithm is given a curator and public parameters: it cannot leak what it never sees.
    """
    wide = curator.ask(IntervalCountsQuery(box, INTERVALS), WIDE_SHARE, "wide")
    return curator.ask(IntervalCountsQuery(wide.densest(), INTERVALS), 1 - WIDE_SHARE, "short")


class DensestIntervals(ReleasedState, BaseEstimator):
    """Find a short interval that holds many records, in each column, privately.

    Parameters
    ----------
    epsilon, delta : float
        Privacy budget of one ``fit``; both required: a default would be a promise that nobody made.
    bounds : array-like of shape (d, 2)
        Public range of each column. Never take it from the data.
    neighbours : {"add-remove", "replace"}
        Hide whether a person is in the data at all, or only what their record says.
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept.

    Attributes
    ----------
    intervals_ : array of shape (d, 2)
        The interval of each column.
    counts_ : IntervalCounts
        The released counts that it was chosen by.
    guarantee_ : Guarantee
        What is promised, and to whom.
    receipt_ : dict or None
        What the ledger was charged, if there is one.

    References
    ----------
    .. [1] M. Bun, T. Steinke, "Concentrated differential privacy: simplifications, extensions, and lower bounds",
       TCC 2016.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal([3.1, -2.2], 0.1, size=(5000, 2))
    >>> found = DensestIntervals(epsilon=1.0, delta=1e-6, bounds=[(-8, 8), (-8, 8)]).fit(X)
    >>> found.intervals_.tolist()
    [[3.0, 3.25], [-2.25, -2.0]]
    >>> print(found.guarantee_)
    Certified: adding or removing one record changes the probability of anything published by a factor of at
    most exp(1) = 2.72, except with probability 1e-06 (...).

    A mistake is named, before any record is read and any budget spent:

    >>> DensestIntervals(delta=1e-6, bounds=[(-8, 8), (-8, 8)]).fit(X)
    Traceback (most recent call last):
    TypeError: epsilon must be given: there is no default privacy budget, got None

    A fitted estimator holds released values only; anything else does not survive a pickle:

    >>> import pickle
    >>> found.records_ = X
    >>> hasattr(pickle.loads(pickle.dumps(found)), "records_")
    False
    """

    _released_attributes = ("intervals_", "counts_", "guarantee_", "receipt_")

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

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What one ``fit`` costs, from the parameters alone: a ledger asks this to plan."""
        wishes = (self.epsilon, self.delta, self.neighbours, self.max_contributions)
        return ReleaseTerms.checked(*wishes, ledger=self.ledger).cost()

    def fit(self, X: Any, y: Any = None) -> DensestIntervals:  # noqa: ARG002
        """Ask for both counts and keep the densest intervals.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record, one column per axis. What is wrong with a cell is never an error.
        y : ignored

        Returns
        -------
        DensestIntervals
            The estimator itself.
        """
        # 1. Validate all that is public, each error naming its parameter.
        source = as_source(X)
        wishes = (self.epsilon, self.delta, self.neighbours, self.max_contributions)
        terms = ReleaseTerms.checked(*wishes, unit_of(source), ledger=self.ledger)  # its lane decides the accounting
        _validation.check_ledger(self.ledger)
        box = _validation.check_bounds(self.bounds, width=width_of(source))
        self._remember_features(source, len(box))
        # 2. Hand the source to a curator: nothing else here leads to the records from now on.
        columns, curator = names_of(source), Curator(source, terms, width=len(box))
        del X, source  # an error's traceback must not lead to them
        # 3. Release once: the budget is reserved, noise drawn, records counted. What comes back may be published, and a
        # question that was asked before comes back from the ledger's transcript, without records.
        counts, guarantee, receipt = curator.release(
            lambda curator: densest_intervals(box, curator),
            mechanism="discrete Gaussian noise on counts in intervals",
            proof=PROOF,
            name="densest intervals",
            code_version=CODE_VERSION,
            parameters={"bounds": box.tolist(), "columns": None if columns is None else list(columns)},
            max_payload=2 * 8 * len(box) * INTERVALS + 2**16,
            ledger=self.ledger,
        )
        # 4. Set the results last: a fit that fails leaves no half-fitted estimator.
        self.intervals_ = counts.densest()
        self.counts_ = counts
        self.guarantee_ = guarantee
        self.receipt_ = receipt
        return self
