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
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fogline._validation import records
from fogline.accounting._rounding import round_down
from fogline.accounting.guarantee import Guarantee
from fogline.engines.files import FileTable
from fogline.mechanisms.entropy import door_reason
from fogline.mechanisms.failures import sealed
from fogline.mechanisms.gaussian import add_gaussian
from fogline.sketch.density_sketch import ReleaseTerms

__all__ = ["RecordPasses", "Stages", "staged_release"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Numbers = dict[str, NDArray[Any]]
T = TypeVar("T")

FORMAT = "fogline-stages-1"

BATCH_ROWS = 4096
"""Rows of an array handled at a time."""


class RecordPasses:
    """Passes over a source, batch by batch: errors of its schema come when it is made.

    Parameters
    ----------
    source : array, frame or FileTable
    d : int
        Columns that are wanted.
    """

    def __init__(self, source: Any, d: int) -> None:
        if isinstance(source, FileTable):
            source.require_width(d)
        elif isinstance(source, np.ndarray) and source.ndim == 2 and not isinstance(source, np.ma.MaskedArray):
            records(source[:0], d)  # batches are converted one at a time
        else:
            source = records(source, d)
        self._source: Any = source
        self._d = d
        self.memory: dict[str, Any] = {}
        """Secret: what a pass wants to keep for the next."""

    def each(self, take: Callable[[FloatArray], object]) -> None:
        """Hand over all records, in batches of shape (rows, d)."""
        if self._source is None:
            raise RuntimeError("these passes are over")
        if isinstance(self._source, FileTable):
            self._source.each_batch(take)
            return
        for start in range(0, len(self._source), BATCH_ROWS):
            take(records(self._source[start : start + BATCH_ROWS], self._d))

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._source = None
        self.memory = {}


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
            As for :func:`fogline.mechanisms.gaussian.add_gaussian`.
        portion : Fraction
            Of the whole budget.

        Returns
        -------
        values, scale
            The noisy vector and the scale of its noise.
        """
        rho = round_down(portion * Fraction(self.terms.rho))
        self._left -= Fraction(rho)
        if self._left < 0:
            raise RuntimeError("the stages of this release would cost more than its terms")
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

    Returns
    -------
    result, guarantee, receipt
    """
    guarantee = replace(terms.guarantee(proof), mechanism=terms.stated(mechanism))
    try:
        if ledger is None:
            return algorithm(Stages(terms), passes), guarantee, None

        def release() -> bytes:
            stages = Stages(terms)
            algorithm(stages, passes)
            return stages.to_bytes(guarantee)

        answer = ledger.ask(
            name,
            code_version=code_version,
            parameters={**parameters, **terms.question()},
            cost=terms.cost(),
            neighbours=terms.neighbours,
            certified=not door_reason(),
            release=release,
            max_payload=max_payload,
        )
    finally:
        passes.forget()
    known, promised = Stages.from_bytes(terms, answer.payload)
    return algorithm(known, None), promised, answer.receipt.to_dict()
