"""What a run leaves behind outside its result: modules, classes, caches, environment, threads, files elsewhere.

`Surroundings` is a look at the state of the process; two looks, after a run on D and after one on D', must be the same.
Before the second run `rewind` puts back what the first has changed, so that a value that is kept once and for all is
seen as well: the second run has to keep its own.

Looked at with all that can be reached from it is *own code*: fogline (but for the audit itself and the command line),
the module of what is audited, and ``__main__``. Of all other modules the names are compared, and what they are bound
to; containers inside another package that are changed in place are not seen.

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
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fogline.audit.leaves import ADDRESS, SKIPPED, Apart, digest, flatten, is_fixed, is_own_code, opaque_paths

__all__ = [
    "ALLOWED_STATE",
    "Surroundings",
    "changed_places",
    "empty_caches",
    "look_around",
    "opaque_additions",
    "rewind",
    "watch_writes",
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


@dataclass
class Surroundings:
    """One look at the state of the process.

    Attributes
    ----------
    names : dict
        For each module, and each class of a watched one, a copy of its dictionary: what its names are bound to.
    contents : dict
        Every leaf of what can change in place in the modules that are watched, by its path.
    process : dict
        Exit handlers, generators, signal handlers and the like, by what they are called.
    watched : set of str
        Modules that were looked into.
    classes : dict
        Their classes, by path.
    copies : list
        Containers of watched modules with what they held, to put it back.
    caches : list
        Caches of results with how many they held.
    bare : list
        Functions that had no attributes.
    """

    names: dict[str, dict[str, Any]]
    contents: dict[str, Any]
    process: dict[str, Any]
    watched: set[str] = field(default_factory=set)
    classes: dict[str, type] = field(default_factory=dict)
    copies: list[tuple[Any, Any]] = field(default_factory=list)
    caches: list[tuple[Any, int]] = field(default_factory=list)
    bare: list[types.FunctionType] = field(default_factory=list)


def look_around(watched: Iterable[str] = (), *, inspected: object = None) -> Surroundings:
    """Look at the state of the process.

    Parameters
    ----------
    watched : iterable of str
        Further modules to look into.
    inspected : object, optional
        Something else to look into, such as the audited function with its closure.

    Examples
    --------
    >>> before, after = look_around(), look_around()
    >>> changed_places(before, after)
    []
    """
    names = {
        name: dict(vars(module))
        for name, module in list[tuple[str, Any]](sys.modules.items())
        if isinstance(module, types.ModuleType) and not ("." in name and name.split(".")[0] in _LARGE)
    }
    seen = Surroundings(names, {}, _process_state())
    for name in _watched(names, watched):
        seen.watched.add(name)
        for bound, value in list(names[name].items()):
            if bound in _VOLATILE or not _lives_in(value, name):
                continue
            _look_into(value, f"{name}.{bound}", seen)
        # Python notes here which warnings were shown: a warning that depends on a record leaves its trace.
        registry = names[name].get("__warningregistry__", {})
        seen.contents[f"{name}.__warningregistry__"] = sorted(repr(key) for key in registry if key != "version")
    if inspected is not None:
        flatten(inspected, "the audited function", seen.contents, met=Apart())
    return seen


def _watched(names: Iterable[str], further: Iterable[str]) -> list[str]:
    """Return the modules to look into: fogline's, those asked for, and modules that came from no file."""
    asked = {name for name in further if is_own_code(name)} | {"__main__"}
    found = []
    for name in names:
        own = name == "fogline" or name.startswith("fogline.")
        own = own and not name.startswith(_SHALLOW)
        if not name.startswith(_NOT_WATCHED) and (own or name in asked or _from_nowhere(name)):
            found.append(name)
    return found


def _from_nowhere(name: str) -> bool:
    """Say whether a module was made by hand since the audit was imported."""
    module = sys.modules.get(name)
    made = getattr(module, "__spec__", None) is None and not hasattr(module, "__file__")
    return made and name not in _PRESENT


_PRESENT = frozenset(sys.modules)


