r"""One noisy release of a density: exact integer sums in, a publishable density out.

    records -> cells -> exact Fourier sums (integers) -> discrete Gaussian noise, once -> PrivateDensity

The proof is in ``density_sketch.proof.md`` beside this file.

The secret side of a sketch: exact counts of records, and what must be known of them to release them.

Whatever becomes of the counts (merged, saved, read again, taken over by a site), three facts go with them: which
records they are (:mod:`~fogline.releases.origins`), how they were counted (:mod:`~fogline.releases.sketch_file`), and
whether some were taken back.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline._typing import LedgerLike, SourceLike
from fogline.accounting.guarantee import ROWS
from fogline.density.leaves import LeafSpec
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import RandomSpec, Spec, plan_spec
from fogline.mechanisms.errors import sealed
from fogline.queries.exact_counts import exact_counts
from fogline.queries.fourier_sums import CellCounts, covers_gain_and_loss, lattice_sensitivity, lattice_sums
from fogline.releases.leaf_release import release_leaves
from fogline.releases.origins import (
    UNCOUNTED,
    AlreadyReleased,
    Origin,
    claim,
    keep_at,
    payer_of,
    require_apart,
    require_own,
)
from fogline.releases.release import PaidQuestion, release
from fogline.releases.sketch_file import (
    NOTHING,
    ON_TRUST,
    ROW_BY_ROW,
    TRUSTED,
    Provenance,
    SketchFile,
    read_sketch,
    write_sketch,
)
from fogline.releases.terms import PROOF, ReleaseTerms

__all__ = ["AlreadyReleased", "DensitySketch", "RecordCounts", "ReleaseTerms", "release_density"]

MOST_PARTS = 2**20
"""Counts made elsewhere are taken on trust only so far that their sum, over all parts, stays below 2^61."""


class RecordCounts:
    """Exact, mergeable counts of records in a public box: a :class:`fogline.DensitySketch` before its release."""

    spec: Spec

    @classmethod
    def of(cls, spec: Spec) -> Self:
        """Empty sketch of a given specification."""
        sketch = cls.__new__(cls)
        sketch._start(spec)
        return sketch

    def _start(self, spec: Spec) -> None:
        self.spec = spec
        self._counts = exact_counts(spec)
        self._origins: tuple[Origin, ...] = (Origin(),)
        self._files: dict[Path, tuple[str, ...]] = {}
        self._declared = 0
        self._signed = False
        self._provenance = NOTHING
        self._whole = True
        # reentrant: save() asks for the state while it holds the lock
        self._counting_lock = threading.RLock()
        # a forked child has a copy of the counts, and nobody would count its releases
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a DensitySketch holds secret counts and is not pickled: use save(), and guard the file")

    @contextmanager
    def _counting(self, added: Provenance) -> Iterator[None]:
        """Count within this, one thread at a time; what stays counted in part can be neither released nor resumed."""
        with self._counting_lock:
            self._require_whole()
            # first, so that what may not be added is refused before anything is counted
            joined = self._provenance.joined(added)
            # stays false where counting raises: then nobody knows which records are in
            self._whole = False
            yield
            self._provenance, self._whole = joined, True

    def _require_whole(self) -> None:
        if not self._whole:
            raise RuntimeError(
                "counting was interrupted, and some records may be in here twice: count into a new sketch"
            )

    def update(self, X: SourceLike) -> Self:
        """Count more records; X has one row per record and one column per axis. Returns the sketch itself.

        Refused where the records that are in here were cut by a unit: nobody knows whose the new ones are.
        """
        rows = _validation.records(X, self.spec.d)
        with self._counting(ROW_BY_ROW):
            self._counts.add_rows(rows)
        return self

    def subtract(self, X: SourceLike) -> Self:
        """Take records back, exactly: those of a person who asks to be deleted. Returns the sketch itself.

        Nothing is said about records that were never there: they count as minus one, and a person's entries, added and
        taken back, that do not cancel must be at most ``max_contributions`` (see the proof, section 6). The guarantee
        of a later release says that records were taken back. Refused where records were cut by a unit, since nobody
        knows which of them were kept.
        """
        rows = _validation.records(X, self.spec.d)
        with self._counting(ROW_BY_ROW):
            # before the records go: counts may be below zero from here on
            self._signed = True
            self._counts.take_rows(rows)
        return self

    def add_cells(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> Self:
        """Add counts of distinct cells that were made elsewhere by the same rule. Returns the sketch itself.

        They are taken on trust, as of records that were not cut by a unit, and the guarantee says so.
        """
        if not isinstance(self._counts, CellCounts):
            raise TypeError("cells are counted for grid features; records are added by update()")
        return self.add_state(keys, counts)

    def add_state(
        self, keys: NDArray[np.int64], counts: NDArray[np.int64], *, provenance: Provenance = ON_TRUST
    ) -> Self:
        """Add the :meth:`state` of other records, made to this specification. Returns the sketch itself.

        Parameters
        ----------
        keys, counts : int64 arrays
        provenance : Provenance
            How the records were counted, for engines that saw to it. By default this is taken on trust, and the
            guarantee says so.
        """
        state = self._counts.checked(keys, counts, signed=self._signed)
        # before the counts are added: checked() bounds each part, this bounds how many parts there are
        self._declare(1)
        with self._counting(provenance):
            self._counts.add_state(*state)
        return self

    def _declare(self, parts: int) -> None:
        if self._declared + parts > MOST_PARTS:
            raise ValueError(f"counts of more than {MOST_PARTS} parts cannot be added up safely")
        self._declared += parts

    @classmethod
    def from_state(
        cls,
        spec: Spec,
        state: tuple[Any, Any],
        *,
        signed: bool = False,
        provenance: Provenance = ON_TRUST,
        origins: Sequence[Origin] = (),
        files: Mapping[Path, tuple[str, ...]] | None = None,
        cut: bool = False,
    ) -> Self:
        """Sketch with a given :meth:`state`, checked as far as that can be; ``signed`` if records were taken back.

        The rest is for files: how the records were counted, whose they are, and where they are kept. With ``cut``,
        numbers that no records make are cut to a public range, not refused: for sums of several parties that nobody
        could look at one by one, where one party's numbers would decide what a refusal tells of the others' records.
        """
        sketch = cls.of(spec)
        sketch._origins = tuple(origins) or sketch._origins
        sketch._signed = signed
        if cut:
            keys, counts, parts = sketch._counts.cut(*state, signed=signed)
            sketch._declare(parts)
            with sketch._counting(provenance):
                sketch._counts.add_state(keys, counts)
        else:
            sketch.add_state(*state, provenance=provenance)
        sketch._files = dict(files or {})
        return sketch

    def merge(self, other: RecordCounts, *, disjoint_persons: bool = False) -> Self:
        """Return a new sketch of both record sets; refused, with the field that differs, for unlike sketches.

        A release of the merged sketch counts as one of its parts, and one of a part as one of the whole. Sketches that
        share records are refused: a file and its copy, a snapshot and the stream that ran on. Where the records were
        cut by a unit, both must be cut by the same, and what is left of a unit adds up.

        Parameters
        ----------
        other : DensitySketch
        disjoint_persons : bool
            Declare that no unit is in both, so that what is left of one does not add up.
        """
        self.spec.require_same(other.spec)
        provenance = self._provenance.joined(other._provenance, disjoint=disjoint_persons)
        return self.merge_as(other, provenance)

    def merge_as(self, other: RecordCounts, provenance: Provenance) -> Self:
        """Merge where somebody else knows how the records of both were counted: the sites that did it."""
        for part in (self, other):  # the merged sketch would pass for one of this process
            part.require_own()
        require_apart(self._origins, other._origins)
        merged = type(self).of(self.spec)
        merged._origins = (*self._origins, *other._origins)
        merged._files = {**self._files, **other._files}
        merged._declare(self._declared + other._declared)
        merged._signed = self._signed or other._signed
        with merged._counting(provenance):
            for part in (self, other):
                merged._counts.add_state(*part.state())
        return merged

    def require_own(self) -> None:
        """Refuse a copy that came into this process by a fork: its releases are not seen where it was made."""
        require_own(self._process)

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Secret: cells that are not empty and their counts, or the count and the sums of random features.

        Equal record sets have equal states.
        """
        with self._counting_lock:
            self._require_whole()
            return self._counts.state()

    @property
    def payers(self) -> list[str]:
        """Who paid for releases of these records so far: ids of ledgers, or that there was none."""
        return sorted({origin.payer for origin in self._origins})

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Which records are in here: ids, which say nothing about them."""
        return self._origins

    @property
    def provenance(self) -> Provenance:
        """How the records were counted: row by row, or cut to at most so many of each unit. Public."""
        return self._provenance

    @property
    def signed(self) -> bool:
        """Whether records were taken back."""
        return self._signed

    def table(self) -> NDArray[np.int64]:
        """Secret: counts as an array with one axis for each of the box's, or the integer vector of random features."""
        with self._counting_lock:
            self._require_whole()
            return self._counts.table()

    def save(self, path: str | Path) -> None:
        """Write the sketch, counts included, to a file: a snapshot, whole or not at all, while a stream runs on.

        The file is as secret as the records, and for its owner alone (mode 0600).
        """
        place = Path(path).resolve()
        with self._counting_lock:
            # first, so that releases of these records are noted where other processes see them
            origins = self.kept_at(place)
            write_sketch(place, SketchFile(self.spec, self.state(), self._signed, self._provenance, origins))

    def kept_at(self, path: Path) -> tuple[Origin, ...]:
        """Note that the records go into a file, and give their origins as they stand there; none for no records."""
        self.require_own()
        # without records there is nothing to share: sketches begun from one empty file may be merged
        if not self._provenance.counted and not any(self.payers):
            return ()
        keep_at(self._origins, path, self._files)
        return self._origins

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a sketch written by :meth:`save`."""
        place = Path(path).resolve()
        found = read_sketch(place)
        return cls.from_state(
            found.spec,
            found.state,
            signed=found.signed,
            provenance=found.provenance,
            origins=found.origins,
            files={place: tuple(origin.run for origin in found.origins)},
        )


FloatArray = NDArray[np.float64]

CODE_VERSION = "density-1"
"""Changes whenever the same question may get an answer of another law: a ledger then takes it for another question."""

FORMER_VERSIONS: tuple[str, ...] = ()
"""Editions whose answers, paid for and in a ledger, this one reads, the newest first."""

RANDOM_PROOF = "random-features"

TAKEN_BACK = "records added and taken back"
"""What a guarantee says once records were subtracted: both are entries, and a person's that do not cancel count."""


