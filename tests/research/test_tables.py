"""Tables of the papers by name: every one is listed and runs, short by default."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fogline_research.cli import reproduce
from fogline_research.experiments.clusters import cluster_cells, load_mnist, reproduce_clusters
from fogline_research.experiments.hellinger import hellinger_cells
from fogline_research.experiments.tables import TABLES, reproduce_table


def test_all_tables_of_the_papers_have_a_name_and_all_of_their_cells():
    assert [name for name in TABLES if name.startswith("supplement")] == [f"supplement-{i}" for i in range(1, 9)]
    assert [name for name in TABLES if name.startswith("e")] == [f"e{i}" for i in range(1, 21)]
    numbers = {name: len(table.cells()) for name, table in TABLES.items()}
    assert numbers["supplement-1"] + numbers["supplement-2"] == 40
    assert numbers["supplement-3"] + numbers["supplement-4"] == 32
    assert sum(numbers[f"e{i}"] for i in range(1, 21)) == len(hellinger_cells()) == 144
    assert min(numbers[f"e{i}"] for i in range(1, 21)) >= 3


@pytest.mark.parametrize(("name", "rows"), [("supplement-5", 6), ("e19", 5)])
def test_a_table_runs_short_with_printed_numbers_beside_ours(name, rows):
    found = reproduce_table(name, runs=1, seed=0)
    assert len(found) == rows
    assert {row.runs for row in found} == {1}


def test_printed_likelihood_and_uncorrected_coverage_are_beside_ours():
    (first, *_, last) = reproduce_table("e19", runs=1, seed=0)
    assert last.method == "mle"
    assert last.paper_mu == pytest.approx(5 + 4.75 * last.contamination / 100, abs=0.05)
    assert first.paper_mu != last.paper_mu
    private = [row for row in reproduce_table("e17", runs=1, seed=0) if row.method == "published" and row.epsilon < 1]
    for row in private:
        assert row.paper_mu_plain_cover < row.paper_mu_cover
        assert row.mu_plain_cover in (0.0, 1.0)


def test_the_command_lists_runs_and_refuses(tmp_path):
    runner = CliRunner()
    assert "supplement-7" in runner.invoke(reproduce, ["table", "--list"]).output
    file = tmp_path / "rows.csv"
    done = runner.invoke(reproduce, ["table", "e18", "--runs", "1", "--seed", "0", "--csv", str(file)])
    assert done.exit_code == 0, done.output
    assert "E.18" in file.read_text()
    assert runner.invoke(reproduce, ["table"]).exit_code != 0
    assert runner.invoke(reproduce, ["table", "e21"]).exit_code != 0


def test_mnist_is_read_from_its_files_and_projected(tmp_path, monkeypatch):
    monkeypatch.delenv("FOGLINE_MNIST", raising=False)
    with pytest.raises(ValueError, match="FOGLINE_MNIST"):
        reproduce_table("supplement-7")
    with pytest.raises(FileNotFoundError, match="FOGLINE_MNIST"):
        load_mnist()
    write_images(tmp_path)
    monkeypatch.setenv("FOGLINE_MNIST", str(tmp_path))
    X, classes = load_mnist()
    assert X.shape == (240, 50)
    assert set(classes.tolist()) == set(range(10))
    assert sum(cell.dataset == "mnist" for cell in cluster_cells()) == 6
    cells = [cell for cell in cluster_cells() if (cell.dataset, cell.epsilon) == ("mnist", 1.0)]
    for row in reproduce_clusters(runs=1, cells=cells, methods=("published", "kmeans", "mean_shift"), seed=0):
        assert row.ari > 0.9  # ten kinds of images that hardly differ within a kind
        assert row.paper_ari == {"published": 0.4085, "kmeans": 0.366, "mean_shift": 0.446}[row.method]


def write_images(folder: Path) -> None:
    """Few images, each of one of ten patterns with a little noise, as packed idx files."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 200, size=(10, 784))
    for part, number in (("train", 200), ("t10k", 40)):
        digits = np.arange(number) % 10
        images = (patterns[digits] + rng.integers(0, 20, size=(number, 784))).astype(np.uint8)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + images.tobytes()))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(bytes(8) + digits.astype(np.uint8).tobytes())
        )
