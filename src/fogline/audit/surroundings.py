"""What a run leaves behind outside its result: modules, classes, caches, environment, threads, files elsewhere.

`Surroundings` is a look at the state of the process; two looks, after a run on D and after one on D', must be the same.
Before the second run `rewind` puts back what the first has changed, so that a value that is kept once and for all is
seen as well: the second run has to keep its own.

Looked at with all that can be reached from it is *own code*: fogline (but for the audit itself and the command line),
the module of what is audited, and ``__main__``. Of all other modules the names are compared, and what they are bound
to; containers inside another package that are changed in place are not seen.

A look in full takes a quarter of a second, and most of what it finds is what the last one found. `look_around` can be
given that one: what a `fogline.audit.glances.Glance` shows to be the same objects is carried over. What did not change
between two looks (`Calm`) is compared in one piece from then on.

`watch_writes` listens to Python's audit events for files written outside the working directory, processes and sockets.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import os
import re
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from pathlib import Path
from typing import Any

import numpy as np

from fogline.audit.glances import Bindings, Glance, Mappings, same_bindings, same_items
from fogline.audit.leaves import (
    ADDRESS,
    SKIPPED,
    Apart,
    digest,
    flatten,
    is_constant,
    is_fixed,
    is_own_code,
    opaque_paths,
)

__all__ = [
    "ALLOWED_STATE",
    "Content",
    "ModuleLook",
    "Surroundings",
    "changed_places",
    "empty_caches",
    "look_around",
    "opaque_additions",
    "rewind",
    "watch_writes",
    "without_inspected",
]

ALLOWED_STATE = {
    "fogline.mechanisms.randomness._mechanism": "samplers by their public scales; a second run of a replay needs none",
    "fogline.releases.secret_models._PAID": "secret models of samplers, kept apart from them by design",
    "fogline.queries.fourier_sums._counter_known": "whether the compiled counter was looked for: once in a process",
    "fogline.ledger.session._sessions": "open ledgers, held weakly: garbage collection may remove one at any time",
    "fogline.releases.origins._KNOWN": "random numbers of the sketches that are alive, held weakly",
    "fogline.releases.sketch_file._SEEN": "sketch files that are open by device and inode, held weakly",
    "fogline.sources.files._databases": "one database in memory for all queries, which holds no table",
}
"""State that may differ or stay, each with the reason; by the path of the name."""

_NOT_WATCHED = ("fogline.audit", "fogline.testing", "_cython_")
"""The audit's own code, and the types that Cython shares between compiled modules: they come with the first import."""

_SHALLOW = ("fogline.cli", "fogline_research.experiments")
"""Own code that no fit runs and that holds thousands of options: its names are compared, as those of other packages."""

_PLACES = (
    "tempfile.tempdir",
    "logging._logRecordFactory",
    "warnings.filters",
    "warnings.showwarning",
    "warnings._showwarnmsg_impl",
)
"""Names that the observation itself binds, for the time of a run."""

_LARGE = frozenset({"sklearn", "scipy", "numba", "llvmlite", "pandas", "pyarrow", "_pytest", "hypothesis", "torch"})
"""Large packages, of which only the top is looked at, to save time."""

_VOLATILE = (
    "__name__",
    "__file__",
    "__package__",
    "__builtins__",
    "__cached__",
    "__spec__",
    "__loader__",
    "__path__",
    "__warningregistry__",
)
_COMPILED = re.compile(r"__pycache__[/\\][^/\\]+\.(pyc|nbi|nbc)")
_CONTAINERS = (list, dict, set, collections.deque, bytearray)


@dataclass(frozen=True)
class Content:
    """What one name of a watched module or class holds.

    Attributes
    ----------
    value : object
    leaves : dict
        Every leaf of it, by its path.
    opaque : list of str
        Places in it that cannot be looked into.
    glance : Glance
        Says whether a later look would find the same.
    """

    value: object
    leaves: dict[str, Any]
    opaque: list[str]
    glance: Glance


