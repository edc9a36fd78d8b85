"""The one release: told on fixed steps, failing with one sentence, and what a killed studio leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hospital import enter, form_key, hospital_config, open_studio

from fogline.ledger.steps import observing
from fogline.studio.app import make_app
from fogline.studio.work import FAILED, Releasing, time_to_tell

QUERY = "column=heart_rate&epsilon=0.5"


def begun(client, query=QUERY):
    return client.post("/data/lab/release", {"key": form_key(client.get(f"/data/lab/review?{query}").text)})


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def timed(tmp_path):
    """A studio whose clock stands still."""
    studio = open_studio(replace(hospital_config(tmp_path), time_steps=(2.0, 5.0, 60.0)))
    clock = Clock()
    steps = studio.config.time_steps
    studio.releasing = Releasing(studio.ledger, studio.catalogue, studio.store, steps, clock)
    yield studio, enter(make_app(studio), "custodian"), clock
    studio.close()


@pytest.mark.quick
@pytest.mark.parametrize(("elapsed", "told"), [(0.0, 2.0), (2.0, 2.0), (2.1, 5.0), (59.0, 60.0), (61.0, 120.0)])
def test_steps_of_the_clock(elapsed, told):
    assert time_to_tell(elapsed, (2.0, 5.0, 60.0)) == told


def test_the_end_is_told_on_a_step_and_not_before(timed):
    studio, client, clock = timed
    place = begun(client).header("location")
    studio.releasing.finish()  # it has ended, whatever the page says
    clock.now += 1.9
    state = client.get(f"{place}/state").json
    assert state == {"told": False, "elapsed": 1, "next": 2}
    [hidden] = studio.store.releases()
    waiting = client.get(place).text
    assert "Releasing" in waiting
    for path in (place, "/", f"/data/lab/review?{QUERY}"):  # nor does any other page tell
        assert hidden.id not in client.get(path).text
    assert client.get(f"/releases/{hidden.id}").status == 404
    assert client.get(f"/releases/{hidden.id}/export/release").status == 404
    assert "on its way" in client.get("/ledger").text
    clock.now += 0.2
    assert hidden.id in client.get("/").text
    assert "on its way" not in client.get("/ledger").text
    assert client.get(f"{place}/state").json["told"]
    assert client.get(place).header("location").startswith("/releases/")


def test_success_and_failure_look_the_same_until_they_are_told(timed):
    studio, client, clock = timed
    good = begun(client).header("location")
    studio.releasing.finish()

    def fail(step):
        if step == "mark durable":
            raise RuntimeError("8.123456789")

    with observing(fail):
        bad = begun(client, "column=heart_rate&epsilon=0.25").header("location")
        studio.releasing.finish()
    seen = [client.get(place).text.replace("0.25", "0.5").replace(place, "") for place in (good, bad)]
    assert seen[0] == seen[1]
    clock.now += 2.0
    assert client.get(good).status == 303
    assert client.get(bad).status == 200


def test_a_failure_after_the_reservation_is_one_sentence(tmp_path):
    studio = open_studio(hospital_config(tmp_path))
    client = enter(make_app(studio), "custodian")

    def fail(step):
        if step == "released":
            raise RuntimeError("a cell said 8.123456789")

    with observing(fail):
        place = begun(client).header("location")
        studio.releasing.finish()
    while not client.get(f"{place}/state").json["told"]:
        pass
    text = client.get(place).text
    assert FAILED in text
    assert "8.123" not in text
    assert "Reserved, not answered." in text
    assert studio.ledger.remaining("lab").pure == pytest.approx(5.5)
    assert "reserved, not answered" in client.get("/ledger").text
    assert studio.store.releases() == []
    studio.close()


def test_a_question_that_does_not_fit_is_refused_before_it_is_paid(tmp_path):
    studio = open_studio(hospital_config(tmp_path))
    client = enter(make_app(studio), "custodian")
    shown = client.get(f"/data/lab/review?{QUERY}")
    lab = tmp_path / "secret-place" / "lab.csv"
    lab.write_text(lab.read_text().replace("heart_rate", "pulse"))  # the header changes after the page was shown
    place = client.post("/data/lab/release", {"key": form_key(shown.text)}).header("location")
    studio.releasing.finish()
    while not client.get(f"{place}/state").json["told"]:
        pass
    text = client.get(place).text
    assert "Nothing was spent." in text
    assert "does not fit the data set" in text
    assert studio.ledger.remaining("lab").pure == pytest.approx(6.0)
    studio.close()


SERVER = f"""
import os, signal, sys
from pathlib import Path
from fogline.ledger.steps import observing
from fogline.studio.app import make_app
from hospital import enter, form_key, hospital_config, open_studio

