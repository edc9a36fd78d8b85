"""A trial proves something only if it fails where it should: each guard is taken away, and a trial must notice."""

import shutil
import threading
from contextlib import nullcontext, suppress

import pytest
from tests.ledger.torture import trials

from fogline.accounting import Cost
from fogline.ledger import Ledger, LedgerRefused, Question, ReleaseFailed, protocol, session, store
from fogline.ledger import accounts as books
from fogline.ledger.files import HighWater
from fogline.ledger.steps import observing


def equal_questions(folder, askers=6):
    """Return how often equal questions, asked at once, are paid for."""
    together = threading.Barrier(askers)

    def slow():
        with suppress(threading.BrokenBarrierError):
            together.wait(timeout=0.5)  # all who are let in wait for each other
        return b"answer"

    with trials.new_ledger(folder, 50) as ledger:
        threads = [threading.Thread(target=trials.ask, args=(ledger, 0, slow)) for _ in range(askers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return trials.counted(ledger)


def test_with_every_guard_in_place(tmp_path):
    assert equal_questions(tmp_path) == (1, 1)


def test_without_a_lock_per_question_it_is_paid_for_again_but_answered_once(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "question_lock", lambda *_: nullcontext())
    reserved, answered = equal_questions(tmp_path)
    assert reserved > 1
    assert answered == 1


def test_without_the_mark_an_old_copy_is_accepted(tmp_path, monkeypatch):
    unseeing = lambda self, opened, found, *, adopting=False: self._marks.read(found.ledger)  # noqa: E731
    monkeypatch.setattr(session.Session, "_check_mark", unseeing)
    with pytest.raises(trials.Broken, match="old copy was accepted"):
        trials.old_copy(tmp_path)


def test_without_the_mark_copies_beside_the_original_spend_the_cap_again(tmp_path, monkeypatch):
    unseeing = lambda self, opened, found, *, adopting=False: self._marks.read(found.ledger)  # noqa: E731
    monkeypatch.setattr(session.Session, "_check_mark", unseeing)
    with pytest.raises(trials.Broken, match="touched"):
        trials.in_turn(tmp_path, releases=3)


def test_a_mark_that_is_compared_on_opening_only_lets_copies_spend(tmp_path, monkeypatch):
    """What the code did once: original and copies, all open, each with a cap of its own."""
    honest = session.Session._check_mark

    def on_opening(self, opened, found, *, adopting=False):
        return honest(self, opened, found, adopting=adopting) if self._store is None else self._marks.read(found.ledger)

    monkeypatch.setattr(session.Session, "_check_mark", on_opening)
    with pytest.raises(trials.Broken, match="touched"):
        trials.in_turn(tmp_path, releases=3)


def test_without_the_marks_lock_a_copy_slips_between_comparison_and_move(tmp_path, monkeypatch):
    """Both compare, both write, one moves the mark; the other must notice at the latest there, before data."""
    monkeypatch.setattr(HighWater, "locked", lambda self, ledger: nullcontext())
    with trials.new_ledger(tmp_path, 5) as original:
        shutil.copy(tmp_path / "ledger", tmp_path / "copy")
        with Ledger.open(tmp_path / "copy", high_water=tmp_path / "marks") as copy:
            inner = []

            def meanwhile(step):
                if step == "reserve committed" and not inner:
                    inner.append(step)
                    trials.ask(copy, 1)

            with observing(meanwhile), pytest.raises(ReleaseFailed):
                trials.ask(original, 0, lambda: pytest.fail("the data were touched"))


def test_without_the_hash_of_an_answer_a_flipped_bit_goes_through(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_check_payload", lambda seq, digest, body: body)
    with pytest.raises(trials.Broken, match="changed answer"):
        trials.bit_flips(tmp_path, flips=400, seed=3)


def test_without_the_chain_a_changed_entry_goes_through(tmp_path, monkeypatch):
    monkeypatch.setattr(books, "chain", lambda previous, content: b"0" * 32)
    monkeypatch.setattr(store, "chain", lambda previous, content: b"0" * 32)
    monkeypatch.setattr("fogline.ledger.ledger.chain", lambda previous, content: b"0" * 32)
    # a flip within a value is believed, one within the name of a field is found where that field is read
    with pytest.raises((trials.Broken, KeyError)):
        trials.bit_flips(tmp_path, flips=400, seed=3)


def test_without_the_check_of_the_books_the_file_itself_refuses(tmp_path, monkeypatch):
    """Two nets: the sums in Python, and CHECK (spent <= budget) in the file."""
    with trials.new_ledger(tmp_path, 2) as ledger:
        trials.ask(ledger, 0)
        trials.ask(ledger, 1)
        monkeypatch.setattr(books, "_within", lambda totals, owner: True)
        with pytest.raises(LedgerRefused, match="CHECK constraint failed: spent <= budget"):
            trials.ask(ledger, 2, lambda: pytest.fail("the data were touched"))
        assert trials.counted(ledger) == (2, 2)


def test_a_release_before_the_reservation_would_be_seen(tmp_path, monkeypatch):
    """kill -9 between data and reservation leaves data touched that nobody paid for."""
    with trials.new_ledger(tmp_path, 5):
        pass
    trials.touch(tmp_path)
    with pytest.raises(trials.Broken, match="1 touched, 0 reserved"):
        trials.check_balance(tmp_path, 5)


def test_reading_the_mark_after_the_books_would_race(tmp_path, monkeypatch):
    """While the books are read nobody can write: the mark cannot run ahead of them."""
    trials.new_ledger(tmp_path, 5).close()
    seen = []
    honest = session.Session._check_mark

    def within(self, opened, found, *, adopting=False):
        seen.append(opened.connection.in_transaction)
        return honest(self, opened, found, adopting=adopting)

    monkeypatch.setattr(session.Session, "_check_mark", within)
    with trials.reopen(tmp_path) as ledger:
        ledger.verify()
    assert len(seen) == 3
    assert all(seen)


def test_free_questions_do_not_exist(tmp_path):
    with trials.new_ledger(tmp_path, 5) as ledger, pytest.raises(ValueError, match="no release of data is free"):
        ledger.spend(
            Question("trial", "1", "m", "1"),
            cost=Cost(0.0, 0.0),
            neighbours="add-remove",
            certified=True,
            release=lambda: b"x",
        )
