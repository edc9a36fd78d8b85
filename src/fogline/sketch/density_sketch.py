r"""One noisy release of a density: exact integer sums in, a publishable density out.

    records -> cells -> exact Fourier sums (integers) -> discrete Gaussian noise, once -> PrivateDensity

The proof is in ``density_sketch.proof.md`` beside this file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline.mechanisms.entropy import door_reason
from fogline.mechanisms.failures import sealed
from fogline.mechanisms.gaussian import add_gaussian
from fogline.sketch.fourier import LATTICE_BITS, TABLE_BITS, lattice_sums
from fogline.sketch.histogram import CellCounts
from fogline.sketch.origins import UNCOUNTED, AlreadyReleased, Origin, claim, payer_of, require_own
from fogline.sketch.planning import Spec, plan_spec, spec_from_dict
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.random_features import PhaseSums, random_sensitivity
from fogline.sketch.random_spec import RandomSpec
from fogline.sketch.spec import WEIGHT_BITS, SketchSpec
from fogline.sketch.terms import PROOF, ReleaseTerms

__all__ = ["AlreadyReleased", "DensitySketch", "ReleaseTerms", "lattice_sensitivity", "release_density"]

FloatArray = NDArray[np.float64]

FORMAT = "fogline-sketch-1"
CODE_VERSION = "density-1"
"""Changes whenever the same question may get an answer of another law: a ledger then takes it for another question."""

RANDOM_PROOF = "sketch/random_features.proof.md"

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
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"DensitySketch(bounds={[list(b) for b in self.spec.bounds]}, {self.spec.n_coefficients} coefficients)"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a DensitySketch holds secret counts and is not pickled: use save(), and guard the file")

    # -- the secret side ------------------------------------------------------------------------------

    def update(self, X: Any) -> DensitySketch:
        """Count more records; X has one row a record and one column an axis. Returns the sketch itself."""
        self._counts.add_rows(_validation.records(X, self.spec.d))
        return self

    def add_cells(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> DensitySketch:
        """Add counts of distinct cells that an engine made by the same rule. Returns the sketch itself."""
        if not isinstance(self._counts, CellCounts):
            raise TypeError("cells are counted for grid features; records are added by update()")
        self._add_declared(keys, counts)
        return self

    def _declare(self, parts: int) -> None:
        self._declared += parts
        if self._declared > MOST_PARTS:
            raise ValueError(f"counts of more than {MOST_PARTS} parts cannot be added up safely")

    def _add_declared(self, *state: Any) -> None:
        self._declare(1)
        self._counts.add_declared(*state)

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
        for part in (self, other):
            merged._counts.add_state(*part.state())
        return merged

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Secret: cells that are not empty and their counts, or the count and the sums of random features.

        Equal record sets have equal states.
        """
        return self._counts.state()

    def _payers(self) -> list[str]:
        return sorted({origin.payer for origin in self._origins})

    def table(self) -> NDArray[np.int64]:
        """Secret: counts as an array with one axis for each of the box's, or the integer vector of random features."""
        return self._counts.table()

    def save(self, path: str | Path) -> None:
        """Write the sketch, counts included, to a file. The file is as secret as the records."""
        keys, counts = self.state()
        header = {"format": FORMAT, "secret": True, "spec": self.spec.to_dict(), "payers": self._payers()}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, header=np.array(json.dumps(header)), keys=keys, counts=counts)

    @classmethod
    def load(cls, path: str | Path) -> DensitySketch:
        """Read a sketch written by :meth:`save`."""
        with np.load(Path(path), allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            if header.get("format") != FORMAT:
                raise ValueError(f"path: not a sketch of format {FORMAT}: {header.get('format')!r}")
            sketch = cls.of(spec_from_dict(header["spec"]))
            sketch._origins = tuple(map(Origin, header["payers"])) or (Origin(),)
            sketch._add_declared(data["keys"], data["counts"])
        return sketch

    # -- the release ----------------------------------------------------------------------------------

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: str = "add-remove",
        max_contributions: int = 1,
        ledger: Any = None,
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
            Most records a person has; declared by the caller, not enforced here.
        ledger : Ledger or LedgerView, optional
            Where the budget is kept. With a ledger a sketch may be released again: each release is paid for, and a
            question that was asked before is answered from the ledger.

        Returns
        -------
        PrivateDensity
        """
        terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions)
        _validation.check_ledger(ledger)
        claim(self._origins, UNCOUNTED if ledger is None else payer_of(ledger), self._process)
        return release_density(self.spec, terms, lambda: self.table().copy(), ledger)


def release_density(
    spec: Spec,
    terms: ReleaseTerms,
    read: Callable[[], NDArray[np.int64]],
    ledger: Any = None,
    *,
    columns: Sequence[str] | None = None,
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
        },
        cost=terms.cost(),
        neighbours=terms.neighbours,
        certified=not door_reason(),
        release=lambda: release().to_bytes(),
        max_payload=8 * (spec.n_coefficients + len(json.dumps(spec.to_dict()))) + 2**16,
    )
    return PrivateDensity.from_bytes(answer.payload, receipt=answer.receipt.to_dict())


def lattice_sensitivity(spec: Spec, neighbours: str, max_contributions: int) -> float:
    r"""How far the lattice sums of neighbouring data sets can be apart, in steps, in Euclidean norm.

    .. math:: c\,2^{22} + \sqrt{K} \quad\text{(add-remove)}, \qquad c\,\sqrt{2 - 2\kappa}\;2^{22} + \sqrt{K}
       \quad\text{(replace)},

    with :math:`K` coefficients, :math:`c` contributions and :math:`\kappa` the least value of the kernel that
    the features make. The square root is what the floor to the lattice adds. Random features have their own formula,
    :func:`~fogline.sketch.random_features.random_sensitivity`.
    """
    if isinstance(spec, RandomSpec):
        return random_sensitivity(spec, neighbours, max_contributions)
    per_record = 1.0 if neighbours == "add-remove" else math.sqrt(2 - 2 * least_kernel(spec))
    steps = max_contributions * per_record * 2.0**LATTICE_BITS + math.sqrt(spec.n_coefficients)
    return math.nextafter(steps * (1 + 1e-12), math.inf)


def least_kernel(spec: SketchSpec) -> float:
    r"""Give a lower bound of :math:`\langle z(c), z(c')\rangle` over all pairs of cells.

    The kernel of the real-valued weights is evaluated at every difference of cells by one FFT; the margin pays
    for the integer tables (less than three units of :math:`2^{-20}` an axis and side) and the FFT.
    """
    pairs = (spec.integer_weights / 2.0**WEIGHT_BITS) ** 2
    spectrum = np.zeros(spec.torus_cells)
    index = tuple(spec.frequencies.T % np.array(spec.torus_cells)[:, None])
    spectrum[index] = pairs
    kernel = np.fft.fftn(spectrum).real  # pairs already hold both signs of a frequency: the real part is the kernel
    for axis, cells in enumerate(spec.cells):  # differences of cells of the box only
        size = spec.torus_cells[axis]
        possible = np.minimum(np.arange(size), size - np.arange(size)) < cells
        kernel = np.compress(possible, kernel, axis=axis)
    margin = 2 * spec.d * 3.0 * 2.0**-TABLE_BITS + 1e-9
    return min(max(float(kernel.min()) - margin, -1.0), 0.5)