@dataclass
class ModuleLook:
    """One look into a watched module.

    Attributes
    ----------
    names : dict
        What the names of the module were bound to.
    classes : dict
        Its classes, by path, each with a copy of its dictionary.
    contents : dict of Content
        What can change in place, by its path.
    copies : list
        Containers with what they held, to put it back.
    caches : list
        Caches of results with how many they held.
    bare : list
        Functions that had no attributes.
    quiet : Glance
        At everything that is not expected to change.
    restless : list of str
        Paths of the contents that are looked at one by one: caches, and what no glance can compare.
    """

    names: dict[str, Any]
    classes: dict[str, tuple[type, dict[str, Any]]] = field(default_factory=dict)
    contents: dict[str, Content] = field(default_factory=dict)
    copies: list[tuple[Any, Any]] = field(default_factory=list)
    caches: list[tuple[Any, int]] = field(default_factory=list)
    bare: list[types.FunctionType] = field(default_factory=list)
    quiet: Glance = field(default_factory=Glance)
    restless: list[str] = field(default_factory=list)

    def follows(self, last: ModuleLook | None) -> bool:
        """Say whether this look carried over all that was quiet in the last one."""
        return last is not None and self.quiet is last.quiet

    def is_as_it_was(self, names: dict[str, Any]) -> bool:
        """Say whether names, classes and all that is quiet are the same; `names` is the new copy of the module's."""
        return names is self.names and self.quiet.holds()


_MOST_CHANGED = 100
"""Modules that may be looked at one by one; with more it is forgotten which have changed, and learnt anew."""


@dataclass
class Calm:
    """What two looks in a row found the same, to be compared in one piece.

    Attributes
    ----------
    holders : dict
        The dictionaries of the modules whose names were bound to the same objects.
    names : Mappings
        What these names were bound to.
    modules : frozenset of str
        The modules that were looked into and were the same.
    quiet : Glance
        At all that is quiet in these.
    changed : frozenset of str
        Modules that did change at some look: they are looked at one by one.
    """

    holders: dict[str, dict[str, Any]]
    names: Mappings
    modules: frozenset[str]
    quiet: Glance
    changed: frozenset[str]

    @classmethod
    def between(cls, last: Surroundings, now: Surroundings, live: Mapping[str, dict[str, Any]]) -> Calm:
        """Collect what two looks found the same."""
        known = frozenset() if last.calm is None else last.calm.changed
        fresh = {name for name, bound in now.names.items() if bound is not last.names.get(name)}
        fresh |= {name for name, look in now.modules.items() if not look.follows(last.modules.get(name))}
        changed = (known if len(known) < _MOST_CHANGED else frozenset()) | (fresh & set(last.names))
        modules = frozenset(now.modules) - changed - fresh - {_INSPECTED}
        calm = cls({}, Mappings(), modules, Glance(now.bindings), changed)
        for name, bound in now.names.items():
            if name not in changed and name not in fresh:
                calm.holders[name] = live[name]
                calm.names.note(bound)
        # The copies were compared with the dictionaries just now; these are what will be compared.
        calm.names.keys.live = list(calm.holders.values())
        for name in calm.modules:
            calm.quiet.add(now.modules[name].quiet)
        return calm

    def holds(self, live: Mapping[str, dict[str, Any]]) -> bool:
        """Say whether all of it is as it was; `live` has the dictionaries of the modules of now."""
        return (
            all(map(is_, map(live.get, self.holders), self.holders.values()))
            and self.names.hold()
            and self.quiet.holds()
        )


@dataclass
class Surroundings:
    """One look at the state of the process.

    Attributes
    ----------
    names : dict
        For each module a copy of its dictionary: what its names are bound to.
    process : dict
        Exit handlers, generators, signal handlers and the like, by what they are called.
    modules : dict of ModuleLook
        The modules that were looked into.
    bindings : Bindings
        Which functions and classes have names of their own.
    calm : Calm, optional
        What this look and the one before found the same.
    """

    names: dict[str, dict[str, Any]]
    process: dict[str, Any]
    modules: dict[str, ModuleLook] = field(default_factory=dict)
    bindings: Bindings = field(default_factory=Bindings)
    calm: Calm | None = None


