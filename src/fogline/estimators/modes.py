r"""Modes of a density under differential privacy.

``fit`` counts the records on a public grid and releases the counts once: without a delta as counts of buckets with
discrete Laplace noise, with one as Fourier sums with discrete Gaussian noise, beyond three columns as sums of random
features. Everything else is read from that release: which peaks stand above the fog, where they are, how sure one can
be. The proofs are those of :mod:`fogline.releases.leaf_release`, :mod:`fogline.releases.density_sketch` and
:mod:`fogline.queries.random_feature_sums`; the rest is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator

from fogline.accounting.costs import Cost, GaussianCost, PureCost
from fogline.estimators.mode_fit import ModeFit

if TYPE_CHECKING:
    from fogline.planning.modes import ExpectedError
    from fogline.planning.scenarios import ShapeLike

__all__ = ["PrivateModes"]


class PrivateModes(ModeFit, BaseEstimator):  # type: ignore[misc]
    """Find the modes of the records' density, privately.

    Parameters
    ----------
    epsilon : float
        Privacy budget of one ``fit``.
    delta : float, optional
        Without it, or with 0, the promise is pure epsilon; up to three columns.
    bounds : array-like of shape (d, 2), list or mapping
        Public range of each column, for any number of columns that the noise allows (see Notes): a pair or the name of
        a public range (:mod:`fogline.units`), in the order of the columns or by their names, as in
        ``{"age": "age", "stay": (0, 60)}``; one pair serves all. Records outside contribute nothing. Never take them
        from the data.
    n_modes : int, optional
        How many modes to return; by default those that stand above the fogline.
    level : float, default 0.05
        Chance of reporting a mode where there is only noise, for ``n_modes=None``.
    bandwidth : "auto", float or array-like of shape (d,)
        Kernel bandwidth: chosen for each mode after the release, or fixed. A number is a fraction of each
        column's range, an array is in data units.
    steps : None, float or list
        Public rounding step of each column (1 for whole numbers), so that heaps of equal values are not taken
        for modes.
    features : {"auto", "leaves", "grid", "random"}
        What is released (see Notes): counts on leaves, Fourier sums on a grid, or random features. By default leaves
        where there is no delta and no fixed bandwidth, up to three columns; else a grid up to three columns and random
        features beyond.
    neighbours : {"add-remove", "replace"}
        Hide whether a person is in the data at all, or only what their record says.
    max_contributions : int, default 1
        Most records a person has, as declared by you.
    expect_records : int, optional
        About how many records you expect: ``message_`` says when the released count is far from it. Words only.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept: reserved before the records are touched, never refunded, and a question that was
        asked before is answered from it for free.

    Attributes
    ----------
    modes_ : array of shape (k, d)
        The modes, highest first; k = 0 when nothing stands above the fog.
    heights_ : array of shape (k,)
        Density at the modes, each at its own bandwidth; with more than three columns all at the smallest of them.
    covariances_, privacy_covariances_, sampling_covariances_ : arrays of shape (k, d, d)
        Error of each position: in all, from the privacy noise, from the draw of the records. What smoothing may have
        moved is in the last, on leaves as far as the positions at many bandwidths tell.
    standard_errors_ : array of shape (k, d)
        Of the positions along each column: privacy noise, the sampling of the records and smoothing, as in
        ``covariances_``.
    p_values_ : array of shape (k,)
        Chance that noise alone raises a peak as prominent, anywhere.
    bandwidth_ : array of shape (k, d)
        Bandwidth at which each mode was located.
    boundary_modes_ : tuple of BoundaryMode
        Walls of the box at which the density is highest, with height, share and p-value; leaves only. They are no
        modes: nobody knows what would come behind the wall.
    point_masses_ : tuple of PointMass
        Values that hold a share of the records by themselves, such as zeros, with share and error; leaves only.
    density_ : PrivateDensity
        The release, open to further questions at no cost.
    guarantee_ : Guarantee
        What is promised, and to whom.
    message_ : str
        What would help, when nothing or too little was found, and what to check, when the released count or the budget
        gives cause; else empty.

    Notes
    -----
    On leaves, errors of positions hold privacy, sampling and smoothing: use them for skewed columns, columns that end
    at a wall, and columns with many equal values. Fourier sums find symmetric peaks in two and three columns more
    sharply, and their errors hold a part of the smoothing only.

    Up to three columns the density is read on a grid. Beyond, peaks are sought from public starting points, from the
    largest bandwidth of the release to the smallest, and the ripples that random features leave are taken away
    (:mod:`fogline.density.modes.without_grid`). Smoothing by a bandwidth as wide as a cluster lowers its peak by
    :math:`2^{-d/2}`, while the noise stays as it is: each column more asks for about 1.4 times the records, or the
    epsilon. Where nothing can be seen, ``message_`` says how many would do; ``expected_error`` says it before a fit.

    See Also
    --------
    fogline.DensitySketch : the release alone, for merging and for data that come in parts.
    fogline.check_pipeline : which steps before it, in a pipeline, see the records without privacy.
    fogline_research.as_published.dp_grams : the algorithm of the DP-GRAMS paper, to compare with; not certified.

    References
    ----------
    .. [1] R. Hall, A. Rinaldo, L. Wasserman, "Differential privacy for functions and functional data", JMLR 14,
       2013.
    .. [2] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> from fogline.datasets.simulated import gaussian_mixture4
    >>> X = gaussian_mixture4(5000, random_state=0).X
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(-10, 10), (-10, 10)]).fit(X)
    >>> found.modes_.shape
    (4, 2)
    >>> bool((found.standard_errors_ < 0.2).all())
    True
    """

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What one ``fit`` costs, from the parameters alone.

        Examples
        --------
        >>> from fogline import PrivateModes
        >>> PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).cost().rho < 0.036
        True
        """
        return self._terms().cost()

    def expected_error(
        self, n: int, *, shape: ShapeLike = "uniform", epsilons: Sequence[float] | None = None
    ) -> ExpectedError:
        """What a fit on n records could tell, before any are touched; free.

        Parameters
        ----------
        n : int
            A guess of the number of records.
        shape : "uniform", Mixture or array
            A public guess of the density: flat, a mixture, or a public sample that looks like the records.
        epsilons : sequence of float, optional
            Budgets to compare; by default a few from 0.1 to 5, and the estimator's own.

        Returns
        -------
        ExpectedError
            Expected standard errors, and the chance that each mode stands above the fog, by epsilon.
        """
        from fogline.planning.leaf_modes import expected_modes

        return expected_modes(self, n, shape=shape, epsilons=epsilons)
