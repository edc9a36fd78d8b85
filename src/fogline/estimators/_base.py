"""What every private estimator shares: only parameters and released values are kept, pickled or copied."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import FloatArray, SourceLike
from fogline._validation import records
from fogline.accounting.cautions import LARGE_DELTA, delta_caution, warn_of
from fogline.accounting.guarantee import Guarantee
from fogline.density.counted_records import check_expected, release_message

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["ReleasedState", "default_parameters", "warn_of_count"]


class ReleasedState:
    """Mixin for private estimators, left of ``BaseEstimator``.

    A subclass lists what it publishes in ``_released_attributes``; state outside that list and the constructor's
    parameters does not survive a pickle.
    """

    _released_attributes: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> dict[str, Any]:
        allowed = {*default_parameters(type(self)), *self._released_attributes}
        allowed |= {"n_features_in_", "feature_names_in_", "_sklearn_version"}
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name in allowed}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # Noise differs from fit to fit, and rows with missing values are left out, not refused.
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags

    def _remember_features(self, X: SourceLike, width: int) -> None:
        """Keep the number of columns and their names: schema, not data."""
        self.n_features_in_ = width
        # Names are part of the schema, which is public; nothing else of X is looked at here.
        names = getattr(X, "columns", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(list(names), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

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