def look_around(
    watched: Iterable[str] = (), *, inspected: object = None, last: Surroundings | None = None
) -> Surroundings:
    """Look at the state of the process.

    Parameters
    ----------
    watched : iterable of str
        Further modules to look into.
    inspected : object, optional
        Something else to look into, such as the audited function with its closure.
    last : Surroundings, optional
        An earlier look: what has not changed since is carried over, which is many times faster.

    Examples
    --------
    >>> before = look_around()
    >>> after = look_around(last=before)
    >>> changed_places(before, after)
    []
    """
    # a function or class was bound anew: nothing of the last look can be trusted
    if last is not None and not last.bindings.hold():
        last = None
    live = {
        name: vars(module)
        for name, module in list[tuple[str, Any]](sys.modules.items())
        if isinstance(module, types.ModuleType) and not _in_large_package(name)
    }
    known = {} if last is None else last.names
    calm = last.calm if last is not None and last.calm is not None and last.calm.holds(live) else None
    same = {} if calm is None else calm.holders
    names = {name: known[name] if name in same else _snapshot(now, known.get(name)) for name, now in live.items()}
    seen = Surroundings(names, _process_state(), calm=calm)
    if last is not None:
        seen.bindings = last.bindings
    modules = {} if last is None else last.modules
    for name in _watched(names, watched):
        at_rest = calm is not None and name in calm.modules and name in modules
        seen.modules[name] = _look_into_module(name, names[name], modules.get(name), seen.bindings, at_rest=at_rest)
    if inspected is not None:
        look = ModuleLook({}, restless=[_INSPECTED])
        content = modules[_INSPECTED].contents[_INSPECTED] if _INSPECTED in modules else None
        look.contents[_INSPECTED] = _content(inspected, _INSPECTED, content, seen.bindings)
        seen.modules[_INSPECTED] = look
    if last is not None and calm is None:
        # For the last look as well, since the next one may begin from there.
        seen.calm = last.calm = Calm.between(last, seen, live)
    return seen


_INSPECTED = "the audited function"


def without_inspected(seen: Surroundings) -> Surroundings:
    """Return a look without the audited function, to be kept: what that function holds may be large, and should go.

    Examples
    --------
    >>> seen = look_around(inspected=lambda: 1)
    >>> len(seen.modules) - len(without_inspected(seen).modules)
    1
    """
    return replace(seen, modules={name: look for name, look in seen.modules.items() if name != _INSPECTED})


@functools.cache
def _in_large_package(name: str) -> bool:
    return "." in name and name.split(".")[0] in _LARGE


def _snapshot(now: Mapping[str, Any], last: dict[str, Any] | None) -> dict[str, Any]:
    """Return a copy of a dictionary: the last one, if nothing has been bound since."""
    return last if last is not None and same_bindings(now, last) else dict(now)


def _look_into_module(
    name: str, names: dict[str, Any], last: ModuleLook | None, bindings: Bindings, *, at_rest: bool
) -> ModuleLook:
    """Look into a module; if all that is quiet is as it was, as where it is `at_rest`, only at what is restless."""
    warned = "__warningregistry__" in names
    if last is not None and (at_rest or last.is_as_it_was(names)):
        if not last.restless and not warned:
            return last
        known = {path: last.contents[path] for path in last.restless}
        content = {path: _content(one.value, path, one, bindings) for path, one in known.items()}
        caches = [(cache, cache.cache_info().currsize) for cache, _ in last.caches]
        look = replace(last, contents={**last.contents, **content}, caches=caches)
    else:
        look = ModuleLook(names, quiet=Glance(bindings))
        for bound, value in names.items():
            if bound not in _VOLATILE and _lives_in(value, name):
                _look_into(value, f"{name}.{bound}", look)
    # Python notes here which warnings were shown: a warning that depends on a record leaves its trace.
    shown = sorted(repr(key) for key in names.get("__warningregistry__", {}) if key != "version")
    path = f"{name}.__warningregistry__"
    look.contents[path] = Content(shown, {path: shown}, [], look.quiet)
    return look


