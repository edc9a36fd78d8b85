"""Who stays how long? The density of two columns as a map."""

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
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    shape.plot(axes)
    axes.set_ylim(0, 25)
    axes.set_title("Example: age and days in hospital, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("two_columns.svg")
