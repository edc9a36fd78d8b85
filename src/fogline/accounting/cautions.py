"""What to say of a budget that is too large to protect anyone: words and warnings, never errors.

A proof holds at any epsilon and delta. Above some size what it proves is worth little, and that must be said wherever
the guarantee is shown. Everything here depends on public parameters, and on the released count where there is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from fogline._validation import user_stacklevel

__all__ = [
    "LARGE_DELTA",
    "LARGE_EPSILON",
    "PrivacyWarning",
    "budget_cautions",
    "delta_caution",
    "release_cautions",
    "warn_of",
]

LARGE_EPSILON = 10.0
"""Above it the odds of a guess about one person may grow by a factor of more than exp(10), which is above 22,000."""

LARGE_DELTA = 1e-3
"""Above it delta is too large for any data set that is worth protecting by noise."""


class PrivacyWarning(UserWarning):
    """A budget that keeps its promise but promises little: epsilon above 10, or delta too large for the data.

    It is issued once per fit. For epsilon, and for delta above 0.001, it comes before anything is spent; for delta
    above one over the released count it comes after the release, since the count is known only then.

    Examples
    --------
    >>> import warnings
    >>> from fogline import PrivateModes
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = PrivateModes(epsilon=100.0, delta=1e-6, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> [warning.category.__name__ for warning in caught]
    ['PrivacyWarning']
    """


def budget_cautions(epsilon: float, delta: float) -> tuple[str, ...]:
    """Say what is wrong with a budget, from its two numbers alone; empty if nothing is.

    Parameters
    ----------
    epsilon, delta : float
        Of a whole release.

    Examples
    --------
    >>> budget_cautions(1.0, 1e-6)
    ()
    >>> for words in budget_cautions(100.0, 0.01):
    ...     print(words)
    epsilon = 100 is above 10: the guarantee holds, but it allows the odds of a guess about one person to change by a
    factor of more than 22,000, which protects hardly anyone
    delta = 0.01 is above 0.001: with that probability the guarantee may fail altogether; choose a delta well below one
    over the number of records
    """
    said = []
    if epsilon > LARGE_EPSILON:
        said.append(
            f"epsilon = {epsilon:.4g} is above {LARGE_EPSILON:g}: the guarantee holds, but it allows the odds of a "
            "guess about one person to change by a factor of more than 22,000, which protects hardly anyone"
        )
    if delta > LARGE_DELTA:
        said.append(
            f"delta = {delta:.4g} is above {LARGE_DELTA:g}: with that probability the guarantee may fail altogether; "
            "choose a delta well below one over the number of records"
        )
    return tuple(said)


def delta_caution(delta: float, count: float) -> str:
    """Say that delta is above one over a released count; empty if it is not.

    Publishing every record outright with probability delta is (0, delta)-DP, and would publish ``delta * count`` of
    them.

    Parameters
    ----------
    delta : float
    count : float
        Released number of records, or a public one.

    Examples
    --------
    >>> delta_caution(1e-6, 20013.0)
    ''
    >>> delta_caution(1e-4, 20013.0)
    'delta = 0.0001 is above 1/20013, one over the released count: publishing 2 records drawn at random would keep such
    a promise; choose a delta well below that'
    """
    # in expectation less than one record would be published outright
    if delta * count <= 1.0:
        return ""
    exposed = round(delta * count)
    return (
        f"delta = {delta:.4g} is above 1/{count:.0f}, one over the released count: publishing "
        f"{'one record' if exposed == 1 else f'{exposed} records'} drawn at random would keep such a promise; "
        "choose a delta well below that"
    )


def release_cautions(epsilon: float, delta: float, count: float | None = None) -> tuple[str, ...]:
    """Everything to say of a budget once a count is released: of delta one sentence, the one about the count first.

    Parameters
    ----------
    epsilon, delta : float
    count : float, optional

    Examples
    --------
    >>> [words.partition(" is")[0] for words in release_cautions(12.0, 0.01, 500.0)]
    ['epsilon = 12', 'delta = 0.01']
    """
    about_count = "" if count is None else delta_caution(delta, count)
    if not about_count:
        return budget_cautions(epsilon, delta)
    # 0.0: the count says of delta what the general sentence would say again
    return (*budget_cautions(epsilon, 0.0), about_count)


def warn_of(cautions: Iterable[str]) -> None:
    """Issue a :class:`PrivacyWarning` for each caution, at the line outside fogline that asked for the release.

    Parameters
    ----------
    cautions : iterable of str
    """
    # counted once: every warning points at the same line of the caller
    level = user_stacklevel()
    for words in cautions:
        warnings.warn(words, PrivacyWarning, stacklevel=level)
