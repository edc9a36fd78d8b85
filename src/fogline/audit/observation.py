"""Everything that a run lets out: its result to the last bit, and what it says, writes, logs and raises.

`observe` runs a function on data in a fresh directory and keeps what somebody could see of it. `differences`
says in words where two observations differ: it names the place, not what was found there.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import pickle
import re
import struct
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Observation", "differences", "flatten", "observe"]

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_DEEPEST = 60


@dataclass
class Observation:
    """What one run let out.

    Attributes
    ----------
    result : object
        What the function returned, None if it raised.
    state : dict
        Every leaf that can be reached from the result, by its path.
    pickled : bytes
        The pickle of the result, or the name of the error that pickling it raises.
    text : str
        Its repr and str.
    exception : tuple
        Type and message of what was raised, and of its causes and contexts.
    logs, caught : list
        Log records, at any level, and warnings.
    output : str
        What went to stdout and stderr.
    files : dict
        Content of each file in the working and in the temporary directory.
    globals : bytes
        State of numpy's global generator afterwards.
    """

    result: Any = None
    state: dict[str, Any] = field(default_factory=dict)
    pickled: bytes = b""
    text: str = ""
    exception: tuple[tuple[str, str], ...] = ()
    logs: list[tuple[str, int, str]] = field(default_factory=list)
    caught: list[tuple[str, str]] = field(default_factory=list)
    output: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    globals: bytes = b""


def observe(function: Callable[[Any], Any], data: Any) -> Observation:
    r"""Run ``function(data)`` and keep what can be seen of it from outside; an exception is kept, not raised.

    Examples
    --------
    >>> seen = observe(lambda data: print("rows:", len(data)), [1, 2, 3])
    >>> seen.output
    'rows: 3\n'
    """
    seen = Observation()
    output = io.StringIO()
    with (
        _own_directory() as folder,
        _captured_logs(seen.logs),
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        warnings.simplefilter("always")
        try:
            seen.result = function(data)
        except Exception as error:
            seen.exception = tuple(_chain(error))
        seen.files = {
            str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
            for path in sorted(folder.rglob("*"))
        }
    seen.caught = [(warning.category.__name__, str(warning.message)) for warning in caught]
    seen.output = output.getvalue()
    seen.globals = pickle.dumps(np.random.get_state())
    if not seen.exception:
        _look_at_result(seen)
    return seen


def _look_at_result(seen: Observation) -> None:
    flatten(seen.result, "result", seen.state)
    seen.text = _ADDRESS.sub("0x", f"{seen.result!r}\n{seen.result!s}")
    try:
        seen.pickled = pickle.dumps(seen.result, protocol=5)
    except Exception as error:
        seen.pickled = f"{type(error).__name__}: {_ADDRESS.sub('0x', str(error))}".encode()


def differences(first: Observation, second: Observation) -> list[str]:
    """Say where two observations differ, by the names of the places.

    Examples
    --------
    >>> differences(observe(lambda n: {"count": n}, 3), observe(lambda n: {"count": n}, 4))[0]
    "result['count'] differs"
    """
    found: list[str] = []
    if first.exception != second.exception:
        names = [seen.exception[0][0] if seen.exception else "none" for seen in (first, second)]
        where = f": {names[0]} and {names[1]}" if names[0] != names[1] else " in its message or cause"
        found.append(f"the exception raised differs{where}")
    else:
        paths = {**first.state, **second.state}
        wrong = [path for path in paths if first.state.get(path) != second.state.get(path)]
        found += [f"{path} differs" for path in wrong[:5]]
        if len(wrong) > 5:
            found.append(f"... and {len(wrong) - 5} more places of the result")
        if first.pickled != second.pickled:
            found.append("the pickle differs")
        if first.text != second.text:
            found.append("the repr or str differs")
    parts = {
        "log records": (first.logs, second.logs),
        "warnings": (first.caught, second.caught),
        "printed text": (first.output, second.output),
        "files written": (first.files, second.files),
        "numpy's global generator": (first.globals, second.globals),
    }
    return found + [f"{name}: not the same" for name, (a, b) in parts.items() if a != b]


# -- the world around a run ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _own_directory() -> Iterator[Path]:
    """Work in a fresh directory that is also where temporary files go."""
    before, temporary = Path.cwd(), tempfile.tempdir
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "tmp").mkdir()
        os.chdir(folder)
        tempfile.tempdir = str(folder / "tmp")
        try:
            yield folder
        finally:
            tempfile.tempdir = temporary
            os.chdir(before)


@contextlib.contextmanager
def _captured_logs(records: list[tuple[str, int, str]]) -> Iterator[None]:
    """Keep every log record that is made, at any level, wherever it is handled."""
    factory, level, disabled = logging.getLogRecordFactory(), logging.root.level, logging.root.manager.disable

    def keep(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = factory(*args, **kwargs)
        records.append((record.name, record.levelno, record.getMessage()))
        return record

    logging.setLogRecordFactory(keep)
    logging.root.setLevel(logging.NOTSET + 1)
    logging.disable(logging.NOTSET)
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
        logging.root.setLevel(level)
        logging.disable(disabled)


def _chain(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """Type and message of an error and of all that stands behind it, shown or not."""
    known: set[int] = set()
    while error is not None and id(error) not in known:
        known.add(id(error))
        notes = "".join(getattr(error, "__notes__", []))
        yield type(error).__name__, _ADDRESS.sub("0x", f"{error}{notes}")
        error = error.__cause__ or error.__context__


# -- every leaf of an object ---------------------------------------------------------------------------------


def flatten(value: Any, path: str, leaves: dict[str, Any], *, _above: tuple[int, ...] = ()) -> None:
    """Write every leaf that can be reached from `value` into `leaves`, by its path and to the last bit.

    Containers, attributes (private ones and slots too), arrays of objects, closures, defaults and partial
    arguments are followed; arrays and floats are kept as bytes, so that -0.0 and the bits of a NaN count.

    Examples
    --------
    >>> leaves = {}
    >>> flatten({"a": [1, 2.0]}, "x", leaves)
    >>> list(leaves)
    ['x', "x['a']", "x['a'][0]", "x['a'][1]"]
    """
    if id(value) in _above or len(_above) > _DEEPEST:
        leaves[path] = ("cycle", type(value).__name__)
        return
    leaf = _leaf(value)
    if leaf is not None:
        leaves[path] = leaf
        return
    children = list(_children(value))
    leaves[path] = (type(value).__qualname__, [name for name, _ in children])
    if not children and not _is_container(value):
        leaves[path] = (type(value).__qualname__, _ADDRESS.sub("0x", repr(value)))
    for name, child in children:
        flatten(child, path + name, leaves, _above=(*_above, id(value)))


def _leaf(value: Any) -> Any:
    """Return what identifies a value without parts, or None."""
    if value is None or isinstance(value, bool | int | str | bytes | bytearray):
        return (type(value).__name__, bytes(value) if isinstance(value, bytearray) else value)
    if isinstance(value, float | complex):
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        return (type(value).__name__, struct.pack(f"<{len(parts)}d", *parts))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str, value.tobytes())
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.dtype | np.ufunc):
        return (type(value).__name__, _ADDRESS.sub("0x", str(value)))
    return None


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray) or hasattr(value, "__dict__")


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """Give the parts of a value with the text by which one reaches each."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((f"{{{i}}}", item) for i, item in enumerate(sorted(value, key=repr)))
    elif isinstance(value, np.ndarray):
        yield from ((f"[{i}]", item) for i, item in enumerate([value.shape, *value.ravel().tolist()]))
    elif isinstance(value, np.random.Generator):
        yield ".state", value.bit_generator.state
    elif isinstance(value, types.MethodType):
        yield from ((".__func__", value.__func__), (".__self__", value.__self__))
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, types.FunctionType):
        yield ".__code__", f"{value.__module__}.{value.__qualname__}"
        yield from ((".__defaults__", value.__defaults__), (".__kwdefaults__", value.__kwdefaults__))
        for i, cell in enumerate(value.__closure__ or ()):
            with contextlib.suppress(ValueError):  # a cell that is still empty
                yield f".__closure__[{i}]", cell.cell_contents
    yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Give the attributes in the instance's dictionary and in the slots of its classes."""
    yield from ((f".{name}", item) for name, item in getattr(value, "__dict__", {}).items())
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield f".{name}", getattr(value, name)