studio = open_studio(hospital_config(Path(sys.argv[1])))
client = enter(make_app(studio), "custodian")
key = form_key(client.get("/data/lab/review?{QUERY}").text)

def kill(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

with observing(kill):
    client.post("/data/lab/release", {{"key": key}})
    studio.releasing.finish()
"""


@pytest.mark.parametrize(
    ("step", "words", "left"),
    [
        ("room made", "Nothing was reserved.", 6.0),
        ("mark durable", "Reserved, not answered.", 5.5),
        ("unlocked", "Paid and answered.", 5.5),
    ],
)
def test_a_studio_that_is_killed_overspends_nothing_and_says_what_happened(tmp_path, step, words, left):
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, str(Path(root) / "tests" / "helpers"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", SERVER, str(tmp_path), step], env=environment, cwd=root, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()

    studio = open_studio(hospital_config(tmp_path, cap=None))
    client = enter(make_app(studio), "custodian")
    assert studio.ledger.remaining("lab").pure == pytest.approx(left)
    start = client.get("/").text
    assert "did not end" in start
    [note] = studio.store.notes()
    text = client.get(f"/progress/{note.id}").text
    assert "The studio was stopped" in text
    assert words in text
    if words == "Paid and answered.":
        key = form_key(text)
        analyst = enter(make_app(studio), "analyst")
        assert analyst.post(f"/progress/{note.id}/fetch", {"key": key}).status == 403
        client.post(f"/progress/{note.id}/fetch", {"key": key})
        studio.releasing.finish()
        assert client.get(f"/progress/{note.id}").header("location").startswith("/releases/")
        assert client.post(f"/progress/{note.id}/fetch", {"key": key}).status == 403
        assert studio.ledger.remaining("lab").pure == pytest.approx(left)
        assert "did not end" not in client.get("/").text
    studio.close()


def test_releases_come_one_at_a_time(tmp_path):
    studio = open_studio(hospital_config(tmp_path))
    client = enter(make_app(studio), "custodian")
    inside, most = [0], [0]

    def count(step):
        if step == "locked":
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        if step == "unlocked":
            inside[0] -= 1

    with observing(count):
        for epsilon in (0.1, 0.2, 0.3):
            begun(client, f"column=heart_rate&epsilon={epsilon}")
        assert studio.releasing.threads
        studio.releasing.finish()
    assert most[0] == 1
    assert not studio.releasing.busy()
    assert studio.ledger.remaining("lab").pure == pytest.approx(5.4)
    studio.close()


def test_a_studio_that_is_started_again_shows_what_was_released(tmp_path):
    first = open_studio(hospital_config(tmp_path))
    client = enter(make_app(first), "custodian")
    place = begun(client).header("location")
    first.releasing.finish()
    [stored] = first.store.releases()
    density = first.store.density(stored.id)
    first.close()
    second = open_studio(hospital_config(tmp_path, cap=None))
    assert second.store.density(stored.id) == density
    client = enter(make_app(second), "analyst")
    assert stored.id in client.get("/").text
    assert client.get(place).header("location") == f"/releases/{stored.id}"
    assert client.get(f"/releases/{stored.id}").status == 200
    second.close()
