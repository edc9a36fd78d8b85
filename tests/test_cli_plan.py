"""``fogline plan`` and ``fogline audit``: tables, documents, pictures, exit codes."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.algorithms.stage_shares import CLUSTERING_SHARES, cluster_shares
from fogline.cli.app import app
from fogline.cli.plan import _names

PLAN = ["plan", "--bounds", "0:10", "--n", "1000", "--delta", "1e-6", "--runs", "2"]
AUDIT = ["audit", "PrivateModes", "--bounds", "0:10", "--epsilon", "1", "--delta", "1e-5"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# -- plan -------------------------------------------------------------------------------------------------


def test_plan_prints_a_table_by_epsilon():
    result = run(*PLAN, "--shape", "gaussian:3,0.5@0.7;7,0.8@0.3", "--epsilons", "0.2,1")
    assert result.exit_code == 0, result.output
    for word in ("0.2", "3.00", "7.00", "100%", "privacy", "sampling", "smallest share"):
        assert word in result.stdout
    assert result.stderr == ""


def test_columns_are_called_by_what_is_known_of_them():
    told = {"age,0:60": ("age", "x2"), "age,age": ("x1", "x2"), "0:1,0:2": ("x1", "x2"), "percent": ("percent",)}
    for bounds, names in told.items():
        assert _names({"columns": None, "bounds": bounds}, len(names)) == names
    assert _names({"columns": "years,stay", "bounds": "age,0:60"}, 2) == ("years", "stay")


def test_plan_as_a_document():
    result = run(*PLAN, "--shape", "gaussian:3,0.5;7,0.8", "--epsilons", "0.001,1", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [row["epsilon"] for row in document["rows"]] == [0.001, 0.001, 1, 1]
    assert document["rows"][0]["detected"] == 0
    assert document["rows"][0]["standard_errors"] is None
    assert document["rows"][3]["detected"] == 1
    assert sorted(mode[0] for mode in document["modes"]) == pytest.approx([3, 7], abs=0.01)


@pytest.mark.parametrize("shape", ["uniform", "gaussian:3,0.5;7,0.8"])
def test_plan_draws(shape, tmp_path):
    for name in ("plan.svg", "plan.html"):
        result = run(*PLAN, "--shape", shape, "--epsilons", "0.001,0.5,2", "--picture", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert str(tmp_path / name) in result.stdout
    drawing = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    text = " ".join(ET.fromstring(drawing).itertext())
    assert ("chance that a mode is found" in text) == (shape != "uniform")
    assert "nan" not in drawing
    assert "epsilon" in text


def test_a_picture_where_nothing_is_ever_found(tmp_path):
    words = ["--shape", "gaussian:3,0.5", "--epsilons", "0.001", "--picture", tmp_path / "plan.svg"]
    result = run(*PLAN, *words)
    assert result.exit_code == 0, result.output
    assert "no mode would be found" in (tmp_path / "plan.svg").read_text(encoding="utf-8")


def test_a_file_is_a_public_sample(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "public.csv"
    rows = np.column_stack([rng.normal(4, 0.6, 800), rng.uniform(0, 1, 800)])
    np.savetxt(path, rows, delimiter=",", header='x,"the ""y"""', comments="")
    result = run(*PLAN, "--shape", path, "--columns", "x", "--epsilons", "2", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["modes"][0] == pytest.approx([4], abs=0.3)
    unnamed = run(*PLAN, "--shape", path)
    assert unnamed.exit_code == 2
    assert "--columns" in unnamed.stderr
    assert run(*PLAN, "--shape", path, "--columns", "z").exit_code == 2
    assert run(*PLAN, "--shape", path, "--columns", 'the "y"').exit_code == 0


def test_two_columns_with_one_scale_or_one_a_column():
    words = ["plan", "--bounds", "0:10,0:10", "--n", "500", "--delta", "1e-6", "--epsilons", "2", "--runs", "1"]
    result = run(*words, "--shape", "gaussian:3,3,1;7,7,1,0.8", "--json")
    assert result.exit_code == 0, result.output
    assert np.array(json.loads(result.stdout)["modes"]).shape == (2, 2)


CLUSTERS = ["plan", "--for", "clusters", "--n", "2000", "--delta", "1e-6", "--epsilons", "0.5,2"]
BRANCHES = ["plan", "--for", "regression", "--bounds", "0:1,0:4", "--n", "2000", "--delta", "1e-6", "--epsilons", "2"]


def test_the_noise_of_clusters():
    words = [*CLUSTERS, "--bounds", "0:8,0:5,0:8,0:3,0:1", "--n-clusters", "3"]
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert "error of a centre" in shown.stdout
    document = json.loads(run(*words, "--json").stdout, parse_constant=pytest.fail)
    assert document["format"] == "fogline-plan-clusters-1"
    assert document["n_clusters"] == 3
    before, after = document["rows"]
    assert len(before["mean_errors"]) == 5
    assert before["centre_error"] > 3 * after["centre_error"] > 0
    assert document["shares"] == CLUSTERING_SHARES
    told = " ".join(shown.stdout.split())
    assert "Without, scale 1/5, projection 3/10, density 1/5 and refinement 3/10." in told
    for row in document["rows"]:  # those of the function, at the epsilon of the row
        chosen = {name: str(share) for name, share in cluster_shares(2000, row["rho"], 3).items()}
        assert row["shares"] == chosen
        assert ", ".join(f"{name} {share}" for name, share in list(chosen.items())[:3]) in told
    assert before["shares"] != after["shares"]
    open_number = json.loads(run(*CLUSTERS, "--bounds", "0:8,0:5,0:8,0:3,0:1", "--json").stdout)
    assert [row["shares"] for row in open_number["rows"]] == [CLUSTERING_SHARES] * 2


def test_clusters_of_few_columns_are_modes(tmp_path):
    result = run(*CLUSTERS, "--bounds", "0:10", "--shape", "gaussian:3,0.5;7,0.8", "--picture", tmp_path / "plan.svg")
    assert result.exit_code == 0, result.output
    assert "smallest share" in result.stdout
    assert (tmp_path / "plan.svg").exists()


def test_branches():
    shown = run(*BRANCHES)
    assert shown.exit_code == 0, shown.output
    assert "1 level branch" in shown.stdout
    document = json.loads(run(*BRANCHES, "--shape", "branches:2,0.2", "--json").stdout, parse_constant=pytest.fail)
    assert document["format"] == "fogline-plan-regression-1"
    assert document["rows"][0]["detected"] > 0.9


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([*CLUSTERS, "--bounds", "0:1", "--n-modes", "2"], "--n-modes"),
        ([*CLUSTERS, "--bounds", "0:1,0:1,0:1,0:1", "--shape", "gaussian:1,1,1,1,1"], "--shape"),
        ([*CLUSTERS, "--bounds", "0:1,0:1,0:1,0:1", "--picture", "plan.svg"], "--picture"),
        ([*BRANCHES, "--shape", "uniform"], "--shape"),
        ([*BRANCHES, "--shape", "branches:0.5"], "--shape"),
        ([*BRANCHES, "--picture", "plan.svg"], "--picture"),
        ([*BRANCHES, "--n-clusters", "2"], "--n-clusters"),
        ([*BRANCHES, "--bounds", "0:1"], "--bounds"),
        ([*PLAN, "--n-clusters", "2"], "--n-clusters"),
    ],
)
def test_an_option_for_something_else_is_named(words, named):
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert named in result.stderr


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (["--bounds", "0"], "--bounds"),
        (["--bounds", "5:1"], "--bounds"),
        (["--n", "0"], "--n"),
        (["--n", "many"], "--n"),
        (["--delta", "7"], "--delta"),
        (["--epsilons", "1,x"], "--epsilons"),
        (["--epsilons", "0"], "epsilon"),
        (["--shape", "square"], "--shape"),
        (["--shape", "gaussian:"], "--shape"),
        (["--shape", "gaussian:3"], "--shape"),
        (["--shape", "gaussian:3,-1"], "--shape"),
        (["--shape", "gaussian:3,1@0"], "--shape"),
        (["--steps", "x"], "--steps"),
        (["--bandwidth", "x"], "--bandwidth"),
        (["--runs", "0"], "--runs"),
        (["--picture", "no/such/folder.svg"], "--picture"),
    ],
)
def test_a_bad_option_is_named(changed, named):
    result = run(*PLAN, *changed)
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert "Traceback" not in result.output


