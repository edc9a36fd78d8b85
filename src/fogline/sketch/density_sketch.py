r"""One noisy release of a density: exact integer sums in, a publishable density out.

    records -> cells -> exact Fourier sums (integers) -> discrete Gaussian noise, once -> PrivateDensity

The proof is in ``density_sketch.proof.md`` beside this file.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline.mechanisms.entropy import door_reason
from fogline.mechanisms.failures import sealed
from fogline.mechanisms.gaussian import add_gaussian
from fogline.sketch.fourier import lattice_sums
from fogline.sketch.histogram import CellCounts
from fogline.sketch.origins import UNCOUNTED, AlreadyReleased, Origin, claim, payer_of, require_own
from fogline.sketch.planning import Spec, plan_spec, spec_from_dict
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.random_features import PhaseSums
from fogline.sketch.random_spec import RandomSpec
from fogline.sketch.secret_files import write_secret
from fogline.sketch.sensitivity import covers_gain_and_loss, lattice_sensitivity
from fogline.sketch.terms import PROOF, ReleaseTerms

__all__ = ["AlreadyReleased", "DensitySketch", "ReleaseTerms", "lattice_sensitivity", "release_density"]

FloatArray = NDArray[np.float64]

FORMAT = "fogline-sketch-1"
CODE_VERSION = "density-1"
FORMER_VERSIONS: tuple[str, ...] = ()
"""Editions whose answers, paid for and in a ledger, this one reads, the newest first."""

"""Changes whenever the same question may get an answer of another law: a ledger then takes it for another question."""

RANDOM_PROOF = "random-features"

TAKEN_BACK = "records added and taken back"
"""What a guarantee says once records were subtracted: both are entries, and a person's that do not cancel count."""

MOST_PARTS = 2**20
"""Counts made elsewhere are taken on trust only so far that their sum, over all parts, stays below 2^61."""


