"""What do all columns look like? Every column of a table at once, for one budget."""

import matplotlib.pyplot as plt
import pandas as pd

import fogline
from fogline.datasets import hospital_visits
from fogline.testing import seeded_noise


def draw(n=20_000):
    """Draw it, from n made visits."""
    visits = hospital_visits(n)
    table = pd.DataFrame(visits.records)[["age", "stay", "cost"]]
    bounds = {name: visits.bounds[name] for name in table}
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        found = fogline.profile(table, bounds=bounds, epsilon=1.0)
    found.plot()
    figure = plt.gcf()
    figure.set_size_inches(9, 3)
    return figure


if __name__ == "__main__":
    draw().savefig("profile.svg")
