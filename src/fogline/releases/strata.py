"""The one noisy release of several strata. The proof is in ``queries/strata.proof.md``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import LedgerLike
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import Spec
from fogline.density.strata import Strata
from fogline.mechanisms.errors import sealed
from fogline.queries.fourier_sums import covers_gain_and_loss, strata_sensitivity
from fogline.releases.leaf_release import CODE_VERSION as LEAF_VERSION
from fogline.releases.leaf_release import leaf_guarantee, plan_stages, release_stages, settle_terms, stage_payload
from fogline.releases.release import PaidQuestion, release
from fogline.releases.terms import ReleaseTerms

__all__ = ["release_strata"]

CODE_VERSION = "strata-1"
FORMER_VERSIONS: tuple[str, ...] = ()
"""Editions whose answers, paid for and in a ledger, this one reads, the newest first."""

PROOF = "strata"

MOST_COEFFICIENTS = 2_000_000
"""Most real coefficients of all strata together: noise costs 14 microseconds each."""

MOST_LEAVES = 2**23
"""Most leaves of all strata together: their tables take 64 MiB."""


def release_strata(
    spec: Spec,
    names: Sequence[str],
    terms: ReleaseTerms,
    read: Callable[[], NDArray[np.int64]],
    ledger: LedgerLike | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight_bound: float | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Strata:
    """Make the one noisy release of several strata, paid for by a ledger if there is one.

    Parameters
    ----------
    spec : SketchSpec, RandomSpec or LeafSpec
    names : sequence of str
        Of the strata; public.
    terms : ReleaseTerms
    read : callable
        Returns the exact vector or tables (:meth:`~fogline.queries.strata.StrataCounts.vector`): the only step that
        touches records. Called once, after noise was drawn and, with a ledger, after the reservation is on the disk.
    ledger : Ledger or LedgerView, optional
    columns : sequence of str, optional
        Public names of the columns.
    weight_bound : float, optional
    facts : mapping, optional
        Whatever else is public and tells this question from others.
    """
    if isinstance(spec, LeafSpec):
        return _release_leaves(spec, names, terms, read, ledger, columns=columns, facts=facts)
    size = len(names) * spec.n_coefficients
    if size > MOST_COEFFICIENTS:
        raise ValueError(
            f"categories: {len(names)} strata have {size} coefficients; at most {MOST_COEFFICIENTS} will do"
        )
    terms.warn()
    kind = f"discrete Gaussian noise on Fourier sums of {len(names)} strata"
    guarantee = replace(terms.guarantee(PROOF), mechanism=terms.stated(kind))

    def make() -> Strata:
        noisy = terms.add_noise(
            sealed(read),
            size=size,
            # a record is in one stratum; one that is replaced may leave one and enter another
            sensitivity=strata_sensitivity(spec, len(names), terms.neighbours, terms.max_contributions),
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


def _release_leaves(
    spec: LeafSpec,
    names: Sequence[str],
    terms: ReleaseTerms,
    read: Callable[[], NDArray[np.int64]],
    ledger: LedgerLike | None,
    *,
    columns: Sequence[str] | None,
    facts: Mapping[str, Any] | None,
) -> Strata:
    """Release counts of leaves in two stages, for all strata at once."""
    if len(names) * spec.n_leaves > MOST_LEAVES:
        raise ValueError(f"categories: {len(names)} strata have too many leaves; at most {MOST_LEAVES} in all will do")
    terms = settle_terms(spec, terms)
    plan_stages(spec, terms)  # a budget that no noise can keep is refused here, before anything is paid
    terms.warn()

    def make() -> Strata:
        parts = release_stages(spec, len(names), terms, read)
        return Strata.from_leaves(names, parts, guarantee=leaf_guarantee(terms, len(names)), columns=columns)

    def question() -> PaidQuestion:
        public = [spec.to_dict(), list(names), None if columns is None else list(columns)]
        return PaidQuestion(
            name="strata",
            code_version=LEAF_VERSION,
            parameters={
                "spec": public[0],
                **terms.question(),
                "strata": public[1],
                "columns": public[2],
                **(facts or {}),
            },
            charge=terms.charge(gain_and_loss=True),
            max_payload=len(names) * stage_payload(spec) + 8 * len(json.dumps(public)) + 2**16,
        )

    return release(
        make,
        ledger,
        question,
        write=Strata.to_bytes,
        read=lambda payload, receipt: Strata.from_bytes(payload, receipt=receipt),
    )
