r"""One private release of all columns of a table: find what is open, then a pilot, then counts where it saw something.

    records -> cells of all columns -> exact counts in the pilots' boxes -> noise -> released pilots
                                   \-> exact counts in buckets, chosen from the released pilots -> noise -> counts
            -> groups of cells, chosen from released counts -> exact counts of pairs -> noise -> counts of pairs

Each stage is one integer vector of all its columns. A record moves it by at most :math:`m` in the sum of absolute
values and :math:`\sqrt m` in Euclidean norm, m the number of columns. With Laplace noise the noise grows like m, with
Gaussian noise like its root: which of the two is smaller is decided from public numbers; the border is at about a dozen
columns. Where a range or a list of categories is to be found, a first stage does so for a named share of the
budget. Pairs of columns that are asked for are counted last, for a named share as well. The proof is in
``profile.proof.md`` beside this file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import norm

from fogline._typing import IntArray, LedgerLike
from fogline.accounting import zcdp
from fogline.accounting._rounding import round_down
from fogline.accounting.costs import Cost, GaussianCost, PureCost, whole_units
from fogline.accounting.guarantee import Guarantee
from fogline.density.column_pairs import SETTINGS as PAIR_SETTINGS
from fogline.density.column_pairs import PairCounts, plan_groups
from fogline.density.columns import (
    BEYOND,
    PROFILE_SETTINGS,
    CategoryColumn,
    ColumnPlan,
    NumberColumn,
    PairPlan,
    plan_shares,
)
from fogline.density.leaves import Boxes, LeafRelease, LeafSpec, Noise
from fogline.density.partition import cut_out, partition_settings, pilot_boxes, plan_partition
from fogline.density.profile import Profile, StageCounts
from fogline.mechanisms.discrete_gaussian import add_gaussian, gaussian_scale
from fogline.mechanisms.discrete_laplace import add_laplace, laplace_scale
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.stable_histogram import stable_histogram
from fogline.queries.column_counts import ColumnAnswer, ColumnGroups, ColumnsQuery, ColumnTables, KeyCounts
from fogline.queries.magnitudes import BINS, CELLS, TUNING, ColumnCells, coarse_range
from fogline.queries.pair_counts import PairsQuery, PairTables
from fogline.releases.release import PaidQuestion, release
from fogline.releases.terms import ReleaseTerms
from fogline.sources.typed_cells import (
    KEY_WORDS,
    CellCoder,
    GroupCoder,
    RangeCoder,
    SearchCoder,
    TypedPasses,
    integers,
    unspelled,
)

__all__ = [
    "MOST_PAIRS",
    "ProfileTerms",
    "release_profile",
    "settle_terms",
]

CODE_VERSION = "profile-3"
"""Changes whenever the same question may get an answer of another law."""

PROOF = "profile"

LEAST_SCALE = Fraction(1, 8)
"""Least scale of the noise: with less of it than this, nothing is won."""

MOST_COLUMNS = 2000
"""Most columns of a profile: their exact tables take 64 MiB."""

MOST_PAIRS = 5000
"""Most pairs of columns of a profile: all pairs of a hundred columns."""


@dataclass(frozen=True)
class ProfileTerms(ReleaseTerms):
    """Terms of a profile, of which a part of delta may be set aside for finding categories.

    Parameters
    ----------
    finds_categories : bool

    Examples
    --------
    >>> terms = ProfileTerms(1.0, 1e-6, "add-remove", 1, finds_categories=True)
    >>> terms.aside, terms.cost().delta
    (1e-07, 1e-07)
    """

    finds_categories: bool = False

    @property
    def aside(self) -> float:
        """Delta of the stable histograms."""
        return round_down(PROFILE_SETTINGS.aside * Fraction(self.delta)) if self.finds_categories else 0.0

    @property
    def rho(self) -> float:
        """The zCDP of the release, outside the event that is paid for by :attr:`aside`."""
        if not self.finds_categories:
            return super().rho
        # what is set aside pays for rare keys that show, and is not there for the conversion
        return whole_units(zcdp.rho_of(self.epsilon, round_down(Fraction(self.delta) - Fraction(self.aside))))

    def cost(self) -> Cost | GaussianCost | PureCost:
        """What a ledger is charged."""
        return Cost(self.rho, self.aside) if self.finds_categories else super().cost()

    def guarantee(self, proof: str = PROOF) -> Guarantee:
        """What the release may claim; no rho where zCDP holds outside an event only."""
        found = super().guarantee(proof)
        # zCDP holds outside an event here, and a reader of rho would not know that
        return replace(found, rho=None) if self.finds_categories else found


# -- what the noise costs -------------------------------------------------------------------------------------


class _Account:
    """The budget of a release: each stage takes its named share, once."""

    def __init__(self, plans: Sequence[ColumnPlan], terms: ProfileTerms, paired: PairPlan | None = None) -> None:
        self.terms = terms
        self._shares = plan_shares(plans, paired)
        if sum(self._shares.values()) != 1 or min(self._shares.values()) <= 0:
            raise RuntimeError("the shares of the stages must be positive and sum to exactly 1")
        self._whole = terms.exact_epsilon if terms.pure else Fraction(terms.rho)
        self._aside = Fraction(terms.aside)

    def budget(self, name: str, columns: int) -> float:
        """Epsilon or rho of a stage; what noise of the least scale does not need is left unspent."""
        who = (self.terms.neighbours, self.terms.max_contributions)
        # how far the numbers move depends on how many columns hold a record, not on their cells
        query = ColumnsQuery([ColumnGroups(0, None, 1)] * columns)
        if self.terms.pure:
            most = query.l1_sensitivity(*who) / LEAST_SCALE
        else:
            most = Fraction(query.sensitivity(*who)) ** 2 / (2 * LEAST_SCALE**2)
        return round_down(min(self._shares[name] * self._whole, most))

    def noise(self, name: str, columns: int) -> Noise:
        """The noise of a stage: as little as its budget allows."""
        who = (self.terms.neighbours, self.terms.max_contributions)
        query = ColumnsQuery([ColumnGroups(0, None, 1)] * columns)
        if self.terms.pure:
            return Noise("laplace", laplace_scale(query.l1_sensitivity(*who), self.budget(name, columns)))
        return Noise("gaussian", gaussian_scale(query.sensitivity(*who), self.budget(name, columns)))

    def answer(self, name: str, query: ColumnsQuery, exact: Callable[[], IntArray]) -> list[ColumnAnswer]:
        """Release the numbers of a query; the exact ones are asked for after the noise was drawn."""
        return query.decode(*self._noisy(name, len(query.parts), query, exact))

    def pairs(self, query: PairsQuery, exact: Callable[[], IntArray]) -> list[PairCounts]:
        """The same for pairs of columns."""
        return query.decode(*self._noisy("pairs", len(query.pairs), query, exact))

    def _noisy(
        self, name: str, moved: int, query: ColumnsQuery | PairsQuery, exact: Callable[[], IntArray]
    ) -> tuple[IntArray, Noise]:
        """Numbers with noise, and its law; `moved` numbers of the query hold a record."""
        who = (self.terms.neighbours, self.terms.max_contributions)
        budget, parameters = self.budget(name, moved), (("share", name),)
        if self.terms.pure:
            spread = add_laplace(
                sealed(exact),
                size=query.size,
                sensitivity=query.l1_sensitivity(*who),
                epsilon=budget,
                parameters=parameters,
            )
            return spread.values, Noise("laplace", spread.scale)
        noisy = add_gaussian(
            sealed(exact), size=query.size, sensitivity=query.sensitivity(*who), rho=budget, parameters=parameters
        )
        return noisy.values, Noise("gaussian", noisy.scale)

    def frequent(self, column: str, keys: Callable[[], list[bytes]], columns: int) -> dict[bytes, int]:
        """Release the keys that are frequent, with noisy counts, by a stable histogram."""
        name = f"categories: {column}"
        rho = Fraction(round_down(self._shares[name] * self._whole))
        epsilon = math.sqrt(2 * rho)
        # the square root was rounded, perhaps upward
        while Fraction(epsilon) ** 2 > 2 * rho:
            epsilon = math.nextafter(epsilon, 0.0)
        # every open column has a histogram of its own
        found = stable_histogram(
            sealed(keys),
            epsilon=epsilon,
            delta=round_down(self._aside / columns),
            max_contributions=self.terms.max_contributions,
            parameters=(("share", name),),
        )
        return {key: count for key, count in found.counts.items() if isinstance(key, bytes)}


def settle_terms(plans: Sequence[ColumnPlan], terms: ProfileTerms, paired: PairPlan | None = None) -> ProfileTerms:
    """Return the terms with the noise that suits them: pure where Laplace noise keeps them with less variance.

    Where pairs are counted, with no more variance of theirs as well.

    Examples
    --------
    >>> few, many = ([NumberColumn(f"x{j}", (0.0, 1.0)) for j in range(m)] for m in (5, 50))
    >>> terms = ProfileTerms(1.0, 1e-6, "add-remove", 1)
    >>> settle_terms(few, terms).pure, settle_terms(many, terms).pure
    (True, False)
    """
    # a stable histogram needs a delta whatever the noise of the counts is
    if terms.pure or terms.finds_categories:
        return terms
    pure = replace(terms, delta=0.0)
    stages = {"counts": len(plans), **({} if paired is None else {"pairs": len(paired.pairs)})}
    for name, moved in stages.items():
        spread, bell = (_Account(plans, each, paired).noise(name, moved).variance for each in (pure, terms))
        if spread > bell:
            return terms
    return pure


# -- the stages -----------------------------------------------------------------------------------------------


@contextmanager
def _kept(read: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Give a reader that reads once; what it read is let go at the end, so that no traceback leads to it."""
    known: list[Any] = []

    def again() -> Any:
        if not known:
            known.append(read())
        return known[0]

    try:
        yield again
    finally:
        known.clear()


