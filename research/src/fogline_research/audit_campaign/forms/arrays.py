"""Tables as arrays, lists, matrices and sparse matrices, with ids beside them in any container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fogline_research.audit_campaign.forms.base import Form, Opened, Place, Public
from fogline_research.audit_campaign.hostile_tables import Record, Shape

__all__ = ["ARRAY_FORMS", "DTYPES", "array_of", "objects", "text_array"]

DTYPES: dict[str, Any] = {
    "double": np.float64,
    "double or missing": np.float64,
    "single": np.float32,
    "integer": np.int64,
    "unsigned": np.uint64,
    "truth": np.bool_,
}
"""Types of numpy by the kind of the cells."""

ANY_ENTRY = {"entry": ("fit", "table"), "numpy errors": ("default", "raise")}


def array_of(rows: Sequence[Record], shape: Shape) -> np.ndarray[Any, Any]:
    """Cells as an array of their declared type."""
    array: np.ndarray[Any, Any] = np.zeros((len(rows), shape.columns), dtype=DTYPES[shape.cells])
    with np.errstate(all="ignore"):
        for i, record in enumerate(rows):
            for j, cell in enumerate(record.cells):
                array[i, j] = np.nan if cell is None else cell
    return array


def objects(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Values as an array of objects, none of them looked into."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _numpy(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    array = array_of(rows, shape)
    layout = public["layout"]
    if layout == "columns":
        array = np.asfortranarray(array)
    elif layout == "strided":
        array = np.repeat(array, 2, axis=0)[::2]
    elif layout == "foreign bytes":
        array = array.astype(array.dtype.newbyteorder())
    elif layout == "one dimension" and shape.columns == 1:
        array = array[:, 0]
    elif layout == "read only":
        array.setflags(write=False)
    return Opened(array)


def _object_array(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    array = np.empty((len(rows), shape.columns), dtype=object)
    for i, record in enumerate(rows):
        for j, cell in enumerate(record.cells):
            array[i, j] = cell
    return Opened(array)


def _structured(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    return Opened(array_of(rows, shape).view([("a", np.float64), ("b", np.float64)])[:, 0])


def _list(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    inner: dict[str, Callable[[Record], Any]] = {
        "lists": lambda record: list(record.cells),
        "tuples": lambda record: record.cells,
        "bare cells": lambda record: record.cells[0] if len(record.cells) == 1 else list(record.cells),
        "object arrays": lambda record: objects(record.cells),
    }
    made = [inner[public["rows"]](record) for record in rows]
    return Opened(tuple(made) if public["outer"] == "tuple" else made)


def _matrix(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    return Opened(array_of(rows, shape).view(np.matrix))


def _masked(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    mask = np.array([[cell is None for cell in record.cells] for record in rows], dtype=bool)
    array = array_of(rows, shape)
    if public["under the mask"] == "a value":
        array = np.where(mask.reshape(array.shape), array.dtype.type(5), array)
    no_mask = public["mask"] == "none if empty" and not mask.any()
    return Opened(np.ma.MaskedArray(array, np.ma.nomask if no_mask else mask.reshape(array.shape)))


def _sparse(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    import scipy.sparse

    return Opened(getattr(scipy.sparse, public["format"])(array_of(rows, shape)))


# -- ids beside an array --------------------------------------------------------------------------------------


def text_array(texts: Sequence[Any], kind: str = "string") -> Any:
    """Texts as an Arrow array; bytes that are no UTF-8 as they are, which Arrow does not look at."""
    import pyarrow as pa

    content = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]
    array = pa.array(content, pa.large_binary() if kind == "large_string" else pa.binary())
    array = array.view(pa.large_string() if kind == "large_string" else pa.string())
    return array.dictionary_encode() if kind == "dictionary" else array


def _integers_with_gaps(ids: Sequence[Any]) -> Any:
    values = np.array([0 if x is None else x for x in ids], dtype=np.int64)
    return np.ma.MaskedArray(values, np.array([x is None for x in ids], dtype=bool))


CONTAINERS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "object array": objects,
    "integer array": lambda ids: np.array(ids, dtype=np.int64),
    "unsigned array": lambda ids: np.array(ids, dtype=np.uint64),
    "float array": lambda ids: np.array(ids, dtype=np.float64),
    "text array": lambda ids: np.array(list(ids), dtype="U5000"),
    "masked array": _integers_with_gaps,
    "Arrow array": text_array,
    "Arrow dictionary": lambda ids: text_array(ids, "dictionary"),
}


def _with_ids(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    ids = CONTAINERS[public["ids"]]([record.unit for record in rows])
    return Opened(array_of(rows, shape), {"unit": ids})


def _list_with_ids(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:  # noqa: ARG001
    ids = CONTAINERS[public["ids"]]([record.unit for record in rows])
    return Opened(array_of(rows, shape).tolist(), {"unit": ids})


def _ids_form(container: str, kind: str, needs: tuple[str, ...] = ()) -> Form:
    return Form(
        f"unit ids in a {container}" if container[0] not in "aeiouA" else f"unit ids in an {container}",
        (Shape("double", 1, kind), Shape("double", 2, kind)),
        _with_ids,
        {"ids": (container,), "numpy errors": ("default", "raise")},
        needs,
    )


ARRAY_FORMS: tuple[Form, ...] = (
    Form(
        "numpy array",
        tuple(Shape(kind, d) for kind in ("double", "single", "integer", "unsigned", "truth") for d in (1, 2)),
        _numpy,
        {**ANY_ENTRY, "layout": ("rows", "columns", "strided", "foreign bytes", "one dimension", "read only")},
    ),
    Form("numpy array of objects", (Shape("object"), Shape("object", 2)), _object_array, ANY_ENTRY),
    Form("numpy structured array", (Shape("double", 2),), _structured, ANY_ENTRY, is_refused=True),
    Form(
        "list",
        (Shape("object", 1, None, True), Shape("object", 2, None, True), Shape("double"), Shape("integer", 2)),
        _list,
        {**ANY_ENTRY, "rows": ("lists", "tuples", "bare cells", "object arrays"), "outer": ("list",)},
    ),
    Form(
        "tuple",
        (Shape("object", 1, None, True), Shape("object", 2, None, True), Shape("double", 2)),
        _list,
        {**ANY_ENTRY, "rows": ("lists", "tuples", "bare cells"), "outer": ("tuple",)},
    ),
    Form("np.matrix", (Shape("double"), Shape("double", 2), Shape("integer", 2)), _matrix, ANY_ENTRY),
    Form(
        "numpy masked array",
        (Shape("double or missing"), Shape("double or missing", 2)),
        _masked,
        {**ANY_ENTRY, "under the mask": ("NaN", "a value"), "mask": ("always", "none if empty")},
    ),
    Form(
        "scipy sparse matrix",
        (Shape("double"), Shape("double", 2), Shape("integer", 2)),
        _sparse,
        {"format": ("csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array"), "numpy errors": ("raise",)},
        ("scipy",),
    ),
    _ids_form("list", "object"),
    _ids_form("tuple", "object"),
    _ids_form("object array", "object"),
    _ids_form("integer array", "integer"),
    _ids_form("unsigned array", "unsigned"),
    _ids_form("float array", "double"),
    _ids_form("text array", "text"),
    _ids_form("masked array", "integer or missing"),
    _ids_form("Arrow array", "text of any bytes", ("pyarrow",)),
    _ids_form("Arrow dictionary", "text of any bytes", ("pyarrow",)),
    Form(
        "list with ids in a list",
        (Shape("double", 1, "object"), Shape("double", 2, "object")),
        _list_with_ids,
        {"ids": ("list",), "numpy errors": ("default", "raise")},
    ),
)
"""Forms that need numpy alone, but for Arrow's arrays of ids."""
