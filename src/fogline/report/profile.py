"""The page of a profile: a small picture and a few numbers per column, and the same as a table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fogline._typing import BoolArray, FloatArray
from fogline.density.column_pairs import ColumnPair
from fogline.density.posterior.estimates import Estimate
from fogline.density.private_density import PrivateDensity
from fogline.density.profile import LEAST_HEAP, ColumnProfile, Profile
from fogline.report._svg import element, plus_minus, short, significant, tick_label, ticks
from fogline.report.frame import ConsoleTable, as_sentence, count_content, promise_content, render_page
from fogline.report.summaries import Summary

__all__ = [
    "ProfileFindings",
    "find_profile",
    "pair_picture",
    "pair_sentences",
    "profile_content",
    "profile_csv",
    "profile_document",
    "profile_frame",
    "profile_page",
    "profile_picture",
    "profile_plot",
    "profile_summary",
    "profile_table",
    "profile_title",
    "write_profile",
    "write_profile_xlsx",
]

WIDTH, HEIGHT = 320.0, 120.0
"""Size of a picture, in its own units."""

LEFT, RIGHT, TOP, BOTTOM = 8.0, 312.0, 10.0, 96.0

MOST_BARS = 7
"""Most categories in a picture."""

MOST_PICTURES, MOST_PAIR_ROWS = 12, 60
"""Most pairs of columns that are drawn, and that are listed, on a page; documents have all."""


# -- pictures -------------------------------------------------------------------------------------------------


def profile_picture(column: ColumnProfile) -> str:
    """Draw one column: its density with a band, its quartiles and atoms; or bars of its categories.

    Examples
    --------
    >>> from fogline.density.profile import example_profile
    >>> profile_picture(example_profile()["age"]).startswith("<svg")
    True
    """
    parts, height = _bars(column) if column.leaves is None else (_curve(column), HEIGHT)
    label = f"{'Categories' if column.leaves is None else 'Density'} of {column.name}"
    return element("svg", *parts, viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", role="img", aria_label=label, class_="spark")


def _curve(column: ColumnProfile) -> list[str]:
    (low, high), band = column.shown, column.curve
    atoms = [atom for atom in column.atoms if low <= atom.value <= high]
    shown = (band.x >= low) & (band.x <= high)
    # An atom is a bar of its own height: drawn as density it would hide all else.
    plain = shown & ~_near(band.x, [atom.value for atom in atoms])
    shown = plain if plain.sum() > 1 else shown if shown.sum() > 1 else np.ones(len(band.x), dtype=bool)
    x, value = band.x[shown], np.asarray(band.value)[shown]
    top = np.asarray(band.pointwise_high)[shown]
    ceiling = max(float(np.quantile(top, 0.99)), 1.05 * float(value.max()), 1e-300)

    def across(places: FloatArray) -> FloatArray:
        return np.asarray(LEFT + (RIGHT - LEFT) * (places - low) / (high - low))

    def up(heights: FloatArray) -> FloatArray:
        return np.asarray(BOTTOM - (BOTTOM - TOP) * np.minimum(heights / ceiling, 1.0))

    upper = list(zip(across(x), up(top), strict=True))
    lower = list(zip(across(x), up(np.asarray(band.pointwise_low)[shown]), strict=True))
    line = list(zip(across(x), up(value), strict=True))
    found = [
        element("path", d=_path([*upper, *reversed(lower)]) + "Z", class_="spark-band"),
        element("path", d=_path([*line, (line[-1][0], BOTTOM), (line[0][0], BOTTOM)]) + "Z", class_="spark-fill"),
        element("path", d=_path(line), class_="spark-line"),
        element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="spark-axis"),
    ]
    for place in across(np.clip(np.asarray(column.quartiles.value), low, high)):
        found.append(
            element("line", x1=float(place), x2=float(place), y1=BOTTOM - 5, y2=BOTTOM + 4, class_="spark-mark")
        )
    most = max([float(atom.share.value) for atom in atoms], default=1.0)
    for atom in atoms:
        place = float(across(np.array([atom.value]))[0])
        height = (BOTTOM - TOP) * (0.35 + 0.65 * float(atom.share.value) / most)
        found.append(element("line", x1=place, x2=place, y1=BOTTOM, y2=BOTTOM - height, class_="spark-atom"))
    return [*found, *_scale(column, low, high)]


def _near(x: FloatArray, values: Sequence[float]) -> BoolArray:
    """Whether each place is the one of the curve that holds one of these values."""
    near = np.zeros(len(x), dtype=bool)
    for value in values:
        near[int(np.argmin(np.abs(x - value)))] = True
    return near


def _scale(column: ColumnProfile, low: float, high: float) -> list[str]:
    """Ends of what is shown; round values between them where there are any."""
    values = [low, high] if column.kind == "date" else ticks(low, high, 4) or [low, high]
    found = []
    for k, value in enumerate(values):
        place = LEFT + (RIGHT - LEFT) * (value - low) / (high - low)
        side = "spark-label middle" if LEFT + 20 < place < RIGHT - 20 else "spark-label" + (" end" if k else "")
        label = column.text(value) if column.kind == "date" else tick_label(value)
        place = min(max(place, LEFT), RIGHT)
        found.append(element("text", text=label, x=float(place), y=HEIGHT - 6, class_=side))
    return found


def _bars(column: ColumnProfile) -> tuple[list[str], float]:
    """Bars of the largest categories, and the height of the picture."""
    rest = column.rest
    assert rest is not None
    shares = [*column.categories[:MOST_BARS]]
    remaining = sum(float(share.value) for _, share in column.categories[MOST_BARS:]) + float(rest.value)
    rows = [(short(label, 16), float(share.value)) for label, share in shares] + [("rest", remaining)]
    most = max([value for _, value in rows] + [1e-9])
    height = 16.0
    found = []
    for k, (label, value) in enumerate(rows):
        y = 4 + k * height
        name = "spark-rest" if k == len(rows) - 1 else "spark-bar"
        found.append(element("text", text=label, x=LEFT, y=y + height / 2 + 4, class_="spark-label"))
        found.append(
            element("rect", x=128.0, y=y + 1.5, width=max(140 * value / most, 0.5), height=height - 3, class_=name)
        )
        place = 132 + 140 * value / most
        found.append(element("text", text=f"{100 * value:.3g}%", x=place, y=y + height / 2 + 4, class_="spark-label"))
    return found, 8 + len(rows) * height


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def pair_picture(pair: ColumnPair) -> str:
    """Draw the table of a pair: how much more or less often two groups meet than in independent columns.

    Examples
    --------
    >>> from fogline.density.profile import example_profile
    >>> pair_picture(example_profile(pairs=True).pairs[0]).startswith("<svg")
    True
    """
    lift, (rows, columns) = pair.lift, pair.groups
    left, top, width, height = 92.0, 20.0, (RIGHT - 92.0) / len(columns), 26.0
    found = []
    for j, label in enumerate(columns):
        middle = left + (j + 0.5) * width
        found.append(element("text", text=short(_tight(label), 12), x=middle, y=top - 6, class_="pair-label middle"))
    for i, label in enumerate(rows):
        y = top + i * height
        found.append(element("text", text=short(_tight(label), 14), x=LEFT, y=y + height / 2 + 4, class_="spark-label"))
        for j in range(len(columns)):
            ratio = float(lift[i, j])
            strength = min(abs(math.log2(max(ratio, 0.125))) / 2, 1.0)
            kind = "pair-more" if ratio >= 1 else "pair-less"
            place: dict[str, Any] = {"x": left + j * width + 1, "y": y + 1, "width": width - 2, "height": height - 2}
            found.append(element("rect", **place, fill_opacity=f"{0.06 + 0.7 * strength:.2f}", class_=kind))
            where: dict[str, Any] = {"x": left + (j + 0.5) * width, "y": y + height / 2 + 4}
            found.append(element("text", text=f"× {ratio:.2g}", **where, class_="pair-text"))
    size = f"0 0 {WIDTH:.0f} {top + len(rows) * height + 4:.0f}"
    label = f"{pair.columns[0]} by {pair.columns[1]}"
    return element("svg", *found, viewBox=size, role="img", aria_label=label, class_="spark")


def _tight(label: str) -> str:
    """A group's name in few signs.

    Examples
    --------
    >>> _tight("below 3"), _tight("3 to 9.5"), _tight("9.5 up"), _tight("north")
    ('< 3', '3–9.5', '≥ 9.5', 'north')
    """
    if label.endswith(" up"):
        return f"≥ {label.removesuffix(' up')}"
    return label.replace("below ", "< ", 1) if label.startswith("below ") else label.replace(" to ", "–", 1)


def _pair_row(pair: ColumnPair) -> dict[str, Any]:
    """One pair as texts."""
    rank = pair.rank_correlation
    if not pair.is_told:
        return {"names": pair.columns, "association": "not told", "rank": "", "p": "", "said": "too few records"}
    least = "below 0.0001" if pair.adjusted_p_value < 1e-4 else f"{pair.adjusted_p_value:.2g}"
    return {
        "names": pair.columns,
        "association": _interval(pair.association),
        "rank": "" if rank is None else _interval(rank),
        "p": least,
        "said": "depend" if pair.depends else "no dependence seen",
    }


def _interval(found: Estimate) -> str:
    return f"{float(found.value):.2f} ({float(found.low):.2f} to {float(found.high):.2f})"


# -- the page -------------------------------------------------------------------------------------------------


class ReleasedProfile:
    """A profile as pages ask for it: by the names that a fitted estimator has."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.n_features_in_ = len(profile)
        self.guarantee_, self.message_ = profile.guarantee, profile.message
        self.density_: PrivateDensity | None = None