def _content(value: object, path: str, last: Content | None, bindings: Bindings) -> Content:
    """Read every leaf of a value, or carry over those of the last look."""
    if last is not None and last.value is value and last.glance.holds():
        return last
    leaves: dict[str, Any] = {}
    glance = Glance(bindings)
    flatten(value, path, leaves, met=Apart(), glance=glance)
    return Content(value, leaves, opaque_paths(leaves), glance)


def _watched(names: Iterable[str], further: Iterable[str]) -> list[str]:
    """Return the modules to look into: fogline's, those asked for, and modules that came from no file."""
    asked = {name for name in further if is_own_code(name)} | {"__main__"}
    found = []
    for name in names:
        if _is_fogline(name) or name in asked or _from_nowhere(name):
            found.append(name)
    return [name for name in found if not name.startswith(_NOT_WATCHED)]


@functools.cache
def _is_fogline(name: str) -> bool:
    return (name == "fogline" or name.startswith("fogline.")) and not name.startswith(_SHALLOW)


def _from_nowhere(name: str) -> bool:
    """Say whether a module was made by hand since the audit was imported."""
    if name in _PRESENT:
        return False
    module = sys.modules.get(name)
    return getattr(module, "__spec__", None) is None and not hasattr(module, "__file__")


_PRESENT = frozenset(sys.modules)


def _lives_in(value: object, module: str) -> bool:
    """Say whether a value is this module's own: functions and classes belong where they were defined."""
    if isinstance(value, types.ModuleType) or type(value).__module__ in ("typing", "__future__"):
        return False
    if isinstance(value, type | types.FunctionType | functools._lru_cache_wrapper):
        return getattr(value, "__module__", module) == module
    return True


def _look_into(value: object, path: str, look: ModuleLook) -> None:
    """Note what a value holds and, of containers, functions, classes and caches, how to put it back."""
    if path in ALLOWED_STATE or is_constant(value):
        return
    if isinstance(value, type):
        plain = dict(vars(value))
        look.classes[path] = (value, plain)
        look.quiet.bound.note(vars(value))
        for name, item in plain.items():
            if name not in SKIPPED and not isinstance(item, type):
                _look_into(item, f"{path}.{name}", look)
        return
    function = getattr(value, "__func__", value)
    if is_fixed(value) and isinstance(function, types.FunctionType):
        look.bare.append(function)
        look.quiet.note_function(function)
        return
    content = _content(value, path, None, look.quiet.bindings)
    if is_fixed(value) and not content.glance.blind:
        look.quiet.add(content.glance)  # as long as this holds, it stays fixed
        return
    look.contents[path] = content
    if content.glance.blind or content.glance.caches:
        look.restless.append(path)
    else:
        look.quiet.add(content.glance)
    if isinstance(value, functools._lru_cache_wrapper):
        look.caches.append((value, value.cache_info().currsize))
    elif isinstance(value, _CONTAINERS):
        look.copies.append((value, value.copy()))
    elif isinstance(value, types.FunctionType):
        look.copies.append((value.__dict__, dict(value.__dict__)))


def _process_state() -> dict[str, Any]:
    state: dict[str, Any] = {
        "exit handlers": atexit._ncallbacks(),
        "Python's global generator": sys.modules["random"].getstate() if "random" in sys.modules else None,
        "numpy's global generator": _numpy_state(),
        "numpy's error state": np.geterr(),
        # A module that is imported for some data only tells which data there were.
        "modules": frozenset(sys.modules),
        "the file mode mask": _mask(),
        "sys.path": tuple(sys.path),
    }
    return state


def _numpy_state() -> tuple[Any, ...]:
    # as bytes: arrays do not compare to one truth value
    name, key, *rest = np.random.get_state()
    return (name, np.asarray(key).tobytes(), *rest)


