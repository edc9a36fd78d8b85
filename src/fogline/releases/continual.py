r"""A cumulative density every period, for a year or so, from one budget: the secret side.

    records of a period -> cells of a fixed partition -> exact counts per period -> weighted sums + noise -> public

The weighted sums, and how the density of all records so far is read from what was released, are in
:mod:`fogline.density.continual`; the proof is in ``continual.proof.md`` beside this file. A person contributes at most
c records over *all* periods: with ids this is enforced by a memory of the units that have come so far, which is as
secret as the records.

What changes (counts, memory, released vectors) is one object that is replaced in one assignment, so that an
interruption leaves everything as it was, or everything done.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fogline import _validation
from fogline._typing import FloatArray, Ids, IntArray, LedgerLike
from fogline._validation import state_directory
from fogline.accounting._rounding import round_up
from fogline.accounting.guarantee import ROWS
from fogline.density.continual import (
    MOST_PERIODS,
    ContinualRelease,
    noise_factor,
    root_coefficients,
    squared_sensitivity,
)
from fogline.density.leaves import LeafSpec
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.randomness import SystemSource
from fogline.queries.fourier_sums import row_cells
from fogline.releases.origins import AlreadyReleased, make_durable, write_secret
from fogline.releases.release import PaidQuestion, release
from fogline.releases.table_release import plan_release
from fogline.releases.terms import ReleaseTerms
from fogline.sources.contributions import INTEGER, MISSING, Identities
from fogline.sources.registry import as_source
from fogline.sources.tables import Source

__all__ = ["ContinualCounts"]

CODE_VERSION = "continual-1"
PROOF = "continual"
FORMAT = "fogline-continual-counts-2"

CELLS_PER_AXIS = {1: 64, 2: 16, 3: 8}
"""Cells of the fixed partition along an axis, by the number of axes."""

MOST_RECORDS = 2**40
"""So that weighted sums stay below 2^61."""

GONE = -1
"""In the place of the cell of a record that was taken back."""

TAKEN_BACK = "records taken back that were declared to have been added before"
"""What a guarantee says once rows were subtracted: nobody can check that they had been added."""

KEY_BYTES = 32


@dataclass(frozen=True)
class _State:
    """All that changes: never changed in place, only replaced as a whole."""

    new: IntArray
    """Records that came in each period less those that went, by cells."""
    total: int = 0
    known: dict[bytes, list[int]] = field(default_factory=dict)
    """Cells of the admitted records of each unit, by the digest of its id."""
    signed: bool = False
    """Whether rows were taken back on their owner's word."""
    values: tuple[IntArray, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why each released period is not certified; empty for one that is."""


class ContinualCounts:
    r"""Exact counts of records of several periods, from which a cumulative density is released after each.

    Parameters
    ----------
    bounds, columns, steps
        As for :func:`fogline.release`.
    epsilon, delta : float
        Privacy budget of *all* periods together; both required.
    periods : int, default 52
        How many releases there will be, at most.
    unit : str, optional
        What the ids of :meth:`add` stand for, such as "person": at most `max_contributions` records of each count over
        all periods. Without it every row is a record of its own, and `max_contributions` is declared.
    max_contributions : int, default 1
        Most records of a unit, over all periods together.
    leavers : bool
        Whether records may be taken back: 1.23 times the noise, for 52 periods.
    leaves : sequence of int, optional
        Cells per axis of the fixed partition; by default 64, 16 or 8 for one, two or three columns.
    ledger : Ledger or LedgerView, optional
        Charged once, here, for all periods.

    Notes
    -----
    With :math:`\Delta^2 = c^2 \max_s \sum_t R_{t-s}^2` all releases together are :math:`\rho`-zCDP for noise of the
    scale :math:`\Delta / \sqrt{2\rho}`, whatever the order in which data come and however they depend on earlier
    releases.

    Examples
    --------
    >>> import numpy as np
    >>> weeks = ContinualCounts(bounds=[(0, 10)], epsilon=1.0, delta=1e-6, periods=4)
    >>> rng = np.random.default_rng(0)
    >>> for mean in (5, 5, 6):                                            # the third week differs
    ...     released = weeks.add(rng.normal(mean, 1, (4000, 1))).release()
    >>> len(released), bool(abs(released.density().count - 12000) < 1500)
    (3, True)
    >>> released.drift(2).p_value < 0.01
    True
    """

    def __init__(
        self,
        *,
        bounds: Any,
        epsilon: float | None = None,
        delta: float | None = None,
        columns: Sequence[str] | None = None,
        steps: Any = None,
        periods: int = 52,
        unit: str | None = None,
        max_contributions: int = 1,
        leavers: bool = False,
        leaves: Sequence[int] | None = None,
        ledger: LedgerLike | None = None,
    ) -> None:
        names = None if columns is None else tuple(_validation.check_name(name, "columns") for name in columns)
        pairs, planned = plan_release(bounds, names, steps, "leaves", width=None if names is None else len(names))
        assert isinstance(planned, LeafSpec)
        sizes = [CELLS_PER_AXIS[len(pairs)]] * len(pairs) if leaves is None else list(leaves)
        spec = LeafSpec.plan([tuple(pair) for pair in pairs], list(planned.steps), leaves=sizes)
        if unit is not None and _validation.check_name(unit, "unit") in ROWS:
            raise ValueError(f"unit: {unit!r} is a row; leave it out")
        if _validation.check_count(periods, "periods") > MOST_PERIODS:
            raise ValueError(f"periods must be at most {MOST_PERIODS}, got {periods}")
        terms = ReleaseTerms.checked(epsilon, delta, "add-remove", max_contributions, unit or "record")
        # the proof for all periods together is in zCDP
        terms = replace(terms, accounting="zcdp")
        run, key = SystemSource().bytes(16).hex(), SystemSource().bytes(KEY_BYTES)
        self._begin(spec, periods, terms, bool(leavers), names, run, key)
        terms.warn()
        self._pay(ledger)

    def _begin(
        self,
        spec: LeafSpec,
        periods: int,
        terms: ReleaseTerms,
        leavers: bool,
        columns: tuple[str, ...] | None,
        run: str,
        key: bytes,
    ) -> None:
        self.spec, self.periods, self.terms, self.leavers, self.columns = spec, periods, terms, leavers, columns
        self._run, self._key = run, key  # the first is public, in a ledger and in the names of notes; the second is not
        self._state = _State(np.zeros((periods, spec.n_leaves), dtype=np.int64))
        self.receipt: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("ContinualCounts hold secret counts and are not pickled: use save(), and guard the file")

    def __repr__(self) -> str:
        return f"ContinualCounts({self.released} of {self.periods} periods released, {self.spec.n_leaves} cells)"

    # -- what is public --------------------------------------------------------------------------------------

    @property
    def released(self) -> int:
        """How many periods were released."""
        return len(self._state.values)

    @property
    def sensitivity(self) -> float:
        """Largest Euclidean distance that a unit moves all released sums by, not rounded down."""
        squared = self.terms.max_contributions**2 * squared_sensitivity(self.periods, leavers=self.leavers)
        root = math.isqrt(squared)
        # isqrt cuts: one more where the root is not whole
        return round_up(Fraction(root + (root * root < squared)))

    @property
    def scale(self) -> float:
        """Standard deviation of the noise in each released number."""
        return gaussian_scale(self.sensitivity, self.terms.rho)

    @property
    def noise_per_cell(self) -> float:
        """Standard deviation of the noise in the number of records of a cell, after the last period."""
        factor = noise_factor(self.periods, leavers=self.leavers)
        return factor * self.terms.max_contributions / math.sqrt(2 * self.terms.rho)

    def _pay(self, ledger: LedgerLike | None) -> None:
        """Charge a ledger for all periods; every run is a question of its own, which is never answered from before."""
        _validation.check_ledger(ledger)
        parameters = {
            "spec": self.spec.to_dict(),
            **self.terms.question(),
            "periods": self.periods,
            "leavers": self.leavers,
            "columns": None if self.columns is None else list(self.columns),
            # new for each run: the answer of an earlier one is never given again
            "run": self._run,
        }
        question = PaidQuestion("continual", CODE_VERSION, parameters, self.terms.charge(gain_and_loss=False), 2**12)
        found: tuple[str, dict[str, Any] | None] = release(
            lambda: (self._run, None),
            ledger,
            lambda: question,
            write=lambda made: made[0].encode(),
            read=lambda payload, receipt: (payload.decode(), receipt),
        )
        self.receipt = found[1]

    # -- records ---------------------------------------------------------------------------------------------

    def add(self, X: Any, ids: Ids | None = None) -> ContinualCounts:
        """Count the records of the current period; with a unit, at most so many of each over all periods.

        Parameters
        ----------
        X : array, frame, path or table
            One row per record. A table made with ``unit=`` brings its ids; its unit must be that of these counts.
        ids : array, optional
            Whose the records are, for an array; needed where there is a unit.
        """
        batches = self._batches(X, ids)
        with self._lock:
            self._require_open()
            came, staged = np.zeros(self.spec.n_leaves, dtype=np.int64), dict[bytes, list[int]]()
            for rows, who in batches:
                cells = row_cells(rows, self.spec)
                usable = cells < self.spec.n_leaves
                if self.terms.unit not in ROWS:
                    usable = self._admitted(cells, usable, who, staged)
                came += np.bincount(cells[usable], minlength=self.spec.n_leaves)
            self._count(came, staged)
        return self

    def subtract(self, X: Any) -> ContinualCounts:
        """Take records back that were added before, where there is no unit; they must be the same rows.

        Nobody can check that: the guarantee of all later releases says that it was declared.
        """
        if self.terms.unit not in ROWS:
            raise TypeError(f"X: records were counted by {self.terms.unit}; take them back by their ids: remove(ids)")
        batches = self._batches(X, None)
        with self._lock:
            self._require_leavers()
            went = np.zeros(self.spec.n_leaves, dtype=np.int64)
            for rows, _ in batches:
                cells = row_cells(rows, self.spec)
                went += np.bincount(cells[cells < self.spec.n_leaves], minlength=self.spec.n_leaves)
            self._count(-went, {}, signed=True)
        return self

    def remove(self, ids: Ids) -> ContinualCounts:
        """Take all records of some units back, in the current period; what they used of their bound stays used."""
        if self.terms.unit in ROWS:
            raise TypeError("ids: there is no unit here; take records back by subtract(X)")
        with self._lock:
            self._require_leavers()
            known, staged = self._state.known, dict[bytes, list[int]]()
            for digest in self._digests(ids):
                if digest is not None and digest in known:
                    # their places stay taken: a unit that leaves and comes back must not count twice as often
                    staged[digest] = [GONE] * len(known[digest])
            cells = [cell for digest in staged for cell in known[digest] if cell != GONE]
            self._count(-np.bincount(np.array(cells, dtype=np.int64), minlength=self.spec.n_leaves), staged)
        return self

    def _batches(self, X: Any, ids: Ids | None) -> list[tuple[FloatArray, Ids | None]]:
        source = as_source(X)
        found: list[tuple[FloatArray, Ids | None]] = []
        if isinstance(source, Source):
            if ids is not None:
                raise TypeError("ids: a table brings its own; name its unit where it is made")
            source.require_width(self.spec.d)
            if (source.unit_column is None) != (self.terms.unit in ROWS):
                raise TypeError("X: the table must have a unit exactly where these counts have one")
            if source.unit_column is not None and source.unit != self.terms.unit:
                raise TypeError(f"X: the unit of the table is {source.unit!r}, but the counts have {self.terms.unit!r}")
            source.each_unit_batch(lambda rows, who: found.append((rows.copy(), who)))
            return found
        rows = _validation.records(source, self.spec.d)
        if (ids is None) != (self.terms.unit in ROWS):
            raise TypeError("ids must be given exactly where there is a unit")
        entries: Any = ids
        if entries is not None and len(entries) != len(rows):
            raise ValueError("ids must have one entry for each record")
        return [(rows, ids)]

    def _digests(self, ids: Ids) -> list[bytes | None]:
        """One keyed digest per id, the same for the same unit in every period; None for what is no id."""
        people = Identities()
        values, kinds = people.read(ids)
        texts = people.texts
        found: list[bytes | None] = []
        for value, kind in zip(values.tolist(), kinds.tolist(), strict=True):
            if kind == MISSING:
                found.append(None)
                continue
            # an integer and a text differ in their first letter, whatever they spell
            text = f"i{value}" if kind == INTEGER else f"t{texts[value]}"
            content = text.encode("utf-8", "surrogatepass")
            # keyed: without the key the file cannot be searched for a known id
            found.append(hashlib.blake2b(content, digest_size=16, key=self._key).digest())
        return found

    def _admitted(self, cells: IntArray, usable: Any, ids: Ids | None, staged: dict[bytes, list[int]]) -> Any:
        """Which records still count; of each unit the first that come, up to its bound. Staged with those before."""
        assert ids is not None
        admitted = np.zeros(len(cells), dtype=bool)
        for i, digest in enumerate(self._digests(ids)):
            if not usable[i] or digest is None:
                continue
            if digest not in staged:
                # a copy: an error later in this call leaves the memory of units as it was
                staged[digest] = list(self._state.known.get(digest, ()))
            known = staged[digest]
            if len(known) < self.terms.max_contributions:
                known.append(int(cells[i]))
                admitted[i] = True
        return admitted

    def _count(self, change: IntArray, staged: dict[bytes, list[int]], *, signed: bool = False) -> None:
        """Take over what a call has counted, with the memory of its units, in one assignment."""
        state, new = self._state, self._state.new.copy()
        # records that came and went both count: sums in between must not overflow either
        total = state.total + int(np.abs(change).sum())
        if total > MOST_RECORDS:
            raise ValueError(f"at most {MOST_RECORDS} records can be counted")
        new[self.released] += change
        known = {**state.known, **staged}
        # one assignment: whoever is interrupted before it has counted nothing
        self._state = replace(state, new=new, total=total, known=known, signed=state.signed or signed)

    def _require_open(self) -> None:
        if self.released >= self.periods:
            raise RuntimeError(f"all {self.periods} periods were released")

    def _require_leavers(self) -> None:
        self._require_open()
        if not self.leavers:
            raise RuntimeError("leavers: records can be taken back only where that was said at the beginning")

    # -- the release -----------------------------------------------------------------------------------------

    def release(self) -> ContinualRelease:
        """End the current period: add noise once, and return everything that was released so far.

        Save the counts afterwards, before anything is published. The period is noted for good before its noise is
        drawn: counts read from a file that was saved before, or interrupted in between, come to the same period and
        are refused, and there is no way on from there.
        """
        with self._lock:
            self._require_open()
            reason, period, state = self.terms.reason, self.released, self._state
            if reason and self.receipt is not None:
                raise RuntimeError(f"a ledger has paid, and pays for certified releases only: {reason}")
            # the newest period has the first coefficient
            weights = root_coefficients(self.periods)[: period + 1][::-1]
            # before the noise is drawn: two copies of one file must not release one period twice
            self._note(period)
            noisy = self.terms.add_noise(
                sealed(lambda: weights @ state.new[: period + 1]),
                size=self.spec.n_leaves,
                sensitivity=self.sensitivity,
                parameters=(("period", str(period + 1)),),
            )
            self._state = replace(state, values=(*state.values, noisy.values), reasons=(*state.reasons, reason))
            return self._public(noisy.scale)

    def _public(self, scale: float) -> ContinualRelease:
        """Everything released so far; certified if every period is, whichever provider there is now."""
        state = self._state
        values = np.array(state.values, dtype=np.int64).reshape(-1, self.spec.n_leaves)
        law = f"discrete Gaussian noise on cumulative counts of {self.periods} periods by the square-root factorisation"
        law = self.terms.stated(law) + (f", {TAKEN_BACK}" if state.signed else "")
        reason = "; ".join(dict.fromkeys(filter(None, state.reasons)))
        told = self.terms.guarantee(PROOF)
        # rows that were taken back on somebody's word may never have been there
        enforced = told.enforced and not state.signed
        told = replace(told, mechanism=law, certified=not reason, reason=reason, enforced=enforced)
        return ContinualRelease(self.spec, self.periods, values, scale, told, self.columns)

    def _note(self, period: int) -> None:
        """Note a period for good, where a copy of these counts would find it; refused if it was noted before."""
        try:
            folder = state_directory() / "continual"
            make_durable(folder)
            write_secret(folder / f"{self._run}-{period + 1}", b"", replace=False)
        except FileExistsError:
            raise AlreadyReleased(
                f"period {period + 1} of these counts was released before: from a copy, or they were not saved since"
            ) from None
        except (OSError, RuntimeError):
            raise OSError(
                "the release cannot be noted before it is made: the state directory ($XDG_STATE_HOME/fogline) must be"
                " writable"
            ) from None

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything, exact counts and digests of ids included, to a file for its owner alone (mode 0600)."""
        terms = self.terms
        with self._lock:
            state = self._state
            header = {
                "format": FORMAT,
                "secret": True,
                "spec": self.spec.to_dict(),
                "periods": self.periods,
                "leavers": self.leavers,
                "columns": None if self.columns is None else list(self.columns),
                "run": self._run,
                "key": self._key.hex(),
                "total": state.total,
                "signed": state.signed,
                "reasons": list(state.reasons),
                "receipt": self.receipt,
                "terms": [terms.epsilon, terms.delta, terms.max_contributions, terms.unit],
            }
            digests = np.frombuffer(b"".join(state.known), dtype=np.uint8).reshape(-1, 16)
            sizes = np.array([len(cells) for cells in state.known.values()], dtype=np.int64)
            cells = np.array([cell for known in state.known.values() for cell in known], dtype=np.int64)
            values = np.array(state.values, dtype=np.int64).reshape(-1, self.spec.n_leaves)
            arrays = {"new": state.new, "values": values, "digests": digests, "sizes": sizes, "cells": cells}
            file = io.BytesIO()
            np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
            write_secret(Path(path), file.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> ContinualCounts:
        """Read a file of :meth:`save`."""
        try:
            with np.load(Path(path), allow_pickle=False) as data:
                header = json.loads(str(data["header"]))
                arrays = {name: data[name] for name in ("new", "values", "digests", "sizes", "cells")}
            if header["format"] != FORMAT:
                raise ValueError("format")
            epsilon, delta, most, unit = header["terms"]
            terms = replace(ReleaseTerms.checked(epsilon, delta, "add-remove", most, unit), accounting="zcdp")
            columns = None if header["columns"] is None else tuple(header["columns"])
            found = cls.__new__(cls)
            spec = LeafSpec.from_dict(header["spec"])
            run, key = str(header["run"]), bytes.fromhex(header["key"])
            found._begin(spec, int(header["periods"]), terms, bool(header["leavers"]), columns, run, key)
            found._restore(header, arrays)
        except FileNotFoundError:
            raise
        except (KeyError, TypeError, ValueError, OSError):
            raise ValueError(f"path: not a file of format {FORMAT}, or damaged") from None
        return found

    def _restore(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        shape = self._state.new.shape
        if arrays["new"].shape != shape or arrays["new"].dtype != np.int64 or len(self._key) != KEY_BYTES:
            raise ValueError("new")
        values = tuple(row.copy() for row in arrays["values"].reshape(-1, self.spec.n_leaves))
        reasons, signed, receipt = tuple(header["reasons"]), header["signed"], header["receipt"]
        if len(reasons) != len(values) or not all(isinstance(reason, str) for reason in reasons):
            raise ValueError("reasons")
        if not isinstance(signed, bool) or not (receipt is None or isinstance(receipt, dict)):
            raise ValueError("signed")
        ends = np.cumsum(arrays["sizes"])
        # numpy splits nothing into one empty part
        parts = np.split(arrays["cells"], ends[:-1]) if len(ends) else []
        digests = [row.tobytes() for row in arrays["digests"]]
        known = {digest: part.tolist() for digest, part in zip(digests, parts, strict=True)}
        self._state = _State(arrays["new"].copy(), int(header["total"]), known, signed, values, reasons)
        self.receipt = receipt
