"""Every leaf of an object: all that can be reached from it inside this process, to the last bit.

Attributes (private ones, slots and those of subclasses of arrays and numbers too), containers, the memory behind a
view, closures, defaults, constants and attributes of functions, classes with what hangs on them, cached results,
generators with their local variables, weak references, tracebacks: a name that begins with an underscore hides nothing.

What cannot be looked into is *opaque*. An opaque leaf could hold anything, so that an audit counts it as a failure,
unless its type is in `ALLOWED_OPAQUE`.
"""

from __future__ import annotations

import array
import collections
import contextlib
import copyreg
import functools
import gc
import hashlib
import io
import re
import struct
import sys
import sysconfig
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import SuperLU

from fogline.audit.glances import CHANGEABLE, Glance

__all__ = [
    "ADDRESS",
    "ALLOWED_OPAQUE",
    "SKIPPED",
    "Apart",
    "digest",
    "flatten",
    "is_constant",
    "is_fixed",
    "is_own_code",
    "opaque_paths",
]

ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
"""Where an object lies in memory: says nothing about data."""

ALLOWED_OPAQUE = {
    "_thread.lock": "a lock is taken or free, and holds nothing else",
    "_thread.RLock": "a lock is taken or free, and holds nothing else",
    "_contextvars.ContextVar": "the name of a value; the values in use are compared by `fogline.audit.surroundings`",
    "functools.KeyWrapper": "how to compare, for the time of a sort",
    "__future__": "how a module is compiled",
    "typing": "a type, for type checkers",
    "opendp": "a sampler or a privacy map of public parameters, behind a handle of another language",
    "numba": "compiled code, which keeps no arguments",
    "llvmlite": "compiled code, which keeps no arguments",
    "hypothesis": "how a property test draws its examples: state of a test tool, which no fit is given",
}
"""Types, or whole packages of types, that cannot be looked into and need not be, each with the reason."""

_OPAQUE = "opaque"
_DEEPEST = 60
_LONGEST = 4096
_HEADER = object.__basicsize__
SKIPPED = {
    "__dict__", "__weakref__", "_abc_impl", "__doc__", "__module__", "__qualname__", "__annotations__",
    "__dataclass_fields__", "__dataclass_params__", "__parameters__", "__orig_bases__", "__match_args__",
    "__abstractmethods__", "__slotnames__", "_sklearn_auto_wrap_output_keys",
}  # fmt: skip
_BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    types.GenericAlias,
    np.ufunc,
    types.ModuleType,
)
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
"""Functions of another language, which may be bound to an object."""


Leaf: TypeAlias = tuple[Any, ...]
"""What identifies a value without parts: the name of its type first."""


def _owner(value: types.BuiltinFunctionType | types.MethodWrapperType) -> list[Any]:
    """Return the object that a built-in function is bound to, in a list, or an empty list."""
    owner = value.__self__
    return [] if owner is None or isinstance(owner, types.ModuleType | type) else [owner]


