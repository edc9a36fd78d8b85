"""Figures of the papers: every one has a name and an entry on the page, and quick ones are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fogline_research.cli import reproduce
from fogline_research.experiments.figures import FIGURES, draw_figures, local_regression

QUICK = ["integral-3", "main-6", "supplement-5", "hellinger-e1"]


def test_all_figures_of_the_papers_are_listed():
    kinds = {"main": 6, "supplement": 10, "integral": 8, "hellinger": 3}
    for kind, number in kinds.items():
        assert sum(name.startswith(kind) for name in FIGURES) == number
    undrawn = [name for name, figure in FIGURES.items() if figure.draw is None]
    assert undrawn == ["integral-2"]
    assert all("not redrawn" in FIGURES[name].shows for name in undrawn)


def test_quick_figures_are_drawn_on_one_page(tmp_path):
    told = []
    page = draw_figures(QUICK, tmp_path, seed=1, tell=told.append)
    assert told == QUICK
    text = page.read_text()
    for name in FIGURES:
        assert f"id='{name}'" in text
    for name in QUICK:
        assert (tmp_path / f"{name}.svg").stat().st_size > 5000
        assert f"src='{name}.svg'" in text
    assert text.count("(not drawn)") == len(FIGURES) - len(QUICK)


def test_the_command_lists_draws_and_refuses(tmp_path):
    runner = CliRunner()
    listed = runner.invoke(reproduce, ["figures", "--list"])
    assert listed.exit_code == 0
    assert "supplement-10" in listed.output
    drawn = runner.invoke(reproduce, ["figures", "integral-3", "-o", str(tmp_path / "new")])
    assert drawn.exit_code == 0
    assert (tmp_path / "new" / "integral-3.svg").exists()
    assert runner.invoke(reproduce, ["figures", "integral-3"]).exit_code != 0
    with pytest.raises(ValueError, match="names must be among"):
        draw_figures(["no-such"], Path(tmp_path))


def test_local_regression_follows_a_line_and_a_bend():
    x = np.linspace(0, 1, 400)
    np.testing.assert_allclose(local_regression(x, 1 - 2 * x, x[::50]), 1 - 2 * x[::50], atol=1e-9)
    assert np.abs(local_regression(x, np.sin(3 * x), x[::50], share=0.1) - np.sin(3 * x[::50])).max() < 0.02
