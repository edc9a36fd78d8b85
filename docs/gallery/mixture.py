"""Which normal components describe the records? A mixture, fitted to a release."""

import matplotlib.pyplot as plt

import fogline
from fogline.datasets import gaussian_mixture4
from fogline.testing import seeded_noise


def draw(n=5_000):
    """Draw it, from n records of four normal groups."""
    records = gaussian_mixture4(n, random_state=1).X
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = fogline.release(records, columns=["x", "y"], bounds=[(-10, 10), (-10, 10)], epsilon=1.0)
    figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
    fogline.PrivateGaussianMixture(n_components=4).read(shape).plot(axes)
    axes.set_title("Example: four normal components, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("mixture.svg")
