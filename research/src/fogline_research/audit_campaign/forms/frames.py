"""Tables as data frames of pandas and polars, as Arrow in all its shapes, and as DuckDB relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fogline_research.audit_campaign.forms.arrays import array_of, objects, text_array
from fogline_research.audit_campaign.forms.base import NAMES, UNIT, Form, Opened, Place, Public
from fogline_research.audit_campaign.hostile_tables import Record, Shape

__all__ = ["FRAME_FORMS", "arrow_table", "polars_frame"]

NUMPY_ERRORS = {"numpy errors": ("default", "raise")}
BATCHES = {"rows of a batch": (1, 2, 3, 64), "empty batches": ("none", "first", "everywhere")}
WITHOUT_UNIT = ("double", "integer", "single", "truth")


def _columns(rows: Sequence[Record], shape: Shape) -> dict[str, np.ndarray[Any, Any]]:
    array = array_of(rows, shape)
    return {NAMES[j]: array[:, j].copy() for j in range(shape.columns)}


def _keywords(shape: Shape) -> dict[str, Any]:
    return {} if shape.ids is None else {"unit": UNIT}


# -- Arrow ----------------------------------------------------------------------------------------------------


def arrow_table(rows: Sequence[Record], shape: Shape, ids: str = "string") -> Any:
    """Cells and ids as an Arrow table, missing values as nulls."""
    import pyarrow as pa

    kinds = {
        "double": pa.float64(),
        "single": pa.float32(),
        "integer": pa.int64(),
        "unsigned": pa.uint64(),
        "truth": pa.bool_(),
        "decimal": pa.decimal128(12, 3),
    }
    kind = kinds[shape.cells.removesuffix(" or missing")]
    named = {}
    for j in range(shape.columns):
        cells = [record.cells[j] for record in rows]
        if kind == pa.float64():  # by way of numpy, which keeps all bits of a NaN
            mask = np.array([cell is None for cell in cells], dtype=bool)
            values = np.array([0.0 if cell is None else cell for cell in cells], dtype=np.float64)
            named[NAMES[j]] = pa.array(values, kind, mask=mask, from_pandas=False)
        else:
            named[NAMES[j]] = pa.array(cells, kind)
    if shape.ids is not None:
        named[UNIT] = _arrow_ids([record.unit for record in rows], shape.ids, ids)
    return pa.table(named)


def _arrow_ids(ids: Sequence[Any], kind: str, container: str) -> Any:
    import pyarrow as pa

    if kind.startswith("text"):
        return text_array(ids, container)
    types = {"integer": pa.int64(), "integer or missing": pa.int64(), "double": pa.float64(), "unsigned": pa.uint64()}
    return pa.array(list(ids), types[kind], from_pandas=False)


def _batches(table: Any, public: Public) -> Iterator[Any]:
    """Cut a table into batches, with empty ones where the public features ask for them."""
    size, empties = public["rows of a batch"], public["empty batches"]
    empty = table.schema.empty_table().to_batches() or [_empty_batch(table.schema)]
    if empties != "none":
        yield empty[0]
    for batch in table.combine_chunks().to_batches():
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
            if empties == "everywhere":
                yield empty[0]


def _empty_batch(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class _OnlyStream:
    """Something that exports an Arrow stream and can do nothing else."""

    def __init__(self, reader: Any) -> None:
        self._make = reader

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._make().__arrow_c_stream__(requested_schema)


def _arrow(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    import pyarrow as pa

    table = arrow_table(rows, shape, public.get("type of ids", "string"))
    as_what = public["as"]
    if as_what == "record batch":
        batches = table.combine_chunks().to_batches() or [_empty_batch(table.schema)]
        return Opened(batches[0], _keywords(shape))
    batches = list(_batches(table, public))
    if as_what == "table":
        return Opened(pa.Table.from_batches(batches, table.schema), _keywords(shape))
    if as_what == "reader":
        return Opened(pa.RecordBatchReader.from_batches(table.schema, batches), _keywords(shape))
    return Opened(_OnlyStream(lambda: pa.RecordBatchReader.from_batches(table.schema, batches)), _keywords(shape))


ARROW_SHAPES = (
    Shape("double or missing"),
    Shape("double or missing", 2),
    Shape("integer or missing", 2),
    Shape("single"),
    Shape("unsigned"),
    Shape("truth"),
    Shape("decimal", 2),
    Shape("double or missing", 1, "text of any bytes"),
    Shape("double or missing", 2, "integer or missing"),
    Shape("double or missing", 1, "double"),
    Shape("double or missing", 1, "unsigned"),
)
ID_TYPES = ("string", "large_string", "dictionary")


def _relation(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:
    import duckdb

    connection = place.connection("duckdb", duckdb.connect)
    arrow = arrow_table(rows, shape)
    connection.execute("DROP TABLE IF EXISTS walk")
    if public["as"] == "Arrow":
        return Opened(connection.from_arrow(arrow), _keywords(shape))
    connection.register("arrow_rows", arrow)
    connection.execute("CREATE OR REPLACE TABLE walk AS SELECT * FROM arrow_rows")
    connection.unregister("arrow_rows")
    return Opened(connection.sql("SELECT * FROM walk"), _keywords(shape))


# -- pandas ---------------------------------------------------------------------------------------------------


def _pandas(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    import pandas as pd

    backing = public["backing"]
    if backing == "objects":
        cells = [objects([record.cells[j] for record in rows]) for j in range(shape.columns)]
        named = {NAMES[j]: pd.Series(cells[j], dtype=object) for j in range(shape.columns)}  # else pandas guesses
    elif backing == "nullable":
        kinds = {"double": "Float64", "integer": "Int64", "single": "Float32", "truth": "boolean"}
        kind = kinds[shape.cells.removesuffix(" or missing")]
        named = {NAMES[j]: pd.array([record.cells[j] for record in rows], dtype=kind) for j in range(shape.columns)}
    elif backing == "Arrow":
        arrow = arrow_table(rows, Shape(shape.cells, shape.columns))
        named = {name: pd.Series(pd.arrays.ArrowExtensionArray(arrow.column(name))) for name in arrow.column_names}
    else:
        named = _columns(rows, shape)
    frame = pd.DataFrame(named)
    if shape.ids is not None:
        frame[UNIT] = _pandas_ids([record.unit for record in rows], shape.ids, public)
    if public["index"] == "all equal":
        frame.index = pd.Index(np.zeros(len(frame), dtype=np.int64))
    return Opened(frame, _keywords(shape))


def _pandas_ids(ids: Sequence[Any], kind: str, public: Public) -> Any:
    import pandas as pd

    if kind == "text of any bytes":
        return pd.arrays.ArrowExtensionArray(text_array(ids))
    if kind in ("integer", "double"):
        return np.array(ids, dtype=np.int64 if kind == "integer" else np.float64)
    if kind == "integer or missing":
        return pd.array(ids, dtype="Int64")
    if public["type of ids"] == "category":
        return pd.Categorical(objects(ids))
    return pd.Series(objects(ids), dtype=object if public["type of ids"] == "object" else "str")


def _pandas_form(backing: str, cells: tuple[str, ...], needs: tuple[str, ...] = ()) -> Form:
    with_ids = [
        Shape(cells[0], 1, kind) for kind in ("object", "integer", "integer or missing", "double", "text without NUL")
    ]
    if backing == "Arrow":
        with_ids = [Shape(cells[0], 1, "text of any bytes"), Shape(cells[0], 2, "integer or missing")]
    kinds = ("object",) if backing in ("numpy", "objects") else ("object", "category", "str")
    if backing in ("numpy", "objects"):
        with_ids = [shape for shape in with_ids if shape.ids != "text without NUL"]
    elif backing == "nullable":
        with_ids = [shape for shape in with_ids if shape.ids != "object"]
    entries = {"entry": ("table",)}
    plain = [Shape(kind, d) for kind in cells for d in (1, 2)]
    return Form(
        f"pandas ({backing})",
        (*plain, *with_ids),
        _pandas,
        {**NUMPY_ERRORS, **entries, "backing": (backing,), "index": ("range", "all equal"), "type of ids": kinds},
        ("pandas", "narwhals", *needs),
    )


def _fit(form: Form) -> Form:
    """The same frame given to an estimator as it is, without a table around it: no unit then."""
    shapes = tuple(shape for shape in form.shapes if shape.ids is None)
    return Form(
        f"{form.name}, as it is", shapes, form.write, {**form.options, "entry": ("fit",)}, form.needs, items=form.items
    )


# -- polars ---------------------------------------------------------------------------------------------------


def polars_frame(rows: Sequence[Record], shape: Shape, type_of_ids: str = "text") -> Any:
    """Cells and ids as a polars frame, missing values as nulls."""
    import polars as pl

    named = {}
    kinds = {"double": pl.Float64, "single": pl.Float32, "integer": pl.Int64, "truth": pl.Boolean}
    kinds["decimal"] = pl.Decimal(12, 3)  # type: ignore[assignment]
    kind = kinds[shape.cells.removesuffix(" or missing")]
    for j in range(shape.columns):
        cells = [record.cells[j] for record in rows]
        plain = kind == pl.Float64 and None not in cells
        named[NAMES[j]] = pl.Series(np.array(cells, dtype=np.float64) if plain else cells, dtype=kind)
    if shape.ids is not None:
        types = {"text": pl.String, "categories": pl.Categorical}
        declared = {"integer": pl.Int64, "double": pl.Float64, "object": pl.Object}
        id_type = declared.get(shape.ids.removesuffix(" or missing"), types[type_of_ids])
        named[UNIT] = pl.Series([record.unit for record in rows], dtype=id_type)
    return pl.DataFrame(named)


def _polars(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    import polars as pl

    frame = polars_frame(rows, shape, public["type of ids"])
    size = public["rows of a batch"]
    if public["chunks"] == "several" and len(frame):
        frame = pl.concat([frame[i : i + size] for i in range(0, len(frame), size)], rechunk=False)
    return Opened(frame.lazy() if public["as"] == "lazy" else frame, _keywords(shape))


POLARS_SHAPES = (
    Shape("double or missing"),
    Shape("double or missing", 2),
    Shape("integer or missing"),
    Shape("single", 2),
    Shape("truth"),
    Shape("decimal"),
    Shape("double or missing", 1, "text or missing"),
    Shape("double or missing", 2, "integer or missing"),
    Shape("double or missing", 1, "double"),
)


def _arrow_form(name: str, as_what: str) -> Form:
    options = {**NUMPY_ERRORS, **BATCHES, "as": (as_what,), "entry": ("table",), "type of ids": ID_TYPES}
    return Form(name, ARROW_SHAPES, _arrow, options, ("pyarrow", "narwhals"))


def _polars_form(as_what: str, shapes: tuple[Shape, ...]) -> Form:
    options = {
        **NUMPY_ERRORS,
        "as": (as_what,),
        "chunks": ("one", "several"),
        "rows of a batch": (1, 3),
        "type of ids": ("text", "categories"),
        "entry": ("table",),
    }
    return Form(f"polars ({as_what})", shapes, _polars, options, ("polars", "narwhals", "pyarrow"))


_VALID_SHAPES = tuple(
    replace(shape, ids="text or missing") if shape.ids == "text of any bytes" else shape for shape in ARROW_SHAPES
)
"""For tables of DuckDB's own, into which it puts no text that is not UTF-8."""


