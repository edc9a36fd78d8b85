r"""Draws from a density learnt from the records that protect everyone in the data at once.

``fit`` learns a density :math:`Q` by boosting classifiers (MBDE), keeps it secret, and ``sample`` draws from it by
rejection from a public base :math:`Q_0`, each proposal accepted with a probability between
:math:`e^{-\varepsilon/2}` and 1:

.. math:: e^{-\varepsilon/2} \le \frac{dQ}{dQ_0}(x) \le e^{\varepsilon/2} \quad \text{for every } x
          \text{ and whatever the records were.}

So a draw has almost the same law for *any* two data sets: integral privacy (:mod:`fogline.accounting.guarantee`). Draws
add up, and the model is protected by nothing: it is never shown, saved or pickled, and forgotten with the last draw.
The proofs are those of ``mechanisms/mollified_draws.py`` and, for draws by cells, ``mollified_cells.py``;
``sampler.proof.md`` says how the estimator keeps to them.

Ways to draw from a learnt density: by rejection, or from cells of equal base mass. What they hold is secret.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fogline import _validation, units
from fogline._results import Output, check_output, framed
from fogline._typing import BoundsLike, Classifier, FloatArray, LedgerLike, SourceLike
from fogline.accounting.cautions import budget_cautions, warn_of
from fogline.accounting.costs import Cost, cost
from fogline.accounting.guarantee import ROWS, IntegralBudget, IntegralGuarantee
from fogline.estimators._base import ReleasedState, schema_names
from fogline.families.base_measures import base_named
from fogline.mechanisms.mollified_cells import AXIS_BITS, cell_centres, counts_of, mollified_cells
from fogline.mechanisms.mollified_draws import COIN, LOG_STEPS, check_drawable, log_width, mollified_draws, on_lattice
from fogline.mechanisms.randomness import current_provider, provider_reason
from fogline.queries.boosted_density import (
    SCHEDULES,
    BoostedRatio,
    Progress,
    TrainingPlan,
    checked_learner,
    described,
    quiet,
    rehearse,
    train,
)
from fogline.queries.query import Records
from fogline.releases import secret_models
from fogline.releases.release import Charge, PaidQuestion
from fogline.releases.secret_models import Model, SecretTraining
from fogline.sources.passes import as_source, names_of, public_width, unit_of

if TYPE_CHECKING:
    from fogline.ledger.caps import IntegralCost

__all__ = ["MECHANISMS", "PROOFS", "IntegralSampler", "by_cells", "by_rejection"]


PROOFS = {"rejection": "mollified-draws", "cells": "mollified-cells"}
MECHANISMS = {
    "rejection": "draws by rejection from a boosted density in a mollifier",
    "cells": "draws by cells from a boosted density in a mollifier",
}


def by_rejection(ratio: BoostedRatio, plan: TrainingPlan, constant_time: bool) -> Model:
    """Draw by rejection: the model as the sampler clamps it, and without a word from its learners."""
    widest = log_width(plan.epsilon)

    def log_acceptance(x: FloatArray) -> FloatArray:
        with quiet():
            return on_lattice(ratio(x), widest) / LOG_STEPS

    def draw(size: int) -> FloatArray:
        return mollified_draws(log_acceptance, plan.base, size=size, epsilon=plan.epsilon, constant_time=constant_time)

    return draw, log_acceptance


def by_cells(ratio: BoostedRatio, plan: TrainingPlan) -> Model:
    """Draw from cells: all that is kept of the model is a count for each."""
    with quiet():
        counts = counts_of(ratio.open(plan.base.points(cell_centres(plan.base.d))), epsilon=plan.epsilon)
    shape = (2 ** AXIS_BITS[plan.base.d],) * plan.base.d

    def draw(size: int) -> FloatArray:
        return mollified_cells(lambda: counts, plan.base, size=size, epsilon=plan.epsilon)

    def log_ratio(x: FloatArray) -> FloatArray:
        places = np.clip((plan.base.uniforms(x) * shape[0]).astype(np.int64), 0, shape[0] - 1)
        return np.asarray(np.log(counts[np.ravel_multi_index(tuple(places.T), shape)] * (len(counts) / COIN)))

    return draw, log_ratio


CODE_VERSION = "1"


class IntegralSampler(ReleasedState, BaseEstimator):  # type: ignore[misc]
    """Draw a few records-like points, with everyone in the data protected at once.

    Parameters
    ----------
    epsilon : float
        Of *one draw*; required. All draws together cost ``epsilon * max_samples``.
    max_samples : int
        How many draws may ever be made from one fit; required.
    base : "normal", "uniform", or frozen distribution(s) of scipy.stats
        Public density that the draws begin with, and stay close to. "normal" is the standard normal density or, with
        `bounds`, one centred in them; "uniform" is flat on `bounds`. A distribution of one column serves all columns, a
        list has one for each; ``scipy.stats.multivariate_normal(mean, cov)`` has a public mean and covariance. Other
        distributions of several columns are drawn by their own sampler, which cannot be certified.
    bounds : array-like of shape (d, 2), list or mapping, optional
        Public range of each column, as :class:`fogline.PrivateModes` takes it. Never take it from the data.
    rounds : int, default 1
        Classifiers that are learnt.
    learner : "boosting", "mlp" or classifier
        What tells records from draws: gradient-boosted trees, the paper's network, or any classifier with
        ``decision_function`` or ``predict_proba``. Copies of it are fitted, with random states from the entropy door.
    schedule : {"full", "paper"}
        Whole log-odds, clamped once, or small steps of classifiers clamped to plus and minus log 2. The defaults gain
        the most of all that were tried; the paper's are ``learner="mlp", schedule="paper", rounds=3,
        drawing="rejection"``.
    training_draws : int, default 10000
        Points of either class in each round; records are repeated or drawn to as many.
    drawing : {"auto", "cells", "rejection"}
        How points are drawn: from cells of equal base mass, up to three columns, or by rejection from the base, in any
        number. Cells use the whole width of the mollifier, rejection half of it: they gain up to twice as much, most
        where the records fill a good part of the base. Their draws take constant time. "auto" takes cells where the
        number of columns and the base allow it.
    constant_time : bool, default False
        With rejection: look at all proposals of every draw, so that the time of ``sample`` tells nothing of the model.
        Turn it on where somebody else can ask for draws and watch the clock.
    currency : {"integral", "zcdp"}
        What a ledger is charged: its cap for integrally private draws, or rho like any other release, of which each
        draw costs epsilon^2 / 2, being epsilon-DP.
    neighbours : {"add-remove", "replace"}
        The relation that a ledger or an audit names. The promise holds for any two data sets.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept. All draws are reserved before the records are touched, made at once, and stored; asked
        again, they are the same ones.
    progress : callable, optional
        Told how many rounds are done, how many there are, and the name of the next; nothing else.

    Attributes
    ----------
    guarantee_ : IntegralGuarantee
        What is promised, and to whom.
    draws_left_ : int
        How many draws may still be made.
    receipt_ : dict or None
        Of the ledger.
    message_ : str
        What is to say of the budget of all draws together; else empty. There is no released count.

    Notes
    -----
    Records that are missing, infinite or outside the base's support contribute nothing, silently. The fitted sampler
    cannot be pickled or copied while it has draws left: a copy would be a way to the model, or to more draws than were
    paid for. Nothing that tells how good the density is can be shown, since it reads the model:
    `fogline.testing.integral_log_ratio` is for tests and benchmarks on data that are not secret.

    References
    ----------
    .. [1] H. Husain, Z. Cranko, R. Nock, "Integral privacy for sampling from mollifier densities with approximation
       guarantees".

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import IntegralSampler
    >>> X = np.random.default_rng(0).normal([2.0, 2.0], 0.5, size=(5000, 2))
    >>> sampler = IntegralSampler(epsilon=0.1, max_samples=20)
    >>> sampler.fit(X).sample(5).shape
    (5, 2)
    >>> sampler.draws_left_
    15
    >>> print(sampler.guarantee_)
    Certified: whatever the data were, any number of records more, fewer or other ones, the probability of a draw
    changes by a factor of at most exp(0.1) = 1.11, and that of all 20 draws together of at most exp(2) = 7.39
    (draws by cells from a boosted density in a mollifier).
    """

    _released_attributes = ("guarantee_", "receipt_", "message_")

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        max_samples: int | None = None,
        base: object = "normal",
        bounds: BoundsLike = None,
        rounds: int = 1,
        learner: Classifier | str = "boosting",
        schedule: str = "full",
        training_draws: int = 10_000,
        drawing: str = "auto",
        constant_time: bool = False,
        currency: str = "integral",
        neighbours: str = "add-remove",
        ledger: LedgerLike | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_samples = max_samples
        self.base = base
        self.bounds = bounds
        self.rounds = rounds
        self.learner = learner
        self.schedule = schedule
        self.training_draws = training_draws
        self.drawing = drawing
        self.constant_time = constant_time
        self.currency = currency
        self.neighbours = neighbours
        self.ledger = ledger
        self.progress = progress

    @np.errstate(all="ignore")  # what is read of an answer must not fail by a setting of the calling program
    def fit(self, X: SourceLike, y: object = None) -> IntegralSampler:  # noqa: ARG002
        """Learn a density of the records and keep it secret; nothing is drawn without a ledger.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record, one column per axis.
        y : ignored

        Returns
        -------
        IntegralSampler
            The estimator itself.
        """
        _validation.check_dense(X)
        source = as_source(X)
        if unit_of(source) not in ROWS:
            raise ValueError("unit: leave it out; the promise holds however many records a unit has")
        bounds = None if self.bounds is None else units.resolve_bounds(self.bounds, schema_names(source))
        width = public_width(source, getattr(self.base, "d", None) if bounds is None else len(bounds))
        budget, draws = self._budget()
        _validation.check_ledger(self.ledger)
        plan = self._plan(width, bounds)
        self._remember_features(source, plan.base.d, self.bounds)
        columns, training = names_of(source), SecretTraining(source, width=plan.base.d)
        cautions = budget_cautions(budget.repeated(draws).epsilon, 0.0)
        del X, source  # an error's traceback must not lead to the records
        # A fit replaces the model before; two at a time would count draws in two places.
        secret_models.forget(self)
        # through the door of entropy: an audit can replay the training
        rng = current_provider().generator("training")
        try:
            warn_of(cautions)
            # On made-up records: a learner that fails would otherwise fail on the secret ones, and tell so.
            rehearse(plan, rng)
            paid_draws, receipt = training.release(
                lambda records: self._model(plan, records, rng),
                plan.base,
                draws,
                self.ledger,
                lambda: self._question(plan, draws, columns, training.facts),
            )
        finally:
            training.forget()
        self.guarantee_ = IntegralGuarantee.of(
            budget.epsilon,
            draws=draws,
            mechanism=MECHANISMS[self._way(plan)],
            proof=PROOFS[self._way(plan)],
            neighbours=_validation.check_neighbours(self.neighbours),
            reason=provider_reason() or plan.base.reason,
        )
        self.receipt_ = receipt
        self.message_ = "; ".join(cautions)
        # Held outside of the estimator, which may be pickled, copied and looked at.
        secret_models.hold(self, paid_draws)
        return self

    def sample(self, n_samples: int = 1, *, output: Output = None) -> Any:
        """Draw points; each is paid for, and none is made beyond ``max_samples``.

        Parameters
        ----------
        n_samples : int
        output : {"pandas", "polars"}, optional
            A frame with the names of the columns; by default an array.

        Returns
        -------
        array of shape (n_samples, d), or a frame

        Raises
        ------
        ValueError
            When fewer draws are left than asked for. Nothing is drawn then.
        """
        check_is_fitted(self, "guarantee_")
        size = _validation.check_count(n_samples, "n_samples")
        check_output(output)  # a frame that cannot be made must not cost draws
        paid_draws = secret_models.paid_draws_of(self)
        if paid_draws is None:
            raise ValueError(
                f"n_samples={size}: all {self.guarantee_.draws} draws are taken, or this is another process; the model"
                " is forgotten, and a new fit costs a new budget"
            )
        if (reason := provider_reason()) and self.receipt_ is None and self.guarantee_.certified:
            self.guarantee_ = replace(self.guarantee_, certified=False, reason=reason)  # drawn here, through this door
        drawn = paid_draws.take(size)
        # the model goes with its last draw
        if paid_draws.left == 0:
            secret_models.forget(self)
        return framed(drawn, self._columns, output)

    @property
    def draws_left_(self) -> int:
        """How many draws may still be made."""
        check_is_fitted(self, "guarantee_")
        paid_draws = secret_models.paid_draws_of(self)
        return 0 if paid_draws is None else paid_draws.left

    def forget(self) -> None:
        """Let go of the model now; the draws that are left lapse."""
        secret_models.forget(self)

    def cost(self) -> Cost | IntegralCost:
        """What one ``fit`` with all its draws costs, from the parameters alone, in the currency of choice.

        Examples
        --------
        >>> IntegralSampler(epsilon=0.1, max_samples=20).cost()
        IntegralCost(epsilon=0.1, draws=20)
        >>> IntegralSampler(epsilon=0.1, max_samples=20, currency="zcdp").cost().rho <= 0.1 + 1e-9
        True
        """
        budget, draws = self._budget()
        if self.currency == "zcdp":
            charged: Cost = cost(budget.event(draws))
            return charged
        from fogline.ledger.caps import IntegralCost

        return IntegralCost(budget.epsilon, draws=draws)

    def informative_share(self) -> float:
        r"""Largest share of the draws that can carry information of the records, from the parameters alone.

        A density Q of the mollifier is at least :math:`e^{-\varepsilon/2} Q_0` everywhere. So it is a mixture

        .. math:: Q = e^{-\varepsilon/2} Q_0 + \bigl(1 - e^{-\varepsilon/2}\bigr) R ,

        and whatever the records are, a share of :math:`e^{-\varepsilon/2}` of the draws might as well have come from
        the public base.

        Examples
        --------
        >>> round(IntegralSampler(epsilon=0.1, max_samples=20).informative_share(), 3)
        0.049
        """
        budget, _ = self._budget()
        # expm1: for a small epsilon 1 - exp would lose its digits
        return -math.expm1(-budget.epsilon / 2)

    def __getstate__(self) -> dict[str, Any]:
        if secret_models.paid_draws_of(self) is not None:
            raise TypeError(
                "a fitted IntegralSampler cannot be pickled or copied: its model is secret, and its draws are counted "
                "in one place; save what sample() returns, or call forget() first"
            )
        return super().__getstate__()

    def _budget(self) -> tuple[IntegralBudget, int]:
        """Check what is asked for; every error names its parameter."""
        budget = IntegralBudget(_validation.check_epsilon(self.epsilon))
        if self.max_samples is None:
            raise TypeError("max_samples must be given: every draw costs epsilon, got None")
        draws = _validation.check_count(self.max_samples, "max_samples")
        check_drawable(budget.epsilon)
        _validation.check_neighbours(self.neighbours)
        if self.currency not in ("integral", "zcdp"):
            raise ValueError(f'currency must be "integral" or "zcdp", got {self.currency!r}')
        # for its error: all draws together must be a budget that floats can hold
        budget.repeated(draws)
        return budget, draws

    def _check(self, width: int) -> None:
        """Raise an error of any parameter before a source is looked at."""
        self._plan(width, None if self.bounds is None else units.resolve_bounds(self.bounds))

    def _plan(self, width: int, bounds: FloatArray | None) -> TrainingPlan:
        """Check everything else that is public."""
        if self.schedule not in SCHEDULES:
            raise ValueError(f'schedule must be "paper" or "full", got {self.schedule!r}')
        if self.drawing not in ("auto", "rejection", "cells"):
            raise ValueError(f'drawing must be "auto", "rejection" or "cells", got {self.drawing!r}')
        if self.drawing == "cells" and width not in AXIS_BITS:
            raise ValueError(f'drawing="cells" is for at most {max(AXIS_BITS)} columns, got {width}')
        if self.progress is not None and not callable(self.progress):
            raise TypeError(f"progress must be callable, got {type(self.progress).__name__}")
        base = base_named(self.base, width=width, bounds=bounds)
        if self.drawing == "cells" and base.reason:
            raise ValueError('drawing="cells" needs a base with quantiles')
        return TrainingPlan(
            base=base,
            epsilon=_validation.check_epsilon(self.epsilon),
            rounds=_validation.check_count(self.rounds, "rounds"),
            schedule=self.schedule,
            learner=checked_learner(self.learner),
            draws=_validation.check_count(self.training_draws, "training_draws", minimum=10),
        )

    def _model(self, plan: TrainingPlan, records: Records, rng: np.random.Generator) -> Model:
        """Train: a way to draw, and the log-ratio to the base, both secret."""
        ratio = train(plan, records, rng, self.progress)
        if self._way(plan) == "cells":
            return by_cells(ratio, plan)
        return by_rejection(ratio, plan, bool(self.constant_time))

    def _way(self, plan: TrainingPlan) -> str:
        """How points are drawn: by cells where public parameters allow it, if nothing else is asked for."""
        if self.drawing != "auto":
            return self.drawing
        return "rejection" if plan.base.reason or plan.base.d not in AXIS_BITS else "cells"

    def _question(
        self, plan: TrainingPlan, draws: int, columns: tuple[str, ...] | None, facts: dict[str, Any]
    ) -> PaidQuestion:
        """What a ledger is asked, and charged for all draws."""
        return PaidQuestion(
            name="integral draws",
            code_version=CODE_VERSION,
            parameters={
                "epsilon": plan.epsilon,
                "max_samples": draws,
                "base": plan.base.to_dict(),
                "rounds": plan.rounds,
                "schedule": plan.schedule,
                "drawing": self._way(plan),
                "learner": described(plan.learner),
                "training_draws": plan.draws,
                "currency": self.currency,
                "columns": None if columns is None else list(columns),
                **facts,
            },
            charge=Charge(
                cost=self.cost(),
                neighbours=self.neighbours,
                certified=not (provider_reason() or plan.base.reason),
                unit=None,  # integral privacy holds for changes of any number of records
                gain_and_loss=True,
            ),
            max_payload=8 * draws * plan.base.d + 2**12,
        )
