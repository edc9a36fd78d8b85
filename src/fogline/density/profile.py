"""A released profile: the shape of every column, from one budget, and what is read from it for free.

Nothing here has seen a record. For a column of numbers or dates the release holds two stages of counts on leaves, so
that it is a :class:`~fogline.PrivateDensity` with a posterior; beside them stand noisy counts of values that are
missing, below the range or above it. For a column of categories it holds a noisy count per category, one of all others
and one of missing values. Every record is in one cell of each column, so each column tells the number of records, and
together they tell it much better than any of them alone.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fogline._results import Results
from fogline._typing import FloatArray, IntArray
from fogline.accounting.guarantee import Guarantee
from fogline.density.column_pairs import CellGroups, ColumnPair, PairCounts, read_pairs
from fogline.density.columns import BEYOND, CategoryColumn, ColumnPlan, NumberColumn, column_from_dict
from fogline.density.counted_records import release_message
from fogline.density.leaves import LeafRelease, Noise
from fogline.density.posterior.estimates import Atom, Band, Estimate
from fogline.density.private_density import PrivateDensity
from fogline.density.value_words import cell_values

if TYPE_CHECKING:
    from fogline.density.modes.on_grid import ModeTable

__all__ = ["DECILES", "LEAST_HEAP", "QUARTILES", "ColumnProfile", "Profile", "StageCounts", "example_profile"]

FORMAT = "fogline-profile-1"

QUARTILES = (0.25, 0.5, 0.75)
DECILES = tuple(k / 10 for k in range(1, 10))

MARKS = np.array([0.005, *sorted({*QUARTILES, *DECILES}), 0.995])
"""Quantiles that are read of every column."""

CURVE_POINTS = 96
"""Places along a picture's curve."""

LEAST_HEAP = 0.01
"""Heaps of less than this share are in documents, but not in tables for people."""

_LEVEL = 0.95
_DEVIATIONS = 1.959964


@dataclass(frozen=True, eq=False)
class StageCounts:
    """Counts of single cells that both stages released.

    Parameters
    ----------
    pilot, counts : int64 array
        Cells beyond the leaves, or those of categories.
    noises : (Noise, Noise)
        Of both stages.
    """

    pilot: IntArray
    counts: IntArray
    noises: tuple[Noise, Noise]

    @property
    def values(self) -> FloatArray:
        """Counts of both stages by inverse variance."""
        first, second = (1 / max(noise.variance, 1e-300) for noise in self.noises)
        return np.asarray((first * self.pilot + second * self.counts) / (first + second))

    @property
    def variance(self) -> float:
        """Variance of the noise in each of :attr:`values`."""
        return 1 / sum(1 / max(noise.variance, 1e-300) for noise in self.noises)


@dataclass(frozen=True)
class _Reading:
    """What is read of one column's posterior."""

    quantiles: Estimate
    mean: Estimate
    zeros: Estimate | None
    atoms: tuple[Atom, ...]
    modes: ModeTable | None
    shown: tuple[float, float]
    curve: Band

    @classmethod
    def of(cls, density: PrivateDensity, plan: ColumnPlan) -> _Reading:
        posterior, (low, high) = density.posterior, density.spec.bounds[0]
        quantiles, atoms = posterior.quantile(MARKS), posterior.atoms
        zeros = None
        if plan.kind == "number" and low <= 0 <= high:
            if density.spec.values_per_leaf[0] == 1:
                zeros = posterior.probability([(0.0, 0.0)])
            else:
                zeros = next((atom.share for atom in atoms if atom.low <= 0 <= atom.high), None)
        first, last = (float(np.asarray(quantiles.value)[k]) for k in (0, -1))
        margin = max(0.08 * (last - first), 0.002 * (high - low))
        shown = (max(low, first - margin), min(high, last + margin))
        points = int(min(CURVE_POINTS * (high - low) / (shown[1] - shown[0]), density.spec.n_leaves))
        try:
            modes = density.modes()
        except ValueError:  # a reading that knows Fourier sums only
            modes = None
        return cls(quantiles, posterior.mean(), zeros, atoms, modes, shown, posterior.band(points=points))


