"""What might records look like? Draws from a release, which are nobody's records."""

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
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    age, stay = shape.sample(800, random_state=0).T
    axes.plot(age, stay, ".", markersize=3)
    axes.set(xlabel="age", ylabel="days in hospital")
    axes.set_title("Example: 800 draws from a release, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("sample.svg")
