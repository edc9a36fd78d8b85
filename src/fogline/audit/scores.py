r"""Scores that need no knowledge of the algorithm: what an attacker would look at first.

*Fixed* witnesses look for one record, the canary, in whatever was published: the distance of the nearest output to
it, whether it appears bit for bit among the outputs or anywhere else, how many outputs there are, the density published
at its place, and whether a number or a word anywhere says how many records there are.
*Learnt* ones choose on half of the runs what to look at: the one number of all that are published (in any attribute, in
texts, at any place) which tells most; the *shape* of the output (types, dtypes, shapes, names, lengths of texts); and a
logistic regression on the numbers that tell most.

A fixed score is turned around where the first half of the runs shows more that way. All that is
learnt is learnt on the first half, so that the second half, on which events are counted, is fresh.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fogline._typing import FloatArray, SourceLike

__all__ = ["canary_of", "fixed_scores", "learnt_scores", "numbers_of", "points_of", "shape_of", "trained_scores"]

Score = Callable[[Any], float]

_POINTS = ("modes_", "cluster_centers_", "means_", "params_", "modes", "centers", "params", "values")
_FAR = 1e300


@dataclass(frozen=True)
class ScoreTuning:
    """How much of an output a score looks at.

    Parameters
    ----------
    numbers : int
        Numbers that a learnt score uses.
    most_numbers : int
        Most numbers that are taken from an output.
    deepest : int
        How far nested parts are followed.
    """

    numbers: int = 24
    most_numbers: int = 4096
    deepest: int = 6


TUNING = ScoreTuning()


_IN_TEXT = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_UNREAD = ("guarantee", "receipt", "random_state")


def points_of(output: object) -> FloatArray:
    """Return the points that an output shows, one per row: its modes, centres or parameters, or the output itself.

    Examples
    --------
    >>> points_of([3.0, 4.0])
    array([[3.],
           [4.]])
    >>> points_of({"mean": 1.0, "sd": 2.0}).shape
    (2, 1)
    >>> points_of("nothing that could be read").shape
    (0, 1)
    """
    shown = [] if isinstance(output, Mapping) else [getattr(output, name, None) for name in _POINTS]
    found = next((value for value in shown if value is not None and not callable(value)), output)
    if isinstance(found, Mapping):
        found = list(found.values())
    try:
        array = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        return np.zeros((0, 1))
    if array.ndim < 2:
        return array.reshape(-1, 1)
    return array.reshape(-1, array.shape[-1])


def canary_of(D: SourceLike, D_prime: SourceLike) -> FloatArray | None:
    """Return the first record that D' has and D has not, or the other way round; None where there is none to see.

    Examples
    --------
    >>> canary_of([[1.0], [2.0]], [[1.0], [7.0]])
    array([7.])
    """
    try:
        before, after = (np.asarray(data, dtype=np.float64) for data in (D, D_prime))
    except (TypeError, ValueError):
        return None
    if 0 in (before.size, after.size):  # an empty list does not say how many columns there would be
        filled = after if after.size else before
        before, after = (array if array.size else filled[:0] for array in (before, after))
    if before.ndim not in (1, 2) or after.ndim != before.ndim or not (before.size or after.size):
        return None
    first, second = (array.reshape(len(array), -1 if array.size else 1) for array in (before, after))
    for mine, other in ((second, first), (first, second)):
        known = Counter(row.tobytes() for row in other)
        for row in mine:
            known[row.tobytes()] -= 1
            if known[row.tobytes()] < 0:
                return np.array(row)
    return None


def fixed_scores(canary: ArrayLike | None, sizes: tuple[int, int] | None = None) -> dict[str, Score]:
    """Return the fixed witnesses by name; without a canary only the number of outputs is left.

    Parameters
    ----------
    canary : array-like of shape (d,) or None
    sizes : (int, int), optional
        How many records D and D' have: adds a witness that looks for these numbers.

    Examples
    --------
    >>> scores = fixed_scores([3.0, 4.0], sizes=(7, 8))
    >>> {name: score([[0.0, 0.0], [9.0, 8.0]]) for name, score in scores.items()}
    {'number of outputs': 2.0, 'a count': 1.0, 'nearest output': -5.0, 'exact match': 0.0, 'match anywhere': 0.0,
    'density at the canary': 0.0}
    """
    scores: dict[str, Score] = {"number of outputs": _number}
    if sizes is not None and sizes[0] != sizes[1]:
        scores["a count"] = lambda output: _counts(output, *sizes)
    if canary is None:
        return scores
    place = np.atleast_1d(np.asarray(canary, dtype=np.float64)).ravel()
    return scores | {
        "nearest output": lambda output: _nearness(output, place),
        "exact match": lambda output: float(_shows(output, place)),
        "match anywhere": lambda output: _matches(output, place),
        "density at the canary": lambda output: _density(output, place),
    }


def numbers_of(output: object) -> FloatArray:
    """Return every number that an output shows: in its attributes, containers, arrays and texts, in a fixed order.

    Guarantees and receipts are left out, which are public, and what begins with an underscore, which a replay looks at.

    Examples
    --------
    >>> numbers_of({"a": [1, 2.5], "message": "found 17 records"})
    array([ 1. ,  2.5, 17. ])
    """
    found: list[float] = []
    _gather(output, found, 0)
    return np.nan_to_num(np.array(found[: TUNING.most_numbers], dtype=np.float64), nan=0.0, posinf=_FAR, neginf=-_FAR)


def shape_of(output: object) -> str:
    """Return what an output looks like, without its numbers: types, dtypes, shapes, names and lengths of texts.

    Examples
    --------
    >>> shape_of({"a": np.zeros((2, 3)), "b": "text"})
    'dict(a: ndarray float64 (2, 3), b: str 4)'
    """
    return _shape(output, 0)


def learnt_scores(outputs: Sequence[Sequence[Any]]) -> dict[str, list[FloatArray]]:
    """Return scores by the number that tells most and by the shape of the outputs, on D and on D'.

    What to look at is chosen on the first half of the runs, crosswise, as in `trained_scores`.

    Examples
    --------
    >>> found = learnt_scores([[{"a": 1.0, "n": 3.0}] * 8, [{"a": 1.0, "n": 4.0}] * 8])
    >>> {name: bool(null.max() < other.min()) for name, (null, other) in found.items()}
    {'a single number': True, 'the shape of the output': False}
    """
    numbers = [_padded([numbers_of(output) for output in side]) for side in outputs]
    width = max(side.shape[1] for side in numbers)
    numbers = [np.pad(side, ((0, 0), (0, width - side.shape[1]))) for side in numbers]
    shapes = [[shape_of(output) for output in side] for side in outputs]
    runs = len(outputs[0])
    single = [np.zeros(runs), np.zeros(runs)]
    shaped = [np.zeros(runs), np.zeros(runs)]
    for learn, judge in _folds(runs):
        place, sign = _telling(numbers[0][learn], numbers[1][learn])[0]
        counts = [Counter(side[learn]) for side in shapes]
        for mine, column in zip(single, numbers, strict=True):
            mine[judge] = sign * column[judge, place] if width else 0.0
        for mine, side in zip(shaped, shapes, strict=True):
            mine[judge] = [np.log((counts[1][one] + 0.5) / (counts[0][one] + 0.5)) for one in side[judge]]
    return {"a single number": single, "the shape of the output": shaped}


def _folds(runs: int) -> list[tuple[slice, slice]]:
    """Return what to learn from and what to judge: quarters crosswise, then one half from the other."""
    quarter, half = runs // 4, runs // 2
    folds = [
        (slice(0, quarter), slice(quarter, half)),
        (slice(quarter, half), slice(0, quarter)),
        (slice(0, half), slice(half, runs)),
    ]
    return [(learn, judge) for learn, judge in folds if judge.start != judge.stop]


def trained_scores(outputs: Sequence[Sequence[Any]], canary: ArrayLike | None) -> list[FloatArray]:
    """Return scores of the outputs on D and on D' by a logistic regression trained on the first half of each.

    The first half is scored crosswise, each quarter by what was learnt on the other, so that thresholds chosen
    on it fit the fresh half.

    Examples
    --------
    >>> scores = trained_scores([[0.0] * 8, [1.0] * 8], canary=None)
    >>> bool(scores[0].max() < scores[1].min())
    True
    """
    looks = list(fixed_scores(canary).values())
    features = [np.array([_features(output, looks, canary) for output in side]) for side in outputs]
    numbers = [np.arcsinh(_padded([numbers_of(output) for output in side])) for side in outputs]
    width = max(side.shape[1] for side in numbers)
    numbers = [np.pad(side, ((0, 0), (0, width - side.shape[1]))) for side in numbers]
    runs = len(features[0])
    scores = [np.zeros(runs), np.zeros(runs)]
    for learn, judge in _folds(runs):
        places = (
            [place for place, _ in _telling(numbers[0][learn], numbers[1][learn])[: TUNING.numbers]] if width else []
        )
        shown = [np.hstack([mine, all_[:, places]]) for mine, all_ in zip(features, numbers, strict=True)]
        model = _learnt(shown[0][learn], shown[1][learn])
        for mine, side in zip(scores, shown, strict=True):
            mine[judge] = model(side[judge])
    return scores


def _padded(rows: Sequence[FloatArray]) -> FloatArray:
    """Return rows of numbers as one array, filled up with 0, and their lengths in front."""
    width = max(map(len, rows), default=0)
    table = np.zeros((len(rows), width + 1))
    for line, row in zip(table, rows, strict=True):
        line[0] = len(row)
        line[1 : 1 + len(row)] = row
    return table


def _telling(null: FloatArray, other: FloatArray) -> list[tuple[int, float]]:
    """Return the columns that tell most, best first, each with the sign that makes it high on the other side.

    A column tells by the distance of its means, in standard errors, or by how often it lies beyond all of the other
    side: a leak in one run of ten hardly moves a mean.
    """
    if not len(null) or not null.shape[1]:
        return [(0, 1.0)]
    spread = np.sqrt((null.var(axis=0) + other.var(axis=0)) / len(null)) + 1e-12 * (1.0 + np.abs(null).max(axis=0))
    moved = np.clip((other.mean(axis=0) - null.mean(axis=0)) / spread, -1e6, 1e6)
    above = np.sum(other > null.max(axis=0), axis=0) - np.sum(null > other.max(axis=0), axis=0)
    below = np.sum(other < null.min(axis=0), axis=0) - np.sum(null < other.min(axis=0), axis=0)
    beyond = np.where(np.abs(above) >= np.abs(below), above, -below)
    told = np.where(np.abs(beyond) > np.abs(moved), beyond, moved)
    order = np.argsort(-np.abs(told), kind="stable")
    return [(int(place), 1.0 if told[place] >= 0 else -1.0) for place in order]


# -- what is looked at ---------------------------------------------------------------------------------------


def _number(output: object) -> float:
    return float(len(points_of(output)))


def _counts(output: object, before: int, after: int) -> float:
    """Return how often the number of records of D' is shown, less how often that of D."""
    numbers = numbers_of(output)
    return float(np.sum(numbers == after) - np.sum(numbers == before))


