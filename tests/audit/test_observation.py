"""What an observation sees, and that it leaves the world as it was."""

from __future__ import annotations

import functools
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from fogline.audit.leaves import digest, opaque_paths
from fogline.audit.neighbour_pairs import BLOCK, canary_pairs, random_pairs
from fogline.audit.observation import differences, flatten, observe


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Plain:
    def __init__(self, value):
        self.inner = {"deep": [value]}

    def method(self):
        return self.inner


def keep(value, extra=0):
    return lambda: (value, extra)


NAN = np.array([0x7FF8_0000_0000_0001], dtype=np.uint64).view(np.float64)[0]
CARRIERS = {
    "plain": lambda v: v,
    "list": lambda v: [1, v],
    "dict": lambda v: {"a": v},
    "set": lambda v: {v},
    "slots": Slotted,
    "attribute": Plain,
    "method": lambda v: Plain(v).method,
    "closure": keep,
    "default": lambda v: functools.partial(keep, extra=v),
    "object array": lambda v: np.array([None, v], dtype=object),
    "array": lambda v: np.array([0.0, v]),
    "scalar": np.float64,
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("one", "two"), [(1.0, 1.0 + 2**-52), (0.0, -0.0), (float("nan"), float(NAN))])
def test_one_bit_is_seen_wherever_it_hides(carrier, one, two):
    build = CARRIERS[carrier]
    first, second, same = {}, {}, {}
    flatten(build(one), "x", first)
    flatten(build(two), "x", second)
    flatten(build(one), "x", same)
    assert first == same
    assert first != second


def test_cycles_end_and_types_count():
    loop: list = [1]
    loop.append(loop)
    leaves: dict = {}
    flatten(loop, "x", leaves)
    assert leaves["x[1]"][:2] == ("cycle", "list")
    assert differences(observe(lambda d: d, 1), observe(lambda d: d, True))
    assert not differences(observe(lambda d: object(), 1), observe(lambda d: object(), 2))


@pytest.mark.parametrize(
    ("act", "place"),
    [
        (lambda n: print(n), "printed text"),
        (lambda n: print(n, file=sys.stderr), "printed text"),
        (lambda n: logging.getLogger("a.b").debug("%d", n), "log records"),
        (lambda n: warnings.warn(str(n), stacklevel=1), "warnings"),
        (lambda n: Path("out").write_text(str(n)) and None, "files written"),
        (lambda n: Path(tempfile.gettempdir(), "cache").write_text(str(n)) and None, "files written"),
        (lambda n: Path(str(n)).mkdir(), "files written"),
        (lambda n: np.random.seed(n), "global generator"),
        (lambda n: 1 // (n - 3), "exception raised differs: ZeroDivisionError and none"),
        (lambda n: [][n], ""),
        (lambda n: {}[n], "in its message"),
    ],
)
def test_every_channel(act, place):
    found = differences(observe(act, 3), observe(act, 4))
    assert any(place in difference for difference in found) if place else not found
    assert not differences(observe(act, 3), observe(act, 3))


def test_the_world_is_as_before():
    before = (Path.cwd(), tempfile.tempdir, logging.root.level, logging.getLogRecordFactory(), sys.stdout)
    seen = observe(lambda n: os.getcwd(), 1)
    assert seen.result != str(before[0])
    assert not Path(seen.result).exists()
    assert before == (
        Path.cwd(),
        tempfile.tempdir,
        logging.root.level,
        logging.getLogRecordFactory(),
        sys.stdout,
    )


def test_what_must_not_be_caught():
    def interrupted(n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observe(interrupted, 1)


# -- canaries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("c", [1, 2])
def test_canaries_are_neighbours_of_many_kinds(d, relation, c):
    box = [(-1.0, 1.0), (5.0, 9.0), (0.0, 100.0)][:d]
    pairs = canary_pairs(box, neighbours=relation, n=30, max_contributions=c)
    pairs += random_pairs(box, neighbours=relation, pairs=20, seed=1, max_contributions=c)
    assert len(pairs) >= 40
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.D.shape[1] == pair.D_prime.shape[1] == d
        assert len(pair.D_prime) - len(pair.D) == (c if relation == "add-remove" else 0)
        common = len(pair.D_prime) - c
        assert pair.D[:common].tobytes() == pair.D_prime[:common].tobytes()
    sizes = sorted({len(pair.D_prime) for pair in pairs})
    assert sizes[-2:] == [BLOCK, BLOCK + c]


def test_canaries_hold_what_they_say():
    by_name = {pair.name: pair.D_prime[-1, 0] for pair in canary_pairs([(2, 4)], neighbours="add-remove")}
    assert by_name["one step outside the upper bounds"] == np.nextafter(4.0, 5)
    assert by_name["one step inside the lower bounds"] == np.nextafter(2.0, 3)
    assert by_name["missing, with a payload"].view(np.uint64) == 0xFFF8_0000_DEAD_BEEF
    assert by_name["subnormal"] == 5e-324
    assert np.signbit(by_name["minus zero"])


def test_factors_of_a_sparse_matrix_can_be_looked_into():
    """By their numbers; the memory behind them, which scipy never wrote, is no part of them."""
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    matrix = csc_array(diags_array([[2.0] * 4, [1.0] * 3], offsets=[0, 1]))
    one, same, other = {}, {}, {}
    for leaves, each in ((one, matrix), (same, matrix), (other, 2 * matrix)):
        flatten(splu(each), "factor", leaves)
    assert not opaque_paths(one)
    assert digest(one) == digest(same) != digest(other)