@dataclass(frozen=True)
class ProfileFindings:
    """What a page shows of a profile.

    Attributes
    ----------
    estimator : ReleasedProfile
    columns : tuple of str
    """

    kind: ClassVar[str] = "profile"
    estimator: ReleasedProfile
    columns: tuple[str, ...]

    @property
    def profile(self) -> Profile:
        """The release."""
        return self.estimator.profile


def find_profile(profile: Profile, columns: Sequence[str] | None = None) -> ProfileFindings:
    """Return what a page shows of a profile; its columns have names, and take no others."""
    if columns is not None and tuple(columns) != tuple(profile):
        raise ValueError("columns: those of a profile have their names already")
    return ProfileFindings(ReleasedProfile(profile), tuple(profile))


def profile_title(findings: ProfileFindings) -> str:
    """Return the title of the page."""
    return f"Profile of {len(findings.columns)} column{'' if len(findings.columns) == 1 else 's'}"


def profile_document(findings: ProfileFindings, command: str | None = None) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {**findings.profile.to_dict(), "command": command}


def profile_table(findings: ProfileFindings) -> ConsoleTable:
    """Return a line per column, and what is said below."""
    headings, rows = findings.profile.summary_rows()
    return ConsoleTable(
        title=profile_title(findings),
        headings=tuple(headings),
        rows=tuple(tuple(row) for row in rows),
        left=(0, 1, 3, 7),
        sentences=tuple(_sentences(findings.profile)),
    )


