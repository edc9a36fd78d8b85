"""How peaks are sought in a density, by the features that it was released with: the one place that tells the kinds.

A density on a grid of frequencies is read at every cell of its box; one of random features has no grid, and its peaks
are climbed from public starts. Who reads, plans or draws asks :func:`search_of` and need not know which it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from fogline.density.random_spec import RandomSpec, Spec

if TYPE_CHECKING:
    from fogline._typing import FloatArray
    from fogline.density.modes.scale_space import ScaleSpace
    from fogline.density.private_density import PrivateDensity

__all__ = ["ModeSearch", "SmallestShare", "search_of"]


class SmallestShare(NamedTuple):
    """What just stands above the fog, at the scale where that takes the smallest part of the records.

    Parameters
    ----------
    prominence : float
        The fogline there, in density units.
    bandwidth : array of shape (d,)
    share : float
        Part of the records that, gathered in one narrow place, reach it; at most 1.
    """

    prominence: float
    bandwidth: FloatArray
    share: float


class ModeSearch(Protocol):
    """What a kind of features has to say of the search for peaks."""

    @property
    def has_grid(self) -> bool:
        """Whether the density can be read on a grid over its box: basins, shares and maps need one."""

    def smallest_share(self, density: PrivateDensity, scale_space: ScaleSpace, level: float) -> SmallestShare:
        """Return the smallest part of the records that would be seen at this level, by the noise of a release."""


def search_of(spec: Spec) -> ModeSearch:
    """Return the search for densities of a public specification.

    Examples
    --------
    >>> from fogline.density.random_spec import plan_spec
    >>> [search_of(plan_spec([(0, 1)] * d, "auto", None)).has_grid for d in (3, 4)]
    [True, False]
    """
    # Either search is imported when a density needs it: the one without a grid loads more of scipy.
    if isinstance(spec, RandomSpec):
        from fogline.density.modes.without_grid import FeatureSearch

        return FeatureSearch()
    from fogline.density.modes.significance import GridSearch

    return GridSearch()
