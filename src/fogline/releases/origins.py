"""Which records a sketch holds and who paid for their releases: what keeps them from being released twice unseen.

Records that are counted into one sketch have one *origin*: a random id, which goes with them into merges and files. Two
sketches that share an id share records: a file and its copy, a snapshot and the stream that ran on. They are not
merged, and a release of one is a release of the other.

Files that are as secret as the records: for their owner alone, and whole or not there at all.

Marks of releases that outlive a process: in the files of sketches, and beside them in the user's state directory.

A mark in the file goes where the file goes. A copy that was made before does not have it, so the ids of all records
that were released from files are also kept in one directory for each user (that of the marks of ledgers): there all
copies on one machine are seen. Both marks are on the disk before any noise is drawn, under locks, so that of two
processes one releases.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from fogline._validation import state_directory
from fogline.mechanisms.randomness import SystemSource

__all__ = [
    "UNCOUNTED",
    "AlreadyReleased",
    "Origin",
    "check_runs",
    "claim",
    "common_payer",
    "keep_at",
    "known_origin",
    "make_durable",
    "mark_paid",
    "payer_of",
    "payers_in",
    "payers_noted",
    "require_apart",
    "require_free",
    "require_own",
    "write_secret",
]


def write_secret(path: str | Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file that only its owner may read (mode 0600), in one step: readers see the old file or the new one.

    Parameters
    ----------
    path : str or Path
    content : bytes
    replace : bool
        Whether a file that is there may be replaced; if not, an error says that it exists.

    Examples
    --------
    >>> import stat, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_secret(f"{folder}/counts", b"1 2 3")
    ...     oct(stat.S_IMODE(Path(folder, "counts").stat().st_mode))
    '0o600'
    """
    target = Path(path)
    if not replace and target.exists():
        raise FileExistsError(f"path: {str(path)!r} is there already")
    # in the same folder: a rename is one step only within a file system
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # the mode is set when the file is made: there is no moment in which others could read it
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # before the rename: else a loss of power may leave a new name with no content
            os.fsync(file.fileno())
        if replace:
            draft.replace(target)
        else:
            _place(draft, target)
        if os.name == "posix":  # pragma: no branch - Windows
            _force(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _place(draft: Path, target: Path) -> None:
    """Give a draft its name, unless another process was faster."""
    try:
        # a link fails where the name is taken; a rename would replace what another process wrote
        os.link(draft, target)
    except FileExistsError:
        raise FileExistsError(f"path: {str(target)!r} is there already") from None
    draft.unlink()


def _force(folder: Path) -> None:
    """Bring a folder's names to the disk, so that a mark in a file outlives a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_durable(folder: Path) -> None:
    """Make a folder for its owner alone, and bring its name and those of the folders above to the disk."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(f"path: {str(folder)!r} is no folder") from None
    if os.name == "posix":  # pragma: no branch - Windows
        # The two last also where they are there: whoever made them may have been interrupted.
        for place in {folder.parent, folder.parent.parent, *(made.parent for made in missing)}:
            _force(place)


try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where two processes at once are not told apart
    fcntl = None  # type: ignore[assignment]

UNCOUNTED = "no ledger"


class AlreadyReleased(RuntimeError):
    """A sketch was asked for a second release, which would cost a second budget that nobody counts."""


def require_free(payers: Iterable[str], payer: str) -> None:
    """Refuse a release that the payers of earlier ones would not count."""
    # what one ledger counts and another does not, neither of them counts
    if any(earlier and (payer == UNCOUNTED or earlier != payer) for earlier in payers):
        raise AlreadyReleased("this sketch was released before; further releases need the ledger that counts them all")


def mark_paid(runs: Sequence[str], payer: str, files: Mapping[Path, tuple[str, ...]]) -> None:
    """Mark records as released, in the user's directory and in files; refused if either says that they were.

    Parameters
    ----------
    runs : sequence of str
        Ids of the records.
    payer : str
    files : mapping
        Files and the ids of the records in each, for files that say no ids.
    """
    try:
        directory = state_directory() / "released"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as locked:
            # one lock for all notes, then the files in a fixed order: no two processes can wait for each other
            locked.enter_context(_locked(directory / ".lock", create=True))
            present = [path for path in sorted(files) if locked.enter_context(_locked(path))]
            found = [payers_noted(runs), *(payers_in(path, files[path]) for path in present)]
            require_free([payers.get(run, "") for payers in found for run in runs], payer)
            for path in present:
                _mark_file(path, runs, payer, files[path])
            for run in runs:
                if found[0].get(run) != payer:
                    write_secret(directory / run, payer.encode())
    except (OSError, RuntimeError) as error:
        if isinstance(error, AlreadyReleased):
            raise
        raise OSError(
            "the release cannot be noted before it is made: the file of the sketch and the state directory "
            "($XDG_STATE_HOME/fogline) must be writable"
        ) from None


def payers_noted(runs: Iterable[str]) -> dict[str, str]:
    """Payers of released records by id, as the user's directory has them; a note that cannot be read is UNCOUNTED."""
    found = {}
    with suppress(RuntimeError):  # without a home there are no notes
        for run in runs:
            try:
                # an empty note says that there was a release, and not who paid
                found[run] = (state_directory() / "released" / run).read_text("utf-8") or UNCOUNTED
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, UnicodeDecodeError):
                found[run] = UNCOUNTED
    return found


def payers_in(path: Path, locked: Iterable[str] = ()) -> dict[str, str]:
    """Payers of released records by id, as a file has them; none where there is no sketch.

    A file of version 1 has one list of payers for all of its records: `locked` are the ids that they have here.
    """
    header, _ = _content(path, names=())
    found = check_runs(header.get("runs", {}))
    earlier = common_payer(header.get("payers", ()))
    return {**dict.fromkeys(locked, earlier), **found} if earlier else found


