"""Dask: the integers of numpy for any partitioning of frames and arrays."""

import numpy as np
import pytest

from fogline import DensitySketch, PrivateModes
from fogline.density.random_spec import plan_spec
from fogline.sources.contributions import ContributionBound
from fogline.sources.joint_pass import JointPass
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed

pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

PLANE = plan_spec([(0.0, 100.0), (-50.0, 50.0)], "auto", [None, 0.5])
LEAVES = plan_spec([(0.0, 100.0), (-50.0, 50.0)], "auto", [None, 0.25], features="leaves")
LINE = plan_spec([(0.0, 10.0)], "auto", None)
FOUR = plan_spec([(-3, 3)] * 4, "auto", None, features=32)


def assert_same(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert np.array_equal(a, b)


def people(n=2000):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"person_id": rng.integers(0, 200, n), "a": rng.normal(50, 40, n), "b": rng.normal(0, 30, n)})
    frame.loc[::13, "a"] = np.nan
    frame.loc[::37, "b"] = np.inf
    return frame


@pytest.mark.parametrize("partitions", [1, 9])
def test_cells_of_a_frame(partitions):
    frame = people()
    wanted = DensitySketch.of(PLANE).update(frame[["a", "b"]]).state()
    assert_same(table(dd.from_pandas(frame, npartitions=partitions), ["a", "b"]).state(PLANE), wanted)


@pytest.mark.parametrize("chunks", [(100, 4), (33, 3), (1000, 1)])
def test_random_features_of_an_array(chunks):
    rows = np.random.default_rng(0).normal(size=(700, 4))
    assert_same(table(da.from_array(rows, chunks=chunks)).state(FOUR), DensitySketch.of(FOUR).update(rows).state())


def test_an_array_of_one_column():
    spec = plan_spec([(0, 1)], "auto", None)
    rows = np.random.default_rng(0).random(500)
    assert_same(table(da.from_array(rows, chunks=70)).state(spec), DensitySketch.of(spec).update(rows).state())


@pytest.mark.parametrize(
    "spec_columns",
    [(PLANE, ["a", "b"]), (LEAVES, ["a", "b"]), (plan_spec([(0, 100)] * 4, "auto", None, features=16), list("abcd"))],
)
def test_a_unit_keeps_the_same_records_as_elsewhere(spec_columns):
    spec, columns = spec_columns
    frame = people().assign(c=lambda f: f.a / 2, d=lambda f: f.b / 2)
    bound = ContributionBound(2, (11, 12))
    here = table(frame, columns, unit="person_id")._bounded(bound).state(spec)
    for partitions in (1, 6):
        parts = table(dd.from_pandas(frame, npartitions=partitions), columns, unit="person_id")
        assert_same(parts._bounded(bound).state(spec), here)


def test_ids_of_mixed_types_are_not_torn_apart():
    frame = people()
    as_text = frame.person_id.astype(str)
    mixed = frame.assign(
        person_id=[i if n % 2 else t for n, (i, t) in enumerate(zip(frame.person_id, as_text, strict=True))]
    )
    bound = ContributionBound(2, (11, 12))
    here = table(frame, ["a", "b"], unit="person_id")._bounded(bound).state(PLANE)
    with dask.config.set({"dataframe.convert-string": False}):
        parts = table(dd.from_pandas(mixed, npartitions=5), ["a", "b"], unit="person_id")
        assert_same(parts._bounded(bound).state(PLANE), here)


@pytest.mark.parametrize(
    "odd", [b"\xff", b"c", 10**5000, "a\udcff", None], ids=["bytes", "ascii", "int", "str", "none"]
)
@pytest.mark.parametrize("made", ["pandas", "delayed", "chosen"])
def test_no_id_among_objects_is_an_error(odd, made):
    """By default Dask makes Arrow's texts of objects, a partition at a time, and failed at bytes that are no UTF-8."""
    frame = pd.DataFrame({"a": [5.0, 5.0, 5.0], "person_id": pd.Series(["a", "b", odd], dtype=object)})
    parts = {
        "pandas": lambda: dd.from_pandas(frame, npartitions=2),
        "delayed": lambda: dd.from_delayed([dask.delayed(frame)], meta=frame.iloc[:0]),
        "chosen": lambda: dd.from_pandas(frame.assign(b=1.0), npartitions=1)[["person_id", "a"]],
    }[made]()
    bounded = table(parts, ["a"], unit="person_id")._bounded(ContributionBound(1, (11, 12)))
    expected = table(frame, ["a"], unit="person_id")._bounded(ContributionBound(1, (11, 12)))
    assert_same(bounded.state(LINE), expected.state(LINE))
    assert expected.state(LINE)[1].sum() == (3 if isinstance(odd, str | int) else 2)


def test_cells_of_objects_are_read_as_those_of_pandas():
    frame = pd.DataFrame({"a": pd.Series([5.0, "Ann", b"\xff", 6], dtype=object)})
    assert table(dd.from_pandas(frame, npartitions=1)).state(LINE)[1].sum() == 2
    computed = dd.from_pandas(pd.DataFrame({"a": ["Ann"] * 4}), npartitions=1).assign(b=1.0)
    assert table(computed, ["b"]).state(LINE)[1].sum() == 4


def test_batches_for_passes():
    frame = people()
    parts = table(dd.from_pandas(frame, npartitions=4), ["a", "b"])
    seen = []
    parts.each_batch(seen.append)
    assert np.array_equal(np.concatenate(seen), frame[["a", "b"]].to_numpy(), equal_nan=True)


