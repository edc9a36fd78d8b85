"""The methods of :class:`fogline.PrivateGaussianMixture`: what each checks, asks and comes back with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fogline.estimators._located import LocatedTerms
from fogline.estimators._mixture_aggregate import PROOF as AGGREGATE_PROOF
from fogline.estimators._mixture_aggregate import AggregatePlan, learn_aggregate
from fogline.estimators._mixture_fit import MixtureFit
from fogline.estimators._mixture_plan import plan_mixture
from fogline.estimators._mixture_recursive import PROOF as RECURSIVE_PROOF
from fogline.estimators._mixture_recursive import RecursivePlan, learn_recursive
from fogline.estimators._mixture_sketch import find_mixture
from fogline.estimators._mixture_spherical import PROOF as SPHERICAL_PROOF
from fogline.estimators._mixture_spherical import learn_spherical
from fogline.estimators._staged import RecordPasses, Stages
from fogline.sketch.density_sketch import ReleaseTerms

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """One way to learn a mixture.

    Attributes
    ----------
    terms : callable
        Takes the estimator and the unit of the source, returns the checked terms of the release.
    plan : callable
        Takes the estimator and the number of columns, returns all that is public, checked, with ``to_dict`` and
        ``payload``.
    learn : callable
        The staged algorithm.
    mechanism, proof : str
        For the guarantee.
    """

    terms: Callable[[Any, str], ReleaseTerms]
    plan: Callable[[Any, int], Any]
    learn: Callable[[Any, Stages, RecordPasses | None], MixtureFit]
    mechanism: str
    proof: str


def _plain_terms(settings: Any, unit: str) -> ReleaseTerms:
    return ReleaseTerms.checked(settings.epsilon, settings.delta, settings.neighbours, settings.max_contributions, unit)


def _located_terms(settings: Any, unit: str) -> ReleaseTerms:
    terms = LocatedTerms.located(
        settings.epsilon, settings.delta, settings.neighbours, settings.max_contributions, unit
    )
    own = settings.learner is not None and not isinstance(settings.learner, str)
    return replace(terms, remark="declared: the learner looks at nothing but its block") if own else terms


def _parts_plan(settings: Any, d: int) -> RecursivePlan:
    for name in ("n_components", "sigma_min", "sigma_max"):
        if getattr(settings, name) is None:
            raise ValueError(f"{name} must be given for method {settings.method!r}")
    return RecursivePlan.checked(
        d=d,
        n_components=settings.n_components,
        radius=settings.radius,
        sigma_min=settings.sigma_min,
        sigma_max=settings.sigma_max,
        weight_min=settings.weight_min,
        center=settings.center,
        constants=settings.constants,
    )


METHODS: dict[str, Method] = {
    "sketch": Method(
        _plain_terms,
        plan_mixture,
        find_mixture,
        "discrete Gaussian noise on moments, random features and steps of expectation-maximisation",
        "mixture",
    ),
    "recursive": Method(
        _plain_terms,
        _parts_plan,
        learn_recursive,
        "discrete Gaussian noise on places, moments and profiles of parts",
        RECURSIVE_PROOF,
    ),
    "spherical": Method(
        _plain_terms,
        _parts_plan,
        learn_spherical,
        "discrete Gaussian noise on places, moments and profiles of parts",
        SPHERICAL_PROOF,
    ),
    "sample-aggregate": Method(
        _located_terms,
        AggregatePlan.checked,
        learn_aggregate,
        "discrete Gaussian and Laplace noise on what blocks of records agree on, and on places and moments of parts",
        AGGREGATE_PROOF,
    ),
}
