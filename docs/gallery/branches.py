"""How does one column change with another? All typical answers at each x, not their mean."""

import matplotlib.pyplot as plt
import numpy as np

import fogline
from fogline.testing import seeded_noise


def draw(n=10_000):
    """Draw it, from n made visits."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, n)
    surgery = (age > 55) & (rng.random(n) < 0.4)
    stay = np.where(surgery, rng.normal(25, 2, n), rng.gamma(4.0, 0.5 + age / 60))
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        bounds = {"age": (20, 80), "stay": (0, 60)}
        shape = fogline.release(np.column_stack([age, stay]), bounds=bounds, epsilon=2.0)
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    fogline.PrivateModalRegression().read(shape, y="stay").plot(axes)
    axes.set_title("Example: typical stays by age, epsilon 2")
    return figure


if __name__ == "__main__":
    draw().savefig("branches.svg")
