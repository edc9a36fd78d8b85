r"""One noisy release of a density: exact integer sums in, a publishable density out.

    records -> cells -> exact Fourier sums (integers) -> discrete Gaussian noise, once -> PrivateDensity

The proof is in ``density_sketch.proof.md`` beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline.accounting.guarantee import ROWS
from fogline.mechanisms.entropy import door_reason
from fogline.mechanisms.failures import sealed
from fogline.mechanisms.gaussian import add_gaussian
from fogline.sketch.fourier import lattice_sums
from fogline.sketch.origins import UNCOUNTED, AlreadyReleased, claim, payer_of
from fogline.sketch.planning import Spec, plan_spec
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.provenance import TRUSTED
from fogline.sketch.random_spec import RandomSpec
from fogline.sketch.record_counts import RecordCounts
from fogline.sketch.sensitivity import covers_gain_and_loss, lattice_sensitivity
from fogline.sketch.terms import PROOF, ReleaseTerms

__all__ = ["AlreadyReleased", "DensitySketch", "ReleaseTerms", "lattice_sensitivity", "release_density"]

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

    def __repr__(self) -> str:
        return f"DensitySketch(bounds={[list(b) for b in self.spec.bounds]}, {self.spec.n_coefficients} coefficients)"

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
        cut = self._provenance
        terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, cut.unit or "record")
        terms = replace(terms, declared=not cut.enforced)
        facts = {} if snapshot is None else {"snapshot": _validation.check_name(snapshot, "snapshot")}
        return self.release_under(terms, ledger, facts=facts)

    def claim(self, payer: str) -> None:
        """Mark the records as released and paid for; refused where that would go uncounted."""
        claim(self._origins, payer, self._process, self._files)

    def release_under(
        self,
        terms: ReleaseTerms,
        ledger: Any = None,
        *,
        columns: Sequence[str] | None = None,
        facts: Mapping[str, Any] | None = None,
        disjoint_persons: bool = False,
    ) -> PrivateDensity:
        """Release under terms that were checked; the rest is as in :func:`release_density`.

        With ``disjoint_persons`` what was left of a unit, here and there, was declared not to add up.
        """
        cut = self._provenance
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