class ColumnProfile:
    """What a profile tells of one column; made by :class:`Profile`.

    Parameters
    ----------
    plan : NumberColumn or CategoryColumn
        Public: kind, range, step or categories.
    cells : StageCounts
        Values missing, below and above the range; or categories, all others, and missing values.
    leaves : LeafRelease or None
        Of a column of numbers or dates.
    count : (float, float)
        Released number of records and its standard error.
    guarantee, receipt
        Of the whole profile.

    Examples
    --------
    >>> age = example_profile()["age"]
    >>> age.kind, age.bounds
    ('integer', (0.0, 100.0))
    >>> bool(abs(age.quantile(0.5).value - 50) < 5)
    True
    """

    def __init__(
        self,
        plan: ColumnPlan,
        cells: StageCounts,
        leaves: LeafRelease | None,
        *,
        count: tuple[float, float],
        guarantee: Guarantee,
        receipt: dict[str, Any] | None = None,
    ) -> None:
        self.plan, self.cells, self.leaves = plan, cells, leaves
        self.count, self.guarantee, self.receipt = count, guarantee, receipt

    def __repr__(self) -> str:
        return f"ColumnProfile({self.name!r}, {self.kind})"

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.plan.name

    @property
    def kind(self) -> str:
        """``"number"``, ``"integer"`` (with a step of 1), ``"date"`` or ``"category"``."""
        is_integer = isinstance(self.plan, NumberColumn) and self.plan.kind == "number" and self.plan.step == 1
        return "integer" if is_integer else self.plan.kind

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Range of the values, in days since 1970 for dates; None for categories."""
        return self.plan.bounds if isinstance(self.plan, NumberColumn) else None

    @property
    def density(self) -> PrivateDensity | None:
        """Density of the values in the range, made anew each time; None for categories."""
        if self.leaves is None:
            return None
        return PrivateDensity.from_leaves(
            self.leaves, guarantee=self.guarantee, receipt=self.receipt, columns=[self.name]
        )

    def _values(self) -> PrivateDensity:
        density = self.density
        if density is None:
            raise ValueError(f"column {self.name!r} holds categories, which have no values")
        return density

    @cached_property
    def _reading(self) -> _Reading:
        """Everything that tables and pages show, read at once; the posterior takes 50 MB and is not kept."""
        return _Reading.of(self._values(), self.plan)

    # -- shares of all records -------------------------------------------------------------------------------

    def _share(self, cell: int) -> Estimate:
        """Share of all records in one cell, with the error of its noise and of sampling."""
        records, count_sd = self.count
        found = float(self.cells.values[cell])
        share = min(max(found / records, 0.0), 1.0)
        privacy = math.sqrt(self.cells.variance + (share * count_sd) ** 2) / records
        spread = max(share, min(privacy, 0.5))  # a share seen as zero may be as large as the noise
        sampling = math.sqrt(spread * (1 - spread) / records)
        error = math.hypot(privacy, sampling)
        low, high = max(share - _DEVIATIONS * error, 0.0), min(share + _DEVIATIONS * error, 1.0)
        return Estimate(share, error, low, high, _LEVEL, "population", privacy, sampling, 0.0)

    @property
    def missing(self) -> Estimate:
        """Share of records without a value: an empty cell, or one that cannot be read as what was declared."""
        return self._share(-1 if isinstance(self.plan, CategoryColumn) else BEYOND.index("missing"))

    @property
    def below(self) -> Estimate | None:
        """Share of records below the range; None for categories."""
        return None if self.leaves is None else self._share(BEYOND.index("below"))

    @property
    def above(self) -> Estimate | None:
        """Share of records above the range; None for categories."""
        return None if self.leaves is None else self._share(BEYOND.index("above"))

    @cached_property
    def categories(self) -> tuple[tuple[str, Estimate], ...]:
        """Categories with their shares of all records, the largest first; empty for numbers and dates."""
        if not isinstance(self.plan, CategoryColumn):
            return ()
        order = np.argsort(-self.cells.values[: len(self.plan.labels)], kind="stable")
        return tuple((self.plan.labels[k], self._share(int(k))) for k in order)

    @property
    def rest(self) -> Estimate | None:
        """Share of records in all other categories together; None for numbers and dates."""
        return self._share(-2) if isinstance(self.plan, CategoryColumn) else None

    # -- values in the range ---------------------------------------------------------------------------------

    def quantile(self, q: ArrayLike) -> Estimate:
        """Quantiles of the values in the range, with errors; dates in days since 1970."""
        wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if self.leaves is None or not np.isin(wanted, MARKS).all():
            return self._values().posterior.quantile(q)
        known, places = self._reading.quantiles, np.searchsorted(MARKS, wanted)
        names = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
        parts: dict[str, Any] = {name: np.asarray(getattr(known, name))[places] for name in names}
        found = replace(known, **parts)
        return found[0] if np.ndim(q) == 0 else found

    @property
    def quartiles(self) -> Estimate:
        """Quartiles of the values in the range."""
        return self.quantile(QUARTILES)

    @property
    def deciles(self) -> Estimate:
        """Deciles of the values in the range."""
        return self.quantile(DECILES)

    @property
    def mean(self) -> Estimate:
        """Mean of the values in the range."""
        self._values()
        return self._reading.mean

    @property
    def zeros(self) -> Estimate | None:
        """Share of zeros among the values in the range; None where the range does not hold 0, or there are none.

        On a column without a step zeros are seen where they stand out as an atom.
        """
        return None if self.leaves is None else self._reading.zeros

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Values that hold a share by themselves: zeros, heaps, values at an end of the range."""
        return () if self.leaves is None else self._reading.atoms

    @property
    def modes(self) -> ModeTable | None:
        """Modes of the density, where this edition reads them from leaves; else None."""
        return None if self.leaves is None else self._reading.modes

    @property
    def shown(self) -> tuple[float, float]:
        """Part of the range that holds nearly all of the mass, for a picture."""
        self._values()
        return self._reading.shown

    @property
    def curve(self) -> Band:
        """Density along the range, with its band, for a picture."""
        self._values()
        return self._reading.curve

    # -- words and documents ---------------------------------------------------------------------------------

    def text(self, value: float) -> str:
        """Return a value of the column as people write it."""
        return self.plan.text(value) if isinstance(self.plan, NumberColumn) else f"{value:.4g}"

    def place_words(self, atom: Atom) -> str:
        """Return the value of an atom as people write it, or both ends of its cell where no more is known."""
        step = self.plan.step if isinstance(self.plan, NumberColumn) else None
        return " to ".join(dict.fromkeys(map(self.text, cell_values(atom.value, atom.low, atom.high, step))))

    def to_dict(self) -> dict[str, Any]:
        """Everything that is read of the column, as JSON has it."""
        found: dict[str, Any] = {"name": self.name, "kind": self.kind, "missing": _plain(self.missing)}
        if isinstance(self.plan, CategoryColumn):
            shares = [{"category": label, **_plain(share)} for label, share in self.categories]
            rest = self.rest
            assert rest is not None
            return {**found, "categories": shares, "rest": _plain(rest), "categories_found": self.plan.is_found}
        assert self.below is not None
        assert self.above is not None
        assert self.bounds is not None
        zeros = self.zeros
        marks = sorted({*QUARTILES, *DECILES})
        quantiles = self.quantile(marks)
        modes = self.modes
        return {
            **found,
            "bounds": list(self.bounds),
            "step": self.plan.step,
            "below": _plain(self.below),
            "above": _plain(self.above),
            "zeros": None if zeros is None else _plain(zeros),
            "mean": _plain(self.mean),
            "quantiles": [{"q": q, **_plain(quantiles[k])} for k, q in enumerate(marks)],
            "atoms": [{"value": atom.value, "share": _plain(atom.share)} for atom in self.atoms],
            "modes": None if modes is None else np.asarray(modes.positions).ravel().tolist(),
        }