def common_payer(payers: Iterable[str]) -> str:
    """The one payer that counts all releases; UNCOUNTED if there were several, empty if there was none."""
    # no payer is no release
    found = set(filter(None, payers))
    return UNCOUNTED if len(found) > 1 else "".join(found)


def check_runs(runs: Any) -> dict[str, str]:
    """Return ids and payers as a file has them, or raise ValueError."""
    # ids become names of files: anything but 32 hexadecimal digits could lead elsewhere
    if not isinstance(runs, dict) or not all(
        re.fullmatch("[0-9a-f]{32}", run) and isinstance(payer, str) for run, payer in runs.items()
    ):
        raise ValueError("path: the ids of the records are damaged")
    return dict(runs)


def _content(path: Path, names: Sequence[str] | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file, by default all; both empty if it is not there or no sketch any more."""
    try:
        with np.load(path, allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            wanted = [name for name in data.files if name != "header"] if names is None else names
            arrays = {name: data[name] for name in wanted}
    except FileNotFoundError:
        return {}, {}
    except OSError:
        raise
    except Exception:  # whatever it is, nobody can load a sketch from it
        return {}, {}
    return (header, arrays) if isinstance(header, dict) else ({}, {})


def _mark_file(path: Path, runs: Sequence[str], payer: str, locked: tuple[str, ...]) -> None:
    header, arrays = _content(path)
    if not header:
        return
    present = check_runs(header.get("runs", dict.fromkeys(locked, "")))
    header["runs"] = {run: payer if run in runs else earlier for run, earlier in present.items()}
    if "payers" in header:  # the file is of version 1, whose readers know no ids
        header["payers"] = sorted({*filter(None, header["payers"]), payer})
    file = io.BytesIO()
    np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
    write_secret(path, file.getvalue())


@contextmanager
def _locked(path: Path, *, create: bool = False) -> Iterator[bool]:
    """Hold the lock on the file that is at a path now; false if there is none."""
    # again where the file was replaced while its lock was waited for
    while True:
        try:
            handle = os.open(path, (os.O_RDWR | os.O_CREAT) if create else os.O_RDONLY, 0o600)
        except FileNotFoundError:
            yield False
            return
        try:
            if fcntl is not None:  # pragma: no branch - Windows
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(handle, path):
                yield True
                return
        finally:
            os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at a path: it may have been replaced while its lock was waited for."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


# two threads must not both find the records free
_CLAIMING = threading.RLock()
_KNOWN: WeakValueDictionary[str, Origin] = WeakValueDictionary()


class Origin:
    """Records counted together, and who paid for their releases; shared by all sketches of a process that hold them.

    The payer is empty before the first release, then the id of the ledger that counts them, or UNCOUNTED. An origin is
    stored once a file holds its records: releases are then noted where other processes see them.
    """

    def __init__(self, run: str = "", payer: str = "", *, stored: bool = False) -> None:
        self.run = run or SystemSource().bytes(16).hex()
        self.payer = payer
        self.stored = stored
        _KNOWN[self.run] = self

    def note(self, payer: str) -> None:
        """Take note of a payer found elsewhere; two that differ cannot be counted by either."""
        if payer and payer != self.payer:
            # a payer of before and another one now: no ledger has seen both releases
            self.payer = UNCOUNTED if self.payer else payer


def known_origin(run: str, payer: str) -> Origin:
    """The origin that a file names: one object for each id in this process."""
    with _CLAIMING:
        origin = _KNOWN.get(run)
        if origin is None:
            return Origin(run, payer, stored=True)
        origin.stored = True
        origin.note(payer)
        return origin


def require_apart(*parts: tuple[Origin, ...]) -> None:
    """Refuse to add up what shares records."""
    runs = [{origin.run for origin in part} for part in parts]
    if len(set[str]().union(*runs)) < sum(map(len, runs)):
        raise ValueError("other: a sketch cannot be merged with itself or with one that holds the same records")


def keep_at(origins: tuple[Origin, ...], path: Path, files: dict[Path, tuple[str, ...]]) -> None:
    """Note that records are about to go into a file, and learn of releases that other processes made of them.

    Parameters
    ----------
    origins : tuple of Origin
    path : Path
    files : dict
        Files that held them so far; only this one from now on.
    """
    with _CLAIMING:
        runs = [origin.run for origin in origins]
        for found in (payers_in(path, files.get(path, ())), payers_noted(runs)):
            for origin in origins:
                origin.note(found.get(origin.run, ""))
                origin.stored = True
        files.clear()
        files[path] = tuple(runs)


def claim(
    origins: tuple[Origin, ...], payer: str, process: int, files: Mapping[Path, tuple[str, ...]] | None = None
) -> None:
    """Mark records as released, before they are; refuse what nobody would count, or another process might.

    Parameters
    ----------
    origins : tuple of Origin
    payer : str
        Id of a ledger, or UNCOUNTED.
    process : int
        The process that counted the records, or read them from a file.
    files : mapping, optional
        Files that hold some of the records, with the ids of those: they are marked as well.
    """
    require_own(process)
    with _CLAIMING:
        require_free([origin.payer for origin in origins], payer)
        stored = [origin.run for origin in origins if origin.stored]
        if stored:
            mark_paid(stored, payer, files or {})
        for origin in origins:
            origin.payer = payer


def require_own(process: int) -> None:
    """Refuse a sketch that came here by a fork: a copy's releases are not seen by the process that made it."""
    if os.getpid() != process:
        raise AlreadyReleased("this sketch was made in another process, which may release it as well")


def payer_of(ledger: Any) -> str:
    """Id of a ledger or of the ledger behind a view of it."""
    return str(getattr(ledger, "ledger", ledger).id)
