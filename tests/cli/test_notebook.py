"""``fogline notebook``: valid JSON, cells that run on the file, the recipe that made it, a script that runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import PrivateDensity, release
from fogline.cli.app import app
from fogline.report.notebook import Cell, notebook_cells, to_ipynb, to_script
from fogline.testing import seeded_noise


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + result.stderr
    return result.output


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 4000)
    folder = tmp_path_factory.mktemp("notebook")
    with seeded_noise(0):
        shape = release(
            np.column_stack([age, rng.gamma(3.0, 1 + age / 40)]),
            columns=["age", "length of stay"],
            bounds={"age": "age", "length of stay": (0, 60)},
            epsilon=2.0,
        )
    shape.save(folder / "visits.fog")
    return folder


def test_a_notebook_is_valid_and_every_cell_runs(folder):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    (folder / "out").mkdir()
    assert "notebook: " in run("notebook", folder / "visits.fog", "--out", folder / "out" / "v.ipynb")
    book = nbformat.read(folder / "out" / "v.ipynb", as_version=4)
    nbformat.validate(book)
    assert '"../visits.fog"' in book.cells[1].source, "the release is found from where the notebook stands"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's machinery, not ours
        nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder / "out")}}).execute()
    said = "".join(output.get("text", "") for cell in book.cells if cell.cell_type == "code" for output in cell.outputs)
    assert "Not certified (the noise was seeded" in said
    assert 'median "length of stay": ' in said
    kinds = {output.output_type for cell in book.cells if cell.cell_type == "code" for output in cell.outputs}
    assert "error" not in kinds
    assert any("image/png" in output.get("data", {}) for output in book.cells[-1].outputs), "the picture is drawn"


def test_a_script_runs(folder):
    with seeded_noise(1):
        release(np.random.default_rng(1).gamma(3.0, 2.0, 3000), columns=["stay"], bounds=(0, 60), epsilon=2.0).save(
            folder / "stays.fog"
        )
    assert "script: " in run("notebook", folder / "stays.fog", "--out", folder / "stays.py")
    done = subprocess.run(
        [sys.executable, "stays.py"], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "median stay: " in done.stdout


def test_the_same_release_gives_the_same_notebook(folder):
    for name in ("a.ipynb", "b.ipynb"):
        run("notebook", folder / "visits.fog", "--out", folder / name, "--title", "Stays & <b>")
    first, second = (json.loads((folder / name).read_text()) for name in ("a.ipynb", "b.ipynb"))
    assert [cell["id"] for cell in first["cells"][1:]] == [cell["id"] for cell in second["cells"][1:]]
    assert first["cells"][0]["source"][0] == "# Stays & <b>\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("visits.fog", "--out", "x.txt"), "ends in .ipynb or .py"),
        (("nothing.fog", "--out", "x.py"), "there is no file"),
        (("visits.fog", "--out", "no/x.py"), "there is no folder"),
    ],
)
def test_what_is_refused(folder, words, said, monkeypatch):
    monkeypatch.chdir(folder)
    assert said in " ".join(run("notebook", *words, code=2).split())


def test_names_and_fences_do_not_leave_their_cells(folder):
    cells = [Cell("markdown", "a\n```\nb"), Cell("code", "x = 1\n")]
    assert "# ```" in to_script(cells)
    assert json.loads(to_ipynb(cells))["cells"][1]["source"] == ["x = 1\n"]
    found = notebook_cells(PrivateDensity.load(folder / "visits.fog"), "v.fog", command="fogline ```x```")
    assert "````\nfogline ```x```\n````" in found[0].source
