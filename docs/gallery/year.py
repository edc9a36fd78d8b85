"""How long does a budget last? What is left of it after each release of a year."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import fogline
from fogline.datasets import hospital_visits
from fogline.ledger import Ledger


def draw(n=1_000):
    """Draw it, from n made visits."""
    left = []
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "a.ledger", dataset="visits", epsilon=2.0, delta=0.0, unit="record")
        for quarter in range(1, 5):
            if quarter > 1:
                ledger.new_version("visits", f"quarter {quarter}")
            stay = hospital_visits(n, random_state=quarter).records["stay"]
            fogline.release(stay[:, None], bounds={"stay": (0, 60)}, epsilon=0.45, ledger=ledger)
            left.append(ledger.remaining().pure)
        ledger.close()
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.bar(["spring", "summer", "autumn", "winter"], left)
    axes.set(ylabel="epsilon left, of 2", ylim=(0, 2), title="Example: four releases of epsilon 0.45")
    return figure


if __name__ == "__main__":
    draw().savefig("year.svg")