def _matches(output: object, place: FloatArray) -> float:
    """Return how many coordinates of the canary appear anywhere, to six digits."""
    numbers = numbers_of(output)
    near = np.abs(numbers[None] - place[:, None]) <= 5e-7 * np.abs(place)[:, None]
    return float(near.any(axis=1).sum())


def _parts(value: object) -> list[tuple[str, Any]]:
    """Return the public parts of an output, by name."""
    if isinstance(value, Mapping):
        return [(str(key), value[key]) for key in sorted(value, key=str) if not _is_public(str(key))]
    if isinstance(value, list | tuple | set | frozenset):
        return [(str(number), item) for number, item in enumerate(value)]
    if isinstance(value, np.ndarray):
        return [(str(number), item) for number, item in enumerate(value.ravel().tolist())]
    if isinstance(value, type) or callable(value):
        return []
    shown = {**getattr(value, "__dict__", {}), **_slots(value)}
    return [(name, item) for name, item in sorted(shown.items()) if not name.startswith("_") and not _is_public(name)]


def _slots(value: object) -> dict[str, Any]:
    names = [name for base in type(value).__mro__ for name in base.__dict__.get("__slots__", ())]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _is_public(name: str) -> bool:
    return any(word in name for word in _UNREAD)


def _gather(value: object, found: list[float], depth: int) -> None:
    if len(found) >= TUNING.most_numbers or depth > TUNING.deepest or value is None:
        return
    if isinstance(value, bool | int | float | np.number | np.bool_):
        number = float(value) if not isinstance(value, int) or abs(value) < 10**300 else _FAR
        found.append(number)
    elif isinstance(value, str):
        found += [float(number) for number in _IN_TEXT.findall(value)]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        found += value.ravel()[: TUNING.most_numbers].astype(np.float64).tolist()
    else:
        for _, part in _parts(value):
            _gather(part, found, depth + 1)


