"""Glances: whatever changes the leaves of a value must be seen by the cheap comparison too, or make it blind."""

from __future__ import annotations

import array
import collections
import functools
import sys
import types
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.audit.glances import Bindings, Glance
from fogline.audit.leaves import Apart, flatten, is_constant, is_fixed
from fogline.audit.surroundings import changed_places, look_around, rewind

BUFFER = bytearray(b"public")
NESTED: tuple = ({"list": [1, {"deep": 0.0}]}, (np.zeros(3),))


class Thing:
    """An object with attributes, to hang things on."""

    shared: list = []  # noqa: RUF012

    def __init__(self, value=0):
        self.value = value

    @property
    def shown(self):
        return 1


class Other(Thing):
    """Another class of the same layout."""


class Slotted:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 1


class Named(collections.namedtuple("Named", "one")):
    """A tuple with attributes besides."""


@dataclass(frozen=True)
class Frozen:
    """A frozen value, which may hold a function."""

    make: object = None


def counter():
    count = 0

    def step():
        nonlocal count
        count += 1
        return count

    return step


def with_defaults(one=[1], *, two=[2]):  # noqa: B006
    return one, two


def fresh(function):
    """Return a copy of a function with attributes of its own."""
    return types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


@functools.lru_cache
def cached(key):
    return [key]


CHANGES = {
    "an item of a list": (lambda: [1, 2], lambda x: x.__setitem__(0, True)),
    "the sign of a zero": (lambda: {"a": [0.0]}, lambda x: x["a"].__setitem__(0, -0.0)),
    "a key": (lambda: {"a": 1}, lambda x: x.__setitem__("b", x.pop("a"))),
    "the order of keys": (lambda: {"a": 1, "b": 1}, lambda x: x.__setitem__("a", x.pop("a"))),
    "a set": (lambda: {1, 2}, lambda x: x.add(3)),
    "a deque": (lambda: collections.deque([1]), lambda x: x.append(2)),
    "a counter": (lambda: collections.Counter("a"), lambda x: x.update("b")),
    "deep inside a tuple": (lambda: ([{"a": [[1]]}],), lambda x: x[0][0]["a"][0].append(2)),
    "an array": (lambda: np.zeros(3), lambda x: x.__setitem__(0, -0.0)),
    "the base of a view": (lambda: np.zeros(9)[:3], lambda x: x.base.__setitem__(5, 1.0)),
    "an array of objects": (lambda: np.array([[1], "a"], dtype=object), lambda x: x[0].append(1)),
    "the shape of an array": (lambda: np.zeros((2, 3)), lambda x: setattr(x, "shape", (3, 2))),
    "a bytearray": (lambda: bytearray(b"a"), lambda x: x.extend(b"b")),
    "an array of bytes": (lambda: [array.array("b", [1])], lambda x: x[0].append(2)),
    "an attribute": (Thing, lambda x: setattr(x, "value", 1)),
    "a new attribute": (Thing, lambda x: setattr(x, "more", 1)),
    "another dictionary": (Thing, lambda x: setattr(x, "__dict__", {"value": 0.0})),
    "another class": (Thing, lambda x: setattr(x, "__class__", Other)),
    "a slot": (Slotted, lambda x: setattr(x, "value", 2)),
    "an attribute of a tuple": (lambda: Named(1), lambda x: setattr(x, "more", 1)),
    "a cell": (counter, lambda x: x()),
    "an attribute of a function": (lambda: fresh(counter), lambda x: setattr(x, "n", 1)),
    "a default": (lambda: fresh(with_defaults), lambda x: x.__defaults__[0].append(1)),
    "another default": (lambda: fresh(with_defaults), lambda x: setattr(x, "__defaults__", ([1],))),
    "a default of a keyword": (lambda: fresh(with_defaults), lambda x: setattr(x, "__kwdefaults__", {"two": 3})),
    "other code": (lambda: fresh(with_defaults), lambda x: setattr(x, "__code__", (lambda: 7).__code__)),
    "a method's owner": (lambda: Thing().__init__, lambda x: setattr(x.__self__, "value", 8)),
    "a partial's arguments": (lambda: functools.partial(print, [1]), lambda x: x.args[0].append(2)),
    "a property's function": (
        lambda: property(fresh(counter)),
        lambda x: setattr(x.fget, "n", 1),
    ),
    "a static method's function": (lambda: staticmethod(fresh(counter)), lambda x: setattr(x.__func__, "n", 1)),
    "a frozen value's function": (lambda: Frozen(fresh(counter)), lambda x: setattr(x.make, "n", 1)),
    "a cache": (lambda: cached, lambda _: cached(1)),
    "a local class": (lambda: type("Local", (), {"__module__": __name__}), lambda x: setattr(x, "n", 1)),
    "a class of an instance": (
        lambda: type("Local", (Thing,), {"__module__": __name__})(),
        lambda x: setattr(type(x), "n", 1),
    ),
    "a random generator": (lambda: np.random.default_rng(0), lambda x: x.random()),
    "an iterator": (lambda: iter([1, 2]), next),
}


