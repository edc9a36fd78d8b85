"""Parquet files with a column of text ids, by pyarrow: DuckDB fails on a file in which one text is not UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fogline._validation import records
from fogline.engines.duck import has_arrow
from fogline.engines.tables import BATCH_ROWS, Take

__all__ = ["require_arrow_for_texts", "scan_text_ids"]


def require_arrow_for_texts(unit: str) -> None:
    """Say what to install; before anything is paid, since without it one record would decide whether reading fails."""
    if not has_arrow():
        raise ImportError(
            f"unit: column {unit!r} holds texts, which pyarrow reads from Parquet: pip install 'fogline[arrow]'; "
            "or write the ids as integers"
        )


def scan_text_ids(files: Sequence[Path], columns: Sequence[str], unit: str, take: Take) -> None:
    """Hand over rows of Parquet files, with their ids as Arrow's texts.

    Parameters
    ----------
    files : sequence of Path
    columns : sequence of str
        Of numbers.
    unit : str
        Of texts.
    take : callable
        :data:`fogline.engines.tables.Take`.
    """
    import pyarrow.parquet as pq

    for path in files:
        with pq.ParquetFile(path) as file:
            file.schema_arrow.empty_table().select([*columns, unit])  # fails with no rows as it would with some
            for batch in file.iter_batches(BATCH_ROWS, columns=[*columns, unit]):
                take(records(batch.select(list(columns))), batch.column(unit))
