r"""Robust fits of a parametric family under differential privacy, by minimum Hellinger distance.

``method="sketch"`` releases the density of the records once and fits the family to it: all that follows the
release is post-processing, errors included. ``method="gradient"`` and ``"newton"`` descend on the distance

.. math:: L(\theta) = 2\int \big(\sqrt{g_n} - \sqrt{f_\theta}\big)^2

itself, with noise in every step. Proof: ``algorithms/hellinger_descent.proof.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fogline import _validation, units
from fogline._typing import BandwidthLike, BoundsLike, FloatArray, LedgerLike, SourceLike, StepsLike
from fogline.accounting.costs import Cost, GaussianCost, PureCost
from fogline.accounting.guarantee import Guarantee
from fogline.algorithms.hellinger_descent import (
    Descent,
    ExpectedFit,
    answers_of,
    check_expectation,
    checked_guess,
    data_box,
    descend,
    expected_descent,
    expected_fit,
    plan_descent,
    plan_sketch,
)
from fogline.density.counted_records import check_expected
from fogline.density.hellinger.family_fit import FamilyFit
from fogline.density.hellinger.inference import (
    Explained,
    descent_message,
    estimates_of,
    explained_part,
    fit_density,
    intervals,
    message_of,
)
from fogline.density.hellinger.minimum_distance import DISTANCE
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec, as_bandwidth
from fogline.estimators._base import ReleasedState, schema_names, warn_of_count
from fogline.families import Family, family_named, parameter_box
from fogline.families.named import family_id, family_id_before
from fogline.queries.hellinger_descent import DescentPlan
from fogline.releases.curator import Curator
from fogline.releases.passes import release_source
from fogline.releases.terms import ReleaseTerms
from fogline.sources.files import rows_of
from fogline.sources.passes import as_source, names_of, unit_of

__all__ = ["PrivateHellinger"]


PROOF = "hellinger"
CODE_VERSION = "hellinger-5"
METHODS = ("sketch", "gradient", "newton")


class PrivateHellinger(ReleasedState, BaseEstimator):  # type: ignore[misc]
    """Fit a parametric family to sensitive data, privately and robustly.

    Parameters
    ----------
    family : str or Family
        "normal", "lognormal", "gamma", "weibull", "logistic", "exponential", "t4" (any degrees of freedom), "beta",
        "lomax", "poisson", "negative binomial", "zero-inflated gamma", "zero-inflated lognormal", "bivariate normal",
        "trivariate normal", or a family of your own (:mod:`fogline.families`).
    parameter_bounds : mapping from parameter name to (low, high)
        Public range of each parameter. Never take it from the data.
    bounds : array-like of shape (d, 2), list or mapping, optional
        Public range of the data, as :class:`fogline.PrivateModes` takes it; by default the 0.0005 and 0.9995 quantiles
        over the parameter bounds, where tails are long up to the 0.02 and 0.98 ones. Records outside contribute
        nothing, and the family is cut off there, too.
    method : {"sketch", "gradient", "newton"}
        One release of the density (the default, by far the most accurate), or private descent in one column.
    epsilon, delta : float
        Privacy budget of one ``fit``.
    rho, hdp : float
        The budget in zero-concentrated or in Hellinger differential privacy, instead. 0.2-HDP is (4.3, 1e-5)-DP.
    pdp : (power, epsilon)
        The budget in power divergence, instead.
    confidence : float, default 0.95
        Level of ``confidence_intervals_``.
    bandwidth : "auto", float or array-like of shape (d,)
        Kernel bandwidth: planned from the bounds (of a descent from the number of rows, too) and read as small as the
        noise allows, larger where there are no lumps, or fixed. A number is a fraction of each column's range, an array
        is in data units.
    iterations : int, optional
        Steps of a descent, 4 by default.
    steps : None, float or list
        Public rounding step of each column, for ``method="sketch"``.
    neighbours : {"add-remove", "replace"}, optional
        Hide whether a person is in the data at all (the default of the sketch), or only what their record says (the
        only relation of a descent, where the number of rows is public).
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    expect_records : int, optional
        About how many records you expect: ``message_`` says when the released count is far from it. Words only.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept.

    Attributes
    ----------
    params_ : dict
        Estimate by parameter.
    standard_errors_, degrees_of_freedom_ : dict
        By parameter. Errors are read at the estimates and uncertain with them, as a variance from this many records.
        They contain privacy noise and the sampling of the records; the family is smoothed as the release is, so that
        smoothing moves no estimate.
    confidence_intervals_ : dict
        (low, high) by parameter, within the parameter bounds; Student's, of positive parameters in the logarithm. They
        contain privacy noise and the sampling of the records, and smoothing as ``standard_errors_`` do.
    covariance_, privacy_covariance_, sampling_covariance_ : arrays of shape (m, m)
        Error of the estimates: in all, from the privacy noise, from the draw of the records; smoothing moves none.
    explained_ : Explained or None
        Which part of the records the family explains and where the others are; the sketch alone can tell.
    bandwidth_ : array of shape (d,)
        At which the density was read, or the kernel of a descent.
    density_ : PrivateDensity or None
        The release of the sketch, open to further questions at no cost.
    path_ : array of shape (iterations + 1, m) or None
        The iterates of a descent; the last is the estimate.
    reading_ : FamilyFit or None
        All that ``read`` found. With it come ``assumption_``, what the intervals rest on, and ``robust_intervals_``,
        which hold for contamination that could not be seen as well.
    guarantee_ : Guarantee
        What is promised, and to whom.
    receipt_ : dict or None
        What the ledger was charged.
    message_ : str
        What the intervals rest on; and what to beware of, and what to check, when the released count or the budget
        gives cause.

    References
    ----------
    .. [1] R. Beran, "Minimum Hellinger distance estimates for parametric models", Annals of Statistics 5, 1977.
    .. [2] A. Basu, B. Lindsay, "Minimum disparity estimation for continuous models", Annals of the Institute of
       Statistical Mathematics 46, 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import PrivateHellinger
    >>> x = np.random.default_rng(0).normal(5.0, 2.0, size=2000)
    >>> x[:200] = 9.8  # a tenth of the records is something else
    >>> fit = PrivateHellinger(family="normal", parameter_bounds={"mu": (-5, 15), "sigma": (0.5, 6)},
    ...                        epsilon=1.0, delta=1e-6).fit(x)
    >>> abs(fit.params_["mu"] - 5.0) < 0.4, abs(fit.explained_.share - 0.9) < 0.1
    (True, True)
    >>> low, high = fit.confidence_intervals_["sigma"]
    >>> bool(0.5 <= low < high <= 6)
    True
    """

    params_: dict[str, float]
    standard_errors_: dict[str, float]
    degrees_of_freedom_: dict[str, float]
    explained_: Explained | None
    density_: PrivateDensity | None
    path_: FloatArray | None
    reading_: FamilyFit | None

    _released_attributes = (
        "params_",
        "standard_errors_",
        "degrees_of_freedom_",
        "confidence_intervals_",
        "covariance_",
        "privacy_covariance_",
        "sampling_covariance_",
        "explained_",
        "bandwidth_",
        "density_",
        "path_",
        "reading_",
        "assumption_",
        "robust_intervals_",
        "guarantee_",
        "receipt_",
        "message_",
    )

    def __init__(
        self,
        *,
        family: Family | str | None = None,
        parameter_bounds: Mapping[str, tuple[float, float]] | None = None,
        bounds: BoundsLike = None,
        method: str = "sketch",
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        hdp: float | None = None,
        pdp: tuple[float, float] | None = None,
        confidence: float = 0.95,
        bandwidth: BandwidthLike = "auto",
        iterations: int | None = None,
        steps: StepsLike = None,
        neighbours: str | None = None,
        max_contributions: int = 1,
        expect_records: int | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        self.family = family
        self.parameter_bounds = parameter_bounds
        self.bounds = bounds
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.hdp = hdp
        self.pdp = pdp
        self.confidence = confidence
        self.bandwidth = bandwidth
        self.iterations = iterations
        self.steps = steps
        self.neighbours = neighbours
        self.max_contributions = max_contributions
        self.expect_records = expect_records
        self.ledger = ledger

    @np.errstate(all="ignore")  # what is read of an answer must not fail by a setting of the calling program
    def fit(self, X: SourceLike, y: object = None) -> PrivateHellinger:  # noqa: ARG002
        """Release once, or descend, and fit the family; return the estimator itself.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record, one column per axis. A descent needs an array, a frame or a
            :class:`fogline.sources.files.CountedFile`: its number of rows is public.
        y : ignored
        """
        source = as_source(X)
        family, box, bounds = self._family(schema_names(source))
        terms = self._terms(unit_of(source))
        level = _validation.check_level(self.confidence, "confidence")
        _validation.check_ledger(self.ledger)
        check_expectation(self.expect_records, self.method)
        spec = self._spec(family, box, bounds) if self.method == "sketch" else None
        plan = None if spec is not None else self._plan(family, box, bounds, rows_of(source))
        self._remember_features(source, family.dimension, self.bounds)
        try:
            if spec is not None:
                density = release_source(source, spec, terms, self.ledger)
            else:
                assert plan is not None
                released = self._descend(source, plan, terms)
        finally:
            del X, source  # an error's traceback must not lead to the records
        self.reading_ = self.assumption_ = self.robust_intervals_ = None
        if spec is not None:
            self._keep_fit(family, box, self._named(density))
        else:
            assert plan is not None
            self._keep_descent(plan, *released)
        self.confidence_intervals_ = self._intervals(level)
        warn_of_count(self.guarantee_, density.count if plan is None else plan.n)
        return self

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, density: PrivateDensity, column: str | int | None = None) -> PrivateHellinger:
        """Fit the family to one column of a density that was released before; free.

        The fit is to the leaf masses of the density's posterior, and its errors come from the draws: privacy, sampling
        and smoothing are in them. Where the family does not fit, the intervals are widened; ``assumption_`` says what
        they rest on.

        Parameters
        ----------
        density : PrivateDensity
            Of up to three columns, of leaves or of Fourier sums.
        column : str or int, optional
            Needed where the density has several columns and the family one.

        Returns
        -------
        PrivateHellinger
            The estimator itself, fitted; of its parameters ``family``, ``parameter_bounds`` (here they may be left
            out), ``confidence`` and ``expect_records`` count.

        Examples
        --------
        >>> import numpy as np
        >>> from fogline import DensitySketch, PrivateHellinger
        >>> stay = np.random.default_rng(0).gamma(2.0, 3.0, 5000)
        >>> density = DensitySketch([(0, 60)], features="leaves").update(stay[:, None]).release(epsilon=1.0)
        >>> fit = PrivateHellinger(family="gamma").read(density)
        >>> low, high = fit.confidence_intervals_["shape"]
        >>> bool(low < 2.3 and high > 1.7), bool(fit.explained_.share > 0.95)
        (True, True)
        """
        if not isinstance(density, PrivateDensity):
            raise TypeError(f"density must be a PrivateDensity, got {type(density).__name__}")
        if self.family is None:
            raise TypeError("family must be given: a name such as 'normal', or a Family")
        level = _validation.check_level(self.confidence, "confidence")
        check_expected(self.expect_records)
        found = density.fit(self.family, column, parameter_bounds=self.parameter_bounds, level=level)
        names = None if density.columns is None else list(found.columns)
        self._remember_features(SimpleNamespace(columns=names), found.family.dimension)
        privacy = np.asarray(found.covariance - found.sampling_covariance)
        degrees = np.full(len(found.params), DISTANCE.most)
        theta = np.array(list(found.params.values()))
        self.__dict__.update(estimates_of(found.family, theta, privacy, found.sampling_covariance, degrees))
        self.reading_ = found
        self.assumption_ = found.assumption
        self.robust_intervals_ = found.robust_intervals
        self.explained_ = Explained(found.share, found.share_error, found.lumps)
        self.bandwidth_ = np.array([axis.width for axis in density.posterior.axes if axis.name in found.columns])
        self.density_, self.path_ = density, None
        self.guarantee_, self.receipt_ = density.guarantee, density.receipt
        told = "; ".join(part for part in (str(found.assumption), found.message) if part)
        self.message_ = self._message(told, density.guarantee, density.count, density.count_sd)
        self.confidence_intervals_ = found.intervals
        return self

    def confidence_interval(self, level: float) -> dict[str, tuple[float, float]]:
        """Intervals at another level, by parameter; free."""
        return self._intervals(_validation.check_level(level, "level"))

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What one ``fit`` costs, from the parameters alone.

        Examples
        --------
        >>> from fogline import PrivateHellinger
        >>> round(PrivateHellinger(hdp=0.2).cost().rho, 4)
        0.4214
        """
        return self._terms().cost()

    def expected_error(self, n: int, theta: Mapping[str, float] | None = None) -> ExpectedFit:
        """Standard errors of a fit to n records, before any are touched; free.

        Parameters
        ----------
        n : int
            A guess of the number of records.
        theta : mapping from parameter name to value, optional
            A public guess of the parameters; by default the middle of their bounds.

        Examples
        --------
        >>> from fogline import PrivateHellinger
        >>> planned = PrivateHellinger(family="exponential", parameter_bounds={"scale": (1, 10)}, hdp=0.2)
        >>> errors = [planned.expected_error(n, {"scale": 3.0}).standard_errors["scale"] for n in (500, 5000)]
        >>> errors[0] > 2 * errors[1]
        True
        """
        size = _validation.check_count(n, "n")
        family, box, bounds = self._family()
        terms = self._terms()
        guess = family.start(box) if theta is None else checked_guess(family, box, theta)
        if self.method == "sketch":
            return expected_fit(family, box, self._spec(family, box, bounds), terms, size, guess)
        return expected_descent(self._plan(family, box, bounds, size), terms, guess)

    # -- validation: everything here is public and free ------------------------------------------------------

    def _terms(self, unit: str = "record") -> ReleaseTerms:
        # A descent divides by the public number of rows, so only a replaced record is hidden.
        usual = "add-remove" if self.method == "sketch" else "replace"
        neighbours = usual if self.neighbours is None else self.neighbours
        if self.method != "sketch" and _validation.check_neighbours(neighbours) != "replace":
            raise ValueError(f'neighbours must be "replace" for method={self.method!r}; method="sketch" serves both')
        return ReleaseTerms.checked(
            self.epsilon,
            self.delta,
            neighbours,
            self.max_contributions,
            unit,
            rho=self.rho,
            hdp=self.hdp,
            pdp=self.pdp,
            ledger=self.ledger,
        )

    def _family(self, columns: Sequence[str] | None = None) -> tuple[Family, FloatArray, FloatArray]:
        """Return the family, the bounds of its parameters and the box of the data."""
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        if self.family is None:
            raise TypeError("family must be given: a name such as 'normal', or a Family")
        family = family_named(self.family)
        box = parameter_box(family, self.parameter_bounds)
        known = getattr(self, "_columns", None) if columns is None else columns
        given = None if self.bounds is None else units.resolve_bounds(self.bounds, known, width=family.dimension)
        return family, box, data_box(family, box, given)

    def _fitted_family(self) -> tuple[Family, FloatArray, FloatArray]:
        """Return what was fitted: the family, the bounds of its parameters and the box of the data."""
        if self.reading_ is None or self.density_ is None:
            return self._family()
        axes = [axis for axis in self.density_.posterior.axes if axis.name in self.reading_.columns]
        return self.reading_.family, self.reading_.box, np.array([axis.bounds for axis in axes])

    def _spec(self, family: Family, box: FloatArray, bounds: FloatArray) -> SketchSpec:
        if self.iterations is not None:
            raise ValueError("iterations: the sketch has none; they belong to method='gradient' and 'newton'")
        return plan_sketch(family, box, bounds, self.bandwidth, self.steps)

    def _plan(self, family: Family, box: FloatArray, bounds: FloatArray, n: int) -> DescentPlan:
        if getattr(family, "has_atoms", False):
            raise ValueError(f"method: the {family.name} family gives single values a share; take method='sketch'")
        return plan_descent(self, family, box, bounds, n)

    # -- fitting ---------------------------------------------------------------------------------------------

    def _descend(
        self, source: SourceLike, plan: DescentPlan, terms: ReleaseTerms
    ) -> tuple[Descent, Guarantee, dict[str, Any] | None]:
        columns = names_of(source)
        curator = Curator(source, terms, width=1)
        del source
        return curator.release(
            lambda curator: descend(plan, curator),
            mechanism="discrete Gaussian noise on steps of a Hellinger descent",
            proof=PROOF,
            name=f"hellinger {self.method}",
            code_version=CODE_VERSION,
            parameters={
                "family": family_id(plan.family),
                "parameter_bounds": plan.box.tolist(),
                "bounds": list(plan.bounds),
                "bandwidth": plan.bandwidth,
                "iterations": plan.iterations,
                "n": plan.n,
                "columns": None if columns is None else list(columns),
            },
            max_payload=2**12 * answers_of(plan) + 2**16,
            ledger=self.ledger,
            formerly={"family": family_id_before(plan.family)},
        )

    def _keep_fit(self, family: Family, box: FloatArray, density: PrivateDensity) -> None:
        fixed = None if isinstance(self.bandwidth, str) else as_bandwidth(self.bandwidth, density.spec.widths)
        fit = fit_density(density, family, box, fixed)
        errors = (fit.privacy_covariance[:-1, :-1], fit.sampling_covariance[:-1, :-1], fit.degrees)
        self.__dict__.update(estimates_of(family, fit.theta, *errors))
        self.explained_ = explained_part(fit, density)
        self.bandwidth_ = fit.bandwidth
        self.density_ = density
        self.path_ = None
        self.guarantee_ = density.guarantee
        self.receipt_ = density.receipt
        counted = (density.count, density.count_sd)
        self.message_ = self._message(message_of(family, box, fit.theta, *counted), density.guarantee, *counted)

    def _keep_descent(
        self, plan: DescentPlan, found: Descent, guarantee: Guarantee, receipt: dict[str, Any] | None
    ) -> None:
        errors = (found.privacy_covariance, found.sampling_covariance, found.degrees)
        self.__dict__.update(estimates_of(plan.family, found.theta, *errors))
        self.explained_ = None
        self.bandwidth_ = np.array([plan.bandwidth])
        self.density_ = None
        self.path_ = found.path
        self.guarantee_ = guarantee
        self.receipt_ = receipt
        self.message_ = descent_message(plan.family, plan.box, found.theta, plan.n, guarantee)

    def _intervals(self, level: float) -> dict[str, tuple[float, float]]:
        if self.reading_ is not None:
            return self.reading_.intervals_at(level)
        family, box, _ = self._family()
        return intervals(family, self.params_, self.standard_errors_, self.degrees_of_freedom_, box, level)
