"""What a command loads: nothing numerical before its words are checked, and no library that it has no use for."""

import subprocess
import sys

import numpy as np
import pytest

from fogline.cli.app import COMMANDS, app
from fogline.report import page

HEAVY = ("numpy", "scipy", "sklearn", "numba", "opendp", "pandas", "pyarrow", "duckdb", "matplotlib", "jinja2", "rich")
BUDGET = ("--epsilon", "1", "--delta", "1e-5")
MODES = ("modes", "t.csv", "--columns", "a", "--bounds", "0:10", *BUDGET)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(3, 0.5, 300), rng.normal(7, 0.5, 300)])
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *(f"{x:.3f},{x:.3f}" for x in values), ""]))
    return tmp_path


def loaded(folder, *words, names=HEAVY):
    """Exit code of a command of its own process, and which of some libraries it has loaded."""
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('LOADED', *(name for name in {names!r} if name in sys.modules)))\n"
        "from fogline.cli import main\n"
        f"sys.argv[1:] = {list(words)!r}\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.rpartition("LOADED")[2].split(), done.stderr


@pytest.mark.quick
def test_the_package_itself_loads_nothing_heavy(folder):
    code = f"import sys, fogline; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        ("modes", "--help"),
        ("ledger", "--help"),
        ("units",),
        ("release", "--help"),
        ("init", "--help"),
    ],
)
def test_help_loads_nothing_heavy(folder, words):
    assert loaded(folder, *words)[:2] == (0, [])


