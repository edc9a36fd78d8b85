"""The one noisy release of several strata. The proof is in ``queries/strata.proof.md``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.density.random_spec import Spec
from fogline.density.strata import Strata
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.errors import sealed
from fogline.queries.fourier_sums import covers_gain_and_loss, strata_sensitivity
from fogline.release.release import PaidQuestion, release
from fogline.release.terms import ReleaseTerms

__all__ = ["release_strata"]

CODE_VERSION = "strata-1"
FORMER_VERSIONS: tuple[str, ...] = ()
"""Editions whose answers, paid for and in a ledger, this one reads, the newest first."""

PROOF = "strata"

MOST_COEFFICIENTS = 2_000_000
"""Most real coefficients of all strata together: noise costs 14 microseconds each."""


def release_strata(
    spec: Spec,
    names: Sequence[str],
    terms: ReleaseTerms,
    read: Callable[[], NDArray[np.int64]],
    ledger: Any = None,
    *,
    columns: Sequence[str] | None = None,
    weight_bound: float | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Strata:
    """Make the one noisy release of several strata, paid for by a ledger if there is one.

    Parameters
    ----------
    spec : SketchSpec or RandomSpec
    names : sequence of str
        Of the strata; public.
    terms : ReleaseTerms
    read : callable
        Returns the exact vector (:meth:`~fogline.queries.strata.StrataCounts.vector`): the only step that touches
        records. Called once, after the noise was drawn and, with a ledger, after the reservation is on the disk.
    ledger : Ledger or LedgerView, optional
    columns : sequence of str, optional
        Public names of the columns.
    weight_bound : float, optional
    facts : mapping, optional
        Whatever else is public and tells this question from others.
    """
    size = len(names) * spec.n_coefficients
    if size > MOST_COEFFICIENTS:
        raise ValueError(
            f"categories: {len(names)} strata have {size} coefficients; at most {MOST_COEFFICIENTS} will do"
        )
    terms.warn()
    kind = f"discrete Gaussian noise on Fourier sums of {len(names)} strata"
    guarantee = replace(terms.guarantee(PROOF), mechanism=terms.stated(kind))

    def make() -> Strata:
        noisy = add_gaussian(
            sealed(read),
            size=size,
            sensitivity=strata_sensitivity(spec, len(names), terms.neighbours, terms.max_contributions),
            rho=terms.rho,
        )
        return Strata(
            replace(spec),
            names,
            noisy.values,
            scale=noisy.scale,
            guarantee=guarantee,
            columns=columns,
            weight_bound=weight_bound,
        )

    def question() -> PaidQuestion:
        return PaidQuestion(
            name="strata",
            code_version=CODE_VERSION,
            parameters={
                "spec": spec.to_dict(),
                **terms.question(),
                "strata": list(names),
                "columns": None if columns is None else list(columns),
                "weight_bound": weight_bound,
                **(facts or {}),
            },
            charge=terms.charge(gain_and_loss=covers_gain_and_loss(spec, terms.max_contributions, len(names))),
            max_payload=8 * (size + len(json.dumps([spec.to_dict(), names, columns]))) + 2**16,
            also_reads=FORMER_VERSIONS,
        )

    return release(
        make,
        ledger,
        question,
        write=Strata.to_bytes,
        read=lambda payload, receipt: Strata.from_bytes(payload, receipt=receipt),
    )
