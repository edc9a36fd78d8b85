"""Replay on HTTP: two neighbouring data sets and the same recorded noise give the same bytes, headers and cookies.

Everything that is drawn or read from a clock besides the noise (ids, tokens, times) is the same in both runs, so that
whatever differs comes from the records.
"""

from __future__ import annotations

import itertools
import secrets
import shutil

import pytest
from hospital import enter, form_key, hospital_config, open_studio

from fogline.audit.replay import RecordingProvider, ReplayingProvider
from fogline.ledger import protocol
from fogline.ledger.disk import Disk
from fogline.ledger.steps import observing
from fogline.mechanisms import use_provider
from fogline.releases import terms
from fogline.studio import store
from fogline.studio.app import make_app
from fogline.studio.work import Releasing
from fogline.testing import SeededProvider

READINGS = ("", "/curve?column=stay", "/ask?q=count", "/export", "/export/report", "/export/release", "/export/card")


def constant_surroundings(monkeypatch):
    """Ids, tokens and times that are the same in every run."""
    numbers = itertools.count()
    monkeypatch.setattr(secrets, "token_hex", lambda size=16: f"{next(numbers):0{2 * size}x}")
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size=16: f"token-{next(numbers):0{size}d}")
    times = itertools.count()
    monkeypatch.setattr(Disk, "now", lambda _: f"2026-01-01T00:00:{next(times):09.6f}+00:00")
    monkeypatch.setattr(store, "now_text", lambda: "2026-01-01 00:00")
    monkeypatch.setattr("fogline.studio.work.now_text", lambda: "2026-01-01 00:00")


def journey(folder, provider, fails=None):
    """All that a custodian sees, from the token to the exports, as bytes with headers; the clock is told by hand."""
    studio = open_studio(hospital_config_kept(folder))
    now = [0.0]
    studio.releasing = Releasing(studio.ledger, studio.catalogue, studio.store, (2.0, 60.0), lambda: now[0])
    client = enter(make_app(studio), "custodian")
    seen = [client.get(path) for path in ("/", "/data/visits", "/data/visits?column=stay&epsilon=1", "/ledger")]
    studio.outlooks.wait()
    shown = client.get("/data/visits/review?column=stay&epsilon=1")
    with use_provider(provider), observing(fails or (lambda _: None)):
        begun = client.post("/data/visits/release", {"key": form_key(shown.text)})
        studio.releasing.finish()
    place = begun.header("location")
    seen += [shown, begun, client.get(place), client.get(f"{place}/state")]
    now[0] = 3.0
    seen += [client.get(f"{place}/state"), client.get(place), client.get("/"), client.get("/ledger")]
    release = client.get(place).header("location")
    if fails is None:
        seen += [client.get(release + path) for path in READINGS]
    studio.close()
    return seen


def hospital_config_kept(folder):
    """The configuration, over tables that stay as they are."""
    tables = {path: path.read_bytes() for path in (folder / "secret-place").glob("*.csv")}
    config = hospital_config(folder)
    for path, content in tables.items():
        path.write_bytes(content)
    return config


def neighbour(folder):
    """One patient more, whose values no other has; then everything but the tables is as at the beginning."""
    table = folder / "secret-place" / "visits.csv"
    table.write_bytes(table.read_bytes() + b"99999,88,59.87,nn\n99999,17,0.01,\n")
    for name in ("store", "marks", "budget.fogline.locks"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "budget.fogline").unlink()


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbours_give_the_same_pages_headers_and_cookies(tmp_path, monkeypatch, seed):
    for module in (terms, protocol):  # a ledger refuses noise that was recorded: for this test it does not
        monkeypatch.setattr(module, "provider_reason", lambda: "")
    hospital_config(tmp_path)
    constant_surroundings(monkeypatch)
    recorder = RecordingProvider(SeededProvider(seed))
    first = journey(tmp_path, recorder)
    assert any(step.answer.size for step in recorder.steps if hasattr(step, "answer"))
    neighbour(tmp_path)
    constant_surroundings(monkeypatch)
    again = ReplayingProvider(recorder.steps)
    second = journey(tmp_path, again)
    again.finished()
    assert again.failures == []
    assert max(again.ratios) > 0  # the neighbour's records were read
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one.status == other.status
        assert one.headers == other.headers
        assert one.body == other.body


def test_other_noise_gives_other_pages(tmp_path, monkeypatch):
    """The comparison above can fail."""
    for module in (terms, protocol):
        monkeypatch.setattr(module, "provider_reason", lambda: "")
    hospital_config(tmp_path)
    constant_surroundings(monkeypatch)
    first = journey(tmp_path, SeededProvider(0))
    neighbour(tmp_path)
    constant_surroundings(monkeypatch)
    second = journey(tmp_path, SeededProvider(1))
    different = [one.body != other.body for one, other in zip(first, second, strict=True)]
    assert different[-len(READINGS)]
    assert not any(different[:8])


def test_every_failure_after_the_reservation_gives_the_same_pages(tmp_path, monkeypatch):
    for module in (terms, protocol):
        monkeypatch.setattr(module, "provider_reason", lambda: "")
    hospital_config(tmp_path)
    table = tmp_path / "secret-place" / "visits.csv"
    content = table.read_bytes()

    def vanish(step):
        if step == "mark durable":  # reserved, and the table is gone before it is read
            table.unlink(missing_ok=True)

    def fail(step):
        if step == "released":
            raise RuntimeError("a cell said 8.123456789")

    pages = []
    for cause in (vanish, fail):
        constant_surroundings(monkeypatch)
        pages.append(journey(tmp_path, SeededProvider(0), cause))
        table.write_bytes(content)
        neighbour(tmp_path)
    assert "Reserved, not answered." in pages[0][9].text
    for one, other in zip(*pages, strict=True):
        assert (one.status, one.headers, one.body) == (other.status, other.headers, other.body)
