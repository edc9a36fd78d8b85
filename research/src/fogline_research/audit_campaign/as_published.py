"""Attacks that must succeed: on the papers' algorithms, and for comparison on another library's.

An audit that breaks nothing could be blind. Here it is turned on algorithms whose privacy argument has a gap
(``docs/gaps.md``), and as a black box on diffprivlib's k-means, which runs in an environment of its own.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from fogline.accounting.guarantee import Guarantee
from fogline.audit.attack import AttackReport, attack
from fogline.audit.scores import fixed_scores
from fogline.datasets.simulated import gaussian_mixture4
from fogline_research.as_published import DPGramsResult, dp_grams, dp_grams_c, dp_pms, mean_shift, pgd, pnr, psge
from fogline_research.audit_campaign.lines import CONFIDENCE, OUTLIER, Line

__all__ = [
    "check_diffprivlib",
    "check_published",
    "check_published_clusters",
    "check_published_fits",
    "check_published_mixtures",
    "check_published_regression",
]

_SCRIPT = Path(__file__).parents[4] / "benchmarks" / "diffprivlib_kmeans.py"
_MOST_SECONDS = 300


def check_published(seed: int, short: bool) -> Iterator[Line]:
    """Break the papers' algorithms: DP-GRAMS, then what is built on it."""
    yield from _check_grams(seed, short)
    yield from check_published_clusters(seed, short)
    yield from check_published_regression(seed, short)
    yield from check_published_fits(seed, short)
    yield from check_published_mixtures(seed, short)


def _check_grams(seed: int, short: bool) -> Iterator[Line]:
    """Break DP-GRAMS by an outlier among its starts, by its denominator, and by its vanishing clip."""
    rng = np.random.default_rng(seed)
    plain = gaussian_mixture4(300, random_state=0).X
    outlier = _replaced(plain, OUTLIER)
    all_start = {"initial_fraction": 1.0}
    for name, options, runs in (("all records start", all_start, 60 if short else 150), ("defaults", {}, 250)):
        release = _grams(rng, **options)
        report = _fixed_event(release, plain, outlier, _near_outlier, runs)
        yield _broken(f"dp_grams, {name}: an outlier drawn as a start is a mode (gap 1)", report)
    flat = np.random.default_rng(0).normal(scale=0.1, size=(2000, 2))
    release = _grams(rng, bandwidth=1.0, starts=[[8.0, 0.0]], step_size=1.0)
    report = _fixed_event(release, flat, _replaced(flat, [8.0, 0.0]), _far, 200)
    yield _broken("dp_grams, public start: one record in the denominator stops the ascent (gap 2)", report)
    report = _fixed_event(
        _grams(rng),
        plain,
        _replaced(plain, [1e6, 0.0]),
        lambda found: float(len(found.modes) < 4),
        60 if short else 150,
    )
    yield _broken("dp_grams, defaults: one record sets the bandwidth, all modes become one (gap 3)", report)
    wide = np.random.default_rng(0).normal(scale=3.0, size=(200, 50))
    canary = np.full(50, 4.0)
    release = _grams(rng, bandwidth=5.0, initial_fraction=1.0)
    shown = fixed_scores(canary)["exact match"]
    report = _fixed_event(
        release, wide, _replaced(wide, canary), lambda result: shown(result.raw_modes), 40 if short else 120
    )
    yield _broken("dp_grams, d = 50, h = 5: raw records come out bit for bit (gap 2)", report)


