"""Types that the whole package shares: arrays, what users may pass, and what is asked of foreign objects.

Importing this module imports numpy. A module that must load without numpy, such as one of the command line, imports
from here under ``TYPE_CHECKING`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "JSON",
    "AnswerLike",
    "ArrowBatch",
    "ArrowColumn",
    "BandwidthLike",
    "BoolArray",
    "BoundsLike",
    "Classifier",
    "ComplexArray",
    "EstimatorLike",
    "FloatArray",
    "FrameColumn",
    "Ids",
    "IntArray",
    "JSONObject",
    "LedgerLike",
    "RandomState",
    "ReceiptLike",
    "SharesLike",
    "SourceLike",
    "StepsLike",
    "SupportsToDict",
    "WordArray",
    "is_arrow",
]

# -- arrays -------------------------------------------------------------------------------------------------

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
ComplexArray: TypeAlias = NDArray[np.complex128]
WordArray: TypeAlias = NDArray[np.uint64]

# -- what users pass ----------------------------------------------------------------------------------------

BoundsLike: TypeAlias = ArrayLike | Mapping[str, Any] | Sequence[Any] | None
"""Public bounds: a pair (low, high) or the name of a public range per axis, or a mapping from columns to such.

None is refused by an error that says why."""

BandwidthLike: TypeAlias = ArrayLike | None
"""A fraction of each width, one bandwidth per axis, a list of such, or "auto"; None where a reading may choose."""

StepsLike: TypeAlias = float | Sequence[float | None] | FloatArray | None
"""Public rounding step per axis; None for a continuous one."""

SharesLike: TypeAlias = Sequence[float] | FloatArray | None
"""Parts of a budget or of a weight; None for the default ones."""

SourceLike: TypeAlias = object
"""Whatever ``fogline.table`` takes: an array, a frame, a path, a connection, a ``Source``. Handed on unopened."""

RandomState: TypeAlias = int | np.random.Generator | None
"""A seed or a generator, for draws that protect nobody."""

# -- JSON ---------------------------------------------------------------------------------------------------

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""A value that JSON can write."""

JSONObject: TypeAlias = dict[str, JSON]


class SupportsToDict(Protocol):
    """Says what it is in terms of JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by their names."""


# -- ledgers ------------------------------------------------------------------------------------------------

ReceiptLike: TypeAlias = SupportsToDict


class AnswerLike(Protocol):
    """What a ledger holds for a question."""

    @property
    def payload(self) -> bytes:
        """The released bytes."""

    @property
    def receipt(self) -> ReceiptLike:
        """Where the answer stands in the ledger."""


class LedgerLike(Protocol):
    """What a release asks of a ledger: a ``fogline.Ledger``, or the view of one analyst on one data set.

    The release does not depend on how budgets are kept, so it names this and not the class.
    """

    def ask(
        self,
        mechanism: str,
        *,
        code_version: str,
        parameters: Mapping[str, Any],
        cost: Any,
        neighbours: str,
        certified: bool,
        release: Callable[[], bytes],
        **options: Any,
    ) -> AnswerLike:
        """Reserve the cost, call ``release`` and store what it gives; or return what was stored before."""


# -- Arrow and frames, whose libraries need not be installed --------------------------------------------------


class ArrowColumn(Protocol):
    """What is asked of an array of Arrow."""

    @property
    def type(self) -> Any:
        """The declared type, an object of pyarrow."""

    @property
    def null_count(self) -> int:
        """How many cells are missing."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice, /) -> Self: ...

    def cast(self, target_type: object, safe: bool | None = None) -> Self:
        """Return the cells in another type."""

    def is_null(self) -> Self:
        """Return which cells are missing."""

    def take(self, indices: object) -> Self:
        """Return the cells at some places."""

    def to_numpy(self, zero_copy_only: bool = True) -> NDArray[Any]:
        """Return the cells as an array of numpy."""

    def to_pylist(self) -> list[Any]:
        """Return the cells as objects of Python."""


def is_arrow(column: object) -> TypeGuard[ArrowColumn]:
    """Whether a column is one of Arrow, of whatever library: asked without importing pyarrow."""
    return hasattr(column, "to_pylist")


class ArrowBatch(Protocol):
    """What is asked of a batch of Arrow."""

    @property
    def num_columns(self) -> int:
        """How many columns it has."""

    @property
    def num_rows(self) -> int:
        """How many rows it has."""

    def select(self, columns: list[Any]) -> Self:
        """Return some of the columns, by place or by name."""

    def column(self, i: int | str) -> Any:
        """Return one column, an :class:`ArrowColumn`."""


class FrameColumn(Protocol):
    """What is asked of a column of a data frame."""

    @property
    def dtype(self) -> Any:
        """The declared type, an object of the frame's library."""

    def __len__(self) -> int: ...

    def to_list(self) -> list[Any]:
        """Return the cells as objects of Python."""

    def to_numpy(self, **options: Any) -> NDArray[Any]:
        """Return the cells as an array of numpy."""


Ids: TypeAlias = NDArray[Any] | Sequence[Any] | ArrowColumn
"""Whose record each row is, as sources hand it over: integers and texts, or what is neither and counts as missing."""

# -- scikit-learn -------------------------------------------------------------------------------------------


class EstimatorLike(Protocol):
    """What an audit, a plan or a page asks of an estimator before it is fitted."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by their names."""

    def fit(self, X: SourceLike, y: object = None) -> Self:
        """Fit to records, which are handed on unopened."""


class Classifier(Protocol):
    """What boosting asks of a classifier of scikit-learn, besides ``decision_function`` or ``predict_proba``."""

    def fit(self, X: FloatArray, y: IntArray, /) -> Self:
        """Fit to rows and their classes."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by their names."""

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters."""
