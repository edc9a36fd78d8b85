"""Cumulative releases of many periods: exact sums, what a unit moves, noise against one release, drift, files."""

import math
import os
import stat
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fogline import Ledger, PrivateDensity
from fogline.audit import RecordingProvider, attack, canary_pairs, replay
from fogline.cli.app import app
from fogline.density.continual import (
    ContinualRelease,
    noise_factor,
    root_coefficients,
    squared_sensitivity,
)
from fogline.mechanisms import use_provider
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.releases import continual
from fogline.releases.continual import ContinualCounts
from fogline.releases.origins import AlreadyReleased
from fogline.sources.registry import table
from fogline.testing import SeededSource, seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore:epsilon = 1e.09 is above 10")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
BOX = {"bounds": [(0, 10)], "leaves": [8]}


def exact(action):
    """Exact vectors that the noise was added to, call by call."""
    recorder = RecordingProvider()
    with use_provider(recorder):
        action()
    return [np.asarray(step.exact) for step in recorder.steps]


# -- the factorisation ------------------------------------------------------------------------------------------------


def test_the_root_is_a_root_of_the_sums():
    T = 52
    root = np.array([[root_coefficients(T)[i - j] if i >= j else 0 for j in range(T)] for i in range(T)]) / 2**20
    assert np.allclose(root @ root, np.tril(np.ones((T, T))), atol=2e-4)


@pytest.mark.parametrize("leavers", [False, True])
def test_the_largest_norm_is_found_by_trying_all(leavers):
    """Every period in which a record may come, and every later one in which it may go."""
    T = 7
    roots = root_coefficients(T).astype(object)
    norms = []
    for s in range(T):
        for gone in range(s, T + 1) if leavers else [T]:
            path = [(roots[t - s] if t >= s else 0) - (roots[t - gone] if t >= gone else 0) for t in range(T)]
            norms.append(sum(step * step for step in path))
    assert squared_sensitivity(T, leavers=leavers) == max(norms)


def test_a_year_of_weeks_has_at_most_two_and_a_half_times_the_noise_of_one_release():
    assert noise_factor(52) < 2.5
    assert noise_factor(52, leavers=True) < 3
    assert noise_factor(52) < math.sqrt(52) / 3  # what a division of the budget would have


def test_the_noise_that_is_there_is_the_noise_that_is_said():
    with seeded_noise(1):
        counts = ContinualCounts(bounds=[(0, 1)], leaves=[2048], periods=12, **BUDGET)
        for _ in range(12):
            released = counts.release()
    found, sd = released.cumulative()
    assert sd == pytest.approx(noise_factor(12) * gaussian_scale(2**20, counts.terms.rho) / 2**20, rel=1e-3)
    assert np.std(found) == pytest.approx(sd, rel=0.08)  # five standard errors of 2048 cells
    assert released.scale == pytest.approx(counts.scale)
    assert counts.noise_per_cell == pytest.approx(sd, rel=1e-3)


# -- what is counted --------------------------------------------------------------------------------------------------


def test_sums_are_those_of_all_records_so_far():
    rng = np.random.default_rng(0)
    weeks = [rng.uniform(0, 10, (200, 1)) for _ in range(5)]
    counts = ContinualCounts(periods=6, epsilon=1e9, delta=1e-6, **BOX)
    for t, rows in enumerate(weeks, 1):
        released = counts.add(rows).release()
        expected = np.histogram(np.concatenate(weeks[:t]), bins=8, range=(0, 10))[0]
        assert np.allclose(released.cumulative()[0], expected, atol=0.1)
        assert np.allclose(released.cumulative(1)[0], np.histogram(weeks[0], bins=8, range=(0, 10))[0], atol=0.1)
    assert round(released.density().count) == 1000


