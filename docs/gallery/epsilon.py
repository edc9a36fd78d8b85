"""What does a larger epsilon buy? The same column, released at three budgets."""

import matplotlib.pyplot as plt
import numpy as np

import fogline
from fogline.datasets import hospital_visits
from fogline.testing import seeded_noise


def draw(n=2_000):
    """Draw it, from n made visits."""
    stay = hospital_visits(n).records["stay"]
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    days = np.linspace(0, 15, 121)
    for epsilon in (0.03, 0.3, 3.0):
        with seeded_noise(1):  # so that the picture repeats: leave it out to be private
            shape = fogline.release(stay[:, None], bounds={"stay": (0, 60)}, epsilon=epsilon)
        curve = shape.cdf(days, "stay")
        axes.plot(days, curve.value, label=f"epsilon {epsilon:g}")
        axes.fill_between(days, curve.low, curve.high, alpha=0.25)
    axes.set(xlabel="days in hospital", ylabel="share of visits that ended by then", ylim=(0, 1))
    axes.legend()
    axes.set_title(f"Example: one column of {n} visits, three budgets")
    return figure


if __name__ == "__main__":
    draw().savefig("epsilon.svg")
