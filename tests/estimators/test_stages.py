"""How fits in stages divide their budget, as a plan tells it: the same shares that the fits take."""

from __future__ import annotations

import json
import math
import shlex
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fogline import private_bounds
from fogline.accounting.costs import release_rho
from fogline.algorithms.stage_shares import mixture_shares
from fogline.cli.app import app
from fogline.cli.plan import STAGED as TOLD
from fogline.planning.stages import STAGED, expected_stages
from fogline.queries.magnitudes import CELLS


@given(
    st.sampled_from(STAGED),
    st.integers(1, 10**7),
    st.floats(0.05, 8.0),
    st.integers(1, 40),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 5),
)
def test_shares_sum_to_one_and_more_epsilon_means_less_noise(kind, n, epsilon, columns, neighbours, c):
    more = {"delta": 1e-6, "columns": columns, "neighbours": neighbours, "max_contributions": c}
    if kind == "profile":
        more["open_columns"] = columns // 2
    plan = expected_stages(kind, n, epsilon=epsilon, **more)
    assert sum(stage.share for stage in plan.stages) * (columns if kind == "bounds" else 1) == 1
    for less, now in zip(expected_stages(kind, n, epsilon=2 * epsilon, **more).stages, plan.stages, strict=True):
        # with fewer records than the noise hides, bounds divide otherwise
        assert math.isnan(now.noise) or less.noise < now.noise or less.share < now.share


def test_shares_of_a_mixture_are_those_of_the_fit():
    plan = expected_stages("mixture", 5000, epsilon=1.0, delta=1e-6, columns=3, n_components=1)
    assert {stage.name: stage.share for stage in plan.stages} == mixture_shares(5000, release_rho(1.0, 1e-6), 1)
    assert plan.stages != expected_stages("mixture", 5000, epsilon=1.0, delta=1e-6, columns=3, n_components=2).stages
    words = "plan --for mixture --bounds 0:1,0:1 --n 5000 --delta 1e-6 --epsilons 1 --n-clusters 1 --json"
    document = json.loads(CliRunner().invoke(app, shlex.split(words)).stdout)
    assert [row["share"] for row in document["rows"]] == [str(stage.share) for stage in plan.stages]


def test_noise_of_bounds_is_that_of_the_fit():
    x = np.linspace(1, 2, 3000)[:, None]
    found = private_bounds(x, epsilon=1.0, delta=1e-6, expect_records=3000)
    plan = expected_stages("bounds", 3000, epsilon=1.0, delta=1e-6)
    assert plan.stages[1].noise * math.sqrt(CELLS) == pytest.approx(found.count_standard_errors[0], rel=5e-3)
    assert [stage.share for stage in plan.stages] == [Fraction(1, 3), Fraction(2, 3)]


@pytest.mark.parametrize(
    ("given_", "word"),
    [
        ({"kind": "modes"}, "kind"),
        ({"n": 0}, "n must"),
        ({"columns": 0}, "columns"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"kind": "bounds", "delta": 0.0}, "delta"),
        ({"open_columns": 3}, "open_columns"),
        ({"kind": "mixture", "open_columns": 1}, "open_columns"),
        ({"kind": "mixture", "n_components": 0}, "n_components"),
        ({"kind": "bounds", "n_components": 2}, "n_components"),
        ({"neighbours": "both"}, "neighbours"),
    ],
)
def test_bad_input_is_named(given_, word):
    asked = {"kind": "profile", "n": 100, "epsilon": 1.0, "delta": 1e-6, "columns": 2, **given_}
    with pytest.raises(ValueError, match=word):
        expected_stages(asked.pop("kind"), asked.pop("n"), **asked)


def test_the_command_line_tells_them():
    assert TOLD == STAGED
    run = CliRunner().invoke(
        app, shlex.split("plan --for profile --bounds 0:1,0:60 --open 2 --n 500 --epsilons 1 --json")
    )
    assert run.exit_code == 0, run.output
    rows = json.loads(run.output)["rows"]
    assert [row["stage"] for row in rows] == ["magnitudes", "ranges", "pilot", "counts"]
    assert sum(Fraction(row["share"]) for row in rows) == 1
    run = CliRunner().invoke(app, shlex.split("plan --for mixture --bounds 0:1,0:60 --delta 1e-6 --n 5000"))
    assert run.exit_code == 0
    assert "7/10" in run.output
    for words, missing in (
        ("plan --for bounds --n 50 --delta 1e-6", "--open"),
        ("plan --for modes --n 50 --delta 1e-6", "--bounds"),
        ("plan --for profile --open 2 --n 50 --shape uniform", "--shape"),
        ("plan --for bounds --bounds 0:1 --open 1 --n 50 --delta 1e-6", "--bounds"),
    ):
        run = CliRunner().invoke(app, shlex.split(words))
        assert run.exit_code == 2
        assert missing in run.output
