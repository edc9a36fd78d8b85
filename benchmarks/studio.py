"""The studio as its users feel it: start, slider, pages, fifty readers at a time; on this machine's own address only.

    python benchmarks/studio.py               measures, and writes docs/benchmarks/studio.csv
    python benchmarks/studio.py --readers 10  fewer readers
    python benchmarks/studio.py --page        writes the section Numbers of docs/studio.md from that file

A server of its own process serves a made-up table of 20 000 visits. Seconds are those of the clock, with the load of
the machine beside them; CPU seconds and memory are the server's. Everything is bounded: some hundred requests each.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from common import read_csv, write_csv

SOURCE = Path(__file__).resolve().parent.parent / "src"
PAGE = SOURCE.parent / "docs" / "studio.md"
WHEELS = "0.46 MB"  # not measured here
START, SLIDER = 2.0, 0.3
"""Wanted: seconds until the studio answers, and until the slider does at the 95th percentile."""

COLUMNS = [("column", "age"), ("column", "stay"), ("low.stay", "0"), ("high.stay", "60"), ("records", "20000")]
PAGES = ("/", "/ledger", "/data/visits", "/data/visits?column=age&column=stay")
TABS = ("", "/curve", "/curve?column=stay&split=age&at=65", "/ask?q=median+stay", "/modes", "/branches", "/export")


def write_table(folder: Path) -> None:
    """Write visits that nobody made."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, 20_000)
    stay = rng.gamma(2.0, 1.5 + age / 25)
    lines = [f"{a},{s:.2f}" for a, s in zip(age.tolist(), stay.tolist(), strict=True)]
    (folder / "visits.csv").write_text("\n".join(["age,stay", *lines, ""]))


class Visitor:
    """A connection that stays open, with a cookie."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self._port = port
        self._opened = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.cookie = cookie

    def ask(self, path: str, form: dict[str, str] | None = None) -> tuple[int, bytes, str]:
        """Return status, body and where it leads."""
        own = {"Host": f"127.0.0.1:{self._port}", **({"Cookie": self.cookie} if self.cookie else {})}
        if form is None:
            self._opened.request("GET", path, headers=own)
        else:
            kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{self._port}"}
            self._opened.request("POST", path, urlencode(form), {**own, **kind})
        answer = self._opened.getresponse()
        body = answer.read()
        if answer.getheader("set-cookie"):
            self.cookie = str(answer.getheader("set-cookie")).partition(";")[0]
        return answer.status, body, str(answer.getheader("location", ""))


def measured(action: Callable[[], object]) -> float:
    """Seconds of one action."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def percentile(seconds: Sequence[float], part: float) -> float:
    """A percentile, without interpolation."""
    return sorted(seconds)[min(len(seconds) - 1, int(part * len(seconds)))]


def process(pid: int) -> tuple[float, float, float]:
    """CPU seconds of a process so far, and megabytes that it has now and had at most."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    status = Path(f"/proc/{pid}/status").read_text()
    now, most = (re.search(rf"{name}:\s+(\d+)", status) for name in ("VmRSS", "VmHWM"))
    cpu = (int(fields[11]) + int(fields[12])) / ticks
    return cpu, int(now[1] if now else 0) / 1024, int(most[1] if most else 0) / 1024


def started(folder: Path, port: int) -> tuple[subprocess.Popen[str], str, float]:
    """Start a studio; return it, the custodian's token and the seconds until it answered."""
    words = ["studio", str(folder / "data"), "--store", str(folder / "store"), "--budget", "100", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_STATE_HOME": str(folder / "state")}
    began = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "fogline.cli", *words], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    lines = [server.stdout.readline() for _ in range(4)]
    while True:
        try:
            Visitor(port).ask("/enter")
            break
        except OSError:
            time.sleep(0.01)
    told = re.search(r"custodian:\s+\S+#(\S+)", "".join(lines))
    assert told is not None
    return server, told[1], time.perf_counter() - began


def slide(visitor: Visitor, times: int) -> list[float]:
    """Seconds of moves of the slider, from the first on, while releases are still being simulated."""
    epsilons = np.geomspace(0.05, 10, times)
    paths = [f"/data/visits/outlook?{urlencode([*COLUMNS, ('epsilon', f'{e:.3g}')])}" for e in epsilons]
    found = []
    for path in paths:
        found.append(measured(lambda path=path: visitor.ask(path)))  # type: ignore[misc]
        time.sleep(0.02)
    return found


def simulated(visitor: Visitor) -> float:
    """Seconds until nothing is simulated any more."""
    path = f"/data/visits/outlook?{urlencode([*COLUMNS, ('epsilon', '1')])}"
    began = time.perf_counter()
    while b"data-pending" in visitor.ask(path)[1]:
        time.sleep(0.2)
    return time.perf_counter() - began


def release(visitor: Visitor) -> str:
    """Release once, and return the address of what was released."""
    shown = visitor.ask(f"/data/visits/review?{urlencode([*COLUMNS, ('epsilon', '1')])}")[1].decode()
    key = re.search(r'name="key" value="([^"]+)"', shown)
    assert key is not None
    place = visitor.ask("/data/visits/release", {"key": key[1]})[2]
    while not visitor.ask(f"{place}/state")[1].startswith(b'{"told":true'):
        time.sleep(0.1)
    return visitor.ask(place)[2]


def crowd(port: int, cookie: str, paths: Sequence[str], readers: int, rounds: int) -> list[float]:
    """Seconds of all pages that readers ask for at the same time."""
    found: list[float] = []
    lock = threading.Lock()

    def read(number: int) -> None:
        visitor = Visitor(port, cookie)
        for turn in range(rounds):
            path = paths[(number + turn) % len(paths)]
            seconds = measured(lambda path=path: visitor.ask(path))  # type: ignore[misc]
            with lock:
                found.append(seconds)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def row(what: str, value: float, unit: str, wanted: float | str = "") -> dict[str, object]:
    """One line of the table."""
    found = {
        "what": what,
        "value": round(value, 3),
        "unit": unit,
        "wanted": wanted,
        "load": round(os.getloadavg()[0], 1),
    }
    print(found, flush=True)
    return found