WRONG = {
    "unknown command": ("mode",),
    "unknown option": ("modes", "t.csv", "--bound", "0:1"),
    "missing option": ("modes", "t.csv", "--bounds", "0:1"),
    "missing file": ("modes", "none.csv", "--bounds", "0:10", *BUDGET),
    "kind of file": ("modes", "t.xls", "--bounds", "0:10", *BUDGET),
    "words for bounds": ("modes", "t.csv", "--bounds", "ten", *BUDGET),
    "bounds the wrong way round": ("modes", "t.csv", "--bounds", "10:0", *BUDGET),
    "epsilon": ("modes", "t.csv", "--bounds", "0:10", "--epsilon", "-1", "--delta", "1e-5"),
    "delta": ("modes", "t.csv", "--bounds", "0:10", "--epsilon", "1", "--delta", "2"),
    "level": (*MODES, "--level", "7"),
    "number of modes": (*MODES, "--n-modes", "0"),
    "place of a page": (*MODES, "--report", "nowhere/page.html"),
    "clusters": ("clusters", "none.csv", "--bounds", "0:10", *BUDGET),
    "clusters in no range": ("clusters", "t.csv", "--bounds", "1:1", *BUDGET),
    "regress": ("regress", "t.csv", "--x", "a", "--y", "b", "--x-bounds", "5:1", "--y-bounds", "0:1", *BUDGET),
    "fit": ("fit", "none.csv", "--column", "a", "--family", "normal", "--parameter-bounds", "mu=0:1", *BUDGET),
    "mixture": ("mixture", "none.csv", "--radius", "10", *BUDGET),
    "sample": ("sample", "none.csv", "--bounds", "0:10", "--draws", "3", "--per-draw-epsilon", "1"),
    "strata": ("strata", "none.csv", "--by", "b", "--categories", "x,y", "--bounds", "0:10", *BUDGET),
    "bounds": ("bounds", "none.csv", *BUDGET),
    "check": ("check", "none.csv"),
    "sketch": ("sketch", "none.csv", "--bounds", "0:1", "--site", "s", "--pass", "p", "--out", "s.sketch"),
    "merge": ("merge", "none.sketch", "--out", "all.sketch"),
    "release": ("release", "none.sketch", *BUDGET),
    "release of a table": ("release", "none.csv", "--bounds", "0:10", "--epsilon", "1", "--out", "a.fog"),
    "release in no range": ("release", "t.csv", "--bounds", "a=age,ten", "--epsilon", "1", "--out", "a.fog"),
    "card": ("card", "none.fog"),
    "ask": ("ask", "none.fog", "count"),
    "quantiles": ("quantiles", "none.fog"),
    "modes of no release": ("modes", "none.fog"),
    "recipe": ("run", "none.toml"),
    "init": ("init", "--file", "t.csv", "--out", "nowhere/a.toml"),
    "plan of no range": ("plan", "--bounds", "1:0", "--n", "100", "--delta", "1e-5"),
    "plan of no file": ("plan", "--bounds", "0:1", "--n", "100", "--delta", "1e-5", "--shape", "none.csv"),
    "plan": ("plan", "--bounds", "ten", "--n", "100", "--delta", "1e-5"),
    "audit": ("audit", "PrivateModes", "--bounds", "ten", *BUDGET),
    "audit of no range": ("audit", "PrivateModes", "--bounds", "1:0", *BUDGET),
    "demo": ("demo", "--out"),
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_words_is_told_before_anything_heavy_is_loaded(folder, words):
    code, found, told = loaded(folder, *words)
    assert code == 2
    assert "Error: " in told
    assert found == []


@pytest.mark.parametrize(
    "words",
    [
        ("modes", "t.csv", "--columns", "z", "--bounds", "0:10", *BUDGET),
        ("clusters", "t.csv", "--columns", "z", "--bounds", "0:10", *BUDGET),
        ("regress", "t.csv", "--x", "a", "--y", "z", "--x-bounds", "0:9", "--y-bounds", "0:9", *BUDGET),
        ("mixture", "t.csv", "--columns", "z", "--radius", "10", *BUDGET),
        ("sample", "t.csv", "--columns", "z", "--bounds", "0:10", "--draws", "3", "--per-draw-epsilon", "1"),
    ],
    ids=lambda words: words[0],
)
def test_a_schema_is_read_without_scipy(folder, words):
    names = ("scipy", "sklearn", "numba", "opendp", "pandas", "pyarrow")
    code, found, told = loaded(folder, *words, names=names)
    assert (code, found) == (2, []), told
    assert "column" in told


@pytest.mark.quick
@pytest.mark.parametrize(
    ("more", "names"),
    [
        (("--json",), ("rich", "jinja2", "fogline.report._plots")),
        ((), ("jinja2", "fogline.report._plots")),
        (("--report", "page.html"), ()),
    ],
)
def test_modes_load_only_what_they_need(folder, more, names):
    never = ("sklearn", "numba", "matplotlib", "pandas", "pyarrow", "duckdb", "scipy.stats", "scipy.optimize")
    code, found, told = loaded(folder, *MODES, *more, names=(*never, *names))
    assert (code, found) == (0, []), told


def test_who_expects_many_records_gets_compiled_loops(folder):
    pytest.importorskip("numba")
    assert loaded(folder, *MODES, "--expect-records", "499999", names=("numba",))[1] == []
    assert loaded(folder, *MODES, "--expect-records", "500000", names=("numba",))[1] == ["numba"]


def test_the_choice_of_loops_looks_at_no_record(folder):
    text = (folder / "t.csv").read_text().partition("\n")
    (folder / "t.csv").write_text(text[0] + text[1] + text[2] * 200)
    assert loaded(folder, *MODES, names=("numba",))[:2] == (0, [])


def test_plain_and_compiled_loops_count_the_same(folder):
    from fogline._validation import plain_loops
    from fogline.releases import DensitySketch, sketch

    spec = DensitySketch([(0, 10), (0, 10)]).spec
    compiled = sketch(folder / "t.csv", spec).table()
    with plain_loops():
        plain = sketch(folder / "t.csv", spec).table()
    assert compiled.sum() == 600
    np.testing.assert_array_equal(plain, compiled)


def test_linear_algebra_runs_in_one_thread_unless_the_user_says_how_many(monkeypatch):
    from fogline import cli

    for name in (*cli._THREADS, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    environment = {}
    monkeypatch.setattr(cli.os, "environ", environment)
    cli._use_one_blas_thread()
    assert environment == dict.fromkeys(cli._THREADS, "1")
    for name in (*cli._THREADS, "OMP_NUM_THREADS"):
        environment = {name: "3"}
        monkeypatch.setattr(cli.os, "environ", environment)
        cli._use_one_blas_thread()
        assert environment == {name: "3"}


def test_every_command_is_where_the_table_says():
    import click

    context = click.Context(app)
    assert {app.get_command(context, name).name for name in COMMANDS} == set(COMMANDS)
    assert set(COMMANDS) <= set(app.list_commands(context))


def test_every_kind_of_release_is_registered_whole():
    for name, kind in page.KINDS.items():
        assert kind.get("findings").kind == name
        for part in ("document", "table", "content", "title"):
            assert callable(kind.get(part))
    for estimator, finder in page.FINDERS.items():
        module, _, cls = estimator.partition(":")
        assert isinstance(getattr(__import__(module, fromlist=[cls]), cls), type)
        assert callable(page._imported(finder))


def test_what_has_no_report_is_refused():
    with pytest.raises(TypeError, match="estimator: there is no report for int"):
        page.finder_of(3)
