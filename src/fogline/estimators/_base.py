"""What every private estimator shares: only parameters and released values are kept, pickled or copied."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fogline import units
from fogline._results import Results
from fogline._typing import FloatArray, SourceLike
from fogline._validation import records
from fogline.accounting.cautions import LARGE_DELTA, delta_caution, warn_of
from fogline.accounting.guarantee import Guarantee
from fogline.density.counted_records import check_expected, release_message
from fogline.density.private_density import PrivateDensity

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["ReleasedState", "default_parameters", "schema_names", "warn_of_count"]


class ReleasedState(Results):
    """Mixin for private estimators, left of ``BaseEstimator``.

    A subclass lists what it publishes in ``_released_attributes``; state outside that list and the constructor's
    parameters does not survive a pickle. Once fitted, every estimator has the results interface.
    """

    _released_attributes: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> dict[str, Any]:
        allowed = {*default_parameters(type(self)), *self._released_attributes}
        allowed |= {"n_features_in_", "feature_names_in_", "_columns", "_sklearn_version"}
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name in allowed}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # Noise differs from fit to fit, and rows with missing values are left out, not refused.
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags

    def _require_results(self) -> None:
        """Raise scikit-learn's error where nothing was fitted yet."""
        if not hasattr(self, "guarantee_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit before you ask for results")

    def _repr_html_(self) -> str | None:
        """Show the result in a notebook; before a fit what scikit-learn shows, the parameters."""
        if hasattr(self, "guarantee_"):
            return super()._repr_html_()
        parameters = getattr(super(Results, self), "_repr_html_", None)
        return None if parameters is None else str(parameters())

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:  # noqa: ARG002
        """Show the same where a notebook asks for all forms at once, before it asks for HTML."""
        shown = {"text/plain": repr(self), "text/html": self._repr_html_()}
        return {form: text for form, text in shown.items() if text is not None}

    def _remember_features(self, X: SourceLike, width: int, bounds: object = None) -> None:
        """Keep the number of columns and their names, from the source or from bounds by name: schema, not data."""
        self.n_features_in_ = width
        names = schema_names(X)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._columns = units.bounded_names(bounds, names)

    def _remember_density(self, density: PrivateDensity) -> None:
        """Keep the number of columns of a density and their names."""
        self.n_features_in_ = density.spec.d
        self._columns = density.columns
        # of an earlier fit
        if list(getattr(self, "feature_names_in_", ())) != list(density.columns or ()):
            self.__dict__.pop("feature_names_in_", None)

    def _named(self, density: PrivateDensity, *more: str) -> PrivateDensity:
        """Give a density the names that were remembered, and more, where it has none and they fit."""
        names = None if self._columns is None else (*self._columns, *more)
        if density.columns is None and names is not None and len(set(names)) == density.spec.d:
            density.columns = names
        return density

    def _message(
        self, found: str, guarantee: Guarantee, count: float, sd: float, *, response: int = 0, bounded: bool = True
    ) -> str:
        """Join what was found with what the budget and the released count give cause to say."""
        expected = check_expected(self.expect_records)  # type: ignore[attr-defined]
        columns = int(self.n_features_in_) + response
        return release_message(found, guarantee, count, sd, expected, columns=columns, bounded=bounded)

    def _rows_like_fitted(self, X: ArrayLike) -> FloatArray:
        """Rows to read the fitted values at: as many columns as ``fit`` saw."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        rows, wanted = records(X, public=True), self.n_features_in_
        if rows.shape[1] != wanted:
            # scikit-learn's own checks look for these words.
            flat = ". Reshape your data if it is one row" if np.ndim(X) == 1 else ""
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {wanted} features as input"
                + flat
            )
        return rows


def schema_names(X: SourceLike) -> list[str] | None:
    """Names of a source's columns where all of them are texts; nothing else of X is looked at.

    Examples
    --------
    >>> schema_names([[1.0]]) is None
    True
    """
    # Names are part of the schema, which is public.
    names = getattr(X, "columns", None)
    return list(names) if names is not None and all(isinstance(name, str) for name in names) else None


def default_parameters(estimator: type) -> dict[str, Any]:
    """Parameters of an estimator and their defaults, by name.

    Examples
    --------
    >>> from fogline.estimators.mode_fit import ModeFit
    >>> default_parameters(ModeFit)["level"]
    0.05
    """
    taken = inspect.signature(estimator.__init__).parameters.values()  # type: ignore[misc]
    return {
        parameter.name: parameter.default
        for parameter in sorted(taken, key=lambda one: one.name)
        if parameter.name != "self"
    }


def warn_of_count(guarantee: Guarantee, count: float) -> None:
    """Warn of a delta above one over the released count, unless delta alone gave cause to before the release."""
    if guarantee.delta <= LARGE_DELTA:
        warn_of(filter(None, [delta_caution(guarantee.delta, count)]))
