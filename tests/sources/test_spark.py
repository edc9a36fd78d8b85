"""Spark: the integers of numpy for any partitioning, and no task counts twice."""

import numpy as np
import pytest

from fogline import DensitySketch, PrivateModes
from fogline.density.random_spec import plan_spec
from fogline.sources.contributions import ContributionBound
from fogline.sources.joint_pass import JointPass
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

PLANE = plan_spec([(0.0, 100.0), (-50.0, 50.0)], "auto", [None, 0.5])
LEAVES = plan_spec([(0.0, 100.0), (-50.0, 50.0)], "auto", [None, 0.25], features="leaves")
FOUR = plan_spec([(-3, 3)] * 4, "auto", None, features=32)
SPECIAL = [0.0, -0.0, 100.0, 50.0, -50.0, 1e308, np.inf, -np.inf, np.nan, 99.99999999999999]


def assert_same(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert np.array_equal(a, b)


def awkward(n=3000):
    rng = np.random.default_rng(3)
    rows = rng.normal([50, 0], [40, 30], size=(n, 2))
    where = rng.random(rows.shape) < 0.1
    rows[where] = rng.choice(SPECIAL, size=where.sum())
    return rows


@pytest.fixture(scope="module")
def visits(spark):
    """Rows, ids, and a frame of both with some cells missing."""
    rows = awkward()
    ids = np.random.default_rng(4).integers(0, 400, len(rows))
    missing = np.arange(len(rows)) % 17 == 0
    content = pa.table(
        {
            "person_id": pa.array(ids, mask=np.arange(len(rows)) % 29 == 0),
            "a": pa.array(rows[:, 0], mask=missing),
            "b": rows[:, 1],
            "name": ["x"] * len(rows),
        }
    )
    rows[missing, 0] = np.nan
    return rows, content, spark.createDataFrame(content)


def test_cells_are_counted_as_numpy_does(visits):
    rows, _, frame = visits
    for spec in (PLANE, LEAVES):
        assert_same(table(frame, ["a", "b"]).state(spec), DensitySketch.of(spec).update(rows).state())
    swapped = table(frame, ["b", "a"]).state(PLANE)
    assert_same(swapped, DensitySketch.of(PLANE).update(rows[:, ::-1]).state())


@pytest.mark.parametrize("partitions", [1, 7])
def test_random_features_are_the_same_for_any_partitioning(spark, partitions):
    rows = np.random.default_rng(0).normal(size=(900, 4))
    frame = spark.createDataFrame(pa.table({f"v{j}": rows[:, j] for j in range(4)})).repartition(partitions)
    assert_same(table(frame).state(FOUR), DensitySketch.of(FOUR).update(rows).state())


def test_a_unit_keeps_the_same_records_as_elsewhere(visits):
    _, content, frame = visits
    bound = ContributionBound(2, (11, 12))
    names = ["a", "b"]
    here = table(content, names, unit="person_id")._bounded(bound).state(PLANE)
    assert_same(table(frame.repartition(5), names, unit="person_id")._bounded(bound).state(PLANE), here)
    assert 0 < here[1].sum() <= 800


def test_a_task_that_dies_and_is_tried_again_does_not_count_twice(spark, tmp_path):
    """With and without a unit; speculation and lost executors, which need a cluster: `test_spark_cluster.py`."""
    rng = np.random.default_rng(1)
    rows, ids, marks = rng.normal(size=(600, 4)), rng.integers(0, 90, 600), str(tmp_path)

    def die_once(batches):
        import os

        from pyspark import TaskContext

        yield from batches  # rows went out before the task dies
        task = TaskContext.get()
        if task.partitionId() == 1:
            open(f"{marks}/{task.attemptNumber()}", "w").close()
            if task.attemptNumber() == 0:
                os._exit(1)

    def attempts():
        """Numbers of the attempts since this was asked last."""
        found = sorted(tmp_path.iterdir())
        for mark in found:
            mark.unlink()
        return [mark.name for mark in found]

    content = {"person": ids, **{f"v{j}": rows[:, j] for j in range(4)}}
    frame = spark.createDataFrame(pa.table(content)).repartition(3)
    frame = frame.mapInArrow(die_once, "person bigint, v0 double, v1 double, v2 double, v3 double")
    names, plane, bound = ["v0", "v1"], plan_spec([(-3, 3)] * 2, "auto", None), ContributionBound(2, (11, 12))
    assert_same(table(frame, [*names, "v2", "v3"]).state(FOUR), DensitySketch.of(FOUR).update(rows).state())
    assert attempts() == ["0", "1"]
    assert_same(table(frame, names).state(plane), DensitySketch.of(plane).update(rows[:, :2]).state())
    assert attempts() == ["0", "1"]
    kept = table(rows[:, :2], unit=ids)._bounded(bound).state(plane)
    assert_same(table(frame, names, unit="person")._bounded(bound).state(plane), kept)
    assert attempts() == ["0", "1"]
    assert 90 < kept[1].sum() <= 180


def test_no_rows_and_empty_partitions_are_no_error(spark):
    frame = spark.createDataFrame(pa.table({"a": [1.0], "b": [2.0]})).where("a > 5")
    assert [len(part) for part in table(frame).state(PLANE)] == [0, 0]
    wide = spark.range(3).selectExpr(*[f"CAST(id AS DOUBLE) AS v{j}" for j in range(4)]).repartition(6)
    assert int(table(wide).state(FOUR)[0][0]) == 3


@pytest.mark.parametrize(
    ("columns", "unit", "error", "match"),
    [
        (["c"], None, ValueError, r"columns.*'c'.*person_id, a, b, name"),
        (["name"], None, TypeError, r"columns.*'name'.*string"),
        (None, None, TypeError, "name"),
        (["a"], "nobody", ValueError, "unit.*'nobody'"),
        (["a"], np.zeros(3), TypeError, "unit"),
    ],
)
def test_errors_of_the_schema(visits, columns, unit, error, match):
    with pytest.raises(error, match=match):
        table(visits[2], columns, unit=unit)


def test_statistics_of_parquet_switch_no_nan_on_or_off(spark, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(5)
    values = rng.permutation(np.concatenate([rng.uniform(1, 99, 300), np.full(100, np.nan)]))
    states = []
    for extra in ([], [500.0], [-5.0]):
        content = np.append(values, extra)
        pq.write_table(pa.table({"a": content, "b": np.zeros(len(content))}), tmp_path / f"{len(states)}.parquet")
        states.append(table(spark.read.parquet(f"{tmp_path}/{len(states)}.parquet")).state(PLANE))
        assert_same(states[-1], states[0])
    assert states[0][1].sum() == 300


def test_a_session_is_not_a_frame(spark):
    with pytest.raises(TypeError, match="data frame of Spark"):
        table(spark)


def test_every_failure_is_one_sentence(visits):
    broken = visits[2].selectExpr("a", "CAST(assert_true(a < -1e6, '777') AS DOUBLE) AS b")
    with pytest.raises(ReadFailed) as error:
        table(broken).state(PLANE)
    assert str(error.value) == "Spark could not read the records"
    assert error.value.__context__ is None


def test_a_fit_reads_a_frame_by_person(visits):
    frame = table(visits[2], ["a", "b"], unit="person_id")
    model = PrivateModes(epsilon=1.0, delta=1e-5, bounds=PLANE.bounds, max_contributions=3).fit(frame)
    assert model.guarantee_.enforced
    assert model.guarantee_.unit == "person_id"
    assert "person_id (at most 3 records, enforced)" in str(model.guarantee_)


def test_texts_that_are_not_utf8_are_ids(spark):
    rows = [
        (5.0, bytearray(b"a")),
        (5.0, bytearray(b"\xff\xfe")),
        (5.0, bytearray(b"\xff\xfe")),
        (5.0, bytearray(b"\xff")),
    ]
    frame = spark.createDataFrame(rows, "a double, person binary").selectExpr("a", "CAST(person AS STRING) AS person")
    source = table(frame, ["a"], unit="person")._bounded(ContributionBound(1, (11, 12)))
    line = plan_spec([(0, 10)], "auto", None)
    assert source.state(line)[1].sum() == 3
    seen = []
    source.each_batch(seen.append)
    assert len(np.concatenate(seen)) == 3


# -- several densities in one job ---------------------------------------------------------------------------------

LINE = plan_spec([(0.0, 100.0)], "auto", None)
GRIDS = (LINE, PLANE, LEAVES)
AXES = (["b"], ["a", "b"], ["a", "b"])


def joint(source, unit=None):
    one = JointPass(table(source, ["a", "b"], unit=unit), GRIDS, AXES, 2)
    one._bound = None if unit is None else ContributionBound(2, (11, 12))
    return [one.table(k) for k in range(3)]


def test_several_densities_are_those_of_one_machine(visits):
    _, content, frame = visits
    assert_same(joint(frame.repartition(5)), joint(content.to_reader()))
    assert_same(joint(frame.repartition(5), "person_id"), joint(content, "person_id"))


@pytest.mark.parametrize("unit", [None, "person_id"])
def test_several_densities_read_the_rows_once(spark, visits, unit):
    read = spark.sparkContext.accumulator(0)

    def noted(batches):
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    joint(visits[2].mapInArrow(noted, visits[2].schema), unit)
    assert read.value == len(visits[0])
