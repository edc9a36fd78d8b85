r"""Modal regression under differential privacy: all likely responses at x, not their mean.

``fit`` releases the joint density of (x, y) once, with discrete Gaussian noise on its Fourier sums, and reads all else
from that release: at each x the conditional modes that stand above the fog, joined into branches, with standard errors;
prediction sets; pictures. The release is proved in ``releases/density_sketch.proof.md``; what is specific to a response
beside X is in ``estimators/regression.proof.md``. The rest is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from fogline import _validation, units
from fogline._typing import BandwidthLike, BoundsLike, FloatArray, LedgerLike, SourceLike, StepsLike
from fogline.accounting.costs import Cost, GaussianCost, PureCost
from fogline.density.branches.branch_map import Branches, BranchMap, branches_at
from fogline.density.branches.branches import choose_bandwidth, read_branches
from fogline.density.branches.likely_sets import LikelySets
from fogline.density.branches.prediction_sets import PREDICTION, PredictionSets
from fogline.density.counted_records import check_expected
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec, as_bandwidth
from fogline.estimators._base import ReleasedState, schema_names, warn_of_count
from fogline.releases.density_sketch import ReleaseTerms
from fogline.releases.passes import release_source
from fogline.sources.passes import as_source, joined, names_of, unit_of, width_of
from fogline.sources.tables import Source

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from fogline.planning.regression import ExpectedBranches

__all__ = ["PrivateModalRegression"]

MOST_X = 2
"""Columns of x at most: a joint density of more is lost in the noise."""

SCALES = ((0.04, 0.02), (0.1, 0.05))
SCALE_SHARES = (0.2, 0.8)
"""Planned bandwidths of x and y, in widths of their ranges, and their shares of the release, for one column of x.

