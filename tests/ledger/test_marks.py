"""The mark names the last entry of the file, on every turn: copies, rollbacks, restored marks, other folders."""

import json
import os
import shutil

import pytest
from tests.ledger.torture.trials import ask, counted, new_ledger, reopen

from fogline.ledger import Ledger, LedgerRefused, ReleaseFailed
from fogline.ledger.disk import Disk, installed
from fogline.ledger.files import HighWater
from fogline.ledger.steps import observing


class Stop(Exception):
    pass


def untouched():
    pytest.fail("the data were touched")


def refused(check, action, *arguments, **options):
    with pytest.raises(LedgerRefused) as caught:
        action(*arguments, **options)
    assert caught.value.check == check, caught.value
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    with new_ledger(tmp_path, 20) as ledger:
        ask(ledger, 0)
    return tmp_path


def mark_file(folder, marks="marks"):
    (found,) = (folder / marks).glob("*.json")
    return found


def mark_of(folder):
    return json.loads(mark_file(folder).read_bytes())


def test_after_every_turn_the_mark_names_the_last_entry(folder):
    with reopen(folder) as ledger:
        for action in (
            lambda: ask(ledger, 1),
            lambda: ledger.new_version("trial", "2"),
            lambda: ledger.add_analyst("a"),
        ):
            action()
            last = ledger.history()[-1]
            assert (mark_of(folder)["seq"], mark_of(folder)["hash"]) == (last.seq, last.hash)


def test_an_open_copy_is_refused_once_the_original_went_on(folder):
    shutil.copy(folder / "ledger", folder / "copy")
    with reopen(folder) as original, Ledger.open(folder / "copy", high_water=folder / "marks") as copy:
        ask(original, 1)
        assert "copy" in refused("high-water", ask, copy, 1, untouched)
        refused("high-water", ask, copy, 0, untouched)  # not even what it has already
        refused("high-water", copy.remaining)
        refused("high-water", copy.new_version, "trial", "2")
        assert counted(original) == (2, 2)


def test_of_two_equal_files_the_first_to_spend_goes_on(folder):
    shutil.copy(folder / "ledger", folder / "copy")
    with reopen(folder) as original, Ledger.open(folder / "copy", high_water=folder / "marks") as copy:
        ask(copy, 1)
        refused("high-water", ask, original, 2, untouched)
        ask(copy, 2)


def test_a_copy_made_between_reservation_and_answer_is_refused(folder):
    def copying():
        shutil.copy(folder / "ledger", folder / "copy")
        return b"the answer"

    with reopen(folder) as ledger:
        ask(ledger, 1, copying)
    refused("high-water", Ledger.open, folder / "copy", high_water=folder / "marks")
    with reopen(folder) as ledger:
        assert ask(ledger, 1, untouched).payload == b"the answer"


def test_a_renamed_file_goes_on_and_a_restored_one_does_not(folder):
    shutil.copy(folder / "ledger", folder / "backup")
    os.rename(folder / "ledger", folder / "renamed")
    with Ledger.open(folder / "renamed", high_water=folder / "marks") as ledger:
        ask(ledger, 1)
    os.rename(folder / "backup", folder / "ledger")
    refused("high-water", reopen, folder)


def test_a_mark_that_vanishes_under_an_open_ledger_is_missed(folder):
    with reopen(folder) as ledger:
        text = mark_file(folder).read_bytes()
        mark_file(folder).unlink()
        assert "Ledger.adopt" in refused("high-water", ask, ledger, 1, untouched)
        refused("high-water", ledger.remaining)
        (folder / "marks" / f"{ledger.id}.json").write_bytes(text)
        ask(ledger, 1)


def test_a_mark_that_was_put_back_is_refused_and_can_be_adopted(folder):
    old = mark_file(folder).read_bytes()
    with reopen(folder) as ledger:
        ask(ledger, 1)
        ask(ledger, 2)
    middle = (folder / "ledger").read_bytes()
    with reopen(folder) as ledger:
        ask(ledger, 3)
    mark_file(folder).write_bytes(old)
    assert "older than the ledger" in refused("high-water", reopen, folder)
    # file and mark from two backups, the file's the later: the mark's entry is in it, and yet it is not the last
    newest = (folder / "ledger").read_bytes()
    (folder / "ledger").write_bytes(middle)
    refused("high-water", reopen, folder)
    (folder / "ledger").write_bytes(newest)
    Ledger.adopt(folder / "ledger", high_water=folder / "marks").close()
    with reopen(folder) as ledger:
        assert ask(ledger, 3, untouched).cached
        assert ledger.history()[-1].kind == "adopt"


