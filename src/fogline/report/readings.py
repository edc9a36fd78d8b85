"""What the methods of a density return, shown as the estimator of the same reading shows it.

A table of modes, say, is read again by :class:`~fogline.PrivateModes` from the same density, which has kept it: the
page, the summary and the frame of a reading are those of the estimator, and there is one place for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from fogline import estimators
from fogline._results import ReadingResults
from fogline.report.page import FindingsLike, find

__all__ = ["find_reading"]


def find_reading(reading: ReadingResults, columns: Sequence[str] | None = None) -> FindingsLike:
    """Read what a page shows from a reading of a density; costs no privacy.

    Parameters
    ----------
    reading : ReadingResults
        What a method of :class:`~fogline.PrivateDensity` returned.
    columns : sequence of str, optional
        Names for the axes.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> find_reading(density.modes()).kind
    'modes'
    """
    origin = reading.origin
    if origin is None:
        raise TypeError(f"this {type(reading).__name__} was not read from a density")
    estimator = getattr(estimators, origin.estimator)(**origin.parameters)
    return find(estimator.read(origin.density, **origin.arguments), columns)
