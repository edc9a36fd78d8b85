"""A client for an application in the same process: bytes to and fro, cookies as a browser has them."""

from __future__ import annotations

import asyncio
import contextvars
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import urlencode

ORIGIN = "http://127.0.0.1:8765"


@dataclass(frozen=True)
class Answer:
    """What came back, header by header in its order."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@dataclass
class Client:
    """Whoever sits at a browser."""

    app: object
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1:8765"
    origin: str = ORIGIN

    def get(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
        return self.send(method, path, headers or {}, b"")

    def post(self, path: str, form: object = (), headers: dict[str, str] | None = None) -> Answer:
        body = urlencode(form).encode()
        own = {
            "origin": self.origin,
            "content-type": "application/x-www-form-urlencoded",
            "content-length": str(len(body)),
        }
        return self.send("POST", path, {**own, **(headers or {})}, body)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        place, _, query = path.partition("?")
        given = {"host": self.host, **headers}
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.encode(), v.encode("latin-1")) for k, v in given.items() if v is not None],
            "server": ("127.0.0.1", 8765),
            "client": ("127.0.0.1", 50000),
        }
        # In a thread of its own: a browser that is driven from this one may have an event loop here.
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as beside:
            answer = beside.submit(context.run, asyncio.run, self._exchange(scope, body)).result()
        for line in answer.all("set-cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                if morsel["max-age"] == "0":
                    del self.cookies[name]
        return answer

    async def _exchange(self, scope: dict, body: bytes) -> Answer:
        sent = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        content = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
        headers = tuple((k.decode(), v.decode("latin-1")) for k, v in start["headers"])
        return Answer(start["status"], headers, content)
