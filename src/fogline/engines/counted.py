"""Files whose number of rows is declared by their owner: for what needs a public number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count
from fogline.engines.files import FileTable
from fogline.engines.tables import State, Table, Take
from fogline.sketch.planning import Spec

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
    **reading
        How text is read; see :class:`ReadingOptions`.

    Examples
    --------
    >>> from fogline.datasets import load_faithful
    >>> from fogline.engines import CountedFile
    >>> CountedFile(load_faithful().path, ["waiting"], rows=272).rows
    272
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None, *, rows: int, **reading: Any) -> None:
        super().__init__(path, columns, **reading)
        self.rows = check_count(rows, "rows")

    def _state(self, spec: Spec) -> State:
        return Table._state(self, spec)

    def _scan(self, take: Take) -> None:
        """Hand over the first `rows` records."""
        left = self.rows

        def take_some(batch: NDArray[np.float64], ids: Any) -> None:
            nonlocal left
            take(batch[:left], ids)
            left -= min(left, len(batch))

        super()._scan(take_some)
