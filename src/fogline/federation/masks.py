r"""Masks that cancel: what each site adds to its counts so that only their sum can be read.

For a pass over the sites :math:`s_1 < \dots < s_k`, each pair :math:`a < b` expands its secret into one vector
:math:`r_{ab}` of integers modulo :math:`2^{64}`. Site :math:`s` sends

.. math:: y_s = x_s + \sum_{b > s} r_{sb} - \sum_{a < s} r_{as} \pmod{2^{64}} .

In the sum over *all* sites each :math:`r_{ab}` comes once with either sign: :math:`\sum_s y_s = \sum_s x_s`, exactly.
Without one of the pair's keys :math:`r_{ab}` cannot be told from uniform numbers, so any set of :math:`y_s` that lacks
a site shows nothing but noise.

The numbers are the output of SHAKE-256 on the key, followed by everything that the sites agreed on: pass, sites, pair,
specification, size, and the number of the block. One key serves any number of passes, each of them once.

References
----------
Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal and Seth (2017), Practical secure aggregation for
privacy-preserving machine learning; here without its recovery from dropouts.

Secrets that two sites share and nobody else knows: 256 random bits in a file for each pair.

The file of a pair is made by the site whose name comes first, and brought to the other by a way that whoever merges
cannot read: in person, by an encrypted message. The merging party must never hold one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fogline._typing import IntArray, WordArray
from fogline._validation import state_directory
from fogline.mechanisms.randomness import SystemSource
from fogline.releases.origins import write_secret

__all__ = ["PairKeys", "check_site", "check_sites", "context_of", "key_check", "masked", "new_keys"]


BLOCK_WORDS = 2**16
CHECK_BYTES = 16


def context_of(agreed: Mapping[str, Any]) -> bytes:
    """Everything public that a pass is about, as bytes: other terms, other masks."""
    return json.dumps(agreed, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def masked(exact: IntArray, site: str, keys: Mapping[str, bytes], context: bytes) -> WordArray:
    """Add a site's masks to its exact integers, modulo 2^64.

    Parameters
    ----------
    exact : int64 array
    site : str
    keys : mapping
        The secret of each pair, by the name of the other site.
    context : bytes
        Of :func:`context_of`; the same at all sites.

    Examples
    --------
    >>> key, context = bytes(32), context_of({"pass": "spring"})
    >>> a = masked(np.array([3, 4]), "a", {"b": key}, context)
    >>> b = masked(np.array([10, -4]), "b", {"a": key}, context)
    >>> (a + b).view(np.int64)
    array([13,  0])
    """
    # a copy: the masks are added in place, and the exact counts stay as they are
    total: WordArray = np.ascontiguousarray(exact, dtype=np.int64).view(np.uint64).copy()
    for other, key in keys.items():
        # The context is hashed in: masks for other terms are unrelated, so a mix-up shows as noise and not as a sum.
        stem = _stem(b"fogline-mask-1", site, other, key, context)
        for number, start in enumerate(range(0, total.size, BLOCK_WORDS)):
            here = total[start : start + BLOCK_WORDS]
            digest = hashlib.shake_256(stem + number.to_bytes(8, "big")).digest(8 * here.size)
            # of stated byte order: sites may run on unlike machines
            words = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
            # One of a pair adds what the other takes off; the order of names decides, so that nothing need be agreed
            # on.
            if site < other:
                here += words  # unsigned integers wrap: that is the arithmetic wanted
            else:
                here -= words
    return total


def key_check(site: str, other: str, key: bytes, context: bytes) -> str:
    """A few bytes that show whether two sites have the same key and context, and nothing of the key."""
    return hashlib.shake_256(_stem(b"fogline-check-1", site, other, key, context)).hexdigest(CHECK_BYTES)


def _stem(purpose: bytes, site: str, other: str, key: bytes, context: bytes) -> bytes:
    """Key, purpose, pair and context, each of a known or stated length, so that no two inputs run together."""
    pair = "+".join(sorted((site, other))).encode("ascii")
    return b"".join(len(part).to_bytes(8, "big") + part for part in (key, purpose, pair, context))


FORMAT = "fogline-pair-key-1"
KEY_BYTES = 32


def check_site(value: object, name: str = "site") -> str:
    """Return the name of a site: letters, digits, dots, dashes and underlines, so that it can be part of a file's.

    Examples
    --------
    >>> check_site("north/1")
    Traceback (most recent call last):
    ValueError: site must be 1 to 64 letters, digits, dots, dashes or underlines, got 'north/1'
    """
    # no "+", which joins the names of a pair, and no leading dot or slash in a file name
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", value):
        raise ValueError(f"{name} must be 1 to 64 letters, digits, dots, dashes or underlines, got {value!r}")
    return value


def check_sites(values: Sequence[str]) -> tuple[str, ...]:
    """Return the names of at least two different sites, in order."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError("sites must be a list of names")
    names = tuple(sorted(check_site(value, "sites") for value in values))
    if len(set(names)) != len(names) or len(names) < 2:
        raise ValueError("sites must be at least two different names: with one there is nobody to hide among")
    return names


