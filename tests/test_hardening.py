"""What a curious, careless or hostile user may try: records must stay where they are, and budgets be counted."""

from __future__ import annotations

import functools
import logging
import os
import pickle
import re
import struct
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from fogline import DensitySketch, PrivateDensity, PrivateModes
from fogline.accounting import Cost
from fogline.audit.observation import flatten, observe
from fogline.ledger import Ledger, LedgerRefused, Question, ReleaseFailed
from fogline.mechanisms import (
    above_threshold,
    add_gaussian,
    add_laplace,
    choose,
    private_count,
    stable_histogram,
)
from fogline.releases import density_sketch
from fogline.releases.passes import CountingPass
from fogline.report import find, render_report, write_report
from fogline.testing import seeded_noise
from fogline_research import as_published as published
from fogline_research.baselines import noisy_histogram_modes

SENTINEL = 8.123456789012345
NEEDLES = (
    b"8.12345678",  # repr, and any decimal text of ten digits or more
    struct.pack("<d", SENTINEL),
    struct.pack(">d", SENTINEL),
    struct.pack("<f", SENTINEL),
    float.hex(SENTINEL).encode(),
)
BUDGET = {"epsilon": 0.5, "delta": 1e-6}
CONSTANT = str(ReleaseFailed())


def secret(n: int = 60) -> np.ndarray:
    """Records around 3 and the sentinel, twice, so that neither the first nor the last row is special."""
    X = np.random.default_rng(0).normal(3.0, 0.5, (n, 1))
    X[[n // 3, n // 2]] = SENTINEL
    return X


def modes(**options) -> PrivateModes:
    return PrivateModes(**{**BUDGET, "bounds": [(0, 10)], "bandwidth": 0.1, **options})


def shows(content: object) -> bool:
    """Whether the sentinel is in bytes, text, or anything that can be reached from an object."""
    if isinstance(content, bytes):
        return any(needle in content for needle in NEEDLES)
    if isinstance(content, str):
        return shows(content.encode())
    leaves: dict[str, object] = {}
    flatten(content, "", leaves)
    return any(shows(leaf) for parts in leaves.values() for leaf in _plain(parts))


def _plain(leaf: object) -> list[bytes | str]:
    if isinstance(leaf, tuple | list):
        return [found for part in leaf for found in _plain(part)]
    return [leaf] if isinstance(leaf, bytes | str) else [repr(leaf)]


def outcome(act) -> BaseException | None:
    """Act, and return what was raised, if anything."""
    try:
        act()
    except Exception as error:
        return error
    return None


@pytest.fixture
def ledger(tmp_path):
    options = {"dataset": "patients", "epsilon": 3.0, "delta": 1e-6, "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "ledger", **options) as made:
        yield made


def kinds(ledger) -> list[str]:
    return [entry.kind for entry in ledger.history()]


# -- a recognisable record ------------------------------------------------------------------------------------


def test_the_search_would_find_it(tmp_path):
    X = secret()
    np.savetxt(tmp_path / "records.csv", X)
    holder = DensitySketch([(0, 10)])
    holder.kept = {"deep": [X]}
    for leak in (X, X.tolist(), holder, f"failed at {SENTINEL}", pickle.dumps(X), X.byteswap(), lambda: X):
        assert shows(leak)
    assert shows((tmp_path / "records.csv").read_bytes()) is True
    assert shows(secret()[:5])  # a view, whose base is all of it
    assert not shows(secret()[:5].copy())


@pytest.mark.parametrize("paid", [False, True])
def test_a_fit_lets_nothing_out(paid, tmp_path, ledger):
    """Attributes, pickle, repr, logs, warnings, printed text and files."""
    seen = observe(modes(ledger=ledger if paid else None).fit, secret(), look=False)
    assert not seen.exception
    fitted = seen.result
    fitted.set_params(ledger=None)
    for part in (vars(fitted), seen.text, seen.logs, seen.caught, seen.output, pickle.dumps(fitted), repr(fitted)):
        assert not shows(part)
    assert not any(shows(content) for content in seen.files.values())
    assert not any(shows(path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_fit_on_a_file_lets_nothing_out(form, tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / f"records.{form}"
    if form == "csv":
        path.write_text("age\n" + "\n".join(repr(float(x)) for x in secret()[:, 0]) + "\n8.12345678901234x\n")
    else:
        pytest.importorskip("pandas").DataFrame(secret(), columns=["age"]).to_parquet(path)
    seen = observe(modes().fit, path, look=False)
    assert not seen.exception
    for part in (vars(seen.result), seen.pickled, seen.text, seen.logs, seen.caught, seen.output):
        assert not shows(part)
    assert not any(shows(content) for content in seen.files.values())


def test_what_is_saved_or_reported_lets_nothing_out(tmp_path):
    fitted = modes().fit(secret())
    fitted.density_.save(tmp_path / "density.npz")
    write_report(fitted, tmp_path / "report.html")
    with np.load(tmp_path / "density.npz", allow_pickle=False) as held:
        assert not any(shows(held[name].tobytes()) or shows(str(held[name])) for name in held.files)
    assert not any(shows(path.read_bytes()) for path in tmp_path.iterdir())
    assert not shows(render_report(find(fitted)))
    assert not shows(PrivateDensity.load(tmp_path / "density.npz"))


def test_a_sketch_is_not_pickled_and_shows_only_its_plan():
    sketch = DensitySketch([(0, 10)]).update(secret())
    assert not shows(repr(sketch))
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(sketch)


def test_attributes_outside_the_list_do_not_survive():
    fitted = modes().fit(secret())
    fitted.remembered_ = secret()
    assert not shows(pickle.dumps(fitted))
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "remembered_")
    assert not shows(clone(fitted).__dict__)


BAD = {
    "complex numbers": lambda: secret() + 1j,
    "two columns for one": lambda: np.column_stack([secret(), secret()]),
    "three axes": lambda: secret()[None, :, :],
    "dates": lambda: (secret() * 1e9).astype("M8[ns]"),
    "a record array": lambda: np.array([(SENTINEL,)], dtype=[("age", "f8")]),
    "a mapping": lambda: {"age": [SENTINEL]},
    "a number": lambda: SENTINEL,
    "a missing file": lambda: f"/nowhere/{'records'}.csv",
}


@pytest.mark.parametrize("name", BAD)
def test_errors_before_a_release_do_not_quote_the_data(name, ledger):
    raised = outcome(lambda: modes(ledger=ledger).fit(BAD[name]()))
    if raised is not None:  # what can be read as records is
        assert isinstance(raised, TypeError | ValueError | OSError)
        assert not shows("".join(traceback.format_exception(raised)))
        assert kinds(ledger).count("reserve") == 0, "an error in the schema is free"


# -- after a reserve ------------------------------------------------------------------------------------------


def failing(name: str, monkeypatch) -> object:
    """Make the release fail once the data were touched, each time in another way; return the data."""
    X = secret()
    if name == "arithmetic":

        def sums(counts, spec):
            raise FloatingPointError(f"at {SENTINEL} of {counts.sum()}, {X.tolist()}")

        monkeypatch.setattr(density_sketch, "lattice_sums", sums)
    elif name == "memory":

        def update(self, rows):
            raise MemoryError(f"{SENTINEL} is one too many")

        monkeypatch.setattr(DensitySketch, "update", update)
    elif name == "exit":

        def stop(self, rows):
            raise SystemExit(f"{SENTINEL}")

        monkeypatch.setattr(DensitySketch, "update", stop)
    return X


@pytest.mark.parametrize("name", ["arithmetic", "memory", "exit"])
@pytest.mark.parametrize("whole", [True, False], ids=["PrivateModes", "DensitySketch"])
def test_after_a_reserve_there_is_one_constant_error(name, whole, ledger, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    if whole:
        X = failing(name, monkeypatch)

        def run(X):
            return modes(ledger=ledger).fit(X)
    else:
        sketch = DensitySketch([(0, 10)]).update(secret())
        X = failing("arithmetic", monkeypatch)

        def run(X):
            return sketch.release(**BUDGET, ledger=ledger)

    with pytest.raises(ReleaseFailed) as caught:
        run(X)
    error = caught.value
    assert (type(error), str(error), error.args) == (ReleaseFailed, CONSTANT, (CONSTANT,))
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not getattr(error, "__notes__", [])
    assert not shows(caplog.text)
    assert not shows("".join(traceback.format_exception(error)))
    assert kinds(ledger)[-1] == "reserve", "what was reserved stays spent"
    assert not any(shows(frame.f_locals) for frame in own_frames(error))


def own_frames(error: BaseException) -> list:
    """Frames of fogline's code that a traceback leads to."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    found = [frame for frame in frames if "fogline" in Path(frame.f_code.co_filename).parts]
    assert found
    return found


def test_a_frame_that_held_the_records_would_be_found(ledger, monkeypatch):
    X = failing("arithmetic", monkeypatch)
    monkeypatch.setattr(CountingPass, "forget", lambda self: None)
    raised = outcome(lambda: modes(ledger=ledger).fit(X))
    assert isinstance(raised, ReleaseFailed)
    assert any(shows(frame.f_locals) for frame in own_frames(raised))


def test_the_error_of_a_file_that_changes_is_the_same(ledger, tmp_path):
    """The header is public and read first; what is wrong with the rows is never said."""
    pytest.importorskip("duckdb")
    path = tmp_path / "records.csv"
    path.write_text("age\n1\n2\n")
    estimator = modes(ledger=ledger)
    ask = type(ledger).spend

    def removed(self, *args, **options):
        path.unlink(missing_ok=True)
        return ask(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ledger), "spend", removed)
        with pytest.raises(ReleaseFailed) as caught:
            estimator.fit(path)
    assert str(caught.value) == CONSTANT
    assert caught.value.__context__ is None


# -- what a ledger refuses ------------------------------------------------------------------------------------


def test_a_ledger_refuses_seeds_and_uncertified_algorithms(ledger):
    before = kinds(ledger)
    with seeded_noise(1), pytest.raises(LedgerRefused, match="certified"):
        modes(ledger=ledger).fit(secret())
    with seeded_noise(1), pytest.raises(LedgerRefused, match="certified"):
        DensitySketch([(0, 10)]).update(secret()).release(**BUDGET, ledger=ledger)
    claim = published.dp_grams(secret(), epsilon=0.5, delta=1e-6, random_state=0).guarantee
    with pytest.raises(LedgerRefused, match="certified"):
        ledger.spend(
            Question("patients", "1", "dp-grams", "1"),
            cost=Cost(0.001),
            neighbours="add-remove",
            certified=claim.certified,
            release=lambda: b"",
        )
    with pytest.raises(TypeError, match="ledger"):
        published.dp_grams(secret(), epsilon=0.5, delta=1e-6, ledger=ledger)
    assert kinds(ledger) == before


def test_no_seed_no_weights_no_score():
    with pytest.raises(TypeError, match="random_state"):
        modes(random_state=0)
    with pytest.raises(TypeError, match="sample_weight"):
        modes().fit(secret(), sample_weight=np.ones(60))
    fitted = modes().fit(secret())
    for name in ("score", "score_samples", "labels_", "n_samples_", "X_", "fit_predict"):
        assert not hasattr(fitted, name), name


def test_a_grid_search_needs_a_score_and_each_fit_is_a_reserve(ledger):
    """With scikit-learn's defaults it is refused before any fit; with a scorer, the ledger shows what it costs."""
    grid = {"epsilon": [0.2, 0.4]}
    X = secret()
    with pytest.raises(TypeError, match="score"):
        GridSearchCV(modes(ledger=ledger), grid, cv=2).fit(X)
    with pytest.raises(TypeError, match="score"):
        cross_val_score(modes(ledger=ledger), X, cv=2)
    assert kinds(ledger).count("reserve") == 0
    left = ledger.remaining().rho
    search = GridSearchCV(modes(ledger=ledger), grid, cv=2, refit=False, scoring=lambda fitted, X, y=None: 0.0)
    search.fit(X)
    assert kinds(ledger).count("reserve") == 4, "two settings, two folds"
    spent = 2 * sum(modes(epsilon=epsilon, ledger=ledger).cost().rho for epsilon in grid["epsilon"])
    assert left - ledger.remaining().rho == pytest.approx(spent)


def test_each_fold_is_answered_from_its_own_records(ledger):
    """Folds that lie apart: an answer of another fold would show the wrong mode."""
    X = np.concatenate([np.full((400, 1), 2.0), np.full((400, 1), 8.0)])
    seen = []

    def scoring(fitted, held_out, y=None):
        seen.append((float(fitted.modes_[0, 0]), float(held_out[0, 0])))
        return 0.0

    search = GridSearchCV(modes(epsilon=1.0, ledger=ledger), {"n_modes": [1]}, cv=KFold(2), scoring=scoring)
    search.fit(X)
    assert [round(found + held_out) for found, held_out in seen] == [10, 10]
    assert kinds(ledger).count("reserve") == 3, "two folds, and the fit on all records"


def test_the_same_question_with_other_records_has_the_old_answer(ledger):
    """Nothing of the records is in a question, not even their number: who means others says so."""
    near, far = np.full((400, 1), 2.0), np.full((400, 1), 8.0)
    fitted = {name: modes(epsilon=1.0, ledger=ledger).fit(X) for name, X in (("near", near), ("far", far))}
    assert fitted["near"].density_ == fitted["far"].density_
    assert fitted["near"].density_.receipt == fitted["far"].density_.receipt
    assert kinds(ledger).count("reserve") == 1
    anew = modes(epsilon=1.0, ledger=ledger.on().afresh()).fit(far)
    assert abs(anew.modes_[0, 0] - 8.0) < 1.0
    assert kinds(ledger).count("reserve") == 2


def test_a_search_that_cannot_be_paid_for_stops(tmp_path):
    options = {"dataset": "patients", "epsilon": 0.5, "delta": 1e-6, "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "small", **options) as ledger:
        search = GridSearchCV(
            modes(ledger=ledger),
            {"epsilon": [0.4, 0.45]},
            cv=2,
            refit=False,
            error_score="raise",
            scoring=lambda *_: 0.0,
        )
        with pytest.raises(LedgerRefused, match="budget"):
            search.fit(secret())
        assert kinds(ledger).count("reserve") == 1


# -- forks ----------------------------------------------------------------------------------------------------


def in_child(act) -> bytes:
    """Fork, act, and return what the child's act returned, or the name of what it raised."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where threads are around
        child = os.fork()
    if child == 0:
        answer = b"nothing"
        try:
            answer = act()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}".encode()
        finally:
            os.write(write, answer[:60_000])
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def test_forked_children_never_draw_the_same_noise():
    def noise() -> bytes:
        zeros = np.zeros(8, dtype=np.int64)
        gaussian = add_gaussian(lambda: zeros, size=8, sensitivity=1e6, rho=0.5).values
        laplace = add_laplace(lambda: zeros, size=8, sensitivity=1e6, epsilon=1.0).values
        return gaussian.tobytes() + laplace.tobytes()

    def fit() -> bytes:
        return modes().fit(secret()).density_.coefficients.tobytes()

    for act in (noise, fit):
        here = act()
        there = [in_child(act) for _ in range(3)]
        numbers = [np.frombuffer(drawn, dtype=np.int64 if act is noise else np.float64) for drawn in (here, *there)]
        assert all(len(drawn) == len(numbers[0]) for drawn in numbers)
        for first in range(4):
            for second in range(first):
                # two large draws are equal by chance about once in a million; the zero imaginary parts do not count
                same = (numbers[first] == numbers[second]) & (numbers[first] != 0)
                assert np.sum(same) <= 1


def test_a_handle_and_a_sketch_do_not_work_in_a_child(ledger):
    sketch = DensitySketch([(0, 10)]).update(secret())
    assert in_child(lambda: str(ledger.remaining()).encode()).startswith(b"LedgerRefused")
    assert in_child(lambda: modes(ledger=ledger).fit(secret()) and b"fitted").startswith(b"LedgerRefused")
    answer = in_child(lambda: sketch.release(**BUDGET) and b"released")
    assert b"released" not in answer.split(b":")[0]
    assert not shows(answer)
    assert kinds(ledger).count("reserve") == 0
    modes(ledger=ledger).fit(secret())
    assert ledger.verify() == 4


# -- bit patterns ---------------------------------------------------------------------------------------------

SPECIAL = [
    0x0000000000000000,
    0x8000000000000000,  # minus zero
    0x0000000000000001,  # the least subnormal
    0x800FFFFFFFFFFFFF,
    0x7FEFFFFFFFFFFFFF,  # the greatest float
    0xFFEFFFFFFFFFFFFF,
    0x7FF0000000000000,  # infinities
    0xFFF0000000000000,
    0x7FF8000000000000,  # NaNs: quiet, with payloads, signalling
    0xFFF80000DEADBEEF,
    0x7FF0000000000001,
    0xFFFFFFFFFFFFFFFF,
    0x3FF0000000000000,
    0x4024000000000000,
]
patterns = st.one_of(st.sampled_from(SPECIAL), st.integers(0, 2**64 - 1))


def floats_of(bits) -> np.ndarray:
    return np.array(bits, dtype=np.uint64).view(np.float64)


tables = st.lists(st.tuples(patterns, patterns), max_size=12).map(lambda rows: floats_of(rows).reshape(-1, 2))
numbers = patterns.map(lambda bits: float(floats_of([bits])[0]))


@given(tables)
def test_a_sketch_takes_any_bits_and_counts_what_lies_inside(X):
    box = [(-1.0, 10.0), (0.0, 2.0)]
    _, counts = DensitySketch(box).update(X).state()
    inside = (X[:, 0] >= -1) & (X[:, 0] <= 10) & (X[:, 1] >= 0) & (X[:, 1] <= 2)
    assert counts.sum() == inside.sum()
    as_list = DensitySketch(box).update(X.tolist()) if len(X) else DensitySketch(box)
    assert all(np.array_equal(a, b) for a, b in zip(as_list.state(), DensitySketch(box).update(X).state(), strict=True))


@settings(max_examples=25)
@given(st.lists(patterns, max_size=8))
def test_a_fit_takes_any_bits(bits):
    seen = observe(modes().fit, floats_of(bits).reshape(-1, 1), look=False)
    assert not seen.exception
    assert not any([seen.logs, seen.caught, seen.output, *seen.files.values()])


@functools.cache
def released() -> PrivateDensity:
    return modes().fit(secret()).density_


@settings(max_examples=25)
@given(st.lists(patterns, min_size=1, max_size=8))
def test_a_release_is_read_at_any_bits(bits):
    """Whoever holds a record may read the density there; what is no place has no density, without a word."""
    x = floats_of(bits).reshape(-1, 1)
    far = ~(np.abs(np.nan_to_num(x[:, 0], nan=np.inf)) < 1e100)
    for read in (released().pdf, released().gradient, released().hessian):
        assert np.array_equal(np.isnan(read(x)).reshape(len(x), -1).any(axis=1), far)


@settings(max_examples=25)
@given(st.lists(patterns, max_size=8))
def test_a_contender_takes_any_bits(bits):
    x = floats_of(bits).reshape(-1, 1)
    found = noisy_histogram_modes(x, **BUDGET, bounds=[(0, 10)], bandwidth=1.0, n_modes=1)
    assert found.guarantee.certified


@given(st.lists(patterns, min_size=1, max_size=9))
def test_mechanisms_take_any_bits(bits):
    values, integers, size = floats_of(bits), np.array(bits, dtype=np.uint64).view(np.int64), len(bits)
    assert 0 <= choose(lambda: values, size=size, sensitivity=1.0, epsilon=1.0) < size
    assert 0 <= choose(lambda: integers, size=size, sensitivity=1.0, epsilon=1.0) < size
    for noisy in (
        add_gaussian(lambda: integers, size=size, sensitivity=1.0, rho=0.5).values,
        add_laplace(lambda: integers, size=size, sensitivity=1.0, epsilon=1.0).values,
    ):
        assert np.abs(noisy).max() <= 2**61
    first = above_threshold(lambda: integers, size=size, threshold=0, sensitivity=1, epsilon=1.0)
    assert first is None or 0 <= first < size
    shown = stable_histogram(lambda: [*values.tolist(), *integers.tolist()], epsilon=1.0, delta=1e-9)
    assert all(isinstance(key, int) for key in shown.counts)
    assert private_count(lambda: int(integers[0]), epsilon=1.0).value >= 0


PARAMETERS = {
    "epsilon": lambda x: modes(epsilon=x).cost(),
    "delta": lambda x: modes(delta=x).cost(),
    "bounds": lambda x: DensitySketch([(0.0, x)]),
    "bandwidths": lambda x: DensitySketch([(0.0, 1.0)], bandwidths=[x]),
    "steps": lambda x: DensitySketch([(0.0, 1.0)], steps=x),
    "max_contributions": lambda x: modes(max_contributions=x).cost(),
    "rho|scale": lambda x: add_gaussian(lambda: np.zeros(1, dtype=int), size=1, sensitivity=1.0, rho=x),
    "sensitivity|scale": lambda x: add_gaussian(lambda: np.zeros(1, dtype=int), size=1, sensitivity=x, rho=0.5),
    "epsilon|scale": lambda x: add_laplace(lambda: np.zeros(1, dtype=int), size=1, sensitivity=1.0, epsilon=x),
    "sensitivity|epsilon": lambda x: choose(lambda: np.arange(3.0), size=3, sensitivity=x, epsilon=1.0),
    "size": lambda x: add_gaussian(lambda: np.zeros(1, dtype=int), size=x, sensitivity=1.0, rho=0.5),
}


def require_named(names: str, raised: BaseException | None) -> None:
    if raised is not None and not isinstance(raised, TypeError | ValueError):
        raise raised
    assert raised is None or re.search(names, str(raised)), f"{type(raised).__name__}: {raised}"


@pytest.mark.parametrize("names", PARAMETERS)
@settings(max_examples=40)
@given(value=numbers)
def test_a_parameter_of_any_bits_works_or_is_named(names, value):
    require_named(names, outcome(lambda: PARAMETERS[names](value)))


@pytest.mark.parametrize(
    ("names", "value"),
    [
        ("bandwidths", float(floats_of([0x7FF0000000000001])[0])),
        ("bandwidths", 5e-324),
        ("bandwidths", 1e-30),
        ("steps", 5e-324),
        ("steps", 1e-30),
        ("rho|scale", 5e-324),
        ("sensitivity|scale", 1.7976931348623157e308),
        ("epsilon|scale", 5e-324),
    ],
)
def test_an_extreme_parameter_is_named(names, value):
    raised = outcome(lambda: PARAMETERS[names](value))
    assert isinstance(raised, ValueError)
    require_named(names, raised)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-200, 0.5])
def test_a_tiny_sensitivity_is_taken_as_one_step(sensitivity):
    assert PARAMETERS["sensitivity|scale"](sensitivity).event.sensitivity == 1.0


@settings(max_examples=25)
@given(tables)
def test_published_algorithms_take_any_bits_or_name_the_parameter(X):
    for run in (
        lambda: published.dp_grams(X, epsilon=1.0, delta=1e-5, random_state=0),
        lambda: published.mean_shift(X),
    ):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # overflow: they promise nothing
            require_named(r"\b(X|bandwidth|starts)\b", outcome(run))


# -- the page that says so ------------------------------------------------------------------------------------


def test_the_threat_model_names_tests_that_exist():
    root = Path(__file__).parent.parent
    text = (root / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text))
    assert len(named) > 20
    for path, function in named:
        assert f"def {function}" in (root / path).read_text(encoding="utf-8"), f"{path}::{function}"
