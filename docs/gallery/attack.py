"""Does a claim hold? An attack bounds epsilon from below: a claim below the bar is refuted."""

import matplotlib.pyplot as plt
import numpy as np

from fogline import Guarantee
from fogline.audit import attack


def draw(n=4_000):
    """Draw it, from n runs of a mechanism on two neighbouring data sets."""
    rng = np.random.default_rng(0)
    claims, found = (0.5, 1.0, 2.0), []
    for claim in claims:
        # a count with Laplace noise of half the scale that the claim needs: a common mistake
        def release(data, scale=0.5 / claim):
            return len(data) + rng.laplace(0, scale)

        said = Guarantee.uncertified(epsilon=claim, delta=0.0, neighbours="add-remove", reason="a claim to be tested")
        report = attack(release, [1, 2], [1, 2, 3], said, score=float, runs=n)
        found.append(report.epsilon_lower)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    axes.bar([f"claims {claim:g}" for claim in claims], found, label="at least this, by attack")
    axes.hlines(claims, [-0.4, 0.6, 1.6], [0.4, 1.4, 2.4], color="k", label="the claim")
    axes.set(ylabel="epsilon")
    axes.legend()
    axes.set_title("Example: a mechanism with half of the noise it needs")
    return figure


if __name__ == "__main__":
    draw().savefig("attack.svg")
