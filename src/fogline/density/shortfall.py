"""What is said where nothing, or too little, stands above the fog: how far off it is, and what would help.

Modes, branches and clusters each measure their shortfall in their own way; the words are here, once. Everything is
post-processing of released values and public parameters. Where hardly a record was counted nobody is advised to spend
more: there the count speaks (:mod:`fogline.density.counted_records`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fogline._typing import FloatArray

__all__ = ["NOTHING", "Shortfall", "separation_words", "two_digits", "widths_in_words"]

NOTHING = "nothing stands above the fog"

MOST_WIDTHS = 4
"""Bandwidths that are named one by one."""


@dataclass(frozen=True)
class Shortfall:
    """How far the clearest finding stays below the fogline.

    Parameters
    ----------
    clearest : str
        What comes nearest, such as ``"branch"`` or ``"peak, at bandwidth 0.3,"``.
    factor : float
        By how much its prominence would have to grow; at most 1 where it is lost for another reason than its height.
    privacy_share : float
        Part of the noise variance there that privacy adds; the rest is the draw of the records.

    Examples
    --------
    >>> Shortfall("branch", 2.0, 0.9).message()
    'nothing stands above the fog: the clearest branch has 50% of the prominence needed; 90% of the noise is privacy
    noise; about 2.0 times the epsilon (or the records) would show it if it is real'
    """

    clearest: str
    factor: float
    privacy_share: float

    @property
    def advice(self) -> str:
        """What would show the finding, if it is real."""
        # Privacy noise falls like one over epsilon and over the records, sampling noise like the root of the records.
        if self.privacy_share > 0.5:
            return f"about {self.factor:.1f} times the epsilon (or the records) would show it if it is real"
        return f"about {self.factor**2:.1f} times the records would show it if it is real, more epsilon alone would not"

    def message(self, *, seen: str | None = None, noise: str = "the noise", advice: str | None = None) -> str:
        """Say all of it in one sentence.

        Parameters
        ----------
        seen : str, optional
            What was seen of the clearest finding; by default which part of the prominence it has.
        noise : str
            Which noise is meant.
        advice : str, optional
            What would help; by default :attr:`advice`.
        """
        has = f"has {100 / self.factor:.0f}% of the prominence needed" if seen is None else seen
        return (
            f"{NOTHING}: the clearest {self.clearest} {has}; {self.privacy_share:.0%} of {noise} is privacy noise; "
            f"{self.advice if advice is None else advice}"
        )


def separation_words(wanted: int | None, found: int, apart: int, level: float) -> str:
    """Say how many of the clusters that were asked for are there; empty where all of them are.

    Parameters
    ----------
    wanted : int or None
        None: as many as stand out.
    found : int
        Clusters that are returned.
    apart : int
        Clusters that can be told apart at the level.
    level : float

    Examples
    --------
    >>> separation_words(3, 3, 2, 0.05), separation_words(3, 2, 2, 0.05), separation_words(None, 2, 2, 0.05)
    ('of 3 clusters, 2 can be told apart at level 0.05', 'only 2 of 3 clusters stand above the noise', '')
    """
    if wanted is None:
        return "" if found else "no cluster stands above the noise"
    if found < wanted:
        return f"only {found} of {wanted} clusters stand above the noise"
    if apart < wanted:
        return f"of {wanted} clusters, {apart or 'none'} can be told apart at level {level:g}"
    return ""


def two_digits(number: float) -> str:
    """Give a number with two digits, and without an exponent unless it is huge.

    Examples
    --------
    >>> two_digits(1234.5), two_digits(1.26), two_digits(3e9)
    ('1200', '1.3', '3e+09')
    """
    short = float(f"{number:.2g}")
    return f"{short:.0f}" if 10 <= short < 1e9 else f"{short:g}"


def widths_in_words(bandwidth: FloatArray | Sequence[float]) -> str:
    """Name a bandwidth, briefly where there are many columns.

    Examples
    --------
    >>> widths_in_words([0.5, 2.0]), widths_in_words([1.0, 2.0, 3.0, 4.0, 5.0])
    ('0.5, 2', '1, 2, 3, ..., 5')
    """
    shown = [f"{h:.3g}" for h in bandwidth]
    return ", ".join(shown if len(shown) <= MOST_WIDTHS else [*shown[:3], "...", shown[-1]])
