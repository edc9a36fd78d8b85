"""Everything that a run lets out: its result to the last bit, and what it says, writes, logs, raises and leaves behind.

`observe` runs a function on data in a fresh directory and keeps what somebody could see of it. `differences`
says in words where two observations differ: it names the place, not what was found there. What cannot be looked into
(`fogline.audit.leaves`) and threads that are left running count as differences: they could hold or do anything.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import logging
import os
import pickle
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from fogline._typing import SourceLike
from fogline.audit.leaves import ADDRESS, flatten, opaque_paths
from fogline.audit.surroundings import (
    Surroundings,
    changed_places,
    look_around,
    opaque_additions,
    watch_writes,
    without_inspected,
)

__all__ = ["Observation", "differences", "flatten", "look_before", "modules_of", "observe"]

_PATIENCE = 0.5
"""Seconds for which a thread that is about to end is waited for."""

_MOMENT = frozenset(
    {"created", "msecs", "relativeCreated", "thread", "threadName", "process", "processName", "taskName"}
)
"""What a log record says of the moment and of the process, not of the data."""


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
        Log records, at any level and with all that was attached to them, and warnings.
    output : str
        What went to stdout and stderr, by Python or past it.
    files : dict
        Content of each file in the working, the temporary and the home directory.
    elsewhere : dict
        What was written outside them, and processes and sockets that were used.
    environment, context : dict
        Environment and context variables afterwards.
    threads : list of str
        Names of threads that were left running.
    filters : str
        Filters of warnings that were added.
    before, after : Surroundings
        The state of the process.
    """

    result: Any = None
    state: dict[str, Any] = field(default_factory=dict)
    pickled: bytes = b""
    text: str = ""
    exception: tuple[tuple[str, str], ...] = ()
    logs: list[dict[str, Any]] = field(default_factory=list)
    caught: list[tuple[str, str]] = field(default_factory=list)
    output: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    elsewhere: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    threads: list[str] = field(default_factory=list)
    filters: str = ""
    before: Surroundings | None = None
    after: Surroundings | None = None