def test_another_folder_of_marks_is_refused_even_if_it_is_a_copy(folder, monkeypatch):
    shutil.copytree(folder / "marks", folder / "marks2")
    message = refused("high-water", Ledger.open, folder / "ledger", high_water=folder / "marks2")
    assert "not those of this ledger" in message
    # all of it copied to another place of the same machine
    shutil.copytree(folder, folder / "everything", ignore=shutil.ignore_patterns("everything"))
    refused("high-water", reopen, folder / "everything")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    assert "there is no high-water mark" in refused("high-water", Ledger.open, folder / "ledger")
    Ledger.adopt(folder / "ledger").close()
    Ledger.open(folder / "ledger").close()
    assert "not the one" not in refused("high-water", reopen, folder)  # the old folder is no longer its own


def test_adopting_does_not_overrule_a_mark(folder):
    old = (folder / "ledger").read_bytes()
    with reopen(folder) as ledger:
        ask(ledger, 1)
    (folder / "ledger").write_bytes(old)
    refused("high-water", Ledger.adopt, folder / "ledger", high_water=folder / "marks")
    with pytest.raises(LedgerRefused):
        reopen(folder)


def crash_at(step, skip=0):
    left = [skip]

    def stop(reached):
        if reached == step:
            if not left[0]:
                raise Stop
            left[0] -= 1

    return observing(stop)


@pytest.mark.parametrize("step", ["reserve committed", "mark written", "mark renamed"])
def test_a_crash_between_file_and_mark_is_mended_and_nothing_was_touched(folder, step):
    with reopen(folder) as ledger, crash_at(step), pytest.raises(Stop):
        ask(ledger, 1, untouched)
    with reopen(folder) as ledger:
        assert counted(ledger) == (2, 1)
        ask(ledger, 1)
        assert mark_of(folder)["seq"] == len(ledger.history()) - 1


def test_after_such_a_crash_a_copy_may_go_on_but_not_both(folder):
    shutil.copy(folder / "ledger", folder / "copy")
    with reopen(folder) as ledger, crash_at("reserve committed"), pytest.raises(Stop):
        ask(ledger, 1, untouched)
    with Ledger.open(folder / "copy", high_water=folder / "marks") as copy:
        ask(copy, 1)
    refused("high-water", reopen, folder)


def test_an_answer_whose_mark_cannot_be_written_is_not_given_but_kept(folder, monkeypatch):
    honest = HighWater.move
    failing = []

    def move(self, before, mark):
        if failing:
            raise OSError(28, "No space left on device")
        honest(self, before, mark)

    monkeypatch.setattr(HighWater, "move", move)
    with reopen(folder) as ledger:
        with pytest.raises(ReleaseFailed):
            ask(ledger, 1, lambda: failing.append(1) or b"dear")
        refused("high-water", ask, ledger, 2, untouched)
        failing.clear()
        assert ask(ledger, 1, untouched).payload == b"dear"
        assert counted(ledger) == (2, 2)


class Full(Disk):
    """A disk for marks that is full from some moment on; `spare` files may still be written."""

    def __init__(self):
        self.full = False

    def write(self, path, body, *, forced):
        if self.full and not path.exists():
            raise OSError(28, "No space left on device")
        super().write(path, body, forced=forced)


def test_a_disk_of_marks_that_fills_up_during_the_release_burns_nothing(folder):
    disk = Full()
    with installed(disk), reopen(folder) as ledger:
        answer = ask(ledger, 1, lambda: setattr(disk, "full", True) or b"dear")
        assert answer.payload == b"dear"
        # now there is no room for the next one: refused for nothing
        left = counted(ledger)
        refused("high-water", ask, ledger, 2, untouched)
        assert counted(ledger) == left
        disk.full = False
        ask(ledger, 2)


def test_a_commit_that_finds_no_room_for_its_mark_tries_once_more(folder):
    class Once(Disk):
        fail = False

        def make_directory(self, path):
            if self.fail:
                self.fail = False
                raise OSError(28, "No space left on device")
            super().make_directory(path)

    disk = Once()
    with installed(disk), reopen(folder) as ledger:
        assert ask(ledger, 1, lambda: setattr(disk, "fail", True) or b"dear").payload == b"dear"


def test_an_interrupted_adoption_can_be_repeated(folder):
    with crash_at("adopt committed"), pytest.raises(Stop):
        Ledger.adopt(folder / "ledger", high_water=folder / "elsewhere")
    Ledger.adopt(folder / "ledger", high_water=folder / "elsewhere").close()
    Ledger.open(folder / "ledger", high_water=folder / "elsewhere").close()


def test_an_adoption_whose_mark_fails_says_so(folder, monkeypatch):
    honest = HighWater.move

    def move(self, before, mark):
        if before is not None:
            raise OSError(28, "No space left on device")
        honest(self, before, mark)

    monkeypatch.setattr(HighWater, "move", move)
    assert "not the high-water mark" in refused(
        "high-water", Ledger.adopt, folder / "ledger", high_water=folder / "elsewhere"
    )


def test_drafts_of_marks_do_not_stay_behind(folder):
    with reopen(folder) as ledger:
        ask(ledger, 1)
    assert [path.suffix for path in (folder / "marks").iterdir() if path.suffix not in (".json", ".lock")] == []
