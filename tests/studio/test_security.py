"""Who comes in, what a request may be, and what no answer ever holds."""

from __future__ import annotations

import re

import pytest
from asgi_client import ORIGIN, Client
from hospital import TOKENS, enter, form_key, open_studio

from fogline.studio import security
from fogline.studio.app import make_app
from fogline.studio.config import folder_config
from fogline.studio.rendering import constant_page
from fogline.studio.security import HEADERS, FormKeys, Sessions, Tokens

pytestmark = pytest.mark.quick

GETS = (
    "/", "/enter", "/ledger", "/data/visits", "/data/visits?column=age", "/data/visits/outlook?column=age",
    "/data/visits/review?column=age", "/nowhere", "/static/studio.css", "/static/../config.py", "/data/nobody",
)  # fmt: skip


def test_nobody_is_let_in_without_a_token(hospital):
    _, app, releases = hospital
    guest = Client(app)
    for path in ("/", "/ledger", "/data/visits", f"/releases/{releases['lab']}", "/progress/abc", "/proposals/abc"):
        answer = guest.get(path)
        assert (answer.status, answer.header("location")) == (303, "/enter"), path
    for path in ("/leave", "/data/visits/release", "/data/visits/propose", "/progress/abc/fetch"):
        assert guest.post(path, {"key": "x"}).status == 403
    wrong = guest.post("/enter", {"token": TOKENS["custodian"][:-1]})
    assert (wrong.status, wrong.all("set-cookie")) == (403, [])


def test_the_cookie_is_for_the_server_alone(hospital):
    answer = Client(hospital[1]).post("/enter", {"token": TOKENS["analyst"]})
    cookie = answer.header("set-cookie").lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert TOKENS["analyst"] not in cookie


def test_who_leaves_is_gone(hospital):
    client = enter(hospital[1], "analyst")
    kept = dict(client.cookies)
    assert client.post("/leave").status == 303
    assert client.cookies == {}
    client.cookies = kept
    assert client.get("/").status == 303


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8765", ""])
def test_another_host_is_not_answered(hospital, host):
    client = enter(hospital[1], "custodian")
    client.host = host
    assert client.get("/").status == 421


def test_two_hosts_are_none(hospital):
    client = Client(hospital[1])
    assert client.get("/enter").status == 200
    assert client.get("/enter", {"Host": "127.0.0.1:8765"}).status == 200  # names of headers come in small letters
    sent = []

    async def run():
        async def send(message):
            sent.append(message)

        hosts = [(b"host", b"127.0.0.1:8765")] * 2
        scope = {"type": "http", "method": "GET", "path": "/enter", "query_string": b"", "headers": hosts}
        await hospital[1](scope, None, send)

    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as beside:
        beside.submit(asyncio.run, run()).result()
    assert sent[0]["status"] == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8765"},
        {"origin": None},
        {"origin": None, "sec-fetch-site": "cross-site"},
        {"origin": None, "sec-fetch-site": "same-site"},
    ],
)
def test_a_form_from_elsewhere_is_refused(hospital, headers):
    client = enter(hospital[1], "custodian")
    key = form_key(client.get("/data/lab/review?column=heart_rate&epsilon=0.01").text)
    before = hospital[0].ledger.remaining("lab").pure
    assert client.post("/data/lab/release", {"key": key}, headers).status == 403
    assert hospital[0].ledger.remaining("lab").pure == before


def test_a_browser_that_names_no_origin_says_where_a_form_comes_from(hospital):
    client = Client(hospital[1])
    headers = {"origin": None, "sec-fetch-site": "same-origin"}
    assert client.post("/enter", {"token": TOKENS["analyst"]}, headers).status == 303


def test_requests_have_their_limits(hospital):
    client = enter(hospital[1], "custodian")
    assert client.get("/?" + "a" * (security.MOST_QUERY + 1)).status == 414
    assert client.get("/" + "a" * 500).status == 414
    assert client.get("/", headers={"x-long": "a" * security.MOST_HEADERS}).status == 431
    assert client.get("/", method="DELETE").status == 405
    assert client.get("/", method="PUT").status == 405
    assert client.post("/leave", {"a": "b" * security.MOST_BODY}).status == 413
    assert client.post("/leave", {}, {"content-type": "multipart/form-data; boundary=x"}).status == 415
    assert client.post("/leave", {}, {"content-length": "many"}).status == 413
    assert client.post("/leave", {}, {"content-length": "9" * 5000}).status == 413
    assert client.post("/leave", {"a": "b" * security.MOST_BODY}, {"content-length": "10"}).status == 413
    assert client.get("/data/visits?" + "&".join(f"a{k}=1" for k in range(500))).status == 400
    body = b"token=\xff\xfe"
    kind = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    assert client.send("POST", "/enter", kind, body).status == 400


