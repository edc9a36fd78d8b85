"""Files whose number of rows is declared by their owner: for what needs a public number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count
from fogline.engines.files import FileTable

__all__ = ["CountedFile"]


class CountedFile(FileTable):
    """Some columns of a file with a public number of rows, as declared: nothing is counted.

    Rows beyond that number are not read, and missing ones count as records without a value, so that a line that cannot
    be read changes one record and not the number of them.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str, optional
        As for :class:`FileTable`.
    rows : int
        Public; never take it from a file whose number of rows is secret.

    Examples
    --------
    >>> from fogline.datasets import load_faithful
    >>> from fogline.engines import CountedFile
    >>> CountedFile(load_faithful().path, ["waiting"], rows=272).rows
    272
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None, *, rows: int) -> None:
        super().__init__(path, columns)
        self.rows = check_count(rows, "rows")

    def each_batch(self, take: Callable[[NDArray[np.float64]], object]) -> None:
        """Hand the records over as :meth:`FileTable.each_batch` does, the first `rows` of them."""
        left = self.rows

        def take_some(batch: NDArray[np.float64]) -> None:
            nonlocal left
            take(batch[:left])
            left -= min(left, len(batch))

        super().each_batch(take_some)