def test_batches_of_people():
    frame = people()
    parts = table(dd.from_pandas(frame, npartitions=4), ["a", "b"], unit="person_id")
    seen = []
    parts.bounded(2).each_batch(seen.append)
    usable = frame[np.isfinite(frame[["a", "b"]]).all(axis=1)]
    assert len(np.concatenate(seen)) == usable.groupby("person_id").size().clip(upper=2).sum()
    with pytest.raises(RuntimeError, match="bound its contributions"):
        parts.each_batch(seen.append)


def test_empty_partitions_are_no_error():
    frame = dd.from_pandas(people(), npartitions=4)
    none = frame[frame.a > 1e9]
    assert [len(part) for part in table(none, ["a", "b"]).state(PLANE)] == [0, 0]
    bound = ContributionBound(2, (11, 12))
    assert [len(part) for part in table(none, ["a", "b"], unit="person_id")._bounded(bound).state(PLANE)] == [0, 0]


def test_errors_of_the_schema():
    frame = dd.from_pandas(people().assign(name="x"), npartitions=2)
    with pytest.raises(ValueError, match=r"columns.*'c'.*person_id, a, b, name"):
        table(frame, ["c"])
    with pytest.raises(TypeError, match="name"):
        table(frame)
    with pytest.raises(ValueError, match=r"unit.*'nobody'"):
        table(frame, ["a"], unit="nobody")
    with pytest.raises(TypeError, match="columns and unit"):
        table(da.zeros((3, 2)), ["a"])
    with pytest.raises(ValueError, match="Complex"):
        table(da.zeros((3, 2), dtype=complex))
    with pytest.raises(ValueError, match="dimensions"):
        table(da.zeros((3, 2, 2)))
    with pytest.raises(TypeError, match="frame or an array of Dask"):
        table(dask.delayed(1))


def test_every_failure_is_one_sentence():
    def fail(part):
        raise RuntimeError("777")

    frame = dd.from_pandas(people(), npartitions=2)
    broken = frame.map_partitions(fail, meta=frame._meta)
    with pytest.raises(ReadFailed) as error:
        table(broken, ["a", "b"]).state(PLANE)
    assert str(error.value) == "Dask could not read the records"
    assert error.value.__context__ is None


def test_a_fit_reads_a_frame():
    frame = dd.from_pandas(people(4000), npartitions=3)
    model = PrivateModes(epsilon=2.0, delta=1e-5, bounds=PLANE.bounds).fit(frame[["a", "b"]])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.guarantee_.unit == "record"


def test_a_gap_in_one_partition_tears_no_unit_apart():
    large = 2**63 + 5
    ids = pd.array([large] * 40 + [None], dtype="UInt64")
    frame = pd.DataFrame({"person_id": ids, "a": 50.0, "b": 0.0})
    source = dd.from_pandas(frame, npartitions=4)
    kept = table(source, ["a", "b"], unit="person_id")._bounded(ContributionBound(1, (1, 2))).state(PLANE)
    assert kept[1].sum() == 1


# -- several densities in one job ---------------------------------------------------------------------------------

GRIDS = (LINE, PLANE, LEAVES)
AXES = (["a"], ["a", "b"], ["a", "b"])


def joint(source, unit=None, most=2):
    """Tables of three grids in one pass, with a key of its own each time; the first of a seeded provider."""
    one = JointPass(table(source, ["a", "b"], unit=unit), GRIDS, AXES, most)
    one._bound = None if unit is None else ContributionBound(most, (11, 12))
    return [one.table(k) for k in range(3)]


@pytest.mark.parametrize("unit", [None, "person_id"])
@pytest.mark.parametrize("partitions", [1, 6])
def test_several_densities_are_those_of_one_machine(unit, partitions):
    frame = people()
    spread = dd.from_pandas(frame, npartitions=partitions)
    assert_same(joint(spread, unit), joint(frame.copy(), "person_id") if unit else joint(pa_reader(frame)))


def pa_reader(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame).to_reader()


@pytest.mark.parametrize("unit", [None, "person_id"])
def test_several_densities_read_the_partitions_once(unit):
    read = []

    def noted(part):
        if len(part) > 2:  # not the example by which dask learns the types
            read.append(len(part))
        return part

    frame = people()
    spread = dd.from_pandas(frame, npartitions=4).map_partitions(noted, meta=frame.iloc[:0])
    with dask.config.set(scheduler="synchronous"):
        joint(spread, unit)
    assert sum(read) == len(frame)


def test_a_worker_that_is_lost_does_not_count_twice(tmp_path):
    distributed = pytest.importorskip("distributed")
    frame = people(400)
    mark = str(tmp_path / "died")

    def die_once(part, mark=mark):
        import contextlib
        import os

        if len(part) > 2:
            with contextlib.suppress(FileExistsError):  # one of both workers makes the file, and only that one dies
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                os._exit(1)
        return part

    with (
        # where nannies can start no worker again, as on a starved machine, this fails and does not wait for ever
        dask.config.set({"distributed.scheduler.no-workers-timeout": "5 minutes"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        for unit in (None, "person_id"):
            spread = dd.from_pandas(frame, npartitions=4).map_partitions(die_once, meta=frame.iloc[:0])
            found = joint(spread, unit)
            assert (tmp_path / "died").exists()
            (tmp_path / "died").unlink()
            assert_same(found, joint(frame.copy(), "person_id") if unit else joint(pa_reader(frame)))
