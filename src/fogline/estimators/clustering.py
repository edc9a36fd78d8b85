r"""Clusters under differential privacy: centres, sizes and an uncertainty for each, never a record's label.

Up to three columns, ``fit`` releases the density once and reads the basins of attraction of its modes. Beyond, it
makes a few releases that are paid from one budget: a private projection, random features of the projected records
with a greedy pursuit of clusters in them, and private steps of refinement. Labels are computed by whoever holds a
record, with :meth:`PrivateModeClustering.predict`. The proof is in ``algorithms/clustering.proof.md``.

What a fitted clustering keeps: released values, by the names of its attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import BaseEstimator

from fogline import _validation, units
from fogline._typing import BandwidthLike, BoundsLike, FloatArray, IntArray, LedgerLike, SourceLike, StepsLike
from fogline.accounting.costs import Cost, GaussianCost, PureCost
from fogline.accounting.guarantee import Guarantee
from fogline.algorithms.clustering import (
    ClusterPlan,
    FoundClusters,
    Refinement,
    checked_number,
    find_clusters,
    plan_clusters,
)
from fogline.density.components.basin_clusters import GridClusters, read_grid_clusters
from fogline.density.components.leaf_clusters import ClusterReading
from fogline.density.counted_records import check_expected
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import Spec, plan_spec
from fogline.density.spec import as_bandwidth
from fogline.estimators._base import ReleasedState, schema_names, warn_of_count
from fogline.queries.em_step import GaussianClusters
from fogline.releases.curator import Curator
from fogline.releases.passes import release_source
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import as_source, names_of, unit_of, width_of

if TYPE_CHECKING:
    from fogline.planning.clustering import ExpectedClusterError
    from fogline.planning.scenarios import ShapeLike

__all__ = ["PrivateModeClustering", "grid_attributes", "read_attributes", "staged_attributes"]


def grid_attributes(found: GridClusters, density: PrivateDensity) -> dict[str, Any]:
    """Attributes of a fit that read the density of the columns themselves."""
    shares = found.regions.shares
    return {
        "cluster_centers_": found.modes.positions,
        "standard_errors_": found.modes.standard_errors,
        "count_": density.count,
        "count_standard_error_": density.count_sd,
        "weights_": shares,
        "sizes_": shares * density.count,
        "size_standard_errors_": np.hypot(found.regions.share_errors * density.count, shares * density.count_sd),
        "components_": None,
        "mean_": None,
        "projected_centers_": None,
        "projected_covariances_": None,
        "projected_standard_errors_": None,
        "shares_": {"density": 1.0},
        "regions_": found,
        "bandwidth_": found.bandwidth,
        "density_": density,
        "receipt_": density.receipt,
        "guarantee_": density.guarantee,
        "message_": found.modes.message,
    }


def read_attributes(found: ClusterReading, density: PrivateDensity) -> dict[str, Any]:
    """Attributes of clusters that were read from the posterior of a release."""
    return {
        "cluster_centers_": found.centres,
        "standard_errors_": found.centre_errors,
        "count_": found.count,
        "count_standard_error_": found.count_error,
        "weights_": found.shares,
        "sizes_": found.sizes,
        "size_standard_errors_": found.size_errors,
        "components_": None,
        "mean_": None,
        "projected_centers_": None,
        "projected_covariances_": None,
        "projected_standard_errors_": None,
        "shares_": {"density": 1.0},
        "regions_": found,
        "bandwidth_": density.bandwidth,
        "density_": density,
        "receipt_": density.receipt,
        "guarantee_": density.guarantee,
        "message_": found.message,
    }


def staged_attributes(found: FoundClusters, guarantee: Guarantee, receipt: dict[str, Any] | None) -> dict[str, Any]:
    """Attributes of a fit in stages; centres are cut to the box."""
    clusters, lattice = found.clusters, found.projection.lattice
    count = found.spread.count
    sizes = clusters.weights * count
    drawn = np.einsum("kii->ki", clusters.covariances) / np.maximum(sizes, 1.0)[:, None]
    squares = (found.centre_variances + drawn) @ found.projection.components**2 + found.outside_sd**2
    return {
        "cluster_centers_": np.clip(found.projection.places(clusters.means), lattice.box[:, 0], lattice.box[:, 1]),
        "standard_errors_": np.sqrt(squares) * lattice.half_widths,
        "count_": count,
        "count_standard_error_": found.spread.count_sd,
        "weights_": clusters.weights,
        "sizes_": sizes,
        "size_standard_errors_": np.sqrt(
            (found.weight_sds * count) ** 2 + (clusters.weights * found.spread.count_sd) ** 2 + sizes
        ),
        "components_": found.projection.components,
        "mean_": found.projection.mean,
        "projected_centers_": clusters.means,
        "projected_covariances_": clusters.covariances,
        "projected_standard_errors_": np.sqrt(found.centre_variances + drawn),
        "shares_": {name: float(portion) for name, portion in found.portions.items() if portion},
        "regions_": None,
        "bandwidth_": found.density.spec.planned[0],
        "density_": found.density.under(guarantee, receipt),
        "receipt_": receipt,
        "guarantee_": guarantee,
        "message_": found.message,
    }


PROOF = "clustering"
MECHANISM = "discrete Gaussian noise on moments, random features and steps of refinement"
CODE_VERSION = "clusters-2"
"""Changes whenever the same question may get an answer of another law."""


class PrivateModeClustering(ReleasedState, BaseEstimator):  # type: ignore[misc]
    """Find clusters privately, in any number of columns.

    Parameters
    ----------
    epsilon, delta : float
        Privacy budget of one ``fit``; both required.
    bounds : array-like of shape (d, 2), list or mapping
        Public range of each column, as :class:`fogline.PrivateModes` takes it; one pair serves all columns. Records
        outside contribute nothing. Beyond three columns, columns are compared in units of these ranges. Never take them
        from the data.
    n_clusters : int, optional
        How many clusters to return; by default those that stand above the fog, which beyond about ten directions are
        few: there the number had better be given. Fewer are returned, with a message,
        where fewer can be seen; the message also says where fewer can be told apart at the level.
    level : float, default 0.05
        Chance of reporting a cluster where there is only noise, for ``n_clusters=None``. With a projection: of
        dividing a round cluster, or one with a tail, or of reporting one where records fill the box evenly.
    bandwidth : "auto", float or array-like
        Kernel bandwidth of the released density, in the projected space where there is a projection. A number is a
        fraction of each axis.
    projection : "auto", "identity", "private", "random" or array-like of shape (r, d)
        "private": on the leading directions of a privately released second moment. "random" and a matrix of your own
        are public. "auto": none up to three columns, private beyond.
    components : int, optional
        Number of directions of a private or random projection; by default those that stand out of the noise, up to
        20 and at least one for each of up to three clusters that are asked for, or 8 random ones.
    shares : mapping, optional
        How the budget is divided where there are several releases: names among "scale" (count, mean and spread;
        default 1/5), "projection" (3/10), "density" (1/5) and "refinement" (3/10), with shares that sum to exactly 1.
        The default share of a release that is not made goes to the density. With `expect_records` and `n_clusters`
        the default is :func:`fogline.algorithms.stage_shares.cluster_shares`, where all four are made.
    refinement : "auto", bool or int
        Private steps that improve the centres: where the released count says that they help, always, never, or so
        many. Only where there is a projection.
    steps : None, float or list
        Public rounding step of each column (1 for whole numbers), for up to three columns.
    neighbours : {"add-remove", "replace"}
        Hide whether a person is in the data at all, or only what their record says.
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    expect_records : int, optional
        About how many records you expect, as a public guess: ``message_`` says when the released count is far from it,
        and where there is a projection it has a say in the default of `shares`.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept. All the releases of a ``fit`` are one question with one cost.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        Centres; k = 0 when nothing stands above the fog.
    standard_errors_ : array of shape (k, d)
        Of the centres: privacy noise, the sampling of the records and, where centres are modes of a smoothed density,
        smoothing; averages of records have none. What a projection leaves out is not in them.
    sizes_, size_standard_errors_ : arrays of shape (k,)
        Estimated number of records in each cluster, the largest first where records were projected. Their errors
        contain privacy noise and the sampling of the records, and smoothing where they were read from leaves.
    count_, count_standard_error_ : float
        Released number of records in the box, and its privacy noise: records are counted, so that there is neither
        sampling nor smoothing in it. Where records were projected, the density's own count leaves out those far from
        the mean.
    weights_ : array of shape (k,)
        Share of the records in each cluster.
    components_, mean_ : arrays of shape (r, d) and (d,), or None
        Directions, in half ranges of the columns, and the point they start from, where records were projected.
    projected_centers_, projected_covariances_ : arrays of shape (k, r) and (k, r, r), or None
        The clusters in the projected space, in half ranges.
    projected_standard_errors_ : array of shape (k, r), or None
        Of the projected centres: privacy noise and the sampling of the records; averages have no smoothing.
    shares_ : dict
        Share of the budget that each kind of release had, after what was not needed went to the density.
    regions_ : GridClusters, ClusterReading or None
        Modes and basins, where records were not projected; what :meth:`read` found, with the cluster of each leaf.
    bandwidth_ : array
        Bandwidth of the basins, or smallest planned bandwidth of the projected density.
    density_ : PrivateDensity
        The released density, in the projected space where there is one.
    receipt_ : dict or None
        What the ledger was charged, if there is one.
    guarantee_ : Guarantee
        What is promised, and to whom.
    message_ : str
        What would help, when fewer clusters were found than hoped for, and what to check, when the released count or
        the budget gives cause; else empty.

    Notes
    -----
    There is no ``labels_`` and no ``fit_predict``: a published label of a record is a fact about the record.

    References
    ----------
    .. [1] J. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially private k-means clustering", CODASPY 2016.
    .. [2] N. Keriven, A. Bourrier, R. Gribonval, P. Perez, "Sketching for large-scale learning of mixture models",
       Information and Inference 7, 2018.
    .. [3] M. Bun, T. Steinke, "Concentrated differential privacy: simplifications, extensions, and lower bounds",
       TCC 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import PrivateModeClustering
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, size=(3000, 6)) for m in (2, 5, 8)])
    >>> model = PrivateModeClustering(epsilon=1.0, delta=1e-5, bounds=(0, 10), n_clusters=3).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round().tolist()
    [2.0, 5.0, 8.0]
    >>> model.predict(np.full((1, 6), 5.0)).shape
    (1,)
    """

    cluster_centers_: FloatArray
    weights_: FloatArray
    count_: float
    bandwidth_: FloatArray
    density_: PrivateDensity
    components_: Any
    mean_: Any
    projected_centers_: Any
    projected_covariances_: Any
    regions_: GridClusters | ClusterReading | None

    _released_attributes = (
        "cluster_centers_",
        "standard_errors_",
        "sizes_",
        "size_standard_errors_",
        "count_",
        "count_standard_error_",
        "weights_",
        "components_",
        "mean_",
        "projected_centers_",
        "projected_covariances_",
        "projected_standard_errors_",
        "shares_",
        "regions_",
        "bandwidth_",
        "density_",
        "receipt_",
        "guarantee_",
        "message_",
    )

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        bounds: BoundsLike = None,
        n_clusters: int | None = None,
        level: float = 0.05,
        bandwidth: BandwidthLike = "auto",
        projection: ArrayLike = "auto",
        components: int | None = None,
        shares: Mapping[str, Any] | None = None,
        refinement: Refinement = "auto",
        steps: StepsLike = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        expect_records: int | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_clusters = n_clusters
        self.level = level
        self.bandwidth = bandwidth
        self.projection = projection
        self.components = components
        self.shares = shares
        self.refinement = refinement
        self.steps = steps
        self.neighbours = neighbours
        self.max_contributions = max_contributions
        self.expect_records = expect_records
        self.ledger = ledger

    @np.errstate(all="ignore")  # what is read of an answer must not fail by a setting of the calling program
    def fit(self, X: SourceLike, y: object = None) -> PrivateModeClustering:  # noqa: ARG002
        """Make the releases and read the clusters from them.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record.
        y : ignored

        Returns
        -------
        PrivateModeClustering
            The estimator itself.
        """
        source = as_source(X)
        terms = self._terms(unit_of(source))
        _validation.check_ledger(self.ledger)
        check_expected(self.expect_records)
        level = _validation.check_level(self.level)
        bounds = self._box(width_of(source), schema_names(source))
        plan = plan_clusters(self, bounds, level, terms.rho)
        if plan is None:
            # planned before the release: its errors must cost nothing
            spec = self._grid_spec(bounds)
        self._remember_features(source, len(bounds), self.bounds)
        try:
            if plan is None:
                density = release_source(source, spec, terms, self.ledger)
            else:
                released = self._staged(source, plan, terms)
        finally:
            del X, source  # an error's traceback must not lead to the records
        if plan is None:
            density = self._named(density)
            found = read_grid_clusters(density, checked_number(self.n_clusters), level, self.bandwidth)
            kept = grid_attributes(found, density)
        else:
            kept = staged_attributes(*released)
        told = (kept["guarantee_"], kept["count_"])
        kept["message_"] = self._message(kept["message_"], *told, kept["count_standard_error_"])
        for name, value in kept.items():
            setattr(self, name, value)
        warn_of_count(*told)
        return self

    @np.errstate(all="ignore")
    def read(self, density: PrivateDensity) -> PrivateModeClustering:
        """Read the clusters of a density of up to three columns that was released before; free.

        Centres and sizes are those of the population in each cluster's part of the box, with errors that contain
        privacy noise, sampling of the records and smoothing (:mod:`fogline.density.components.leaf_clusters`).

        Parameters
        ----------
        density : PrivateDensity

        Returns
        -------
        PrivateModeClustering
            The estimator itself, fitted; of its parameters ``n_clusters``, ``level`` and ``expect_records`` count.

        Examples
        --------
        >>> import numpy as np
        >>> from fogline import DensitySketch, PrivateModeClustering
        >>> rng = np.random.default_rng(0)
        >>> stay = np.concatenate([rng.gamma(2, 2, 4000), rng.normal(30, 3, 2000)])     # days: most go home soon
        >>> density = DensitySketch([(0, 60)], features="leaves").update(stay[:, None]).release(epsilon=1.0)
        >>> found = PrivateModeClustering().read(density)
        >>> found.cluster_centers_.round(-1).ravel().tolist()
        [0.0, 30.0]
        """
        if not isinstance(density, PrivateDensity):
            raise TypeError(f"density must be a PrivateDensity, got {type(density).__name__}")
        level = _validation.check_level(self.level)
        found = density.clusters(checked_number(self.n_clusters), level=level)
        self._remember_density(density)
        kept = read_attributes(found, density)
        told = (density.guarantee, found.count, found.count_error)
        kept["message_"] = self._message(kept["message_"], *told)
        for name, value in kept.items():
            setattr(self, name, value)
        return self

    # -- reading -------------------------------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of each row of X, by the released clusters alone; -1 for a row with a missing value.

        The rows may be anyone's: whoever holds a record can label it. Labels of private records are private.
        """
        rows = self._rows_like_fitted(X)
        if isinstance(self.regions_, ClusterReading):
            return self.regions_.predict(rows)
        if self.regions_ is not None:
            return self.regions_.labels(rows)
        labels = np.full(len(rows), -1, dtype=np.int64)
        whole = np.isfinite(rows).all(axis=1)
        if len(self.cluster_centers_) and whole.any():
            labels[whole] = np.argmax(self._mixture().scores(self._project(rows[whole])), axis=1)
        return labels

    def distances(self, X: ArrayLike) -> FloatArray:
        """Distance of each row to each centre, in data units, shape (n, k).

        Not ``transform``: a step of a pipeline would hand the distances of private records on, without noise.
        """
        rows = self._rows_like_fitted(X)
        offsets = rows[:, None, :] - self.cluster_centers_[None]
        return np.asarray(np.sqrt(np.sum(offsets**2, axis=2)))

    @property
    def transform(self) -> NoReturn:
        """Not there: the name of this was changed to :meth:`distances`."""
        raise AttributeError(
            "PrivateModeClustering is not a transformer; for distances to the centres, use distances(X)"
        )

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Logarithm of the released density at each row; never below that of the noise.

        Up to three columns in data units; else that of the clusters in the projected space, in half ranges.
        """
        rows = self._rows_like_fitted(X)
        if isinstance(self.regions_, ClusterReading):
            values = np.asarray(self.density_.posterior.pdf(rows).value)
            # less than one record spread over the box says nothing
            least = 1 / (max(self.count_, 2.0) * float(np.prod(self.density_.spec.widths)))
            return np.asarray(np.log(np.maximum(values, least)))
        if self.regions_ is not None:
            values = self.density_.pdf(rows, self.bandwidth_)
            return np.asarray(np.log(np.maximum(values, self.density_.noise_sd(self.bandwidth_))))
        low, high = self.density_.spec.lower, self.density_.spec.upper
        # Less than one record spread over the box: below that a logarithm only measures noise.
        floor = -float(np.log(high - low).sum()) - math.log(max(self.density_.count, 2.0))
        if not len(self.cluster_centers_):
            return np.full(len(rows), floor)
        values = logsumexp(self._mixture().scores(self._project(rows)), axis=1)
        return np.asarray(np.maximum(values, floor))

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What one ``fit`` costs, from the parameters alone.

        Examples
        --------
        >>> from fogline import PrivateModeClustering
        >>> PrivateModeClustering(epsilon=1.0, delta=1e-5, bounds=[(0, 1)] * 5).cost().rho < 0.036
        True
        """
        return self._terms().cost()

    def expected_error(
        self, n: int, *, shape: ShapeLike = "uniform", epsilons: Sequence[float] | None = None
    ) -> ExpectedClusterError:
        """What the noise of a fit on n records would be, before any are touched; free.

        Parameters
        ----------
        n : int
            A guess of the number of records.
        shape : "uniform", array-like or Mixture
            A public guess of the records' spread: that of the box, or of a public sample; up to three columns also a
            mixture.
        epsilons : sequence of float, optional
            Budgets to compare; by default a few from 0.1 to 5, and the estimator's own.
        """
        from fogline.planning.clustering import expected_cluster_error

        return expected_cluster_error(self, n, shape=shape, epsilons=epsilons)

    # -- validation: everything here is public and free ------------------------------------------------------

    def _terms(self, unit: str = "record") -> ReleaseTerms:
        return ReleaseTerms.checked(
            self.epsilon, self.delta, self.neighbours, self.max_contributions, unit, ledger=self.ledger
        )

    def _box(self, width: int | None, columns: Sequence[str] | None = None) -> FloatArray:
        return units.resolve_bounds(self.bounds, columns, width=width)

    def _grid_spec(self, bounds: FloatArray) -> Spec:
        if self.shares is not None:
            raise ValueError("shares: without a projection there is one release, which has the whole budget")
        fixed = None if isinstance(self.bandwidth, str) else as_bandwidth(self.bandwidth, bounds[:, 1] - bounds[:, 0])
        spec = plan_spec(bounds, self.bandwidth if fixed is None else [fixed], self.steps)
        if fixed is not None:
            spec.require_readable(fixed)
        return spec

    # -- fitting ---------------------------------------------------------------------------------------------

    def _staged(
        self, source: SourceLike, plan: ClusterPlan, terms: ReleaseTerms
    ) -> tuple[FoundClusters, Guarantee, dict[str, Any] | None]:
        columns = names_of(source)
        curator = Curator(source, terms, width=plan.lattice.d)
        del source
        return curator.release(
            lambda curator: find_clusters(plan, curator),
            mechanism=MECHANISM,
            proof=PROOF,
            name="clusters",
            code_version=CODE_VERSION,
            parameters={**plan.to_dict(), "columns": None if columns is None else list(columns)},
            max_payload=plan.payload(),
            ledger=self.ledger,
            formerly=plan.formerly,
        )

    def _mixture(self) -> GaussianClusters:
        return GaussianClusters(self.weights_, self.projected_centers_, self.projected_covariances_)

    def _project(self, rows: FloatArray) -> FloatArray:
        box = self._box(self.n_features_in_, getattr(self, "_columns", None))  # older pickles have no names
        # The projection was learnt in half ranges, in which columns of different units can be compared.
        half = (box[:, 1] - box[:, 0]) / 2
        return np.asarray(((rows - self.mean_) / half) @ self.components_.T)
