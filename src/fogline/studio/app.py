"""All of it together: a configuration becomes an application, and an application is served on this machine."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from fogline.ledger import Ledger
from fogline.report.ledger import Statement, statements
from fogline.studio.catalogue import Catalogue
from fogline.studio.config import ConfigError, Dataset, StudioConfig
from fogline.studio.explorer import Memory
from fogline.studio.outlook import Outlooks
from fogline.studio.rendering import constant_page
from fogline.studio.security import FormKeys, Guard, Role, Sessions, Tokens
from fogline.studio.store import Proposal, Store, StoredRelease
from fogline.studio.work import Releasing

__all__ = ["Studio", "links", "make_app", "open_ledger", "serve"]


def open_ledger(config: StudioConfig) -> Ledger:
    """Open the ledger; make it, or add a data set to it, where the administrator gave a cap for that."""
    cap = config.cap
    if not config.ledger.exists():
        if cap is None:
            words = "say what may be spent of each data set in all, such as --budget 3, or epsilon in [ledger]"
            raise ConfigError(f"there is no ledger {str(config.ledger)!r} yet: {words}")
        config.ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        first = config.datasets[0]
        made = Ledger.create(config.ledger, dataset=first.account, **_terms(first, cap), high_water=config.high_water)
    else:
        made = Ledger.open(config.ledger, high_water=config.high_water)
    try:
        for dataset in config.datasets:
            if dataset.account in made.datasets:
                continue
            if cap is None:
                words = "add it by `fogline ledger add-dataset`, or say --budget 3"
                raise ConfigError(f"the ledger has no data set {dataset.account!r}: {words}")
            made.add_dataset(dataset.account, **_terms(dataset, cap))
    except BaseException:
        made.close()
        raise
    return made


def _terms(dataset: Dataset, cap: tuple[float, float]) -> dict[str, Any]:
    unit = {} if dataset.unit is None else {"unit": dataset.unit, "max_contributions": dataset.max_contributions}
    return {"epsilon": cap[0], "delta": cap[1], **unit}


@dataclass
class Studio:
    """What the pages work with.

    Parameters
    ----------
    config : StudioConfig
    ledger : Ledger
    tokens : Tokens
    """

    config: StudioConfig
    ledger: Ledger
    tokens: Tokens
    outlooks: Outlooks = field(default_factory=Outlooks)
    sessions: Sessions = field(default_factory=Sessions)
    keys: FormKeys = field(default_factory=FormKeys)
    catalogue: Catalogue = field(default_factory=Catalogue)
    memory: Memory = field(default_factory=Memory)
    store: Store = field(init=False)
    releasing: Releasing = field(init=False)

    def __post_init__(self) -> None:
        self.store = Store(self.config.store)
        self.releasing = Releasing(self.ledger, self.catalogue, self.store, self.config.time_steps)

    def account(self, dataset: str) -> str:
        """Return the ledger's name of a data set."""
        found = self.config.dataset(dataset)
        return dataset if found is None else found.account

    def statement(self, dataset: Dataset, *, fresh: bool = False) -> Statement:
        """Return what the ledger says of a data set; unless it is to be fresh, items may lack their last answer."""
        if fresh:
            return next(one for one in statements(self.ledger) if one.dataset == dataset.account)
        # The history is read again only where a total has changed: a slider asks many times a second.
        account = dataset.account
        state = ("statement", account, self.ledger.remaining(account), self.ledger.spending(account))
        found: Statement = self.memory.get(state, lambda: self.statement(dataset, fresh=True))
        return found

    def releases(self) -> list[StoredRelease]:
        """Return the releases that may be seen, newest first."""
        hidden = self.releasing.untold()
        return [one for one in self.store.releases() if one.id not in hidden]

    def release(self, name: str | None) -> StoredRelease | None:
        """Return a release that may be seen."""
        return None if name is None or name in self.releasing.untold() else self.store.release(name)

    def proposals(self) -> list[Proposal]:
        """Return the proposals, newest first; one whose release may not be seen yet is still open."""
        hidden = self.releasing.untold()
        return [_open(one) if one.release in hidden else one for one in self.store.proposals()]

    def proposal(self, name: str) -> Proposal | None:
        """Return one proposal, as it may be seen."""
        return next((one for one in self.proposals() if one.id == name), None)

    def close(self) -> None:
        """Let the release that is on its way end, and close the ledger."""
        self.outlooks.close()
        self.releasing.finish()
        self.ledger.close()


def _open(proposal: Proposal) -> Proposal:
    return replace(proposal, state="open", reply="", release=None)


def make_app(studio: Studio) -> Guard:
    """Return the application of a studio, behind its guard."""
    from starlette.applications import Starlette
    from starlette.responses import Response

    from fogline.studio.views import routes

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        studio.close()

    async def failed(*_: Any) -> Response:
        return Response(constant_page(500), 500, media_type="text/html")

    inner = Starlette(routes=routes(studio), lifespan=lifespan, exception_handlers={500: failed})
    inner.router.redirect_slashes = False
    config = studio.config
    return Guard(inner, config.allowed_hosts, config.allowed_origins, config.https, constant_page)


def links(config: StudioConfig, told: dict[Role, str]) -> dict[Role, str]:
    """Return the address of each role; the token stands behind #, which browsers do not send."""
    name = config.hosts[0] if config.hosts else f"127.0.0.1:{config.port}"
    scheme = "https" if config.https else "http"
    return {role: f"{scheme}://{name}/enter#{token}" for role, token in told.items()}


def serve(config: StudioConfig, announce: Callable[[dict[Role, str]], None]) -> None:
    """Serve a studio until it is stopped.

    Parameters
    ----------
    config : StudioConfig
    announce : callable
        Told the addresses with their tokens, once.

    Raises
    ------
    OSError
        If the port is taken: before a ledger is made or a token is shown.
    """
    import uvicorn

    # the port first: a second studio must not make a ledger and then fail
    with _listening(config.host, config.port) as listening:
        ledger = open_ledger(config)
        tokens, told = Tokens.drawn()
        app = make_app(Studio(config, ledger, tokens))
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                host=config.host,
                port=config.port,
                http="h11",  # whatever else is installed: the limits below are its own
                ws="none",
                log_level="warning",
                access_log=False,  # addresses hold questions
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=15,
                limit_concurrency=400,
                h11_max_incomplete_event_size=32 * 1024,
                timeout_graceful_shutdown=5,
            )
        )
        announce(links(config, told))
        server.run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=512)