def test_every_answer_has_the_same_headers(hospital):
    _, app, releases = hospital
    client = enter(app, "custodian")
    for path in (*GETS, f"/releases/{releases['lab']}", "/" + "a" * 500):
        answer = client.get(path)
        for name, value in HEADERS.items():
            if (name, path) != ("cache-control", "/static/studio.css"):
                assert answer.all(name) == [value], (path, name)
    download = client.get(f"/releases/{releases['lab']}/export/report")
    assert download.header("content-security-policy") == "default-src 'none'; sandbox"
    assert download.header("content-disposition").startswith("attachment;")


def test_pages_have_no_script_and_no_style_of_their_own(hospital):
    _, app, releases = hospital
    client = enter(app, "custodian")
    paths = [*GETS, *(f"/releases/{releases['visits']}{tab}" for tab in ("", "/curve", "/ask", "/export", "/compare"))]
    for path in paths:
        text = client.get(path).text if "css" not in path else ""
        assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", text), path
        assert not re.search(r"<script(?! src=\"/static/)", text), path
        assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", text), path


def test_no_page_names_a_place_of_the_machine(hospital, tmp_path):
    studio, app, releases = hospital
    client = enter(app, "custodian")
    needles = ("secret-place", str(studio.config.store), str(studio.config.ledger), "studio.toml", "site-packages")
    tabs = ("", "/curve", "/ask?q=count", "/export", "/compare")
    kinds = ("report", "explore", "release", "recipe", "script", "notebook", "card")
    paths = [*GETS, *(f"/releases/{releases['lab']}{tab}" for tab in tabs)]
    paths += [f"/releases/{releases['lab']}/export/{kind}" for kind in kinds]
    paths += ["/data/visits?encoding=nonsense", "/data/visits?delimiter=long", "/data/visits?header=a,a"]
    for path in paths:
        answer = client.get(path)
        for needle in needles:
            assert needle.encode() not in answer.body, (path, needle)
            assert needle not in str(answer.headers)


def test_names_of_columns_are_escaped(tmp_path):
    from hospital import STEPS, open_studio

    from fogline.studio.app import make_app
    from fogline.studio.config import Dataset, StudioConfig

    (tmp_path / "x.csv").write_text('<script>alert(1)</script>,"quoted ""name"""\n1,2\n')
    one = Dataset("x", str(tmp_path / "x.csv"), "<b>title</b>", account="x", about="<i>about</i>")
    studio = open_studio(
        StudioConfig((one,), tmp_path / "s", tmp_path / "l", tmp_path / "m", cap=(1.0, 0.0), time_steps=STEPS)
    )
    client = enter(make_app(studio), "custodian")
    for path in ("/", "/data/x", "/data/x?column=%3Cscript%3Ealert(1)%3C/script%3E&low.x=1", "/ledger"):
        text = client.get(path).text
        assert "<script>alert" not in text
        assert "<b>title" not in text
        assert "&lt;" in text
    studio.close()


def test_analysts_do_not_spend_and_custodians_do_not_propose(hospital):
    studio, app, _ = hospital
    analyst, custodian = enter(app, "analyst"), enter(app, "custodian")
    proposing = form_key(analyst.get("/data/lab/review?column=heart_rate&epsilon=0.01").text)
    spending = form_key(custodian.get("/data/lab/review?column=heart_rate&epsilon=0.01").text)
    before = len(studio.ledger.history())
    assert analyst.post("/data/lab/release", {"key": proposing}).status == 403
    assert analyst.post("/data/lab/release", {"key": spending}).status == 403
    assert custodian.post("/data/lab/propose", {"key": spending}).status == 403
    assert custodian.post("/data/lab/release", {"key": proposing}).status == 403
    assert custodian.post("/data/visits/release", {"key": spending}).status == 403  # of another data set
    assert custodian.post("/data/lab/release", {"key": "made up"}).status == 403
    assert custodian.post("/data/lab/release", {}).status == 403
    assert custodian.get("/data/lab/release?key=" + spending).status == 404
    assert len(studio.ledger.history()) == before


