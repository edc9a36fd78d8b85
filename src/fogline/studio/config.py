"""What the administrator allows: data sets by id, the ledger that pays, where releases are stored.

A configuration is TOML, or follows from a folder and a few options. Paths and addresses stand here and nowhere else: a
page knows a data set by its id. Everything is checked when the studio starts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline import units
from fogline._validation import unknown_key
from fogline.sources.paths import ADDRESSES, is_parquet, is_text

__all__ = ["READING", "ConfigError", "Dataset", "StudioConfig", "folder_config", "load_config"]

READING = ("delimiter", "decimal", "thousands", "encoding", "null", "header")
"""Options of how a text file is read."""

ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
"""What an id looks like: it stands in addresses."""

PORT = 8765

TIME_STEPS = (2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds after its start at which a release may be told to have ended; then every minute."""

_STUDIO = ("title", "store", "host", "port", "hosts", "https", "expect_records")
_LEDGER = ("path", "high_water", "epsilon", "delta")
_DATASET = ("file", "title", "about", "query", "unit", "max_contributions", "expect_records", "account", "ranges")


class ConfigError(ValueError):
    """The configuration cannot be used; the message is for the administrator, at the terminal."""


@dataclass(frozen=True)
class Dataset:
    """A data set that may be released from.

    Parameters
    ----------
    id : str
        Letters, digits and hyphens.
    source : str
        Path or address: never shown.
    title, about : str
    query : str, optional
        Of a database: a SELECT or the name of a table.
    unit : str, optional
        Column that says whose record a row is.
    max_contributions : int
    expect_records : int, optional
        About how many records there are, as the administrator says.
    account : str
        Name of the data set in the ledger.
    ranges : mapping
        Public ranges of columns: pairs, or names of :mod:`fogline.units`.
    reading : mapping
        How text is read.
    """

    id: str
    source: str = field(repr=False)
    title: str
    account: str
    about: str = ""
    query: str | None = field(default=None, repr=False)
    unit: str | None = None
    max_contributions: int = 1
    expect_records: int | None = None
    ranges: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_address(self) -> bool:
        """Whether the source is a database."""
        return self.source.startswith(ADDRESSES)

    @property
    def kind(self) -> str:
        """What the source is, in a word."""
        if self.is_address:
            return "database"
        place = Path(self.source)
        return "Parquet" if is_parquet(place) else "text file" if is_text(place) else "files"


@dataclass(frozen=True)
class StudioConfig:
    """All of it.

    Parameters
    ----------
    datasets : tuple of Dataset
    store : Path
        Folder of releases, proposals and notes of work.
    ledger : Path
    high_water : Path, optional
    cap : (epsilon, delta), optional
        Cap of a ledger, or of a data set in it, that is not there yet; without it they must be there.
    title : str
    host : str
    port : int
    hosts : tuple of str
        Further names by which the studio is reached, with their ports.
    https : bool
        Whether a server in front of it speaks HTTPS.
    time_steps : tuple of float
        Seconds after its start at which the end of a release may be told.
    """

    datasets: tuple[Dataset, ...]
    store: Path
    ledger: Path
    high_water: Path | None = None
    cap: tuple[float, float] | None = None
    title: str = "Studio"
    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    https: bool = False
    time_steps: tuple[float, ...] = TIME_STEPS

    def __post_init__(self) -> None:
        if not self.datasets:
            raise ConfigError("there is no data set: name a folder with CSV or Parquet files, or a configuration")
        ids = [dataset.id for dataset in self.datasets]
        for name in ids:
            if not ID.fullmatch(name):
                raise ConfigError(f"{name!r} is no id: use up to 40 small letters, digits and hyphens")
        if len(set(ids)) != len(ids):
            raise ConfigError("two data sets have the same id")

    def dataset(self, name: str) -> Dataset | None:
        """Return a data set by its id."""
        return next((dataset for dataset in self.datasets if dataset.id == name), None)

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Values of the Host header that are answered."""
        own = ("127.0.0.1", "localhost", "[::1]")
        return frozenset(name.lower() for name in (*(f"{name}:{self.port}" for name in own), *self.hosts))

    @property
    def allowed_origins(self) -> frozenset[str]:
        """Values of the Origin header from which a form may come."""
        scheme = "https" if self.https else "http"
        return frozenset(f"{scheme}://{name}" for name in self.allowed_hosts)


def load_config(path: Path, **overrides: Any) -> StudioConfig:
    """Read a configuration; relative paths begin at its folder.

    Parameters
    ----------
    path : Path
        Of a TOML file.
    **overrides
        Fields of :class:`StudioConfig` that take the place of the file's, where they are not None.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ConfigError(f"{str(path)!r} cannot be read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if is_text(path) or is_parquet(path):
            raise ConfigError(f"{str(path)!r} is a table: name the folder that it lies in") from None
        raise ConfigError(f"{str(path)!r} is no TOML: {error}") from None
    _known(content, ("studio", "ledger", "dataset"), "the configuration")
    studio = _table(content, "studio", _STUDIO)
    ledger = _table(content, "ledger", _LEDGER)
    entries = content.get("dataset", {})
    if not isinstance(entries, dict):
        raise ConfigError("write data sets as [dataset.ID]")
    base = path.parent
    expect = studio.get("expect_records")
    datasets = tuple(_dataset(name, entry, base, expect) for name, entry in entries.items())
    store = base / str(studio.get("store", "studio"))
    found = {
        "datasets": datasets,
        "store": store,
        "ledger": base / str(ledger["path"]) if "path" in ledger else store / "budget.fogline",
        "high_water": base / str(ledger["high_water"]) if "high_water" in ledger else None,
        "cap": (float(ledger["epsilon"]), float(ledger.get("delta", 0.0))) if "epsilon" in ledger else None,
        **{name: studio[name] for name in ("title", "host", "port", "https") if name in studio},
        **({"hosts": tuple(studio["hosts"])} if "hosts" in studio else {}),
    }
    return StudioConfig(**{**found, **{name: value for name, value in overrides.items() if value is not None}})


