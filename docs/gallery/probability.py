"""How likely is a long stay at each age? Answers to one question per age group, with 95% intervals."""

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
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for low in range(0, 100, 10):
        answer = shape.ask(f"P(stay > 7 | {low} <= age < {low + 10})").estimate
        span = [[answer.value - answer.low], [answer.high - answer.value]]
        axes.errorbar([low + 5], [answer.value], yerr=span, fmt="o", color="C0", capsize=3)
    axes.set(xlabel="age", ylabel="share of visits above 7 days", ylim=(0, None))
    axes.set_title("Example: long stays by age, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("probability.svg")
