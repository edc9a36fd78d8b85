"""Which groups are there? Clusters read from a release; how many there are is read from it, too."""

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
    groups = shape.clusters()
    points = shape.sample(600, random_state=0)  # draws from the release: no records
    axes.scatter(*points.T, c=groups.predict(points), s=6, cmap="Set2")
    axes.plot(*groups.centres.T, "kx", markersize=9)
    axes.set(xlabel="age", ylabel="days in hospital")
    axes.set_title("Example: clusters of visits, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("clusters.svg")
