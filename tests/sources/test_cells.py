"""One rule for cells, ids and types in every source: each record is read alone, and none decides how another is."""

import subprocess
import sys
from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from optional_packages import optional

from fogline import (
    DensitySketch,
    IntegralSampler,
    PrivateGaussianMixture,
    PrivateModes,
    private_bounds,
    private_strata,
)
from fogline._validation import records
from fogline.density.random_spec import plan_spec
from fogline.sources.contributions import MISSING, TEXT, ContributionBound, Identities
from fogline.sources.files import FileTable
from fogline.sources.passes import label_text
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed
from fogline.testing import seeded_noise
from fogline_research.baselines import dp_em

duckdb = pytest.importorskip("duckdb")
pd, pl, dd = optional("pandas"), optional("polars"), optional("dask.dataframe")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

LINE = plan_spec([(0, 10)], "auto", None)
KEY = ContributionBound(1, (11, 12))
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SAMPLER = {"epsilon": 1.0, "max_samples": 1, "rounds": 1, "training_draws": 50}
HUGE = 7 * 10**5000
NAN = float("nan")


def counted(source) -> int:
    return int(source.state(LINE)[1].sum())


def kept(ids, values=None) -> int:
    values = np.full(len(ids), 5.0) if values is None else values
    return counted(table(values, unit=ids)._bounded(KEY))


def bad_texts(*texts: bytes) -> pa.Array:
    """Texts of Arrow that need not be UTF-8."""
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))])


def signalling(dtype) -> np.ndarray:
    """A NaN that makes a processor complain."""
    bits = {np.float32: (np.uint32, 0x7FA00000), np.float64: (np.uint64, 0x7FF4000000000000)}[dtype]
    return np.array([bits[1]], dtype=bits[0]).view(dtype)


# -- ids --------------------------------------------------------------------------------------------------------


ODD_IDS = ["Ann", "7\0", None, NAN, 1.5, b"\xff", [1, 2], HUGE, "", Decimal(7), object(), True]


@pytest.mark.parametrize("odd", ODD_IDS, ids=lambda odd: type(odd).__name__)
def test_an_id_in_a_list_does_not_change_the_ids_of_others(odd):
    others = [2**60 + i for i in range(100)]  # as floats they would be one id, as texts of numpy they were others
    with_odd = kept([*others, odd])
    assert with_odd - kept(others) in (0, 1)
    numbers = np.array([5.0] * 100 + [NAN])  # the odd row itself cannot count
    assert kept([*others, odd], numbers) == 100


@pytest.mark.parametrize("none", [1.5, NAN, True, 2.0**70], ids=str)
def test_what_is_no_id_stays_none_beside_a_text(none):
    assert kept([none] * 1000) == 0
    assert kept([*[none] * 1000, "Ann"]) == 1  # numpy made texts of all of them, and of each text an id


def test_ids_that_end_with_nul_stay_apart():
    assert kept(["a", "a\0", "a\0\0"]) == 3
    assert kept(pa.array(["a", "a\0"])) == 2


def test_missing_ids_do_not_split_units():
    assert kept([1, None, "1", 1.0, NAN, None]) == 1
    assert kept(pl.Series([2**60, None, 2**60 + 1])) == 2


@pytest.mark.parametrize("lengths", [(1,), (2, 2), (2, 3)])
def test_ids_that_are_lists_are_missing(lengths):
    assert kept([1, *([0] * length for length in lengths)]) == 1
    assert kept([np.zeros((2, length)) for length in lengths]) == 0


def test_an_integer_of_thousands_of_digits_is_an_id():
    people = Identities()
    values, kinds = people.read([HUGE, HUGE, HUGE + 1, -HUGE, 2**64])
    assert kinds.tolist() == [TEXT] * 5
    assert values.tolist() == [0, 0, 1, 2, 3]
    assert people.texts[3] == str(2**64)  # as a text file has it
    assert label_text(HUGE) is None
    assert label_text(-HUGE) is None


def test_signalling_nan_is_no_id_and_no_news():
    for dtype in (np.float32, np.float64):
        odd = np.concatenate([np.array([7.0], dtype=dtype), signalling(dtype)])
        assert kept(odd) == 1  # warnings are errors here
        assert Identities().read(odd)[1].tolist() == [0, MISSING]
        rows = np.concatenate([np.array([5.0], dtype=dtype), signalling(dtype)])
        assert counted(table(rows, unit=[1, 2])._bounded(KEY)) == 1
        assert sum(len(b) for b in batches(table(rows, unit=[1, 2])._bounded(KEY))) == 1


