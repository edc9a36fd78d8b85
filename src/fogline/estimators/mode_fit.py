"""The modes of a release, without scikit-learn: what :class:`~fogline.PrivateModes` does, for the command line too.

To import scikit-learn takes longer than to find the modes of a small table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from fogline import _validation, units
from fogline._typing import BandwidthLike, BoundsLike, LedgerLike, SourceLike, StepsLike
from fogline.density.counted_records import check_expected
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import Spec, plan_spec
from fogline.density.spec import as_bandwidth
from fogline.estimators._base import ReleasedState, schema_names, warn_of_count
from fogline.releases.density_sketch import ReleaseTerms
from fogline.releases.passes import release_source
from fogline.sources.passes import as_source, unit_of, width_of

__all__ = ["ModeFit"]

MOST_COLUMNS_OF_LEAVES = 3
"""Columns that leaves can serve."""


class ModeFit(ReleasedState):
    """Parameters and released values of :class:`~fogline.PrivateModes`, which describes them all.

    Examples
    --------
    >>> from fogline.datasets.simulated import gaussian_mixture4
    >>> from fogline.estimators.mode_fit import ModeFit
    >>> X = gaussian_mixture4(5000, random_state=0).X
    >>> ModeFit(epsilon=1.0, delta=1e-5, bounds=[(-10, 10), (-10, 10)]).fit(X).modes_.shape
    (4, 2)
    """

    _released_attributes = (
        "modes_",
        "heights_",
        "covariances_",
        "privacy_covariances_",
        "sampling_covariances_",
        "standard_errors_",
        "p_values_",
        "bandwidth_",
        "boundary_modes_",
        "point_masses_",
        "density_",
        "guarantee_",
        "message_",
    )

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        bounds: BoundsLike = None,
        n_modes: int | None = None,
        level: float = 0.05,
        bandwidth: BandwidthLike = "auto",
        steps: StepsLike = None,
        features: str = "auto",
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        expect_records: int | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_modes = n_modes
        self.level = level
        self.bandwidth = bandwidth
        self.steps = steps
        self.features = features
        self.neighbours = neighbours
        self.max_contributions = max_contributions
        self.expect_records = expect_records
        self.ledger = ledger

    @np.errstate(all="ignore")  # what is read of an answer must not fail by a setting of the calling program
    def fit(self, X: SourceLike, y: object = None) -> Self:  # noqa: ARG002
        """Release the density of the records once and read its modes.

        Parameters
        ----------
        X : array, frame, path or engine table
            One row per record, one column per axis.
        y : ignored

        Returns
        -------
        PrivateModes
            The estimator itself.
        """
        source = as_source(X)
        terms = self._terms(unit_of(source), width_of(source))
        _validation.check_ledger(self.ledger)
        check_expected(self.expect_records)
        _validation.check_level(self.level)
        if self.n_modes is not None:
            _validation.check_count(self.n_modes, "n_modes")
        spec = self._spec(width_of(source), schema_names(source))
        self._remember_features(source, spec.d, self.bounds)
        try:
            density = release_source(source, spec, terms, self.ledger)
        finally:
            del X, source  # an error's traceback must not lead to the records
        warn_of_count(density.guarantee, density.count)
        return self.read(self._named(density))

    def read(self, density: PrivateDensity) -> Self:
        """Read the modes of a density that was released before, such as that of several sites; free.

        Parameters
        ----------
        density : PrivateDensity

        Returns
        -------
        PrivateModes
            The estimator itself, fitted; of its parameters ``n_modes``, ``level``, ``bandwidth`` and ``expect_records``
            count.

        Examples
        --------
        >>> from fogline import DensitySketch, PrivateModes
        >>> from fogline.datasets.simulated import gaussian_mixture4
        >>> sketch = DensitySketch([(-10, 10), (-10, 10)]).update(gaussian_mixture4(5000, random_state=0).X)
        >>> PrivateModes(n_modes=4).read(sketch.release(epsilon=1.0, delta=1e-5)).modes_.shape
        (4, 2)
        """
        if not isinstance(density, PrivateDensity):
            raise TypeError(f"density must be a PrivateDensity, got {type(density).__name__}")
        level = _validation.check_level(self.level)
        n_modes = None if self.n_modes is None else _validation.check_count(self.n_modes, "n_modes")
        found = density.modes(n_modes, level=level, bandwidth=self.bandwidth)
        self._remember_density(density)
        self.density_ = density
        self.guarantee_ = density.guarantee
        self.modes_ = found.positions
        self.heights_ = found.heights
        self.covariances_ = found.covariances
        self.privacy_covariances_ = found.privacy_covariances
        self.sampling_covariances_ = found.sampling_covariances
        self.standard_errors_ = found.standard_errors
        self.p_values_ = found.p_values
        self.bandwidth_ = found.bandwidths
        self.boundary_modes_ = found.boundary_modes
        self.point_masses_ = found.point_masses
        self.message_ = self._message(found.message, density.guarantee, density.count, density.count_sd)
        return self

    def _terms(self, unit: str = "record", width: int | None = None) -> ReleaseTerms:
        pure = not self.delta and self._on_leaves(len(units.resolve_bounds(self.bounds, width=width)))
        budget = (self.epsilon, self.delta, self.neighbours, self.max_contributions)
        return ReleaseTerms.checked(*budget, unit, allow_pure=pure, ledger=self.ledger)

    def _on_leaves(self, d: int) -> bool:
        """Whether the release counts records on leaves: asked for, or the only one that needs no delta."""
        if self.features not in ("auto", "grid", "random", "leaves"):
            raise ValueError(f"features must be 'auto', 'grid', 'random' or 'leaves', got {self.features!r}")
        if self.features == "auto":
            return not self.delta and isinstance(self.bandwidth, str) and d <= MOST_COLUMNS_OF_LEAVES
        return self.features == "leaves"

    def _spec(self, width: int | None, columns: Sequence[str] | None = None) -> Spec:
        """Plan the sketch of a table with this many columns; raises before anything is spent."""
        bounds = units.resolve_bounds(self.bounds, columns, width=width)
        fixed = None if isinstance(self.bandwidth, str) else as_bandwidth(self.bandwidth, bounds[:, 1] - bounds[:, 0])
        if self._on_leaves(len(bounds)):
            if fixed is None and self.bandwidth != "auto":
                raise ValueError(f"bandwidth must be 'auto', a number or one value per axis, got {self.bandwidth!r}")
            leaves = plan_spec(bounds, "auto", self.steps, features="leaves")
            if fixed is not None:
                leaves.require_readable(fixed)
            return leaves
        # A bandwidth that was asked for has the whole weight of the release.
        spec = plan_spec(bounds, self.bandwidth if fixed is None else [fixed], self.steps, features=self.features)
        if fixed is not None:
            spec.require_readable(fixed)
        return spec
