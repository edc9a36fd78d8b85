"""Tables in Postgres, Spark and Dask: all tables of a walk are stored at once, and read one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fogline_research.audit_campaign.forms.arrays import array_of, objects, text_array
from fogline_research.audit_campaign.forms.base import NAMES, UNIT, Form, Opened, Place, Public
from fogline_research.audit_campaign.forms.files import stored_walk
from fogline_research.audit_campaign.forms.frames import arrow_table
from fogline_research.audit_campaign.hostile_tables import Record, Shape

__all__ = ["SERVER_FORMS"]

Tables = Sequence[Sequence[Record]]

# -- Postgres -------------------------------------------------------------------------------------------------

POSTGRES_CELLS = {
    "double or missing": "double precision",
    "single": "real",
    "integer or missing": "bigint",
    "truth": "boolean",
    "decimal": "numeric",
}
POSTGRES_IDS = {"text without NUL": "text", "integer or missing": "bigint"}


def _postgres(tables: Tables, shape: Shape, public: Public, place: Place) -> Iterator[Opened]:
    import psycopg

    address, encoding = place.servers["postgres"], public["client encoding"]
    writer = place.connection("writer", lambda: psycopg.connect(address, autocommit=True))
    place.walks += 1
    name = f"walk{place.walks}"  # a name of its own: types of a table that a session knows may not change
    _store(writer, name, tables, shape)
    chosen = ", ".join([*NAMES[: shape.columns], *([] if shape.ids is None else [UNIT])])
    query = f"SELECT {chosen} FROM {name} WHERE number = (SELECT now FROM clock) ORDER BY place"
    by_address = f"{address}?client_encoding={encoding}"
    for number in range(len(tables)):
        writer.execute("UPDATE clock SET now = %s", (number,))
        reader = place.connection("reader", lambda: psycopg.connect(address, client_encoding=encoding))
        source = reader if public["by"] == "connection" else by_address
        yield Opened(source, {"query": query, **({} if shape.ids is None else {"unit": UNIT})})
        if not reader.closed:
            reader.rollback()
    writer.execute(f"DROP TABLE {name}")


def _store(writer: Any, name: str, tables: Tables, shape: Shape) -> None:
    """Put a walk into one table, and the number of the table that is read into another."""
    kinds = ", ".join(f"{name} {POSTGRES_CELLS[shape.cells]}" for name in NAMES[: shape.columns])
    unit = POSTGRES_IDS.get(shape.ids or "", "text")
    writer.execute(
        f"DROP TABLE IF EXISTS clock; CREATE UNLOGGED TABLE clock (now integer); INSERT INTO clock VALUES (0); "
        f"CREATE UNLOGGED TABLE {name} (number integer, place integer, {kinds}, {UNIT} {unit})"
    )
    with writer.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for number, position, record in stored_walk(tables):
            copy.write_row((number, position, *record.cells, record.unit))


def _postgres_form(encoding: str) -> Form:
    return Form(
        f"Postgres, client encoding {encoding}",
        (
            Shape("double or missing"),
            Shape("double or missing", 2),
            Shape("single"),
            Shape("integer or missing"),
            Shape("decimal"),
            Shape("truth"),
            Shape("double or missing", 1, "text without NUL"),
            Shape("double or missing", 2, "text without NUL"),
            Shape("double or missing", 1, "integer or missing"),
        ),
        lambda rows, shape, public, place: next(_postgres([rows], shape, public, place)),
        {"client encoding": (encoding,), "by": ("connection", "connection", "connection", "address")},
        ("psycopg",),
        "postgres",
        write_all=_postgres,
    )


# -- Spark ----------------------------------------------------------------------------------------------------


def _spark(tables: Tables, shape: Shape, public: Public, place: Place) -> Iterator[Opened]:
    import pyarrow as pa

    stored = list(stored_walk(tables))
    arrow = arrow_table([record for _, _, record in stored], Shape(shape.cells, shape.columns))
    arrow = arrow.append_column("number", pa.array([number for number, _, _ in stored], pa.int32()))
    chosen = list(NAMES[: shape.columns])
    if shape.ids is not None:
        ids: Any = [record.unit for _, _, record in stored]
        if shape.ids.startswith("text"):
            ids = text_array(ids).view(pa.binary())
            chosen.append(f"CAST({UNIT} AS STRING) AS {UNIT}")  # which looks at no byte
        else:
            ids = pa.array(ids, pa.int64() if shape.ids.startswith("integer") else pa.float64(), from_pandas=False)
            chosen.append(UNIT)
        arrow = arrow.append_column(UNIT, ids)
    frame = place.servers["spark"].createDataFrame(arrow).coalesce(1)
    for number in range(len(tables)):
        one = frame.where(f"number = {number}").selectExpr(*chosen)
        one = one.repartition(public["partitions"]) if public["partitions"] else one
        yield Opened(one, {} if shape.ids is None else {"unit": UNIT})


SPARK = Form(
    "Spark",
    (
        Shape("double or missing"),
        Shape("double or missing", 1, "text of any bytes"),
        Shape("decimal", 2),
        Shape("double or missing", 2, "integer or missing"),
        Shape("single"),
        Shape("double or missing", 1, "double"),
        Shape("integer or missing", 2),
    ),
    lambda rows, shape, public, place: next(_spark([rows], shape, public, place)),
    {"partitions": (0, 0, 2)},
    ("pyspark", "pyarrow"),
    "spark",
    write_all=_spark,
    bundle=13,
)

# -- Dask -----------------------------------------------------------------------------------------------------


def _dask_frame(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    import dask
    import dask.dataframe as dd
    import pandas as pd

    dask.config.set(scheduler="synchronous")
    if shape.cells == "double":
        array = array_of(rows, shape)
        frame = pd.DataFrame({NAMES[j]: array[:, j].copy() for j in range(shape.columns)})
    else:
        frame = pd.DataFrame()
        for j in range(shape.columns):
            frame[NAMES[j]] = pd.Series(objects([record.cells[j] for record in rows]), dtype=object)
    if shape.ids is not None:
        ids = [record.unit for record in rows]
        kind: Any = {"integer": "int64", "double": "float64", "integer or missing": "Int64"}.get(shape.ids, object)
        frame[UNIT] = pd.Series(objects(ids) if kind is object else ids, dtype=kind)
    size = public["rows of a partition"]
    parts = [frame.iloc[i : i + size] for i in range(0, len(frame), size)] or [frame]
    if public["empty partitions"]:
        parts.insert(0, frame.iloc[:0])
    with dask.config.set({"dataframe.convert-string": public["texts of Arrow"]}):
        source = dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])  # type: ignore[no-untyped-call]
    return Opened(source, {} if shape.ids is None else {"unit": UNIT})


def _dask_array(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    import dask
    import dask.array as da

    dask.config.set(scheduler="synchronous")
    chunks = (public["rows of a chunk"], public["columns of a chunk"])
    return Opened(da.from_array(array_of(rows, shape), chunks=chunks))  # type: ignore[no-untyped-call]


SERVER_FORMS: tuple[Form, ...] = (
    _postgres_form("UTF8"),
    _postgres_form("LATIN1"),
    _postgres_form("SQL_ASCII"),
    SPARK,
    Form(
        "Dask frame",
        (
            Shape("double"),
            Shape("double", 2),
            Shape("double", 1, "object"),
            Shape("double", 2, "integer"),
            Shape("object"),
            Shape("double", 1, "integer or missing"),
            Shape("double", 1, "double"),
        ),
        _dask_frame,
        {
            "rows of a partition": (1, 3, 64),
            "empty partitions": (False, True),
            "texts of Arrow": (True, True, False),  # the default of Dask more often
            "numpy errors": ("default", "raise"),
        },
        ("dask", "pandas", "pyarrow", "narwhals"),
    ),
    Form(
        "Dask array",
        (Shape("double"), Shape("double", 2), Shape("integer", 2), Shape("single")),
        _dask_array,
        {"rows of a chunk": (1, 3, 64), "columns of a chunk": (1, 2), "numpy errors": ("default", "raise")},
        ("dask",),
    ),
)
"""Forms that a server or a cluster holds."""