class DensitySketch(RecordCounts):
    r"""Exact, mergeable summary of records in a public box, from which one private density is released.

    Parameters
    ----------
    bounds : array-like of shape (d, 2)
        The public box, one ``(low, high)`` an axis. Records outside it contribute nothing.
    bandwidths : "auto", float or list
        Planned bandwidths. A number is a fraction of each axis's width, an array holds one value per axis in
        data units. From one release any bandwidth from a little below the smallest to somewhat above the largest
        can be read; ``spec.readable`` tells the range.
    features : {"auto", "grid", "random", "leaves"} or int
        Grid features serve up to 3 axes, random ones any number; "auto" takes the grid where it can. A number is that
        of random frequencies: more make the kernel truer and cost time, the privacy noise stays the same. Leaves, up to
        3 axes, are released as counts in two stages and need no delta.
    steps : None, float or list
        Public rounding step of each axis (1 for whole numbers), None for a continuous one. Bandwidths too fine
        for the rounding are lifted, so that heaps of equal values are not taken for modes.

    Notes
    -----
    The secret state is an integer histogram, or a vector of integer sums of random features: the same for any order or
    partition of the records. With at most ``c``
    records a person, a person moves the released vector by at most ``c`` norms of one feature vector.

    References
    ----------
    .. [1] R. Hall, A. Rinaldo, L. Wasserman, "Differential privacy for functions and functional data", JMLR 14,
       2013.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> sketch = DensitySketch(bounds=[(0, 10)]).update(np.random.default_rng(0).normal(4, 1, size=(2000, 1)))
    >>> density = sketch.release(epsilon=1.0, delta=1e-6, neighbours="add-remove")
    >>> bool(density.pdf([[4.0]])[0] > density.pdf([[8.0]])[0])
    True
    """

    def __init__(
        self,
        bounds: ArrayLike | None = None,
        *,
        bandwidths: Any = "auto",
        features: Any = "auto",
        steps: Any = None,
    ) -> None:
        self._start(plan_spec(bounds, bandwidths, steps, features=features))

    def __repr__(self) -> str:
        spec = self.spec
        size = f"{spec.n_leaves} leaves" if isinstance(spec, LeafSpec) else f"{spec.n_coefficients} coefficients"
        return f"DensitySketch(bounds={[list(b) for b in spec.bounds]}, {size})"

    # -- the release ----------------------------------------------------------------------------------

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        ledger: LedgerLike | None = None,
        snapshot: str | None = None,
    ) -> PrivateDensity:
        """Add noise once and return the publishable density.

        Parameters
        ----------
        epsilon, delta : float
            The budget of this release, both required. On leaves a delta may be left out: the release is then
            epsilon-DP.
        neighbours : {"add-remove", "replace"}
            What is hidden: the presence of a person (the number of records is secret too), or what a person's
            record says (the number of records is public).
        max_contributions : int
            Most records a person has: declared by the caller, unless :func:`fogline.releases.passes.sketch` cut the
            records of each unit, which the guarantee then says. Fewer than were left of a unit are refused.
        ledger : Ledger or LedgerView, optional
            Where the budget is kept. With a ledger a sketch may be released again: each release is paid for, and a
            question that was asked before is answered from the ledger.
        snapshot : str, optional
            With a ledger, a public name of the moment, such as "2026-W46": a sketch that has grown since the last
            release is another question only under another name.

        Returns
        -------
        PrivateDensity
        """
        cut = self._provenance
        pure = isinstance(self.spec, LeafSpec)
        unit = cut.unit or "record"
        terms = ReleaseTerms.checked(
            epsilon, delta, neighbours, max_contributions, unit, allow_pure=pure, ledger=ledger
        )
        # sites whose units were declared disjoint make a declared bound of an enforced one
        terms = replace(terms, declared=not cut.enforced)
        facts = {} if snapshot is None else {"snapshot": _validation.check_name(snapshot, "snapshot")}
        return self.release_under(terms, ledger, facts=facts)

    def claim(self, payer: str) -> None:
        """Mark the records as released and paid for; refused where that would go uncounted."""
        claim(self._origins, payer, self._process, self._files)

    def release_under(
        self,
        terms: ReleaseTerms,
        ledger: LedgerLike | None = None,
        *,
        columns: Sequence[str] | None = None,
        facts: Mapping[str, Any] | None = None,
        disjoint_persons: bool = False,
    ) -> PrivateDensity:
        """Release under terms that were checked; the rest is as in :func:`release_density`.

        With ``disjoint_persons`` what was left of a unit, here and there, was declared not to add up.
        """
        cut = self._provenance
        # without one row of a unit another is kept in its place: rows are then not protected one by one
        if cut.unit is not None and terms.unit in ROWS:
            raise ValueError(f"unit: records were cut to {cut.most} of each {cut.unit}, and are not released for rows")
        if terms.max_contributions < cut.most and not disjoint_persons:
            raise ValueError(
                f"max_contributions must be at least {cut.most}: so many records of each {cut.unit} were left"
            )
        remarks = [terms.remark, TAKEN_BACK if self._signed else "", TRUSTED if cut.on_trust else ""]
        terms = replace(terms, remark=", ".join(filter(None, remarks)), on_trust=cut.on_trust)
        _validation.check_ledger(ledger)
        self._require_whole()
        terms.warn()  # before the records are claimed: a user may have made errors of warnings
        self.claim(UNCOUNTED if ledger is None else payer_of(ledger))
        return release_density(self.spec, terms, self.table, ledger, columns=columns, facts=facts)