def new_keys(folder: str | Path, site: str, sites: Sequence[str]) -> list[Path]:
    """Make the key files that are a site's to make: those of the pairs in which its name comes first.

    Parameters
    ----------
    folder : str or Path
        Where the site keeps its keys; made for its owner alone if it is not there.
    site : str
    sites : sequence of str
        All sites of the federation, this one among them.

    Returns
    -------
    list of Path
        The new files, each to be brought to the other site of its name. Keys that are there are kept.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in new_keys(folder, "north", ["north", "south", "east"])]
    ['north+south.key']
    """
    names = check_sites(sites)
    if check_site(site) not in names:
        raise ValueError(f"sites must have {site!r} among them")
    home = Path(folder)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = []
    # one of the two makes the key of a pair, and the order of names says which
    for other in names[names.index(site) + 1 :]:
        path = home / _file_name((site, other))
        if not path.exists():
            key = SystemSource().bytes(KEY_BYTES).hex()
            content = {"format": FORMAT, "secret": True, "sites": [site, other], "key": key}
            write_secret(path, json.dumps(content).encode("ascii"), replace=False)
            made.append(path)
    return made


@dataclass(frozen=True, repr=False)
class PairKeys:
    """One site's keys, one for each other site.

    Parameters
    ----------
    site : str
    keys : dict of bytes
        By the name of the other site.
    folder : Path
        Where they are kept, and where it is written down which passes were masked with them.
    """

    site: str
    keys: dict[str, bytes]
    folder: Path

    @classmethod
    def load(cls, folder: str | Path, site: str, sites: Sequence[str]) -> PairKeys:
        """Read a site's keys; the error names a file that is missing.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = new_keys(folder, "east", ["east", "west"])
        ...     PairKeys.load(folder, "west", ["east", "west"])
        PairKeys('west' with 'east')
        """
        names = check_sites(sites)
        if check_site(site) not in names:
            raise ValueError(f"sites must have {site!r} among them")
        others = [name for name in names if name != site]
        return cls(site, {other: _read(Path(folder), tuple(sorted((site, other)))) for other in others}, Path(folder))

    def __repr__(self) -> str:
        return f"PairKeys({self.site!r} with {', '.join(map(repr, sorted(self.keys)))})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("keys are secret and are not pickled")

    @property
    def sites(self) -> tuple[str, ...]:
        """All sites, in order."""
        return tuple(sorted([self.site, *self.keys]))

    def use_for(self, pass_name: str) -> None:
        """Write down that a pass is masked with these keys; refuse to do it twice.

        Two sketches under the same masks differ by what the data differ, for all to see. The folder of the keys
        remembers its passes, and the user's state directory those of copies of the folder.
        """
        path = self.folder / f"passes-{self.site}.txt"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "a+", encoding="utf-8") as file:
            # Locked from the look to the note: two processes must not both find the pass unused.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if pass_name in file.read().split("\n"):
                raise ValueError(f"pass {pass_name!r} was masked before with these keys: agree on another name for it")
            # before the folder: a copy of it elsewhere on this machine must not mask the pass again
            self._note(pass_name)
            file.write(pass_name + "\n")
            file.flush()
            # On the disk before any masked number leaves: after a crash the pass must count as used.
            os.fsync(file.fileno())

    def _note(self, pass_name: str) -> None:
        """Note the pass where copies of the folder on this machine are seen; the keys cannot be told from the note."""
        words = [pass_name, self.site, *(f"{other} {key.hex()}" for other, key in sorted(self.keys.items()))]
        name = hashlib.sha256("\n".join(["fogline-masked-1", *words]).encode()).hexdigest()
        directory = state_directory() / "masked"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            write_secret(directory / name, b"", replace=False)
        except FileExistsError:
            raise ValueError(
                f"pass {pass_name!r} was masked before with a copy of these keys: agree on another name for it"
            ) from None


def _file_name(pair: tuple[str, ...]) -> str:
    return f"{'+'.join(pair)}.key"


def _read(folder: Path, pair: tuple[str, ...]) -> bytes:
    path = folder / _file_name(pair)
    if not path.is_file():
        raise FileNotFoundError(f"keys: there is no file {path.name} in {str(folder)!r}; site {pair[0]!r} makes it")
    try:
        content = json.loads(path.read_text(encoding="ascii"))
        if content["format"] == FORMAT and content["sites"] == list(pair):
            key = bytes.fromhex(content["key"])
            if len(key) == KEY_BYTES:
                return key
    # what is wrong in a key file is not told: the words might quote it
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ValueError(f"keys: {path.name} is not a key of format {FORMAT} for sites {pair[0]!r} and {pair[1]!r}")
