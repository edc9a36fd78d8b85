r"""Theorems 5 to 8 of the integral-privacy paper as numbers: as printed, and as they stand.

Printed: Theorem 6 lacks the factor c* in its low case and holds in its high case for c* = log 2 only; (11) rests on
:math:`\Gamma(z) \ge z \log 2`, which fails on [1/3, 1), and is false at one round for every epsilon; the proof of
Theorem 8 goes through it. ``corrected=True`` gives what the proofs show. See ``docs/gaps.md``.

References
----------
Husain, Cranko and Nock, *Integral privacy for sampling from mollifier densities with approximation guarantees*,
Theorems 5 to 8.
"""

from __future__ import annotations

from fogline.queries.boosted_density import CLAMP, gamma, step_sizes

__all__ = ["drop_of_a_round", "gain_at_least", "gain_at_most", "log_ratio_range", "needed_mass"]


def log_ratio_range(epsilon: float, rounds: int, output: float = CLAMP) -> float:
    r"""Theorem 5: the learnt density is within exp of this of its base, for outputs of at most `output` either way.

    Examples
    --------
    >>> log_ratio_range(1.0, 3) <= 0.5
    True
    """
    return 2.0 * output * float(step_sizes(epsilon, rounds).sum())


def drop_of_a_round(edge_p: float, edge_q: float, step: float, largest: float = CLAMP, corrected: bool = True) -> float:
    r"""Theorem 6: by how much a round lowers the divergence KL(P, Q), at least.

    Parameters
    ----------
    edge_p, edge_q : float
        The edges, relative to the largest output.
    step : float
        :math:`\theta_t`.
    largest : float
        :math:`c^*`.
    corrected : bool
        False: as printed.

    Examples
    --------
    >>> edges = {"edge_p": 0.4, "edge_q": 0.2, "step": 0.25, "largest": 0.01}
    >>> drop_of_a_round(**edges, corrected=False) > 50 * drop_of_a_round(**edges)
    True
    """
    high = edge_q >= 1.0 / 3.0
    if not corrected:
        kept = largest * edge_p + gamma(edge_q) if high else edge_p + edge_q - largest * step / 2.0
        return step * kept
    low = step * largest * (edge_p + edge_q - largest * step / 2.0)
    return max(low, step * (CLAMP * edge_p + gamma(edge_q))) if high and largest >= CLAMP * (1 - 1e-12) else low


def gain_at_most(epsilon: float) -> float:
    """Theorem 7, (10): no density of the mollifier gains more on its base.

    Examples
    --------
    >>> gain_at_most(1.0)
    0.5
    """
    return epsilon / 2.0


def gain_at_least(edge_p: float, edge_q: float, epsilon: float, rounds: int, corrected: bool = True) -> float:
    r"""Theorem 7, (11), for outputs that reach log 2 and edges of at least these in every round.

    Examples
    --------
    >>> printed = gain_at_least(0.9, 0.5, 1.0, 3, corrected=False)
    >>> gain_at_least(0.9, 0.5, 1.0, 3) < printed < gain_at_most(1.0)
    True
    """
    steps = step_sizes(epsilon, rounds)
    if corrected:
        return float(sum(drop_of_a_round(edge_p, edge_q, float(step)) for step in steps))
    return epsilon / 2.0 * (edge_p + edge_q) / 2.0 * (1.0 - float(steps[-1]))


def needed_mass(
    edge_p: float, edge_q: float, epsilon: float, rounds: int, alpha: float, corrected: bool = True
) -> float:
    r"""Theorem 8: a region of at least this mass keeps :math:`(1-\alpha)` of it, less KL(P, Q_0) on the region.

    The printed condition (13) has 2 where its proof, (91), has 2 log 2: it asks for more than the proof needs, which is
    why it stands almost everywhere although (11) does not.

    Examples
    --------
    >>> needed_mass(0.9, 0.5, 1.0, 3, 0.5) < needed_mass(0.9, 0.5, 1.0, 3, 0.5, corrected=False)
    True
    """
    if corrected:
        gain = gain_at_least(edge_p, edge_q, epsilon, rounds)
        return (epsilon - 2.0 * gain) / (epsilon + 2.0 * alpha)
    grown = epsilon + 2.0 * (2.0 - edge_p - edge_q) * rounds
    return epsilon * grown / ((epsilon + 2.0 * alpha) * (epsilon + 2.0 * rounds))