def _mask() -> int:
    # There is no way to read the mask but to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# -- comparing and putting back ------------------------------------------------------------------------------


def changed_places(first: Surroundings, second: Surroundings) -> list[str]:
    """Return the places at which two looks differ, by name.

    Examples
    --------
    >>> import fogline
    >>> before = look_around()
    >>> fogline.leak = [1.0]
    >>> changed_places(before, look_around())[0], rewind(before), changed_places(before, look_around())
    ('fogline.leak', None, [])
    """
    found = [key for key, value in second.process.items() if first.process[key] != value]
    for name in {**first.modules, **second.modules}:
        one, other = first.modules.get(name, _NOWHERE), second.modules.get(name, _NOWHERE)
        if one is not other:
            found += _changed_in_module(one, other)
    for name, bound in second.names.items():
        if bound is not first.names.get(name) and not name.startswith(_NOT_WATCHED):
            found += [f"{name}.{key}" for key in _rebound(first.names.get(name, {}), bound)]
    allowed = (*ALLOWED_STATE, *_PLACES)
    return [place for place in found if not any(_below(place, path) for path in allowed)]


_NOWHERE = ModuleLook({})


def _changed_in_module(first: ModuleLook, second: ModuleLook) -> list[str]:
    found = []
    for path in {**first.contents, **second.contents}:
        before, after = first.contents.get(path), second.contents.get(path)
        if before is not after:
            one, other = ({} if content is None else content.leaves for content in (before, after))
            found += [place for place in {**one, **other} if one.get(place) != other.get(place)]
    for path, (_, plain) in second.classes.items():
        then = first.classes[path][1] if path in first.classes else {}
        if plain is not then:
            found += [f"{path}.{key}" for key in _rebound(then, plain)]
    return found


def _below(place: str, allowed: str) -> bool:
    return place == allowed or place.startswith((f"{allowed}.", f"{allowed}["))


