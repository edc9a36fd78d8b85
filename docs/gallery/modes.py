"""Where are the typical values? Modes with their 95% ellipses."""

import matplotlib.pyplot as plt

from fogline import PrivateModes
from fogline.datasets import gaussian_mixture4
from fogline.testing import seeded_noise


def draw(n=5_000):
    """Draw it, from n records of four normal groups."""
    records = gaussian_mixture4(n, random_state=1).X
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(-10, 10), (-10, 10)]).fit(records)
    figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
    found.plot(axes)
    axes.set_title("Example: modes of four groups, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("modes.svg")
