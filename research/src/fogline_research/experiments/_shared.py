"""What the reruns share: the papers' figures, seeds, progress, means."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from importlib import resources

import numpy as np

__all__ = ["DELTA", "Progress", "check_methods", "fresh_seed", "mean_and_error", "printed_rows", "reported"]

DELTA = 1e-5

Progress = Callable[[int, int, str], None]
"""Called with (runs done, runs in all, label)."""


def printed_rows(name: str) -> list[dict[str, str]]:
    """Rows of a table of the papers, as text.

    Examples
    --------
    >>> len(printed_rows("modal_regression"))
    32
    """
    text = resources.files("fogline_research.as_published").joinpath(f"tables/{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def fresh_seed(seed: int | None) -> int:
    """Return the seed of the data: the given one, or a fresh one."""
    return seed if seed is not None else int(np.random.SeedSequence().generate_state(1)[0])


def check_methods(methods: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a method that there is not.

    Examples
    --------
    >>> check_methods(["certified"], ["certified", "published"])
    """
    for method in methods:
        if method not in known:
            raise ValueError(f"methods must be among {', '.join(known)}, got {method!r}")


def reported(labels: Sequence[str], progress: Progress | None) -> Iterator[int]:
    """Count through the labels, telling `progress` before each and once at the end.

    Examples
    --------
    >>> list(reported(["a", "b"], None))
    [0, 1]
    """
    for done, label in enumerate(labels):
        if progress is not None:
            progress(done, len(labels), label)
        yield done
    if progress is not None:
        progress(len(labels), len(labels), "done")


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; the error is nan for one value, or where one is not finite.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    array = np.array(values)
    if len(array) < 2 or not np.isfinite(array).all():
        return float(array.mean()), math.nan
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(len(array)))