class _Stages:
    """The stages of one release, in order; records are met inside the mechanisms' queries alone."""

    def __init__(self, plans: Sequence[ColumnPlan], account: _Account, passes: TypedPasses) -> None:
        self.plans, self.account, self.passes = tuple(plans), account, passes

    # What is open is found.

    def closed(self) -> tuple[ColumnPlan, ...]:
        """Columns with ranges and categories that were found, where they were open."""
        wanted = [plan for plan in self.plans if plan.is_open]
        if not wanted:
            return self.plans
        with _kept(lambda: self._search_tables(wanted)) as read:
            numbers = [plan for plan in wanted if isinstance(plan, NumberColumn)]
            found: dict[str, ColumnPlan] = {}
            if numbers:
                found |= {plan.name: plan for plan in self._ranges(numbers, lambda: read()[0])}
            texts = [plan for plan in wanted if isinstance(plan, CategoryColumn)]
            for k, plan in enumerate(texts):
                counts = self.account.frequent(plan.name, self._elements(read, k), len(texts))
                # From here on only released numbers decide.
                first = sorted(counts, key=lambda key: (-counts[key], key))[: PROFILE_SETTINGS.most_categories]
                found[plan.name] = plan.found(first)
        return tuple(found.get(plan.name, plan) for plan in self.plans)

    @staticmethod
    def _elements(read: Callable[[], Any], k: int) -> Callable[[], list[bytes]]:
        """Secret: one key per record of an open column."""
        return lambda: list(read()[1][k].elements())

    def _search_tables(self, wanted: Sequence[ColumnPlan]) -> tuple[list[IntArray], list[KeyCounts]]:
        """Secret: counts of powers of two, and of keys, in one pass."""
        numbers = sum(isinstance(plan, NumberColumn) for plan in wanted)
        tables = ColumnTables([BINS + 1] * numbers)
        keys = [KeyCounts() for _ in range(len(wanted) - numbers)]

        def take(coded: Any) -> None:
            cells, place, text = [], 0, iter(keys)
            for plan in wanted:
                if isinstance(plan, NumberColumn):
                    cells.append(coded[:, place])
                    place += 1
                else:
                    next(text).add(unspelled(coded[:, place : place + KEY_WORDS]))
                    place += KEY_WORDS
            if cells:
                tables.add(integers(np.stack(cells, axis=1)))

        self.passes.run(SearchCoder(wanted), take)
        return tables.counts, keys

    def _ranges(self, plans: Sequence[NumberColumn], read: Callable[[], list[IntArray]]) -> list[ColumnPlan]:
        """Find a range for each column: powers of two first, then cells of the coarse ranges."""
        query = ColumnsQuery([ColumnGroups(0, None, BINS + 1)] * len(plans))
        magnitudes = self.account.answer("magnitudes", query, lambda: query.exact(read()))
        coarse = [coarse_range(part.others[:BINS], _tail_scale(part.noise)) for part in magnitudes]
        seen = [(plan, ends) for plan, ends in zip(plans, coarse, strict=True) if ends is not None]
        found: dict[str, tuple[float, float]] = {}
        if seen:
            inner = ColumnsQuery([ColumnGroups(0, None, CELLS + 1)] * len(seen))
            coder = RangeCoder([plan for plan, _ in seen], [ends for _, ends in seen])
            cells = self.account.answer(
                "ranges", inner, lambda: inner.exact(self._tables(coder, [CELLS + 1] * len(seen)))
            )
            for (plan, ends), part in zip(seen, cells, strict=True):
                counted = ColumnCells(*ends, part.others[:CELLS], _tail_scale(part.noise))
                found[plan.name] = counted.bounds(PROFILE_SETTINGS.coverage)
        # a column of which nothing stood out gets a public range, not an error: that would tell of its records
        return [plan.found(found.get(plan.name, PROFILE_SETTINGS.unknown)) for plan in plans]

    def _tables(self, coder: CellCoder | RangeCoder, sizes: Sequence[int]) -> list[IntArray]:
        """Secret: exact tables of all columns of a coder, in one pass."""
        tables = ColumnTables(sizes)
        self.passes.run(coder, lambda coded: tables.add(integers(coded)))
        return tables.counts

    # The pilot, the partitions, the counts.

    def counted(self, plans: Sequence[ColumnPlan]) -> list[tuple[ColumnPlan, StageCounts, LeafRelease | None]]:
        """Both stages of counts of closed columns."""
        first = ColumnsQuery([_groups(plan, None) for plan in plans])
        with _kept(lambda: self._tables(CellCoder(plans), [plan.cells for plan in plans])) as tables:
            pilot = self.account.answer("pilot", first, lambda: first.exact(tables()))
            noise = self.account.noise("counts", len(plans))
            # From here on only released numbers decide. An error says no more than any other after the budget is spent.
            second = sealed(lambda: ColumnsQuery([_groups(*part, noise) for part in zip(plans, pilot, strict=True)]))()
            counts = self.account.answer("counts", second, lambda: second.exact(tables()))
        found = []
        for plan, early, late in zip(plans, pilot, counts, strict=True):
            leaves = None
            if isinstance(plan, NumberColumn) and early.boxes is not None and late.boxes is not None:
                leaves = LeafRelease(replace(plan.spec), early.boxes, late.boxes)
            found.append((replace(plan), StageCounts(early.others, late.others, (early.noise, late.noise)), leaves))
        return found

    # Pairs of columns.

    def paired(
        self, found: Sequence[tuple[ColumnPlan, StageCounts, LeafRelease | None]], paired: PairPlan
    ) -> list[PairCounts]:
        """Counts of pairs of columns, in groups that are chosen from what was released of each column."""
        places = paired.columns
        noise = self.account.noise("pairs", len(paired.pairs))
        # From here on only released numbers decide. An error says no more than any other after the budget is spent.
        query = sealed(lambda: _pairs_query([found[place] for place in places], places, paired, noise))()
        coder = GroupCoder([replace(found[place][0]) for place in places], query.groups)

        def exact() -> IntArray:
            tables = PairTables([part.size for part in query.groups])
            self.passes.run(coder, lambda coded: tables.add(integers(coded)))
            return query.exact(tables)

        return self.account.pairs(query, exact)