def check_published_clusters(seed: int, short: bool) -> Iterator[Line]:
    """Break DP-GRAMS-C by its starts, by refinement on records, by its labels, and by a clip of h^(1-d) at d = 64."""
    rng = np.random.default_rng([seed, 1])
    runs = 30 if short else 150
    plain = gaussian_mixture4(150, random_state=0).X
    odd = _replaced(plain, OUTLIER)
    release = _clusters(rng, 1.0, refine_on="records")
    report = _fixed_event(release, plain, odd, lambda found: _near(found.centers, OUTLIER, 3.0), runs)
    yield _broken("dp_grams_c, refined on records: an outlier is a cluster (gaps 1 and 4)", report)

    corner = int(np.argmin(np.linalg.norm(plain[1:] - 3.0, axis=1))) + 1
    moved, kept = _replaced(plain, [3.0, 3.0]), _replaced(plain, [-3.0, -3.0])
    release = _clusters(rng, 0.1, n_clusters=4, bandwidth=1.0, step_size=0.02)
    event = lambda found: float(found.labels[0] == found.labels[corner])  # noqa: E731
    yield _broken(
        "dp_grams_c, k = 4: a label tells its record (gap 4)", _fixed_event(release, kept, moved, event, runs, 0.1)
    )

    ball = np.random.default_rng(0).normal(size=(100, 2))
    other = _replaced(ball, [1.5, 1.5])
    ends = [mean_shift(X, bandwidth=1.0, n_modes=1, n_steps=400).modes[0] for X in (ball, other)]
    release = _clusters(
        rng,
        0.1,
        bandwidth=1.0,
        initial_fraction=0.1,
        n_clusters=1,
        n_refinements=200,
        refine_on="records",
        refine_bandwidth=1.0,
    )
    event = lambda found: float(_gap(found, ends[1]) < _gap(found, ends[0]))  # noqa: E731
    report = _fixed_event(release, ball, other, event, runs, 0.1)
    yield _broken("dp_grams_c, k = 1, refined on records: mean shift wipes the noise out (gap 4)", report)

    digits = load_digits().data[:60]
    canary = 16.0 - digits[0]
    release = _clusters(rng, 0.1)
    event = lambda found: _near(np.rint(found.centers), canary, 0.5)  # noqa: E731
    report = _fixed_event(release, digits, _replaced(digits, canary), event, runs, 0.1)
    yield _broken("dp_grams_c, Digits, d = 64: raw records are the centres (gaps 2 and 4)", report)


def check_published_regression(seed: int, short: bool) -> Iterator[Line]:
    """Break DP-PMS by its raw starts and, from a public start, by its division by raw weights."""
    rng = np.random.default_rng([seed, 2])
    draw = np.random.default_rng(0)
    plain = np.column_stack([draw.uniform(size=300), draw.integers(1, 4, 300) + draw.normal(scale=0.2, size=300)])
    odd = _replaced(plain, [0.5, 30.0])
    settings: tuple[tuple[str, dict[str, Any]], ...] = (
        ("defaults: an outlier's response is published", {}),
        ("public mesh: one record's weight holds the estimate", {"mesh": [[0.5, 30.0]]}),
    )
    for name, options in settings:
        for epsilon in (0.1, 1.0):
            release = _regression(rng, epsilon, options)
            event = lambda found: float((np.abs(found.branches - 30.0) < 3.0).any())  # noqa: E731
            report = _fixed_event(release, plain, odd, event, 30 if short else 150, epsilon)
            yield _broken(f"dp_pms, {name} (gap 5)", report)


