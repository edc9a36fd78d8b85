"""Spark Connect, by Sail's server in this process: the integers of numpy, with and without a unit.

Sail takes other versions of the client than Spark's own, so it has an environment of its own: ``make test-connect``.
"""

import numpy as np
import pytest
from optional_packages import optional

from fogline import DensitySketch, PrivateModes
from fogline.density.random_spec import plan_spec
from fogline.sources.contributions import ContributionBound
from fogline.sources.joint_pass import JointPass
from fogline.sources.registry import table

pysail = pytest.importorskip("pysail")
pd = optional("pandas")

BOUND = ContributionBound(2, (5, 6))
LINE, SQUARE = (plan_spec([(0, 10)] * d, "auto", None) for d in (1, 2))
RANDOM = plan_spec([(0, 10)] * 2, "auto", None, features=16)
pytestmark = pytest.mark.filterwarnings("ignore")  # of the client: versions of other packages


@pytest.fixture(scope="module")
def session():
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(port=0)
    server.start(background=True)
    session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    yield session
    session.stop()
    server.stop()


def visits():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 11, (400, 2))
    rows[::7] = np.nan
    return pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "who": rng.integers(0, 60, 400)})


def same(mine, theirs):
    return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("spec", [SQUARE, RANDOM], ids=["grid", "random"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_states_are_those_of_numpy(session, spec, partitions):
    frame = visits()
    remote = session.createDataFrame(frame).repartition(partitions)
    wanted = DensitySketch.of(spec).update(frame[["a", "b"]].to_numpy()).state()
    assert same(table(remote, ["a", "b"]).state(spec), wanted)


@pytest.mark.parametrize("spec", [SQUARE, RANDOM], ids=["grid", "random"])
def test_the_same_records_of_each_person_count(session, spec):
    frame = visits()
    here, there = (table(each, ["a", "b"], unit="who") for each in (frame, session.createDataFrame(frame)))
    assert same(there._bounded(BOUND).state(spec), here._bounded(BOUND).state(spec))


@pytest.mark.parametrize("unit", [None, "who"])
def test_several_densities_in_one_job(session, unit):
    frame = visits()
    tables = []
    for source in (frame, session.createDataFrame(frame)):
        one = JointPass(table(source, ["a", "b"], unit=unit), (LINE, SQUARE), (["b"], ["a", "b"]), 2)
        one._bound = None if unit is None else BOUND
        tables.append([one.table(k) for k in range(2)])
    assert same(*tables)
    assert tables[0][1].sum() > 0


def test_a_fit(session):
    found = PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(0, 10)]).fit(session.createDataFrame(visits()[["a"]]))
    assert found.guarantee_.certified