def _shape(value: object, depth: int) -> str:
    name = type(value).__name__
    if isinstance(value, str | bytes):
        return f"{name} {len(value)}"
    if isinstance(value, np.ndarray):
        return f"{name} {value.dtype} {value.shape}"
    if depth > TUNING.deepest or isinstance(value, bool | int | float | np.generic) or value is None:
        return name
    parts = _parts(value)[: TUNING.most_numbers]
    return f"{name}({', '.join(f'{key}: {_shape(part, depth + 1)}' for key, part in parts)})" if parts else name


def _comparable(output: object, place: FloatArray) -> FloatArray:
    """Return the points in as many dimensions as the canary; none if they have others."""
    points = points_of(output)
    return points if points.shape[1] == len(place) else np.zeros((0, len(place)))


def _nearness(output: object, place: FloatArray) -> float:
    points = _comparable(output, place)
    distances = np.linalg.norm(points - place, axis=1)
    finite_values = distances[np.isfinite(distances)]
    return -float(finite_values.min()) if finite_values.size else -_FAR


def _shows(output: object, place: FloatArray) -> bool:
    wanted = place.tobytes()
    return any(row.tobytes() == wanted for row in np.ascontiguousarray(_comparable(output, place)))


def _density(output: object, place: FloatArray) -> float:
    """Return the density that an output gives at a place; 0 where it gives none."""
    for owner in (output, getattr(output, "density_", None)):
        for name in ("pdf", "score_samples"):
            function = getattr(owner, name, None)
            if callable(function):
                value = float(np.ravel(function(place[None]))[0])
                return value if np.isfinite(value) else 0.0
    return 0.0


