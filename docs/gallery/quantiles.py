"""Which stays are usual? Quantiles with their 95% intervals."""

import matplotlib.pyplot as plt
import numpy as np

import fogline
from fogline.datasets import hospital_visits
from fogline.testing import seeded_noise


def draw(n=20_000):
    """Draw it, from n made visits."""
    stay = hospital_visits(n).records["stay"]
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = fogline.release(stay[:, None], bounds={"stay": (0, 60)}, epsilon=1.0)
    levels = np.linspace(0.35, 0.95, 13)
    found = shape.quantile(levels, "stay")
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    below, above = found.value - found.low, found.high - found.value
    axes.errorbar(100 * levels, found.value, yerr=[below, above], fmt="o", capsize=3)
    axes.set(xlabel="so many percent of visits ...", ylabel="... last at most this many days")
    axes.set_title("Example: quantiles of the stay, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("quantiles.svg")