@pytest.mark.parametrize("leavers", [False, True])
def test_a_person_moves_all_releases_by_no_more_than_is_paid_for(leavers):
    """With and without one person, whenever the person comes, and goes."""
    rng = np.random.default_rng(2)
    weeks = [(rng.uniform(0, 10, (30, 1)), rng.integers(0, 40, 30)) for _ in range(5)]
    largest = 0.0
    for comes in range(5):
        for goes in range(comes + 1, 6) if leavers else [6]:

            def run(with_person, comes=comes, goes=goes):
                counts = ContinualCounts(
                    periods=5, unit="person", max_contributions=2, leavers=leavers, **BUDGET, **BOX
                )
                for t, (rows, who) in enumerate(weeks):
                    counts.add(rows, who)
                    if with_person and t >= comes:
                        counts.add(np.full((4, 1), 5.0), np.full(4, 777))  # four records each week, of which two count
                    if with_person and t == goes:
                        counts.remove([777])
                    counts.release()

            with_person, without = (np.stack(exact(lambda world=world: run(world))) for world in (True, False))
            largest = max(largest, float(np.linalg.norm(with_person - without)))
    counts = ContinualCounts(periods=5, unit="person", max_contributions=2, leavers=leavers, **BUDGET, **BOX)
    assert largest <= counts.sensitivity
    assert largest >= 0.99 * counts.sensitivity


def test_a_bound_over_all_periods():
    counts = ContinualCounts(periods=3, unit="person", max_contributions=3, epsilon=1e9, delta=1e-6, **BOX)
    for week in ([7, 7, 8], ["7", None, 8.0], [7.0, 7, 9]):
        released = counts.add([[1.0], [2.0], [3.0]], week).release()
    assert round(released.density().count) == 3 + 2 + 1  # three of 7 in all, two of 8, one of 9
    assert (released.guarantee.unit, released.guarantee.enforced) == ("person", True)
    frame = pd.DataFrame({"x": [1.0, 2.0], "person": [1, 1]})
    by_table = ContinualCounts(periods=1, unit="person", columns=["x"], epsilon=1e9, delta=1e-6, **BOX)
    assert round(by_table.add(table(frame, ["x"], unit="person")).release().density().count) == 1


def test_leavers():
    counts = ContinualCounts(
        periods=4, unit="person", max_contributions=2, leavers=True, epsilon=1e9, delta=1e-6, **BOX
    )
    counts.add([[1.0], [2.0], [3.0]], [1, 1, 2]).release()
    counts.remove([1, 1, 5])  # once is enough, and a stranger has nothing here
    counts.add([[4.0]], [1])  # whose two records are used up
    assert round(counts.release().density().count) == 1
    rows = ContinualCounts(periods=2, leavers=True, epsilon=1e9, delta=1e-6, **BOX)
    rows.add([[1.0], [2.0]]).release()
    assert round(rows.subtract([[1.0]]).release().density().count) == 1


def test_what_is_refused():
    counts = ContinualCounts(periods=1, unit="person", **BUDGET, **BOX)
    with pytest.raises(RuntimeError, match="said at the beginning"):
        counts.remove([1])
    with pytest.raises(TypeError, match="exactly where there is a unit"):
        counts.add([[1.0]])
    with pytest.raises(ValueError, match="one entry for each"):
        counts.add([[1.0]], [1, 2])
    with pytest.raises(TypeError, match="by their ids"):
        counts.subtract([[1.0]])
    with pytest.raises(TypeError, match="secret counts"):
        counts.__getstate__()
    released = counts.release()
    with pytest.raises(RuntimeError, match="all 1 periods"):
        counts.release()
    with pytest.raises(ValueError, match="1 periods were released"):
        released.density(2)
    with pytest.raises(ValueError, match="before the last"):
        released.drift(1)
    with pytest.raises(ValueError, match="at most 4096"):
        ContinualCounts(periods=5000, **BUDGET, **BOX)
    with pytest.raises(ValueError, match="delta"):
        ContinualCounts(epsilon=1.0, delta=0.0, **BOX)
    with pytest.raises(TypeError, match="no unit"):
        ContinualCounts(leavers=True, **BUDGET, **BOX).remove([1])


