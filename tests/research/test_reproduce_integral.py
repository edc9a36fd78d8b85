"""Reruns of the integral-privacy paper's experiments."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app
from fogline_research.experiments.integral import IntegralCell, integral_cells, measure, problem, reproduce_integral

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", ["ring", "three", "random-4", "random-2d-3"])
def test_truth_and_bases_are_densities(name):
    task = problem(name)
    for values in (task.truth, task.base("normal"), task.base("uniform")):
        assert task.rule.weights @ values == pytest.approx(1.0, abs=0.01)
    inside = task.mixture.sample(4000, np.random.default_rng(0))[0]
    low, high = np.array(task.bounds).T
    assert ((inside >= low) & (inside <= high)).all(axis=1).mean() > 0.998


def test_the_cells():
    assert {cell.problem for cell in integral_cells()} == {"ring", "three", "random-5"}
    assert set(integral_cells("small")) < set(integral_cells())
    placed = integral_cells("placed")
    assert {cell.problem for cell in placed} == {f"random{kind}-{m}" for kind in ("", "-2d") for m in range(1, 11)}
    assert {cell.epsilon for cell in placed} == {0.5, 2.0, 10.0}


def test_rows_have_means_and_spreads():
    calls = []
    cells = [IntegralCell("three", 5.0)]
    rows = reproduce_integral(
        runs=2, cells=cells, methods=["certified", "bernstein"], seed=1, progress=lambda *call: calls.append(call)
    )
    ours, theirs = rows
    assert [row.method for row in rows] == ["certified", "bernstein"]
    assert calls[-1][:2] == (4, 4)
    assert 0 < ours.gain <= ours.drawable_gain + 0.02 <= ours.best_gain + 0.02 <= 2.52
    assert ours.gain > 0.85 * ours.drawable_gain
    assert math.isnan(theirs.gain)
    assert theirs.nll_sd > 0
    for row in rows:
        assert 0.17 < row.nll < 1.1
        assert 0.5 < row.coverage <= 1.0


def test_the_ring_is_gained_on_as_far_as_can_be():
    found = measure("ring", 2.0, "certified", seed=0)
    assert found.best_gain <= 1.0
    assert 0.9 * found.best_gain < found.gain <= found.drawable_gain + 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problem("disc"), "problem"),
        (lambda: integral_cells("some"), "cells"),
        (lambda: reproduce_integral(runs=0), "runs"),
        (lambda: reproduce_integral(methods=["gan"]), "methods"),
        (lambda: measure("ring", 1.0, "gan", seed=0), "methods"),
    ],
)
def test_bad_input_names_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_command(monkeypatch):
    import fogline_research.experiments

    def few(**options):
        return reproduce_integral(**(options | {"cells": [IntegralCell("three", 10.0)]}))

    monkeypatch.setattr(fogline_research.experiments, "reproduce_integral", few)
    found = CliRunner().invoke(app, ["reproduce", "integral", "--runs", "1", "--seed", "0", "--json"])
    assert found.exit_code == 0, found.output
    content = json.loads(found.stdout)
    assert content["rows"][0]["problem"] == "three"
    found = CliRunner().invoke(app, ["reproduce", "integral", "--runs", "1", "--seed", "0"])
    assert "drawable" in found.stdout
