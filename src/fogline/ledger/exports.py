r"""What a ledger has spent, in the words of other accountants.

The growth of a data set's totals, entry by entry: for parts of a partition an entry may add less than its price, even
nothing. So the sum of what is exported is what the ledger has counted.

`dp_events` gives events of Google's ``dp_accounting``: Gaussian noise as ``GaussianDpEvent`` with a noise multiplier of
:math:`1/\mu`, zCDP as ``ZCDpEvent``, and pure epsilon as the ``ZCDpEvent`` that it is at most, :math:`\varepsilon^2/2`.
Its accountant of Renyi divergences takes them all, that of privacy loss distributions Gaussian noise only. It has no
event for a delta: what mechanisms have of their own, and what total variation adds, is returned beside the events.

`opendp_text` gives JSON with the privacy measures of OpenDP by their names, and in ``d_mids`` the losses as
``opendp.combinators.make_adaptive_composition`` takes them, one list for each measure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fogline.accounting._rounding import round_down, round_up, square_root_up
from fogline.accounting.analytic_gaussian import slack_of
from fogline.ledger.caps import Currency
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS

if TYPE_CHECKING:
    from fogline.ledger.ledger import Ledger

__all__ = ["Loss", "dp_events", "losses", "opendp_text"]


@dataclass(frozen=True)
class Loss:
    """By how much one entry made the totals of its data set grow.

    Parameters
    ----------
    entry : int
    mechanism : str
    currency : str
        The one that the entry was charged in.
    amount, delta : float
        In that currency, rounded up; of Gaussian noise half of mu squared and the total variation.
    """

    entry: int
    mechanism: str
    currency: Currency
    amount: float
    delta: float

    @property
    def mu(self) -> float | None:
        """The mu of Gaussian noise, rounded up; None for all else."""
        return square_root_up(2 * Fraction(self.amount)) if self.currency == "gaussian" else None


def losses(ledger: Ledger, dataset: str | None = None) -> tuple[Loss, ...]:
    """Return what each paid entry of a data set added to its totals, oldest first; what added nothing is left out.

    Examples
    --------
    >>> import tempfile
    >>> from fogline.accounting import Cost
    >>> from fogline.ledger import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
    ...                        high_water=f"{folder.name}/marks")
    >>> _ = ledger.ask("count", code_version="1", parameters={}, cost=Cost(0.005), neighbours="add-remove",
    ...                certified=True, release=lambda: b"about 90")
    >>> losses(ledger)
    (Loss(entry=2, mechanism='count', currency='zcdp', amount=0.005000..., delta=0.0),)
    >>> json.loads(opendp_text(ledger))["measures"][0]["d_mids"]
    [0.005000...]
    >>> ledger.close()
    >>> folder.cleanup()
    """
    name = ledger.on(dataset).dataset
    before: dict[str, tuple[int, int]] = {}
    found = []
    for entry in ledger.history():
        content: Mapping[str, Any] = entry.content
        if entry.kind != "reserve" or content["asked"]["dataset"] != name:
            continue
        # in the lane of zCDP Gaussian noise and zCDP share one total
        total = "zcdp" if content["currency"] == "gaussian" and ledger.lane(name) == "zcdp" else content["currency"]
        last = before.get(total, (0, 0))
        before[total] = content["spent"], content["delta_spent"]
        # differences of totals, not the charges: parts of a partition cost together what the dearest costs
        amount, delta = before[total][0] - last[0], before[total][1] - last[1]
        if amount or delta:
            sizes = round_up(Fraction(amount, UNITS)), round_up(Fraction(delta, DELTA_UNITS))
            found.append(Loss(entry.seq, str(content["asked"]["mechanism"]), content["currency"], *sizes))
    return tuple(found)


def dp_events(ledger: Ledger, dataset: str | None = None) -> tuple[Any, float]:
    """Return a ``ComposedDpEvent`` of ``dp_accounting``, which must be installed, and the delta to add to its own.

    What is spent from the caps for draws and for mechanisms known by epsilon and delta only is not in it.
    """
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise ImportError("dp_accounting is needed for its events: pip install dp-accounting") from None
    events: list[Any] = []
    deltas, distances = Fraction(0), Fraction(0)
    for loss in losses(ledger, dataset):
        amount = Fraction(loss.amount)
        if loss.currency == "gaussian":
            distances += Fraction(loss.delta)
            mu = square_root_up(2 * amount)
            # less noise than there is: the export never says that less was spent
            events += [dp_event.GaussianDpEvent(round_down(1 / Fraction(mu)))] if amount else []
        elif loss.currency == "zcdp":
            deltas += Fraction(loss.delta)
            events += [dp_event.ZCDpEvent(rho=loss.amount)] if amount else []
        elif loss.currency == "pure":
            # by its zCDP, which composes with the others
            events.append(dp_event.ZCDpEvent(rho=round_up(amount**2 / 2)))
    slack = Fraction(slack_of(_epsilon_cap(ledger, dataset), distances)) if distances else Fraction(0)
    return dp_event.ComposedDpEvent(events), round_up(deltas + slack)


def opendp_text(ledger: Ledger, dataset: str | None = None) -> str:
    """Return the losses of a data set as JSON, by OpenDP's names of privacy measures.

    Gaussian noise is there by its zCDP, in which OpenDP counts it; its mu is beside it in ``entries``.
    """
    name = str(ledger.on(dataset).dataset)
    found = losses(ledger, name)
    measures: dict[str, list[Any]] = {}
    for loss in found:
        measure, value = _opendp(loss)
        measures.setdefault(measure, []).append(value)
    document = {
        "format": "fogline-opendp-1",
        "dataset": name,
        "d_in": 1,
        "measures": [{"output_measure": measure, "d_mids": values} for measure, values in measures.items()],
        "entries": [
            {
                "entry": loss.entry,
                "mechanism": loss.mechanism,
                "currency": loss.currency,
                "amount": loss.amount,
                "delta": loss.delta,
                "mu": loss.mu,
            }
            for loss in found
        ],
    }
    return json.dumps(document, indent=1)


def _opendp(loss: Loss) -> tuple[str, Any]:
    """Return the measure of OpenDP that a loss is in, and its value there."""
    if loss.currency == "gaussian":
        return "ZeroConcentratedDivergence", loss.amount
    if loss.currency == "zcdp":
        if loss.delta:
            return "Approximate<ZeroConcentratedDivergence>", [loss.amount, loss.delta]
        return "ZeroConcentratedDivergence", loss.amount
    if loss.currency == "approximate":
        return "Approximate<MaxDivergence>", [loss.amount, loss.delta]
    return "MaxDivergence", loss.amount


def _epsilon_cap(ledger: Ledger, dataset: str | None) -> float:
    """Return the epsilon of the data set's cap as it is now: what total variation is multiplied by depends on it."""
    name = ledger.on(dataset).dataset
    caps = [
        entry.content["caps"]
        for entry in ledger.history()
        if entry.kind in ("dataset", "cap") and entry.content.get("dataset") == name
    ]
    return float(caps[-1]["epsilon"])
