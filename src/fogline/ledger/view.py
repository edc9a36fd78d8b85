"""The ledger as one analyst sees one data set.

What is left in the books, and what a plan would leave: pure functions of accounts.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from fogline.accounting._rounding import round_down, round_up, square_root_down
from fogline.accounting.analytic_gaussian import epsilon_of as gaussian_epsilon
from fogline.accounting.zcdp import epsilon_of
from fogline.ledger.accounts import Account, Place
from fogline.ledger.caps import AnyCost, Caps, Charge, Currency, Lane
from fogline.ledger.gaussian_cap import GaussianCap
from fogline.ledger.question import Question
from fogline.ledger.receipts import Answer, Plan, Remaining
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS
from fogline.ledger.units import AFRESH

if TYPE_CHECKING:
    from fogline.ledger.ledger import Ledger

__all__ = ["LedgerView", "planned", "promise", "remaining"]

_MOST_TIMES = 10**6


def remaining(accounts: Sequence[Account]) -> Remaining:
    """Return the least that any of the accounts has left, in each currency.

    Examples
    --------
    >>> from fogline.ledger.caps import Caps
    >>> left = remaining([Account(Caps(epsilon=1.0, delta=1e-5)), Account(Caps(epsilon=0.5, delta=1e-5))])
    >>> round(left.epsilon, 3), left.pure, left.approximate
    (0.5, 0.5, None)
    """
    return _left(accounts)


def planned(accounts: Sequence[Account], charge: Charge, place: Place) -> Plan:
    """Return what a charge would do to the accounts.

    Examples
    --------
    >>> from fogline.ledger.caps import Caps
    >>> account = Account(Caps(epsilon=1.0, delta=1e-5))
    >>> planned([account], Charge("zcdp", 10**10), Place("patients", "add-remove")).times
    3
    """
    fits = _fits(accounts, charge, place)
    if not fits:
        return Plan(charge=charge, fits=False, times=0, before=remaining(accounts), after=None)
    # the first may fix what those after it may take
    # the first release may open a lane, which changes what all others cost
    begun = [account.charged(charge, place) for account in accounts]
    times, step = 1, _MOST_TIMES
    while step:  # the largest number that fits, bit by bit
        if times + step <= _MOST_TIMES and _fits(begun, _multiple(charge, times - 1 + step), place):
            times += step
        else:
            step //= 2
    return Plan(charge=charge, fits=True, times=times, before=remaining(accounts), after=remaining(begun))


def promise(account: Account) -> str:
    """Say what is proved of everything that an account pays for from the cap that pure epsilon and its lane share.

    Examples
    --------
    >>> from fogline.ledger.caps import Caps
    >>> promise(Account(Caps(epsilon=1.0, delta=1e-6, set_aside=0.0)))
    'all releases together are (1, 1e-06)-DP, whatever analysts decide by the answers'
    >>> promise(Account(Caps(epsilon=1.0, delta=1e-6)))
    'all releases together are (1, 1e-06)-DP, whatever analysts decide by the answers, as long as no release with a
    delta of its own follows the first one in zCDP; a release that does may bring it to (1, 2e-06)'
    >>> promise(Account(Caps(epsilon=1.0, delta=1e-6, approximate=(1.0, 1e-6), set_aside=0.0)))
    'all releases in pure epsilon and in the lane together are (1, 1e-06)-DP, whatever analysts decide by the answers;
    caps beside it, which add to that: (1, 1e-06) for releases known by epsilon and delta alone'
    """
    caps = account.caps
    if caps is None or caps.epsilon is None or caps.delta is None:
        return "there is no cap for releases in zCDP or in pure epsilon"
    beside = _beside(caps)
    what = "all releases in pure epsilon and in the lane together" if beside else "all releases together"
    return f"{_shared_promise(account, caps.epsilon, caps.delta, what)}{beside}"


def _beside(caps: Caps) -> str:
    """Name the caps of currencies that are not in the shared one: what they pay for adds to its promise."""
    named = []
    if caps.approximate is not None:
        epsilon, delta = caps.approximate
        named.append(f"({epsilon:g}, {_digits(Fraction(delta))}) for releases known by epsilon and delta alone")
    if caps.integral is not None:
        named.append(f"epsilon {caps.integral:g} for integrally private draws")
    return f"; caps beside it, which add to that: {', and '.join(named)}" if named else ""


def _shared_promise(account: Account, epsilon: float, delta: float, what: str) -> str:
    said = f"{what} are ({epsilon:g}, {_digits(Fraction(delta))})-DP"
    if account.mixed:
        return (
            f"{what} are ({epsilon:g}, {_digits(account.promised_delta)})-DP, whatever analysts"
            " decide by the answers; the cap is of an earlier version, which did not fix how its delta was split, and"
            f" at {_digits(Fraction(delta))} it holds only if nobody chose releases with a delta of their own by"
            " the answers"
        )
    said += ", whatever analysts decide by the answers"
    if delta == 0.0 or account.lane == "gaussian" or account.is_split:
        return said
    return (
        f"{said}, as long as no release with a delta of its own follows the first one in zCDP; a release that does may"
        f" bring it to ({epsilon:g}, {_digits(2 * Fraction(delta))})"
    )


def _digits(delta: Fraction) -> str:
    """Return a delta in as few digits as say it, or in six, rounded up."""
    rounded = f"{round_up(delta):.6g}"
    return rounded if Fraction(rounded) >= delta else f"{round_up(delta * (1 + Fraction(1, 10**5))):.6g}"


def _multiple(charge: Charge, times: int) -> Charge:
    return Charge(charge.currency, charge.amount * times, charge.delta * times)


def _fits(accounts: Sequence[Account], charge: Charge, place: Place) -> bool:
    return all(account.admits(charge, place) for account in accounts)


def _left(accounts: Sequence[Account]) -> Remaining:
    lane = _least(accounts, None) or (0, 0)
    pure = _least(accounts, "pure") or (0, 0)
    approximate = _least(accounts, "approximate")
    integral = _least(accounts, "integral")
    rho, delta = _floats(lane)
    return Remaining(
        rho=rho,
        delta=delta,
        epsilon=_floats(pure)[0] if _only_pure(accounts) else _converted(accounts, rho),
        approximate=None if approximate is None else _floats(approximate),
        integral=None if integral is None else _floats(integral)[0],
        pure=_floats(pure)[0],
        mu=square_root_down(2 * Fraction(rho)) if _lanes(accounts) == {"gaussian"} else None,
    )


def _lanes(accounts: Sequence[Account]) -> set[str]:
    return {account.lane for account in accounts if account.caps is not None}


def _converted(accounts: Sequence[Account], rho: float) -> float:
    """Return what is left of rho as an epsilon: by the curve where all lanes are Gaussian, else by zCDP."""
    # the smallest: what is left must hold for every payer
    delta = min((_conversion_delta(account) for account in accounts if account.caps is not None), default=0.0)
    if rho <= 0.0 or delta <= 0.0:
        return 0.0
    return (gaussian_epsilon if _lanes(accounts) == {"gaussian"} else epsilon_of)(rho, delta)


def _conversion_delta(account: Account) -> float:
    """Return the delta at which the lane of an account is converted."""
    caps = account.caps
    if caps is None or caps.epsilon is None or not caps.delta:
        return 0.0
    if caps.lane == "gaussian":
        return GaussianCap(caps.epsilon, caps.delta).converted_delta
    aside = caps.kept(account.spending)
    taken = account.spent("zcdp")[1] if aside is None else aside
    return _floats((0, math.floor(Fraction(caps.delta) * DELTA_UNITS) - taken))[1]


def _only_pure(accounts: Sequence[Account]) -> bool:
    """Say whether a cap has a delta of 0: what is left of it is a pure epsilon."""
    return any(account.caps is not None and account.caps.delta == 0.0 for account in accounts)


def _least(accounts: Sequence[Account], currency: Currency | None) -> tuple[int, int] | None:
    """Return the least left in one currency, by default that of each account's lane; None where a cap is missing."""
    least: tuple[int, int] | None = None
    for account in accounts:
        if account.caps is None:
            continue
        own = currency or account.lane
        amount, delta = account.spent(own)
        budget = account.budget(own, delta)
        if budget is None:
            return None
        left = max(0, budget[0] - amount), max(0, budget[1] - delta)
        least = left if least is None else (min(least[0], left[0]), min(least[1], left[1]))
    return least


