"""How do groups differ? One density per group, for the price of one."""

import matplotlib.pyplot as plt

import fogline
from fogline.datasets import hospital_visits
from fogline.testing import seeded_noise


def draw(n=20_000):
    """Draw it, from n made visits."""
    visits = hospital_visits(n).records
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        found = fogline.private_strata(
            visits["cost"][:, None],
            visits["sex"],
            categories=["f", "m"],
            epsilon=1.0,
            bounds={"cost": (0, 9000)},
            features="leaves",
        )
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    found.plot(axes)
    figure.suptitle("Example: costs by sex, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("strata.svg")