def flatten(
    value: object,
    path: str,
    leaves: dict[str, Any],
    *,
    met: set[int] | None = None,
    glance: Glance | None = None,
    _above: tuple[int, ...] = (),
) -> None:
    """Write every leaf that can be reached from `value` into `leaves`, by its path and to the last bit.

    Arrays and floats are kept as bytes, so that -0.0 and the bits of a NaN count. Functions and classes are looked into
    where they are met first.

    Parameters
    ----------
    value : object
    path : str
        By which one reaches it.
    leaves : dict
        Written to.
    met : set of int, optional
        Functions and classes that were looked into before.
    glance : Glance, optional
        Told what the leaves depend on.

    Examples
    --------
    >>> leaves = {}
    >>> flatten({"a": [1, 2.0]}, "x", leaves)
    >>> list(leaves)
    ['x', "x['a']", "x['a'][0]", "x['a'][1]"]
    """
    kind = type(value)
    if kind in _PLAIN:
        leaves[path] = (kind.__name__, value)
        return
    if kind is float:
        leaves[path] = ("float", _AS_BYTES(value))
        return
    if glance is None and type(value) is np.ndarray and _stands_alone(value):
        leaves[path] = ("ndarray", _leaf(value), [])
        return
    known: set[int] = set() if met is None else met
    if isinstance(known, Apart) and isinstance(value, types.FunctionType) and _is_bare(value):
        leaves[path] = ("function", value.__qualname__)
        if glance is not None:
            glance.note_function(value)
        return
    # A cycle is named by the place that it leads back to, which is the same for equal shapes.
    if id(value) in _above:
        leaves[path] = ("cycle", type(value).__name__, _above.index(id(value)))
        return
    leaf = _leaf(value)
    if glance is not None and (type(value) in CHANGEABLE or isinstance(value, np.ndarray)):
        glance.note_memory(value, _leaf, leaf)
    if leaf is not None and type(value) in _CLOSED:
        leaves[path] = leaf
        return
    if len(_above) > _DEEPEST:
        leaves[path] = (_OPAQUE, "something nested too deeply")
        return
    name = _type_name(value)
    if name in ALLOWED_OPAQUE or name.split(".")[0] in ALLOWED_OPAQUE:
        leaves[path] = ("allowed", name)
        return
    if glance is None and isinstance(value, type) and not isinstance(known, Apart) and _has_a_name(value):
        if id(value) in known:
            leaves[path] = (kind.__qualname__, leaf, [])
        else:
            known.add(id(value))
            leaves.update((path + below, one) for below, one in _class_leaves(value).items())
        return
    children = _children(value, known)
    if children is None:
        if glance is not None:
            glance.blind = True
        leaves[path] = (_OPAQUE, name)
        return
    listed = list(children)
    if glance is not None and type(value) not in _IMMUTABLE:
        reduced = bool(listed) and listed[-1][0] == ".__reduce__()"
        glance.note(value, reduced=reduced, known=isinstance(value, _KINDS))
    leaves[path] = (type(value).__qualname__, leaf, [name for name, _ in listed])
    above = (*_above, id(value))
    for name, child in listed:
        flatten(child, path + name, leaves, met=known, glance=glance, _above=above)


_CLASSES: dict[int, tuple[type, dict[str, Any], Glance]] = {}
"""Classes that have been read, with their leaves and what these depend on."""


def _class_leaves(value: type) -> dict[str, Any]:
    """Return the leaves of a class by their paths from it, read anew if anything has changed since the last time.

    Every result of an estimator leads to its classes, whose code is most of what there is to read of a small result.
    """
    last = _CLASSES.get(id(value))
    if last is None or not last[2].holds():
        last = _CLASSES[id(value)] = (value, {}, Glance())
        flatten(value, "", last[1], met=set(), glance=last[2])
    return {**last[1], "": (type(value).__qualname__, _leaf(value), last[1][""][2])}


class Apart(set[int]):
    """What was met in a look at one name of a module: functions and classes with names of their own are apart."""


def is_constant(value: object) -> bool:
    """Say whether a value is a number, a text or the like, which can neither change nor be given attributes.

    Examples
    --------
    >>> [is_constant(value) for value in (1.5, "a", bytearray(), (1, 2), max)]
    [True, True, False, False, False]
    """
    return type(value) in _CLOSED and type(value) not in CHANGEABLE


def is_fixed(value: object) -> bool:
    """Say whether a value cannot change in place: a number, a text, a function that holds nothing but its code.

    Examples
    --------
    >>> [is_fixed(value) for value in (1.5, "a", len, [1])]
    [True, True, True, False]
    """
    if is_constant(value) or (isinstance(value, _BOUND) and not _owner(value)):
        return True
    if isinstance(value, types.FunctionType):
        return _is_bare(value)
    if isinstance(value, staticmethod | classmethod) and type(value) in (staticmethod, classmethod):
        return is_fixed(value.__func__)
    if type(value) is property:
        return all(is_fixed(part) for part in (value.fget, value.fset, value.fdel))
    if isinstance(value, tuple | frozenset) and type(value) in (tuple, frozenset):
        return all(is_fixed(item) for item in value)
    if type(value) in _IMMUTABLE or type(value).__module__ in ("typing", "__future__"):
        return True
    frozen = getattr(getattr(type(value), "__dataclass_params__", None), "frozen", False)
    return bool(frozen) and all(is_fixed(item) for item in _dictionary(value).values())


