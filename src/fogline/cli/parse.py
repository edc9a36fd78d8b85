"""From the words of a command to parameters, and from refusals to messages that name the option."""

from __future__ import annotations

import csv
import re

import click

__all__ = [
    "bandwidth_option",
    "bounds_option",
    "columns_option",
    "masked",
    "numbers_option",
    "parameter_bounds_option",
    "power_option",
    "ranges_option",
    "refused",
    "steps_option",
]

_HINTS = {"path": "FILE", "source": "FILE", "X": "FILE", "bandwidths": "--bandwidth", "n_components": "--components"}
_HINTS |= {"dates": "--date"}
_OPTIONS = "columns bounds epsilon delta n_modes level steps neighbours max_contributions bandwidth runs cells seed"
_OPTIONS += " n epsilons shape dataset analyst high_water pairs n_clusters projection components x_bounds y_bounds"
_OPTIONS += " family parameter_bounds method confidence iterations rows rho hdp pdp"
_OPTIONS += " radius center sigma_min sigma_max weight_min save integral"
_OPTIONS += " coverage shares by categories others weights weight_bound site sites pass keys unit query"
_OPTIONS += " delimiter decimal thousands encoding null header features column y numeric"


def columns_option(text: str | None, option: str = "--columns") -> list[str] | None:
    """Return the names in a list with commas; a name with a comma in it stands in double quotes.

    Examples
    --------
    >>> columns_option('age,"income, net"')
    ['age', 'income, net']
    """
    if text is None:
        return None
    # Names of columns may hold commas, as in the header of the file itself.
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise click.BadParameter("expected names with commas between them, such as a,b", param_hint=option)
    return names


def bounds_option(text: str, option: str = "--bounds") -> list[tuple[float, float]]:
    """Return the pairs of ``lo:hi,lo:hi``; a name such as ``age`` stands for a public range.

    Examples
    --------
    >>> bounds_option("-10:10,0:1e3")
    [(-10.0, 10.0), (0.0, 1000.0)]
    >>> bounds_option("age,0:1e3")
    [(0.0, 125.0), (0.0, 1000.0)]
    """
    pairs = []
    for part in text.split(","):
        # Words such as inf and nan are numbers to Python, and no names of ranges.
        if re.fullmatch(r"\s*[A-Za-z_]+\s*", part) and _number(part) is None:
            pairs.append(_public_range(part.strip(), option))
            continue
        ends = [_number(word) for word in part.split(":")]
        if len(ends) != 2 or None in ends:
            raise click.BadParameter(
                f"expected low:high for each column, with commas between them, got {part.strip()!r}",
                param_hint=option,
            )
        low, high = (float(end) for end in ends if end is not None)
        pairs.append((low, high))
    return pairs


def ranges_option(text: str, option: str = "--bounds") -> list[tuple[float, float]]:
    """Return the pairs of ``lo:hi,lo:hi``, in which named public ranges keep their units and steps.

    Examples
    --------
    >>> ranges_option("age,0:60")[0].unit
    'years'
    """
    from fogline import units

    pairs = []
    for part in text.split(","):
        (pair,) = bounds_option(part, option)
        pairs.append(units.named(part.strip()) if part.strip() in units.names() else pair)
    return pairs


def _public_range(name: str, option: str) -> tuple[float, float]:
    from fogline import units

    try:
        low, high = units.named(name)
    except ValueError:
        raise click.BadParameter(
            f"expected low:high or the name of a public range, got {name!r}; fogline units lists the names",
            param_hint=option,
        ) from None
    return low, high