def _pairs_query(
    found: Sequence[tuple[ColumnPlan, StageCounts, LeafRelease | None]],
    places: Sequence[int],
    paired: PairPlan,
    noise: Noise,
) -> PairsQuery:
    """Where pairs are counted, from released numbers."""
    groups = [plan_groups(plan, cells.values, leaves, noise) for plan, cells, leaves in found]
    where = {place: k for k, place in enumerate(places)}
    return PairsQuery(groups, [(where[first], where[second]) for first, second in paired.pairs])


def _groups(plan: ColumnPlan, pilot: ColumnAnswer | None, noise: Noise | None = None) -> ColumnGroups:
    """Where a stage counts in a column: the pilot's boxes, or a partition that is chosen from the released pilot."""
    if isinstance(plan, CategoryColumn):
        return ColumnGroups(0, None, plan.cells)
    spec = replace(plan.spec)  # without the caches that counting records has filled
    boxes: Boxes
    if pilot is None or pilot.boxes is None or noise is None:
        boxes = pilot_boxes(spec)
    else:
        boxes = cut_out(plan_partition(spec, pilot.boxes, noise), _special_leaves(spec))
    return ColumnGroups(spec.n_leaves, boxes, len(BEYOND))


def _special_leaves(spec: LeafSpec) -> list[int]:
    """Leaves that are always counted by themselves: those of zero and of both walls, where values pile up."""
    low, high = spec.bounds[0]
    found = {0, spec.n_leaves - 1}
    if low < 0 < high:
        edges = spec.edges(0)
        found.add(int(np.clip(np.searchsorted(edges, 0.0, side="right") - 1, 0, spec.n_leaves - 1)))
    return sorted(found)


