"""How exact will it be? Expected errors from a public guess, before any budget is spent."""

import matplotlib.pyplot as plt

from fogline.planning.density import expected_density_error


def draw(n=5_000):
    """Draw it, from a public guess of n visits: no data at all."""
    epsilons = [0.1, 0.3, 1.0, 3.0]
    expected = expected_density_error({"stay": (0, 60)}, n, epsilons=epsilons, runs=1)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for name in ("total", "privacy", "sampling"):
        axes.loglog(epsilons, [getattr(row.quantiles[0][2], name) for row in expected.rows], "o-", label=name)
    axes.set(xlabel="epsilon", ylabel="standard error of the median, in days")
    axes.legend()
    axes.set_title(f"Example: a plan for {n} visits")
    return figure


if __name__ == "__main__":
    draw().savefig("plan.svg")
