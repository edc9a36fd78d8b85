"""Identity of records: files, copies and snapshots are not merged with each other, and released once between them."""

import json
import multiprocessing
import os
import shutil
import stat
import threading
import warnings

import numpy as np
import pytest

from fogline import DensitySketch, Ledger
from fogline._validation import state_directory
from fogline.ledger.files import default_directory
from fogline.queries.fourier_sums import CellCounts
from fogline.releases import density_sketch as record_counts
from fogline.releases import origins
from fogline.releases import origins as release_marks
from fogline.releases import origins as secret_files
from fogline.releases.density_sketch import AlreadyReleased
from fogline.releases.origins import UNCOUNTED, Origin
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
TWICE = "holds the same records"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "fogline" / "released"


def sketch_of(seed=0):
    return DensitySketch([(0, 10)]).update(np.random.default_rng(seed).normal(5, 1, (200, 1)))


def saved(sketch, path):
    sketch.save(path)
    return path


def forget_process():
    """As in a new process: no origin is known."""
    origins._KNOWN.clear()


def old_file(sketch, path, payers=("",)):
    keys, counts = sketch.state()
    header = {"format": "fogline-sketch-1", "secret": True, "spec": sketch.spec.to_dict(), "payers": list(payers)}
    with path.open("wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), keys=keys, counts=counts)
    return path


def header_of(path):
    with np.load(path) as data:
        return json.loads(str(data["header"]))


# -- each record once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anew", [False, True], ids=["one process", "another process"])
def test_what_holds_the_same_records_is_not_merged(tmp_path, anew):
    stream = sketch_of()
    path = saved(stream, tmp_path / "a.npz")
    copied = shutil.copy(path, tmp_path / "copy.npz")
    later = saved(stream.update([[5.0]]), tmp_path / "later.npz")
    part = saved(stream.merge(sketch_of(1)), tmp_path / "sum.npz")
    if anew:
        forget_process()
    first = DensitySketch.load(path)
    for other in (first, *map(DensitySketch.load, (path, copied, later, part))):
        with pytest.raises(ValueError, match=TWICE):
            first.merge(other)
        with pytest.raises(ValueError, match=TWICE):
            other.merge(first)
    with pytest.raises(ValueError, match=TWICE):
        DensitySketch.load(part).merge(DensitySketch.load(later).merge(sketch_of(2)))
    assert first.merge(sketch_of(3)).state()[1].sum() > 300


def test_a_template_without_records_serves_many(tmp_path):
    path = saved(DensitySketch([(0, 10)]), tmp_path / "template.npz")
    one, two = (DensitySketch.load(path).update([[x]]) for x in (1.0, 2.0))
    assert one.merge(two).table().sum() == 2
    spent = DensitySketch([(0, 10)])
    spent.release(**BUDGET)
    with pytest.raises(AlreadyReleased):
        DensitySketch.load(saved(spent, tmp_path / "spent.npz")).update([[1.0]]).release(**BUDGET)


def test_old_files_that_are_one_file_are_not_merged(tmp_path):
    path = old_file(sketch_of(), tmp_path / "old.npz")
    link = tmp_path / "link.npz"
    link.symlink_to(path)
    first = DensitySketch.load(path)
    for other in (path, link):
        with pytest.raises(ValueError, match=TWICE):
            first.merge(DensitySketch.load(other))
    assert first.merge(DensitySketch.load(old_file(sketch_of(1), tmp_path / "other.npz"))).table().sum() > 300


def test_counting_that_was_interrupted_is_not_resumed(monkeypatch):
    """Else the rows of the first part would count twice when the call is repeated."""
    sketch = sketch_of()
    real = CellCounts.add_rows

    def interrupted(self, rows):
        real(self, rows[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(CellCounts, "add_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sketch.update(np.full((200, 1), 5.0))
    monkeypatch.undo()
    for act in (
        lambda: sketch.update([[5.0]]),
        lambda: sketch.subtract([[5.0]]),
        lambda: sketch.merge(sketch_of(1)),
        sketch.state,
        sketch.table,
        lambda: sketch.save("nowhere"),
        lambda: sketch.release(**BUDGET),
    ):
        with pytest.raises(RuntimeError, match="counting was interrupted"):
            act()


def test_a_bad_batch_spoils_nothing():
    sketch = sketch_of()
    before = sketch.table()
    with pytest.raises(ValueError, match="X must"):
        sketch.update(np.ones((3, 2)))
    with pytest.raises(ValueError, match="negative"):
        sketch.add_cells(np.array([1]), np.array([-1]))
    assert np.array_equal(sketch.update(np.zeros((0, 1))).table(), before)


def test_threads_count_every_record_once():
    sketch = DensitySketch([(0, 1)] * 2, bandwidths=0.02)
    rows = np.random.default_rng(0).uniform(0, 1, (20_000, 2))
    barrier = threading.Barrier(4)

    def count():
        barrier.wait()
        for part in np.array_split(rows, 10):
            sketch.update(part)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(sketch.table(), 4 * DensitySketch.of(sketch.spec).update(rows).table())


def test_a_table_is_a_copy():
    sketch = sketch_of()
    sketch.table()[:] = 10**6
    assert sketch.table().sum() <= 200


# -- released once ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anew", [False, True], ids=["one process", "another process"])
@pytest.mark.parametrize("old", [False, True], ids=["file", "file of version 1"])
def test_a_file_is_released_once(tmp_path, anew, old):
    path = old_file(sketch_of(), tmp_path / "a.npz") if old else saved(sketch_of(), tmp_path / "a.npz")
    with seeded_noise(0):
        DensitySketch.load(path).release(**BUDGET)
    for _ in range(3):
        if anew:
            forget_process()
        with pytest.raises(AlreadyReleased):
            DensitySketch.load(path).release(**BUDGET)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(header_of(path)["runs"].values()) == [UNCOUNTED]


@pytest.mark.parametrize("released", ["original", "copy", "later", "sum", "in memory"])
def test_what_holds_released_records_is_released(tmp_path, released):
    stream = sketch_of()
    paths = {"original": saved(stream, tmp_path / "a.npz")}
    paths["copy"] = shutil.copy(paths["original"], tmp_path / "copy.npz")
    paths["later"] = saved(stream.update([[5.0]]), tmp_path / "later.npz")
    paths["sum"] = saved(stream.merge(sketch_of(1)), tmp_path / "sum.npz")
    with seeded_noise(0):
        (stream if released == "in memory" else DensitySketch.load(paths[released])).release(**BUDGET)
    forget_process()
    for path in paths.values():
        with pytest.raises(AlreadyReleased):
            DensitySketch.load(path).release(**BUDGET)
    with pytest.raises(AlreadyReleased):
        stream.release(**BUDGET)


def test_the_mark_goes_where_the_file_goes(tmp_path, monkeypatch):
    path = saved(sketch_of(), tmp_path / "a.npz")
    before = shutil.copy(path, tmp_path / "before.npz")
    with seeded_noise(0):
        DensitySketch.load(path).release(**BUDGET)
    forget_process()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with pytest.raises(AlreadyReleased):
        DensitySketch.load(shutil.copy(path, tmp_path / "after.npz")).release(**BUDGET)
    with seeded_noise(0):  # what cannot be seen, as docs/federation.md says
        DensitySketch.load(before).release(**BUDGET)


def test_both_parts_of_a_sum_are_marked(tmp_path):
    paths = [saved(sketch_of(i), tmp_path / f"{i}.npz") for i in range(2)]
    with seeded_noise(0):
        DensitySketch.load(paths[0]).merge(DensitySketch.load(paths[1])).release(**BUDGET)
    for path in paths:
        assert list(header_of(path)["runs"].values()) == [UNCOUNTED]
        with pytest.raises(AlreadyReleased):
            DensitySketch.load(path).release(**BUDGET)


def test_saving_again_does_not_take_the_mark_back(tmp_path):
    stream = sketch_of()
    path = saved(stream, tmp_path / "a.npz")
    with seeded_noise(0):
        stream.release(**BUDGET)
    stream._origins[0].payer = ""  # another process released it, and this one does not know
    saved(stream.update([[5.0]]), path)
    assert list(header_of(path)["runs"].values()) == [UNCOUNTED]
    stream._origins[0].payer = ""
    shutil.rmtree(state_directory())  # then the file itself knows
    saved(stream, path)
    assert stream.payers == [UNCOUNTED]


def test_an_old_file_that_was_marked_since_is_not_saved_over_unmarked(tmp_path):
    path = old_file(sketch_of(), tmp_path / "old.npz")
    mine = DensitySketch.load(path)
    old_file(sketch_of(), path, [UNCOUNTED])  # by another process, which has another id for it
    saved(mine, path)
    with pytest.raises(AlreadyReleased):
        DensitySketch.load(path).release(**BUDGET)


def test_old_marks_are_kept(tmp_path):
    for payers in ([UNCOUNTED], ["", UNCOUNTED], ["a", "b"]):
        with pytest.raises(AlreadyReleased):
            DensitySketch.load(old_file(sketch_of(), tmp_path / "old.npz", payers)).release(**BUDGET)


def test_sketches_that_no_file_holds_leave_no_note(state):
    with seeded_noise(0):
        sketch_of().merge(sketch_of(1)).release(**BUDGET)
    assert not state.exists()


def test_notes_are_for_their_owner_and_say_nothing_of_the_records(tmp_path, state):
    path = saved(sketch_of(), tmp_path / "a.npz")
    with seeded_noise(0):
        DensitySketch.load(path).release(**BUDGET)
    (note,) = [file for file in state.iterdir() if file.name != ".lock"]
    assert note.read_text() == UNCOUNTED
    assert [note.name] == list(header_of(path)["runs"])
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert state_directory() == default_directory()


def test_ledgers_share_nothing(tmp_path):
    path = saved(sketch_of(), tmp_path / "a.npz")
    copied = shutil.copy(path, tmp_path / "copy.npz")
    books = [
        Ledger.create(tmp_path / name, dataset="x", epsilon=2.0, delta=1e-5, high_water=tmp_path / "marks")
        for name in ("one", "two")
    ]
    first = DensitySketch.load(path).release(epsilon=0.3, delta=1e-6, ledger=books[0])
    forget_process()
    assert DensitySketch.load(copied).release(epsilon=0.3, delta=1e-6, ledger=books[0]) == first
    assert DensitySketch.load(path).release(epsilon=0.2, delta=1e-6, ledger=books[0]) != first
    for ledger in (books[1], None):
        forget_process()
        with pytest.raises(AlreadyReleased):
            DensitySketch.load(copied).release(epsilon=0.3, delta=1e-6, ledger=ledger)
    assert books[1].remaining().epsilon == pytest.approx(2.0)
    for ledger in books:
        ledger.close()


# -- on doubt -----------------------------------------------------------------------------------------------------


def test_the_mark_is_there_before_noise_is_drawn(tmp_path, monkeypatch, state):
    path = saved(sketch_of(), tmp_path / "a.npz")
    seen = []

    def draw(*args, **options):
        seen.append((list(header_of(path)["runs"].values()), len(list(state.iterdir()))))
        raise KeyboardInterrupt

    monkeypatch.setattr("fogline.releases.terms.add_rounded_gaussian", draw)
    with pytest.raises(KeyboardInterrupt):
        DensitySketch.load(path).release(**BUDGET)
    assert seen == [([UNCOUNTED], 2)]
    forget_process()
    with pytest.raises(AlreadyReleased):
        DensitySketch.load(path).release(**BUDGET)


def test_what_cannot_be_noted_is_not_released(tmp_path, monkeypatch):
    path = saved(sketch_of(), tmp_path / "a.npz")
    (tmp_path / "state").write_text("no folder")
    sketch = DensitySketch.load(path)
    with pytest.raises(OSError, match="cannot be noted"):
        sketch.release(**BUDGET)
    (tmp_path / "state").unlink()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr("pathlib.Path.home", classmethod(lambda cls: (_ for _ in ()).throw(RuntimeError("no home"))))
    with pytest.raises(OSError, match="cannot be noted"):
        sketch.release(**BUDGET)
    saved(sketch, path)  # a snapshot needs no home
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with seeded_noise(0):
        assert sketch.release(**BUDGET).count > 1  # nothing was spent by the refusals


def test_a_file_that_cannot_be_marked_is_not_released(tmp_path, monkeypatch, state):
    path = saved(sketch_of(), tmp_path / "a.npz")

    def full(target, content, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(release_marks, "write_secret", full)
    with pytest.raises(OSError, match="cannot be noted"):
        DensitySketch.load(path).release(**BUDGET)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert [file.name for file in state.iterdir()] == [".lock"]
    with seeded_noise(0):
        DensitySketch.load(path).release(**BUDGET)


def test_a_note_that_cannot_be_read_counts_as_one(tmp_path, state):
    path = saved(sketch_of(), tmp_path / "a.npz")
    (run,) = header_of(path)["runs"]
    state.mkdir(parents=True)
    for content in (b"", b"\xff\xfe"):
        (state / run).write_bytes(content)
        with pytest.raises(AlreadyReleased):
            DensitySketch.load(path).release(**BUDGET)
    (state / run).unlink()
    (state / run).mkdir()
    with pytest.raises(AlreadyReleased):
        DensitySketch.load(path).release(**BUDGET)


@pytest.mark.parametrize("now", ["gone", "text", "list", "folder"])
def test_a_file_that_is_no_sketch_any_more_is_left_alone(tmp_path, now):
    path = saved(sketch_of(), tmp_path / "a.npz")
    sketch = DensitySketch.load(path)
    path.unlink()
    if now == "text":
        path.write_text("notes")
    elif now == "list":
        np.savez(path, header=np.array("[]"))
    elif now == "folder":
        path.mkdir()
        with pytest.raises(OSError, match="cannot be noted"):  # a doubt
            sketch.release(**BUDGET)
        return
    with seeded_noise(0):
        sketch.release(**BUDGET)
    assert path.exists() == (now != "gone")


def test_two_payers_cannot_be_counted_by_either():
    origin = Origin(payer="one")
    origin.note("")
    origin.note("one")
    assert origin.payer == "one"
    assert origins.known_origin(origin.run, "two") is origin
    assert origin.payer == UNCOUNTED


def test_a_secret_file_is_placed_by_one_alone(tmp_path, monkeypatch):
    secret_files.write_secret(tmp_path / "a", b"1", replace=False)
    with pytest.raises(FileExistsError, match="there already"):
        secret_files.write_secret(tmp_path / "a", b"2", replace=False)
    monkeypatch.setattr("pathlib.Path.exists", lambda self: False)  # another process was faster
    with pytest.raises(FileExistsError, match="there already"):
        secret_files.write_secret(tmp_path / "a", b"2", replace=False)
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a"]


# -- processes ----------------------------------------------------------------------------------------------------


def in_children(act, count):
    """Fork, wait for each other, act: what became of it, by child."""
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(count), context.Queue()

    def run(number):
        try:
            act(number, barrier.wait)
            answers.put("released")
        except Exception as error:
            answers.put(type(error).__name__)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where threads are around
        children = [context.Process(target=run, args=(number,)) for number in range(count)]
        for child in children:
            child.start()
    told = sorted(answers.get(timeout=120) for _ in children)
    for child in children:
        child.join()
    return told


@pytest.mark.parametrize("race", ["one file", "copies", "two users", "version 1", "version 1, two users"])
def test_of_processes_that_release_at_once_one_does(tmp_path, race):
    forget_process()
    path = tmp_path / "a.npz"
    (old_file if "version 1" in race else lambda sketch, at: saved(sketch, at))(sketch_of(), path)
    paths = [path] * 4
    if race == "copies":
        paths = [shutil.copy(path, tmp_path / f"{i}.npz") for i in range(4)]
    forget_process()

    def act(number, wait):
        if "two users" in race:
            os.environ["XDG_STATE_HOME"] = str(tmp_path / f"state {number % 2}")
        mine = DensitySketch.load(paths[number])
        wait()
        with seeded_noise(0):
            mine.release(**BUDGET)

    assert in_children(act, 4) == ["AlreadyReleased"] * 3 + ["released"]


def test_a_fork_cannot_save_or_hand_over_what_its_parent_may_release(tmp_path):
    sketch = sketch_of()

    def act(number, wait):
        sketch.save(tmp_path / "child.npz")

    assert in_children(act, 1) == ["AlreadyReleased"]
    assert not (tmp_path / "child.npz").exists()


def test_a_lock_follows_the_file(tmp_path):
    """Whoever waited for the lock of a file that was replaced meanwhile locks the new one."""
    path, seen = tmp_path / "a", []
    path.write_text("old")

    def wait():
        with release_marks._locked(path) as held:
            seen.append((held, path.read_text()))

    with release_marks._locked(path):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        secret_files.write_secret(path, b"new")
    thread.join()
    assert seen == [(True, "new")]
    handle = os.open(path, os.O_RDONLY)
    path.unlink()
    assert not release_marks._is_at(handle, path)
    os.close(handle)


def test_the_most_parts_is_not_passed_by_a_refusal(monkeypatch):
    monkeypatch.setattr(record_counts, "MOST_PARTS", 1)
    sketch = DensitySketch([(0, 10)]).add_cells(np.array([0]), np.array([1]))
    for _ in range(3):
        with pytest.raises(ValueError, match="1 parts"):
            sketch.add_cells(np.array([0]), np.array([1]))
    assert sketch.table().sum() == 1