def batches(source) -> list[np.ndarray]:
    seen = []
    source.each_batch(seen.append)
    return seen


@pytest.mark.parametrize(
    "made",
    [
        lambda ids: table(np.full(len(ids), 5.0), unit=ids),
        lambda ids: table(pa.table({"x": np.full(len(ids), 5.0), "id": ids}), unit="id"),
        lambda ids: table(pa.table({"x": np.full(len(ids), 5.0), "id": ids}).to_reader(), unit="id"),
        lambda ids: table(pa.table({"x": np.full(len(ids), 5.0), "id": ids.dictionary_encode()}), unit="id"),
        lambda ids: table(duckdb.connect().from_arrow(pa.table({"x": np.full(len(ids), 5.0), "id": ids})), unit="id"),
    ],
    ids=["array", "arrow", "reader", "dictionary", "relation"],
)
def test_texts_that_are_not_utf8_are_ids(made):
    assert counted(made(bad_texts(b"a", b"\xff\xfe", b"\xff\xfe", b"\xff"))._bounded(KEY)) == 3


@pytest.mark.parametrize("kind", ["String", "Categorical"])
@pytest.mark.parametrize("made", ["column", "series", "lazy"])
def test_texts_of_polars_that_are_not_utf8_are_ids_and_print_nothing(made, kind, capfd):
    # Polars checks no text that it takes from Arrow; as texts of Python it would print a panic and give none.
    texts = pl.from_arrow(bad_texts(b"a", b"\xff\xfe", b"\xff\xfe", b"\xff")).cast(getattr(pl, kind)).alias("id")
    frame = pl.DataFrame({"x": [5.0] * 4}).with_columns(texts)
    source = {
        "column": lambda: table(frame, ["x"], unit="id"),
        "series": lambda: table(np.full(4, 5.0), unit=texts),
        "lazy": lambda: table(frame.lazy(), ["x"], unit="id"),
    }[made]()
    assert counted(source._bounded(KEY)) == 3
    assert capfd.readouterr() == ("", "")


def test_texts_that_are_not_utf8_are_ids_in_parquet(tmp_path):
    frame = pa.table({"x": [5.0] * 4, "id": bad_texts(b"a", b"\xff\xfe", b"\xff\xfe", b"\xff")})
    pq.write_table(frame, tmp_path / "t.parquet")
    assert counted(FileTable(tmp_path / "t.parquet", unit="id")._bounded(KEY)) == 3


def test_texts_as_ids_in_parquet_need_arrow_before_anything_is_paid(tmp_path, monkeypatch):
    pq.write_table(pa.table({"x": [5.0], "id": ["a"], "n": [1]}), tmp_path / "t.parquet")
    monkeypatch.setattr("fogline.sources.files.has_arrow", lambda: False)
    with pytest.raises(ImportError, match=r"unit: column 'id'.*pyarrow"):
        FileTable(tmp_path / "t.parquet", ["x"], unit="id")
    FileTable(tmp_path / "t.parquet", ["x"], unit="n")


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # next to no noise, so that counts can be told
def test_labels_that_are_not_utf8_or_of_any_type():
    rows = np.full(6, 5.0)
    odd = {
        "list": ["f", HUGE, b"\xff", None, ["f"], "m\0"],
        "arrow": bad_texts(b"f", b"\xff", b"", b"g", b"\xff\xfe", b"m"),
        "objects": np.array(["f", 1, None, NAN, HUGE, Decimal(3)], dtype=object),
        "pandas": pd.Series(["f", 1, None, NAN, HUGE, True], dtype=object),
    }
    for labels in odd.values():
        with seeded_noise(0):
            found = private_strata(rows, labels, categories=["f", "m"], epsilon=1e6, delta=1e-6, bounds=[(0, 10)])
        assert abs(found["f"].count - 1) < 0.2


