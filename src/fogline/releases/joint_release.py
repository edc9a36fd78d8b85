r"""Several densities on leaves, of groups of columns of one source, released for one budget.

Each group of up to three columns is a release in two stages of its own (:mod:`fogline.releases.leaf_release`), paid by
a named share of the budget. With shares :math:`\beta_1 + \dots + \beta_k = 1` the parts are
:math:`\beta_i \varepsilon`-DP, or :math:`\beta_i \rho`-zCDP, and compose to what the terms promise. A ledger is asked
once, for all of them. The proof is in ``joint_release.proof.md`` beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from fogline._typing import IntArray, LedgerLike
from fogline.accounting import zcdp
from fogline.accounting._rounding import round_down
from fogline.accounting.budget import GaussianBudget
from fogline.accounting.costs import whole_units
from fogline.density.leaves import LeafSpec
from fogline.density.named_densities import Releases
from fogline.density.private_density import PrivateDensity
from fogline.releases.density_sketch import DensitySketch
from fogline.releases.leaf_release import CODE_VERSION, leaf_guarantee, plan_stages, release_stages, stage_payload
from fogline.releases.passes import CountingPass
from fogline.releases.release import PaidQuestion, release
from fogline.releases.terms import ReleaseTerms
from fogline.sources.joint_pass import JointPass, suits_one_pass
from fogline.sources.tables import Source

__all__ = ["JointPart", "part_terms", "release_parts"]

PROOF = "joint-release"


@dataclass(frozen=True)
class JointPart:
    """One of several densities; public.

    Parameters
    ----------
    name : str
    columns : tuple of str
    spec : LeafSpec
    share : Fraction
        Of the whole budget.
    """

    name: str
    columns: tuple[str, ...]
    spec: LeafSpec
    share: Fraction


def part_terms(terms: ReleaseTerms, share: Fraction) -> ReleaseTerms:
    """Terms of a part that is paid a share of the budget, rounded down to whole units of a ledger.

    Examples
    --------
    >>> terms = ReleaseTerms.checked(1.0, 0, "add-remove", 1, allow_pure=True)
    >>> part_terms(terms, Fraction(1, 4)).exact_epsilon
    Fraction(1, 4)
    >>> gaussian = ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1)
    >>> 3 * Fraction(part_terms(gaussian, Fraction(1, 3)).rho) <= Fraction(gaussian.rho)
    True
    """
    # pure epsilons add up over the parts, and so does rho; epsilon at a fixed delta does not
    if terms.pure:
        return replace(terms, epsilon=round_down(share * terms.exact_epsilon))
    rho = whole_units(round_down(share * Fraction(terms.rho)))
    promise = GaussianBudget(rho=rho, epsilon=zcdp.epsilon_of(rho, terms.delta), delta=terms.delta)
    return replace(terms, promise=promise, distance=share * terms.distance)


def settle_parts(parts: Sequence[JointPart], terms: ReleaseTerms) -> ReleaseTerms:
    """Return the terms with the law of noise that suits all parts together: the one with less variance in sum.

    Of public numbers alone. Epsilons add up and so do squares of Gaussian noise's: with many parts, Gaussian noise has
    less variance, if there is a delta for it. A promise in rho asks for Gaussian noise: pure epsilon does not keep it.
    """
    if terms.pure or terms.promise is not None:
        return terms
    pure = terms.as_pure()
    spread, bell = (
        sum(plan_stages(part.spec, part_terms(each, part.share))[1].noise.variance for part in parts)
        for each in (pure, terms)
    )
    return pure if spread <= bell else terms


def release_parts(
    source: Source,
    parts: Sequence[JointPart],
    terms: ReleaseTerms,
    ledger: LedgerLike | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
) -> Releases:
    """Release all parts, paid for by a ledger if there is one.

    Parameters
    ----------
    source : Source
        Errors of its schema come first. Read once where it has a unit, of which the same records then count in all
        parts, or where it can be read only once; else once per part.
    parts : sequence of JointPart
        Of different names, whose shares sum to exactly 1.
    terms : ReleaseTerms
        Of all parts together.
    ledger, facts
        As for :func:`fogline.releases.density_sketch.release_density`.
    """
    if sum(part.share for part in parts) != 1 or min(part.share for part in parts) <= 0:
        raise ValueError("shares must be positive, and sum to exactly 1")
    terms = settle_parts(parts, terms)
    for part in parts:  # a budget that no noise can keep is refused here, before anything is paid
        plan_stages(part.spec, part_terms(terms, part.share))
    together = suits_one_pass(source)
    passes = _passes(source, parts, terms.max_contributions, together)
    # the passes lead to it from here on, and are told to forget
    del source
    stated = leaf_guarantee(terms)
    guarantee = replace(stated, proof=PROOF, mechanism=f"{stated.mechanism}, of {len(parts)} densities")

    def make() -> Releases:
        densities = {}
        for index, part in enumerate(parts):
            share = part_terms(terms, part.share)
            (released,) = release_stages(part.spec, 1, share, _tables(passes, index))
            densities[part.name] = PrivateDensity.from_leaves(released, guarantee=guarantee, columns=part.columns)
        return Releases(densities, {part.name: part.share for part in parts})

    try:
        terms.warn()
        return release(
            make,
            ledger,
            lambda: _question(parts, terms, facts, together),
            write=Releases.to_bytes,
            read=lambda payload, receipt: Releases.from_bytes(payload, receipt=receipt),
        )
    finally:
        for one_pass in passes:
            one_pass.forget()


def _passes(
    source: Source, parts: Sequence[JointPart], max_contributions: int, together: bool
) -> list[CountingPass] | list[JointPass]:
    """One pass per part, or one for all."""
    if together:
        specs, columns = [part.spec for part in parts], [part.columns for part in parts]
        return [JointPass(source, specs, columns, max_contributions)]
    # without a unit no choice is made between records: each part may count for itself
    return [CountingPass(source[list(part.columns)], DensitySketch.of(part.spec), max_contributions) for part in parts]


def _tables(passes: Sequence[CountingPass | JointPass], part: int) -> Callable[[], IntArray]:
    """What reads the exact table of a part, as one stratum."""
    first = passes[0]
    if isinstance(first, JointPass):
        return lambda: first.table(part)[None]
    own = passes[part]
    assert isinstance(own, CountingPass)
    return lambda: own.run()[None]


def _question(
    parts: Sequence[JointPart], terms: ReleaseTerms, facts: Mapping[str, Any] | None, together: bool
) -> PaidQuestion:
    """What a ledger is asked, for all parts at once.

    Records of a unit that are kept for all parts together are not those that each part keeps for itself.
    """
    asked = [
        {"name": part.name, "columns": list(part.columns), "spec": part.spec.to_dict(), "share": str(part.share)}
        for part in parts
    ]
    return PaidQuestion(
        name="densities",
        code_version=f"{CODE_VERSION}-together" if together else CODE_VERSION,
        parameters={"parts": asked, **terms.question(), **(facts or {})},
        charge=terms.charge(gain_and_loss=True),
        max_payload=sum(stage_payload(part.spec) + 2**16 for part in parts) + 16 * len(json.dumps(asked)) + 2**16,
    )
