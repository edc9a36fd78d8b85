"""Whether anything that was read of a value has changed since: the cheap question before the dear one.

`fogline.audit.leaves.flatten` reads all that can be reached from a value and gives each leaf its path. Between two
looks at a process nearly all of it is the same *objects*. A `Glance` keeps what such a reading depended on, as far as
it can change: the items of a container, the names of a class, the attributes of an instance, the code, defaults and
cells of a function, the bytes of an array. `Glance.holds` compares by identity, never by equality (``True == 1`` and
``-0.0 == 0.0``), and keeps the objects alive, so that no new one can lie at an old address.

If it holds, reading again would give the same leaves. What cannot be compared this way (an object of another language,
a filled cache, a weak reference) makes the glance *blind*: it never holds, and its value is read again at every look.
So a glance saves time and loses nothing, except where memory of an immutable object is overwritten from outside Python.

A process holds some 100 000 such objects and is looked at three times per pair of neighbours. So they are kept in
columns, which are compared without a step of Python's interpreter per object.
"""

from __future__ import annotations

import array
import collections
import functools
import struct
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, repeat
from operator import attrgetter, eq, is_, methodcaller
from typing import Any

import numpy as np

__all__ = ["CHANGEABLE", "Bindings", "Collections", "Glance", "Mappings", "same_bindings", "same_items"]

CHANGEABLE = frozenset({bytearray, memoryview, array.array})
"""Kinds that have no parts but can change in place."""