class Raising:
    """Objects of types that readers know, whose methods raise what is no Exception."""

    @staticmethod
    def stop(*_):
        raise SystemExit("a record's own words")

    kinds = (
        type("Text", (str,), {"__str__": stop, "strip": stop})("f"),
        type("Whole", (int,), {"__int__": stop, "__index__": stop, "__float__": stop})(5),
        type("Double", (float,), {"__float__": stop, "is_integer": stop})(5.0),
        type("Part", (Fraction,), {"__float__": stop})(5),
    )


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # next to no noise, so that counts can be told
@pytest.mark.parametrize("odd", Raising.kinds, ids=lambda odd: type(odd).__name__)
def test_a_cell_that_raises_anything_costs_its_own_record_alone(odd):
    cells = np.array([5.0, 5.0, None], dtype=object)
    cells[2] = odd
    assert counted(table(list(cells))) in (2, 3)
    assert counted(table([[cell] for cell in cells])) in (2, 3)
    assert counted(table(cells)) in (2, 3)
    assert kept([1, 2, odd]) in (2, 3)
    with seeded_noise(0):
        labels = ["f", "f", odd]
        found = private_strata(np.full(3, 5.0), labels, categories=["f"], epsilon=1e6, delta=1e-6, bounds=[(0, 10)])
    assert 1.8 < found["f"].count < 3.2


# -- cells ------------------------------------------------------------------------------------------------------


CELLS = [
    (5, 5.0),
    (np.float32(0.5), 0.5),
    (np.bool_(True), 1.0),
    (True, 1.0),
    (Decimal("1.5"), 1.5),
    (Fraction(1, 4), 0.25),
    (np.array(2.0), 2.0),
    (2**53 + 1, float(2**53 + 1)),
    (-0.0, -0.0),
    (5e-324, 5e-324),
    (Decimal("1e-400"), 0.0),
    (float("inf"), np.inf),
    *(
        (odd, NAN)
        for odd in (None, pd.NA, pd.NaT, NAN, "5", "Ann", b"5", [5], {}, 1j, 10**400, Decimal("sNaN"), np.ma.masked)
    ),
    (np.timedelta64(5, "s"), NAN),
    (np.datetime64("2020-01-01"), NAN),
]


class Hostile:
    """A cell with errors of its own."""

    def __float__(self):
        raise ImportError("secret 777")

    def __len__(self):
        raise KeyError("secret 777")


@pytest.mark.parametrize("source", ["list", "rows", "numpy", "pandas", "polars", "masked"])
def test_cells_that_declare_nothing_are_read_one_by_one(source):
    cells, wanted = zip(*CELLS, (Hostile(), NAN), strict=True)
    objects = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        objects[i] = cell
    made = {
        "list": lambda: records(list(cells), 1),
        "rows": lambda: records([(cell, 1.0) for cell in cells], 2)[:, :1],
        "numpy": lambda: records(objects),
        "pandas": lambda: records(pd.DataFrame({"a": pd.Series(objects, dtype=object)})),
        "polars": lambda: records(pl.DataFrame({"a": pl.Series(list(cells), dtype=pl.Object)})),
        "masked": lambda: records(np.ma.array(objects, mask=False)),
    }[source]()
    for cell, value, expected in zip(cells, made[:, 0], wanted, strict=True):
        if source == "list" and isinstance(cell, list):
            expected = 5.0  # a row of one cell
        if source == "masked" and cell is np.ma.masked:
            continue
        assert value == expected or (np.isnan(value) and np.isnan(expected)), cell


def test_one_text_in_a_column_of_objects_costs_its_own_record_alone(tmp_path):
    frame = pd.DataFrame({"a": pd.Series([5.0, 6.0, "Ann"], dtype=object)})
    assert counted(table(frame)) == 2
    (tmp_path / "t.csv").write_text("a\n5.0\n6.0\nAnn\n")
    assert counted(FileTable(tmp_path / "t.csv")) == 2
    with seeded_noise(0):
        PrivateModes(**BUDGET, bounds=[(0, 10)]).fit(frame)


def declared(kind, values=(1, None)):
    return pa.table({"a": pa.array(list(values), kind)})


@pytest.mark.parametrize(
    "frame",
    [
        declared(pa.bool_(), (True, None)),
        declared(pa.float16(), (np.float16(1), None)),
        declared(pa.uint64()),
        declared(pa.decimal128(38, 2)),
        declared(pa.decimal256(70, 2)),
        pa.table({"a": pa.array([1.0, None]).dictionary_encode()}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}),
        pd.DataFrame({"a": pd.array([Decimal(1), None], dtype=pd.ArrowDtype(pa.decimal128(5, 1)))}),
        pd.DataFrame({"a": pd.arrays.SparseArray([1.0, NAN])}),
        pl.DataFrame({"a": [Decimal(1), None]}),
        pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Int128)}),
        pl.DataFrame({"a": [True, None]}),
    ],
    ids=lambda frame: str(frame.schema if hasattr(frame, "schema") else frame.dtypes["a"]).replace("\n", " "),
)
def test_declared_types_of_numbers(frame):
    assert np.array_equal(records(frame), [[1.0], [NAN]], equal_nan=True)
    assert counted(table(frame)) == 1


