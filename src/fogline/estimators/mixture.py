r"""Gaussian mixtures under differential privacy: weights, means, covariances, and how well each is known.

``fit`` makes the releases of the chosen method from one budget and keeps a mixture

.. math:: p(x) = \sum_{j \le k} w_j\, N(x;\, \mu_j, \Sigma_j).

Records outside the public ball are moved to its surface. The proof is in ``algorithms/mixture_from_density.proof.md``.

The methods of :class:`fogline.PrivateGaussianMixture`: what each checks, asks and comes back with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fogline import _validation, units
from fogline._results import Output, framed
from fogline._typing import BoundsLike, FloatArray, IntArray, LedgerLike, RandomState, SourceLike
from fogline.accounting.costs import Cost, GaussianCost, PureCost
from fogline.accounting.guarantee import Guarantee
from fogline.algorithms.ball_search import LocatedTerms
from fogline.algorithms.mixture_aggregate import PROOF as AGGREGATE_PROOF
from fogline.algorithms.mixture_aggregate import AggregatePlan, learn_aggregate
from fogline.algorithms.mixture_from_density import MixturePlan, checked_components, find_mixture, plan_mixture
from fogline.algorithms.mixture_recursive import PROOF as RECURSIVE_PROOF
from fogline.algorithms.mixture_recursive import (
    BlockLearner,
    MixtureFit,
    MixtureSettings,
    RecursivePlan,
    learn_recursive,
)
from fogline.algorithms.mixture_spherical import PROOF as SPHERICAL_PROOF
from fogline.algorithms.mixture_spherical import learn_spherical
from fogline.density.components.leaf_mixture import MOST_COMPONENTS
from fogline.density.counted_records import check_expected, is_nothing, joined
from fogline.density.private_density import PrivateDensity
from fogline.estimators._base import ReleasedState, schema_names, warn_of_count
from fogline.queries.em_step import GaussianClusters
from fogline.releases.curator import Curator
from fogline.releases.density_sketch import ReleaseTerms
from fogline.sources.passes import as_source, names_of, public_width, unit_of

__all__ = ["METHODS", "Method", "PrivateGaussianMixture"]


@dataclass(frozen=True)
class Method:
    """One way to learn a mixture.

    Attributes
    ----------
    terms : callable
        Takes the estimator and the unit of the source, returns the checked terms of the release.
    plan : callable
        Takes the estimator, the number of columns, their public ranges or None and the rho of the whole fit, returns
        all that is public, checked, with ``to_dict`` and ``payload``.
    learn : callable
        The algorithm: takes the plan and a curator.
    mechanism, proof : str
        For the guarantee.
    """

    terms: Callable[[MixtureSettings, str], ReleaseTerms]
    plan: Callable[[MixtureSettings, int, FloatArray | None, float], MixturePlan | RecursivePlan | AggregatePlan]
    learn: Callable[[Any, Curator], MixtureFit]
    mechanism: str
    proof: str


def _plain_terms(settings: MixtureSettings, unit: str) -> ReleaseTerms:
    wishes = (settings.epsilon, settings.delta, settings.neighbours, settings.max_contributions)
    return ReleaseTerms.checked(*wishes, unit, ledger=settings.ledger)


def _located_terms(settings: MixtureSettings, unit: str) -> ReleaseTerms:
    wishes = (settings.epsilon, settings.delta, settings.neighbours, settings.max_contributions)
    terms = LocatedTerms.located(*wishes, unit)
    # The proof needs a learner that looks at its block alone, which only its author can promise.
    own = settings.learner is not None and not isinstance(settings.learner, str)
    return replace(terms, remark="declared: the learner looks at nothing but its block") if own else terms


def _aggregate_plan(settings: MixtureSettings, d: int, box: FloatArray | None, _: float) -> AggregatePlan:
    _refuse_bounds(settings, box)
    return AggregatePlan.checked(settings, d)


def _refuse_bounds(settings: MixtureSettings, box: FloatArray | None) -> None:
    if box is not None:
        raise ValueError(f"bounds serve method 'sketch'; for method {settings.method!r} give radius and center")


def _parts_plan(settings: MixtureSettings, d: int, box: FloatArray | None, _: float) -> RecursivePlan:
    _refuse_bounds(settings, box)
    for name in ("n_components", "sigma_min", "sigma_max"):
        if getattr(settings, name) is None:
            raise ValueError(f"{name} must be given for method {settings.method!r}")
    return RecursivePlan.checked(
        d=d,
        n_components=settings.n_components,
        radius=settings.radius,
        sigma_min=settings.sigma_min,
        sigma_max=settings.sigma_max,
        weight_min=settings.weight_min,
        center=settings.center,
        constants=settings.constants,
    )


METHODS: dict[str, Method] = {
    "sketch": Method(
        _plain_terms,
        plan_mixture,
        find_mixture,
        "discrete Gaussian noise on moments, random features and steps of expectation-maximisation",
        "mixture",
    ),
    "recursive": Method(
        _plain_terms,
        _parts_plan,
        learn_recursive,
        "discrete Gaussian noise on places, moments and profiles of parts",
        RECURSIVE_PROOF,
    ),
    "spherical": Method(
        _plain_terms,
        _parts_plan,
        learn_spherical,
        "discrete Gaussian noise on places, moments and profiles of parts",
        SPHERICAL_PROOF,
    ),
    "sample-aggregate": Method(
        _located_terms,
        _aggregate_plan,
        learn_aggregate,
        "discrete Gaussian and Laplace noise on what blocks of records agree on, and on places and moments of parts",
        AGGREGATE_PROOF,
    ),
}


CODE_VERSION = "mixture-6"
"""Changes whenever the same question may get an answer of another law."""

FAINT = 3.0
"""A component whose number of records is below this many deviations of its noise may be nothing."""


class PrivateGaussianMixture(ReleasedState, BaseEstimator):  # type: ignore[misc]
    """Fit a Gaussian mixture privately.

    Parameters
    ----------
    n_components : int, optional
        Number of components. None, for method "sketch": the number with the least penalised misfit to the released
        density, up to twelve; that choice is free.
    epsilon, delta : float
        Privacy budget of one ``fit``; both required.
    radius : float
        Radius of a public ball around `center` that holds the records. Those outside are moved to its surface,
        silently. Never take it from the data.
    center : array-like of shape (d,), optional
        Centre of the ball; the origin by default.
    bounds : array-like of shape (d, 2), list or mapping, optional
        For "sketch", in place of `radius` and `center`: a public range of each column. Columns are compared in units of
        these ranges, so that grams and millimetres count alike; records outside the ellipsoid through the corners of
        the box are moved to its surface. Never take them from the data.
    sigma_min, sigma_max : float, optional
        Public range of the components' standard deviations along any direction; by default a thousandth of the
        radius, and the radius. With `bounds`, in parts of each column's half range. The methods "spherical" and
        "recursive" need both.
    weight_min : float, optional
        Smallest weight of a component; by default a fifth of an even share.
    method : {"sketch", "recursive", "spherical", "sample-aggregate"}
        "sketch" is made for ordinary data, whose components overlap; the others for components far apart. See
        ``docs/mixtures.md``.
    shares : mapping, optional
        For "sketch": how the budget is divided, "scale" (count, mean and spread; default 1/50), "moments" (1/10),
        "density" (9/50) and "steps" (7/10), summing to exactly 1. With `expect_records` the default is
        :func:`fogline.algorithms.stage_shares.mixture_shares`.
    steps : int, default 5
        For "sketch": private steps of expectation-maximisation.
    constants : {"practical", "theory"}
        For "recursive" and "spherical": sensible constants or those of the proofs. Privacy holds with any.
    learner : object or "spectral", optional
        For "sample-aggregate": what is fitted to each block, as a copy, with a ``fit`` that sets ``means_`` and looks
        at nothing but its rows; scikit-learn's ``GaussianMixture`` by default. "spectral": clusters by distance along
        the leading singular directions.
    neighbours : {"add-remove", "replace"}
        Hide whether a person is in the data at all, or only what their record says.
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    expect_records : int, optional
        About how many records you expect, as a public guess: ``message_`` says when the released count is far from it,
        and with "sketch" it has a say in the default of `shares`.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept. All the releases of a ``fit`` are one question with one cost.

    Attributes
    ----------
    weights_ : array of shape (k,)
        Sum to one; the heaviest component first.
    means_ : array of shape (k, d)
    covariances_, precisions_ : arrays of shape (k, d, d)
    standard_errors_ : array of shape (k, d)
        Of the means: privacy noise and the sampling of the records. The steps average records, so that there is no
        smoothing in them; where a mixture is read from leaves, smoothing is in them as well.
    weight_standard_errors_ : array of shape (k,)
        Of the weights: privacy noise, the sampling of the records and, where a mixture is read from leaves, smoothing.
    counts_ : array of shape (k,)
        Noisy number of records of each component.
    count_standard_error_ : float
        Privacy noise of ``counts_``, without sampling and smoothing.
    verdict_ : NotSeparable or None
        Where components could not be told apart: what was seen and what would help. The mixture is then what can be
        stood behind.
    composition_ : dict
        Cost of all releases by zCDP and by advanced composition, for methods of many releases.
    density_ : PrivateDensity or None
        Released density on the leading directions, for "sketch"; the one that was read.
    components_, center_ : arrays of shapes (r, d) and (d,), or None
        Directions of that density, orthonormal, and the point they start from; its coordinates are in radii.
    criteria_ : dict
        For "sketch": criterion of each number of components that was tried, see :meth:`bic_on_release`.
    shares_ : dict
        For "sketch": share of the budget that each kind of release had.
    message_ : str
        The verdict in words, which components hold too few records to be believed, and what to check, when the released
        count or the budget gives cause; else empty.
    receipt_ : dict or None
        What the ledger was charged, if there is one.
    guarantee_ : Guarantee
        What is promised, and to whom.

    References
    ----------
    .. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
       separated Gaussians", NeurIPS 2019.
    .. [2] M. Park, J. Foulds, K. Chaudhuri, M. Welling, "DP-EM: differentially private expectation maximization",
       AISTATS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import PrivateGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, size=(5000, 3)) for m in (-4, 0, 4)])
    >>> model = PrivateGaussianMixture(n_components=3, epsilon=1.0, delta=1e-6, radius=15.0).fit(X)
    >>> np.sort(model.means_[:, 0]).round().astype(int).tolist()
    [-4, 0, 4]
    >>> model.sample(5, random_state=0).shape
    (5, 3)
    """

    weights_: FloatArray
    means_: FloatArray
    covariances_: FloatArray
    components_: FloatArray | None
    density_: PrivateDensity | None
    criteria_: dict[int, float]

    _released_attributes = (
        "weights_",
        "means_",
        "covariances_",
        "precisions_",
        "standard_errors_",
        "weight_standard_errors_",
        "counts_",
        "count_standard_error_",
        "verdict_",
        "composition_",
        "density_",
        "components_",
        "center_",
        "criteria_",
        "shares_",
        "message_",
        "receipt_",
        "guarantee_",
    )

    def __init__(
        self,
        *,
        n_components: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        radius: float | None = None,
        center: ArrayLike | None = None,
        bounds: BoundsLike = None,
        sigma_min: float | None = None,
        sigma_max: float | None = None,
        weight_min: float | None = None,
        method: str = "sketch",
        shares: Mapping[str, Any] | None = None,
        steps: int = 5,
        constants: str = "practical",
        learner: BlockLearner | None = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        expect_records: int | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.center = center
        self.bounds = bounds
        self.sigma_min = sigma_min
        self.sigma_max = sigma_max
        self.weight_min = weight_min
        self.method = method
        self.shares = shares
        self.steps = steps
        self.constants = constants
        self.learner = learner
        self.neighbours = neighbours
        self.max_contributions = max_contributions
        self.expect_records = expect_records
        self.ledger = ledger

    @np.errstate(all="ignore")  # what is read of an answer must not fail by a setting of the calling program
    def fit(self, X: SourceLike, y: object = None) -> PrivateGaussianMixture:  # noqa: ARG002
        """Make the releases and keep the mixture.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record.
        y : ignored

        Returns
        -------
        PrivateGaussianMixture
            The estimator itself.
        """
        source = as_source(X)
        method = self._method()
        terms = method.terms(self, unit_of(source))
        _validation.check_ledger(self.ledger)
        check_expected(self.expect_records)
        # from public facts: a record must not decide it
        d = self._width(source)
        box = None if self.bounds is None else units.resolve_bounds(self.bounds, schema_names(source), width=d)
        plan = method.plan(self, d, box, terms.rho)
        columns = names_of(source)
        self._remember_features(source, d, self.bounds)
        curator = Curator(source, terms, width=d)
        del X, source
        fit, guarantee, receipt = curator.release(
            lambda curator: method.learn(plan, curator),
            mechanism=method.mechanism,
            proof=method.proof,
            name=f"mixture-{self.method}",
            code_version=CODE_VERSION,
            parameters={**plan.to_dict(), "columns": None if columns is None else list(columns)},
            max_payload=plan.payload(),
            ledger=self.ledger,
            formerly=plan.formerly if isinstance(plan, MixturePlan) else None,
        )
        density = None if fit.density is None else fit.density.under(guarantee, receipt)
        # noise of a count, and the variance of a Poisson number of records
        weight_sd = np.sqrt((fit.count_sd**2 + np.maximum(fit.counts, 1.0)) / max(fit.total[0], 1.0) ** 2)
        self._keep(fit, density, guarantee, receipt, weight_sd, "")
        warn_of_count(guarantee, fit.total[0])
        return self

    @np.errstate(all="ignore")
    def read(self, density: PrivateDensity) -> PrivateGaussianMixture:
        """Read a mixture from a density of up to three columns that was released before; free.

        Errors contain privacy noise, sampling of the records and smoothing
        (:mod:`fogline.density.components.leaf_mixture`). Where the release cannot tell so many components apart, fewer
        are kept, down to one Gaussian, and ``message_`` says so.

        Parameters
        ----------
        density : PrivateDensity

        Returns
        -------
        PrivateGaussianMixture
            The estimator itself, fitted; of its parameters ``n_components``, ``sigma_min`` and ``expect_records``
            count.

        Examples
        --------
        >>> import numpy as np
        >>> from fogline import DensitySketch, PrivateGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(m, s, size=(4000, 1)) for m, s in ((20, 2), (40, 4))])
        >>> density = DensitySketch([(0, 60)], features="leaves").update(X).release(epsilon=1.0)
        >>> found = PrivateGaussianMixture(n_components=2).read(density)
        >>> np.sort(found.means_[:, 0]).round(-1).tolist()
        [20.0, 40.0]
        """
        if not isinstance(density, PrivateDensity):
            raise TypeError(f"density must be a PrivateDensity, got {type(density).__name__}")
        k = checked_components(self.n_components, MOST_COMPONENTS)
        least: Any = self.sigma_min
        if least is not None and np.ndim(least) == 0:  # one number per column goes on as it is
            least = _validation.check_positive(least, "sigma_min")
        if least is not None and self.bounds is not None:
            box = units.resolve_bounds(self.bounds, density.columns, width=density.spec.d)
            found = density.mixture(k, sigma_min=least * (box[:, 1] - box[:, 0]) / 2)
        else:
            found = density.mixture(k, sigma_min=least)
        self._remember_density(density)
        fit = MixtureFit(
            weights=found.weights,
            means=found.means,
            covariances=found.covariances,
            counts=found.weights * found.count,
            count_sd=float(np.sqrt(np.mean(found.weight_errors**2))) * found.count,
            mean_sd=found.mean_errors,
            criteria=found.criteria,
            whole=(found.count, density.count_sd),
        )
        self._keep(fit, density, density.guarantee, density.receipt, found.weight_errors, found.message)
        return self

    def _keep(
        self,
        fit: MixtureFit,
        density: PrivateDensity | None,
        guarantee: Guarantee,
        receipt: dict[str, Any] | None,
        weight_sd: FloatArray,
        message: str,
    ) -> None:
        """Keep a mixture as attributes."""
        # Heaviest first: the order in which an algorithm found components means nothing.
        order = np.argsort(-fit.weights, kind="stable")
        self.weights_ = fit.weights[order]
        self.means_ = fit.means[order]
        self.covariances_ = fit.covariances[order]
        self.precisions_ = np.linalg.inv(self.covariances_)
        self.standard_errors_ = fit.mean_sd[order]
        self.counts_ = fit.counts[order]
        self.count_standard_error_ = fit.count_sd
        self.verdict_ = fit.verdict
        self.composition_ = fit.composition
        self.weight_standard_errors_ = weight_sd[order]
        self.density_ = density
        self.components_ = fit.components
        self.center_ = fit.centre
        self.criteria_ = fit.criteria
        self.shares_ = {name: float(portion) for name, portion in fit.portions.items() if portion}
        found = joined(message, _found(fit, self.counts_))
        self.message_ = self._message(found, guarantee, *fit.total, bounded=False)
        self.receipt_ = receipt
        self.guarantee_ = guarantee

    # -- reading -------------------------------------------------------------------------------------------

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Logarithm of the mixture's density at each row; NaN for a row with a missing value.

        Of private records it is private. There is no ``score``: a search over parameters would choose by it, on the raw
        records of its folds, and nobody would have paid for that; compare numbers of components on the release.
        """
        rows = self._rows_like_fitted(X)
        return np.asarray(logsumexp(self._scores(rows), axis=1))

    def predict(self, X: ArrayLike) -> IntArray:
        """Most likely component of each row, by the released mixture alone; -1 for a row with a missing value."""
        rows = self._rows_like_fitted(X)
        whole = np.isfinite(rows).all(axis=1)
        labels = np.full(len(rows), -1, dtype=np.int64)
        if whole.any():
            labels[whole] = np.argmax(self._scores(rows[whole]), axis=1)
        return labels

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each component for each row, shape (n, k)."""
        scores = self._scores(self._rows_like_fitted(X))
        return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    def sample(self, n_samples: int = 1, *, random_state: RandomState = None, output: Output = None) -> Any:
        """Draw from the mixture; free, and as private as the mixture itself.

        An array, or with ``output="pandas"`` or ``"polars"`` a frame with the names of the columns.
        """
        check_is_fitted(self, "weights_")
        size = _validation.check_count(n_samples, "n_samples", minimum=0)
        rng = np.random.default_rng(random_state)
        labels = rng.choice(len(self.weights_), size=size, p=self.weights_)
        factors = np.linalg.cholesky(self.covariances_)
        steps = rng.standard_normal((size, self.means_.shape[1]))
        points = np.asarray(self.means_[labels] + np.einsum("nij,nj->ni", factors[labels], steps))
        return framed(points, self._columns, output)

    def bic_on_release(self, n_components: int | None = None) -> float:
        """Criterion of a number of components on the released density: smaller is better, reading it is free.

        Each released number is Gaussian about what a mixture would give, so the squared misfit in units of the noise is
        minus twice a log-likelihood up to a constant; each number of a component costs the logarithm of how many were
        released.

        Parameters
        ----------
        n_components : int, optional
            One that was tried, see ``criteria_``; by default that of the fit.
        """
        check_is_fitted(self, "weights_")
        wanted = len(self.weights_) if n_components is None else n_components
        if wanted not in self.criteria_:
            tried = ", ".join(map(str, sorted(self.criteria_))) or "none, with this method"
            raise ValueError(f"n_components: {wanted!r} was not tried on the release (tried: {tried})")
        return self.criteria_[wanted]

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What one ``fit`` costs, from the parameters alone.

        Examples
        --------
        >>> from fogline import PrivateGaussianMixture
        >>> PrivateGaussianMixture(n_components=2, epsilon=1.0, delta=1e-5, radius=1.0).cost().rho < 0.036
        True
        """
        return self._method().terms(self, "record").cost()

    # -- validation: everything here is public and free ------------------------------------------------------

    def _method(self) -> Method:
        chosen: Any = self.method
        if not isinstance(chosen, str) or chosen not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {chosen!r}")
        return METHODS[chosen]

    def _width(self, source: SourceLike) -> int:
        known = None if self.center is None else int(np.size(self.center))
        if known is None and isinstance(self.bounds, Mapping):
            known = len(self.bounds)
        return public_width(source, known)

    def _scores(self, rows: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return GaussianClusters(self.weights_, self.means_, self.covariances_).scores(rows)


def _found(fit: MixtureFit, counts: FloatArray) -> str:
    """What could not be told apart and which components are faint; no advice where nothing was counted."""
    verdict = "" if fit.verdict is None else str(fit.verdict)
    # What was seen, without the advice that follows it: more budget would not help.
    if is_nothing(*fit.total):
        return verdict.partition("; ")[0]
    return joined(verdict, _faint(counts, fit.count_sd))


def _faint(counts: FloatArray, error: float) -> str:
    """Say which components hold hardly more records than noise would: their own errors cannot be known.

    Examples
    --------
    >>> _faint(np.array([900.0, 40.0]), 30.0).partition(":")[0]
    'component 2 holds hardly more records than noise (30) would'
    >>> _faint(np.array([900.0, 400.0]), 30.0)
    ''
    """
    faint = [str(k + 1) for k in np.flatnonzero(counts < FAINT * error)]
    if not faint:
        return ""
    whose = f"component {faint[0]} holds" if len(faint) == 1 else f"components {', '.join(faint)} hold"
    return f"{whose} hardly more records than noise ({error:.0f}) would: places, spreads and errors there mean little"
