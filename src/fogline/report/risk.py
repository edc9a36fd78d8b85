"""What a guarantee means for a person, as a table, as words and as a picture.

Numbers are those of :meth:`fogline.accounting.Guarantee.risk`: upper bounds, rounded up, for an attacker who knows all
else. The picture has two parts: what a guess about a person can become by the release, and what becomes of it where the
person has more records than the guarantee allows for. Where further records were left out, having them takes nothing
away; then the second part is about people whom the table holds under several values of the unit.
"""

from __future__ import annotations

from collections.abc import Sequence

from fogline.accounting.guarantee import Guarantee
from fogline.accounting.risk import BEFORE, TIMES, counts_units, percent_up
from fogline.report._svg import HUES, element

__all__ = ["risk_headings", "risk_picture", "risk_pictures", "risk_rows"]

WIDTH, LEFT, TRACK, ROW = 430.0, 118.0, 178.0, 40.0
TOP, BAR = 62.0, 15.0
EMPTY, GREY, HUE = "#ccd5da", "#8a98a1", HUES[1]
ALONE = (
    "text{font-family:Segoe UI,Helvetica Neue,Arial,sans-serif;fill:#16232c;font-size:13px}.axis-name{font-size:14px;"
    "font-weight:600}.tick-label{fill:#4d5f6b}.row-value{font-weight:600}.ground{fill:#ffffff}.track{fill:#dfe5e8}"
    ".before{fill:#8a98a1}@media (prefers-color-scheme: dark){text{fill:#e6edf1}.tick-label{fill:#a9b8c1}"
    ".ground{fill:#151d23}.track{fill:#2c3942}.before{fill:#7f8f99}.after{fill:#e59a55}}"
)


def risk_headings(guarantee: Guarantee) -> tuple[str, ...]:
    """Return the headings of `risk_rows`; presence is not hidden where the number of records is public."""
    guess = ("right by chance before", "right after, at most")
    return guess if guarantee.neighbours == "replace" else (*guess, "found by a test with so many false alarms")


def risk_rows(guarantee: Guarantee) -> list[tuple[str, ...]]:
    """Return a table for people: chances before, a guess after, and the share of members that a test finds.

    Examples
    --------
    >>> from fogline.accounting import Guarantee
    >>> promise = Guarantee.certified_release(epsilon=1.0, delta=0.0, neighbours="add-remove",
    ...                                       mechanism="discrete Laplace noise", proof="laplace-noise")
    >>> risk_rows(promise)[1]
    ('10%', '27.2%', '27.2%')
    """
    found = [guarantee.risk(before) for before in BEFORE]
    return [
        (
            percent_up(each.before),
            percent_up(each.content),
            *([] if each.presence is None else [percent_up(each.presence)]),
        )
        for each in found
    ]


def risk_pictures(guarantee: Guarantee) -> list[str]:
    """Return the two parts of the picture for a page, whose style they take."""
    return [_drawing(title, rows) for title, rows in _parts(guarantee)]


def risk_picture(guarantee: Guarantee) -> str:
    """Return both parts in one drawing that stands alone, for light and for dark grounds."""
    parts, left, height = [], 0.0, 0.0
    for title, rows in _parts(guarantee):
        drawn, high = _bars(title, rows, left + 14.0)
        parts += drawn
        left, height = left + WIDTH + 14.0, max(height, high)
    ground = element("rect", x=0, y=0, width=left + 14.0, height=height + 8.0, class_="ground")
    return element(
        "svg",
        element("style", text=ALONE),
        ground,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {left + 14:g} {height + 8:g}",
        role="img",
        aria_label=_label(guarantee),
    )


def _label(guarantee: Guarantee) -> str:
    """Say for those who do not see it what the picture shows."""
    told = "; ".join(f"{before} before, at most {after} after" for before, after, *_ in risk_rows(guarantee))
    return f"A guess about a {guarantee.unit}: {told}"


Rows = Sequence[tuple[str, float, float]]


def _parts(guarantee: Guarantee) -> list[tuple[str, Rows]]:
    """Return title and rows of each part: a name, the chance before and the bound after."""
    guess = [(f"{percent_up(before)} before", before, guarantee.risk(before).content) for before in BEFORE]
    bound, rows = guarantee.max_contributions, []
    per_unit, thing = (1, "value") if counts_units(guarantee) else (bound, "record")
    for times in TIMES:
        number, after = times * per_unit, guarantee.risk(0.1, records=times * bound).content
        rows.append((f"{number} {thing}{'' if number == 1 else 's'}", 0.1, after))
    whose = f"by values of {guarantee.unit} per human being" if counts_units(guarantee) else "for people who have"
    return [(f"A guess about a {guarantee.unit}: right with", guess), (f"The same at 10%, {whose}", rows)]


def _drawing(title: str, rows: Rows) -> str:
    parts, height = _bars(title, rows, 0.0)
    label = f"{title} " + "; ".join(f"{name}, at most {percent_up(after)}" for name, _, after in rows)
    return element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_label=label,
        class_="figure",
    )


def _bars(title: str, rows: Rows, left: float) -> tuple[list[str], float]:
    """Draw one bar per row, from nothing to certainty: grey is the chance before, coloured what the release may add."""
    parts = [element("text", text=title, x=left, y=18, class_="axis-name")]
    start = left + LEFT
    for share, name, anchor in ((0.0, "0%", "start"), (1.0, "100%", "end")):
        parts.append(
            element("text", text=name, x=start + TRACK * share, y=TOP - 16, text_anchor=anchor, class_="tick-label")
        )
    for k, (name, before, after) in enumerate(rows):
        y = TOP + ROW * k
        parts.append(element("text", text=name, x=left, y=y + 2, class_="row-label"))
        parts.append(element("rect", x=start, y=y - 10, width=TRACK, height=BAR, fill=EMPTY, class_="track"))
        parts.append(
            element("rect", x=start, y=y - 10, width=TRACK * min(1.0, after), height=BAR, fill=HUE, class_="after")
        )
        parts.append(element("rect", x=start, y=y - 10, width=TRACK * before, height=BAR, fill=GREY, class_="before"))
        told = f"at most {percent_up(after)}"
        parts.append(element("text", text=told, x=start + TRACK + 12, y=y + 2, class_="row-value"))
    return parts, TOP + ROW * len(rows) - 10