def folder_config(folder: Path, *, store: Path, ledger: Path | None = None, **options: Any) -> StudioConfig:
    """Allow every text and Parquet file that lies directly in a folder; a link that leads out of it is left out.

    Parameters
    ----------
    folder : Path
    store : Path
    ledger : Path, optional
        By default in the store.
    **options
        Other fields of :class:`StudioConfig`; None is left at its default.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}")
    files = [file for file in sorted(folder.iterdir()) if _lies_in(folder, file)]
    datasets: dict[str, Dataset] = {}
    for file in files:
        if not (is_text(file) or is_parquet(file)):
            continue
        stem = file.name.split(".")[0]
        name = _free(_slug(stem), datasets)
        datasets[name] = Dataset(name, str(file), stem.replace("_", " ").replace("-", " "), account=name)
    given = {name: value for name, value in options.items() if value is not None}
    return StudioConfig(tuple(datasets.values()), store, ledger or store / "budget.fogline", **given)


def _lies_in(folder: Path, file: Path) -> bool:
    """Whether it is a file of the folder: whoever may write to the folder must not open other places by a link."""
    return not file.name.startswith((".", "_")) and file.is_file() and file.resolve().is_relative_to(folder.resolve())


def _dataset(name: str, entry: object, base: Path, expect: int | None) -> Dataset:
    where = f"[dataset.{name}]"
    if not isinstance(entry, dict) or "file" not in entry:
        raise ConfigError(f"{where} needs a file")
    _known(entry, (*_DATASET, *READING), where)
    file = str(entry["file"])
    ranges = entry.get("ranges", {})
    try:
        for ends in ranges.values():
            units.ranges([ends])
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: ranges: {error}") from None
    return Dataset(
        id=name,
        source=file if file.startswith(ADDRESSES) else str(base / file),
        title=str(entry.get("title", name)),
        account=str(entry.get("account", name)),
        about=str(entry.get("about", "")),
        query=entry.get("query"),
        unit=entry.get("unit"),
        max_contributions=int(entry.get("max_contributions", 1)),
        expect_records=entry.get("expect_records", expect),
        ranges=ranges,
        reading={option: entry[option] for option in READING if option in entry},
    )


def _table(content: Mapping[str, Any], name: str, keys: Collection[str]) -> Mapping[str, Any]:
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise ConfigError(f"[{name}]: expected a table")
    _known(found, keys, f"[{name}]")
    return found


def _known(content: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    if wrong := unknown_key(content, keys, where):
        raise ConfigError(wrong)


def _slug(name: str) -> str:
    """Id of a file by its name.

    Examples
    --------
    >>> _slug("Visits 2025_neu")
    'visits-2025-neu'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:36].strip("-") or "data"


def _free(name: str, taken: Iterable[str]) -> str:
    known, number = set(taken), 2
    found = name
    while found in known:
        found, number = f"{name}-{number}", number + 1
    return found
