"""Who may come in, and what a request may be.

Tokens are printed once, when the studio starts, and never stand in an address that is sent: the link that is printed
carries the token behind ``#``, which a browser keeps to itself, and a form posts it. After that a cookie says who is
there. Spending takes a POST from a page of the studio itself, with a form key that works once and for exactly the
question that was shown.

The guard stands before everything else: it refuses other hosts (a page elsewhere that resolves its own name to this
machine would otherwise be let in), other origins, other methods and oversized requests, and gives every answer the same
headers. Whatever goes wrong inside is one constant page.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "COOKIE",
    "HEADERS",
    "MOST_BODY",
    "MOST_QUERY",
    "FormKeys",
    "Guard",
    "Redeemed",
    "Role",
    "Sessions",
    "Tokens",
    "TooLarge",
]

Role = Literal["custodian", "analyst"]
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "fogline-studio"
MOST_BODY = 64 * 1024
"""Most bytes of a form."""
MOST_QUERY = 8 * 1024
"""Most bytes of a query."""
MOST_PATH = 400
MOST_HEADERS = 32 * 1024
"""Most bytes of all headers together."""
SESSION_SECONDS = 12 * 3600.0
KEY_SECONDS = 3600.0
MOST_SESSIONS = 256
"""Most people of one role who are there at a time."""
MOST_KEYS = 4096
"""Most forms that are open at a time, of all people together."""
MOST_DIGITS = 12

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers say of a form that it comes from nowhere
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cache-control": "no-store",
}
"""Of every answer, unless it says otherwise itself."""


class Tokens:
    """One token per role; only their hashes are kept.

    Parameters
    ----------
    custodian, analyst : str
    """

    def __init__(self, custodian: str, analyst: str) -> None:
        self._digests: dict[Role, bytes] = {"custodian": _digest(custodian), "analyst": _digest(analyst)}

    @classmethod
    def drawn(cls) -> tuple[Tokens, dict[Role, str]]:
        """Draw both, and return them for the one time that they are printed."""
        told: dict[Role, str] = {"custodian": secrets.token_urlsafe(24), "analyst": secrets.token_urlsafe(24)}
        return cls(told["custodian"], told["analyst"]), told

    def role_of(self, token: str) -> Role | None:
        """Return the role of a token, after as long a comparison with each of them whatever it is."""
        # hashes are compared, of equal length whatever was sent
        given = _digest(token[:200])
        found: Role | None = None
        for role, digest in self._digests.items():
            # no early return: the time must not tell which role a token is near to
            if hmac.compare_digest(given, digest):
                found = role
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True)
class _Session:
    role: Role
    until: float


class Sessions:
    """Who is there, by the hash of a cookie; in memory, and gone when the studio stops."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, _Session] = OrderedDict()

    def open(self, role: Role) -> str:
        """Let somebody in, and return the value of their cookie."""
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._known[_digest(name)] = _Session(role, self._clock() + SESSION_SECONDS)
            # The oldest of the same role goes: analysts must not be able to turn custodians out.
            mine = [digest for digest, session in self._known.items() if session.role == role]
            for digest in mine[: max(0, len(mine) - MOST_SESSIONS)]:
                del self._known[digest]
        return name

    def role_of(self, name: str) -> Role | None:
        """Return who a cookie stands for; None for nobody."""
        with self._lock:
            found = self._known.get(_digest(name[:200]))
        return None if found is None or found.until < self._clock() else found.role

    def close(self, name: str) -> None:
        """Forget a cookie."""
        with self._lock:
            self._known.pop(_digest(name[:200]), None)


@dataclass
class _Key:
    session: bytes
    purpose: str
    content: Any
    until: float
    outcome: str | None = None
    used: bool = False


@dataclass(frozen=True)
class Redeemed:
    """What a form key stood for.

    Parameters
    ----------
    content : object
        What was shown beside it.
    first : bool
        Whether it is used for the first time.
    outcome : str or None
        What its first use led to, once that is known.
    """

    content: Any
    first: bool
    outcome: str | None