def release_density(
    spec: Spec,
    terms: ReleaseTerms,
    read: Callable[[], NDArray[np.int64]],
    ledger: LedgerLike | None = None,
    *,
    columns: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> PrivateDensity:
    """Make the one noisy release of a sketch's table, paid for by a ledger if there is one.

    Parameters
    ----------
    spec : SketchSpec, RandomSpec or LeafSpec
        Leaves are released in two stages (:mod:`fogline.releases.leaf_release`).
    terms : ReleaseTerms
    read : callable
        Returns the exact table (:meth:`DensitySketch.table`): the only step that touches records. It is called once,
        after the noise was drawn and, with a ledger, after the reservation is on the disk; not at all if the ledger
        knows the answer.
    ledger : Ledger or LedgerView, optional
    columns : sequence of str, optional
        Public names of the columns where there are any: the same box of other columns is another question.
    facts : mapping, optional
        Whatever else is public and tells this question from others.

    Returns
    -------
    PrivateDensity
    """
    if isinstance(spec, LeafSpec):
        return release_leaves(spec, terms, read, ledger, columns=columns, facts=facts)
    fresh = replace(spec)  # without the caches that counting records has filled
    proof = RANDOM_PROOF if isinstance(spec, RandomSpec) else PROOF

    def make() -> PrivateDensity:
        noisy = terms.add_noise(
            sealed(lambda: read() if isinstance(spec, RandomSpec) else lattice_sums(read(), spec)),
            size=spec.n_coefficients,
            sensitivity=lattice_sensitivity(spec, terms.neighbours, terms.max_contributions),
        )
        # two columns of one name could not be asked for by name
        named = columns if columns is not None and len(set(columns)) == len(columns) else None
        return PrivateDensity(fresh, noisy.values, scale=noisy.scale, guarantee=terms.guarantee(proof), columns=named)

    def question() -> PaidQuestion:
        return PaidQuestion(
            name="density",
            code_version=CODE_VERSION,
            parameters={
                "spec": spec.to_dict(),
                **terms.question(),
                "columns": None if columns is None else list(columns),
                **(facts or {}),
            },
            charge=terms.charge(gain_and_loss=covers_gain_and_loss(spec, terms.max_contributions)),
            max_payload=8 * (spec.n_coefficients + len(json.dumps([spec.to_dict(), columns]))) + 2**16,
            also_reads=FORMER_VERSIONS,
        )

    return release(
        make,
        ledger,
        question,
        write=PrivateDensity.to_bytes,
        read=lambda payload, receipt: PrivateDensity.from_bytes(payload, receipt=receipt),
    )
