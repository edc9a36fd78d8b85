"""Mutants: faults of the kind that other libraries have had. Each must make the audit fail."""

from __future__ import annotations

import dataclasses
import importlib
import logging
from pathlib import Path

import numpy as np
import pytest
from canaries import first_failure

from fogline import DensitySketch, PrivateModes
from fogline.audit import RecordingProvider, attack, canary_pairs, noise_fit, replay, sketch_attack
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec
from fogline.mechanisms import discrete_gaussian as gaussian
from fogline.mechanisms import randomness as _opendp
from fogline.mechanisms.randomness import SystemProvider, current_provider, use_provider
from fogline.queries import fourier_sums as histogram
from fogline.queries import fourier_sums as sensitivity
from fogline.releases import density_sketch, terms
from fogline.testing import SeededSource

BOX = [(2.0, 10.0)]
NAMES = {
    "empty and one record",
    "one record that changes",
    "corner 1",
    "missing",
    "far outside",
    "just outside",
    "opposite corners",
    "infinite below",
    "all missing, and one in the middle",
}


def chosen_pairs(relation="add-remove"):
    chosen = [pair for pair in canary_pairs(BOX, neighbours=relation, n=40, block=None) if pair.name in NAMES]
    assert len(chosen) == 8
    return chosen


class Modes(PrivateModes):
    """PrivateModes with few words; mutants override one step."""

    def __init__(self, neighbours="add-remove"):
        super().__init__(epsilon=1.0, delta=1e-5, bounds=BOX, n_modes=1, bandwidth=0.1, neighbours=neighbours)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_without_a_mutant_the_audit_passes(relation):
    report = replay(Modes(relation), chosen_pairs(relation))
    assert report.passed, str(report)


# -- faults in the release: the code is patched --------------------------------------------------------------


def half_the_sensitivity(patch):
    real = density_sketch.lattice_sensitivity
    patch.setattr(density_sketch, "lattice_sensitivity", lambda *args: real(*args) / 2)


def less_noise_than_charged(patch):
    real = gaussian.noisy_sum
    patch.setattr(gaussian, "noisy_sum", lambda exact, noise: real(exact, (0.8 * noise).astype(np.int64)))


def a_smaller_scale(patch):
    real = gaussian.fine_scale

    def fine_scale(*args):
        fine = real(*args)
        return dataclasses.replace(fine, scale=0.8 * fine.scale)

    patch.setattr(gaussian, "fine_scale", fine_scale)


