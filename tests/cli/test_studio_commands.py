"""``fogline studio`` and ``fogline explore``: what they take, print and refuse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import DensitySketch, release
from fogline.cli.app import app

pytest.importorskip("starlette")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def fog(tmp_path_factory):
    """Releases of one, two and three columns."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(0)
    stay = np.where(rng.random(3000) < 0.2, 0.0, rng.gamma(2, 3, 3000))
    rows = np.column_stack([rng.normal(50, 15, 3000), stay, rng.uniform(0, 9, 3000)])
    names, bounds = ["age", "stay </script>", "x"], [(0, 100), (0, 60), (0, 10)]
    for d in (1, 2, 3):
        columns = slice(1, 2) if d == 1 else slice(0, d)
        found = release(rows[:, columns], columns=names[columns], bounds=bounds[columns], epsilon=1.0)
        found.save(folder / f"{d}.fog")
    return folder


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_page_to_explore_is_one_file_below_a_megabyte(fog, tmp_path, d):
    out = tmp_path / "page.html"
    done = run("explore", fog / f"{d}.fog", "--out", out, "--title", "Visits <2025>")
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert out.stat().st_size < 1_000_000
    assert "Visits &lt;2025&gt;" in text
    assert not re.search(r"(?:src|href)=\"", text)  # nothing from elsewhere
    assert text.count("</script>") == 2  # no name of a column ends an element
    values = json.loads(re.search(r'id="values">(.*?)</script>', text, flags=re.DOTALL)[1])
    assert len(values["columns"]) == d
    assert values["draws"] >= 50


def test_the_numbers_of_the_page_are_those_of_the_release(fog):
    import base64

    from fogline import PrivateDensity
    from fogline.report.interactive import interactive_values

    density = PrivateDensity.load(fog / "2.fog")
    values = interactive_values(density)
    packed = np.frombuffer(base64.b64decode(values["estimate"]["values"]), dtype="<u2").astype(float)
    masses = np.where(packed == values["nothing"], 0, values["estimate"]["top"] * np.exp(-packed / values["scale"]))
    cells = [len(column["edges"]) - 1 for column in values["columns"]]
    table = masses.reshape(cells)
    assert table.sum() == pytest.approx(1.0, abs=1e-3)
    edges = values["columns"][1]["edges"]
    inside = [k for k in range(cells[1]) if edges[k] >= edges[cells[1] // 2]]
    share = density.probability([(None, None), (edges[cells[1] // 2], None)])
    assert table[:, inside].sum() == pytest.approx(float(share.value), abs=2e-3)
    heaps = values["columns"][1]["heaps"]
    assert [edges[k] for k in heaps][:1] == [0.0]  # a fifth stays no day: a heap with a cell of its own
    assert values["columns"][1]["heap_values"][0] == 0.0
    # a whole column is told as the release tells it, with intervals of the same width
    for column in values["columns"]:
        for level in (0.5, 0.8, 0.95):
            mean = density.mean(column["name"], level=level)
            assert column["whole"][f"{level:g}"]["mean"] == pytest.approx([mean.value, mean.low, mean.high], rel=1e-5)
            found = density.quantile([0.05, 0.5], column["name"], level=level)
            wanted = np.stack([found.value, found.low, found.high], axis=1)
            shown = [column["whole"][f"{level:g}"]["quantiles"][k] for k in (4, 49)]
            assert np.allclose(shown, wanted, rtol=1e-5, atol=1e-9)


def test_what_cannot_be_explored_is_refused(fog, tmp_path):
    wide = DensitySketch([(0, 1)] * 5, features="random").update(np.random.default_rng(0).random((500, 5)))
    wide.release(epsilon=1.0, delta=1e-6).save(tmp_path / "wide.fog")
    assert "up to three columns" in run("explore", tmp_path / "wide.fog", "--out", tmp_path / "x.html").output
    assert "ends in .html" in run("explore", fog / "1.fog", "--out", tmp_path / "x.txt").output
    assert "there is no file" in run("explore", tmp_path / "none.fog", "--out", tmp_path / "x.html").output


def test_the_studio_refuses_what_it_cannot_serve(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    unpaid = run("studio", tmp_path, "--store", tmp_path / "s").output
    assert "there is no ledger" in unpaid
    assert "--budget 3" in unpaid
    assert not (tmp_path / "s").exists()  # a refusal leaves nothing behind
    assert "name the folder" in run("studio", tmp_path / "a.csv").output
    opened = run("studio", tmp_path, "--store", tmp_path / "s", "--budget", "1", "--host", "0.0.0.0").output
    assert "--allow-host" in opened
    (tmp_path / "studio.toml").write_text("[dataset.A]\nfile = 'a.csv'")
    assert "is no id" in run("studio", tmp_path / "studio.toml").output
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no data set" in run("studio", empty, "--store", tmp_path / "s").output


def test_a_port_that_is_taken_is_said_before_a_link_is_shown(tmp_path):
    import socket

    (tmp_path / "a.csv").write_text("x\n1\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("studio", tmp_path, "--store", tmp_path / "s", "--budget", "1", "--port", port)
    assert done.exit_code == 1
    assert f"port {port} is in use" in done.output
    assert "enter#" not in done.output
    assert not (tmp_path / "s").exists()


def test_the_studio_prints_its_links_once_and_answers(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "visits.csv").write_text("age,stay\n40,3\n")
    from browser import free_port

    port = free_port()
    words = ["studio", "data", "--budget", "2", "--port", str(port), "--high-water", "marks"]
    code = "from fogline.cli import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        lines = [server.stdout.readline() for _ in range(4)]
        link = re.search(r"custodian:\s+(http://127\.0\.0\.1:\d+/enter)#(\S{32})", lines[1])
        assert link, lines
        assert lines[0] == "fogline studio: 1 data set\n"
        for _ in range(600):
            try:
                answer = urllib.request.urlopen(link[1])
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        assert answer.status == 200
        assert "server" not in {name.lower() for name in answer.headers}
    finally:
        server.terminate()
        rest, errors = server.communicate(timeout=60)
    assert link[2] not in rest + errors
    assert (tmp_path / "fogline-studio" / "budget.fogline").is_file()
