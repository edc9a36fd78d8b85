"""What is asked: everything public that an answer depends on, and its fingerprint.

How a ledger says no.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fogline.mechanisms.errors import ReleaseFailed

__all__ = ["BudgetExceeded", "LedgerRefused", "Question", "ReleaseFailed", "canonical", "kin_of", "no_cap_words"]

_EXACT = 2**53


@dataclass(frozen=True)
class Question:
    """One question to one version of a data set. Two equal questions have one answer, paid for once.

    Parameters
    ----------
    dataset, version : str
        The data set's name in the ledger and its declared version. Never a hash of the data: who can guess
        the data could check the guess.
    mechanism, code_version : str
        What answers, and which edition of it. A new edition may answer otherwise, so it is another question.
    parameters : mapping
        Every parameter that the answer depends on, in terms that JSON has: numbers, text, booleans, None, lists
        and mappings with text for keys. 1 and 1.0 are the same number. ``source``, if it is a text, says where the
        records are: a path or an address, as it was given.

    Examples
    --------
    >>> one = Question("patients", "2024", "modes", "1", {"epsilon": 1, "bounds": [(0, 10)]})
    >>> two = Question("patients", "2024", "modes", "1", {"bounds": [[0.0, 10.0]], "epsilon": 1.0})
    >>> one.fingerprint == two.fingerprint
    True
    >>> Question("patients", "2024", "modes", "1", {"epsilon": float("nan")})
    Traceback (most recent call last):
    ValueError: parameters.epsilon must be finite
    """

    dataset: str
    version: str
    mechanism: str
    code_version: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("dataset", "version", "mechanism", "code_version"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise TypeError(f"{name} must be a text that is not empty")
            _encodable(value, name)
        if not isinstance(self.parameters, Mapping):
            raise TypeError("parameters must be a mapping of names to values")
        # a copy: who changes their mapping later must not change what was asked
        object.__setattr__(self, "parameters", _plain(self.parameters, "parameters"))

    def __hash__(self) -> int:
        # parameters are a dictionary, which has no hash of its own
        return hash(self.fingerprint)

    def to_dict(self) -> dict[str, Any]:
        """Return the question in terms of JSON.

        Examples
        --------
        >>> Question("patients", "2024", "count", "1").to_dict()["mechanism"]
        'count'
        """
        return {
            "dataset": self.dataset,
            "version": self.version,
            "mechanism": self.mechanism,
            "code_version": self.code_version,
            "parameters": self.parameters,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the question in canonical JSON, in hexadecimal digits."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()

    def within(self, partition: tuple[str, str] | None) -> str:
        """Return the fingerprint of this question asked of one part of the data set, or of all of it.

        Examples
        --------
        >>> asked = Question("patients", "2024", "count", "1")
        >>> asked.within(None) == asked.fingerprint
        True
        >>> asked.within(("sex", "f")) == asked.within(("sex", "m"))
        False
        """
        if partition is None:
            return self.fingerprint
        return hashlib.sha256(canonical({"question": self.fingerprint, "partition": list(partition)})).hexdigest()


def kin_of(asked: Mapping[str, Any], partition: Sequence[str] | None, *, early: bool = False) -> str:
    """Return the fingerprint of a question without the edition of what answers it.

    Parameters
    ----------
    asked : mapping
        As `Question.to_dict` gives it.
    partition : pair or None
    early : bool
        Whether it was asked before questions said where their records come from.

    Examples
    --------
    >>> one, two = (Question("patients", "2024", "count", edition).to_dict() for edition in "12")
    >>> kin_of(one, None) == kin_of(two, None), kin_of(one, None) == kin_of(one, ("sex", "f"))
    (True, False)
    """
    kept = {name: value for name, value in asked.items() if name != "code_version"}
    whole = {"kin": kept, "partition": None if partition is None else list(partition), "early": early}
    return hashlib.sha256(canonical(whole)).hexdigest()


def canonical(value: object) -> bytes:
    """Return the one way to write a value of JSON: keys in order, no blanks, ASCII.

    Examples
    --------
    >>> canonical({"b": 1, "a": [0.1, None]})
    b'{"a":[0.1,null],"b":1}'
    """
    # the bytes are hashed: one spelling, for good
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def _plain(value: Any, where: str) -> Any:
    """Return `value` in plain types of JSON, a new copy, with one spelling for each number."""
    # before int, which bool is one of
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(value, where)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} must be finite")
        # 1 and 1.0 are one question; from 2^53 on one float stands for several integers
        return int(value) if value.is_integer() and abs(value) < _EXACT else float(value)
    if isinstance(value, list | tuple):
        return [_plain(part, f"{where}[{j}]") for j, part in enumerate(value)]
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{where} must have text for keys")
        return {_encodable(name, where): _plain(part, f"{where}.{name}") for name, part in value.items()}
    raise TypeError(f"{where} must be a number, text, boolean, None, list or mapping, got {type(value).__name__}")


def _encodable(text: str, where: str) -> str:
    """Refuse half a surrogate pair, which no file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where} must be text that UTF-8 can hold") from None
    return str(text)


class LedgerRefused(RuntimeError):
    """The ledger will not do this, and nothing was charged for asking.

    Parameters
    ----------
    check : str
        Which check failed: "chain", "sums", "payload", "high-water", "schema", "dataset", ...
    message : str

    Examples
    --------
    >>> raise LedgerRefused("dataset", "there is no data set 'patients'")
    Traceback (most recent call last):
    fogline.ledger.question.LedgerRefused: there is no data set 'patients' (check: dataset)
    """

    def __init__(self, check: str, message: str) -> None:
        super().__init__(check, message)
        self.check = check
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (check: {self.check})"


class BudgetExceeded(LedgerRefused):
    """A release would cost more than is left. Nothing was charged, and no data were touched.

    Examples
    --------
    >>> BudgetExceeded("the budget of 'patients' is spent").check
    'budget'
    """

    def __init__(self, message: str, check: str = "budget") -> None:
        super().__init__(check, message)

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, str]]:
        return BudgetExceeded, (self.message, self.check)


def no_cap_words(lane: str, delta: float | None, currency: str, whose: str) -> str:
    """Say why a cap does not pay for a currency, and what would."""
    if currency == "zcdp" and lane == "gaussian":
        return (
            f"the lane of {whose} is Gaussian: it pays for Gaussian noise and for pure epsilon, and this release is"
            " accounted in zCDP, which is not the same. Ask for one of the former, or keep a data set whose lane is"
            " 'zcdp' for it"
        )
    if currency == "zcdp" and delta == 0.0:
        return (
            f"the cap of {whose} has a delta of 0 and pays for pure epsilon-DP only, and this release is accounted in"
            " zCDP, which takes a delta, as Gaussian noise does. Ask for a release without a delta (delta=0), or give"
            " the cap a delta (Ledger.set_cap)"
        )
    return f"there is no cap in currency {currency!r} for {whose}"