def _lives_in(value: object, module: str) -> bool:
    """Say whether a value is this module's own: functions and classes belong where they were defined."""
    if isinstance(value, types.ModuleType) or type(value).__module__ in ("typing", "__future__"):
        return False
    if isinstance(value, type | types.FunctionType | functools._lru_cache_wrapper):
        return getattr(value, "__module__", module) == module
    return True


def _look_into(value: object, path: str, seen: Surroundings) -> None:
    """Note what a value holds and, of containers, functions, classes and caches, how to put it back."""
    if path in ALLOWED_STATE:
        return
    if is_fixed(value):
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            seen.bare.append(function)
        return
    if isinstance(value, type):
        plain = dict(vars(value))
        seen.names[path] = plain
        seen.classes[path] = value
        for name, item in plain.items():
            if name not in SKIPPED and not isinstance(item, type):
                _look_into(item, f"{path}.{name}", seen)
        return
    flatten(value, path, seen.contents, met=Apart())
    if isinstance(value, functools._lru_cache_wrapper):
        seen.caches.append((value, value.cache_info().currsize))
    elif isinstance(value, _CONTAINERS):
        seen.copies.append((value, value.copy()))
    elif isinstance(value, types.FunctionType):
        seen.copies.append((value.__dict__, dict(value.__dict__)))


def _process_state() -> dict[str, Any]:
    state: dict[str, Any] = {
        "exit handlers": atexit._ncallbacks(),
        "Python's global generator": sys.modules["random"].getstate() if "random" in sys.modules else None,
        "numpy's global generator": repr(np.random.get_state()),
        "numpy's error state": np.geterr(),
        # A module that is imported for some data only tells which data there were.
        "modules": frozenset(sys.modules),
        "the file mode mask": _mask(),
        "sys.path": tuple(sys.path),
    }
    return state


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
    paths = {**first.contents, **second.contents}
    found += [path for path in paths if first.contents.get(path) != second.contents.get(path)]
    for name, bound in second.names.items():
        if not name.startswith(_NOT_WATCHED):
            found += [f"{name}.{key}" for key in _rebound(first.names.get(name, {}), bound)]
    allowed = (*ALLOWED_STATE, *_PLACES)
    return [place for place in found if not any(_below(place, path) for path in allowed)]


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


def rewind(before: Surroundings) -> None:
    """Put names, containers, classes and caches of watched modules back to what they were.

    Functions, classes and modules that were added stay, and so does what `ALLOWED_STATE` names: nothing is compiled or
    imported twice.
    """
    for name in list(sys.modules):
        if name not in before.names and not name.startswith(_NOT_WATCHED) and _from_nowhere(name):
            _put_back_names(sys.modules[name], name, {})
            if all(key.startswith("__") for key in vars(sys.modules[name])):
                del sys.modules[name]
    for name in before.watched & set(sys.modules):
        _put_back_names(sys.modules[name], name, before.names[name])
    for path, kind in before.classes.items():
        _put_back_names(kind, path, before.names[path])
    for holder, copy in before.copies:
        if not _same_items(holder, copy):
            holder.clear()
            (holder.update if isinstance(holder, dict | set) else holder.extend)(copy)
    for function in before.bare:
        vars(function).clear()
    for cache, size in before.caches:
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
    inspected = [cache for cache, _ in seen.caches if cache.cache_info().currsize]
    for cache in inspected:
        cache.cache_clear()
    return bool(inspected)


def _put_back_names(holder: object, path: str, before: dict[str, Any]) -> None:
    now = dict(vars(holder))
    for key in {*now, *before}:
        old, new = before.get(key), now.get(key)
        code = isinstance(new, type | types.ModuleType | types.FunctionType) or callable(new)
        if old is new or code or key in _VOLATILE or f"{path}.{key}" in ALLOWED_STATE:
            continue
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
    return all(a is b for a, b in zip(one, other, strict=True))


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
    known = set(opaque_paths(before.contents))
    return [path for path in opaque_paths(after.contents) if path not in known]
