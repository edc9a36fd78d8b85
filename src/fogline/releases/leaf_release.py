r"""One private release on public leaves, in two stages: a coarse pilot, then counts where the pilot saw something.

    records -> leaves -> exact counts in the pilot's boxes -> noise -> released pilot
                     \-> exact counts in buckets, chosen from the released pilot -> noise -> released counts

Both stages add discrete noise to whole numbers. With the shares :math:`\alpha_1 + \alpha_2 = 1` of a public plan the
stages are :math:`\alpha_i \varepsilon`-DP by Laplace noise, or :math:`\alpha_i \rho`-zCDP by Gaussian noise. They
compose to what the terms promise, although the answer of the first chooses the second. The partition is a function
of released numbers, and is stored with them. The proof is in ``leaf_release.proof.md`` beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import LedgerLike
from fogline.accounting._rounding import round_down
from fogline.accounting.guarantee import Guarantee
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.partition import partition_settings, pilot_boxes, plan_partition, stage_shares
from fogline.density.private_density import PrivateDensity
from fogline.mechanisms.discrete_laplace import add_laplace, laplace_scale
from fogline.mechanisms.errors import sealed
from fogline.queries.bucket_counts import BucketQuery
from fogline.releases.release import PaidQuestion, release
from fogline.releases.terms import ReleaseTerms

__all__ = ["CODE_VERSION", "Stage", "plan_stages", "release_leaves", "release_stages", "settle_terms", "stage_payload"]

IntArray = NDArray[np.int64]

CODE_VERSION = "leaves-7"
"""Changes whenever the same question may get an answer of another law: a ledger then takes it for another question."""

PROOF = "leaf-release"

LEAST_SCALE = Fraction(1, 8)
"""Least scale of the noise: with less of it than this, hardly one count in a thousand bears any, and nothing is won."""


@dataclass(frozen=True)
class Stage:
    """What one stage may spend, and the noise that this pays for; public.

    Parameters
    ----------
    name : {"pilot", "counts"}
    budget : float
        Its epsilon where the noise is Laplace, its rho where it is Gaussian.
    noise : Noise
    """

    name: str
    budget: float
    noise: Noise

    def release(self, query: BucketQuery, terms: ReleaseTerms, tables: Callable[[], IntArray]) -> list[BucketCounts]:
        """Add noise to the counts of a query; the tables are asked for after it was drawn.

        Parameters
        ----------
        query : BucketQuery
            Made from public parameters and earlier answers.
        terms : ReleaseTerms
            Of the release that this is a stage of.
        tables : callable
            Returns the exact tables of leaves, one per stratum: the only step that touches records.
        """
        exact = sealed(lambda: query.exact(tables()))
        who = (terms.neighbours, terms.max_contributions)
        parameters = (("share", self.name),)
        if self.noise.kind == "laplace":
            counts = add_laplace(
                exact,
                size=query.size,
                sensitivity=query.l1_sensitivity(*who),
                epsilon=self.budget,
                parameters=parameters,
            )
            return query.decode(counts.values, Noise("laplace", counts.scale))
        # each of the two stages may use half of it
        noisy = terms.add_noise(
            exact,
            size=query.size,
            sensitivity=query.sensitivity(*who),
            rho=self.budget,
            distance=terms.distance / 2,
            parameters=parameters,
        )
        return query.decode(noisy.values, Noise("gaussian", noisy.scale))


def plan_stages(spec: LeafSpec, terms: ReleaseTerms) -> tuple[Stage, Stage]:
    """Divide the budget of the terms between pilot and counts; the parts never exceed it.

    Examples
    --------
    >>> terms = ReleaseTerms.checked(1.0, 0, "add-remove", 1, allow_pure=True)
    >>> pilot, counts = plan_stages(LeafSpec.plan([(0, 1)]), terms)
    >>> Fraction(pilot.budget) + Fraction(counts.budget) <= 1, counts.noise.kind
    (True, 'laplace')
    """
    shares = stage_shares(spec)
    whole = terms.exact_epsilon if terms.pure else Fraction(terms.rho)
    # shares are tuned numbers: a slip in them would overspend, and is caught where they are spent
    if sum(shares) != 1 or min(shares) <= 0:
        raise RuntimeError("the shares of the stages must be positive and sum to exactly 1")
    most = _most_budget(terms)
    # down: the two parts must not add up to more than the whole
    budgets = [round_down(min(share * whole, most)) for share in shares]
    first, second = (
        Stage(name, budget, _noise(budget, terms)) for name, budget in zip(("pilot", "counts"), budgets, strict=True)
    )
    return first, second


def _most_budget(terms: ReleaseTerms) -> Fraction:
    """What noise of the least scale costs: more of the budget is left unspent."""
    who = (terms.neighbours, terms.max_contributions)
    if terms.pure:
        return BucketQuery.l1_sensitivity(*who) / LEAST_SCALE
    return Fraction(BucketQuery.sensitivity(*who)) ** 2 / (2 * LEAST_SCALE**2)


def _noise(budget: float, terms: ReleaseTerms) -> Noise:
    """The noise of a stage: as little as its budget allows."""
    who = (terms.neighbours, terms.max_contributions)
    if terms.pure:
        return Noise("laplace", laplace_scale(BucketQuery.l1_sensitivity(*who), budget))
    return Noise("gaussian", terms.noise_scale(BucketQuery.sensitivity(*who), budget))


def settle_terms(spec: LeafSpec, terms: ReleaseTerms) -> ReleaseTerms:
    """Return the terms with the noise that suits them: pure where Laplace noise keeps them with less variance.

    A promise of (epsilon, delta) is kept by pure epsilon too. Of the two laws the one with the smaller variance of the
    counts is taken, by a comparison of public numbers; a promise in rho asks for Gaussian noise.

    Examples
    --------
    >>> spec = LeafSpec.plan([(0, 1)])
    >>> settle_terms(spec, ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1)).pure
    True
    >>> settle_terms(spec, ReleaseTerms.checked(1.0, 1e-6, "add-remove", 9)).pure
    True
    >>> settle_terms(spec, ReleaseTerms.checked(None, None, "add-remove", 1, rho=0.05)).pure
    False
    """
    if terms.promise is not None and terms.promise.statement:
        raise ValueError("hdp, pdp: these are promised for Fourier sums; leaves take epsilon, with or without delta")
    if terms.pure or terms.promise is not None:
        return terms
    # by the second stage; the pilot has noise of the same law
    pure = terms.as_pure()
    spread, bell = (plan_stages(spec, each)[1].noise.variance for each in (pure, terms))
    return pure if spread <= bell else terms


def release_stages(spec: LeafSpec, strata: int, terms: ReleaseTerms, read: Callable[[], IntArray]) -> list[LeafRelease]:
    """Make both stages, for each of several strata at once.

    Parameters
    ----------
    spec : LeafSpec
    strata : int
        Number of tables of leaves. A record is in one of them.
    terms : ReleaseTerms
        Settled.
    read : callable
        Returns the exact tables, shape (strata, *leaves): the only step that touches records. Called once, after the
        pilot's noise was drawn.
    """
    fresh = replace(spec)  # without the caches that counting records has filled
    # both stages count the same exact table, which is read once
    known: list[IntArray] = []

    def tables() -> IntArray:
        if not known:
            known.append(read())
        return known[0]

    pilot, counts = plan_stages(spec, terms)
    try:
        first = pilot.release(BucketQuery(fresh, [pilot_boxes(fresh)] * strata), terms, tables)
        # From here on only released numbers decide. An error says no more than any other after the budget is spent.
        query = sealed(lambda: BucketQuery(fresh, [plan_partition(fresh, part, counts.noise) for part in first]))()
        second = counts.release(query, terms, tables)
    finally:
        known.clear()  # an error's traceback must not lead to the exact counts
    return [LeafRelease(fresh, *parts) for parts in zip(first, second, strict=True)]


def stage_payload(spec: LeafSpec) -> int:
    """Most bytes that both stages of one table take in a file."""
    buckets = min(spec.n_leaves, partition_settings(spec.d).most_buckets) + len(pilot_boxes(spec))
    return 8 * (spec.d + 1) * buckets + 2**12


def leaf_guarantee(terms: ReleaseTerms, strata: int = 1) -> Guarantee:
    """What a release in two stages may claim."""
    law = "Laplace" if terms.pure else "Gaussian"
    what = "counts" if strata == 1 else f"counts of {strata} strata"
    stated = terms.stated(f"discrete {law} noise on {what}, in two stages")
    return replace(terms.guarantee(PROOF), mechanism=stated)


def release_leaves(
    spec: LeafSpec,
    terms: ReleaseTerms,
    read: Callable[[], IntArray],
    ledger: LedgerLike | None = None,
    *,
    columns: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> PrivateDensity:
    """Make the release of a table of leaves, paid for by a ledger if there is one.

    Parameters
    ----------
    spec : LeafSpec
    terms : ReleaseTerms
    read : callable
        Returns the exact table (:meth:`fogline.DensitySketch.table`): the only step that touches records. It is called
        once, after the pilot's noise was drawn and, with a ledger, after the reservation is on the disk; not at all if
        the ledger knows the answer.
    ledger, columns, facts
        As for :func:`fogline.releases.density_sketch.release_density`.
    """
    terms = settle_terms(spec, terms)
    plan_stages(spec, terms)  # a budget that no noise can keep is refused here, before anything is paid

    def make() -> PrivateDensity:
        (released,) = release_stages(spec, 1, terms, lambda: read()[None])
        return PrivateDensity.from_leaves(released, guarantee=leaf_guarantee(terms), columns=columns)

    def question() -> PaidQuestion:
        parameters = {
            "spec": spec.to_dict(),
            **terms.question(),
            "columns": None if columns is None else list(columns),
            **(facts or {}),
        }
        return PaidQuestion(
            name="density",
            code_version=CODE_VERSION,
            parameters=parameters,
            charge=terms.charge(gain_and_loss=True),
            max_payload=stage_payload(spec) + 8 * len(json.dumps([spec.to_dict(), columns])) + 2**16,
        )

    return release(
        make,
        ledger,
        question,
        write=PrivateDensity.to_bytes,
        read=lambda payload, receipt: PrivateDensity.from_bytes(payload, receipt=receipt),
    )
