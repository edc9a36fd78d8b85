"""What does epsilon mean for a person? How far a guess about them can improve, at most."""

import matplotlib.pyplot as plt
import numpy as np

from fogline import Guarantee


def promise(epsilon):
    """Return the guarantee of a release without delta."""
    law = {"mechanism": "discrete Laplace noise", "proof": "laplace-noise"}
    return Guarantee.certified_release(epsilon=float(epsilon), delta=0.0, neighbours="add-remove", **law)


def draw(n=100):
    """Draw it, from bounds at n values of epsilon: no data at all."""
    epsilons = np.linspace(0.01, 5.0, n)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for before in (0.01, 0.1, 0.5):
        after = [100 * promise(epsilon).risk(before).content for epsilon in epsilons]
        axes.plot(epsilons, after, label=f"right in {100 * before:g}% of cases before")
    axes.set(xlabel="epsilon", ylabel="right after the release,\nin % of cases, at most", ylim=(0, 100))
    axes.legend()
    axes.set_title("A guess about one person, before and after")
    return figure


if __name__ == "__main__":
    draw().savefig("risk.svg")
