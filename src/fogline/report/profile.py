"""A density along one axis: a curve with its noise, each stretch in the colour of its mode or cluster."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from fogline.report.drawing import FOG, INK, PAPER, badge, canvas, free_spot, line
from fogline.report.svg import HUES, Frame, element, mix, path, short

__all__ = ["Profile", "profile_curve"]

FloatArray = NDArray[np.float64]

RADIUS = float(np.sqrt(chi2.ppf(0.95, 1)))


@dataclass(frozen=True, eq=False)
class Profile:
    """What a curve shows: released values only.

    Attributes
    ----------
    name : str
    bounds : pair of float
        Limits of the picture.
    axis : array of shape (n,)
    values, sd : arrays of shape (n,)
        The density and its standard error.
    labels : array of int of shape (n,)
        Whose each place is; -1 for no one's.
    places, errors : arrays of shape (k,)
        Marked places and their standard errors.
    """

    name: str
    bounds: tuple[float, float]
    axis: FloatArray
    values: FloatArray
    sd: FloatArray
    labels: NDArray[np.int64]
    places: FloatArray
    errors: FloatArray


def profile_curve(profile: Profile, *, fog: tuple[FloatArray, FloatArray] | None = None) -> str:
    """Draw the curve, and the fog between two curves if there is one."""
    x, f, sd = profile.axis, profile.values, profile.sd
    shore = f if fog is None else fog[1]
    top = 1.14 * float(max((f + 2 * sd).max(), shore.max(), np.finfo(float).tiny))
    bottom = min(0.0, 1.05 * float((f - 2 * sd).min()))
    frame = Frame(78, 10, 780, 330, profile.bounds, (bottom, top))
    edge = np.concatenate([np.stack([x, f + 2 * sd], axis=1), np.stack([x, f - 2 * sd], axis=1)[::-1]])
    return canvas(
        880,
        396,
        f"Curve of the released density of {short(profile.name)}",
        frame.border("paper"),
        _areas(profile, frame),
        "" if fog is None else _fog(frame, x, *fog),
        element("path", d=path([frame.at(edge)]), fill=INK, class_="noise"),
        element("path", d=line(frame, x, f), class_="curve"),
        frame.border(),
        frame.axes((profile.name, "density")),
        _marks(profile, frame),
        class_="figure",
    )


def _areas(profile: Profile, frame: Frame) -> str:
    """Fill what lies under the curve, stretch by stretch."""
    x, f = profile.axis, profile.values
    areas = []
    for k in range(len(profile.places)):
        for run in _runs(profile.labels == k):
            under = np.stack([x[run], np.maximum(f[run], 0)], axis=1)
            ends = np.array([[x[run][-1], 0.0], [x[run][0], 0.0]])
            shape = path([frame.at(np.concatenate([under, ends]))])
            areas.append(element("path", d=shape, fill=mix(PAPER, HUES[k % len(HUES)], 0.42)))
    return "".join(areas)


def _fog(frame: Frame, x: FloatArray, base: FloatArray, shore: FloatArray) -> str:
    parts = []
    for run in _runs_of_equal(base):
        floor = np.full(len(x[run]), base[run.start])
        top = floor + (shore - base)[run]
        edge = np.concatenate([np.stack([x[run], top], axis=1), np.stack([x[run], floor], axis=1)[::-1]])
        parts.append(element("path", d=path([frame.at(edge)]), fill=FOG, class_="fog"))
        parts.append(element("path", d=line(frame, x[run], top), class_="fogline"))
    return "".join(parts)


def _runs(mask: NDArray[np.bool_]) -> list[slice]:
    """Give stretches of a mask, each one point longer than it is, so that neighbours touch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [slice(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]


def _runs_of_equal(values: FloatArray) -> list[slice]:
    cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [slice(a, b + 1) for a, b in pairwise(cuts)]


def _marks(profile: Profile, frame: Frame) -> str:
    """Draw places: a dot on the curve, a 95% whisker, a numbered badge."""
    parts: list[str] = []
    taken: list[tuple[float, ...]] = []
    for k, (place, error) in enumerate(zip(profile.places.tolist(), profile.errors.tolist(), strict=True)):
        height = float(np.interp(place, profile.axis, profile.values))
        x, y = (float(v) for v in frame.at(np.array([[place, height]]))[0])
        half = RADIUS * error * float(frame.pixels[0])
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, class_="whisker-halo"))
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, class_="whisker"))
        parts.append(element("circle", cx=x, cy=y, r=3.2, class_="dot"))
        spot = free_spot((x, y - 8), 20, taken, frame)
        taken.append(spot)
        parts.append(badge(k, spot, hue=HUES[k % len(HUES)]))
    return "".join(parts)
