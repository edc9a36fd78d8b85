"""One question of a command that is not an estimator's: asked once, paid for, with the same endings as all others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from fogline.cli import parse
from fogline.cli.common import Phase, Unreadable, opened, refusals
from fogline.cli.release import only_with_a_ledger, view_of

__all__ = ["ask"]

T = TypeVar("T")

FAILED = "the release failed; why is not said, since that may depend on the records"


def ask(question: Callable[[Any], T], options: dict[str, Any], doing: str) -> tuple[T, dict[str, Any] | None]:
    """Ask a question, with a ledger's view if there is one, and say what was paid.

    Parameters
    ----------
    question : callable
        Takes the view or None; raises ValueError, TypeError or OSError for what is wrong with public things, and before
        it touches any record. Its answer has a ``receipt``.
    options : dict
        Of the command: ``ledger``, ``dataset``, ``analyst``, ``high_water``, ``afresh``, ``as_json``.
    doing : str
        Public words for the terminal.
    """
    only_with_a_ledger(options)
    if options["ledger"] is None:
        with Phase(doing, quiet=options["as_json"]):
            return _asked(question, None), None
    with opened(options["ledger"], options["high_water"]) as books:
        with refusals():
            view = view_of(books, options)
            before = len(books.history())
        with Phase(doing, quiet=options["as_json"]), refusals():
            answer = _asked(question, view)
    receipt = getattr(answer, "receipt", None)
    if receipt is None:
        raise Unreadable("the ledger gave no receipt")
    return answer, {"receipt": receipt, "cached": receipt["commit"] < before}


def _asked(question: Callable[[Any], T], view: Any) -> T:
    from fogline.mechanisms.failures import ReleaseFailed
    from fogline.sketch.origins import AlreadyReleased

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning may depend on the records
            return question(view)
    except ReleaseFailed:
        raise Unreadable(FAILED) from None
    except AlreadyReleased as error:
        raise parse.refused(ValueError(f"path: {error}")) from None
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