@pytest.mark.parametrize("frame", [declared(pa.null(), (None, None)), pl.DataFrame({"a": [None, None]})])
def test_a_column_of_nothing_but_null_is_missing(frame):
    assert np.isnan(records(frame)).all()
    assert counted(table(frame)) == 0


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a"], dtype="str"),
        pd.Series([1, 2], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series([pd.Timedelta(1)]),
        pd.Series([1j]),
        pd.Series([1.0], dtype=pd.ArrowDtype(pa.string())),
        pl.Series(["a"]),
        pl.Series(["a"], dtype=pl.Categorical),
        pl.Series([[1.0]]),
        pl.Series([b"1"]),
        pa.array(["1"]),
        pa.array(["1"]).dictionary_encode(),
        pa.array([b"1"]),
        pa.array([[1.0]]),
        pa.array([1], pa.timestamp("s")),
        np.array(["1"]),
        np.array([b"1"]),
        np.array([(1.0,)], dtype=[("a", float)]),
    ],
    ids=lambda column: (
        f"{type(column).__module__.partition('.')[0]} {getattr(column, 'dtype', getattr(column, 'type', ''))}"
    ),
)
@pytest.mark.parametrize("rows", [0, 1])
def test_declared_types_that_are_no_numbers_are_refused_with_and_without_records(column, rows):
    with pytest.raises((TypeError, ValueError), match="real numbers"):
        records(column[:rows])


# -- shapes -----------------------------------------------------------------------------------------------------


RAGGED = [[[1.0, 2.0], [3.0], 4.0], [[3.0], [1.0, 2.0], 4.0], [4.0, [1.0, 2.0], [3.0]], []]


@pytest.mark.parametrize("rows", RAGGED)
def test_no_row_of_a_list_decides_how_many_columns_there_are(rows):
    box = [(0, 10)] * 2
    with seeded_noise(0):
        assert PrivateModes(**BUDGET, bounds=box).fit(rows).n_features_in_ == 2
        assert PrivateModes(**BUDGET, bounds=box).fit(table(rows)).n_features_in_ == 2
        assert PrivateModes(**BUDGET, bounds=box).fit(table(rows, unit=list(range(len(rows))))).guarantee_.enforced
        strata = private_strata(rows, ["f"] * len(rows), categories=["f"], **BUDGET, bounds=box)
        assert strata.spec.d == 2
        assert IntegralSampler(**SAMPLER, bounds=box).fit(rows).n_features_in_ == 2
    state = table(rows).state(plan_spec(box, "auto", None))
    assert state[1].sum() == sum(row == [1.0, 2.0] for row in rows)
    undeclared = [
        lambda: private_bounds(rows, **BUDGET),
        lambda: private_bounds(table(rows), **BUDGET),
        lambda: IntegralSampler(**SAMPLER).fit(rows),
        lambda: PrivateGaussianMixture(n_components=1, **BUDGET, radius=10.0).fit(rows),
        lambda: dp_em(rows, n_components=1, **BUDGET, radius=10.0),
    ]
    for act in undeclared:
        with pytest.raises(ValueError, match="plain list does not declare how many columns it has"):
            act()


def test_the_width_of_a_table_of_a_list_is_declared_once():
    source = table([[1.0, 2.0]])
    source.require_width(2)
    with pytest.raises(ValueError, match="2 columns"):
        source.state(LINE)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_matrix_is_an_array(n):
    matrix = np.matrix(np.full((n, 2), 5.0))
    assert type(records(matrix, 2)) is np.ndarray
    spec = plan_spec([(0, 10)] * 2, "auto", None)
    assert DensitySketch.of(spec).update(matrix).state()[1].sum() == n
    assert table(matrix).state(spec)[1].sum() == n
    with seeded_noise(0):
        PrivateModes(**BUDGET, bounds=[(0, 10)] * 2).fit(matrix)


# -- sources that fail, or tell more than their schema --------------------------------------------------------------


class Lazily:
    """Something that is read when numpy asks for it, and fails for a record."""

    shape = (3, 1)

    def __array__(self, dtype=None, copy=None):
        raise LookupError("secret 777")