def profile_summary(findings: ProfileFindings) -> Summary:
    """Return the table of a profile as text."""
    profile = findings.profile
    headings, rows = profile.summary_rows()
    return Summary(
        profile_title(findings),
        (("Records", " ± ".join(plus_minus(profile.count, [profile.count_sd]))),),
        tuple(headings),
        tuple(tuple(row) for row in rows),
        tuple(_sentences(profile)[1:]),
        left=2,
    )


def _sentences(profile: Profile) -> list[str]:
    count = f"Records, as released: {profile.count:.0f} ± {profile.count_sd:.0f}."
    return [count, *pair_sentences(profile), *filter(None, [as_sentence(profile.message)]), str(profile.guarantee)]


def pair_sentences(profile: Profile, most: int = 6) -> list[str]:
    """Return what is said about pairs of columns: a sentence per pair that depends, and one about the others.

    Examples
    --------
    >>> from fogline.density.profile import example_profile
    >>> pair_sentences(example_profile(pairs=True))[0].startswith("age and sex depend on each other: association 0.")
    True
    """
    said = []
    depend = [pair for pair in profile.pairs if pair.depends]
    for pair in depend[:most]:
        row = _pair_row(pair)
        rank = f", rank correlation {row['rank']}" if row["rank"] else ""
        names = " and ".join(pair.columns)
        said.append(f"{names} depend on each other: association {row['association']}{rank}, p-value {row['p']}.")
    if len(depend) > most:
        said.append(f"{len(depend) - most} further pairs depend on each other.")
    rest = [pair for pair in profile.pairs if not pair.depends]
    told = sum(pair.is_told for pair in rest)
    if told:
        said.append(f"Of {told} pair{'' if told == 1 else 's'} no dependence is seen.")
    if len(rest) > told:
        said.append(f"{len(rest) - told} pairs have too few records for their noise.")
    return said


