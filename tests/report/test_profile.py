"""The page of a profile: every column, nothing from elsewhere, names escaped; tables beside it."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest

from fogline import profile
from fogline.report.profile import pair_sentences, profile_csv, profile_page, profile_picture, write_profile
from fogline.testing import seeded_noise

HOSTILE = "<b>&\"'"
PAIRS = [("stay", "twice"), ("stay", HOSTILE), ("none", "day")]


@pytest.fixture(name="found", scope="module")
def _found():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "stay": np.where(rng.random(2000) < 0.4, 0.0, rng.gamma(2, 3, 2000)),
            "spike": np.full(2000, 3.0),
            "none": np.full(2000, np.nan),
            HOSTILE: rng.choice([HOSTILE, "b"], 2000),
            "day": pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, 2000), "D")),
        }
    )
    frame["twice"] = 2 * frame["stay"]
    bounds = {
        "twice": (0, 120),
        "stay": (0, 60),
        "spike": (0, 1000),
        "none": (0, 1),
        "day": ("2019-01-01", "2021-12-31"),
    }
    with seeded_noise(0):
        return profile(frame, bounds=bounds, categories={HOSTILE: [HOSTILE, "b"]}, pairs=PAIRS, epsilon=4.0)


def test_the_page_shows_every_column_and_needs_nothing(found):
    page = profile_page(found, title="Visits", command="fogline profile visits.csv")
    risk = 2  # pictures of what it means for a person
    assert page.count("<article") == page.count("<svg") - risk >= len(found)
    assert HOSTILE not in page
    assert "&lt;b&gt;" in page
    assert not re.search(r"(?:src|href)=|http-equiv=\"refresh|<script", page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert "zeros" in page
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).lower().replace("finance", "")


def test_pictures_stay_in_their_frame(found):
    for column in found.values():
        numbers = [
            float(x)
            for x in re.findall(r"(?<=[ML ])-?[0-9.]+", " ".join(re.findall(r'd="([^"]+)"', profile_picture(column))))
        ]
        assert all(-1 <= number <= 321 for number in numbers), column.name


def test_tables(found, tmp_path):
    lines = profile_csv(found).splitlines()
    assert len(lines) == 1 + len(found)
    assert "nan" not in lines[4]
    for ending in ("html", "json", "csv"):
        assert write_profile(found, tmp_path / f"p.{ending}").stat().st_size > 500
    with pytest.raises(ValueError, match="must end in"):
        write_profile(found, tmp_path / "p.ods")


def test_a_workbook_is_what_a_reader_of_workbooks_reads(found, tmp_path):
    """Every number of the table is a number there, categories and pairs have sheets of their own."""
    openpyxl = pytest.importorskip("openpyxl")
    write_profile(found, tmp_path / "p.xlsx")
    book = openpyxl.load_workbook(tmp_path / "p.xlsx")
    assert book.sheetnames == ["profile", "categories", "pairs", "guarantee"]
    rows = list(book["profile"].iter_rows(values_only=True))
    assert len(rows) == 1 + len(found)
    stay = dict(zip(rows[0], rows[1], strict=True))
    assert stay["column"] == "stay"
    assert stay["q50"] == pytest.approx(found["stay"].quartiles.value[1], rel=1e-14), "16 digits, as Excel has them"
    assert stay["zeros"] == pytest.approx(found["stay"].zeros.value, rel=1e-14)
    assert stay["categories"] in (None, "")
    shares = list(book["categories"].iter_rows(values_only=True))
    assert {row[1] for row in shares[1:]} == {HOSTILE, "b"}
    assert sum(row[2] for row in shares[1:]) == pytest.approx(1, abs=0.1)
    pairs = list(book["pairs"].iter_rows(values_only=True))
    assert pairs[1][:2] == found.pairs[0].columns
    assert pairs[1][5] == pytest.approx(found.pairs[0].p_value, rel=1e-14)
    assert "Certified" in book["guarantee"]["A1"].value or "noise was seeded" in book["guarantee"]["A1"].value


def test_a_workbook_without_openpyxl_says_what_to_install(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match="pip install openpyxl"):
        write_profile(found, tmp_path / "p.xlsx")


def test_pairs_are_on_the_page_and_in_the_sentences(found):
    page = profile_page(found)
    assert "Pairs of columns" in page
    assert "p-value" in page
    assert page.count("<article") == len(found) + sum(pair.depends for pair in found.pairs)
    said = " ".join(pair_sentences(found))
    assert "stay and twice depend on each other: association" in said
    assert "no dependence is seen" in said
