"""The R package: its parts agree, and, where R and reticulate are at hand, its vignette and its page run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fogline

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "inst" / "R"
CODE = (PACKAGE / "R" / "fogline.R").read_text("utf-8")
MANUAL = (PACKAGE / "man" / "fogline.Rd").read_text("utf-8")
VIGNETTE = (PACKAGE / "vignettes" / "fogline.Rmd").read_text("utf-8")
EXPORTED = set(re.findall(r"^export\((\w+)\)$", (PACKAGE / "NAMESPACE").read_text("utf-8"), flags=re.MULTILINE))
SIGNATURE = re.compile(r"^(fog_\w+) <- function\((.*?)\) (?:\{|\.|reticulate)", flags=re.MULTILINE)

CHECKS = """
stopifnot(identical(names(fog_sample(shape, 3)), c("age", "stay")), nrow(fog_sample(shape, 7)) == 7)
stopifnot(identical(fog_sample(shape, 4, seed = 2), fog_sample(shape, 4, seed = 2)))
asked <- fog_ask(shape, c("median stay", "mean stay by age 0:100:50"), level = 0.8)
stopifnot(nrow(asked) == 3, all(asked$low <= asked$value), all(asked$value <= asked$high))
told <- function(expression) conditionMessage(tryCatch(expression, error = identity))
stopifnot(grepl("named list", told(fog_release("visits.csv", c(0, 1), 1))))
stopifnot(grepl("no column weight", told(fog_release(faithful, list(weight = c(0, 1)), 1))))
stopifnot(grepl("not numeric: Species", told(fog_release(iris, list(Species = c(0, 9)), 1))))
stopifnot(grepl("path of a file", told(fog_release(faithful, list(waiting = c(0, 150)), 1, unit = "eruptions"))))
stopifnot(grepl("nowhere.fog", told(fog_load("nowhere.fog"))))
holed <- data.frame(x = c(rep(NA, 500), runif(500)))
stopifnot(abs(fog_ask(fog_release(holed, list(x = c(0, 1)), 4), "count")$value - 500) < 50)
paid <- fog_release("visits.csv", list(stay = c(0, 60)), 0.5, unit = "person", ledger = "visits.ledger")
stopifnot(grepl("budget", told(fog_release("visits.csv", list(age = "age"), 0.7, unit = "person",
                                           ledger = "visits.ledger"))))
writeLines(format(fog_quantiles(shape, "stay", c(0.5, 0.9))$value, digits = 17), "quantiles.txt")
"""


def chunks(text: str, fence: str) -> str:
    return "\n".join(re.findall(rf"^```{re.escape(fence)}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE))


def test_there_are_eight_functions_each_written_and_documented():
    defined = dict(SIGNATURE.findall(CODE))
    assert len(EXPORTED) == 8
    assert set(defined) == EXPORTED
    assert set(re.findall(r"\\alias\{(\w+)\}", MANUAL)) >= EXPORTED
    for name, arguments in defined.items():
        assert f"{name}({arguments})" in MANUAL
        assert f"{name}(" in VIGNETTE
        assert f"`{name}(" in (ROOT / "docs" / "r.md").read_text("utf-8")
        for argument in re.findall(r"(\w+|\.\.\.)(?= =|,|$)", re.sub(r"c\([^)]*\)", "x", arguments)):
            assert f"\\item{{{argument}}}" in MANUAL or argument in ("NULL", "x", "1", "95")


def test_its_version_is_that_of_the_library():
    assert f"Version: {fogline.__version__}\n" in (PACKAGE / "DESCRIPTION").read_text("utf-8")


@pytest.mark.parametrize("text", [CODE, chunks(VIGNETTE, "{r}"), chunks((ROOT / "docs" / "r.md").read_text(), "r")])
def test_brackets_of_the_code_are_closed(text):
    plain = re.sub(r'"(?:\\.|[^"\\])*"|#.*', "", text)
    stack = []
    for sign in re.findall(r"[()\[\]{}]", plain):
        if sign in "([{":
            stack.append(sign)
        else:
            assert stack.pop() + sign in ("()", "[]", "{}")
    assert not stack
    assert plain.strip()


@pytest.fixture(scope="module")
def r(tmp_path_factory):
    """A function that runs R code in a folder, with the package installed; a clear skip where that cannot be."""
    if shutil.which("Rscript") is None:
        pytest.skip("no R on this machine (on Debian: apt-get install r-base-core r-cran-reticulate)")
    folder = tmp_path_factory.mktemp("r")
    (folder / "library").mkdir()
    (folder / "work").mkdir()
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    setting = os.environ | {
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "R_LIBS": str(folder / "library"),
    }

    def run(code):
        (folder / "code.R").write_text(code, encoding="utf-8")
        words = ["Rscript", "--vanilla", str(folder / "code.R")]
        return subprocess.run(
            words, cwd=folder / "work", env=setting, capture_output=True, text=True, timeout=500, check=False
        )

    probed = run('stopifnot(reticulate::py_available(initialize = TRUE)); reticulate::import("json")')
    if probed.returncode:
        pytest.skip(f"R has no reticulate that can load this Python: {probed.stderr.strip()[-300:]}")
    words = ["R", "CMD", "INSTALL", "--no-docs", "--no-byte-compile", f"--library={folder / 'library'}", str(PACKAGE)]
    done = subprocess.run(words, env=setting, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    run.folder = folder / "work"
    return run


def test_the_vignette_and_the_page_run_and_agree_with_python(r):
    from fogline import Ledger, PrivateDensity

    terms = {"dataset": "visits", "unit": "person", "max_contributions": 1, "epsilon": 1.0, "delta": 0.0}
    Ledger.create(r.folder / "visits.ledger", **terms)
    page = chunks((ROOT / "docs" / "r.md").read_text("utf-8"), "r")
    code = f"{chunks(VIGNETTE, '{r}')}\n{CHECKS}\n{page}"
    done = r(code)
    assert done.returncode == 0, done.stderr
    assert "certified by a mathematical proof" in done.stdout
    assert "P(waiting > 70)" in done.stdout
    assert (r.folder / "visits.html").stat().st_size > 1000
    told = [float(line) for line in (r.folder / "quantiles.txt").read_text().split()]
    shape = PrivateDensity.load(r.folder / "visits.fog")
    assert told == pytest.approx(shape.quantile([0.5, 0.9], "stay").value.tolist(), rel=1e-12)
