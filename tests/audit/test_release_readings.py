"""One release and every reading of it: replays hold, and no reading can come near a record."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import fogline
from fogline import (
    PrivateDensity,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
)
from fogline.audit import Pair, replay
from fogline.sources.tables import Source

COLUMNS, BOUNDS = ["age", "stay"], {"age": (0, 90), "stay": (0, 30)}


def crowd(n=300):
    rng = np.random.default_rng(0)
    return np.column_stack([np.round(rng.uniform(20, 80, n), -1), np.round(rng.gamma(3.0, 2.0, n) / 2) * 2])


def released(data, **more):
    # Few values per column: a reading is replayed four times, and need not be of many leaves for that.
    return fogline.release(data, columns=COLUMNS, bounds=BOUNDS, steps=[10.0, 2.0], epsilon=1.0, **more)


def asked(shape):
    """Answers as an object that an audit can look into."""
    questions = ["count", "median stay", "P(stay > 5 | age > 50)", "correlation age stay", "mean stay by age 0:90:30"]
    shape.answers = [str(shape.ask(question)) for question in questions]
    shape.draws = shape.sample(20, random_state=0)
    shape.conditional = str(shape.given(age=(50, 90)).quantile(0.5))
    return shape


READINGS = {
    "questions, draws, conditions": asked,
    "modes": lambda shape: PrivateModes().read(shape),
    "clusters": lambda shape: PrivateModeClustering().read(shape),
    "branches": lambda shape: PrivateModalRegression().read(shape, "stay"),
    "mixture": lambda shape: PrivateGaussianMixture(n_components=2).read(shape),
    "fit": lambda shape: PrivateHellinger(family="gamma").read(shape, "stay"),
}


def read(shape, reading):
    """A reading, without the solved equations that a release keeps for the next one: no audit can look into them."""
    result = READINGS[reading](shape)
    shape._memory.clear()
    return result


@pytest.mark.parametrize("reading", READINGS)
def test_a_release_and_its_reading_are_a_function_of_the_noisy_numbers(reading):
    """Two calls of a mechanism in all: the release's. Whatever is read, the neighbour gives the same."""
    data = crowd()
    pairs = [Pair("a crowd and one more", data, np.vstack([data, [[90.0, 30.0]]]))]
    report = replay(lambda rows: read(released(rows), reading), pairs)
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {2}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_several_densities_of_one_budget(relation):
    data = pd.DataFrame(np.column_stack([crowd(), np.arange(300.0) % 7]), columns=list("abc"))
    bounds = [(0, 90), (0, 30), (0, 7)]

    def release(rows):
        return fogline.release(
            rows, columns=[["a", "b"], ["c"]], bounds=dict(zip("abc", bounds, strict=True)), epsilon=1.0,
            neighbours=relation,
        )  # fmt: skip

    one = pd.DataFrame([[90.0, 30.0, 7.0]], columns=list("abc"))
    other = pd.concat([data if relation == "add-remove" else data[1:], one], ignore_index=True)
    report = replay(release, [Pair("a crowd", data, other, neighbours=relation)])
    assert report.passed, str(report)


# -- no reading touches records -------------------------------------------------------------------------------

BLOCKED = """
import sys

class NoRecords:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("fogline.sources", "fogline.queries", "fogline.releases", "fogline.federation")):
            raise ImportError(f"a reading asked for {name}")

sys.meta_path.insert(0, NoRecords())
from fogline.density.private_density import PrivateDensity
from fogline.density.profile import Profile

shape, other = PrivateDensity.load(sys.argv[1]), PrivateDensity.load(sys.argv[1])
shape.modes(), shape.clusters(), shape.branches("stay"), shape.fit("gamma", "stay"), shape.mixture(2)
shape.sample(5), shape.compare(other), shape.card(), shape.given(age=(40, 60)).mean("stay")
for question in ("count", "median stay", "P(stay > 5 | age > 50)", "correlation age stay"):
    shape.ask(question)
profile = Profile.load(sys.argv[2])
profile.to_dict(), profile.rows(), profile.pairs
print("read")
"""


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    released(crowd()).save(folder / "visits.fog")
    fogline.profile(crowd(), bounds=[(0, 90), (0, 30)], pairs="all", epsilon=1.0).save(folder / "profile.npz")
    return folder


def test_every_reading_works_where_nothing_that_opens_records_can_be_imported(files):
    words = [sys.executable, "-c", BLOCKED, files / "visits.fog", files / "profile.npz"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "read\n"


def test_the_block_is_one(files):
    words = [sys.executable, "-c", BLOCKED + "\nimport fogline.sources.tables"]
    words += [files / "visits.fog", files / "profile.npz"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert "a reading asked for fogline.sources" in done.stderr


def test_estimators_read_without_opening_a_source(files, monkeypatch):
    def opened(self, *_):
        raise AssertionError(f"a reading opened {type(self).__name__}")

    for name in ("each_batch", "_scan", "_counted_scan"):
        monkeypatch.setattr(Source, name, opened, raising=False)
    shape = PrivateDensity.load(files / "visits.fog")
    for read in READINGS.values():
        assert read(shape) is not None