def _relation_form(name: str, as_what: str, shapes: tuple[Shape, ...]) -> Form:
    options = {**NUMPY_ERRORS, "as": (as_what,), "entry": ("table",)}
    return Form(name, shapes, _relation, options, ("duckdb", "pyarrow"))


_PANDAS = (
    _pandas_form("numpy", ("double", "integer", "single", "truth")),
    _pandas_form("nullable", ("double or missing", "integer or missing", "truth")),
    _pandas_form("Arrow", ("double or missing", "integer or missing", "truth"), ("pyarrow",)),
    _pandas_form("objects", ("object",)),
)
_POLARS = _polars_form("eager", (*POLARS_SHAPES, Shape("double or missing", 1, "object")))
_ARROW = _arrow_form("Arrow table", "table")

FRAME_FORMS: tuple[Form, ...] = (
    *_PANDAS,
    *(_fit(form) for form in _PANDAS),
    _POLARS,
    _fit(_POLARS),
    _polars_form("lazy", POLARS_SHAPES),
    _ARROW,
    _fit(_ARROW),
    _arrow_form("Arrow record batch", "record batch"),
    _arrow_form("Arrow reader", "reader"),
    _arrow_form("Arrow C stream", "stream"),
    _relation_form("DuckDB relation of Arrow", "Arrow", ARROW_SHAPES),
    _relation_form("DuckDB relation of a table", "a table", _VALID_SHAPES),
)
"""Forms that need a library of frames."""
