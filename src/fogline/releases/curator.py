r"""Who holds the records: algorithms ask the curator, decide by its answers, and ask again.

An algorithm is given a :class:`Curator` and nothing else that leads to a record. It asks exact queries
(:class:`fogline.queries.query.Query`), each for a share of the budget; the curator draws the noise, lets the query
meet the records, and hands back what the query reads from the noisy numbers. Everything between two answers is
post-processing, and what is asked may depend on earlier *answers* in any way: zero-concentrated differential privacy
composes adaptively by adding up rho, Gaussian by adding up mu^2 = 2 rho, and pure differential privacy by adding up
epsilon. The curator sees to it that
the sum never exceeds the terms. Under pure terms there is no Gaussian noise: only mechanisms that need no delta.

All answers are the transcript of the release, together with what was computed from them by linear algebra and decides
what was asked next: another machine may not find the same last bits. Read again from a ledger, a curator has this
transcript and no records, and the algorithm gives the same result: that is how a question that was asked before is
answered.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fogline._typing import LedgerLike
from fogline.accounting._rounding import round_down
from fogline.accounting.costs import Cost, PureCost
from fogline.accounting.guarantee import Guarantee
from fogline.mechanisms.above_threshold import above_threshold
from fogline.mechanisms.discrete_laplace import add_laplace
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.randomness import current_provider
from fogline.mechanisms.stable_histogram import stable_histogram
from fogline.queries.query import CountQuery, Query
from fogline.releases.release import PaidQuestion, release
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import RecordPasses

__all__ = ["Curator"]

IntArray = NDArray[np.int64]
Numbers = dict[str, NDArray[Any]]
Transcript = list[tuple[str, IntArray, float]]
"""Name, noisy numbers and scale of the noise of each answer, in order; the scale is 0 where it is no part of it."""

T = TypeVar("T")

FORMAT = "fogline-stages-1"


class Curator:
    """Holder of a source's records, of what is left of a release's budget, and of its transcript.

    Parameters
    ----------
    source : array, frame, path or Table
        Errors of its schema come here, before anything is spent.
    terms : ReleaseTerms
    width : int
        Number of columns that queries count on.

    Attributes
    ----------
    terms : ReleaseTerms
    transcript : list of (name, values, scale)
        Answers so far; released values only.
    spent : list of float
        What each answer cost, in rho, or in epsilon where the terms are pure.

    Examples
    --------
    >>> from fogline.queries.lattice import RecordLattice
    >>> from fogline.queries.moments import SpreadQuery
    >>> from fogline.testing import seeded_noise
    >>> curator = Curator(np.zeros((900, 2)), ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1), width=2)
    >>> with seeded_noise(0):
    ...     spread = curator.ask(SpreadQuery(RecordLattice.of([(-1, 1)] * 2)), Fraction(1), "scale")
    >>> abs(spread.count - 900) < 5 * spread.count_sd, len(curator.transcript)
    (True, 1)
    """

    def __init__(self, source: Any, terms: ReleaseTerms, *, width: int) -> None:
        self._start(terms, RecordPasses(source, width))

    def _start(self, terms: ReleaseTerms, records: RecordPasses | None) -> None:
        self.terms = terms
        self.transcript: Transcript = []
        self.spent: list[float] = []
        self._records = records
        self._known: Transcript = []
        self._kept: Numbers = {}
        price = terms.cost()
        # rational: shares are taken off without rounding in between
        self._budget = price.epsilon if isinstance(price, PureCost) else Fraction(price.rho)
        self._left = self._budget
        # only approximate zCDP has a delta of its own; that of Gaussian terms is in the conversion
        self._set_aside = Fraction(price.delta) if isinstance(price, Cost) else Fraction(0)
        self._aside = self._set_aside
        self._distance = terms.distance

    # -- what an algorithm may ask ----------------------------------------------------------------------------

    def ask(self, query: Query[T], share: Fraction, name: str) -> T:
        """Release the whole numbers of a query by the discrete Gaussian mechanism, and read them.

        Parameters
        ----------
        query : Query
            Made from public parameters and earlier answers. Its ``exact`` is called after the noise was drawn, or not
            at all where the answer is known.
        share : Fraction
            Of the whole budget.
        name : str
            Of the share that pays.
        """
        return query.decode(*self._answer(query, share, name))

    def _answer(self, query: Query[Any], share: Fraction, name: str) -> tuple[IntArray, float]:
        """Noisy numbers and the scale of their noise."""
        if self.terms.pure:
            raise RuntimeError("the terms of this release are pure: discrete Gaussian noise needs a delta")
        # taken before the answer is made, also where it is read again: both runs must spend alike
        rho = self._take(share)
        if self._records is None:
            values, scale = self._stored(name, query.size)
        else:
            noisy = self.terms.add_noise(
                self._sealed(query),
                size=query.size,
                sensitivity=self._sensitivity(query),
                rho=rho,
                distance=self._distance,
                parameters=(("share", name),),
            )
            if noisy.price is not None:
                # all answers share the total variation that the terms allow
                self._distance -= Fraction(noisy.price.distance)
            values, scale = noisy.values, noisy.scale
        self.transcript.append((name, values, scale))
        return values, scale

    def count(self, query: CountQuery[T], share: Fraction, name: str) -> T:
        """Release the whole numbers of a query by the discrete Laplace mechanism, and read them.

        It is epsilon-DP: under pure terms for the share of their epsilon, rounded down, else for the largest epsilon
        that the share of rho pays for (:meth:`~fogline.releases.terms.ReleaseTerms.pure_epsilon`).
        The parameters are as for :meth:`ask`; the query declares how far
        its numbers move in the sum of absolute values.

        Examples
        --------
        >>> from fogline.testing import seeded_noise
        >>> class Total:
        ...     size = 1
        ...     sensitivity = l1_sensitivity = lambda self, neighbours, c: float(c)
        ...     def exact(self, records):
        ...         seen = []
        ...         records.each(lambda rows: seen.append(len(rows)))
        ...         return np.array([sum(seen)], dtype=np.int64)
        ...     def decode(self, values, scale):
        ...         return int(values[0])
        >>> terms = ReleaseTerms.checked(1.0, None, "add-remove", 1, allow_pure=True)
        >>> curator = Curator(np.zeros((900, 2)), terms, width=2)
        >>> with seeded_noise(0):
        ...     total = curator.count(Total(), Fraction(1, 4), "total")
        >>> abs(total - 900) < 60, curator.spent
        (True, [0.25])
        """
        epsilon = self._pure(share)
        if self._records is None:
            values, scale = self._stored(name, query.size)
        else:
            noisy = add_laplace(
                self._sealed(query),
                size=query.size,
                sensitivity=query.l1_sensitivity(self.terms.neighbours, self.terms.max_contributions),
                epsilon=epsilon,
                parameters=(("share", name),),
            )
            values, scale = noisy.values, noisy.scale
        self.transcript.append((name, values, scale))
        return query.decode(values, scale)

    def first_above(self, query: Query[T], share: Fraction, name: str, *, threshold: int) -> T:
        """Tell which number of a query is the first above a threshold, and read its index; -1 where there is none.

        It is epsilon-DP, for an epsilon as in :meth:`count`. The query declares how far each of its numbers can move;
        the other parameters are as for :meth:`ask`.
        """
        epsilon = self._pure(share)
        if self._records is None:
            values, _ = self._stored(name, 1)
        else:
            index = above_threshold(
                self._sealed(query),
                size=query.size,
                threshold=threshold,
                # whole numbers move by whole numbers; up, since a smaller one would be too little noise
                sensitivity=math.ceil(self._sensitivity(query)),
                epsilon=epsilon,
                parameters=(("share", name),),
            )
            values = np.array([-1 if index is None else index], dtype=np.int64)
        self.transcript.append((name, values, 0.0))
        return query.decode(values, 0.0)

    def frequent(self, query: Query[T], share: Fraction, name: str, *, aside: Fraction) -> T:
        """Tell which keys are frequent, and about how often they occur, by a stable histogram, and read that.

        Parameters
        ----------
        query : Query
            Gives one key per record, int64 of shape (records, size), and declares how many keys come or go with a
            unit. It reads an array of shape (found, size + 1): keys with their noisy counts.
        share, name
            As for :meth:`ask`.
        aside : Fraction
            Of the delta that the terms set aside.
        """
        epsilon = self._pure(share)
        delta = round_down(aside * self._set_aside)
        # what is taken is what was rounded: the sum stays within what was set aside
        self._aside -= Fraction(delta)
        if self._aside < 0 or delta <= 0:
            raise RuntimeError("the terms of this release set no delta aside for this histogram")
        if self._records is None:
            values, _ = self._stored(name, None)
        else:
            records = self._records
            found = stable_histogram(
                sealed(lambda: [tuple(key) for key in query.exact(records).tolist()]),
                epsilon=epsilon,
                delta=delta,
                max_contributions=math.ceil(self._sensitivity(query)),
                parameters=(("share", name),),
            )
            # one row per key that was found; how many there are is part of the answer
            rows = [[*key, count] for key, count in found.counts.items() if isinstance(key, tuple)]
            values = np.array(rows, dtype=np.int64).ravel()
        self.transcript.append((name, values, 0.0))
        return query.decode(values.reshape(-1, query.size + 1), 0.0)

    def remember(self, name: str, compute: Callable[[], Numbers]) -> Numbers:
        """Compute numbers from earlier answers and write them down beside these, or give those that were written.

        Parameters
        ----------
        name : str
        compute : callable
            Returns arrays by their names; a function of earlier answers and public parameters, of nothing else.
        """
        prefix = f"{name}."
        # stored, not computed again: another machine may compute other last digits, on which later queries rest
        if self._records is not None:
            self._kept.update({prefix + part: np.asarray(value) for part, value in compute().items()})
        found = {key.removeprefix(prefix): value for key, value in self._kept.items() if key.startswith(prefix)}
        if not found:
            raise ValueError("these answers belong to another release")
        return found

    @staticmethod
    def generator(purpose: str) -> np.random.Generator:
        """Return a generator for what an algorithm draws apart from noise, such as directions; an audit replays it."""
        return current_provider().generator(purpose)

    # -- the budget and the records ---------------------------------------------------------------------------

    def _pure(self, share: Fraction) -> float:
        """Epsilon of a pure mechanism that this share of the budget pays for."""
        if self.terms.pure:
            return self._take(share)
        return self.terms.pure_epsilon(self._take(share))

    def _take(self, share: Fraction) -> float:
        """Take a share off what is left of the budget, in the currency of the terms: rho, or pure epsilon."""
        if share <= 0:
            raise RuntimeError("a stage of a release must have a share above 0")
        # down: shares that add up to 1 never cost more than the budget
        amount = round_down(share * self._budget)
        self._left -= Fraction(amount)
        if self._left < 0:
            raise RuntimeError("the stages of this release would cost more than its terms")
        self.spent.append(amount)
        return amount

    def _sensitivity(self, query: Query[Any]) -> float:
        return query.sensitivity(self.terms.neighbours, self.terms.max_contributions)

    def _sealed(self, query: Query[Any]) -> Callable[[], IntArray]:
        """The one step that touches records: it says nothing about why it fails."""
        records = self._records
        assert records is not None
        return sealed(lambda: query.exact(records))

    def _stored(self, name: str, size: int | None) -> tuple[IntArray, float]:
        """The next answer of the transcript that is read again."""
        # by place and by name: an algorithm that asks otherwise is not the one that was paid for
        stored, values, scale = self._known[len(self.transcript)]
        if stored != name or (size is not None and values.shape != (size,)):
            raise ValueError("these answers belong to another release")
        return values, scale

    # -- the release ------------------------------------------------------------------------------------------

    def release(
        self,
        algorithm: Callable[[Curator], T],
        *,
        mechanism: str,
        proof: str,
        name: str,
        code_version: str,
        parameters: Mapping[str, Any],
        max_payload: int,
        ledger: LedgerLike | None = None,
        gain_and_loss: bool = False,
        formerly: Mapping[str, Any] | None = None,
    ) -> tuple[T, Guarantee, dict[str, Any] | None]:
        """Run an algorithm once, paid for by a ledger if there is one, and let go of the records.

        Parameters
        ----------
        algorithm : callable
            Takes a curator; all it lets out is a function of the answers. With a ledger its result is the one that it
            finds in the stored transcript, without records.
        mechanism, proof : str
            For the guarantee.
        name, code_version, parameters, max_payload
            The question, as for :class:`fogline.releases.release.PaidQuestion`.
        ledger : Ledger or LedgerView, optional
        gain_and_loss, formerly
            As for :meth:`fogline.Ledger.spend`.

        Returns
        -------
        result, guarantee, receipt
        """
        terms = self.terms
        guarantee = replace(terms.guarantee(proof), mechanism=terms.stated(mechanism))
        # what is computed between two answers must not fail, once paid for, by a setting of the calling program
        algorithm = np.errstate(all="ignore")(algorithm)

        def read(payload: bytes, receipt: dict[str, Any]) -> tuple[T, Guarantee, dict[str, Any] | None]:
            # the result comes from the stored transcript even if that is new: whoever asks again gets the same
            self.forget()
            known, promised = Curator.from_bytes(terms, payload)
            return algorithm(known), promised, receipt

        try:
            terms.warn()
            records = self._records
            if records is None:
                raise RuntimeError("there are no records in a release that is read again")
            # before the first query, so that all stages see the same records of each unit
            records.bound(terms.max_contributions)
            question = PaidQuestion(
                name=name,
                code_version=code_version,
                parameters={**parameters, **terms.question(), **records.facts},
                charge=terms.charge(gain_and_loss=gain_and_loss),
                max_payload=max_payload,
                formerly=formerly,
            )
            return release(
                lambda: (algorithm(self), guarantee, None),
                ledger,
                lambda: question,
                write=lambda _: self.to_bytes(guarantee),
                read=read,
            )
        finally:
            self.forget()

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        if self._records is not None:
            self._records.forget()

    def to_bytes(self, guarantee: Guarantee) -> bytes:
        """The transcript, as integers and JSON."""
        header = {
            "format": FORMAT,
            # hexadecimal: a scale must come back to the last bit
            "stages": [[name, scale.hex()] for name, _, scale in self.transcript],
            "guarantee": guarantee.to_dict(),
        }
        arrays: Any = {f"stage_{i}": values for i, (_, values, _) in enumerate(self.transcript)}
        arrays |= {f"kept_{name}": value for name, value in self._kept.items()}
        file = io.BytesIO()
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, terms: ReleaseTerms, data: bytes) -> tuple[Self, Guarantee]:
        """Read a transcript again: a curator without records, and the guarantee it was released under."""
        # never unpickled: a ledger file is data from elsewhere
        with np.load(io.BytesIO(data), allow_pickle=False) as content:
            header = json.loads(str(content["header"]))
            if header.get("format") != FORMAT:
                raise ValueError(f"payload: not stages of format {FORMAT}")
            curator = cls.__new__(cls)
            curator._start(terms, None)
            curator._known = [
                (str(name), content[f"stage_{i}"].astype(np.int64), float.fromhex(scale))
                for i, (name, scale) in enumerate(header["stages"])
            ]
            kept = {name.removeprefix("kept_"): content[name] for name in content.files if name.startswith("kept_")}
            curator._kept = kept
        return curator, Guarantee.from_dict(header["guarantee"])
