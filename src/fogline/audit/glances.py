"""Whether anything that was read of a value has changed since: the cheap question before the dear one.

`fogline.audit.leaves.flatten` reads all that can be reached from a value and gives each leaf its path. Between two
looks at a process nearly all of it is the same *objects*. A `Glance` keeps what such a reading depended on, as far as
it can change: the items of a container, the names of a class, the attributes of an instance, the code, defaults and
cells of a function, the bytes of an array. `Glance.holds` compares by identity, never by equality (``True == 1`` and
``-0.0 == 0.0``), and keeps the objects alive, so that no new one can lie at an old address.

If it holds, reading again would give the same leaves. What cannot be compared this way (an object of another language,
a filled cache, a weak reference) makes the glance *blind*: it never holds, and its value is read again at every look.
So a glance saves time and loses nothing, except where memory of an immutable object is overwritten from outside Python.
"""

from __future__ import annotations

import array
import collections
import functools
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, is_
from typing import Any

import numpy as np

__all__ = ["CHANGEABLE", "Bindings", "Glance", "same_bindings", "same_items"]

CHANGEABLE = frozenset({bytearray, memoryview, array.array})
"""Kinds that have no parts but can change in place."""

_HEAP_TYPE = 1 << 9
_EMPTY = object()
_FUNCTION_PARTS = tuple(map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__", "__qualname__")))
_attributes = attrgetter("__dict__")
_STILL = (
    types.CodeType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    property,
    types.UnionType,
    types.GenericAlias,
)
"""Kinds whose parts are bound for good, and which have no attributes of their own."""

_BOUND_FOR_GOOD = (tuple, frozenset, staticmethod, classmethod, functools.partial)
"""Kinds whose parts are bound for good, besides attributes."""

_PLAIN_KEYS = frozenset({str, int, float, bool, bytes, type(None)})


def same_items(now: Iterable[Any], then: Iterable[Any]) -> bool:
    """Say whether two collections hold the same objects in the same order.

    Examples
    --------
    >>> same_items([1, None], (1, None)), same_items([True], [1]), same_items([], [1])
    (True, False, False)
    """
    one, other = list(now), list(then)
    return len(one) == len(other) and all(map(is_, one, other))


def same_bindings(now: Mapping[Any, Any], then: Mapping[Any, Any]) -> bool:
    """Say whether two mappings bind the same names, in the same order, to the same objects.

    Examples
    --------
    >>> same_bindings({"a": 1}, {"a": 1}), same_bindings({"a": 1}, {"b": 1})
    (True, False)
    """
    return len(now) == len(then) and same_items(now.values(), then.values()) and same_items(now, then)


class Bindings:
    """Names by which functions and classes were reached: those have a look of their own as long as these lead there."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], tuple[Any, Any]] = {}

    def note(self, value: object) -> None:
        """Remember each step from the module to a function or class."""
        name = str(getattr(value, "__module__", ""))
        holder: Any = sys.modules.get(name)
        self._found[0, name] = (None, holder)
        for part in str(getattr(value, "__qualname__", "")).split("."):
            below = getattr(holder, "__dict__", {}).get(part)
            self._found[id(holder), part] = (holder, below)
            holder = below

    def hold(self) -> bool:
        """Say whether every step leads where it led."""
        for (_, name), (holder, found) in self._found.items():
            around = sys.modules if holder is None else getattr(holder, "__dict__", {})
            if around.get(name) is not found:
                return False
        return True


class Glance:
    """What a reading of one value depended on.

    Parameters
    ----------
    bindings : Bindings, optional
        Shared by the glances of one look.

    Attributes
    ----------
    blind : bool
        Whether something was read that cannot be compared.

    Examples
    --------
    >>> from fogline.audit.leaves import flatten
    >>> value = {"a": [1, 2.0]}
    >>> glance = Glance()
    >>> flatten(value, "x", {}, glance=glance)
    >>> before = glance.holds()
    >>> value["a"][1] = -0.0
    >>> before, glance.holds()
    (True, False)
    """

    def __init__(self, bindings: Bindings | None = None) -> None:
        self.bindings = Bindings() if bindings is None else bindings
        self.blind = False
        self.known: set[int] = set()
        self.items: list[tuple[Any, tuple[Any, ...]]] = []
        self.objects: list[tuple[Any, type, dict[Any, Any]]] = []
        self.classes: list[tuple[type, dict[str, Any]]] = []
        # By columns, which are compared without a step of Python's interpreter per function: there are thousands.
        self.functions: list[types.FunctionType] = []
        self.parts: tuple[list[Any], ...] = tuple([] for _ in _FUNCTION_PARTS)
        self.without_attributes: list[types.FunctionType] = []
        self.cells: list[tuple[types.CellType, Any]] = []
        self.memory: list[tuple[Any, Any, Any]] = []
        self.caches: list[Any] = []
        self.slots: list[tuple[Any, str, Any]] = []

    def holds(self) -> bool:
        """Say whether all of it is as it was; never if the glance is blind."""
        return (
            not self.blind
            and not any(map(_attributes, self.without_attributes))
            and all(
                all(map(is_, map(part, self.functions), then))
                for part, then in zip(_FUNCTION_PARTS, self.parts, strict=True)
            )
            and all(
                type(value) is kind and same_bindings(_dictionary(value), then) for value, kind, then in self.objects
            )
            and all(same_bindings(vars(kind), then) for kind, then in self.classes)
            and all(same_items(value, items) for value, items in self.items)
            and all(_content(cell) is content for cell, content in self.cells)
            and all(getattr(value, name, _EMPTY) is content for value, name, content in self.slots)
            and all(read(value) == leaf for value, read, leaf in self.memory)
            and not any(cache.cache_info().currsize for cache in self.caches)
        )

    def add(self, other: Glance) -> None:
        """Take over all that another glance depends on."""
        self.blind |= other.blind
        self.items += other.items
        self.objects += other.objects
        self.classes += other.classes
        self.functions += other.functions
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs
        self.without_attributes += other.without_attributes
        self.cells += other.cells
        self.memory += other.memory
        self.caches += other.caches
        self.slots += other.slots

    def note_memory(self, value: object, read: Callable[[object], object], leaf: object) -> None:
        """Remember the leaf of an array or buffer, and how it is read."""
        self.memory.append((value, read, leaf))

    def note_function(self, value: types.FunctionType) -> None:
        """Remember a function's code, defaults, attributes and cells."""
        self.functions.append(value)
        for part, column in zip(_FUNCTION_PARTS, self.parts, strict=True):
            column.append(part(value))
        if value.__dict__:
            self._note_object(value)
        else:
            self.without_attributes.append(value)
        self.cells += [(cell, _content(cell)) for cell in value.__closure__ or ()]
        if value.__kwdefaults__:
            self._note_mapping(value.__kwdefaults__)

    def note(self, value: object, *, reduced: bool, known: bool) -> None:
        """Remember what a value with parts is made of; `reduced` if it was read as what it is pickled as."""
        if id(value) in self.known:
            return
        self.known.add(id(value))
        kind = type(value)
        for base in kind.__mro__:
            if base.__flags__ & _HEAP_TYPE:
                self.bindings.note(base)
        if isinstance(value, types.FunctionType):
            self.bindings.note(value)
            self.note_function(value)
        elif isinstance(value, type):
            if value.__flags__ & _HEAP_TYPE:
                self.bindings.note(value)
                self.classes.append((value, dict(vars(value))))
        elif isinstance(value, functools._lru_cache_wrapper):
            self.bindings.note(value)
            self.caches.append(value)
            self.blind |= value.cache_info().currsize > 0
            self._note_object(value)
        elif kind is dict:
            self._note_mapping(value)  # type: ignore[arg-type]
        elif kind in (list, set, collections.deque):
            self.items.append((value, tuple(value)))  # type: ignore[arg-type]
        elif kind is types.CellType:
            self.cells.append((value, _content(value)))  # type: ignore[arg-type]
        elif kind is np.ndarray:
            self.blind |= value.dtype.hasobject or value.dtype.metadata is not None  # type: ignore[attr-defined]
        elif isinstance(value, _BOUND_FOR_GOOD) or not (known or reduced):
            self._note_object(value)
        elif kind not in _STILL and not (isinstance(value, np.dtype) and value.metadata is None):
            self.blind = True

    def _note_object(self, value: object) -> None:
        self.objects.append((value, type(value), dict(_dictionary(value))))
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name.startswith("__") and not name.endswith("__"):
                    self.blind = True  # a mangled name: rare enough to be read each time
                elif name not in ("__dict__", "__weakref__"):
                    self.slots.append((value, name, getattr(value, name, _EMPTY)))

    def _note_mapping(self, value: dict[Any, Any]) -> None:
        # Other keys are shown by their repr, which may change while they do not.
        self.blind |= not all(type(key) in _PLAIN_KEYS for key in value)
        self.items += [(value, tuple(value)), (value.values(), tuple(value.values()))]


def _dictionary(value: object) -> dict[str, Any]:
    found = getattr(value, "__dict__", None)
    return found if isinstance(found, dict) else {}


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # still empty
        return _EMPTY