def test_a_table_of_another_unit_is_refused_before_it_is_read():
    """Bounded by visits, a person with many visits would count for each of them."""
    frame = pd.DataFrame({"x": [1.0, 1.0], "person": [1, 1], "visit_id": [1, 2]})
    counts = ContinualCounts(periods=1, unit="person", epsilon=1e9, delta=1e-6, **BOX)
    visits = table(frame, ["x"], unit="visit_id")
    visits.each_unit_batch = lambda take: pytest.fail("the records were read")
    with pytest.raises(TypeError, match="the unit of the table is 'visit_id', but the counts have 'person'"):
        counts.add(visits)
    assert round(counts.add(table(frame, ["x"], unit="person")).release().density().count) == 1


def test_rows_taken_back_are_said_to_be_declared(tmp_path):
    counts = ContinualCounts(periods=3, leavers=True, epsilon=1e9, delta=1e-6, **BOX)
    before = counts.add([[1.0], [2.0]]).release().guarantee
    assert before.enforced
    assert "taken back" not in str(before)
    later = [counts.subtract([[1.0]]).release().guarantee]
    counts.save(tmp_path / "state")
    later.append(ContinualCounts.load(tmp_path / "state").release().guarantee)
    for guarantee in later:
        assert "records taken back that were declared to have been added before" in str(guarantee)
        assert not guarantee.enforced
        assert guarantee.certified


def test_the_sensitivity_is_not_rounded_down():
    for c in (2**33 + 1, 2**36 + 12345, 2**40 - 1):
        counts = ContinualCounts(periods=7, max_contributions=c, **BUDGET, **BOX)
        assert Fraction(counts.sensitivity) ** 2 >= c**2 * squared_sensitivity(7)


# -- interruptions ----------------------------------------------------------------------------------------------------


def interrupted(patch, counts, call):
    """Records come one by one, and counting stops within the third batch."""
    seen = []

    def batches(X, ids, found=counts._batches):
        return [(rows[i : i + 1], who and who[i : i + 1]) for rows, who in found(X, ids) for i in range(len(rows))]

    def cells(rows, spec, found=continual.row_cells):
        seen.append(len(rows))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return found(rows, spec)

    with patch.context() as patched:
        patched.setattr(counts, "_batches", batches)
        patched.setattr(continual, "row_cells", cells)
        with pytest.raises(KeyboardInterrupt):
            call()


@pytest.mark.parametrize("unit", [None, "person"])
def test_an_interrupted_call_has_counted_nothing(unit, monkeypatch):
    rows, ids = [[1.0], [2.0], [3.0], [4.0]], None if unit is None else [0, 10, 1, 11]
    counts = ContinualCounts(
        periods=3, unit=unit, max_contributions=2, leavers=unit is None, epsilon=1e9, delta=1e-6, **BOX
    )
    interrupted(monkeypatch, counts, lambda: counts.add(rows, ids))
    assert round(counts.add(rows, ids).release().density().count) == 4
    if unit is None:
        interrupted(monkeypatch, counts, lambda: counts.subtract(rows))
        assert round(counts.subtract(rows).release().cumulative()[0].sum()) == 0
    else:  # nor was anything used of the bound
        assert round(counts.add(rows, ids).release().density().count) == 8


