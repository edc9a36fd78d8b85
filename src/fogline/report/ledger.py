"""What was spent on what: the statement of each data set in a ledger, and a picture of all of them.

Everything here is in the ledger's entries, which are public: names, parameters, costs, caps. No answer is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from fogline.accounting._rounding import digits_up, round_down, round_up, square_root_up
from fogline.accounting.analytic_gaussian import epsilon_of as gaussian_epsilon
from fogline.accounting.zcdp import epsilon_of
from fogline.ledger import Caps, Entry, Ledger, ProtectedUnit, Remaining
from fogline.ledger.caps import CURRENCIES, Currency
from fogline.ledger.gaussian_cap import GaussianCap
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, Spending
from fogline.report._svg import HUES, element, short, significant

__all__ = ["Item", "Statement", "spending_picture", "statements", "write_picture"]

WIDTH, LEFT, BAR = 900, 20, 860
MOST_ITEMS = 60
"""Items drawn one by one in a bar; what follows is drawn as one."""

MOST_LABELS = 12
"""Different questions named under a bar."""

NOTHING = 1e-9
"""Part of a cap below which nothing is left of it."""

EMPTY, HALF = "#dde4e8", 0.45
STYLE = (
    "text{font-family:Segoe UI,Helvetica Neue,Arial,sans-serif;fill:#16232c;font-size:14px}"
    ".name{font-size:17px;font-weight:600}.soft{fill:#4d5f6b}.end{text-anchor:end}.on{fill:#fff;font-weight:600}"
)


@dataclass(frozen=True)
class Item:
    """One reservation: what was asked, and what it added to the total.

    Attributes
    ----------
    seq : int
        The entry that reserved it.
    label, mechanism : str
    currency : str
    amount : int
        By how much the total grew, in units of 1e-12; for parts of a partition less than its price, even 0.
    analyst : str or None
    answered : bool
        A reservation without an answer is spent all the same.
    """

    seq: int
    label: str
    mechanism: str
    currency: Currency
    amount: int
    analyst: str | None
    answered: bool


@dataclass(frozen=True)
class Statement:
    """A data set's account.

    Attributes
    ----------
    dataset, version, neighbours : str
    unit : ProtectedUnit or None
        What is protected as a whole; None until it is declared, or fixed by a first release.
    caps : Caps
    items : tuple of Item
    spent : mapping
        Currency to (amount, delta), in units.
    remaining : Remaining
    spending : Spending
        What the lane and pure epsilon have taken of the cap that they share.
    promise : str
        What is proved of all releases together, in a sentence.
    """

    dataset: str
    version: str
    neighbours: str
    unit: ProtectedUnit | None
    caps: Caps
    items: tuple[Item, ...]
    spent: Mapping[Currency, tuple[int, int]]
    remaining: Remaining
    spending: Spending
    promise: str

    def budget(self, currency: Currency) -> int | None:
        """Return how much may be spent in all, in units, given what else is spent; None without a cap."""
        found = self.caps.budget(currency, self.spent.get(currency, (0, 0))[1], self.spending)
        return None if found is None else found[0]

    @property
    def left(self) -> Remaining:
        """What is left, as people read it: nothing where less than a billionth of the cap is.

        Costs are rounded up and caps down to whole units, so that a cap that is used up may keep some of them; no
        release that tells anything costs so little. Programs read `remaining`, which is exact.
        """
        left, lane = self.remaining, self.budget(self.caps.lane)
        pure = 0.0 if left.pure < NOTHING * (self.caps.epsilon or 0.0) else left.pure
        if self.caps.delta == 0.0:  # then epsilon is pure
            return replace(left, pure=pure, epsilon=pure)
        if lane is not None and left.rho < NOTHING * lane / UNITS:
            # pure epsilon is paid from the same cap, where its square is what costs
            return replace(left, pure=0.0, rho=0.0, epsilon=0.0, mu=None if left.mu is None else 0.0)
        return replace(left, pure=pure)

    @property
    def total(self) -> tuple[float, float]:
        """What all releases in pure epsilon and in the lane amount to together: epsilon, rounded up, and delta."""
        spent, delta = self.spending, self.caps.delta or 0.0
        pure = Fraction(spent.pure, UNITS)
        if spent.rho == 0:
            return round_up(pure), round_up(Fraction(spent.delta, DELTA_UNITS))
        if self.caps.lane == "gaussian" and self.caps.epsilon is not None:
            at = GaussianCap(self.caps.epsilon, delta).converted_delta
            lane = gaussian_epsilon(round_up(Fraction(spent.rho, UNITS)), at)
            return round_up(Fraction(spent.pure_before, UNITS) + Fraction(lane)), delta
        kept = self.caps.kept(spent)
        left = round_down(Fraction(delta) - Fraction(spent.delta if kept is None else kept, DELTA_UNITS))
        return round_up(pure + Fraction(epsilon_of(round_up(Fraction(spent.rho, UNITS)), left))), delta

    @property
    def mu(self) -> float | None:
        """The mu of Gaussian differential privacy that is spent, rounded up, where the lane is Gaussian."""
        return square_root_up(Fraction(2 * self.spending.rho, UNITS)) if self.caps.lane == "gaussian" else None

    @property
    def rho(self) -> float:
        """The rho that is spent: of zCDP, or half of mu squared."""
        return round_up(Fraction(self.spending.rho, UNITS))

    def to_dict(self) -> dict[str, Any]:
        """Return the statement in terms of JSON; rho and epsilon as numbers."""
        left = self.remaining
        return {
            "dataset": self.dataset,
            "version": self.version,
            "neighbours": self.neighbours,
            "unit": None if self.unit is None else self.unit.to_dict(),
            "cap": self.caps.to_dict(),
            "promise": self.promise,
            "total": {**dict(zip(("epsilon", "delta"), self.total, strict=True)), "mu": self.mu, "rho": self.rho},
            "spent": {name: {"amount": pair[0] / UNITS, "delta": pair[1] / 1e18} for name, pair in self.spent.items()},
            "remaining": {
                "epsilon": left.epsilon,
                "delta": left.delta,
                "rho": left.rho,
                "pure": left.pure,
                "approximate": None if left.approximate is None else list(left.approximate),
                "integral": left.integral,
            },
            "items": [
                {
                    "entry": item.seq,
                    "label": item.label,
                    "mechanism": item.mechanism,
                    "currency": item.currency,
                    "amount": item.amount / UNITS,
                    "analyst": item.analyst,
                    "answered": item.answered,
                }
                for item in self.items
            ],
        }


def statements(ledger: Ledger) -> tuple[Statement, ...]:
    """Return the statement of each data set in a ledger, in the order in which they were added.

    Examples
    --------
    >>> import tempfile
    >>> from fogline.accounting import Cost
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
    ...                        high_water=f"{folder.name}/marks")
    >>> _ = ledger.ask("count", code_version="1", parameters={"epsilon": 0.5}, cost=Cost(0.005),
    ...                neighbours="add-remove", certified=True, release=lambda: b"about 90")
    >>> [(item.label, item.answered) for item in statements(ledger)[0].items]
    [('count, epsilon 0.5', True)]
    >>> ledger.close()
    >>> folder.cleanup()
    """
    history = ledger.history()
    answered = {entry.content["reserve"] for entry in history if entry.kind == "commit"}
    found = []
    for name in ledger.datasets:
        own = [entry for entry in history if _dataset_of(entry) == name]
        found.append(_statement(name, own, answered, ledger))
    return tuple(found)


def _dataset_of(entry: Entry) -> str | None:
    name = entry.content["asked"]["dataset"] if entry.kind == "reserve" else entry.content.get("dataset")
    return None if name is None else str(name)


def _statement(name: str, own: Iterable[Entry], answered: set[int], ledger: Ledger) -> Statement:
    facts: dict[str, Any] = {}
    items: list[Item] = []
    spent: dict[Currency, tuple[int, int]] = {}
    for entry in own:
        content = entry.content
        if entry.kind in ("dataset", "version", "cap"):
            facts |= {key: content[key] for key in ("version", "neighbours", "caps") if key in content}
        if entry.kind == "reserve":
            currency = _counted_in(content["currency"], facts["caps"])
            before = spent.get(currency, (0, 0))[0]
            spent[currency] = (content["spent"], content["delta_spent"])
            grown = content["spent"] - before
            mechanism = str(content["asked"]["mechanism"])
            item = Item(
                entry.seq, _label(content), mechanism, currency, grown, content["analyst"], entry.seq in answered
            )
            items.append(item)
    caps = Caps.from_dict(facts["caps"])
    unit, remaining = ledger.unit(name), ledger.remaining(name)
    declared = facts["version"], facts["neighbours"], unit, caps
    return Statement(name, *declared, tuple(items), spent, remaining, ledger.spending(name), ledger.promise(name))


def _counted_in(currency: Currency, caps: Mapping[str, Any]) -> Currency:
    """Return the currency that a charge counts in: Gaussian noise in the lane of zCDP as rho."""
    return "zcdp" if currency == "gaussian" and caps.get("lane", "zcdp") == "zcdp" else currency


MOST_NAMED = 6
"""Most columns of a question that are named."""


def _label(content: Mapping[str, Any]) -> str:
    """Return a reservation in a few words."""
    asked = content["asked"]
    words = [str(asked["mechanism"])]
    epsilon, columns = asked["parameters"].get("epsilon"), asked["parameters"].get("columns")
    if isinstance(columns, list):
        named = [str(one.get("name", one)) if isinstance(one, Mapping) else str(one) for one in columns]
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        words.append(" and ".join(named[:MOST_NAMED]) + more)
    if isinstance(epsilon, int | float):
        words.append(f"epsilon {epsilon:g}")
    if content["partition"] is not None:
        words.append("{} = {}".format(*content["partition"]))
    return ", ".join(words)


# -- the picture ---------------------------------------------------------------------------------------------


def spending_picture(listed: Sequence[Statement]) -> str:
    """Return a drawing (SVG, nothing else needed): a bar for each cap, from what was spent to what is left."""
    parts: list[str] = []
    top = 34.0
    for statement in listed:
        for currency in CURRENCIES:
            budget = statement.budget(currency)
            unused = currency == "pure" and "pure" not in statement.spent and statement.caps.delta != 0.0
            if budget is not None and budget > 0 and not unused:
                drawn, top = _bar(statement, currency, budget, top)
                parts += drawn
    return element(
        "svg",
        element("style", text=STYLE),
        element("rect", x=0, y=0, width=WIDTH, height=int(top), fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {int(top)}",
        role="img",
        aria_label="What was spent of each budget, on what",
    )


def write_picture(drawing: str, path: Path, *, title: str) -> None:
    """Write a drawing as .svg, or as a page where the name ends in .html."""
    if path.suffix.lower() in (".html", ".htm"):
        drawing = (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>{drawing}</html>\n'
        )
    path.write_text(drawing, encoding="utf-8")


def _bar(statement: Statement, currency: Currency, budget: int, top: float) -> tuple[list[str], float]:
    items = [item for item in statement.items if item.currency == currency]
    hues = {name: HUES[i % len(HUES)] for i, name in enumerate(dict.fromkeys(item.label for item in items))}
    spent = statement.spent.get(currency, (0, 0))[0]
    parts = [
        element(
            "text", text=short(f"{statement.dataset}, version {statement.version}", 60), x=LEFT, y=top, class_="name"
        ),
        element("text", text=_cap(statement, currency), x=LEFT + BAR, y=top, class_="soft end"),
        element("rect", x=LEFT, y=top + 12, width=BAR, height=34, fill=EMPTY),
    ]
    left = float(LEFT)
    for label, hue, amount, answered in _slabs(items, hues):
        width = BAR * amount / budget
        title = element("title", text=f"{label}: {_percent(amount, budget)}{'' if answered else ', without an answer'}")
        parts.append(_slab(title, left, top + 12, width, hue, 1.0 if answered else HALF))
        if width > 54:
            parts.append(element("text", text=_percent(amount, budget), x=left + 8, y=top + 34, class_="on"))
        left += width
    parts.append(element("text", text=_left(statement, currency, spent, budget), x=LEFT, y=top + 68, class_="soft"))
    y = top + 68
    for name, hue in list(hues.items())[:MOST_LABELS]:
        y += 22
        own = [item for item in items if item.label == name]
        total = sum(item.amount for item in own)
        times = f"{len(own)} question{'' if len(own) == 1 else 's'}"
        burned = sum(not item.answered for item in own)
        told = f"{short(name, 70)}: {times}, {_percent(total, budget)}"
        told += f", {burned} without an answer" if burned else ""
        parts.append(element("rect", x=LEFT, y=y - 11, width=12, height=12, fill=hue))
        parts.append(element("text", text=told, x=LEFT + 20, y=y))
    if len(hues) > MOST_LABELS:
        y += 22
        parts.append(element("text", text=f"and {len(hues) - MOST_LABELS} other questions", x=LEFT + 20, y=y))
    return parts, y + 48


def _slab(title: str, left: float, top: float, width: float, hue: str, opacity: float) -> str:
    return element(
        "rect", title, x=left, y=top, width=width, height=34, fill=hue, fill_opacity=opacity, stroke="#ffffff"
    )


def _slabs(items: Sequence[Item], hues: Mapping[str, str]) -> list[tuple[str, str, int, bool]]:
    slabs = [(item.label, hues[item.label], item.amount, item.answered) for item in items[:MOST_ITEMS]]
    rest = items[MOST_ITEMS:]
    if rest:
        slabs.append((f"{len(rest)} more questions", HUES[-1], sum(item.amount for item in rest), True))
    return slabs


def _percent(amount: int, budget: int) -> str:
    return f"{100 * amount / budget:.3g}%"


def _cap(statement: Statement, currency: Currency) -> str:
    caps = statement.caps
    if currency == caps.lane:
        whom = "" if statement.unit is None else f", for one {statement.unit}"
        return f"cap: epsilon {caps.epsilon:g} at delta {caps.delta:g}, {statement.neighbours}{whom}"
    if currency == "pure":
        return f"pure epsilon, from the cap of epsilon {caps.epsilon:g} at delta {caps.delta:g}"
    if currency == "approximate" and caps.approximate is not None:
        return f"cap for mechanisms known by epsilon and delta only: {caps.approximate[0]:g}, {caps.approximate[1]:g}"
    return f"cap for integrally private draws: epsilon {caps.integral:g}"


def _left(statement: Statement, currency: Currency, spent: int, budget: int) -> str:
    unspent = max(budget - spent, 0)
    told = f"{_percent(spent, budget)} spent, {_percent(0 if unspent < NOTHING * budget else unspent, budget)} left"
    left = statement.left
    if currency == "pure":
        epsilon, delta = statement.total
        together = f"; with all else epsilon {digits_up(epsilon, 3)} at delta {delta:g}" if delta else ""
        return f"{told}: pure releases of epsilon {significant(left.pure)} would fit{together}"
    if currency != statement.caps.lane:
        return told
    fits = (
        f"one more release of epsilon {significant(left.epsilon)} would fit"
        if left.epsilon > 0
        else "nothing more fits"
    )
    whole = (
        f"mu = {significant((2 * budget / UNITS) ** 0.5)}"
        if currency == "gaussian"
        else f"rho = {significant(budget / UNITS)}"
    )
    return f"{told} of {whole}: {fits}"