class FormKeys:
    """Keys of forms: each for one person, one purpose and one content, and good for one use."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Key] = OrderedDict()

    def issue(self, session: str, purpose: str, content: Any = None) -> str:
        """Make a key."""
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._known[name] = _Key(_digest(session), purpose, content, self._clock() + KEY_SECONDS)
            if len(self._known) > MOST_KEYS:
                del self._known[self._dispensable()]
        return name

    def _dispensable(self) -> str:
        """Oldest key of whoever holds most of them: nobody can use up the keys of others."""
        numbers = Counter(key.session for key in self._known.values())
        (most, _), *_ = numbers.most_common(1)
        return next(name for name, key in self._known.items() if key.session == most)

    def redeem(self, session: str, purpose: str, name: str) -> Redeemed | None:
        """Use a key; None where it is none of this person's for this purpose, or too old."""
        with self._lock:
            key = self._known.get(name)
            if key is None or key.purpose != purpose or key.until < self._clock():
                return None
            if not hmac.compare_digest(key.session, _digest(session)):
                return None
            # under the lock: of two clicks at once only one is the first
            first, key.used = not key.used, True
            return Redeemed(key.content, first, key.outcome)

    def conclude(self, name: str, outcome: str) -> None:
        """Note what the use of a key led to, for whoever sends the same form twice."""
        with self._lock:
            if name in self._known:
                self._known[name].outcome = outcome


class TooLarge(Exception):
    """A body of more bytes than a form has."""


@dataclass
class Guard:
    """An application behind the checks that every request passes.

    Parameters
    ----------
    app : application
        Of the ASGI interface.
    hosts, origins : frozenset of str
        Allowed values of the two headers.
    https : bool
        Whether browsers are to insist on HTTPS.
    refusal : callable
        Takes a status, and returns a constant page.
    """

    app: App
    hosts: frozenset[str]
    origins: frozenset[str]
    https: bool
    refusal: Callable[[int], bytes]
    _headers: list[tuple[bytes, bytes]] = field(init=False)

    def __post_init__(self) -> None:
        extra = {"strict-transport-security": "max-age=31536000"} if self.https else {}
        self._headers = [(name.encode(), value.encode()) for name, value in {**HEADERS, **extra}.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        # no sockets: nothing in the studio needs one
        if scope["type"] != "http":
            return
        status = self._status(scope)
        if status is not None:
            await self._refuse(status, send)
            return
        started = False
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            # counted as it comes: the length that a request states may be a lie
            taken += len(message.get("body", b""))
            if taken > MOST_BODY:
                raise TooLarge
            return message

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": self._dressed(message.get("headers", []))}
            await send(message)

        try:
            await self.app(scope, limited, dressed)
        except Exception:
            # One constant page: what went wrong may depend on anything.
            if not started:
                await self._refuse(500, send)

    def _status(self, scope: Scope) -> int | None:
        """Return why a request is not answered; None where it is."""
        method, headers = scope["method"], scope["headers"]
        if method not in ("GET", "HEAD", "POST"):
            return 405
        if len(scope.get("query_string", b"")) > MOST_QUERY or len(scope["path"]) > MOST_PATH:
            return 414
        if sum(len(name) + len(value) for name, value in headers) > MOST_HEADERS:
            return 431
        hosts = [value for name, value in headers if name == b"host"]
        # a page elsewhere may let its own name point to this machine (DNS rebinding)
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self.hosts:
            return 421
        if method != "POST":
            return None
        found = {name: value.decode("latin-1") for name, value in headers}
        if not self._from_here(found):
            return 403
        length = found.get(b"content-length", "")
        # isdigit alone takes digits of other scripts, and nobody needs a number of a million digits
        digits = length.isascii() and length.isdigit() and len(length) <= MOST_DIGITS
        if length and (not digits or int(length) > MOST_BODY):
            return 413
        kind = found.get(b"content-type", "").partition(";")[0].strip().lower()
        return None if kind == "application/x-www-form-urlencoded" else 415

    def _from_here(self, headers: dict[bytes, str]) -> bool:
        """Whether a form comes from a page of the studio: browsers say so in one of two headers."""
        origin = headers.get(b"origin")
        if origin is not None:
            return origin.lower() in self.origins
        return headers.get(b"sec-fetch-site") == "same-origin"

    def _dressed(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        given = {name.lower() for name, _ in headers}
        # an answer that says it itself keeps what it says
        return [*headers, *((name, value) for name, value in self._headers if name not in given)]

    async def _refuse(self, status: int, send: Send) -> None:
        body = self.refusal(status)
        own = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": self._dressed(own)})
        await send({"type": "http.response.body", "body": body})