def _tail_scale(noise: Noise) -> float:
    """Scale of the normal law whose rare values are as large as those of the noise."""
    if noise.kind == "gaussian":
        return noise.scale
    return noise.scale * math.log(BINS / (2 * TUNING.mistake)) / float(norm.isf(TUNING.mistake / BINS))


def release_profile(
    plans: Sequence[ColumnPlan],
    terms: ProfileTerms,
    passes: TypedPasses,
    ledger: LedgerLike | None = None,
    *,
    paired: PairPlan | None = None,
    facts: Mapping[str, Any] | None = None,
    expected: int | None = None,
) -> Profile:
    """Make the release of all columns, paid for by a ledger if there is one.

    Parameters
    ----------
    plans : sequence of NumberColumn or CategoryColumn
    terms : ProfileTerms
    passes : TypedPasses
        Leads to the records; run inside the mechanisms alone, after their noise was drawn and, with a ledger, after the
        reservation is on the disk; not at all if the ledger knows the answer.
    ledger : Ledger or LedgerView, optional
    paired : PairPlan, optional
        Pairs of columns to count, and what they are paid.
    facts : mapping, optional
        What else is public and tells this question from others.
    expected : int, optional
        For the message alone.
    """
    terms = settle_terms(plans, terms, paired)
    account = _Account(plans, terms, paired)
    for name in ("pilot", "counts"):
        account.noise(name, len(plans))  # a budget that no noise can keep is refused here, before anything is paid
    law, counted = "Laplace" if terms.pure else "Gaussian", f"{len(plans)} columns"
    if paired is not None:
        account.noise("pairs", len(paired.pairs))
        counted += f" and {len(paired.pairs)} pair{'' if len(paired.pairs) == 1 else 's'} of them"
    stated = terms.stated(f"discrete {law} noise on counts of {counted}, in stages")
    guarantee = replace(terms.guarantee(PROOF), mechanism=stated)

    def make() -> Profile:
        stages = _Stages(plans, account, passes)
        columns = stages.counted(stages.closed())
        pairs = [] if paired is None else stages.paired(columns, paired)
        return Profile(columns, pairs=pairs, guarantee=guarantee, expected=expected)

    def question() -> PaidQuestion:
        described = [plan.to_dict() for plan in plans]
        # Only where there are any: a question without pairs stays the one that it was.
        pairs = {} if paired is None else {"pairs": [*map(list, paired.pairs)], "pairs_share": str(paired.share)}
        return PaidQuestion(
            name="profile",
            code_version=CODE_VERSION,
            parameters={"columns": described, **pairs, **terms.question(), **(facts or {})},
            charge=terms.charge(gain_and_loss=True),
            max_payload=sum(map(_most_bytes, plans))
            + 16 * len(json.dumps(described))
            + 2**16
            + _most_pair_bytes(paired),
        )

    return release(
        make,
        ledger,
        question,
        write=Profile.to_bytes,
        read=lambda payload, receipt: Profile.from_bytes(payload, receipt=receipt, expected=expected),
    )


def _most_bytes(plan: ColumnPlan) -> int:
    """Most bytes that both stages of a column take in a file."""
    if isinstance(plan, CategoryColumn):
        cells = PROFILE_SETTINGS.most_categories + 2 if plan.is_open else plan.cells
        return 2**10 + 256 * cells
    most = partition_settings(1).most_buckets + 6  # a box is cut into three at most, for each of three leaves
    leaves = most if plan.is_open else min(plan.cells, most)
    return 24 * (leaves + partition_settings(1).pilot_cells) + 2**12


def _most_pair_bytes(paired: PairPlan | None) -> int:
    """Most bytes that pairs take in a file: their counts, and the groups of their columns."""
    if paired is None:
        return 0
    return 24 * PAIR_SETTINGS.most_groups**2 * len(paired.pairs) + 2**13 * len(paired.columns)