def _floats(units: tuple[int, int]) -> tuple[float, float]:
    amount, delta = round_down(Fraction(units[0], UNITS)), round_down(Fraction(units[1], DELTA_UNITS))
    return amount + 0.0, delta + 0.0  # nothing is left where -0.0 would be said to be


class LedgerView:
    """Made by `Ledger.on`; passed as ``ledger=`` to estimators and releases, as a `Ledger` of one data set can be.

    A question is known by its public parameters, never by the records that a fit is given: asked again with other
    records it has the old answer. Who means other records (a fold of a cross-validation, a sample, a corrected table)
    says so: by `Ledger.new_version`, by a part of a partition, or by `afresh`. ``sklearn.base.clone`` does the last,
    so that each fit of a ``GridSearchCV`` is a question of its own, sees its own fold, and is paid for.

    Examples
    --------
    >>> import tempfile
    >>> from fogline.accounting import Cost
    >>> from fogline.ledger import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
    ...                        high_water=f"{folder.name}/marks")
    >>> ledger.declare_partition("patients", "sex", ["f", "m"])
    >>> for part in ("f", "m"):
    ...     _ = ledger.on("patients", partition=("sex", part)).ask(
    ...         "count", code_version="1", parameters={}, cost=Cost(0.01), neighbours="add-remove", certified=True,
    ...         release=lambda: b"about 45")
    >>> round(ledger.plan(Cost(0.01)).before.rho - ledger.plan(Cost(0.01)).after.rho, 6)
    0.01
    >>> len([entry for entry in ledger.history() if entry.kind == "commit"])
    2
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        ledger: Ledger,
        dataset: str | None,
        *,
        analyst: str | None = None,
        partition: tuple[str, str] | None = None,
        nonce: str | None = None,
    ) -> None:
        self.ledger = ledger
        self.dataset = dataset
        self.analyst = analyst
        self.partition = partition
        self.nonce = nonce

    def __repr__(self) -> str:
        shown = f"LedgerView({str(self.ledger.path)!r}, {self.dataset!r}, {self.analyst!r}, {self.partition!r}"
        return f"{shown})" if self.nonce is None else f"{shown}, mark={self.nonce!r})"

    def __copy__(self) -> Self:
        return self

    # scikit-learn clones estimators for folds, and a fold has records of its own
    def __deepcopy__(self, memo: dict[int, Any]) -> LedgerView:
        return self.afresh()

    def on(
        self, dataset: str | None = None, *, analyst: str | None = None, partition: tuple[str, str] | None = None
    ) -> LedgerView:
        """Return this view with some of it changed, so that a view can stand wherever a ledger can."""
        return LedgerView(
            self.ledger,
            dataset or self.dataset,
            analyst=analyst or self.analyst,
            partition=partition or self.partition,
            nonce=self.nonce,
        )

    def afresh(self) -> LedgerView:
        """Return this view with a new nonce: what is asked through it was never asked before, and is paid for.

        Through the *same* view a question asked again has its answer from the ledger, as always.

        Examples
        --------
        >>> import tempfile
        >>> from fogline.accounting import Cost
        >>> from fogline.ledger import Ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
        ...                        high_water=f"{folder.name}/marks")
        >>> asked = dict(code_version="1", parameters={}, cost=Cost(0.005), neighbours="add-remove", certified=True)
        >>> fold = ledger.on().afresh()
        >>> [view.ask("count", release=lambda: b"about 45", **asked).cached for view in (ledger.on(), fold, fold)]
        [False, False, True]
        >>> ledger.close()
        >>> folder.cleanup()
        """
        return LedgerView(
            self.ledger,
            self.dataset,
            analyst=self.analyst,
            partition=self.partition,
            nonce=secrets.token_hex(8),
        )

    @property
    def lane(self) -> Lane:
        """How the data set accounts for Gaussian noise: "zcdp" or "gaussian"."""
        return self.ledger.lane(self.dataset)

    def rho_of(self, epsilon: float, delta: float) -> float:
        """Return the rho of a release stated as (epsilon, delta), as `Ledger.rho_of` does."""
        return self.ledger.rho_of(epsilon, delta)

    def ask(
        self,
        mechanism: str,
        *,
        code_version: str,
        parameters: Mapping[str, Any],
        cost: AnyCost,
        neighbours: str,
        certified: bool,
        release: Callable[[], bytes],
        **options: Any,
    ) -> Answer:
        """Ask the current version of the data set; everything else, and `options`, is as in `Ledger.spend`."""
        dataset = self.dataset or str(self.ledger.on().dataset)
        # the mark is a parameter: what is asked through it was never asked before
        told = dict(parameters) if self.nonce is None else {**parameters, AFRESH: self.nonce}
        question = Question(dataset, self.ledger.version(dataset), mechanism, code_version, told)
        try:
            return self.ledger.spend(
                question,
                cost=cost,
                neighbours=neighbours,
                certified=certified,
                release=release,
                analyst=self.analyst,
                partition=self.partition,
                **options,
            )
        finally:
            del release  # an error's traceback must not lead to the data

    def plan(self, cost: AnyCost | Any) -> Plan:
        """Return what a cost or an estimator would come to here. Free."""
        return self.ledger.plan(cost, dataset=self.dataset, analyst=self.analyst, partition=self.partition)

    def remaining(self) -> Remaining:
        """Return what is left here."""
        return self.ledger.remaining(self.dataset, self.analyst)
