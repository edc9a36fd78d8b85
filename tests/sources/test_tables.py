"""Tables in memory, streams, and files by the dozen: one state for one set of records."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from optional_packages import optional

from fogline import DensitySketch, PrivateModalRegression, PrivateModeClustering, PrivateModes, private_pca
from fogline.density.random_spec import plan_spec
from fogline.releases import sketch
from fogline.sources import files as duck
from fogline.sources.files import FileTable
from fogline.sources.passes import RecordPasses
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed, read_public
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick

duckdb = pytest.importorskip("duckdb")
pd, pl = optional("pandas"), optional("polars")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")
sparse = pytest.importorskip("scipy.sparse")

ROWS = np.random.default_rng(0).normal(5, 2, size=(400, 2))
ROWS[::9, 0] = np.nan
ROWS[::31, 1] = np.inf
PLANE = plan_spec([(0, 10)] * 2, "auto", None)
WANTED = DensitySketch.of(PLANE).update(ROWS).state()
COLUMNS = {"a": ROWS[:, 0], "b": ROWS[:, 1]}


def assert_same(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert np.array_equal(a, b)


def arrow():
    return pa.table({**COLUMNS, "name": ["x"] * len(ROWS)})


SOURCES = {
    "numpy": lambda: table(ROWS),
    "list": lambda: table(ROWS.tolist()),
    "masked": lambda: table(np.ma.masked_array(ROWS, mask=False)),
    "csr": lambda: table(sparse.csr_array(ROWS)),
    "coo": lambda: table(sparse.coo_matrix(ROWS)),
    "pandas": lambda: table(pd.DataFrame({**COLUMNS, "name": "x"}), ["a", "b"]),
    "pandas nullable": lambda: table(pd.DataFrame(COLUMNS).convert_dtypes(), ["a", "b"]),
    "polars": lambda: table(pl.DataFrame(COLUMNS).with_columns(name=pl.lit("x")), ["a", "b"]),
    "polars lazy": lambda: table(pl.DataFrame(COLUMNS).lazy().with_columns(name=pl.lit("x")), ["a", "b"]),
    "arrow": lambda: table(arrow(), ["a", "b"]),
    "arrow batch": lambda: table(arrow().to_batches()[0], ["a", "b"]),
    "arrow reader": lambda: table(arrow().to_reader(max_chunksize=7), ["a", "b"]),
    "arrow stream": lambda: table(Stream(arrow()), ["a", "b"]),
    "duckdb relation": lambda: table(duckdb.connect().from_arrow(arrow()), ["a", "b"]),
}


class Stream:
    """Something that is known by its Arrow stream alone."""

    def __init__(self, content):
        self.content = content

    def __arrow_c_stream__(self, requested_schema=None):
        return self.content.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("name", SOURCES)
def test_one_state_for_one_set_of_records(name):
    assert_same(SOURCES[name]().state(PLANE), WANTED)


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"arrow reader"}))
def test_a_table_can_be_read_again(name):
    source = SOURCES[name]()
    source.require_width(2)
    for _ in range(2):
        seen = []
        source.each_batch(seen.append)
        assert np.array_equal(np.concatenate(seen), ROWS, equal_nan=True)


def test_columns_by_name_in_any_order():
    swapped = DensitySketch.of(PLANE).update(ROWS[:, ::-1]).state()
    for source in (table(pd.DataFrame(COLUMNS)), table(arrow(), ["a", "b"])):
        assert_same(source[["b", "a"]].state(PLANE), swapped)
    with pytest.raises(ValueError, match=r"columns.*'c'"):
        table(arrow(), ["a", "b"])[["c"]]
    with pytest.raises(TypeError, match="columns"):
        table(ROWS)[["a"]]


def test_columns_of_pandas_that_are_numbers():
    assert_same(table(pd.DataFrame(ROWS), ["0", "1"]).state(PLANE), WANTED)


def test_zeros_of_a_sparse_matrix_are_values():
    source = table(sparse.csr_array(np.array([[0.0, 3.0], [0.0, 0.0]])))
    assert source.state(PLANE)[1].sum() == 2


def test_every_fit_takes_them(tmp_path):
    rows = np.random.default_rng(0).normal(5, 1, size=(3000, 2))
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    relation = duckdb.connect().read_parquet(str(path))
    budget = {"epsilon": 2.0, "delta": 1e-5}
    reader = pq.ParquetFile(path).read().to_reader()
    for source in (table(sparse.csr_array(rows)), relation, pl.scan_parquet(path), reader):
        model = PrivateModes(**budget, bounds=[(0, 10)] * 2).fit(source)
        assert np.abs(model.modes_[0] - 5).max() < 1
    regression = PrivateModalRegression(**budget, x_bounds=[(0, 10)], y_bounds=(0, 10))
    with seeded_noise(1):
        assert regression.fit(relation, "x").feature_names_in_.tolist() == ["y"]
        assert regression.fit(table(path, ["y", "x"])).feature_names_in_.tolist() == ["y"]
    with pytest.raises(TypeError, match="y must be a column of X"):
        regression.fit(table(path, ["x"]), rows[:, 1])
    ids = np.arange(len(rows)) // 3
    clustering = PrivateModeClustering(**budget, bounds=[(0, 10)] * 2, max_contributions=3)
    assert clustering.fit(table(rows, unit=ids)).guarantee_.enforced
    people = pd.DataFrame({"person": ids, **{f"v{j}": rows[:, j % 2] for j in range(5)}})
    _, guarantee = private_pca(table(people, unit="person"), **budget, bounds=[(0, 10)] * 5, max_contributions=2)
    assert guarantee.unit == "person"
    assert guarantee.enforced


def test_sketch_is_the_protocol(tmp_path):
    assert_same(sketch(ROWS, PLANE).state(), WANTED)
    assert_same(sketch(table(arrow(), ["a", "b"]), PLANE).state(), WANTED)


def test_passes_refuse_what_can_be_read_once():
    with pytest.raises(TypeError, match="only once"):
        RecordPasses(arrow().select(["a", "b"]).to_reader(), 2)
    reader = table(arrow().to_reader(), ["a", "b"])
    reader.state(PLANE)
    with pytest.raises(ReadFailed):
        reader.state(PLANE)


def test_progress_is_told_to_who_asks():
    told = []
    table(np.zeros((150_000, 1)), progress=told.append).state(plan_spec([(0, 1)], "auto", None))
    assert told == [65536, 131072, 150000]


def test_a_table_is_not_pickled():
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(table(ROWS))


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        (lambda: table(arrow()), TypeError, "'name'"),
        (lambda: table(pd.DataFrame({"a": [1.0], "name": ["x"]})), TypeError, "'name'"),
        (lambda: table(arrow(), ["c"]), ValueError, "columns.*'c'.*a, b, name"),
        (lambda: table(arrow(), "a"), TypeError, "columns"),
        (lambda: table(ROWS, ["a"]), TypeError, "columns"),
        (lambda: table(arrow().to_reader(), ["name"]), TypeError, "'name'"),
        (lambda: table(duckdb.connect().from_arrow(arrow()), ["name"]), TypeError, "'name'"),
        (lambda: table(duckdb.connect()), TypeError, "relation"),
        (lambda: table(sparse.coo_array(np.zeros(3))), ValueError, "dimensions"),
        (lambda: table(object()), TypeError, "got object"),
        (lambda: PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit(sparse.eye(3)), TypeError, "sparse"),
        (lambda: table({"a": [1.0]}), TypeError, "dict"),
        (lambda: table(table(ROWS)), TypeError, "already"),
        (lambda: table(ROWS).state(plan_spec([(0, 1)], "auto", None)), ValueError, "columns"),
        (lambda: PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit("postgres://h/d"), TypeError, "query"),
    ],
)
def test_errors_of_the_schema(source, error, match):
    with pytest.raises(error, match=match):
        source()


def test_no_engine_is_imported_that_is_not_used():
    code = (
        "import sys, numpy as np; from fogline.sources import table; from fogline.releases import sketch;"
        "from fogline import DensitySketch;"
        "sketch(table(np.zeros((3, 1))), DensitySketch([(0, 1)]).spec);"
        "heavy = {'pyspark', 'dask', 'polars', 'pandas', 'pyarrow', 'duckdb', 'psycopg'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- many files ---------------------------------------------------------------------------------------------


def spread(folder, suffix):
    for i, part in enumerate(np.array_split(ROWS, 4)):
        path = folder / f"year={i % 2}" / f"part-{i}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        frame = pd.DataFrame(part, columns=["a", "b"])
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    (folder / "_SUCCESS").touch()
    (folder / f".hidden.{suffix}").touch()
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_folders_and_patterns(tmp_path, suffix):
    folder = spread(tmp_path, suffix)
    for path in (folder, str(folder), f"{folder}/*/*.{suffix}", f"{folder}/**/part-?.{suffix}"):
        assert_same(FileTable(path).state(PLANE), WANTED)
    half = np.concatenate([np.array_split(ROWS, 4)[i] for i in (0, 2)])
    assert_same(FileTable(folder / "year=0").state(PLANE), DensitySketch.of(PLANE).update(half).state())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_that_are_not_alike(tmp_path, suffix):
    folder = spread(tmp_path, suffix)
    other = pd.DataFrame({"a": [1.0], "c": [2.0]})
    path = folder / f"other.{suffix}"
    other.to_csv(path, index=False) if suffix == "csv" else other.to_parquet(path)
    with pytest.raises(ValueError, match=rf"path: .*other\.{suffix}|path: part-0\.{suffix}.*other"):
        FileTable(folder)
    path.write_bytes(b"a,\xe9\n1,2\n")
    with pytest.raises(ValueError, match=rf"path.*other\.{suffix}"):
        FileTable(folder)


def test_files_whose_types_differ(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1.5]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"path: 2\.parquet has other columns or types than 1\.parquet"):
        FileTable(tmp_path)


def test_folders_of_nothing_or_of_both_kinds(tmp_path):
    for path in (tmp_path, f"{tmp_path}/*.csv"):
        with pytest.raises(FileNotFoundError, match="path"):
            FileTable(path)
    pq.write_table(pa.table({"a": [1.5]}), tmp_path / "1.parquet")
    (tmp_path / "1.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="both text and Parquet"):
        FileTable(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_without_arrow_the_integers_are_the_same(tmp_path, suffix, monkeypatch):
    source = FileTable(spread(tmp_path, suffix))
    monkeypatch.setattr(duck, "has_arrow", lambda: False)
    monkeypatch.setattr("fogline.sources.files.has_arrow", lambda: False)
    assert_same(source.state(PLANE), WANTED)
    seen = []
    source.each_batch(seen.append)
    assert len(np.concatenate(seen)) == len(ROWS)


def test_a_file_name_with_a_quote(tmp_path):
    path = tmp_path / "it's.csv"
    path.write_text("a,b\n1,2\n")
    assert FileTable(path).state(PLANE)[1].tolist() == [1]


def test_a_public_table_is_read_whole_and_in_order(tmp_path):
    file = tmp_path / "sample.csv"
    file.write_text("x,y\n1,2\n3,none\n5,6\n")
    assert np.array_equal(read_public(table(file)), [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]], equal_nan=True)
    file.write_text("x,y\n")
    assert read_public(table(file)).shape == (0, 2)
