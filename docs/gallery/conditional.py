"""Do the old stay longer? Curves of one column for two ranges of another."""

import matplotlib.pyplot as plt
import numpy as np

import fogline
from fogline.datasets import hospital_visits
from fogline.testing import seeded_noise


def draw(n=20_000):
    """Draw it, from n made visits."""
    visits = hospital_visits(n).records
    records = np.column_stack([visits["age"], visits["stay"]])
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = fogline.release(records, bounds={"age": "age", "stay": (0, 60)}, epsilon=1.0)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    days = np.linspace(0, 30, 121)
    for low, high in ((0, 40), (70, 100)):
        curve = shape.given(age=(low, high)).cdf(days, "stay")
        axes.plot(days, curve.value, label=f"age {low} to {high}")
        axes.fill_between(days, curve.low, curve.high, alpha=0.3)
    axes.set(xlabel="days in hospital", ylabel="share of visits that ended by then")
    axes.legend()
    axes.set_title("Example: stays of the young and the old, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("conditional.svg")
