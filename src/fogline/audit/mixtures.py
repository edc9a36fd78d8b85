"""The long audit of Gaussian mixtures and of the parts that locate: replays, and an outlier among the means.

Budgets are generous in the replays, so that forty records are enough to get to the later stages: what is checked does
not depend on the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fogline.accounting.guarantee import Guarantee
from fogline.audit.certified import outlier_line, replay_reader, replayed_line
from fogline.audit.lines import RELATIONS, Line
from fogline.datasets import gaussian_mixture4
from fogline.estimators import (
    PrivateGaussianMixture,
    one_cluster,
    private_gaussian,
    private_pca,
    private_spherical_gaussian,
    terrific_ball,
)

__all__ = ["check_mixture_outlier", "check_mixture_replay"]

GENEROUS = {"epsilon": 40.0, "delta": 1e-5}

ADDED = ("add-remove",)
"""What looks for balls, or has blocks, is proved for this relation only."""

Reader = Callable[[Any, str], Any]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a part that locates puts out, with the guarantee where the replay looks for it."""

    found: Any
    guarantee: Guarantee


def _ball(box: Any) -> dict[str, Any]:
    """Public ball around a box."""
    low, high = np.array(box).T
    return {"center": ((low + high) / 2).tolist(), "radius": float(np.linalg.norm(high - low) / 2)}


def _mixture(method: str, **options: Any) -> Reader:
    def reader(box: Any, relation: str) -> PrivateGaussianMixture:
        ball = _ball(box)
        widths = {"sigma_min": ball["radius"] / 100, "sigma_max": ball["radius"] / 2}
        settings: dict[str, Any] = {**GENEROUS, **ball, **widths, **options}
        return PrivateGaussianMixture(n_components=2, method=method, neighbours=relation, **settings)

    return reader


def _located(part: Callable[..., tuple[Any, Guarantee]], **options: Any) -> Reader:
    def reader(box: Any, relation: str) -> Callable[[Any], Answer]:
        where = {"bounds": box} if part is private_pca else _ball(box)
        return lambda data: Answer(*part(data, **GENEROUS, **where, neighbours=relation, **options))

    return reader


_READERS: tuple[tuple[str, int, tuple[str, ...], Reader], ...] = (
    ("PrivateGaussianMixture, sketch", 3, RELATIONS, _mixture("sketch", steps=2)),
    ("PrivateGaussianMixture, recursive", 5, RELATIONS, _mixture("recursive")),
    ("PrivateGaussianMixture, spherical", 5, RELATIONS, _mixture("spherical")),
    ("PrivateGaussianMixture, sample-aggregate", 2, ADDED, _mixture("sample-aggregate", learner="spectral")),
    ("one_cluster", 2, ADDED, _located(one_cluster, size=10)),
    ("terrific_ball", 2, ADDED, _located(terrific_ball, size=10)),
    ("private_gaussian", 5, RELATIONS, _located(private_gaussian)),
    ("private_spherical_gaussian", 5, RELATIONS, _located(private_spherical_gaussian)),
    ("private_pca", 5, RELATIONS, _located(private_pca, components=2)),
)
"""What is replayed, with the number of columns and the relations that it is proved for."""


def check_mixture_replay(seed: int, short: bool) -> Iterator[Line]:
    """Replay every method of the mixture and every part that locates; answers from the operating system."""
    for name, d, relations, reader in _READERS:
        for relation in relations:
            report = replay_reader(reader, d, relation, seed, short)
            yield replayed_line(f"{name}, d = {d}, {relation}: replay", [report])


def check_mixture_outlier(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Look for an outlier among the means of a mixture."""
    plain = gaussian_mixture4(300, random_state=0).X
    terms: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "radius": 60.0, "sigma_min": 0.2, "sigma_max": 5.0}
    for method in ("sketch", "recursive", "spherical"):
        mixture = PrivateGaussianMixture(n_components=4, method=method, neighbours="replace", **terms)
        check = f"PrivateGaussianMixture, {method}, replace: an outlier among the means"
        yield outlier_line(check, mixture, plain, lambda found: found.means_, short)
