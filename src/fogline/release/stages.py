r"""Several releases that are one question: each stage is paid from the same budget and may use what came before.

A staged algorithm asks :class:`Stages` for the answer of each mechanism in turn. Everything between two answers is
post-processing, and what a stage asks may depend on earlier *answers* in any way: zero-concentrated differential
privacy composes adaptively by adding up. :class:`Stages` sees to it that the sum never exceeds the terms.

All the answers are the payload of the release, together with what was computed from them by linear algebra and decides
what was asked next: another machine may not find the same last bits. Told them, the algorithm gives the same result
without the records: that is how a ledger answers a question that was asked before.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fogline.accounting._rounding import round_down
from fogline.accounting.guarantee import Guarantee
from fogline.mechanisms.above_threshold import above_threshold
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.randomness import current_door
from fogline.mechanisms.stable_histogram import stable_histogram
from fogline.release.density_sketch import ReleaseTerms
from fogline.sources.passes import RecordPasses

__all__ = ["RecordPasses", "Stages", "asked", "no_records", "staged_release"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Numbers = dict[str, NDArray[Any]]
T = TypeVar("T")

FORMAT = "fogline-stages-1"


class Stages:
    """The mechanisms of one staged release, and what is left of its budget.

    Parameters
    ----------
    terms : ReleaseTerms
    known : list of (name, values, scale), optional
        Answers of an earlier run, which are given again instead of new ones.
    kept : dict of arrays, optional
        What was computed from them.
    """

    def __init__(
        self,
        terms: ReleaseTerms,
        known: list[tuple[str, IntArray, float]] | None = None,
        kept: Numbers | None = None,
    ) -> None:
        self.terms = terms
        self.answers: list[tuple[str, IntArray, float]] = []
        self._known = known
        self._kept: Numbers = {} if kept is None else kept
        self._left = Fraction(terms.rho)
        self._aside = Fraction(terms.cost().delta)
        self.spent: list[float] = []
        """What each stage cost, in rho."""

    def answer(
        self, name: str, query: Callable[[], IntArray], *, size: int, sensitivity: float, portion: Fraction
    ) -> tuple[IntArray, float]:
        """Release an exact integer vector, paid for with a portion of the whole budget.

        Parameters
        ----------
        name : str
            Of the share that pays.
        query : callable
            The only step that touches records; called after the noise was drawn, or not at all.
        size, sensitivity
            As for :func:`fogline.mechanisms.discrete_gaussian.add_gaussian`.
        portion : Fraction
            Of the whole budget.

        Returns
        -------
        values, scale
            The noisy vector and the scale of its noise.
        """
        rho = self._take(portion)
        if self._known is not None:
            stored, values, scale = self._known[len(self.answers)]
            if stored != name or values.shape != (size,):
                raise ValueError("these answers belong to another release")
        else:
            noisy = add_gaussian(
                sealed(query), size=size, sensitivity=sensitivity, rho=rho, parameters=(("share", name),)
            )
            values, scale = noisy.values, noisy.scale
        self.answers.append((name, values, scale))
        return values, scale

    def first_above(
        self,
        name: str,
        queries: Callable[[], IntArray],
        *,
        size: int,
        threshold: int,
        sensitivity: int,
        portion: Fraction,
    ) -> int | None:
        """Tell which of several counts is the first above a threshold; parameters as for :meth:`answer`.

        It is epsilon-DP for the largest epsilon whose epsilon^2 / 2 the portion pays for.
        """
        epsilon = self._pure(portion)

        def ask() -> IntArray:
            index = above_threshold(
                sealed(queries),
                size=size,
                threshold=threshold,
                sensitivity=sensitivity,
                epsilon=epsilon,
                parameters=(("share", name),),
            )
            return np.array([-1 if index is None else index], dtype=np.int64)

        (index,) = self._told(name, 1, ask).tolist()
        return None if index < 0 else int(index)

    def frequent(
        self, name: str, keys: Callable[[], IntArray], *, width: int, portion: Fraction, aside: Fraction, units: int
    ) -> IntArray:
        """Tell which keys are frequent, and about how often they occur; parameters as for :meth:`answer`.

        Parameters
        ----------
        keys : callable
            Returns one key a record, int64 of shape (records, width).
        width : int
            Numbers in a key.
        aside : Fraction
            Of the delta that the terms set aside.
        units : int
            Most keys that come or go with one unit.

        Returns
        -------
        array of shape (found, width + 1)
            Keys with their noisy counts.
        """
        epsilon = self._pure(portion)
        delta = round_down(aside * Fraction(self.terms.cost().delta))
        self._aside -= Fraction(delta)
        if self._aside < 0 or delta <= 0:
            raise RuntimeError("the terms of this release set no delta aside for this histogram")

        def ask() -> IntArray:
            found = stable_histogram(
                sealed(lambda: [tuple(key) for key in keys().tolist()]),
                epsilon=epsilon,
                delta=delta,
                max_contributions=units,
                parameters=(("share", name),),
            )
            rows = [[*key, count] for key, count in found.counts.items() if isinstance(key, tuple)]
            return np.array(rows, dtype=np.int64).ravel()

        return self._told(name, None, ask).reshape(-1, width + 1)

    def _pure(self, portion: Fraction) -> float:
        """Epsilon of a pure mechanism that this portion of the budget pays for."""
        rho = Fraction(self._take(portion))
        epsilon = math.sqrt(2 * rho)
        while Fraction(epsilon) ** 2 > 2 * rho:
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon

    def _take(self, portion: Fraction) -> float:
        """Take a portion off what is left of the budget."""
        rho = round_down(portion * Fraction(self.terms.rho))
        self._left -= Fraction(rho)
        if self._left < 0:
            raise RuntimeError("the stages of this release would cost more than its terms")
        self.spent.append(rho)
        return rho

    def _told(self, name: str, size: int | None, ask: Callable[[], IntArray]) -> IntArray:
        """Ask for an answer without a scale, or give the one that is known."""
        if self._known is None:
            values = ask()
        else:
            stored, values, _ = self._known[len(self.answers)]
            if stored != name or (size is not None and values.shape != (size,)):
                raise ValueError("these answers belong to another release")
        self.answers.append((name, values, 0.0))
        return values

    @staticmethod
    def generator(purpose: str) -> np.random.Generator:
        """Return a generator for what an algorithm draws apart from noise, such as directions; an audit replays it."""
        return current_door().generator(purpose)

    def keep(self, name: str, compute: Callable[[], Numbers]) -> Numbers:
        """Compute numbers from earlier answers and keep them with these, or give those that were kept.

        Parameters
        ----------
        name : str
        compute : callable
            Returns arrays by their names; a function of earlier answers and public parameters, of nothing else.
        """
        prefix = f"{name}."
        if self._known is None:
            self._kept.update({prefix + part: np.asarray(value) for part, value in compute().items()})
        found = {key.removeprefix(prefix): value for key, value in self._kept.items() if key.startswith(prefix)}
        if not found:
            raise ValueError("these answers belong to another release")
        return found

    def to_bytes(self, guarantee: Guarantee) -> bytes:
        """All answers, as integers and JSON."""
        header = {
            "format": FORMAT,
            "stages": [[name, scale.hex()] for name, _, scale in self.answers],
            "guarantee": guarantee.to_dict(),
        }
        arrays: Any = {f"stage_{i}": values for i, (_, values, _) in enumerate(self.answers)}
        arrays |= {f"kept_{name}": value for name, value in self._kept.items()}
        file = io.BytesIO()
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
        return file.getvalue()

    @staticmethod
    def from_bytes(terms: ReleaseTerms, data: bytes) -> tuple[Stages, Guarantee]:
        """Stages that give the answers of :meth:`to_bytes` again, and the guarantee they were released under."""
        with np.load(io.BytesIO(data), allow_pickle=False) as content:
            header = json.loads(str(content["header"]))
            if header.get("format") != FORMAT:
                raise ValueError(f"payload: not stages of format {FORMAT}")
            known = [
                (str(name), content[f"stage_{i}"].astype(np.int64), float.fromhex(scale))
                for i, (name, scale) in enumerate(header["stages"])
            ]
            kept = {name.removeprefix("kept_"): content[name] for name in content.files if name.startswith("kept_")}
        return Stages(terms, known, kept), Guarantee.from_dict(header["guarantee"])


def asked(stages: Stages, records: Any, name: str, query: Any, portion: Fraction) -> tuple[IntArray, float]:
    """Ask for the sum of a query over the records, with the sensitivity that the query declares.

    Parameters
    ----------
    stages : Stages
    records : object
        What ``query.sum`` takes: passes, or their ``each``.
    name : str
        Of the share that pays.
    query : object
        With ``sum``, ``size`` and ``sensitivity(neighbours, max_contributions)``.
    portion : Fraction
        Of the whole budget.
    """
    terms = stages.terms
    return stages.answer(
        name,
        lambda: query.sum(records) if hasattr(query, "sum") else query.exact(records),
        size=query.size,
        sensitivity=query.sensitivity(terms.neighbours, terms.max_contributions),
        portion=portion,
    )


def no_records(take: Any) -> None:  # noqa: ARG001
    """Stand in for the passes of a release that is read again."""
    raise RuntimeError("there are no records in a release that is read again")


def staged_release(
    algorithm: Callable[[Stages, RecordPasses | None], T],
    passes: RecordPasses,
    terms: ReleaseTerms,
    *,
    mechanism: str,
    proof: str,
    name: str,
    code_version: str,
    parameters: Mapping[str, Any],
    max_payload: int,
    ledger: Any = None,
    gain_and_loss: bool = False,
    formerly: Mapping[str, Any] | None = None,
) -> tuple[T, Guarantee, dict[str, Any] | None]:
    """Run a staged algorithm once, paid for by a ledger if there is one.

    Parameters
    ----------
    algorithm : callable
        Takes :class:`Stages` and the passes; all it lets out is a function of the answers. With the answers known it is
        given no passes.
    passes : RecordPasses
        Forgotten at the end, whatever happens.
    terms : ReleaseTerms
    mechanism, proof : str
        For the guarantee.
    name, code_version, parameters, max_payload
        The question, as for :meth:`fogline.Ledger.ask`.
    ledger : Ledger or LedgerView, optional
    gain_and_loss, formerly
        As for :meth:`fogline.Ledger.spend`.

    Returns
    -------
    result, guarantee, receipt
    """
    guarantee = replace(terms.guarantee(proof), mechanism=terms.stated(mechanism))
    # what is computed between two answers must not fail, once paid for, by a setting of the calling program
    algorithm = np.errstate(all="ignore")(algorithm)
    try:
        terms.warn()
        passes.bound(terms.max_contributions)
        if ledger is None:
            return algorithm(Stages(terms), passes), guarantee, None

        def release() -> bytes:
            stages = Stages(terms)
            algorithm(stages, passes)
            return stages.to_bytes(guarantee)

        charge = terms.charge(gain_and_loss=gain_and_loss)
        answer = ledger.ask(
            name,
            code_version=code_version,
            parameters={**parameters, **terms.question(), **passes.facts},
            release=release,
            max_payload=max_payload,
            formerly=formerly,
            **vars(charge),
        )
    finally:
        passes.forget()
    known, promised = Stages.from_bytes(terms, answer.payload)
    return algorithm(known, None), promised, answer.receipt.to_dict()