def weights(visitor: Visitor, place: str) -> list[dict[str, object]]:
    """Bytes of pages and of what they bring with them."""
    names = {path: path for path in (*PAGES, "/static/report.css", "/static/studio.css", "/static/studio.js")}
    names |= {place + tab: f"release{tab}" for tab in TABS}
    names |= {f"{place}/export/{kind}": f"export {kind}" for kind in ("report", "explore", "release")}
    return [row(f"weight of {name}", len(visitor.ask(path)[1]) / 1000, "kB") for path, name in names.items()]


def numbers() -> str:
    """The last section of docs/studio.md, from the file of measurements."""
    found = {row["what"]: (float(row["value"]), row["wanted"]) for row in read_csv("studio")}
    loads = [float(row["load"]) for row in read_csv("studio")]
    readers = next(what.split()[0] for what in found if what.endswith(" readers, median"))

    def plain(what: str, digits: int = 0) -> str:
        return f"{found[what][0]:.{digits}f}"

    def shown(what: str, digits: int = 2) -> str:
        value, wanted = found[what]
        return f"{value:.{digits}f} s: missed" if wanted and value > float(wanted) else f"{value:.{digits}f} s"

    first = [plain(f"release{tab}, first time", 2) for tab in ("", "/modes", "/branches")]
    style = sum(value for what, (value, _) in found.items() if what.startswith("weight of /static/"))
    lines = [
        ("start, CPU", shown("start, CPU"), f"{START:g} s"),
        ("start, clock", shown("start until the first answer"), f"{START:g} s"),
        *(
            (f"slider, 95th percentile, {when}", shown(f"slider {when}, 95%", 3), f"{SLIDER:g} s")
            for when in ("while releases are simulated", "afterwards")
        ),
        (
            f"{readers} readers at a time, median and 95th percentile",
            f"{plain(f'{readers} readers, median', 2)} and {plain(f'{readers} readers, 95%', 2)} s",
            "",
        ),
        (
            "pages per second",
            f"{plain(f'{readers} readers, pages per second')}, at {plain('CPU per page', 1)} ms of CPU each",
            "",
        ),
        (
            "first reading of a release of two columns: overview, modes, branches",
            f"{first[0]}, {first[1]} and {first[2]} s; kept afterwards",
            "",
        ),
        ("memory of the server after all of that", f"{plain('memory of the server')} MB ([why](#memory))", ""),
        (
            "heaviest page (branches); form of a question; style and script",
            f"{plain('weight of release/branches')} kB; {plain('weight of /data/visits')} kB; {style:.0f} kB",
            "",
        ),
        ("page to explore, two columns", f"{plain('weight of export explore')} kB", "1000 kB"),
        ("wheels besides those of the command line", WHEELS, "2 MB"),
    ]
    table = "\n".join(f"| {what} | {value} | {wanted} |" for what, value, wanted in lines)
    return (
        "## Numbers\n\nMeasured by `benchmarks/studio.py` ([all of them](benchmarks/studio.csv)) on two cores, at a "
        f"load of {min(loads):g} to {max(loads):g}. Where other work was on the machine (a load above 2), seconds of "
        "the clock are upper bounds.\n\n"
        f"| | measured | wanted |\n| --- | --- | --- |\n{table}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--port", type=int, default=18765)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text[: text.index("## Numbers\n")] + numbers(), encoding="utf-8")
        return
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").mkdir()
        write_table(folder / "data")
        server, token, seconds = started(folder, options.port)
        try:
            rows.append(row("start until the first answer", seconds, "s", START))
            rows.append(row("start, CPU", process(server.pid)[0], "s", START))
            visitor = Visitor(options.port)
            visitor.ask("/enter", {"token": token})
            cold = slide(visitor, 100)
            rows.append(row("slider while releases are simulated, median", statistics.median(cold), "s"))
            rows.append(row("slider while releases are simulated, 95%", percentile(cold, 0.95), "s", SLIDER))
            rows.append(row("all five budgets simulated after further", simulated(visitor), "s"))
            warm = slide(visitor, 100)
            rows.append(row("slider afterwards, median", statistics.median(warm), "s"))
            rows.append(row("slider afterwards, 95%", percentile(warm, 0.95), "s", SLIDER))
            place = release(visitor)
            for tab in TABS:
                rows.append(row(f"release{tab}, first time", measured(lambda tab=tab: visitor.ask(place + tab)), "s"))  # type: ignore[misc]
            paths = [*PAGES, *(place + tab for tab in TABS)]
            before = process(server.pid)[0]
            began = time.perf_counter()
            seen = crowd(options.port, visitor.cookie, paths, options.readers, 10)
            took = time.perf_counter() - began
            rows.append(row(f"{options.readers} readers, median", statistics.median(seen), "s"))
            rows.append(row(f"{options.readers} readers, 95%", percentile(seen, 0.95), "s"))
            rows.append(row(f"{options.readers} readers, pages per second", len(seen) / took, "1/s"))
            cpu, memory, most = process(server.pid)
            rows.append(row("CPU per page", 1000 * (cpu - before) / len(seen), "ms"))
            rows.append(row("memory of the server", memory, "MB"))
            rows.append(row("memory of the server, at most", most, "MB"))
            rows += weights(visitor, place)
        finally:
            server.terminate()
            server.wait()
    write_csv("studio", rows)


if __name__ == "__main__":
    main()
