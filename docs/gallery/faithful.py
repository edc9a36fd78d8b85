"""Real data: when does Old Faithful erupt? 272 eruptions are few, and the noise shows."""

import matplotlib.pyplot as plt

import fogline
from fogline.datasets import load_faithful
from fogline.testing import seeded_noise


def draw(n=272):
    """Draw it, from the first n eruptions."""
    table = load_faithful()
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = fogline.release(table.X[:n], columns=list(table.columns), bounds=table.bounds, epsilon=2.0)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    shape.plot(axes)
    axes.set_title("Example: 272 eruptions, epsilon 2")
    return figure


if __name__ == "__main__":
    draw().savefig("faithful.svg")