_HEAP_TYPE = 1 << 9
_EMPTY = object()
_FUNCTION_PARTS = tuple(map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__", "__qualname__")))
_attributes = attrgetter("__dict__")
_contents = attrgetter("cell_contents")
_values = methodcaller("values")
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
_SHOWN_KEYS = (str, int, float, bytes, tuple)
"""Kinds of keys that `fogline.audit.leaves` shows by their repr, and does not look into."""


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
    return len(now) == len(then) and all(map(is_, now.values(), then.values())) and all(map(is_, now, then))


class Collections:
    """Lists, sets and the like with what they held.

    Examples
    --------
    >>> kept, value = Collections(), [1, 2]
    >>> kept.note(value)
    >>> before = kept.hold()
    >>> value.append(3)
    >>> before, kept.hold()
    (True, False)
    """

    def __init__(self) -> None:
        self.live: list[Collection[Any]] = []
        self.sizes: list[int] = []
        self.items: list[Any] = []

    def note(self, value: Collection[Any]) -> None:
        """Remember what a collection holds."""
        self.live.append(value)
        self.sizes.append(len(value))
        self.items.extend(value)

    def add(self, other: Collections) -> None:
        """Take over what another one remembers."""
        self.live += other.live
        self.sizes += other.sizes
        self.items += other.items

    def hold(self) -> bool:
        """Say whether each collection holds the same objects in the same order."""
        # Sizes first: with them equal, one comparison from end to end is one of each collection.
        return all(map(eq, map(len, self.live), self.sizes)) and all(
            map(is_, chain.from_iterable(self.live), self.items)
        )


class Mappings:
    """Mappings with what they bound.

    Examples
    --------
    >>> kept, value = Mappings(), {"a": 1}
    >>> kept.note(value)
    >>> before = kept.hold()
    >>> value["a"] = True
    >>> before, kept.hold()
    (True, False)
    """

    def __init__(self) -> None:
        self.keys = Collections()
        self.values: list[Any] = []

    def note(self, value: Mapping[Any, Any]) -> None:
        """Remember what a mapping binds."""
        self.keys.note(value)
        self.values.extend(value.values())

    def add(self, other: Mappings) -> None:
        """Take over what another one remembers."""
        self.keys.add(other.keys)
        self.values += other.values

    def hold(self) -> bool:
        """Say whether each mapping binds the same names, in the same order, to the same objects."""
        return self.keys.hold() and all(map(is_, chain.from_iterable(map(_values, self.keys.live)), self.values))


class Bindings:
    """Names by which functions and classes were reached: those have a look of their own as long as these lead there."""

    def __init__(self) -> None:
        self._known: set[tuple[int, str]] = set()
        # Two columns, since a class shows its names through a view of another type than a module.
        self._in_dicts: tuple[list[dict[str, Any]], list[str], list[Any]] = ([], [], [])
        self._in_classes: tuple[list[types.MappingProxyType[str, Any]], list[str], list[Any]] = ([], [], [])

    def note(self, value: object) -> None:
        """Remember each step from the module to a function or class."""
        name = str(getattr(value, "__module__", ""))
        holder: Any = sys.modules.get(name)
        self._keep(sys.modules, name, holder)
        for part in str(getattr(value, "__qualname__", "")).split("."):
            around = sys.modules if holder is None else getattr(holder, "__dict__", {})
            below = getattr(holder, "__dict__", {}).get(part)
            self._keep(around, part, below, key=id(holder))
            holder = below

    def hold(self) -> bool:
        """Say whether every step leads where it led."""
        dicts, names, found = self._in_dicts
        views, parts, below = self._in_classes
        return all(map(is_, map(dict.get, dicts, names), found)) and all(
            map(is_, map(types.MappingProxyType.get, views, parts), below)
        )

    def _keep(self, around: Any, name: str, found: object, key: int = 0) -> None:
        if (key, name) in self._known:
            return
        self._known.add((key, name))
        columns: Any = self._in_dicts if isinstance(around, dict) else self._in_classes
        for column, one in zip(columns, (around, name, found), strict=True):
            column.append(one)


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
        self.items = Collections()
        self.bound = Mappings()
        self.objects: tuple[list[Any], list[type]] = ([], [])
        self.attributes: tuple[list[Any], list[dict[str, Any]]] = ([], [])
        self.functions: list[types.FunctionType] = []
        self.parts: tuple[list[Any], ...] = tuple([] for _ in _FUNCTION_PARTS)
        self.without_attributes: list[types.FunctionType] = []
        self.cells: tuple[list[types.CellType], list[Any]] = ([], [])
        self.empty_cells: list[types.CellType] = []
        self.memory: list[tuple[Any, Any, Any]] = []
        self.caches: list[Any] = []
        self.slots: tuple[list[Any], list[str], list[Any]] = ([], [], [])

    def holds(self) -> bool:
        """Say whether all of it is as it was; never if the glance is blind."""
        values, kinds = self.objects
        holders, names, contents = self.slots
        return (
            not self.blind
            and not any(map(_attributes, self.without_attributes))
            and all(
                all(map(is_, map(part, self.functions), then))
                for part, then in zip(_FUNCTION_PARTS, self.parts, strict=True)
            )
            and all(map(is_, map(type, values), kinds))
            and all(map(is_, map(_attributes, self.attributes[0]), self.attributes[1]))
            and self.bound.hold()
            and self.items.hold()
            and self._cells_hold()
            and all(map(is_, map(getattr, holders, names, repeat(_EMPTY)), contents))
            and all(read(value) == leaf for value, read, leaf in self.memory)
            and not any(cache.cache_info().currsize for cache in self.caches)
        )

    def _cells_hold(self) -> bool:
        cells, contents = self.cells
        try:
            filled = all(map(is_, map(_contents, cells), contents))
        except ValueError:  # emptied since
            return False
        return filled and all(_content(cell) is _EMPTY for cell in self.empty_cells)

    def add(self, other: Glance) -> None:
        """Take over all that another glance depends on."""
        self.blind |= other.blind
        self.items.add(other.items)
        self.bound.add(other.bound)
        for name in ("objects", "attributes", "parts", "cells", "slots"):
            for mine, theirs in zip(getattr(self, name), getattr(other, name), strict=True):
                mine += theirs
        self.functions += other.functions
        self.without_attributes += other.without_attributes
        self.empty_cells += other.empty_cells
        self.memory += other.memory
        self.caches += other.caches

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
        for cell in value.__closure__ or ():
            self._note_cell(cell)
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
                self.bound.note(vars(value))
        elif isinstance(value, functools._lru_cache_wrapper):
            self.bindings.note(value)
            self.caches.append(value)
            self.blind |= value.cache_info().currsize > 0
            self._note_object(value)
        elif kind is dict or kind is types.MappingProxyType:
            self._note_mapping(value)  # type: ignore[arg-type]
        elif kind in (list, set, collections.deque):
            self.items.note(value)  # type: ignore[arg-type]
        elif kind is types.CellType:
            self._note_cell(value)  # type: ignore[arg-type]
        elif kind is np.random.RandomState:
            # scipy's distributions hold one each, and our modules a dozen distributions.
            state = _random_state(value)
            self.blind |= state[0] != "MT19937"  # others keep large integers, which have no bytes of their own
            self.note_memory(value, _random_state, state)
        elif kind is np.ndarray:
            self.blind |= value.dtype.hasobject or value.dtype.metadata is not None  # type: ignore[attr-defined]
        elif isinstance(value, _BOUND_FOR_GOOD) or not (known or reduced):
            self._note_object(value)
        elif kind not in _STILL and not (isinstance(value, np.dtype) and value.metadata is None):
            self.blind = True

    def _note_object(self, value: object) -> None:
        for column, one in zip(self.objects, (value, type(value)), strict=True):
            column.append(one)
        found = getattr(value, "__dict__", None)
        if isinstance(found, dict):
            for column, one in zip(self.attributes, (value, found), strict=True):
                column.append(one)
            self.bound.note(found)
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name.startswith("__") and not name.endswith("__"):
                    self.blind = True  # a mangled name: rare enough to be read each time
                elif name not in ("__dict__", "__weakref__"):
                    for column, one in zip(self.slots, (value, name, getattr(value, name, _EMPTY)), strict=True):
                        column.append(one)

    def _note_cell(self, cell: types.CellType) -> None:
        content = _content(cell)
        if content is _EMPTY:
            self.empty_cells.append(cell)
            return
        for column, one in zip(self.cells, (cell, content), strict=True):
            column.append(one)

    def _note_mapping(self, value: Mapping[Any, Any]) -> None:
        # Some keys are shown by their repr, which may change while they do not; all others are parts themselves.
        self.blind |= any(isinstance(key, _SHOWN_KEYS) and type(key) not in _PLAIN_KEYS for key in value)
        self.bound.note(value)


def _random_state(value: object) -> tuple[Any, ...]:
    """Return what tells one state of numpy's older generator from another."""
    state = value.get_state(legacy=False)  # type: ignore[attr-defined]
    inner = {name: np.asarray(part).tobytes() for name, part in state["state"].items()}
    return state["bit_generator"], inner, state["has_gauss"], struct.pack("<d", state["gauss"])


def _content(cell: types.CellType) -> object:
    try:
        return _contents(cell)
    except ValueError:  # still empty
        return _EMPTY
