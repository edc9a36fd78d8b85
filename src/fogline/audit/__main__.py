"""The long audit: ``make audit``, or ``python -m fogline.audit [--seed S] [--quick]``.

Replays of certified estimators on canaries and random pairs, the fit of the system's noise, and attacks on
releases with noise from the operating system. The seed of the random pairs is fresh and printed, so that a
failure can be looked at again. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fogline.audit.attack import attack, sketch_attack
from fogline.audit.canaries import Pair, canary_pairs, random_pairs
from fogline.audit.doors import MechanismStep, RecordingDoor
from fogline.audit.noise_fit import noise_fit
from fogline.audit.replay import replay
from fogline.datasets import gaussian_mixture4
from fogline.estimators import PrivateModes
from fogline.mechanisms.entropy import SystemDoor, SystemSource, use_door
from fogline.sketch.density_sketch import DensitySketch
from fogline.sketch.spec import SketchSpec

RELATIONS = ("add-remove", "replace")
BOX = ((-3.0, 10.0), (0.0, 5.0))
OUTLIER = np.array([30.0, 30.0])


@dataclass(frozen=True)
class Line:
    """One line of the summary: what was checked, what was found, and whether it passed."""

    check: str
    found: str
    passed: bool


def check_replay(seed: int, quick: bool) -> Iterator[Line]:
    """Replay PrivateModes on all canaries and on random pairs; answers from the operating system.

    In two dimensions the random pairs are read at one bandwidth only, which is quicker.
    """
    total = 45 if quick else 200
    for d, relation in itertools.product((1, 2), RELATIONS):
        box = BOX[:d]
        canaries: list[Pair] = canary_pairs(box, neighbours=relation, seed=seed)
        drawn = random_pairs(box, neighbours=relation, pairs=total - len(canaries), seed=seed)
        default = PrivateModes(epsilon=1.0, delta=1e-5, bounds=box, neighbours=relation)
        quicker = PrivateModes(epsilon=1.0, delta=1e-5, bounds=box, neighbours=relation, bandwidth=0.1)
        reports = [
            replay(default, canaries, seed=None),
            replay(default if d == 1 else quicker, drawn, seed=None),
        ]
        ratio = max(report.largest_ratio for report in reports)
        failures = [failure for report in reports for failure in report.failures]
        found = "; ".join([f"{total} pairs, distance / sensitivity up to {ratio:.6f}", *failures[:3]])
        passed = all(report.passed for report in reports)
        yield Line(f"replay PrivateModes, d = {d}, {relation}", found, passed)


def check_noise(seed: int, quick: bool) -> Iterator[Line]:  # noqa: ARG001
    """Compare the noise of real releases, and of the samplers, with the exact laws."""
    door = RecordingDoor(SystemDoor())
    with use_door(door):
        for _ in range(20 if quick else 120):
            DensitySketch(BOX[:1]).update([[1.0]]).release(epsilon=1.0, delta=1e-5)
    steps = [step for step in door.steps if isinstance(step, MechanismStep)]
    noise = np.concatenate([step.answer - step.exact for step in steps])
    scale = steps[0].draws[0].scale
    fits = [("noise of releases", noise_fit(noise, scale=scale))]
    for law, width in itertools.product(("gaussian", "laplace"), (0.7, 20.0, 3000.0)):
        draws = getattr(SystemSource(), law)(width, 5_000 if quick else 60_000)
        fits.append((f"{law} noise of scale {width:g}", noise_fit(draws, law=law, scale=width)))
    for name, fit in fits:
        found = f"{fit.size} draws, p = {fit.p_value:.3g}, variance ratio {fit.variance_ratio:.4f}"
        yield Line(name, found, fit.passed())


def check_likelihood_ratio(seed: int, quick: bool) -> Iterator[Line]:
    """Attack 1-D sketches; the attack must have power and must stay below the claim."""
    spec = SketchSpec.plan([(0, 10)], [0.05])
    crowd = np.random.default_rng(seed).normal(4, 1, (100, 1))
    after = np.append(crowd, [[10.0]], axis=0)
    settings = [("add-remove", 1.0, 90_000), ("replace", 4.0, 20_000)]
    for relation, epsilon, runs in settings:
        before = crowd if relation == "add-remove" else np.append(crowd, [[0.0]], axis=0)
        report = sketch_attack(
            spec,
            before,
            after,
            epsilon=epsilon,
            delta=1e-5,
            neighbours=relation,
            runs=runs // 20 if quick else runs,
            source=SystemSource(),
            confidence=0.99,
        )
        assert report.mu is not None
        ratio = report.mu_lower / report.mu
        found = f"mu at least {report.mu_lower:.4f} of {report.mu:.4f} claimed ({ratio:.2f})"
        passed = not report.broken and (quick or ratio >= 0.8)
        yield Line(f"likelihood ratio, {relation}, epsilon = {epsilon:g}", found, passed)


def check_outlier(seed: int, quick: bool) -> Iterator[Line]:  # noqa: ARG001
    """Look for an outlier among the modes, as does the attack that breaks DP-GRAMS."""
    plain = gaussian_mixture4(300, random_state=0).X
    odd = plain.copy()
    odd[0] = OUTLIER
    for n_modes in (4, None):
        estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(-40, 40)] * 2, n_modes=n_modes, neighbours="replace")

        def near(fitted: PrivateModes) -> float:
            return float((np.linalg.norm(fitted.modes_ - OUTLIER, axis=1) < 3.0).any())

        claim = estimator.fit(plain).guarantee_
        runs = 20 if quick else 80
        report = attack(estimator.fit, plain, odd, claim=claim, score=near, threshold=0.5, runs=runs)
        hits = report.witnesses[0]
        found = f"{hits.hits_1} and {hits.hits_0} of {runs} runs; epsilon at least {report.epsilon_lower:.2f} of 1"
        yield Line(f"outlier among the modes, n_modes = {n_modes}", found, not report.broken)


CHECKS: tuple[Callable[[int, bool], Iterator[Line]], ...] = (
    check_noise,
    check_likelihood_ratio,
    check_outlier,
    check_replay,
)


def main(arguments: list[str] | None = None) -> int:
    """Run all checks, print a table and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fogline.audit", description="The long audit of fogline.")
    parser.add_argument("--seed", type=int, default=None, help="of the random pairs; fresh by default")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to try the audit itself")
    options = parser.parse_args(arguments)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"fogline audit, seed {seed}; noise from the operating system")
    failed, start = 0, time.perf_counter()
    for check in CHECKS:
        for line in check(seed, options.quick):
            failed += not line.passed
            print(f"{'ok  ' if line.passed else 'FAIL'}  {line.check:<52}  {line.found}", flush=True)
    took = f"{time.perf_counter() - start:.0f} s"
    print(f"all passed, {took}" if not failed else f"{failed} FAILED, {took}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
