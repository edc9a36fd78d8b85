"""How long do visits last? The density of one column, with a band that holds all of it at once."""

import matplotlib.pyplot as plt

import fogline
from fogline.datasets import hospital_visits
from fogline.testing import seeded_noise


def draw(n=20_000):
    """Draw it, from n made visits."""
    stay = hospital_visits(n).records["stay"]
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = fogline.release(stay[:, None], bounds={"stay": (0, 60)}, epsilon=1.0)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    shape.plot(axes)
    axes.set_title("Example: days in hospital, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("one_column.svg")
