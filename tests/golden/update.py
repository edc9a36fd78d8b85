"""Golden answers: what every certified release gives for a fixed seed, beside the version of its algorithm.

A stored answer of a ledger is kept under its algorithm's ``CODE_VERSION``. Whoever changes the *law* of an answer (what
is asked, how it is scaled, which noise it gets, how it is read) must change the version too, or a ledger would give an
old answer for a new question. `test_golden.py` fails when an answer moves and its version does not.

``python tests/golden/update.py`` writes `answers.json` anew. It refuses to overwrite an answer whose version is the old
one: change the version first. An answer that is new is added.

Released integers are exact, and kept as a digest. Other numbers (readings, scales, draws) pass through floating point
and are kept with six digits, to be compared with a tolerance. So do the sums of a Hellinger descent: its integers are
roots and exponentials that were rounded to a lattice, and the last digit of these differs between processors.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fogline import (
    DensitySketch,
    IntegralSampler,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
    one_cluster,
    private_bounds,
    private_gaussian,
    private_pca,
    private_spherical_gaussian,
    private_strata,
    profile,
    terrific_ball,
)
from fogline.accounting.cautions import PrivacyWarning
from fogline.releases.continual import ContinualCounts
from fogline.testing import seeded_noise

ANSWERS = Path(__file__).with_name("answers.json")
SEED = 20261116
TOLERANCE = 1e-4
MOST_NUMBERS = 40
BOTH = ("add-remove", "replace")

Release = Callable[[str, Any], Any]


class Keeper:
    """Stands in for a ledger: keeps what would be stored, with the version it would be stored under."""

    id = "golden"

    def __init__(self, lane: str = "zcdp") -> None:
        self.lane, self.version, self.payload = lane, "", b""

    def on(self) -> Keeper:
        """Give the view of the only data set."""
        return self

    def ask(self, mechanism: str, *, code_version: str, release: Callable[[], bytes], **question: Any) -> Any:
        """Release at once, and keep the answer."""
        self.version, self.payload = code_version, release()
        receipt = SimpleNamespace(to_dict=dict)
        return SimpleNamespace(payload=self.payload, receipt=receipt, cached=False, version=code_version)


# -- the releases --------------------------------------------------------------------------------------------


def records(d: int, n: int = 400) -> Any:
    """Two clumps, far enough apart for everything that looks for clusters."""
    rng = np.random.default_rng(7)
    centre = np.where(rng.random((n, 1)) < 0.5, 2.0, 7.0)
    return centre + 0.3 * rng.standard_normal((n, d))


def terms(relation: str, ledger: Any, epsilon: float = 2.0) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": 1e-5, "neighbours": relation, "ledger": ledger}


def sketch(relation: str, ledger: Any) -> Any:
    return DensitySketch([(0, 10)], bandwidths=[0.1]).update(records(1)).release(**terms(relation, ledger))


def leaves(relation: str, ledger: Any) -> Any:
    made = DensitySketch([(0, 10)], features="leaves").update(records(1))
    return made.release(epsilon=2.0, neighbours=relation, ledger=ledger)


def modes(d: int) -> Release:
    return lambda relation, ledger: PrivateModes(
        bounds=[(0, 10)] * d, bandwidth=0.1 if d < 4 else 0.69, n_modes=2, **terms(relation, ledger)
    ).fit(records(d))


def regression(relation: str, ledger: Any) -> Any:
    rows = records(2)
    model = PrivateModalRegression(x_bounds=(0, 10), y_bounds=(0, 10), bandwidth=0.2, **terms(relation, ledger))
    return model.fit(rows[:, :1], rows[:, 1])


def clusters(d: int, **told: Any) -> Release:
    more: dict[str, Any] = {"bandwidth": 0.1} if d < 4 else {"refinement": 1, **told}
    return lambda relation, ledger: PrivateModeClustering(
        bounds=[(0, 10)] * d, n_clusters=2, **more, **terms(relation, ledger)
    ).fit(records(d))


def hellinger(method: str) -> Release:
    limits = {"mu": (0.0, 10.0), "sigma": (0.2, 5.0)}
    more: dict[str, Any] = {} if method == "sketch" else {"iterations": 2}
    return lambda relation, ledger: PrivateHellinger(
        family="normal", parameter_bounds=limits, bounds=[(0, 10)], method=method, **more, **terms(relation, ledger)
    ).fit(records(1))


def mixture(method: str, **more: Any) -> Release:
    ball = {"center": [5.0, 5.0], "radius": 20.0, "sigma_min": 0.1, "sigma_max": 5.0}
    asked: dict[str, Any] = {"n_components": 2, "method": method, **ball, **more}
    return lambda relation, ledger: PrivateGaussianMixture(**asked, **terms(relation, ledger, 40.0)).fit(records(2))


def located(part: Callable[..., Any], **more: Any) -> Release:
    where: dict[str, Any] = {"bounds": (0, 10)} if part is private_pca else {"center": [5.0, 5.0], "radius": 20.0}
    return lambda relation, ledger: part(records(2), **where, **more, **terms(relation, ledger, 40.0))[0]


def strata(relation: str, ledger: Any) -> Any:
    rows = records(1)
    labels = np.where(rows[:, 0] > 5, "upper", "lower")
    more: dict[str, Any] = {"categories": ["lower", "upper"], "bounds": [(0, 10)], "bandwidths": [0.1]}
    return private_strata(rows, labels, **more, **terms(relation, ledger))


def profiled(relation: str, ledger: Any) -> Any:
    table = pd.DataFrame({"age": records(1)[:, 0], "sex": ["f", "m"] * 200})
    columns: dict[str, Any] = {"bounds": {"age": (0, 10)}, "categories": {"sex": ["f", "m"]}}
    return profile(table, **columns, **terms(relation, ledger))


def continual(relation: str, ledger: Any) -> Any:
    """Three periods: what is kept is all that they released. Counts that a ledger paid for refuse seeded noise."""
    more: dict[str, Any] = {"bounds": [(0, 10)], "leaves": [16], "periods": 3, "epsilon": 2.0, "delta": 1e-5}
    ContinualCounts(ledger=ledger, **more)
    counts = ContinualCounts(**more)
    for part in np.split(records(1, 399), 3):
        released = counts.add(part).release()
    ledger.payload = released.to_bytes()
    return released.cumulative()[0].tolist()


def bounds(relation: str, ledger: Any) -> Any:
    return private_bounds(records(2), **terms(relation, ledger))


def draws(drawing: str, schedule: str) -> Release:
    learner = LogisticRegression() if schedule == "paper" else DecisionTreeClassifier(max_depth=2, random_state=0)
    more: dict[str, Any] = {"base": "uniform", "bounds": [(0, 10)], "training_draws": 100}
    return lambda relation, ledger: IntegralSampler(
        epsilon=1.0, max_samples=6, learner=learner, schedule=schedule, drawing=drawing,
        rounds=2 if schedule == "paper" else 1, ledger=ledger, **more,
    ).fit(records(1)).sample(6)  # fmt: skip


RELEASES: dict[str, tuple[tuple[str, ...], Release]] = {
    "DensitySketch": (BOTH, sketch),
    "DensitySketch, leaves": (BOTH, leaves),
    "PrivateModes, grid": (BOTH, modes(1)),
    "PrivateModes, random features": (BOTH, modes(5)),
    "PrivateModalRegression": (BOTH, regression),
    "PrivateModeClustering, grid": (BOTH, clusters(2)),
    "PrivateModeClustering, staged": (BOTH, clusters(5)),
    "PrivateModeClustering, staged for a number": (("add-remove",), clusters(5, expect_records=200)),
    "PrivateHellinger, sketch": (BOTH, hellinger("sketch")),
    "PrivateHellinger, gradient": (("replace",), hellinger("gradient")),
    "PrivateHellinger, newton": (("replace",), hellinger("newton")),
    "PrivateGaussianMixture, sketch": (BOTH, mixture("sketch", steps=2)),
    "PrivateGaussianMixture, sketch for a number": (
        ("add-remove",),
        mixture("sketch", steps=2, n_components=1, expect_records=200),
    ),
    "PrivateGaussianMixture, recursive": (BOTH, mixture("recursive")),
    "PrivateGaussianMixture, spherical": (BOTH, mixture("spherical")),
    "PrivateGaussianMixture, sample-aggregate": (("add-remove",), mixture("sample-aggregate", learner="spectral")),
    "one_cluster": (("add-remove",), located(one_cluster, size=150)),
    "terrific_ball": (("add-remove",), located(terrific_ball, size=150)),
    "private_gaussian": (BOTH, located(private_gaussian)),
    "private_spherical_gaussian": (BOTH, located(private_spherical_gaussian)),
    "private_pca": (BOTH, located(private_pca, components=1)),
    "private_strata": (BOTH, strata),
    "profile": (BOTH, profiled),
    "private_bounds": (BOTH, bounds),
    "ContinualCounts": (("add-remove",), continual),
    "IntegralSampler, rejection": (("any",), draws("rejection", "full")),
    "IntegralSampler, cells": (("any",), draws("cells", "full")),
    "IntegralSampler, paper": (("any",), draws("rejection", "paper")),
}
BY_THE_CURVE = (
    "DensitySketch",
    "PrivateModes, random features",
    "PrivateModeClustering, staged",
    "PrivateHellinger, newton",
    "private_strata",
    "private_bounds",
)
"""Releases that are kept twice: as the lane of zCDP pays for them, and as the Gaussian lane does, or nobody."""

THROUGH_FLOATS = ("PrivateHellinger, gradient", "PrivateHellinger, newton")
"""Releases whose integers, but for those of the first stage, are floating-point sums that were rounded."""

CURVE = ", by the curve"
CASES = {f"{name}, {relation}": (relation, release) for name, (both, release) in RELEASES.items() for relation in both}
CASES |= {
    f"{name}, {RELEASES[name][0][-1]}{CURVE}": (RELEASES[name][0][-1], RELEASES[name][1]) for name in BY_THE_CURVE
}


# -- what is kept of an answer -------------------------------------------------------------------------------


def golden(case: str) -> dict[str, Any]:
    """Make one release and return what is kept of it."""
    relation, release = CASES[case]
    keeper = Keeper("gaussian" if case.endswith(CURVE) else "zcdp")
    with seeded_noise(SEED), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # generous budgets take few records to the later stages
        result = release(relation, keeper)
    integers, numbers = payload_parts(keeper.payload, exact=not case.startswith(THROUGH_FLOATS))
    return {
        "version": keeper.version,
        "integers": integers,
        "stored": rounded(numbers),
        "reading": rounded(list(numbers_of(result))[:MOST_NUMBERS]),
    }


def payload_parts(payload: bytes, *, exact: bool = True) -> tuple[str, list[float]]:
    """Return the digest of all released integers, and the other numbers that are stored."""
    content = np.load(io.BytesIO(payload), allow_pickle=False)
    arrays: dict[str, Any] = {"draws": content} if isinstance(content, np.ndarray) else dict(content.items())
    digest, numbers = hashlib.sha256(), list[float]()
    for name in sorted(arrays):
        array = arrays[name]
        if array.dtype.kind in "iu" and (exact or name == "stage_0"):
            digest.update(f"{name} {array.shape}".encode() + array.astype("<i8").tobytes())
        elif array.dtype.kind in "iuf":
            numbers += array.ravel().tolist()
        elif name == "header":
            header = json.loads(str(array))
            stages = header.get("stages", [["", header.get("scale", "0x0p+0")]])
            digest.update(json.dumps([stage for stage, _ in stages]).encode())
            numbers += [float.fromhex(scale) for _, scale in stages]
    return digest.hexdigest(), numbers[: 4 * MOST_NUMBERS]


def numbers_of(value: Any) -> Iterable[float]:
    """Give the public numbers of a result, in the order in which it shows them."""
    if isinstance(value, bool | str | bytes) or value is None:
        return
    if isinstance(value, int | float | np.number):
        yield float(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        yield from map(float, value.ravel())
    elif isinstance(value, list | tuple | np.ndarray):
        for item in value:
            yield from numbers_of(item)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from numbers_of(value[key])
    elif is_dataclass(value):
        for field in fields(value):
            if "guarantee" not in field.name:
                yield from numbers_of(getattr(value, field.name))
    elif hasattr(value, "pdf"):
        yield from map(float, value.pdf(np.linspace(0.5, 9.5, 10)[:, None] + np.zeros(value.spec.d)))
    else:
        shown = {
            name: item
            for name, item in getattr(value, "__dict__", {}).items()
            if name.endswith("_") and not name.startswith("_")
        }
        yield from numbers_of({name: item for name, item in shown.items() if "guarantee" not in name})


def rounded(numbers: Iterable[float]) -> list[float]:
    """Return numbers with six digits, and 0 for what is not finite."""
    return [float(f"{number:.6g}") if math.isfinite(number) else 0.0 for number in numbers]


def same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Say whether two answers are the same: integers exactly, other numbers within the tolerance."""
    if old["integers"] != new["integers"]:
        return False
    for part in ("stored", "reading"):
        if len(old[part]) != len(new[part]):
            return False
        largest = max([abs(number) for number in old[part]], default=0.0)
        if not np.allclose(old[part], new[part], rtol=TOLERANCE, atol=1e-9 * largest):
            return False
    return True


def compare(case: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> str:
    """Say in words what is wrong with a new answer, or nothing."""
    if old is None:
        return f"{case}: has no golden answer yet; run python tests/golden/update.py"
    if old["version"] != new["version"]:
        return f"{case}: its version is now {new['version']!r}; run python tests/golden/update.py"
    if same(old, new):
        return ""
    return (
        f"{case}: an algorithm's law changed and its version did not. If the change is meant, give CODE_VERSION "
        f"(now {new['version']!r}) another value and run python tests/golden/update.py; ledgers then ask anew"
    )


def update(path: Path, answers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write the answers to a file, unless one of them moved under its old version; return why not."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    refused = [
        compare(case, known[case], new)
        for case, new in answers.items()
        if case in known and known[case]["version"] == new["version"] and not same(known[case], new)
    ]
    if not refused:
        kept = {
            case: known[case] if case in known and not compare(case, known[case], new) else new
            for case, new in sorted(answers.items())
        }
        path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return refused


def main() -> int:
    refused = update(ANSWERS, {case: golden(case) for case in CASES})
    print("\n".join(["refused:", *refused]) if refused else f"{ANSWERS.name}: {len(CASES)} answers")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
