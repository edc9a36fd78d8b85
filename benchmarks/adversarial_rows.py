"""The worst numbers that there are for a grid, for every engine: the same rows for tests and for the equality table."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from fogline.density.leaves import LeafSpec
from fogline.density.spec import SketchSpec

__all__ = ["GRIDS", "PLACES", "adversarial_rows", "exact_doubles", "grid_edges", "specials"]

GRIDS: dict[str, tuple[LeafSpec | SketchSpec, tuple[str, ...]]] = {
    "one column": (LeafSpec.plan([(0, 60)]), ("f",)),
    "edges that are no doubles": (LeafSpec.plan([(-0.1, 0.7)], leaves=[7]), ("f",)),
    "tiny": (LeafSpec.plan([(-1e-40, 3e-40)], leaves=[100]), ("f",)),
    "beyond 2^53": (LeafSpec.plan([(-(2.0**60), 2.0**63)], leaves=[1000]), ("i",)),
    "decimals, rounded": (LeafSpec.plan([(0, 60)], steps=[1]), ("n",)),
    "three columns": (LeafSpec.plan([(0, 60), (-1, 100), (0, 61)], steps=[None, 1, 0.1]), ("f", "i", "n")),
    "Fourier": (SketchSpec.plan([(0, 60)]), ("f",)),
}
"""Grids and the columns that they are of."""

PLACES = {"f": 0, "i": 1, "n": 2}
"""Of the columns in a row."""


def grid_edges() -> list[float]:
    """Some edges of the grids of one column."""
    edges: list[float] = []
    for name in ("one column", "edges that are no doubles", "tiny"):
        spec = GRIDS[name][0]
        assert isinstance(spec, LeafSpec)
        found = spec.edges(0)
        edges += [*found[:: max(1, len(found) // 25)].tolist(), float(found[-1])]
    return edges


def specials() -> list[float | None]:
    """NaN of both signs and kinds, infinities, zeros, subnormals, extremes, and nothing."""
    words = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF8DEADBEEF0001)
    nans = [struct.unpack("<d", struct.pack("<Q", word))[0] for word in words]
    plain = [math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
    return [*nans, *plain, -1.7976931348623157e308, 1e-310, -1e-310, 2.0**53, 2.0**53 + 2, 2.0**63, 1e22, None]


def near(value: float) -> list[float]:
    """A double and its neighbours, two each side."""
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    return [math.nextafter(below, -math.inf), below, value, above, math.nextafter(above, math.inf)]


def adversarial_rows(edges: Sequence[float], *, seed: int = 0, others: int = 60) -> list[tuple[Any, ...]]:
    """Rows of a double, a whole number, a decimal and an id.

    Parameters
    ----------
    edges : sequence of float
        Edges of cells: each comes with its neighbouring doubles.
    seed : int
    others : int
        Further rows of plain numbers.
    """
    draw = random.Random(seed)
    doubles: list[float | None] = [*specials(), *(value for edge in edges for value in near(edge))]
    doubles += [draw.uniform(min(edges), max(edges)) for _ in range(others)]
    wholes = [0, 1, -1, 59, 60, 61, 2**53 - 1, 2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63), None]
    decimals = [Decimal(text) for text in ("0", "0.1", "59.9999999999", "60.0000000001", "14.9999999999", "15", "30.5")]
    decimals += [Decimal("9007199254740993.5"), Decimal("-0.0000000001"), Decimal("12345678901234567890.0123456789")]
    rows = []
    for k, value in enumerate(doubles):
        decimal = None if k % 11 == 10 else decimals[k % len(decimals)]
        who = None if k % 23 == 22 else f"p{draw.randrange(1 + len(doubles) // 6)}"
        rows.append((value, wholes[k % len(wholes)], decimal, who))
    return rows


def exact_doubles(rows: Sequence[tuple[Any, ...]], place: int) -> list[float]:
    """A column as doubles, each rounded once to the nearest; NaN where there is none."""
    return [math.nan if row[place] is None else float(row[place]) for row in rows]