def _is_bare(value: types.FunctionType) -> bool:
    """Say whether a function holds nothing but its code; a cell may be bound to something else at any time."""
    defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    contained = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
    return (
        not value.__dict__
        and all(is_constant(item) or isinstance(item, type) for item in defaults)
        and all(isinstance(item, type) for item in contained)
    )


def _has_a_name(value: object) -> bool:
    """Say whether a function or class can be reached by its name in its module."""
    found: Any = sys.modules.get(str(getattr(value, "__module__", "")))
    for part in str(getattr(value, "__qualname__", "")).split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found is value or getattr(found, "__func__", found) is value


def opaque_paths(leaves: Mapping[str, Any]) -> list[str]:
    """Return the paths of leaves that cannot be looked into, each with its type.

    Examples
    --------
    >>> leaves = {}
    >>> flatten({"handle": iter(memoryview(b"a"))}, "x", leaves)
    >>> opaque_paths(leaves)
    ["x['handle'] (memory_iterator)"]
    """
    return [
        f"{path} ({leaf[1].removeprefix('builtins.')})"
        for path, leaf in leaves.items()
        if isinstance(leaf, tuple) and leaf[:1] == (_OPAQUE,)
    ]


def digest(leaves: Mapping[str, Any]) -> str:
    """Return one text for all leaves below a value, whatever it is called.

    Examples
    --------
    >>> digest({"x": 1}) == digest({"x": 1}), digest({"x": 1}) == digest({"x": 2})
    (True, False)
    """
    return hashlib.blake2b(repr(sorted(leaves.items(), key=lambda item: item[0])).encode(), digest_size=16).hexdigest()


# -- leaves --------------------------------------------------------------------------------------------------

_CLOSED = frozenset(
    {type(None), bool, int, str, bytes, bytearray, float, complex, type(Ellipsis), type(NotImplemented), range, slice}
    | {
        memoryview,
        array.array,
        *(kind for kind in _BUILT_IN if kind not in _BOUND),
        *(np.dtype(code).type for code in "?bhilqBHILQefdgFDGSU"),
    }
)
"""Types whose leaf is all there is; a subclass of one may have attributes besides."""


_PLAIN = frozenset({int, str, bool, type(None)})
"""The most frequent leaves, which are kept as they are."""

_AS_BYTES = struct.Struct("<1d").pack

_IMMUTABLE = frozenset({Fraction, Decimal, re.Pattern, type(Path()), types.UnionType, types.GenericAlias})


def _leaf(value: object) -> Leaf | None:
    """Return what identifies a value without parts, or None."""
    if value is None or isinstance(value, bool | int | str | range | slice):
        derived = isinstance(value, int | str) and type(value) not in _CLOSED
        return (type(value).__name__, _plain(value) if derived else value)
    if isinstance(value, bytes | bytearray | memoryview | array.array):
        return (type(value).__name__, _short(bytes(value)))
    if isinstance(value, float | complex):
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        # As bytes: -0.0 equals 0.0 and a NaN equals nothing, but their bits can carry a secret.
        return (type(value).__name__, struct.pack(f"<{len(parts)}d", *parts))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return ("array", _dtype_name(value.dtype), value.shape, _short(np.asarray(value).tobytes()))
    if isinstance(value, np.generic):
        return ("scalar", _dtype_name(value.dtype), value.tobytes())
    if isinstance(value, (type, *_BUILT_IN, np.dtype, type(Ellipsis), type(NotImplemented))):
        return (type(value).__name__, ADDRESS.sub("0x", str(value)))
    return None


def _dtype_name(dtype: np.dtype[Any]) -> str:
    """Return what tells one type of array from another; numpy takes long to write one out."""
    return dtype.str if dtype.isbuiltin == 1 else str(dtype)