def rounded_noise(patch):
    """Noise is not added as drawn: its last bits are lost."""
    real = gaussian.noisy_sum
    patch.setattr(gaussian, "noisy_sum", lambda exact, noise: real(exact, noise) // 1024 * 1024)


def without_numba(patch):
    patch.setattr(histogram, "_counter_known", True)
    patch.setattr(histogram, "_counter", None)


def no_clip(patch):
    """Records outside the box are counted, wherever they fall."""
    without_numba(patch)

    def cell_keys(rows, spec):
        with np.errstate(all="ignore"):
            return np.floor((rows[:, 0] - spec.lower[0]) / spec.cell_widths[0]).astype(np.int64)

    patch.setattr(histogram, "cell_keys", cell_keys)


def missing_passes_the_box(patch):
    """The test is written `x < low or x > high`, which is false for NaN."""
    without_numba(patch)

    def cell_keys(rows, spec):
        x = rows[:, 0]
        with np.errstate(all="ignore"):
            outside = (x < spec.lower[0]) | (x > spec.upper[0])
            key = np.floor((np.where(outside, 0, x) - spec.lower[0]) / spec.cell_widths[0]).astype(np.int64)
        return np.where(outside, spec.cells[0], np.minimum(key, spec.cells[0] - 1))

    patch.setattr(histogram, "cell_keys", cell_keys)


def lower_bound_twice(patch):
    """The distance of opposite corners is taken as low - low: replacing a record moves nothing."""
    patch.setattr(sensitivity, "least_kernel", lambda spec: 1.0)


def counted_twice(patch):
    real = DensitySketch.update
    patch.setattr(DensitySketch, "update", lambda self, X: real(real(self, X), X))


def double_spend(patch):
    """Noise is added twice and the better-looking answer is kept; one budget is stated."""
    real = terms.add_rounded_gaussian

    def add_rounded_gaussian(query, **options):
        return max((real(query, **options) for _ in range(2)), key=lambda answer: answer.values[0])

    patch.setattr(terms, "add_rounded_gaussian", add_rounded_gaussian)


def raw_n(patch):
    """Normalise by the number of records instead of the noisy count."""
    feed_module = importlib.import_module("fogline.releases.passes")
    real = feed_module.release_density

    def release_density(spec, terms, read, *rest, **options):
        counted = []

        def kept():
            counted.append(read())
            return counted[0]

        density = real(spec, terms, kept, *rest, **options)
        n = float(counted[0].sum())
        density.__class__ = type("PrivateDensity", (PrivateDensity,), {"count": property(lambda _: max(n, 1.0))})
        return density

    patch.setattr(feed_module, "release_density", release_density)


def noise_by_n(patch):
    """The noise scale sees n: fewer records, more noise."""
    real = terms.add_rounded_gaussian

    def add_rounded_gaussian(query, *, rho, **options):
        return real(query, rho=rho * min(1.0, (1 + query()[0] / 2**22) / 10), **options)

    patch.setattr(terms, "add_rounded_gaussian", add_rounded_gaussian)


def certified_whatever_the_noise(patch):
    patch.setattr(terms, "provider_reason", lambda: "")


PATCHES = [
    (half_the_sensitivity, "declared sensitivity apart"),
    (less_noise_than_charged, "not the exact value plus the noise"),
    (a_smaller_scale, "raised RuntimeError"),
    (rounded_noise, "not the exact value plus the noise"),
    (no_clip, "exception raised differs"),
    (missing_passes_the_box, "exception raised differs"),
    (lower_bound_twice, "declared sensitivity apart"),
    (counted_twice, "declared sensitivity apart"),
    (double_spend, "2 times the rho"),
    (raw_n, "result"),
    (noise_by_n, "call differs in"),
    (certified_whatever_the_noise, "certified although"),
]


@pytest.mark.parametrize(("mutate", "words"), PATCHES, ids=lambda value: getattr(value, "__name__", ""))
def test_patched_code_fails(mutate, words, monkeypatch):
    relation = "replace" if mutate is lower_bound_twice else "add-remove"
    mutate(monkeypatch)
    first_failure(Modes(relation), chosen_pairs(relation), words)


# -- faults in an estimator: what it keeps, says and asks ----------------------------------------------------


class DataBounds(Modes):
    def fit(self, X, y=None):
        finite = X[np.isfinite(X)]
        self.bounds = [(float(finite.min(initial=2.0)), float(finite.max(initial=10.0)))]
        return super().fit(X)


class DataBandwidth(Modes):
    def fit(self, X, y=None):
        self.bandwidth = 0.05 + 0.1 * float(np.nan_to_num(np.nanstd(np.append(X, 0.0)), posinf=1)) % 0.1
        return super().fit(X)


class DataShapes(Modes):
    """The number of calls depends on the data."""

    def fit(self, X, y=None):
        super().fit(X)
        if len(X) > 40:
            DensitySketch(BOX).update(X).release(epsilon=0.01, delta=1e-5)
        return self


class TenthOfARow(Modes):
    """In one fit of ten a raw row comes out as the mode."""

    def fit(self, X, y=None):
        super().fit(X)
        if current_provider().generator("leak").random() < 0.1:
            self.modes_ = np.append(self.modes_, X[-1:])
        return self


class ExactCount(Modes):
    def fit(self, X, y=None):
        super().fit(X)
        self.n_seen_ = len(X)
        return self


class Labels(Modes):
    def fit(self, X, y=None):
        super().fit(X)
        self.labels_ = (X[:, 0] > 6).astype(int)
        return self


class PrivateAttribute(Modes):
    """A name that begins with an underscore hides nothing."""

    def fit(self, X, y=None):
        super().fit(X)
        self.density_._memory["records"] = X
        return self


class Closure(Modes):
    def fit(self, X, y=None):
        super().fit(X)
        self.score_ = lambda: X.mean()
        return self


class DebugLine(Modes):
    def fit(self, X, y=None):
        logging.getLogger("fogline.test").debug("fitting %d records", len(X))
        return super().fit(X)


class Warns(Modes):
    def fit(self, X, y=None):
        if not np.isfinite(X).all():
            import warnings

            warnings.warn("some values are missing", stacklevel=2)
        return super().fit(X)


class Prints(Modes):
    def fit(self, X, y=None):
        print(f"{len(X)} rows")
        return super().fit(X)


class WritesAFile(Modes):
    def fit(self, X, y=None):
        Path("cache.npy").write_bytes(X.tobytes())
        return super().fit(X)


class TellingError(Modes):
    def fit(self, X, y=None):
        if len(X) == 0:
            raise ValueError("need at least one record")
        return super().fit(X)


class TellingCause(Modes):
    """The message is constant; the error behind it quotes the record."""

    def fit(self, X, y=None):
        try:
            float(f"value {np.append(X, 0.0)[-2:]}")
        except ValueError:
            raise RuntimeError("the fit failed") from None
        return self


class OwnNoise(Modes):
    """Noise that did not come through the door."""

    def fit(self, X, y=None):
        super().fit(X)
        self.heights_ = self.heights_ + np.random.default_rng().normal(size=1)
        return self


ESTIMATORS = [
    (DataBounds, "differs"),
    (DataBandwidth, "call differs in"),
    (DataShapes, "did not ask for"),
    (TenthOfARow, "result.modes_ differs"),
    (ExactCount, "result.n_seen_ differs"),
    (Labels, "result.labels_ differs"),
    (PrivateAttribute, "result.density_._memory"),
    (Closure, "__closure__"),
    (DebugLine, "log records"),
    (Warns, "warnings"),
    (Prints, "printed text"),
    (WritesAFile, "files written"),
    (TellingError, "exception raised differs"),
    (TellingCause, "message or cause"),
    (OwnNoise, "result.heights_ differs"),
]


@pytest.mark.parametrize(("mutant", "words"), ESTIMATORS, ids=lambda value: getattr(value, "__name__", ""))
def test_leaky_estimators_fail(mutant, words):
    if mutant is not TenthOfARow:
        first_failure(mutant(), chosen_pairs(), words)
        return
    pairs = canary_pairs(BOX, neighbours="add-remove", n=40, block=None)
    report = replay(mutant(), pairs, until_failure=True)
    assert not report.passed
    assert words in str(report), str(report)


# -- faults that only the noise or an attack shows -----------------------------------------------------------


def recorded_noise(runs):
    """Residuals of real releases on the system's noise, and the scale they are charged for."""
    provider = RecordingProvider(SystemProvider())
    with use_provider(provider):
        for _ in range(runs):
            DensitySketch(BOX).update(np.full((5, 1), 3.0)).release(epsilon=1.0, delta=1e-5)
    noise = np.concatenate([step.answer - step.exact for step in provider.steps])
    return noise, provider.steps[0].call.event.scale


def test_the_noise_of_a_release_fits_and_a_weak_sampler_does_not(monkeypatch):
    noise, scale = recorded_noise(70)
    assert noise_fit(noise, scale=scale).passed()
    real = _opendp.draw
    monkeypatch.setattr(_opendp, "draw", lambda kind, scale, size: real(kind, 0.8 * scale, size))
    noise, scale = recorded_noise(70)
    fit = noise_fit(noise, scale=scale)
    assert not fit.passed()
    assert fit.variance_ratio == pytest.approx(0.64, rel=0.1)


@pytest.mark.parametrize("mutant", ["half the sensitivity", "0.8 of the noise"])
def test_the_attack_sees_too_little_noise(mutant, monkeypatch):
    if mutant == "half the sensitivity":
        half_the_sensitivity(monkeypatch)
    else:
        real = SeededSource.gaussian
        monkeypatch.setattr(SeededSource, "gaussian", lambda self, scale, size: real(self, 0.8 * scale, size))
    spec = SketchSpec.plan(BOX, [0.05])
    crowd = np.full((30, 1), 5.0)
    report = sketch_attack(
        spec,
        crowd,
        np.append(crowd, [[9.0]], axis=0),
        epsilon=1.0,
        delta=1e-5,
        runs=100_000,
        confidence=0.999,
    )
    assert report.broken
    assert report.mu_lower > report.mu
    assert "FALSE" in report.verdict


def test_the_attack_sees_a_raw_row_in_one_run_of_ten():
    """Averages hardly move; the tails do. Of 1600 runs half are counted, with a quarter of the error."""
    rng = np.random.default_rng(0)

    def release(record):
        return record if rng.random() < 0.1 else 5 + 2 * rng.standard_normal()

    report = attack(release, 5.0, 60.0, claim=0.0306, delta=1e-5, score=float, runs=1600, confidence=0.999)
    assert report.broken
    tail = next(witness for witness in report.witnesses if witness.name == "upper tail")
    assert tail.epsilon_lower > report.epsilon
    # An attacker who only counts right guesses would have called it private.
    middle = attack(
        release, 5.0, 60.0, claim=0.0306, delta=1e-5, score=float, runs=1600, threshold=5.0, confidence=0.999
    )
    assert not middle.broken