def _rebound(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Give the names that are new or bound to something else."""
    nothing = object()
    for key, value in after.items():
        old = before.get(key, nothing)
        if old is value or key in _VOLATILE or key in SKIPPED:
            continue
        if isinstance(value, types.ModuleType | type) or (is_fixed(value) and callable(value)):
            continue  # code that was imported
        looks: list[dict[str, Any]] = [{}, {}]
        for look, one in zip(looks, (old, value), strict=True):
            flatten(one, "", look)
        if old is nothing or looks[0] != looks[1]:
            yield key


def rewind(before: Surroundings, after: Surroundings | None = None) -> None:
    """Put names, containers, classes and caches of watched modules back to what they were.

    Functions, classes and modules that were added stay, and so does what `ALLOWED_STATE` names: nothing is compiled or
    imported twice.

    Parameters
    ----------
    before : Surroundings
        What they were.
    after : Surroundings, optional
        A look just now that began from `before`: what it carried over whole is as it was.
    """
    for name in list(sys.modules):
        if name not in before.names and not name.startswith(_NOT_WATCHED) and _from_nowhere(name):
            _put_back_names(sys.modules[name], name, {})
            # only where nothing of it is in use any more
            if all(key.startswith("__") for key in vars(sys.modules[name])):
                del sys.modules[name]
    found = {} if after is None else after.modules
    for name, look in before.modules.items():
        if found.get(name) is look:
            continue
        if name in sys.modules:
            _put_back_names(sys.modules[name], name, look.names)
        for path, (kind, plain) in look.classes.items():
            _put_back_names(kind, path, plain)
        for holder, copy in look.copies:
            if not _same_items(holder, copy):
                holder.clear()
                (holder.update if isinstance(holder, dict | set) else holder.extend)(copy)
        for function in look.bare:
            if function.__dict__:
                function.__dict__.clear()
        # a cache cannot be refilled: both runs begin with empty ones
        for cache, size in look.caches:
            if cache.cache_info().currsize != size:
                cache.cache_clear()


def empty_caches(seen: Surroundings) -> bool:
    """Empty the caches of watched modules; say whether one held anything.

    Both runs of a pair start with empty caches: `rewind` can empty a cache but not refill it, so values that were there
    before the first run would be missed after the second.

    Examples
    --------
    >>> from fogline.density.random_spec import standard_frequencies
    >>> _ = standard_frequencies(64, 5, 0)
    >>> empty_caches(look_around()), empty_caches(look_around())
    (True, False)
    """
    inspected = [cache for look in seen.modules.values() for cache, _ in look.caches if cache.cache_info().currsize]
    for cache in inspected:
        cache.cache_clear()
    return bool(inspected)


def _put_back_names(holder: object, path: str, before: dict[str, Any]) -> None:
    if same_bindings(vars(holder), before):
        return
    now = dict(vars(holder))
    for key in {*now, *before}:
        old, new = before.get(key), now.get(key)
        code = isinstance(new, type | types.ModuleType | types.FunctionType) or callable(new)
        if old is new or code or key in _VOLATILE or f"{path}.{key}" in ALLOWED_STATE:
            continue
        # some names of classes cannot be set or removed
        with contextlib.suppress(AttributeError, TypeError):
            if key in before:
                setattr(holder, key, old)
            else:
                delattr(holder, key)


def _same_items(one: Collection[Any], other: Collection[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return all(key in other and other[key] is value for key, value in one.items())
    if isinstance(one, set):
        return bool(one == other)
    return same_items(one, other)


# -- files, processes and sockets ----------------------------------------------------------------------------

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = (
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.utime",
    "os.setxattr", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "sqlite3.connect",
)  # fmt: skip
_listening: list[tuple[str, str]] | None = None


@contextlib.contextmanager
def watch_writes(folder: Path) -> Iterator[dict[str, Any]]:
    """Note what is written outside a folder, and which processes and sockets are used.

    Python's audit hook is set once and stays, idle, until the process ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
    ...     with watch_writes(Path(here)) as seen:
    ...         size = Path(there, "leak").write_text("7.5")
    >>> [event for event, path in seen["events"]]
    ['open']
    """
    global _listening
    _set_hook()
    seen: dict[str, Any] = {"events": [], "contents": {}}
    outer, _listening = _listening, []
    try:
        yield seen
    finally:
        noted, _listening = _listening, outer
        kept = [(event, path.replace(str(folder), "~")) for event, path in noted if not _is_ordinary(path, folder)]
        seen["events"] = kept
        for event, path in kept:
            if event == "open" and Path(path).is_file():
                content: dict[str, Any] = {}
                flatten(Path(path).read_bytes(), "", content)
                seen["contents"][path] = digest(content)


def _is_ordinary(path: str, folder: Path) -> bool:
    """Say whether a path is in the folder that is compared anyway, a device, or compiled code."""
    return path.startswith((str(folder), "/dev/")) or bool(_COMPILED.search(path))


@functools.cache
def _set_hook() -> None:
    sys.addaudithook(_hear)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _listening is None:
        return
    if event == "open":
        path, mode, flags = args
        writes = any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & _WRITING)
        if writes and isinstance(path, str | bytes | os.PathLike):
            _listening.append((event, os.path.abspath(os.fsdecode(path))))
    elif event in _EVENTS:
        is_path = event.startswith("os.") and args and isinstance(args[0], str | bytes | os.PathLike)
        _listening.append((event, os.path.abspath(os.fsdecode(args[0])) if is_path else ADDRESS.sub("0x", repr(args))))


def opaque_additions(before: Surroundings, after: Surroundings) -> list[str]:
    """Return what cannot be looked into and was not there before."""
    fresh = [name for name, look in after.modules.items() if look is not before.modules.get(name)]
    known, found = (
        [
            place
            for name in fresh
            for content in look.modules.get(name, _NOWHERE).contents.values()
            for place in content.opaque
        ]
        for look in (before, after)
    )
    return [place for place in found if place not in set(known)]