def _stands_alone(value: NDArray[Any]) -> bool:
    """Say whether an array is no view, and holds numbers and nothing else."""
    return value.base is None and value.dtype.isbuiltin == 1 and not value.dtype.hasobject


def _plain(value: object) -> int | str:
    """Return an instance of a subclass of int or str as what it is underneath."""
    return int(value) if isinstance(value, int) else str.__str__(value)


def _short(content: bytes) -> bytes | tuple[int, str]:
    """Return bytes, or their length and digest where they are many."""
    if len(content) <= _LONGEST:
        return content
    return (len(content), hashlib.blake2b(content, digest_size=16).hexdigest())


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


# -- parts ---------------------------------------------------------------------------------------------------

Parts = Iterator[tuple[str, Any]]


def _children(value: object, met: set[int]) -> Iterable[tuple[str, Any]] | None:
    """Return the parts of a value with the text by which one reaches each; None if it cannot be looked into."""
    if type(value) in _PLAIN_CONTAINERS:
        return list(_PLAIN_CONTAINERS[type(value)](value))
    for kinds, parts in _KNOWN:
        if isinstance(value, kinds):
            if isinstance(value, _ONCE):
                if id(value) in met or (isinstance(met, Apart) and met and _has_a_name(value)):
                    return ()
                met.add(id(value))
            return [*parts(value), *(() if isinstance(value, type) else _attributes(value, met))]
    attributes = list(_attributes(value, met))
    if _leaf(value) is not None or not _has_hidden_fields(value):
        return attributes
    reduced = _reduced(value)
    return None if reduced is None else [*attributes, (".__reduce__()", reduced)]


def _attributes(value: object, met: set[int]) -> Parts:
    """Give the attributes in the instance's dictionary and in the slots of its classes, and what its classes hold."""
    yield from ((f".{name}", item) for name, item in list(_dictionary(value).items()))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = (
                f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            )
            if name not in ("__dict__", "__weakref__") and hasattr(value, mangled):
                yield f".{name}", getattr(value, mangled)
        if base.__flags__ & _HEAP_TYPE and id(base) not in met and not (isinstance(met, Apart) and _has_a_name(base)):
            yield f".__class__({base.__name__})", base


def _dictionary(value: object) -> dict[str, Any]:
    found = getattr(value, "__dict__", None)
    return found if isinstance(found, dict) else {}


_HEAP_TYPE = 1 << 9
"""The flag of a class that was made at run time, and so can be given attributes."""


def _class_parts(value: type) -> Parts:
    """Give what hangs on a class: everything, or for a class of another package all but its code."""
    if not value.__flags__ & _HEAP_TYPE or str(value.__module__).split(".")[0] in sys.stdlib_module_names:
        return
    at_home = is_own_code(str(value.__module__))
    for name, item in list(value.__dict__.items()):
        if name not in SKIPPED and (at_home or not isinstance(item, _CODE)):
            yield f".{name}", item