def leads_nowhere(error: BaseException) -> None:
    assert "777" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_an_array_that_fails_when_it_is_read_says_nothing():
    with pytest.raises(ValueError, match="could not be read as numbers") as caught:
        PrivateModes(**BUDGET, bounds=[(0, 10)]).fit(Lazily())
    leads_nowhere(caught.value)


def test_a_lazy_frame_is_not_run_for_its_schema():
    texts = pl.DataFrame({"a": ["1", "secret 777"]}).lazy()
    sure = texts.select(pl.col("a").cast(pl.Float64).sort())  # fails on the second row, and for no rows too
    source = table(sure)
    with pytest.raises(ReadFailed) as caught:
        source.state(LINE)
    leads_nowhere(caught.value)
    assert table(texts.select(pl.col("a").cast(pl.Float64, strict=False))).state(LINE)[1].sum() == 1


def test_a_relation_is_not_run_for_its_schema():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('1'), ('secret 777')) AS t(a)")
    source = table(connection.sql("SELECT CAST(a AS DOUBLE) AS a FROM t ORDER BY a"))
    with pytest.raises(ReadFailed) as caught:
        source.state(LINE)
    leads_nowhere(caught.value)
    assert counted(table(connection.sql("SELECT 5::HUGEINT AS a UNION ALL SELECT NULL"))) == 1
    with pytest.raises(TypeError, match="'a' holds VARCHAR"):
        table(connection.sql("SELECT a FROM t"))


@pytest.mark.parametrize("error", [ImportError, UserWarning, MemoryError, SystemExit, ArithmeticError, StopIteration])
def test_whatever_a_source_raises_is_one_constant(error, monkeypatch):
    source = table(np.full((3, 1), 5.0))

    def scan(take):
        raise error("secret 777")

    monkeypatch.setattr(source, "_scan", scan)
    with pytest.raises(ReadFailed, match=r"^the source could not be read$") as caught:
        source.state(LINE)
    leads_nowhere(caught.value)


def test_an_interrupt_stays_one(monkeypatch):
    source = table(np.full((3, 1), 5.0))
    monkeypatch.setattr(source, "_scan", lambda take: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        source.state(LINE)


# -- Dask -------------------------------------------------------------------------------------------------------


def partitions(*frames, meta):
    from dask import delayed

    return dd.from_delayed([delayed(frame) for frame in frames], meta=meta, verify_meta=False)


def test_partitions_of_other_types_than_declared():
    meta = pd.DataFrame({"x": pd.Series(dtype=float), "id": pd.Series(dtype=np.int64)})
    good = pd.DataFrame({"x": [5.0, 6.0], "id": [1, 2]})
    mixed = pd.DataFrame({"x": pd.Series([5.0, "Ann"], dtype=object), "id": ["3", "4"]})
    texts = pd.DataFrame({"x": ["Ann", "Bob"], "id": [5.0, NAN]})
    odd = pd.DataFrame({"x": [7.0] * 4, "id": pd.Series([b"\xff", "a\udcff", HUGE, 1], dtype=object)})
    source = partitions(good, mixed, texts, odd, meta=meta)
    assert counted(table(source[["x"]])) == 7
    # 1 and 2, 3, the text that is not UTF-8 and the long integer; 1 comes twice, and bytes are no id
    assert counted(table(source, ["x"], unit="id")._bounded(KEY)) == 5
    assert len(np.concatenate(batches(table(source, ["x"], unit="id")._bounded(KEY)))) == 5


def test_no_library_is_imported_for_a_list():
    code = (
        "import sys; from fogline.sources import table; from fogline import DensitySketch;"
        "table([[1.0], ['Ann']], unit=[1, 'b']).bounded(1).state(DensitySketch([(0, 1)]).spec);"
        "assert not {'pandas', 'polars', 'pyarrow', 'duckdb'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("records_of", [deque, UserList, lambda rows: memoryview(np.array(rows, dtype=float))])
def test_a_sequence_that_cannot_be_cut_is_a_list(records_of):
    for rows in ([], [5.0], [5.0, 6.0]):  # one that passed without records failed with the first
        assert counted(table(records_of(rows))) == len(rows)


def test_names_of_columns_that_cannot_be_told_apart_are_refused_by_the_closed_list():
    twice = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    levels = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    for frame in (twice, twice[:0]):
        with pytest.raises(ValueError, match="names of columns must differ"):
            table(frame, ["a"])
    for frame in (levels, levels[:0]):
        with pytest.raises(TypeError, match="several levels"):
            table(frame)