def check_published_fits(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Break PGD and PNR by their quadrature, whose grid ends where the records end: one of them empties it."""
    rng = np.random.default_rng([seed, 3])
    plain = np.random.default_rng(0).normal(5.0, 2.0, size=20_000)
    odd = _replaced(plain, 1e6)
    methods: tuple[tuple[str, Callable[..., Any], list[float]], ...] = (
        ("pgd", pgd, [2, 1]),
        # With the guard of the printed tables: as printed, it seldom arrives, whatever the records are.
        ("pnr", partial(pnr, floor=0.2), [3, 1]),
    )
    for name, method, start in methods:
        # 0.02-HDP by Gaussian noise is (1.17, 1e-5)-DP. Without the far record the fit arrives; with it, it wanders.
        release = lambda x, method=method, start=start: method(x, start=start, hdp=0.02, random_state=rng)  # noqa: E731
        event = lambda found: float(abs(found.params["mu"] - 5.0) < 0.5)  # noqa: E731
        report = _fixed_event(release, odd, plain, event, 150, 1.17)
        yield _broken(f"{name}, 0.02-HDP: one record stretches the grid until the others fall through (gap 6)", report)


def check_published_mixtures(seed: int, short: bool) -> Iterator[Line]:
    """Break PSGE by a sum that is not centred, and DP-GRAMS by two trajectories from one public place."""
    rng = np.random.default_rng([seed, 4])
    far, crowd = np.array([1e6, 0.0]), np.zeros((40, 2))
    release = lambda X: psge(X, center=far, radius=1.0, epsilon=1.0, delta=1e-5, random_state=rng)  # noqa: E731
    event = lambda found: float(np.linalg.norm(found.mean) > 1e4)  # noqa: E731
    report = _fixed_event(release, crowd, _replaced(crowd, far), event, 60 if short else 150)
    yield _broken("psge: the mean of a ball far out tells whether a record is in it", report)
    equal = np.zeros((300, 2))
    options: dict[str, Any] = {"bandwidth": 1.0, "starts": [[0.0, 0.0]] * 2}
    differ = lambda found: float(np.abs(np.diff(found.raw_modes, axis=0)).max() > 1e-12)  # noqa: E731
    report = _fixed_event(_grams(rng, **options), equal, _replaced(equal, [1.0, 0.0]), differ, 60 if short else 150)
    yield _broken("dp_grams, two equal public starts: their noise is the same, their batches are not", report)


def _clusters(rng: np.random.Generator, epsilon: float, **options: Any) -> Callable[[Any], Any]:
    return lambda X: dp_grams_c(X, epsilon=epsilon, delta=1e-5, **options, random_state=rng)


def _regression(rng: np.random.Generator, epsilon: float, options: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda Z: dp_pms(Z[:, 0], Z[:, 1], epsilon=epsilon, delta=1e-5, **options, random_state=rng)


def _near(points: Any, record: Any, distance: float) -> float:
    return float((np.linalg.norm(points - record, axis=1) < distance).any())


def _gap(found: Any, end: Any) -> float:
    return float(np.linalg.norm(found.centers[0] - end))


def _replaced(records: Any, record: Any) -> Any:
    other = records.copy()
    other[0] = record
    return other


def _claim(epsilon: float) -> Guarantee:
    return Guarantee.uncertified(epsilon=epsilon, delta=1e-5, reason="a claim to be attacked", neighbours="replace")


def _grams(rng: np.random.Generator, **options: Any) -> Callable[[Any], DPGramsResult]:
    return lambda X: dp_grams(X, epsilon=1.0, delta=1e-5, **options, random_state=rng)


def _near_outlier(result: DPGramsResult) -> float:
    return _near(result.modes, OUTLIER, 3.0)


def _far(result: DPGramsResult) -> float:
    return float(np.linalg.norm(result.modes[0]) > 4.0)


def _fixed_event(
    release: Callable[[Any], Any],
    D: Any,
    D_prime: Any,
    event: Callable[[Any], float],
    runs: int,
    epsilon: float = 1.0,
) -> AttackReport:
    return attack(release, D, D_prime, _claim(epsilon), score=event, threshold=0.5, runs=runs, confidence=CONFIDENCE)


def _broken(check: str, report: AttackReport) -> Line:
    best = max(report.witnesses, key=lambda witness: witness.epsilon_lower)
    seen = f"{best.name}: {best.hits_1} against {best.hits_0} of {best.runs} runs"
    found = f"epsilon at least {report.epsilon_lower:.2f} ({seen})"
    verdict = "false, as it must be" if report.broken else "NOT BROKEN: the audit lost its teeth"
    return Line(check, found, report.broken, f"epsilon {report.epsilon:g}, delta 1e-5, replace", "published", verdict)


# -- diffprivlib ---------------------------------------------------------------------------------------------


def check_diffprivlib(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Attack diffprivlib's k-means as a black box; where it cannot be installed, say so. Never a failure of ours."""
    claim = "epsilon 1"
    check = "diffprivlib KMeans"
    records = np.zeros((600, 1))
    pair = [records, np.append(records, [[1.0]], axis=0)]
    runs = 300 if short else 1500
    try:
        fitted, versions = _fits(pair, runs)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield Line(
            check, f"not run: {type(error).__name__}, it could not be installed here", True, claim, "others", "-"
        )
        return
    named = f"{check} {versions['diffprivlib']}, 1-D, k = 2, bounds (0, 1)"
    parts: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("cluster_centers_ only", lambda model: model["centres"]),
        ("labels_, as the fitted model holds it (their number)", lambda model: [model["labels"]]),
    )
    for part, shown in parts:
        sides = [iter(side) for side in fitted]

        def release(side: int, sides: Any = sides, shown: Any = shown) -> Any:
            return shown(next(sides[side]))

        stated = Guarantee.uncertified(epsilon=1.0, delta=0.0, reason="a claim to be attacked")
        report = attack(release, 0, 1, stated, canary=[1.0], runs=runs, confidence=CONFIDENCE)
        line = _broken(f"{named}: {part}", report)
        verdict = "false" if report.broken else "stands"
        yield Line(line.check, line.found, True, claim + ", add-remove", "others", verdict)


def _fits(pair: list[Any], runs: int) -> tuple[list[list[dict[str, Any]]], dict[str, str]]:
    """Fit k-means so many times on each data set, in its own environment."""
    specification = importlib.util.spec_from_file_location("diffprivlib_kmeans", _SCRIPT)
    if specification is None or specification.loader is None or not _SCRIPT.exists():
        raise OSError("the script is not beside this installation")
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    request = {"data": [side.tolist() for side in pair], "runs": runs, "epsilon": 1.0}
    request |= {"bounds": [[0.0], [1.0]], "n_clusters": 2}
    done = subprocess.run(
        [str(script.install()), str(_SCRIPT)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=True,
    )
    answer = json.loads(done.stdout)
    return answer["outputs"], answer["versions"]