# -- audit ------------------------------------------------------------------------------------------------


def test_audit_passes_in_words_and_numbers():
    result = run(*AUDIT, "--pairs", "3", "--n-modes", "1")
    assert result.exit_code == 0, result.output
    assert "Passed: on 3 pairs" in result.stdout
    assert "empty and one record" in result.stdout


def test_audit_as_a_document_with_the_attack():
    words = ["--pairs", "2", "--n-modes", "1", "--neighbours", "replace", "--attack", "--runs", "2000", "--json"]
    result = run(*AUDIT, *words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["passed"] is True
    assert len(document["pairs"]) == 2
    assert document["largest_ratio"] <= 1
    assert document["attack"]["mu_lower"] <= document["attack"]["mu"]
    assert document["attack"]["broken"] is False


def test_random_pairs_follow_the_canaries(monkeypatch):
    from fogline import audit

    every = audit.canary_pairs
    monkeypatch.setattr(audit, "canary_pairs", lambda *given, **named: every(*given, **named)[:1])
    result = run(*AUDIT, "--pairs", "3", "--n-modes", "1", "--json")
    assert result.exit_code == 0, result.output
    names = [pair["name"] for pair in json.loads(result.stdout)["pairs"]]
    assert names == ["empty and one record", "random 0", "random 1"]


def test_a_false_claim_ends_with_1(monkeypatch):
    from fogline.releases import density_sketch

    honest = density_sketch.lattice_sensitivity
    monkeypatch.setattr(density_sketch, "lattice_sensitivity", lambda *given: honest(*given) / 2)
    result = run(*AUDIT, "--pairs", "1", "--n-modes", "1")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout


@pytest.mark.parametrize(
    ("changed", "named"),
    [(["--epsilon", "0"], "--epsilon"), (["--delta", "7"], "--delta"), (["--bounds", "1:0"], "--bounds"),
     (["--pairs", "0"], "--pairs"), (["--max-contributions", "0"], "--max-contributions")],
)  # fmt: skip
def test_audit_names_a_bad_option(changed, named):
    result = run(*AUDIT, *changed)
    assert result.exit_code == 2, result.output
    assert named in result.stderr


def test_an_unknown_estimator_is_named():
    result = run("audit", "KMeans", *AUDIT[2:])
    assert result.exit_code == 2
    assert "PrivateModes" in result.stderr


@pytest.mark.parametrize("word", ["plan", "audit"])
def test_help_has_examples(word):
    text = run(word, "--help").stdout
    assert "Example" in text
    assert f"fogline {word}" in text


def test_plan_says_when_a_budget_protects_hardly_anyone():
    result = run(*PLAN, "--shape", "gaussian:3,0.5", "--epsilons", "1,20", "--json")
    assert result.exit_code == 0, result.output
    assert "epsilon = 20 is above 10" in result.stderr
    assert json.loads(result.stdout)
