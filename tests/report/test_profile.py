"""The page of a profile: every column, nothing from elsewhere, names escaped; tables beside it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from fogline import profile
from fogline.report.profile import profile_csv, profile_page, profile_picture, write_profile
from fogline.testing import seeded_noise

HOSTILE = "<b>&\"'"


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
    bounds = {"stay": (0, 60), "spike": (0, 1000), "none": (0, 1), "day": ("2019-01-01", "2021-12-31")}
    with seeded_noise(0):
        return profile(frame, bounds=bounds, categories={HOSTILE: [HOSTILE, "b"]}, epsilon=2.0)


def test_the_page_shows_every_column_and_needs_nothing(found):
    page = profile_page(found, title="Visits", command="fogline profile visits.csv")
    assert page.count("<article") == len(found) == page.count("<svg")
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


def test_a_workbook_needs_openpyxl(found, tmp_path):
    try:
        import openpyxl
    except ImportError:
        with pytest.raises(ImportError, match="pip install openpyxl"):
            write_profile(found, tmp_path / "p.xlsx")
        return
    write_profile(found, tmp_path / "p.xlsx")
    assert openpyxl.load_workbook(tmp_path / "p.xlsx").sheetnames == ["profile", "categories", "guarantee"]