def test_units_that_went_are_marked_with_what_they_took(monkeypatch):
    """Stopped after the numbers were changed, a removal that is repeated takes nothing twice."""
    counts = ContinualCounts(periods=2, unit="person", leavers=True, epsilon=1e9, delta=1e-6, **BOX)
    counts.add([[1.0], [2.0], [3.0]], [1, 2, 3])

    def stopped(*args, count=counts._count, **options):
        count(*args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(counts, "_count", stopped)
        with pytest.raises(KeyboardInterrupt):
            counts.remove([1])
    assert round(counts.remove([1]).release().density().count) == 2


# -- audit ------------------------------------------------------------------------------------------------------------


def three_periods(data, epsilon=1.0):
    counts = ContinualCounts(periods=3, epsilon=epsilon, delta=1e-6, **BOX)
    for part in range(3):
        released = counts.add(np.asarray(data)[part::3]).release()
    return released


def test_replay_of_three_periods(monkeypatch):
    """A replay charges every call by itself, as if the unit moved it by all of the sensitivity: three times the rho."""
    # The names of notes are random: a replay would see that other files were written.
    monkeypatch.setattr(ContinualCounts, "_note", lambda *_: None)
    told = three_periods(np.zeros((0, 1))).guarantee
    claim = replace(told, rho=3 * told.rho, epsilon=10.0)
    report = replay(three_periods, canary_pairs([(0, 10)], neighbours="add-remove", n=30)[::4], claim=claim)
    assert report.passed, str(report)


def test_the_likelihood_ratio_of_all_periods_stays_below_the_claim():
    """Whoever knows all others and looks at the vectors of all periods at once."""
    crowd = np.random.default_rng(3).uniform(0, 10, (60, 1))
    last = np.vstack([crowd, np.full((1, 1), 5.0)])  # number 60 of 61, in the first period: the longest path
    worlds = [np.stack(exact(lambda data=data: three_periods(data))) for data in (crowd, last)]
    with seeded_noise(0):
        released = three_periods(crowd, 8.0)
    step, source = worlds[1] - worlds[0], SeededSource(np.random.default_rng(1))

    def noisy(sums):
        return sums + source.gaussian(released.scale, sums.size).reshape(sums.shape)

    def score(output):
        return float(np.sum((output - worlds[0]) * step)) / released.scale**2

    report = attack(noisy, *worlds, released.guarantee, score=score, runs=4000, gaussian=True, confidence=1 - 1e-6)
    assert not report.broken
    assert 0.5 * report.mu <= report.mu_lower <= report.mu


# -- drift ------------------------------------------------------------------------------------------------------------


def weekly(shift, seed, weeks=6, n=1500):
    rng = np.random.default_rng(seed)
    with seeded_noise(seed):
        counts = ContinualCounts(bounds=[(0, 10)], leaves=[16], periods=weeks, **BUDGET)
        for week in range(weeks):
            released = counts.add(rng.normal(5 + shift * (week >= weeks // 2), 1, (n, 1))).release()
    return released


def test_drift_is_found_and_no_drift_is_not():
    assert weekly(1.0, 0).drift(3, draws=199).p_value == pytest.approx(1 / 200)
    p = [weekly(0.0, seed).drift(3, draws=99).p_value for seed in range(1, 41)]
    assert sum(value <= 0.1 for value in p) <= 11  # by chance less than once in a thousand: binomial(40, 0.1)
    assert np.mean(p) > 0.3


def test_drift_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    weekly(1.0, 0).plot_drift(3).savefig(tmp_path / "drift.svg")
    assert "periods 4 to 6" in (tmp_path / "drift.svg").read_text() or (tmp_path / "drift.svg").stat().st_size > 5000
    with seeded_noise(0):
        two = ContinualCounts(bounds=[(0, 1), (0, 1)], leaves=[4, 4], periods=2, **BUDGET)
        two.add(np.random.default_rng(0).random((500, 2))).release()
        two.release().plot_drift(1).savefig(tmp_path / "two.png")


# -- files ------------------------------------------------------------------------------------------------------------


def test_files_and_copies(tmp_path):
    counts = ContinualCounts(periods=3, unit="person", leavers=True, columns=["x"], epsilon=1e9, delta=1e-6, **BOX)
    counts.add([[1.0], [5.0]], [1, 2]).release()
    counts.save(tmp_path / "year")
    assert (tmp_path / "year").stat().st_mode & 0o077 == 0
    again, copy = (ContinualCounts.load(tmp_path / "year") for _ in range(2))
    released = again.add([[9.0], [9.0]], [1, 3]).remove([2]).release()
    assert round(released.density().count) == 2  # 1 is used up, 2 is gone, 3 is new
    with pytest.raises(AlreadyReleased):
        copy.release()
    released.save(tmp_path / "public.npz")
    read = ContinualRelease.load(tmp_path / "public.npz")
    assert np.array_equal(read.values, released.values)
    assert (read.guarantee, read.columns) == (released.guarantee, ("x",))
    (tmp_path / "broken").write_bytes(b"PK nothing")
    for kind in (ContinualCounts, ContinualRelease):
        with pytest.raises(ValueError, match="damaged"):
            kind.load(tmp_path / "broken")
    with pytest.raises(ValueError, match="damaged"):
        ContinualRelease.load(tmp_path / "year")


def test_one_period_of_seeded_noise_uncertifies_all_that_follow(tmp_path):
    """They contain its vector, whichever provider drew the last."""
    counts = ContinualCounts(periods=4, **BUDGET, **BOX)
    assert counts.release().guarantee.certified
    with seeded_noise(0):
        assert not counts.release().guarantee.certified
    counts.save(tmp_path / "state")
    for again in (counts.release(), ContinualCounts.load(tmp_path / "state")):
        found = again if isinstance(again, ContinualRelease) else again._public(1.0)
        assert not found.guarantee.certified
        assert "seed" in found.guarantee.reason


def test_what_a_ledger_paid_for_is_drawn_by_the_system(tmp_path):
    with Ledger.create(
        tmp_path / "budget", dataset="v", epsilon=1.2, delta=1e-6, high_water=tmp_path / "marks"
    ) as ledger:
        counts = ContinualCounts(periods=3, ledger=ledger.on("v"), **BUDGET, **BOX)
    counts.save(tmp_path / "state")
    loaded = ContinualCounts.load(tmp_path / "state")
    assert loaded.receipt == counts.receipt
    for paid in (counts, loaded):
        with seeded_noise(0), pytest.raises(RuntimeError, match=r"pays for certified releases only: .*seed"):
            paid.release()
    assert loaded.release().guarantee.certified  # the refused releases have used nothing up


def test_a_period_is_on_the_disk_before_its_noise_is_drawn(tmp_path, monkeypatch):
    """Its file, the folder that names it, and the folders above."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new" / "state"))
    counts, happened = ContinualCounts(periods=2, **BUDGET, **BOX), []

    def force(handle, forced=os.fsync):
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        happened.append(os.readlink(f"/proc/self/fd/{handle}") if folder else "file")
        forced(handle)

    class Watching(RecordingProvider):
        def answer(self, *args):
            happened.append("noise")
            return super().answer(*args)

    monkeypatch.setattr(os, "fsync", force)
    with use_provider(Watching()):
        counts.release()
    assert happened[-3:] == ["file", str(tmp_path / "new/state/fogline/continual"), "noise"]
    assert {str(tmp_path / name) for name in (".", "new", "new/state", "new/state/fogline")} <= set(happened)


def test_nothing_is_drawn_where_no_note_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "fogline").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    counts, recorder = ContinualCounts(periods=2, **BUDGET, **BOX), RecordingProvider()
    with use_provider(recorder), pytest.raises(OSError, match="must be writable"):
        counts.release()
    assert not recorder.steps
    assert counts.released == 0


def test_counts_that_were_not_saved_after_a_release_end_there(tmp_path):
    counts = ContinualCounts(periods=3, **BUDGET, **BOX)
    counts.save(tmp_path / "state")
    counts.release()
    late = ContinualCounts.load(tmp_path / "state").add([[1.0]])
    for _ in range(2):
        with pytest.raises(AlreadyReleased, match="they were not saved since"):
            late.release()
    assert late.released == 0


def test_the_key_of_the_digests_is_not_the_public_id(tmp_path):
    one, other = (ContinualCounts(periods=1, unit="person", **BUDGET, **BOX) for _ in range(2))
    digest = one._digests([17])
    one.save(tmp_path / "state")
    assert ContinualCounts.load(tmp_path / "state")._digests([17]) == digest
    other._run = one._run  # which is all that a ledger and a note tell
    assert other._digests([17]) != digest


def test_a_ledger_is_charged_once_for_all_periods(tmp_path):
    with Ledger.create(
        tmp_path / "budget", dataset="v", epsilon=1.2, delta=1e-6, high_water=tmp_path / "marks"
    ) as ledger:
        before = ledger.remaining().rho
        counts = ContinualCounts(periods=3, ledger=ledger.on("v"), **BUDGET, **BOX)
        paid = ledger.remaining().rho
        for _ in range(3):
            counts.release()
        assert before - paid == pytest.approx(counts.terms.rho, rel=1e-6)
        assert ledger.remaining().rho == paid
        with pytest.raises(Exception, match=r"budget|left|cap|exceed"):
            ContinualCounts(periods=3, ledger=ledger.on("v"), **BUDGET, **BOX)


# -- command line -----------------------------------------------------------------------------------------------------


def fogline(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_shell_releases_nothing_that_it_could_not_save(tmp_path, monkeypatch):
    state, out = tmp_path / "year.counts", tmp_path / "year.npz"
    asked = ["--columns", "stay", "--bounds", "0:60", "--periods", "4", "--epsilon", "1", "--delta", "1e-6"]
    assert fogline("continual", "start", state, *asked).exit_code == 0

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(ContinualCounts, "save", full)
        assert "No space left" in fogline("continual", "release", state, "--out", out).output
    assert not out.exists()
    assert fogline("continual", "release", state, "--out", out).exit_code == 0
    assert (ContinualCounts.load(state).released, len(ContinualRelease.load(out))) == (1, 1)


def test_a_year_from_the_shell(tmp_path):
    state, out = tmp_path / "year.counts", tmp_path / "year.npz"
    asked = ["--columns", "stay", "--bounds", "0:60", "--periods", "4", "--unit", "person", "--leavers"]
    begun = fogline("continual", "start", state, *asked, "--epsilon", "1", "--delta", "1e-6")
    assert begun.exit_code == 0, begun.output
    assert "as secret as the records" in begun.output
    assert fogline("continual", "start", state, *asked, "--epsilon", "1", "--delta", "1e-6").exit_code == 2
    rng = np.random.default_rng(0)
    for week, shape in enumerate((2.0, 2.0, 5.0)):
        people = np.arange(2000) + 2000 * week
        frame = pd.DataFrame({"person": people, "stay": rng.gamma(shape, 3, 2000)})
        frame.to_csv(tmp_path / "week.csv", index=False)
        assert fogline("continual", "add", state, tmp_path / "week.csv").exit_code == 0
        done = fogline("continual", "release", state, "--out", out, "--fog", tmp_path / "week.fog")
        assert done.exit_code == 0, done.output
        assert "Certified: adding or removing one person (at most 1 record, enforced)" in done.output
    assert PrivateDensity.load(tmp_path / "week.fog").columns == ("stay",)
    (tmp_path / "gone.txt").write_text("5\n17\n")
    assert "period 4 of 4" in fogline("continual", "remove", state, tmp_path / "gone.txt").output
    found = fogline("continual", "drift", out, "--first", "2", "--picture", tmp_path / "drift.svg")
    assert "periods 3 to 3 differ in shape" in found.output
    assert (tmp_path / "drift.svg").exists()
    assert ContinualCounts.load(state).released == 3
    assert '"p_value"' in fogline("continual", "drift", out, "--first", "1", "--json").output
    assert fogline("continual", "drift", out, "--first", "9").exit_code == 2
    assert fogline("continual", "add", tmp_path / "none", tmp_path / "week.csv").exit_code == 2