def _plain(found: Estimate) -> dict[str, float]:
    """An estimate as JSON has it."""
    names = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
    return {name: float(getattr(found, name)) for name in names}


class Profile(Results, Mapping[str, ColumnProfile]):
    """The shape of every column of a table, released once; safe to publish.

    Made by :func:`fogline.profile`. ``profile["age"]`` is one column; everything that can be asked of it is free.

    Parameters
    ----------
    columns : sequence of (plan, StageCounts, LeafRelease or None)
    pairs : sequence of PairCounts
        Counts of pairs of columns, where they were asked for.
    guarantee : Guarantee
        Of all columns together.
    receipt : dict or None
    expected : int or None
        How many records the owner expects, for :attr:`message` alone.

    Examples
    --------
    >>> profile = example_profile()
    >>> list(profile), bool(abs(profile.count - 1000) < 50)
    (['age', 'sex'], True)
    >>> print(str(profile.summary()).splitlines()[0].strip())
    Profile of 2 columns
    """

    def __init__(
        self,
        columns: Sequence[tuple[ColumnPlan, StageCounts, LeafRelease | None]],
        *,
        pairs: Sequence[PairCounts] = (),
        guarantee: Guarantee,
        receipt: dict[str, Any] | None = None,
        expected: int | None = None,
    ) -> None:
        self._parts, self._pairs = tuple(columns), tuple(pairs)
        self.guarantee, self.receipt, self.expected = guarantee, receipt, expected
        self.count, self.count_sd = _pooled_count(self._parts)
        """Released number of records, at least 1, from all columns together, and the noise in it."""
        self._columns = {
            plan.name: ColumnProfile(
                plan, cells, leaves, count=(self.count, self.count_sd), guarantee=guarantee, receipt=receipt
            )
            for plan, cells, leaves in self._parts
        }

    def __getitem__(self, name: str) -> ColumnProfile:
        if name not in self._columns:
            raise KeyError(f"column {name!r} is not in this profile; there are {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Profile({len(self)} columns, about {self.count:.0f} records; {self.guarantee})"

    @property
    def message(self) -> str:
        """What to check, where the released count or the budget give cause; else empty."""
        return release_message("", self.guarantee, self.count, self.count_sd, self.expected, columns=1, bounded=False)

    @cached_property
    def pairs(self) -> tuple[ColumnPair, ...]:
        """Pairs of columns that were asked for, the surest dependence first; empty where none were."""
        return read_pairs(self._pairs)

    def pair(self, first: str, second: str) -> ColumnPair:
        """How two columns depend on each other."""
        for found in self.pairs:
            if set(found.columns) == {first, second}:
                return found
        raise KeyError(f"the pair of {first!r} and {second!r} was not released; ask for it with pairs=")

    def read(self, progress: Callable[[int, int, str], object] | None = None) -> Profile:
        """Read every column now, and tell how far that is; later questions are answered at once.

        Parameters
        ----------
        progress : callable, optional
            Told columns done, columns in all and the name of the column.
        """
        for done, column in enumerate(self.values()):
            if column.leaves is not None:
                column.to_dict()
            if progress is not None:
                progress(done + 1, len(self), column.name)
        return self

    # -- tables ----------------------------------------------------------------------------------------------

    def summary_rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the rows of a summary, as texts."""
        headings = ["column", "kind", "missing", "low ... high", "25%", "50%", "75%", "notes"]
        return headings, [_summary_row(column) for column in self.values()]

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per column, for tables: values and standard errors, categories as text."""
        return [_flat_row(column) for column in self.values()]

    def to_dict(self) -> dict[str, Any]:
        """Everything that is read, as JSON has it."""
        return {
            "format": FORMAT,
            "count": {"value": self.count, "standard_error": self.count_sd},
            "columns": [column.to_dict() for column in self.values()],
            **({"pairs": [pair.to_dict() for pair in self.pairs]} if self._pairs else {}),
            "message": self.message,
            "guarantee": {**self.guarantee.to_dict(), "text": str(self.guarantee)},
            "receipt": self.receipt,
        }

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the release to one file (JSON and integers, no pickle); nothing is lost."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a release written by :meth:`save`."""
        return cls.from_bytes(Path(path).read_bytes())

    def to_bytes(self) -> bytes:
        """The file that :meth:`save` writes."""
        first = self._parts[0][1]
        header = {
            "format": FORMAT,
            "columns": [plan.to_dict() for plan, _, _ in self._parts],
            "noises": [[noise.kind, float(noise.scale).hex()] for noise in first.noises],
            "guarantee": self.guarantee.to_dict(),
            "receipt": self.receipt,
        }
        arrays: dict[str, Any] = {}
        if self._pairs:
            groups = {part.column: part for pair in self._pairs for part in (pair.first, pair.second)}
            noise = self._pairs[0].noise
            header["pairs"] = {
                "noise": [noise.kind, float(noise.scale).hex()],
                "groups": [part.to_dict() for part in groups.values()],
                "columns": [[pair.first.column, pair.second.column] for pair in self._pairs],
            }
            arrays["pairs"] = np.concatenate([pair.counts.ravel() for pair in self._pairs])
        for k, (_, cells, leaves) in enumerate(self._parts):
            arrays |= {f"{k}_pilot": cells.pilot, f"{k}_counts": cells.counts}
            if leaves is not None:
                arrays |= {f"{k}_leaves_{name}": array for name, array in leaves.to_arrays().items()}
        file = io.BytesIO()
        np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, receipt: dict[str, Any] | None = None, expected: int | None = None) -> Profile:
        """Inverse of :meth:`to_bytes`; a receipt given here takes the place of the one inside."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as content:
                header = json.loads(str(content["header"]))
                arrays = {name: content[name] for name in content.files if name != "header"}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise ValueError(f"path: not a profile of format {FORMAT}") from None
        if header.get("format") != FORMAT:
            raise ValueError(f"path: not a profile of format {FORMAT}: {header.get('format')!r}")
        first, second = (Noise(kind, float.fromhex(scale)) for kind, scale in header["noises"])
        columns = []
        for k, described in enumerate(header["columns"]):
            plan = column_from_dict(described)
            pilot, counts = (arrays[f"{k}_{name}"].astype(np.int64) for name in ("pilot", "counts"))
            wanted = len(BEYOND) if isinstance(plan, NumberColumn) else plan.cells
            if len(pilot) != wanted or len(counts) != wanted:
                raise ValueError("path: the counts of this profile do not fit its columns")
            leaves = None
            if isinstance(plan, NumberColumn):
                mine = f"{k}_leaves_"
                found = {name.removeprefix(mine): array for name, array in arrays.items() if name.startswith(mine)}
                leaves = LeafRelease.from_arrays(plan.spec, found)
            columns.append((plan, StageCounts(pilot, counts, (first, second)), leaves))
        return cls(
            columns,
            pairs=_stored_pairs(header.get("pairs"), arrays),
            guarantee=Guarantee.from_dict(header["guarantee"]),
            receipt=header["receipt"] if receipt is None else receipt,
            expected=expected,
        )


def _stored_pairs(described: dict[str, Any] | None, arrays: Mapping[str, Any]) -> list[PairCounts]:
    """Pairs of a file."""
    if described is None:
        return []
    groups = {part["column"]: CellGroups.from_dict(part) for part in described["groups"]}
    kind, scale = described["noise"]
    noise, values, place, found = Noise(kind, float.fromhex(scale)), arrays["pairs"].astype(np.int64), 0, []
    for first, second in described["columns"]:
        shape = (groups[first].size, groups[second].size)
        mine = values[place : place + shape[0] * shape[1]]
        if len(mine) != shape[0] * shape[1]:
            raise ValueError("path: the counts of this profile do not fit its pairs")
        found.append(PairCounts(groups[first], groups[second], mine.reshape(shape), noise))
        place += len(mine)
    return found


def _pooled_count(parts: Sequence[tuple[ColumnPlan, StageCounts, LeafRelease | None]]) -> tuple[float, float]:
    """Number of records from all columns, each of which tells it, by inverse variance; and its noise."""
    weight = total = 0.0
    for _, cells, leaves in parts:
        stages = [(cells.pilot, cells.noises[0], None), (cells.counts, cells.noises[1], None)]
        boxes = [None, None] if leaves is None else list(leaves.stages)
        for (single, noise, _), counted in zip(stages, boxes, strict=True):
            size = len(single) + (0 if counted is None else len(counted))
            mine = 1 / (size * max(noise.variance, 1e-300))
            weight += mine
            total += mine * (sum(single.tolist()) + (0 if counted is None else counted.total))
    return max(total / weight, 1.0), math.sqrt(1 / weight)


def _percent(share: Estimate) -> str:
    return f"{100 * float(share.value):.1f}%"


def _notes(column: ColumnProfile) -> str:
    """What is worth a word: zeros, heaps, values beyond the range, top categories."""
    if column.leaves is None:
        found = [f"{label} {_percent(share)}" for label, share in column.categories[:3]]
        assert column.rest is not None
        return ", ".join([*found, f"rest {_percent(column.rest)}"])
    zeros = column.zeros
    words = [] if zeros is None or float(zeros.value) < 0.005 else [f"zero {_percent(zeros)}"]
    heaps = sorted((a for a in column.atoms if not a.low <= 0 <= a.high), key=lambda a: -float(a.share.value))
    words += [f"heap at {column.place_words(atom)}" for atom in heaps[:2] if float(atom.share.value) >= LEAST_HEAP]
    for name in ("below", "above"):
        share: Estimate = getattr(column, name)
        if float(share.value) > 3 * float(share.standard_error):
            words.append(f"{name} {_percent(share)}")
    return ", ".join(words)


def _summary_row(column: ColumnProfile) -> list[str]:
    if column.leaves is None:
        return [column.name, column.kind, _percent(column.missing), "", "", "", "", _notes(column)]
    assert column.bounds is not None
    ends = " ... ".join(map(column.text, column.bounds))
    quartiles = [column.text(float(value)) for value in np.asarray(column.quartiles.value)]
    return [column.name, column.kind, _percent(column.missing), ends, *quartiles, _notes(column)]


def _flat_row(column: ColumnProfile) -> dict[str, Any]:
    """One row of a table."""
    row: dict[str, Any] = {"column": column.name, "kind": column.kind}
    shares = {"missing": column.missing, "below": column.below, "above": column.above, "zeros": column.zeros}
    for name, share in shares.items():
        row[name] = math.nan if share is None else float(share.value)
        row[f"{name}_se"] = math.nan if share is None else float(share.standard_error)
    is_date = column.kind == "date"
    row["low"], row["high"] = (None, None) if column.bounds is None else map(column.text, column.bounds)
    marks = sorted({*QUARTILES, *DECILES})
    quantiles = None if column.leaves is None else column.quantile(marks)
    for k, q in enumerate(marks):
        value = math.nan if quantiles is None else float(np.asarray(quantiles.value)[k])
        row[f"q{100 * q:g}"] = column.text(value) if is_date else value
        row[f"q{100 * q:g}_se"] = math.nan if quantiles is None else float(np.asarray(quantiles.standard_error)[k])
    row["mean"] = math.nan if column.leaves is None else float(column.mean.value)
    row["mean_se"] = math.nan if column.leaves is None else float(column.mean.standard_error)
    row["mean"] = column.text(row["mean"]) if is_date else row["mean"]
    row["atoms"] = "; ".join(f"{column.place_words(a)} ({_percent(a.share)})" for a in column.atoms)
    row["categories"] = "; ".join(f"{label} ({_percent(share)})" for label, share in column.categories)
    return row


def example_profile(*, pairs: bool = False) -> Profile:
    """Profile of two columns from made-up counts, for examples; perhaps with a pair."""
    from fogline.density.leaves import BucketCounts

    noise = Noise("laplace", 2.0)
    age = NumberColumn("age", (0.0, 100.0), 1.0)
    boxes = np.array([[[k, k + 1]] for k in range(101)])
    stage = BucketCounts(boxes, np.full(101, 10), noise)
    guarantee = Guarantee.certified_release(
        epsilon=2.0,
        delta=0.0,
        rho=None,
        neighbours="add-remove",
        unit="record",
        max_contributions=1,
        enforced=True,
        mechanism="discrete Laplace noise on counts",
        proof="profile",
        reason="",
    )
    beyond = StageCounts(np.array([3, 0, 1]), np.array([2, -1, 0]), (noise, noise))
    sexes = StageCounts(np.array([500, 490, 2, 20]), np.array([501, 492, 0, 19]), (noise, noise))
    return Profile(
        [
            (age, beyond, LeafRelease(age.spec, pilot=stage, counts=stage)),
            (CategoryColumn.of("sex", ["f", "m"]), sexes, None),
        ],
        pairs=[_example_pair(noise)] if pairs else [],
        guarantee=guarantee,
    )


def _example_pair(noise: Noise) -> PairCounts:
    ages = CellGroups("age", np.repeat([0, 1, 2], [50, 51, 3]), ("below 50", "50 up"), True)
    return PairCounts(ages, CellGroups("sex", np.array([0, 1, 1, 2]), ("f", "m or other"), False),
                      np.array([[350, 155], [150, 345]]), noise)  # fmt: skip