A branch is located best by a kernel as wide as the branch is across, and smoothed along x by more."""


class PrivateModalRegression(ReleasedState, BaseEstimator):  # type: ignore[misc]
    r"""Find the conditional modes of a response y at every x, privately.

    Parameters
    ----------
    epsilon, delta : float
        Privacy budget of one ``fit``; both required.
    x_bounds : array-like of shape (dx, 2), list or mapping
        Public range of each column of X, one or two, as :class:`fogline.PrivateModes` takes it; one pair serves both.
    y_bounds : (float, float), str or mapping
        Public range of the response, or the name of one; by name of the response as in ``{"stay": (0, 60)}``. Records
        outside the bounds contribute nothing. Never take them from the data. A margin of an eighth of the range around
        the likely responses costs nothing and keeps branches off the walls.
    level : float, default 0.05
        Chance of reporting any branch where the response is spread evenly at every x.
    bandwidth : "auto" or array-like of shape (dx + 1,)
        Kernel bandwidth of each column of X and of y, in data units; a number is a fraction of each range.
    steps : None or list
        Public rounding step of each column of X and of y, None for a continuous one.
    neighbours : {"add-remove", "replace"}
        Hide whether a person is in the data at all, or only what their record says.
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    expect_records : int, optional
        About how many records you expect: ``message_`` says when the released count is far from it. Words only.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept.

    Attributes
    ----------
    density_ : PrivateDensity
        The released joint density, y last; open to further questions at no cost.
    branches_ : BranchMap
        The branches on a grid of x.
    bandwidth_ : array of shape (dx + 1,)
        At which the branches were read, y last.
    guarantee_ : Guarantee
        What is promised, and to whom.
    message_ : str
        What would help if there is no branch, and what to check, when the released count or the budget gives cause;
        else empty.

    Notes
    -----
    A mean describes no one where responses form groups; the branches do. There is no ``score``: a number computed from
    private records is a release of its own. To judge a fit use the standard errors, which are free: they contain
    privacy noise and the sampling of the records, and smoothing where a release on leaves lets it be known
    (``smoothing_errors``; a Fourier release does not).

    See Also
    --------
    fogline.PrivateModes : modes of the records themselves.

    References
    ----------
    .. [1] Y.-C. Chen, C. Genovese, R. Tibshirani, L. Wasserman, "Nonparametric modal regression", Annals of Statistics
       44, 2016.
    .. [2] R. Hall, A. Rinaldo, L. Wasserman, "Differential privacy for functions and functional data", JMLR 14, 2013.

    Examples
    --------
    >>> from fogline import PrivateModalRegression
    >>> from fogline_research.datasets.regression import sinusoidal_mixture
    >>> sample = sinusoidal_mixture(5000, random_state=0)
    >>> model = PrivateModalRegression(epsilon=1.0, delta=1e-5, x_bounds=(0, 1), y_bounds=(-1.5, 3))
    >>> modes = model.fit(sample.X, sample.y).predict_modes([[0.5]])[0]
    >>> bool(abs(np.sort(modes) - [-0.5, 1.0]).max() < 0.3)
    True
    >>> len(model.prediction_sets([[0.5]])[0])       # two intervals, and nothing between them
    2
    """

    _released_attributes = ("density_", "branches_", "bandwidth_", "guarantee_", "message_")

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        x_bounds: BoundsLike = None,
        y_bounds: BoundsLike = None,
        level: float = 0.05,
        bandwidth: BandwidthLike = "auto",
        steps: StepsLike = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        expect_records: int | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.x_bounds = x_bounds
        self.y_bounds = y_bounds
        self.level = level
        self.bandwidth = bandwidth
        self.steps = steps
        self.neighbours = neighbours
        self.max_contributions = max_contributions
        self.expect_records = expect_records
        self.ledger = ledger

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    @np.errstate(all="ignore")  # what is read of an answer must not fail by a setting of the calling program
    def fit(self, X: SourceLike, y: object = None) -> PrivateModalRegression:
        """Release the joint density of the records once and read its branches.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record, one or two columns.
        y : array, str or None
            The response of each record; or the name of its column in X; or None: the last column of X.

        Returns
        -------
        PrivateModalRegression
            The estimator itself.
        """
        terms = self._terms(unit_of(as_source(X)))
        _validation.check_ledger(self.ledger)
        check_expected(self.expect_records)
        level = _validation.check_level(self.level)
        wide = width_of(as_source(X))
        apart = y is not None and not isinstance(y, str)
        if apart and isinstance(as_source(X), Source):
            raise TypeError(
                "y must be a column of X, by name or the last, where X is a file, sparse or an engine's table"
            )
        # Without y the last column of X is the response.
        own = wide if wide is None or apart else max(wide - 1, 1)
        whole = schema_names(as_source(X))
        known = whole if whole is None or apart else [n for n in whole if n != (whole[-1] if y is None else y)]
        spec = self._spec(own, known)
        response = self._response(y, whole)
        source = joined(X, y, spec.d - 1)
        names = names_of(as_source(X) if apart else source)
        names = None if names is None else names[: spec.d - 1]
        self._remember_features(SimpleNamespace(columns=names), spec.d - 1, self.x_bounds)
        try:
            density = release_source(source, spec, terms, self.ledger)
        finally:
            del X, y, source  # an error's traceback must not lead to the records
        density = self._named(density, response)
        fixed = None if isinstance(self.bandwidth, str) else as_bandwidth(self.bandwidth, spec.widths)
        self._keep(density, read_branches(density, level, fixed))
        warn_of_count(density.guarantee, density.count)
        return self

    def read(self, density: PrivateDensity, y: str | int | None = None) -> PrivateModalRegression:
        """Read the branches of one column of a density that was released before, given its others; free.

        The branches come from the posterior of the release: their bands hold privacy, sampling and smoothing, and a
        response that is densest at a wall of its range has a branch there.

        Parameters
        ----------
        density : PrivateDensity
            Of two or three columns, of leaves or of Fourier sums.
        y : str or int, optional
            The response; by default the last column.

        Returns
        -------
        PrivateModalRegression
            The estimator itself, fitted; of its parameters only ``expect_records`` counts.

        Examples
        --------
        >>> import numpy as np
        >>> from fogline import DensitySketch, PrivateModalRegression
        >>> rng = np.random.default_rng(0)
        >>> age = rng.uniform(20, 80, 5000)
        >>> stay = rng.gamma(3.0, 1 + age / 40)                       # skewed: the mode is 2 + age / 20
        >>> sketch = DensitySketch([(20, 80), (0, 60)], features="leaves").update(np.column_stack([age, stay]))
        >>> model = PrivateModalRegression().read(sketch.release(epsilon=2.0))
        >>> found = model.branches([[50.0]])
        >>> bool(found.low[0] < 6.0 and found.high[0] > 3.0)
        True
        """
        if not isinstance(density, PrivateDensity):
            raise TypeError(f"density must be a PrivateDensity, got {type(density).__name__}")
        check_expected(self.expect_records)
        found = density.branches(y)
        names = density.posterior.columns if density.columns is not None else None
        others = None if names is None else [name for k, name in enumerate(names) if k != found.response]
        self._remember_features(SimpleNamespace(columns=others), density.spec.d - 1)
        self._keep(density, found)
        return self

    def _keep(self, density: PrivateDensity, found: BranchMap) -> None:
        self.density_ = density
        self.guarantee_ = density.guarantee
        self.branches_ = found
        self.bandwidth_ = found.bandwidth
        counted = (density.count, density.count_sd)
        self.message_ = self._message(found.message, density.guarantee, *counted, response=1)

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What one ``fit`` costs, from the parameters alone."""
        return self._terms().cost()

    def expected_error(
        self, n: int, *, shape: ArrayLike = 1, epsilons: Sequence[float] | None = None
    ) -> ExpectedBranches:
        """What a fit on n records could tell, before any are touched; free.

        Parameters
        ----------
        n : int
            A guess of the number of records.
        shape : int, (int, float) or array of shape (m, dx + 1)
            A public guess: this many level branches, x uniform, with a standard deviation of y around each (a twentieth
            of the range if not given); or a *public* sample that looks like the records, y last. Never the data.
        epsilons : sequence of float, optional
            Budgets to compare; by default a few from 0.1 to 5, and the estimator's own.

        Returns
        -------
        ExpectedBranches
            Expected standard errors, and the chance that a branch stands above the fog, by epsilon.
        """
        from fogline.planning.regression import expected_branches

        return expected_branches(self, n, shape=shape, epsilons=epsilons)

    # -- questions to the release: free ---------------------------------------------------------------------

    def branches(self, X: ArrayLike) -> Branches:
        """Conditional modes at the rows of X with their standard errors and the branches that they belong to."""
        return branches_at(self.branches_, self._queries(X))

    def predict_modes(self, X: ArrayLike) -> list[FloatArray]:
        """Conditional modes at each row of X, highest first; an empty array where nothing stands above the fog."""
        places = self._queries(X)
        found = branches_at(self.branches_, places)
        return [found.positions[found.rows == row] for row in range(len(places))]

    def predict(self, X: ArrayLike) -> FloatArray:
        """Highest conditional mode at each row of X, shape (rows,); NaN where nothing stands above the fog."""
        places = self._queries(X)
        found = branches_at(self.branches_, places)
        highest = np.full(len(places), np.nan)
        # Within a row the highest mode comes first.
        rows, first = np.unique(found.rows, return_index=True)
        highest[rows] = found.positions[first]
        return highest

    def prediction_sets(self, X: ArrayLike, *, coverage: float = 0.9) -> list[FloatArray]:
        """Sets of likely responses: intervals at each row of X that together hold a share `coverage` of responses.

        Parameters
        ----------
        X : array-like of shape (rows, dx)
        coverage : float, default 0.9
            Share of records whose response lies in the set at its x: of all records, not at every x.

        Returns
        -------
        list of arrays of shape (k, 2)
            ``(low, high)`` of each interval, from below; the whole of `y_bounds` where nothing is known.
        """
        share = _validation.check_level(coverage, "coverage")
        places = self._queries(X)
        if self.branches_.response is not None:
            return LikelySets(self.density_.posterior, self.branches_.response, share).at(places)
        fixed = None if isinstance(self.bandwidth, str) else self.bandwidth_
        bandwidth = choose_bandwidth(self.density_, PREDICTION.clear) if fixed is None else fixed
        return PredictionSets(self.density_, bandwidth, share).at(places)

    # -- parameters -----------------------------------------------------------------------------------------

    def _queries(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=0
        )
        return np.asarray(rows)

    def _terms(self, unit: str = "record") -> ReleaseTerms:
        return ReleaseTerms.checked(
            self.epsilon, self.delta, self.neighbours, self.max_contributions, unit, ledger=self.ledger
        )

    def _response(self, y: object, names: Sequence[str] | None) -> str:
        """Name of the response: that of its column or series, or the one that bounds it, else y."""
        bounded = units.bounded_names(self.y_bounds)
        last = None if names is None or y is not None else names[-1]
        own = y if isinstance(y, str) else last if y is None else getattr(y, "name", None)
        return own if isinstance(own, str) else bounded[0] if bounded else "y"

    def _spec(self, width: int | None, columns: Sequence[str] | None = None) -> SketchSpec:
        """Plan the sketch of this many columns of X and the response; raises before anything is spent."""
        x_bounds = units.resolve_bounds(self.x_bounds, columns, name="x_bounds", width=width)
        y_bounds = units.resolve_bounds(self.y_bounds, name="y_bounds")
        if len(y_bounds) != 1:
            raise ValueError(f"y_bounds must be one (low, high) pair, got {len(y_bounds)}")
        if len(x_bounds) > MOST_X:
            raise ValueError(f"x_bounds: X has {len(x_bounds)} columns, but modal regression takes at most {MOST_X}")
        bounds = np.concatenate([x_bounds, y_bounds])
        if isinstance(self.bandwidth, str):
            if self.bandwidth == "auto" and len(bounds) == 2:
                planned = np.array(SCALES) * (bounds[:, 1] - bounds[:, 0])
                return SketchSpec.plan(bounds, planned.tolist(), self.steps, shares=SCALE_SHARES)
            return SketchSpec.plan(bounds, self.bandwidth, self.steps)
        fixed = as_bandwidth(self.bandwidth, bounds[:, 1] - bounds[:, 0])
        spec = SketchSpec.plan(bounds, [fixed], self.steps)
        spec.require_readable(fixed)
        return spec
