r"""Scores that need no knowledge of the algorithm: what an attacker would look at first.

Four *fixed* witnesses look for one record, the canary, in whatever was published: the distance of the nearest
output to it, whether it appears bit for bit, how many outputs there are, and the density published at its place.
A *trained* one learns from half of the runs which outputs follow from which data set.

A fixed score is turned around where the first half of the runs shows more that way. All that is
learnt is learnt on the first half, so that the second half, on which events are counted, is fresh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["canary_of", "fixed_scores", "points_of", "trained_scores"]

FloatArray = NDArray[np.float64]
Score = Callable[[Any], float]

_POINTS = ("modes_", "cluster_centers_", "means_", "params_", "modes", "centers", "params", "values")
_FAR = 1e300
_NUMBERS = 24


def points_of(output: Any) -> FloatArray:
    """Return the points that an output shows, one a row: its modes, centres or parameters, or the output itself.

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


def canary_of(D: Any, D_prime: Any) -> FloatArray | None:
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
    if before.ndim not in (1, 2) or after.ndim != before.ndim:
        return None
    first, second = (array.reshape(len(array), -1) for array in (before, after))
    for mine, other in ((second, first), (first, second)):
        known = Counter(row.tobytes() for row in other)
        for row in mine:
            known[row.tobytes()] -= 1
            if known[row.tobytes()] < 0:
                return np.array(row)
    return None


def fixed_scores(canary: ArrayLike | None) -> dict[str, Score]:
    """Return the fixed witnesses by name; without a canary only the number of outputs is left.

    Examples
    --------
    >>> scores = fixed_scores([3.0, 4.0])
    >>> {name: score([[0.0, 0.0], [9.0, 9.0]]) for name, score in scores.items()}
    {'nearest output': -5.0, 'exact match': 0.0, 'number of outputs': 2.0, 'density at the canary': 0.0}
    """
    if canary is None:
        return {"number of outputs": _number}
    place = np.atleast_1d(np.asarray(canary, dtype=np.float64)).ravel()
    return {
        "nearest output": lambda output: _nearness(output, place),
        "exact match": lambda output: float(_shows(output, place)),
        "number of outputs": _number,
        "density at the canary": lambda output: _density(output, place),
    }


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
    runs = len(features[0])
    quarter, half = runs // 4, runs // 2
    scores = [np.zeros(runs), np.zeros(runs)]
    for learn, judge in (
        (slice(0, quarter), slice(quarter, half)),
        (slice(quarter, half), slice(0, quarter)),
        (slice(0, half), slice(half, runs)),
    ):
        if judge.start == judge.stop:
            continue
        model = _learnt(features[0][learn], features[1][learn])
        for mine, side in zip(scores, features, strict=True):
            mine[judge] = model(side[judge])
    return scores


# -- what is looked at ---------------------------------------------------------------------------------------


def _number(output: Any) -> float:
    return float(len(points_of(output)))


def _comparable(output: Any, place: FloatArray) -> FloatArray:
    """Return the points in as many dimensions as the canary; none if they have others."""
    points = points_of(output)
    return points if points.shape[1] == len(place) else np.zeros((0, len(place)))


def _nearness(output: Any, place: FloatArray) -> float:
    points = _comparable(output, place)
    distances = np.linalg.norm(points - place, axis=1)
    finite = distances[np.isfinite(distances)]
    return -float(finite.min()) if finite.size else -_FAR


def _shows(output: Any, place: FloatArray) -> bool:
    wanted = place.tobytes()
    return any(row.tobytes() == wanted for row in np.ascontiguousarray(_comparable(output, place)))


def _density(output: Any, place: FloatArray) -> float:
    """Return the density that an output gives at a place; 0 where it gives none."""
    for owner in (output, getattr(output, "density_", None)):
        for name in ("pdf", "score_samples"):
            function = getattr(owner, name, None)
            if callable(function):
                value = float(np.ravel(function(place[None]))[0])
                return value if np.isfinite(value) else 0.0
    return 0.0


def _features(output: Any, looks: Sequence[Score], canary: ArrayLike | None) -> FloatArray:
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
    numbers = np.zeros((len(parts), _NUMBERS))
    for row, part in zip(numbers, parts, strict=True):
        row[: min(_NUMBERS, len(part))] = part[:_NUMBERS]
    listed = np.concatenate([[look(output) for look in looks], numbers.ravel()])
    return np.asarray(np.arcsinh(np.nan_to_num(listed, nan=0.0, posinf=_FAR, neginf=-_FAR)))


def _learnt(null: FloatArray, other: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Train on both sides; with nothing to learn from, every score is 0."""
    if len(null) == 0:
        return lambda rows: np.zeros(len(rows))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=500))
    model.fit(np.concatenate([null, other]), np.repeat([0, 1], [len(null), len(other)]))
    return lambda rows: np.asarray(model.decision_function(rows), dtype=np.float64)