def parameter_bounds_option(text: str) -> dict[str, tuple[float, float]]:
    """Return the pairs of ``name=lo:hi,name=lo:hi``, by name.

    Examples
    --------
    >>> parameter_bounds_option("mu=-5:15,sigma=0.5:6")
    {'mu': (-5.0, 15.0), 'sigma': (0.5, 6.0)}
    """
    option = "--parameter-bounds"
    pairs: dict[str, tuple[float, float]] = {}
    for part in text.split(","):
        name, equals, ends = (word.strip() for word in part.partition("="))
        if not name or not equals:
            raise click.BadParameter(
                f"expected name=low:high for each parameter, with commas between them, got {part.strip()!r}",
                param_hint=option,
            )
        if name in pairs:
            raise click.BadParameter(f"{name} is there twice", param_hint=option)
        (pairs[name],) = bounds_option(ends, option)
    return pairs


def power_option(text: str | None) -> tuple[float, float] | None:
    """Return the order and the budget of ``lambda:eps``.

    Examples
    --------
    >>> power_option("1:0.4")
    (1.0, 0.4)
    """
    if text is None:
        return None
    numbers = [_number(word) for word in text.split(":")]
    known = [number for number in numbers if number is not None]
    if len(numbers) != 2 or len(known) != 2:
        raise click.BadParameter(f"expected lambda:epsilon, such as 1:0.4, got {text!r}", param_hint="--pdp")
    return known[0], known[1]


def steps_option(text: str | None) -> float | list[float | None] | None:
    """Return the steps of ``none,1``; one word serves all columns.

    Examples
    --------
    >>> steps_option("none,0.5"), steps_option("none")
    ([None, 0.5], None)
    """
    if text is None or text.strip().lower() == "none":
        return None
    steps: list[float | None] = []
    for word in text.split(","):
        number = _number(word)
        if number is None and word.strip().lower() != "none":
            raise click.BadParameter(
                f"expected none or a number for each column, got {word.strip()!r}", param_hint="--steps"
            )
        steps.append(number)
    return steps


def bandwidth_option(text: str) -> str | float | list[float]:
    """Return "auto", one number (a fraction of each range) or one number per column (in data units).

    Examples
    --------
    >>> bandwidth_option("auto"), bandwidth_option("0.1"), bandwidth_option("0.3,4")
    ('auto', 0.1, [0.3, 4.0])
    """
    if text.strip().lower() == "auto":
        return "auto"
    numbers = [_number(word) for word in text.split(",")]
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        raise click.BadParameter(f"expected auto or numbers, got {text!r}", param_hint="--bandwidth")
    return known[0] if len(known) == 1 else known


def numbers_option(text: str | None, option: str) -> list[float] | None:
    """Return the numbers of a list with commas.

    Examples
    --------
    >>> numbers_option("0.1, 2", "--epsilons")
    [0.1, 2.0]
    """
    if text is None:
        return None
    numbers = [_number(word) for word in text.split(",")]
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        raise click.BadParameter(f"expected numbers with commas between them, got {text!r}", param_hint=option)
    return known


def masked(text: str) -> str:
    """Cut a text where the address of a server begins: it may hold a password, of any signs.

    Examples
    --------
    >>> masked("postgres://ada:secret@host/visits"), masked("sqlite:///visits.db")
    ('postgres://…', 'sqlite:///visits.db')
    """
    # to the end of the text: a password may hold blanks, slashes and quotes
    return re.sub(r"(?is)\b(?!sqlite:///)([a-z][a-z0-9+.-]*://)(?=\S).*", r"\1…", text)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def refused(error: Exception) -> click.BadParameter:
    """Turn a refusal of the library, which begins with a parameter's name, into one that names the option.

    Examples
    --------
    >>> refused(ValueError("max_contributions must be at least 1, got 0")).param_hint
    '--max-contributions'
    >>> refused(ValueError("columns: there is no column 'Age'")).message
    "there is no column 'Age'"
    """
    message = str(error)
    # Refusals of the library begin with the parameter that they are about.
    word = re.match(r"\w*", message)
    name = word.group() if word else ""
    hint = _HINTS.get(name, f"--{name.replace('_', '-')}" if name in _OPTIONS.split() else None)
    return click.BadParameter(message if hint is None else message.removeprefix(f"{name}: "), param_hint=hint)