def test_a_key_of_somebody_else_is_none(hospital):
    app = hospital[1]
    first, second = enter(app, "custodian"), enter(app, "custodian")
    key = form_key(first.get("/data/lab/review?column=heart_rate&epsilon=0.01").text)
    assert second.post("/data/lab/release", {"key": key}).status == 403


def test_what_goes_wrong_is_one_constant_page(hospital, monkeypatch):
    studio, app, _ = hospital
    client = enter(app, "custodian")

    def broken(*_):
        raise RuntimeError("a cell said 8.123456789")

    monkeypatch.setattr(studio, "statement", broken)
    for path in ("/", "/ledger", "/data/visits"):
        answer = client.get(path)
        assert (answer.status, answer.body) == (500, constant_page(500))
        assert answer.all("content-security-policy") == [HEADERS["content-security-policy"]]


def test_sessions_end(monkeypatch):
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    name = sessions.open("analyst")
    assert sessions.role_of(name) == "analyst"
    assert sessions.role_of(name + "x") is None
    now[0] = security.SESSION_SECONDS + 1
    assert sessions.role_of(name) is None
    first = sessions.open("custodian")
    for _ in range(security.MOST_SESSIONS):
        sessions.open("custodian")
    assert sessions.role_of(first) is None


def test_analysts_cannot_turn_custodians_out(monkeypatch):
    monkeypatch.setattr(security, "MOST_SESSIONS", 3)
    sessions = Sessions()
    custodian, analysts = sessions.open("custodian"), [sessions.open("analyst") for _ in range(10)]
    assert sessions.role_of(custodian) == "custodian"
    assert [sessions.role_of(name) for name in analysts] == [None] * 7 + ["analyst"] * 3


def test_nobody_uses_up_the_form_keys_of_others(monkeypatch):
    monkeypatch.setattr(security, "MOST_KEYS", 8)
    keys = FormKeys()
    mine = [keys.issue("custodian", "release", k) for k in range(2)]
    theirs = [keys.issue("analyst", "propose", k) for k in range(20)]
    assert [keys.redeem("custodian", "release", name).content for name in mine] == [0, 1]
    assert [keys.redeem("analyst", "propose", name) is not None for name in theirs] == [False] * 14 + [True] * 6


def test_a_first_record_is_not_shown_to_whoever_chooses_the_delimiter(tmp_path):
    (tmp_path / "people.csv").write_text("anna,34,5.2\nbob,40,7.1\n")
    studio = open_studio(folder_config(tmp_path, store=tmp_path / "store", cap=(1.0, 0.0)))
    try:
        analyst = enter(make_app(studio), "analyst")
        for delimiter in ("", "%3B", "%7C", "tab", "space", "%3A"):
            answer = analyst.get(f"/data/people?delimiter={delimiter}")
            assert b"anna" not in answer.body, delimiter
    finally:
        studio.close()


def test_form_keys_work_once_and_not_for_long():
    now = [0.0]
    keys = FormKeys(lambda: now[0])
    key = keys.issue("me", "release", "what")
    assert keys.redeem("you", "release", key) is None
    assert keys.redeem("me", "decline", key) is None
    found = keys.redeem("me", "release", key)
    assert (found.content, found.first, found.outcome) == ("what", True, None)
    keys.conclude(key, "work-1")
    again = keys.redeem("me", "release", key)
    assert (again.first, again.outcome) == (False, "work-1")
    late = keys.issue("me", "release")
    now[0] = security.KEY_SECONDS + 1
    assert keys.redeem("me", "release", late) is None


def test_tokens_are_drawn_and_told_once():
    tokens, told = Tokens.drawn()
    assert tokens.role_of(told["custodian"]) == "custodian"
    assert tokens.role_of(told["analyst"]) == "analyst"
    assert tokens.role_of("") is None
    assert told["custodian"] not in str(vars(tokens))
    assert len(set(told.values())) == 2