def _features(output: object, looks: Sequence[Score], canary: ArrayLike | None) -> FloatArray:
    """Return numbers of one length for any output.

    They are the fixed witnesses, the distances of its points from the canary, and its points, both as they are and
    in order, since a set of centres has none; cut or filled up.
    """
    points = points_of(output)
    order = np.lexsort(points.T[::-1]) if points.size else np.arange(len(points))
    parts = [points.ravel(), points[order].ravel()]
    if canary is not None:
        place = np.atleast_1d(np.asarray(canary, dtype=np.float64)).ravel()
        parts.append(np.sort(np.linalg.norm(_comparable(output, place) - place, axis=1)))
    numbers = np.zeros((len(parts), TUNING.numbers))
    for row, part in zip(numbers, parts, strict=True):
        row[: min(TUNING.numbers, len(part))] = part[: TUNING.numbers]
    listed = np.concatenate([[look(output) for look in looks], numbers.ravel()])
    return np.asarray(np.arcsinh(np.nan_to_num(listed, nan=0.0, posinf=_FAR, neginf=-_FAR)))


def _learnt(null: FloatArray, other: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Train on both sides; with nothing to learn from, every score is 0."""
    if len(null) == 0:
        return lambda rows: np.zeros(len(rows))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=500))
    model.fit(np.concatenate([null, other]), np.repeat([0, 1], [len(null), len(other)]))
    return lambda rows: np.asarray(model.decision_function(rows), dtype=np.float64)