@functools.lru_cache(maxsize=4096)
def is_own_code(module: str) -> bool:
    """Say whether a module belongs to fogline or to the user, and not to Python or to an installed package.

    Examples
    --------
    >>> [is_own_code(name) for name in ("fogline.releases", "numpy", "json", "__main__")]
    [True, False, False, True]
    """
    first = module.split(".")[0]
    if first in ("fogline", "__main__"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    installed = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")]
    return first not in sys.stdlib_module_names and not any(str(file).startswith(folder) for folder in installed)


def _mapping_parts(value: Mapping[Any, Any]) -> Parts:
    for number, (key, item) in enumerate(list(value.items())):
        if isinstance(key, str | int | float | bytes | tuple | type(None)):
            yield f"[{ADDRESS.sub('0x', repr(key))}]", item
        else:
            yield f"[key {number}]", key
            yield f"[item {number}]", item


def _set_parts(value: Iterable[Any]) -> Parts:
    ordered = sorted(value, key=lambda item: ADDRESS.sub("0x", repr(item)))
    yield from ((f"{{{number}}}", item) for number, item in enumerate(ordered))


def _list_parts(value: Iterable[Any]) -> Parts:
    yield from ((f"[{number}]", item) for number, item in enumerate(list(value)))


def _array_parts(value: NDArray[Any]) -> Parts:
    """Give the objects of an array, the memory that it is a view of, and what its type carries along."""
    if value.dtype.hasobject:
        listed = value.ravel().tolist() if value.dtype == object else [str(value.dtype), *value.ravel().tolist()]
        yield from ((f"[{number}]", item) for number, item in enumerate([value.shape, *listed]))
    # An array may show three numbers and hold on to the memory of all records.
    if value.base is not None:
        yield ".base", value.base
    if value.dtype.metadata is not None:
        yield ".dtype.metadata", dict(value.dtype.metadata)


def _function_parts(value: types.FunctionType) -> Parts:
    yield ".__code__", value.__code__
    handle: Any = value.__dict__.get("hypothesis")
    if type(handle).__module__.startswith("hypothesis."):
        # Around a property test lies the tool's machinery: what it holds varies with its version and from run to run.
        yield ".hypothesis.inner_test", handle.inner_test
        return
    yield from ((".__defaults__", value.__defaults__), (".__kwdefaults__", value.__kwdefaults__))
    for number, cell in enumerate(value.__closure__ or ()):
        with contextlib.suppress(ValueError):  # a cell that is still empty
            yield f".__closure__[{number}]", cell.cell_contents


def _code_parts(value: types.CodeType) -> Parts:
    yield ".co_qualname", f"{value.co_filename}:{value.co_qualname}"
    yield ".co_code", value.co_code
    yield ".co_consts", value.co_consts


def _frame_parts(value: types.FrameType) -> Parts:
    yield ".f_code", value.f_code.co_qualname
    yield from ((f".f_locals[{name!r}]", item) for name, item in list(value.f_locals.items()))


def _generator_parts(value: object) -> Parts:
    """Give the local variables of what stands still in the middle of its work."""
    prefix = {types.GeneratorType: "gi", types.CoroutineType: "cr"}.get(type(value), "ag")
    frame = getattr(value, f"{prefix}_frame")
    yield f".{prefix}_code", getattr(value, f"{prefix}_code").co_qualname
    yield from () if frame is None else ((f".{prefix}_frame", frame),)


def _exception_parts(value: BaseException) -> Parts:
    for name in ("args", "__cause__", "__context__", "__traceback__"):
        yield f".{name}", getattr(value, name)


def _cache_parts(value: functools._lru_cache_wrapper[Any]) -> Parts:
    """Give what a cache of results holds, in an order of its own: keys and results, as the collector sees them."""
    yield ".__wrapped__", value.__wrapped__
    known = Apart({id(value), id(value.__wrapped__)})
    contained: set[str] = set()
    # A cache does not show its entries; the garbage collector sees them.
    for item in gc.get_referents(value):
        if item is value.__wrapped__ or item is value.__dict__ or isinstance(item, type):
            continue
        if isinstance(item, dict) and any(type(entry).__name__ == "_lru_list_elem" for entry in item.values()):
            continue  # the same entries once more
        below: dict[str, Any] = {}
        if not isinstance(item, _ONCE):
            flatten(item, "", below, met=Apart(known))
        contained.add(digest(below))
    yield ".cache", sorted(contained)


def _reference_parts(value: weakref.ReferenceType[Any]) -> Parts:
    yield "()", value()


def _factor_parts(value: SuperLU) -> Parts:
    """Give the factors of a sparse matrix, as copies: behind scipy's own there is memory that was never written."""
    for name in ("L", "U"):
        factor = getattr(value, name)
        yield f".{name}", tuple(part.copy() for part in (factor.data, factor.indices, factor.indptr))
    yield from ((f".{name}", getattr(value, name).copy()) for name in ("perm_r", "perm_c"))


def _random_parts(
    value: np.random.Generator | np.random.BitGenerator | np.random.RandomState | np.random.SeedSequence,
) -> Parts:
    if isinstance(value, np.random.RandomState):
        yield ".get_state()", value.get_state()
    elif isinstance(value, np.random.SeedSequence):
        yield ".state", value.state
    else:
        bits = value.bit_generator if isinstance(value, np.random.Generator) else value
        yield ".state", bits.state
        yield ".seed_seq", bits.seed_seq


def _named(*names: str) -> Callable[[object], Parts]:
    return lambda value: ((f".{name}", getattr(value, name)) for name in names)


_KNOWN: tuple[tuple[Any, Any], ...] = (
    (type, _class_parts),
    (np.ndarray, _array_parts),
    (np.dtype, lambda value: () if value.metadata is None else ((".metadata", dict(value.metadata)),)),
    (Mapping, _mapping_parts),
    ((list, tuple, collections.deque), _list_parts),
    ((set, frozenset, weakref.WeakSet), _set_parts),
    (types.FunctionType, _function_parts),
    (types.CodeType, _code_parts),
    (_BOUND, lambda value: ((".__self__", owner) for owner in _owner(value))),
    (types.MethodType, _named("__func__", "__self__")),
    (functools.partial, _named("func", "args", "keywords")),
    (functools._lru_cache_wrapper, _cache_parts),
    ((types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType), _generator_parts),
    (types.FrameType, _frame_parts),
    (types.TracebackType, _named("tb_frame", "tb_lineno", "tb_next")),
    (BaseException, _exception_parts),
    (types.CellType, lambda value: ((".cell_contents", value.cell_contents),) if _filled(value) else ()),
    (property, _named("fget", "fset", "fdel")),
    ((staticmethod, classmethod), _named("__func__")),
    (weakref.ReferenceType, _reference_parts),
    # Its dictionary is the one of this thread: the threads that a run leaves behind are failures of their own.
    (threading.local, lambda _: ()),
    ((io.StringIO, io.BytesIO), lambda value: ((".getvalue()", value.getvalue()),)),
    (SuperLU, _factor_parts),
    (
        (np.random.Generator, np.random.BitGenerator, np.random.RandomState, np.random.SeedSequence),
        _random_parts,
    ),
)
"""Kinds of objects, each with a function that gives the parts; the first that fits is used."""

_KINDS: tuple[Any, ...] = tuple(
    kind for kinds, _ in _KNOWN for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
)

_PLAIN_CONTAINERS: dict[type, Callable[[Any], Parts]] = {
    dict: _mapping_parts,
    list: _list_parts,
    tuple: _list_parts,
    set: _set_parts,
    frozenset: _set_parts,
    types.CodeType: _code_parts,
}
"""The most frequent kinds, which have no attributes besides their parts."""

_CODE = (*_BUILT_IN, type, types.FunctionType, property, staticmethod, classmethod, functools.cached_property)

_ONCE = (type, types.FunctionType, functools._lru_cache_wrapper)


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


# -- what is written in another language ---------------------------------------------------------------------


def _has_hidden_fields(value: object) -> bool:
    """Say whether an object is larger than its header and its slots, so that it holds what no attribute shows."""
    if any(not base.__flags__ & _HEAP_TYPE and base.__basicsize__ > _HEADER for base in type(value).__mro__):
        return True
    slots = 0
    for base in type(value).__mro__:
        names = base.__dict__.get("__slots__", ())
        slots += 1 if isinstance(names, str) else len(tuple(names))
    pointer = struct.calcsize("P")
    # Two pointers more: a dictionary and a list of weak references.
    return type(value).__basicsize__ > _HEADER + pointer * (slots + 2) or type(value).__itemsize__ > 0


def _reduced(value: object) -> object:
    """Return what an object would be pickled as, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            special = copyreg.dispatch_table.get(type(value))
            reduced: object = value.__reduce_ex__(4) if special is None else special(value)
    except Exception:
        return None
    if isinstance(reduced, str):
        return reduced
    if not isinstance(reduced, tuple):
        return None
    return [list(part) if isinstance(part, Iterator) else part for part in reduced]