def observe(
    function: Callable[[Any], Any],
    data: SourceLike,
    *,
    watched: Iterable[str] = (),
    before: Surroundings | None = None,
    look: bool = True,
) -> Observation:
    r"""Run ``function(data)`` and keep what can be seen of it from outside; an exception is kept, not raised.

    Parameters
    ----------
    function : callable
    data : object
    watched : iterable of str
        Modules to look into besides fogline's and the function's own.
    before : Surroundings, optional
        A look at the process just before, if there is one.
    look : bool
        Whether to look at the state of the process, which takes a quarter of a second the first time.

    Examples
    --------
    >>> seen = observe(lambda data: print("rows:", len(data)), [1, 2, 3])
    >>> seen.output
    'rows: 3\n'
    """
    modules = modules_of(function, watched)
    seen = Observation(before=look_before(modules, function) if look and before is None else before)
    running = threading.enumerate()
    printed, context, records = io.StringIO(), contextvars.copy_context(), list[logging.LogRecord]()
    with (
        _own_directory() as folder,
        watch_writes(folder) as seen.elsewhere,
        _captured_logs(records),
        warnings.catch_warnings(record=True) as caught,
        _captured_descriptors() as unbuffered,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        # Else a warning shown once would be missing from the second run.
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        try:
            # In a copy of the context, so that what a run sets there can be looked at and does not stay.
            seen.result = context.run(function, data)
        except Exception as error:
            seen.exception = tuple(_chain(error))
        seen.threads = _left_running(running)
        seen.filters = repr([one for one in warnings.filters if one not in filters])
        seen.after = look_around(modules, inspected=function, last=seen.before) if look else None
        seen.files = _files_in(folder)
        seen.environment = {key: value.replace(str(folder), "~") for key, value in os.environ.items()}
    seen.logs = [_logged(record) for record in records]
    seen.caught = [(warning.category.__name__, ADDRESS.sub("0x", str(warning.message))) for warning in caught]
    seen.output = printed.getvalue() + "".join(unbuffered)
    seen.context = _context_values(context)
    if not seen.exception:
        _look_at_result(seen)
    return seen


_LAST: list[Surroundings] = []
"""The first look of the last run that was observed: what is as it was then need not be read again."""


def look_before(modules: Iterable[str], function: Callable[[Any], Any]) -> Surroundings:
    """Look at the process before a function runs, beginning from the look before the last one.

    Examples
    --------
    >>> one, other = look_before([], print), look_before([], print)
    >>> changed_places(one, other)
    []
    """
    seen = look_around(modules, inspected=function, last=_LAST[0] if _LAST else None)
    # one look only: each holds copies of all modules
    _LAST[:] = [without_inspected(seen)]
    return seen


def modules_of(function: Callable[[Any], Any], further: Iterable[str] = ()) -> set[str]:
    """Return the modules whose state a run of a function is compared by, besides fogline's.

    Examples
    --------
    >>> sorted(modules_of(print, ["numpy"]))
    ['builtins', 'numpy']
    """
    return {str(getattr(function, "__module__", "")), type(function).__module__, *further}


def _files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def _left_running(before: list[threading.Thread]) -> list[str]:
    """Return the names of threads that were not there before and do not end."""
    new = [thread for thread in threading.enumerate() if thread not in before]
    for thread in new:
        # A thread that is just ending is no leak: it gets a moment.
        thread.join(_PATIENCE)
    return [thread.name for thread in new if thread.is_alive()]


def _logged(record: logging.LogRecord) -> dict[str, Any]:
    leaves: dict[str, Any] = {"message": ADDRESS.sub("0x", record.getMessage())}
    for name, value in vars(record).items():
        if name == "exc_info" and value:
            leaves[name] = tuple(_chain(value[1]))
        elif name not in _MOMENT:
            flatten(value, name, leaves)
    return leaves


def _context_values(context: contextvars.Context) -> dict[str, Any]:
    """Return the leaves of all context variables; the provider in use is the audit's own."""
    leaves: dict[str, Any] = {"numpy's error state": context.run(np.geterr)}
    for variable, value in context.items():
        if variable.name != "fogline_door":
            flatten(value, variable.name, leaves)
    return leaves


def _look_at_result(seen: Observation) -> None:
    flatten(seen.result, "result", seen.state)
    try:
        seen.text = ADDRESS.sub("0x", f"{seen.result!r}\n{seen.result!s}")
    except Exception as error:
        seen.text = f"{type(error).__name__}: {ADDRESS.sub('0x', str(error))}"
    try:
        # Attributes are not all: a class may pickle more than it shows.
        seen.pickled = pickle.dumps(seen.result, protocol=5)
    except Exception as error:
        seen.pickled = f"{type(error).__name__}: {ADDRESS.sub('0x', str(error))}".encode()


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
        hidden = dict.fromkeys([*opaque_paths(first.state), *opaque_paths(second.state)])
        found += [f"{place} cannot be looked into" for place in hidden]
    found += _left_behind(first, second)
    parts = {
        "log records": (first.logs, second.logs),
        "warnings": (first.caught, second.caught),
        "printed text": (first.output, second.output),
        "files written": (first.files, second.files),
        "files, processes or sockets elsewhere": (first.elsewhere, second.elsewhere),
        "environment variables": (first.environment, second.environment),
        "filters of warnings": (first.filters, second.filters),
        "context variables": (first.context, second.context),
    }
    return found + [f"{name}: not the same" for name, (a, b) in parts.items() if a != b]


def _left_behind(first: Observation, second: Observation) -> list[str]:
    """Say what of the process differs afterwards, and which threads still run."""
    found = [f"the thread {name!r} is left running" for name in dict.fromkeys([*first.threads, *second.threads])]
    if first.after is not None and second.after is not None:
        places = changed_places(first.after, second.after)
        found += [f"{place}: state outside the result, not the same" for place in places[:5]]
        if len(places) > 5:
            found.append(f"... and {len(places) - 5} more places outside the result")
    for seen in (first, second):
        if seen.before is not None and seen.after is not None:
            added = opaque_additions(seen.before, seen.after)
            found += [f"{place}, outside the result, cannot be looked into" for place in added]
    return list(dict.fromkeys(found))


# -- the world around a run ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _own_directory() -> Iterator[Path]:
    """Work in a fresh directory that is also home and where temporary files go; put the environment back."""
    before, temporary, environment = Path.cwd(), tempfile.tempdir, dict(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "tmp").mkdir()
        # A relative path, home and the temporary directory all lead here, where new files can be counted.
        os.chdir(folder)
        tempfile.tempdir = str(folder / "tmp")
        os.environ.update(HOME=str(folder), TMPDIR=tempfile.tempdir)
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            os.environ.pop(name, None)  # so that these are below home
        try:
            yield folder
        finally:
            tempfile.tempdir = temporary
            os.chdir(before)
            # cleared first: what the run added must go as well
            os.environ.clear()
            os.environ.update(environment)


@contextlib.contextmanager
def _captured_logs(records: list[logging.LogRecord]) -> Iterator[None]:
    """Keep every log record that is made, at any level, wherever it is handled."""
    factory, level, disabled = logging.getLogRecordFactory(), logging.root.level, logging.root.manager.disable

    def keep(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = factory(*args, **kwargs)
        records.append(record)  # looked at in the end: what is attached to a record comes later
        return record

    logging.setLogRecordFactory(keep)
    logging.root.setLevel(logging.NOTSET + 1)
    # numba says much when it compiles, in the first run only; py4j when Python collects what Spark has left
    talkative = {logger: logger.level for logger in map(logging.getLogger, ("numba", "py4j"))}
    for logger, said in talkative.items():
        logger.setLevel(said or logging.INFO)
    logging.disable(logging.NOTSET)
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
        logging.root.setLevel(level)
        for logger, said in talkative.items():
            logger.setLevel(said)
        logging.disable(disabled)


@contextlib.contextmanager
def _captured_descriptors() -> Iterator[list[str]]:
    """Keep what is written to standard output and error past Python's own streams."""
    written: list[str] = []
    with contextlib.ExitStack() as stack:
        for number in (1, 2):
            try:
                saved = os.dup(number)
            except OSError:  # there is none
                continue
            file = stack.enter_context(tempfile.TemporaryFile())
            # Below Python: compiled code writes to the descriptor and passes by sys.stdout.
            os.dup2(file.fileno(), number)
            stack.callback(_restore, number, saved, file, written)
        yield written


def _restore(number: int, saved: int, file: IO[bytes], written: list[str]) -> None:
    # the descriptor is put back before the file is read: what is printed from here on is ours
    os.dup2(saved, number)
    os.close(saved)
    file.seek(0)
    written.append(file.read().decode(errors="backslashreplace"))


def _chain(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """Type and message of an error and of all that stands behind it, shown or not."""
    # errors may form a circle by their contexts
    known: set[int] = set()
    while error is not None and id(error) not in known:
        known.add(id(error))
        notes = "".join(getattr(error, "__notes__", []))
        yield type(error).__name__, ADDRESS.sub("0x", f"{error}{notes}")
        # also what "from None" hides: it is still reachable
        error = error.__cause__ or error.__context__
