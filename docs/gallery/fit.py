"""Which distribution fits? A family with its own share of exact zeros, fitted to a release."""

import matplotlib.pyplot as plt
import numpy as np

import fogline
from fogline.testing import seeded_noise


def draw(n=10_000):
    """Draw it, from n made visits."""
    rng = np.random.default_rng(7)
    stay = np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2.0, 3.0, n))
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = fogline.release(stay[:, None], bounds={"stay": (0, 60)}, epsilon=1.0)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    fogline.PrivateHellinger(family="zero-inflated gamma").read(shape, column="stay").plot(axes)
    axes.set_title("Example: a gamma law with zeros, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("fit.svg")