class DensitySketch:
    r"""Exact, mergeable summary of records in a public box, from which one private density is released.

    Parameters
    ----------
    bounds : array-like of shape (d, 2)
        The public box, one ``(low, high)`` an axis. Records outside it contribute nothing.
    bandwidths : "auto", float or list
        Planned bandwidths. A number is a fraction of each axis's width, an array holds one value an axis in
        data units. From one release any bandwidth from a little below the smallest to somewhat above the largest
        can be read; ``spec.readable`` tells the range.
    features : {"auto", "grid", "random"} or int
        Grid features serve up to 3 axes, random ones any number; "auto" takes the grid where it can. A number is that
        of random frequencies: more make the kernel truer and cost time, the privacy noise stays the same.
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

    @classmethod
    def of(cls, spec: Spec) -> DensitySketch:
        """Empty sketch of a given specification."""
        sketch = cls.__new__(cls)
        sketch._start(spec)
        return sketch

    def _start(self, spec: Spec) -> None:
        self.spec = spec
        self._counts = PhaseSums(spec) if isinstance(spec, RandomSpec) else CellCounts(spec)
        self._origins: tuple[Origin, ...] = (Origin(),)
        self._declared = 0
        self._signed = False
        self._cut: tuple[str, int] | None = None
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"DensitySketch(bounds={[list(b) for b in self.spec.bounds]}, {self.spec.n_coefficients} coefficients)"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a DensitySketch holds secret counts and is not pickled: use save(), and guard the file")

    # -- the secret side ------------------------------------------------------------------------------

    def update(self, X: Any) -> DensitySketch:
        """Count more records; X has one row a record and one column an axis. Returns the sketch itself."""
        self._cut = None
        self._counts.add_rows(_validation.records(X, self.spec.d))
        return self

    def subtract(self, X: Any) -> DensitySketch:
        """Take records back, exactly: those of a person who asks to be deleted. Returns the sketch itself.

        Nothing is said about records that were never there: they count as minus one, and a person's entries, added and
        taken back, that do not cancel must be at most ``max_contributions`` (see the proof, section 6). The guarantee
        of a later release says that records were taken back.
        """
        self._counts.take_rows(_validation.records(X, self.spec.d))
        self._signed, self._cut = True, None
        return self

    def add_cells(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> DensitySketch:
        """Add counts of distinct cells that an engine made by the same rule. Returns the sketch itself."""
        if not isinstance(self._counts, CellCounts):
            raise TypeError("cells are counted for grid features; records are added by update()")
        self._add_declared(keys, counts)
        return self

    def add_state(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> DensitySketch:
        """Add the :meth:`state` of other records, made to this specification. Returns the sketch itself."""
        self._add_declared(keys, counts)
        return self

    def note_cut(self, unit: str, most: int) -> None:
        """Remember that an engine cut all records that are in here to so many of a unit; forgotten with the next."""
        self._cut = (unit, most)

    def _declare(self, parts: int) -> None:
        self._declared += parts
        if self._declared > MOST_PARTS:
            raise ValueError(f"counts of more than {MOST_PARTS} parts cannot be added up safely")

    def _add_declared(self, *state: Any) -> None:
        self._declare(1)
        self._cut = None
        self._counts.add_declared(*state, signed=self._signed)

    @classmethod
    def from_state(
        cls, spec: Spec, state: tuple[Any, Any], *, signed: bool = False, payers: Sequence[str] = ()
    ) -> DensitySketch:
        """Sketch with a given :meth:`state`, checked as far as that can be; ``signed`` if records were taken back."""
        sketch = cls.of(spec)
        sketch._origins = tuple(map(Origin, payers)) or (Origin(),)
        sketch._signed = signed
        sketch._add_declared(*state)
        return sketch

    def merge(self, other: DensitySketch) -> DensitySketch:
        """Return a new sketch of both record sets; refused, with the field that differs, for unlike sketches.

        A release of the merged sketch counts as one of its parts, and one of a part as one of the whole.
        """
        self.spec.require_same(other.spec)
        for part in (self, other):  # the merged sketch would pass for one of this process
            require_own(part._process)
        if any(origin in other._origins for origin in self._origins):
            raise ValueError("other: a sketch cannot be merged with itself or with one that holds the same records")
        merged = DensitySketch.of(self.spec)
        merged._origins = (*self._origins, *other._origins)
        merged._declare(self._declared + other._declared)
        merged._signed = self._signed or other._signed
        for part in (self, other):
            merged._counts.add_state(*part.state())
        return merged

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Secret: cells that are not empty and their counts, or the count and the sums of random features.

        Equal record sets have equal states.
        """
        return self._counts.state()

    @property
    def payers(self) -> list[str]:
        """Who paid for releases of these records so far: ids of ledgers, or that there was none."""
        return sorted({origin.payer for origin in self._origins})

    @property
    def signed(self) -> bool:
        """Whether records were taken back."""
        return self._signed

    def table(self) -> NDArray[np.int64]:
        """Secret: counts as an array with one axis for each of the box's, or the integer vector of random features."""
        return self._counts.table()

    def save(self, path: str | Path) -> None:
        """Write the sketch, counts included, to a file: a snapshot, whole or not at all, while a stream runs on.

        The file is as secret as the records, and for its owner alone (mode 0600).
        """
        keys, counts = self.state()
        header = {"format": FORMAT, "secret": True, "spec": self.spec.to_dict(), "payers": self.payers}
        file = io.BytesIO()
        signed = {"signed": True} if self._signed else {}
        np.savez_compressed(file, header=np.array(json.dumps({**header, **signed})), keys=keys, counts=counts)
        write_secret(path, file.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> DensitySketch:
        """Read a sketch written by :meth:`save`."""
        with np.load(Path(path), allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            if header.get("format") != FORMAT:
                raise ValueError(f"path: not a sketch of format {FORMAT}: {header.get('format')!r}")
            state = (data["keys"], data["counts"])
        signed = bool(header.get("signed", False))
        return cls.from_state(spec_from_dict(header["spec"]), state, signed=signed, payers=header["payers"])

    # -- the release ----------------------------------------------------------------------------------

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        ledger: Any = None,
        snapshot: str | None = None,
    ) -> PrivateDensity:
        """Add noise once and return the publishable density.

        Parameters
        ----------
        epsilon, delta : float
            The budget of this release, both required.
        neighbours : {"add-remove", "replace"}
            What is hidden: the presence of a person (the number of records is secret too), or what a person's
            record says (the number of records is public).
        max_contributions : int
            Most records a person has: declared by the caller, unless :func:`fogline.engines.sketch` cut the records
            of each unit, which the guarantee then says. Fewer than were left of a unit are refused.
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
        unit, least = self._cut or ("record", 1)
        terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, unit)
        if terms.max_contributions < least:
            raise ValueError(f"max_contributions must be at least {least}: so many records of each {unit} were left")
        facts = {} if snapshot is None else {"snapshot": _validation.check_name(snapshot, "snapshot")}
        return self.release_under(terms, ledger, facts=facts)

    def claim(self, payer: str) -> None:
        """Mark the records as released and paid for; refused where that would go uncounted."""
        claim(self._origins, payer, self._process)

    def release_under(
        self,
        terms: ReleaseTerms,
        ledger: Any = None,
        *,
        columns: Sequence[str] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> PrivateDensity:
        """Release under terms that were checked; the rest is as in :func:`release_density`."""
        if self._signed:
            terms = replace(terms, remark=", ".join(filter(None, [terms.remark, TAKEN_BACK])))
        _validation.check_ledger(ledger)
        self.claim(UNCOUNTED if ledger is None else payer_of(ledger))
        return release_density(self.spec, terms, lambda: self.table().copy(), ledger, columns=columns, facts=facts)


def release_density(
    spec: Spec,
    terms: ReleaseTerms,
    read: Callable[[], NDArray[np.int64]],
    ledger: Any = None,
    *,
    columns: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> PrivateDensity:
    """Make the one noisy release of a sketch's table, paid for by a ledger if there is one.

    Parameters
    ----------
    spec : SketchSpec or RandomSpec
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
    fresh = replace(spec)  # without the caches that counting records has filled
    proof = RANDOM_PROOF if isinstance(spec, RandomSpec) else PROOF

    def release() -> PrivateDensity:
        noisy = add_gaussian(
            sealed(lambda: read() if isinstance(spec, RandomSpec) else lattice_sums(read(), spec)),
            size=spec.n_coefficients,
            sensitivity=lattice_sensitivity(spec, terms.neighbours, terms.max_contributions),
            rho=terms.rho,
        )
        return PrivateDensity(fresh, noisy.values, scale=noisy.scale, guarantee=terms.guarantee(proof))

    if ledger is None:
        return release()
    answer = ledger.ask(
        "density",
        code_version=CODE_VERSION,
        parameters={
            "spec": spec.to_dict(),
            **terms.question(),
            "columns": None if columns is None else list(columns),
            **(facts or {}),
        },
        cost=terms.cost(),
        neighbours=terms.neighbours,
        certified=not door_reason(),
        release=lambda: release().to_bytes(),
        max_payload=8 * (spec.n_coefficients + len(json.dumps(spec.to_dict()))) + 2**16,
        gain_and_loss=covers_gain_and_loss(spec, terms.max_contributions),
        also_reads=FORMER_VERSIONS,
        **terms.protects(),
    )
    return PrivateDensity.from_bytes(answer.payload, receipt=answer.receipt.to_dict())
