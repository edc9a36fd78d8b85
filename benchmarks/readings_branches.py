"""Whether the errors of branches, prediction sets and fits hold that are read from one release on leaves.

    python benchmarks/readings_branches.py --half judge --runs 4 --parts branches sets fits

Half of the kinds were looked at while the readings were tuned ("tune"), the other half were not ("judge"). Rows are
written as they come to ``docs/benchmarks/readings_branches.csv``; a row that is there is not made again.

Branches: share of the true conditional modes that lie in their 95% bands, at all places of the grid where the twenty-
fourth part of x around them holds at least 20 records (there a histogram of x by y would answer), and share of these
places that are answered. Sets: share of 4000 fresh responses that lie in sets of coverage 0.9, and their mean length in
parts of the range. Fits: share of 95% intervals that hold the true parameters, per parameter and in all.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fogline import DensitySketch
from fogline.density.branches.likely_sets import LikelySets
from fogline.testing import seeded_noise

OUT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "readings_branches.csv"
FIELDS = ("part", "half", "kind", "n", "epsilon", "run", "measure", "value", "count")
Array = Any


@dataclass(frozen=True)
class Joint:
    """Responses given x in 0:1, their true conditional modes, and the range of y."""

    half: str
    draw: Callable[[np.random.Generator, Array], Array]
    modes: Callable[[float], list[float]]
    bounds: tuple[float, float]


def _two(rng: np.random.Generator, x: Array) -> Array:
    low = rng.random(len(x)) < 0.4
    return np.where(low, rng.normal(2 + x, 0.5), rng.normal(6 - x, 0.6))


def _part(rng: np.random.Generator, x: Array) -> Array:
    second = (rng.random(len(x)) < 0.4) & (x > 0.5)
    return np.where(second, rng.normal(7, 0.4, len(x)), rng.gamma(4, 0.5, len(x)))


def _three(rng: np.random.Generator, x: Array) -> Array:
    which = rng.choice(3, len(x), p=[0.4, 0.35, 0.25])
    return np.choose(which, [rng.normal(10 + 5 * x, 2), rng.normal(30 - 4 * x, 3), rng.normal(50 + 6 * x**2, 2.5)])


JOINTS = {
    "gamma": Joint("tune", lambda r, x: r.gamma(3, 0.5 + x), lambda x: [2 * (0.5 + x)], (0, 20)),
    "fan": Joint("tune", lambda r, x: r.normal(3 + 4 * x, 0.3 + 1.2 * x), lambda x: [3 + 4 * x], (-5, 15)),
    "two": Joint("tune", _two, lambda x: [2 + x, 6 - x], (0, 10)),
    "sine": Joint(
        "tune",
        lambda r, x: np.sin(2 * np.pi * x) + r.normal(0, 0.25, len(x)),
        lambda x: [np.sin(2 * np.pi * x)],
        (-3, 3),
    ),
    "lognormal": Joint(
        "judge", lambda r, x: r.lognormal(0.5 + 0.5 * x, 0.5), lambda x: [np.exp(0.25 + 0.5 * x)], (0, 40)
    ),
    "wall": Joint("judge", lambda r, x: r.exponential(1 + x), lambda _: [0.0], (0, 20)),
    "upper wall": Joint("judge", lambda r, x: 10 * r.beta(5, 1, len(x)), lambda _: [10.0], (0, 10)),
    "step": Joint(
        "tune",
        lambda r, x: np.where(x < 0.5, 2, 6) + r.gumbel(0, 0.5, len(x)),
        lambda x: [2.0 if x < 0.5 else 6.0],
        (-2, 14),
    ),
    "parabola": Joint(
        "judge",
        lambda r, x: 3 + 12 * (x - 0.5) ** 2 + 0.4 * r.standard_t(4, len(x)),
        lambda x: [3 + 12 * (x - 0.5) ** 2],
        (0, 10),
    ),
    "three": Joint("judge", _three, lambda x: [10 + 5 * x, 30 - 4 * x, 50 + 6 * x**2], (0, 70)),
    "half branch": Joint("judge", _part, lambda x: [1.5, 7.0] if x > 0.5 else [1.5], (0, 12)),
}


@dataclass(frozen=True)
class Law:
    """A column of one family: its name, parameters, range and draws."""

    half: str
    family: str
    theta: tuple[float, ...]
    bounds: tuple[float, float]
    draw: Callable[[np.random.Generator, int], Array]
    steps: float | None = None


LAWS = {
    "gamma": Law("tune", "gamma", (3.0, 2.0), (0, 40), lambda r, n: r.gamma(3, 2, n)),
    "normal": Law("tune", "normal", (5.0, 2.0), (-10, 30), lambda r, n: r.normal(5, 2, n)),
    "exponential": Law("tune", "exponential", (3.0,), (0, 60), lambda r, n: r.exponential(3, n)),
    "lognormal": Law("judge", "lognormal", (1.0, 0.6), (0, 60), lambda r, n: r.lognormal(1, 0.6, n)),
    "weibull": Law("judge", "weibull", (1.5, 4.0), (0, 30), lambda r, n: 4 * r.weibull(1.5, n)),
    "zeros": Law(
        "judge",
        "zero-inflated gamma",
        (0.3, 2.0, 3.0),
        (0, 60),
        lambda r, n: np.where(r.random(n) < 0.3, 0.0, r.gamma(2, 3, n)),
    ),
    "counts": Law(
        "judge", "negative binomial", (4.0, 2.0), (0, 60), lambda r, n: r.negative_binomial(2, 1 / 3, n), steps=1.0
    ),
}
CONTAMINATIONS = ("none", "tail", "group", "lump")


def contaminated(x: Array, kind: str, share: float, rng: np.random.Generator, bounds: tuple[float, float]) -> Array:
    """Replace a share of the records."""
    out, mean, sd = x.astype(float).copy(), x.mean(), x.std()
    other = rng.random(len(x)) < share
    if kind == "tail":
        out[other] = rng.uniform(mean + 3 * sd, min(bounds[1], mean + 10 * sd), other.sum())
    elif kind == "group":
        out[other] = rng.normal(mean + 1.5 * sd, 0.5 * sd, other.sum())
    elif kind == "lump":
        out[other] = rng.normal(mean + 2.4 * sd, 0.1 * sd, other.sum())
    return out


def joint_release(kind: Joint, n: int, epsilon: float, run: int) -> tuple[Array, Any]:
    """Draw x, evenly or falling, and y; release both on leaves."""
    rng = np.random.default_rng([run, n, 5])
    x = rng.random(n) if run % 2 == 0 else rng.beta(1, 3, n)
    y = np.clip(kind.draw(rng, x), *kind.bounds)
    with seeded_noise(run + 1):
        sketch = DensitySketch([(0, 1), kind.bounds], features="leaves").update(np.column_stack([x, y]))
        return x, sketch.release(epsilon=epsilon)


def branch_rows(kind: Joint, x: Array, density: Any) -> Iterator[tuple[str, float, int]]:
    """Coverage, answers, false modes and widths of one release."""
    found = density.branches()
    bins = np.histogram(x, bins=np.linspace(0, 1, 25))[0]
    covered, answered, false, half = [], [], [], []
    for i, place in enumerate(found.axes[0].tolist()):
        if bins[min(int(24 * place), 23)] < 20:
            continue
        here = np.flatnonzero(found.place == i).tolist()
        used = set()
        for mode in kind.modes(place):
            near = min(here, key=lambda k: abs(found.positions[k] - mode), default=None)
            close = near is not None and abs(found.positions[near] - mode) < 0.15 * (kind.bounds[1] - kind.bounds[0])
            answered.append(close)
            if close:
                used.add(near)
                covered.append(found.low[near] <= mode <= found.high[near])
                half.append((found.high[near] - found.low[near]) / 2)
        false.append(len(set(here) - used))
    yield "covered", float(np.mean(covered)) if covered else np.nan, len(covered)
    yield "answered", float(np.mean(answered)), len(answered)
    yield "false modes per place", float(np.mean(false)), len(false)
    yield "half width", float(np.mean(half)) if half else np.nan, len(half)


def set_rows(kind: Joint, density: Any, run: int) -> Iterator[tuple[str, float, int]]:
    """Coverage and length of prediction sets on fresh responses."""
    sets = LikelySets(density.posterior, None, 0.9)
    grid = np.linspace(0, 1, 101)
    found = sets.at(grid[:, None])
    rng = np.random.default_rng([run, 99])
    x = rng.random(4000) if run % 2 == 0 else rng.beta(1, 3, 4000)
    y = np.clip(kind.draw(rng, x), *kind.bounds)
    inside = [
        bool(np.any((found[i][:, 0] <= v) & (v <= found[i][:, 1])))
        for i, v in zip(np.round(100 * x).astype(int).tolist(), y.tolist(), strict=True)
    ]
    yield "covered", float(np.mean(inside)), len(inside)
    lengths = [float((part[:, 1] - part[:, 0]).sum()) for part in found]
    yield "length", float(np.mean(lengths)) / (kind.bounds[1] - kind.bounds[0]), len(lengths)
    yield "pieces", float(np.mean([len(part) for part in found])), len(found)


def fit_rows(law: Law, contamination: str, n: int, epsilon: float, run: int) -> Iterator[tuple[str, float, int]]:
    """Coverage of intervals of one fit."""
    rng = np.random.default_rng([run, n, 77])
    x = law.draw(rng, n)
    x = contaminated(x, contamination, 0.1, rng, law.bounds) if contamination != "none" else x
    steps = {} if law.steps is None else {"steps": law.steps}
    with seeded_noise(run + 1):
        sketch = DensitySketch([law.bounds], features="leaves", **steps).update(np.asarray(x, dtype=float)[:, None])
        density = sketch.release(epsilon=epsilon)
    fit = density.fit(law.family)
    for name, ends in (("covered", fit.intervals), ("covered, robust", fit.robust_intervals)):
        inside = [low <= value <= high for value, (low, high) in zip(law.theta, ends.values(), strict=True)]
        yield name, float(np.mean(inside)), len(inside)
    yield "holds", float(fit.assumption.holds), 1
    yield "declared", float("no promise" in str(fit.assumption) or not fit.assumption.holds), 1
    yield "explained", fit.share, 1


def todo(
    args: argparse.Namespace,
) -> Iterator[tuple[tuple[str, ...], Callable[[], list[tuple[str, tuple[str, float, int]]]]]]:
    """Cells of the study and what makes their rows."""
    for run in range(args.runs):
        for n in args.n:
            for name, kind in JOINTS.items():
                parts = [part for part in ("branches", "sets") if part in args.parts]
                if kind.half != args.half or not parts:
                    continue

                def joint(kind: Joint = kind, n: int = n, run: int = run, parts: list[str] = parts) -> Any:
                    x, density = joint_release(kind, n, args.epsilon, run)
                    made = [("branches", row) for row in branch_rows(kind, x, density)] if "branches" in parts else []
                    return made + ([("sets", row) for row in set_rows(kind, density, run)] if "sets" in parts else [])

                yield (parts[0], kind.half, name, str(n), str(args.epsilon), str(run)), joint
            for name, law in LAWS.items():
                for contamination in CONTAMINATIONS if "fits" in args.parts and law.half == args.half else ():
                    if contamination != "none" and law.steps is not None:
                        continue  # these would not lie on the lattice

                    def fits(law: Law = law, c: str = contamination, n: int = n, run: int = run) -> Any:
                        return [("fits", row) for row in fit_rows(law, c, n, args.epsilon, run)]

                    yield ("fits", law.half, f"{name}, {contamination}", str(n), str(args.epsilon), str(run)), fits


def main() -> None:
    """Make the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("tune", "judge"), default="judge")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--n", type=int, nargs="+", default=[20_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--parts", nargs="+", default=["branches", "sets", "fits"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    there = set()
    if OUT.exists():
        with OUT.open(newline="") as file:
            there = {tuple(row[name] for name in FIELDS[:6]) for row in csv.DictReader(file)}
    with OUT.open("a", newline="") as file:
        writer = csv.writer(file)
        if file.tell() == 0:
            writer.writerow(FIELDS)
        for key, make in todo(args):
            if key in there:
                continue
            for part, (measure, value, count) in make():
                writer.writerow([part, *key[1:], measure, f"{value:.4f}", count])
            file.flush()


if __name__ == "__main__":
    main()