@pytest.fixture(name="first_look", scope="module")
def _first_look():
    return look_around([__name__])


@pytest.fixture(name="before", autouse=True)
def _clean(first_look):
    before = look_around([__name__], last=first_look)
    yield before
    rewind(before)
    BUFFER[:] = b"public"


def read(value):
    leaves: dict = {}
    glance = Glance()
    flatten(value, "x", leaves, met=Apart(), glance=glance)
    return leaves, glance


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_leaves_breaks_the_glance(name):
    make, change = CHANGES[name]
    value = make()
    leaves, glance = read(value)
    assert glance.holds() or glance.blind
    change(value)
    assert read(value)[0] != leaves
    assert not glance.holds()


def test_what_does_not_change_holds():
    kept = {name: make() for name, (make, _) in CHANGES.items()}
    glances = {name: read(value)[1] for name, value in kept.items()}
    blind = [name for name, glance in glances.items() if glance.blind]
    expected = {"a counter", "an array of objects", "an attribute of a tuple", "a random generator", "an iterator"}
    assert set(blind) == expected
    assert all(glance.holds() for name, glance in glances.items() if name not in blind)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(value=st.dictionaries(st.text(max_size=2), values, min_size=1, max_size=4), new=values, data=st.data())
def test_a_glance_that_holds_means_the_same_leaves(value, new, data):
    """Put anything anywhere: the glance may only hold if reading again gives the same leaves."""
    leaves, glance = read(value)
    holder = value
    while True:
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        below = holder[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            break
        holder = below
    assert glance.holds()
    holder[key] = new
    if read(value)[0] != leaves:
        assert not glance.holds()
    if glance.holds():
        assert read(value)[0] == leaves


def test_a_name_that_leads_elsewhere_is_noticed(monkeypatch):
    bindings = Bindings()
    bindings.note(Thing.shown.fget)
    assert bindings.hold()
    monkeypatch.setattr(sys.modules[__name__], "Thing", Other)
    assert not bindings.hold()


def test_a_buffer_is_not_fixed():
    """A module's bytearray was taken for a constant: what a fit wrote into it in place was not seen."""
    assert not is_constant(BUFFER)
    assert not is_fixed((1, BUFFER))
    before = look_around([__name__])
    BUFFER[:] = b"secret"
    assert changed_places(before, look_around([__name__], last=before)) == [f"{__name__}.BUFFER"]


def in_a_property():
    Thing.shown.fget.n = getattr(Thing.shown.fget, "n", 0) + 1


PLACES = {
    "BUFFER": lambda: BUFFER.extend(b"1"),
    "NESTED": lambda: NESTED[0]["list"][1].update(deep=-0.0),
    "NESTED[1]": lambda: NESTED[1][0].__setitem__(0, 1.0),
    "Thing.shared": lambda: Thing.shared.append(1),
    "Thing.shown": in_a_property,
    "cached": lambda: cached(3),
    "with_defaults": lambda: with_defaults.__kwdefaults__["two"].append(1),
    "counter": lambda: setattr(counter, "n", 1),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_look_that_carries_over_finds_what_a_full_look_finds(place, before):
    PLACES[place]()
    carried, full = look_around([__name__], last=before), look_around([__name__])
    found = changed_places(before, full)
    assert any(path.startswith(f"{__name__}.{place}") for path in found), found
    assert changed_places(before, carried) == found
    assert changed_places(carried, full) == changed_places(full, carried) == []


CHANGES_OF_A_CLASS = {
    "a list": lambda patch: Thing.shared.append(1),
    "an attribute": lambda patch: patch.setattr(Thing, "shared", (1,)),
    "a new attribute": lambda patch: setattr(Thing, "more", 1),
    "an attribute of a function": lambda patch: in_a_property(),
    "other code": lambda patch: patch.setattr(Thing.__init__, "__code__", Slotted.__init__.__code__),
}


@pytest.mark.parametrize("name", CHANGES_OF_A_CLASS)
def test_a_class_that_was_read_before_is_read_again_when_it_changes(name, monkeypatch):
    thing = Thing()
    looks = [{}, {}, {}]
    for leaves in looks[:2]:
        flatten(thing, "x", leaves)
    CHANGES_OF_A_CLASS[name](monkeypatch)
    flatten(thing, "x", looks[2])
    assert looks[0] == looks[1] != looks[2]