def profile_frame(findings: ProfileFindings) -> dict[str, list[Any]]:
    """Return the columns of a frame: lists by name, an entry per column of the table."""
    rows = findings.profile.rows()
    return {name: [row[name] for row in rows] for name in rows[0]}


def profile_plot(findings: ProfileFindings, ax: Any = None) -> Any:
    """Draw a small picture per column with matplotlib.

    Parameters
    ----------
    findings : ProfileFindings
    ax : sequence of matplotlib axes, optional
        One per column.
    """
    import matplotlib.pyplot as plt

    columns = list(findings.profile.values())
    if ax is None:
        across = min(3, len(columns))
        down = -(-len(columns) // across)
        _, grid = plt.subplots(down, across, figsize=(4 * across, 2.4 * down), squeeze=False, layout="constrained")
        places = list(grid.ravel())
        for spare in places[len(columns) :]:
            spare.set_axis_off()
        ax = places[: len(columns)]
    if len(ax) != len(columns):
        raise ValueError(f"ax must hold one of matplotlib's axes per column ({len(columns)}), got {len(ax)}")
    for place, column in zip(ax, columns, strict=True):
        place.set_title(column.name)
        if column.leaves is None:
            labels, shares = [label for label, _ in column.categories], [float(s.value) for _, s in column.categories]
            place.barh(labels[:MOST_BARS][::-1], shares[:MOST_BARS][::-1])
            continue
        band = column.curve
        place.fill_between(band.x, band.pointwise_low, band.pointwise_high, alpha=0.3)
        place.plot(band.x, band.value)
        place.set_xlim(column.shown)
    return np.asarray(ax)


def profile_content(findings: ProfileFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    profile = findings.profile
    estimator: Any = findings.estimator
    drawn = [pair for pair in profile.pairs if pair.depends][:MOST_PICTURES]
    return {
        "figures": [profile_picture(column) for column in profile.values()] + [pair_picture(pair) for pair in drawn],
        "cards": [_card(column) for column in profile.values()],
        "numbers": sum(column.leaves is not None for column in profile.values()),
        "texts": sum(column.leaves is None for column in profile.values()),
        "pairs": [_pair_row(pair) for pair in drawn],
        "pair_rows": [_pair_row(pair) for pair in profile.pairs[:MOST_PAIR_ROWS]],
        "pairs_asked": len(profile.pairs),
        "pairs_depend": sum(pair.depends for pair in profile.pairs),
        "pairs_untold": sum(not pair.is_told for pair in profile.pairs),
        "call": "fogline.profile(source, ...)",
        "more_style": "profile.css",
        **promise_content(estimator, profile.receipt),
        **count_content(profile.count, profile.count_sd),
    }


def profile_page(profile: Profile, *, title: str | None = None, command: str | None = None) -> str:
    """Return the page of a profile, which needs nothing else.

    Examples
    --------
    >>> from fogline.density.profile import example_profile
    >>> page = profile_page(example_profile())
    >>> page.startswith("<!doctype html>"), "age" in page
    (True, True)
    """
    findings = find_profile(profile)
    estimator: Any = findings.estimator
    words = title or profile_title(findings)
    return render_page("profile.html.j2", estimator, profile_content(findings), title=words, command=command)


def _card(column: ColumnProfile) -> dict[str, Any]:
    """What the page says of one column, as texts."""
    facts: list[tuple[str, str]] = [("missing", _share(column.missing))]
    if column.leaves is None:
        found = "found" if getattr(column.plan, "is_found", False) else "declared"
        facts.append(("categories", f"{len(column.categories)}, {found}"))
        assert column.rest is not None
        facts.append(("rest", _share(column.rest)))
        return {"name": column.name, "kind": column.kind, "facts": facts, "quartiles": [], "notes": []}
    assert column.bounds is not None
    assert column.below is not None
    assert column.above is not None
    zeros = column.zeros
    if zeros is not None:
        facts.append(("zeros", _share(zeros)))
    facts += [("below range", _share(column.below)), ("above range", _share(column.above))]
    facts.append(("range", " to ".join(map(column.text, column.bounds))))
    heaps = [a for a in column.atoms if not a.low <= 0 <= a.high and float(a.share.value) >= LEAST_HEAP]
    notes = [f"heap at {column.place_words(a)}: {_share(a.share)}" for a in heaps[:4]]
    modes = column.modes
    if modes is not None and len(modes.positions):
        places = ", ".join(column.text(float(x)) for x in np.asarray(modes.positions).ravel()[:5])
        notes.append(f"mode{'' if len(modes.positions) == 1 else 's'} at {places}")
    quartiles = [_value(column, column.quartiles[k]) for k in range(3)]
    return {"name": column.name, "kind": column.kind, "facts": facts, "quartiles": quartiles, "notes": notes}


def _share(share: Estimate) -> str:
    value, error = 100 * float(share.value), 100 * float(share.standard_error)
    places = 1 if error >= 0.1 else 2
    return f"{value:.{places}f} ± {max(error, 10.0**-places):.{places}f}%"


def _value(column: ColumnProfile, found: Estimate) -> tuple[str, str]:
    """A quantile and its error as people write them."""
    if column.kind == "date":
        days = float(found.standard_error)
        return column.text(float(found.value)), f"± {significant(days, 2)} days"
    assert column.bounds is not None
    if column.kind == "integer":
        return column.text(float(found.value)), f"± {significant(float(found.standard_error), 2)}"
    # An error far below what the range tells apart asks for no further digits.
    least = 1e-5 * (column.bounds[1] - column.bounds[0])
    value, error = plus_minus(float(found.value), [max(float(found.standard_error), least)])
    return value, f"± {error}"


# -- files ----------------------------------------------------------------------------------------------------


def profile_csv(profile: Profile) -> str:
    """Return the table of a profile as CSV, a line per column.

    Examples
    --------
    >>> from fogline.density.profile import example_profile
    >>> profile_csv(example_profile()).splitlines()[1].split(",")[:2]
    ['age', 'integer']
    """
    rows = profile.rows()
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        # NaN, where a column has no such number, is an empty cell.
        writer.writerow({name: "" if value is None or value != value else value for name, value in row.items()})
    return file.getvalue()


def write_profile_xlsx(profile: Profile, path: str | Path) -> None:
    """Write the table of a profile as a workbook; needs openpyxl."""
    try:
        from openpyxl import Workbook  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError("writing .xlsx needs openpyxl: pip install openpyxl; .csv needs nothing") from None
    book = Workbook()
    sheet = book.active
    rows = profile.rows()
    sheet.title = "profile"
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append([None if value is None or value != value else value for value in row.values()])
    shares = book.create_sheet("categories")
    shares.append(["column", "category", "share", "standard error"])
    for column in profile.values():
        for label, share in column.categories:
            shares.append([column.name, label, float(share.value), float(share.standard_error)])
    if profile.pairs:
        pairs = book.create_sheet("pairs")
        pairs.append(["first", "second", "association", "standard error", "rank correlation", "p-value", "adjusted"])
        for pair in profile.pairs:
            rank = pair.rank_correlation
            both = float(pair.association.value), float(pair.association.standard_error)
            shown = None if rank is None else float(rank.value)
            pairs.append([*pair.columns, *both, shown, pair.p_value, pair.adjusted_p_value])
    about = book.create_sheet("guarantee")
    about.append([str(profile.guarantee)])
    about.append([as_sentence(profile.message)])
    book.save(path)


def write_profile(profile: Profile, path: str | Path, *, title: str | None = None, command: str | None = None) -> Path:
    """Write a profile as what the name of the file says: .html, .json, .csv or .xlsx.

    Examples
    --------
    >>> import tempfile
    >>> from fogline.density.profile import example_profile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_profile(example_profile(), f"{folder}/profile.csv")
    ...     written.read_text(encoding="utf-8").startswith("column,kind,missing")
    True
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending == ".xlsx":
        write_profile_xlsx(profile, target)
        return target
    if ending == ".json":
        text = profile.to_json()
    elif ending == ".csv":
        text = profile_csv(profile)
    elif ending in (".html", ".htm"):
        text = profile_page(profile, title=title, command=command)
    else:
        raise ValueError(f"path must end in .html, .json, .csv or .xlsx, got {target.name!r}")
    target.write_text(text, encoding="utf-8")
    return target
