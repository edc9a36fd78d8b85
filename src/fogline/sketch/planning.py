"""Which features a sketch has: a grid of frequencies up to three axes, random frequencies beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fogline._validation import check_bounds, check_count
from fogline.sketch.random_spec import RandomSpec
from fogline.sketch.spec import SketchSpec

__all__ = ["Spec", "plan_spec", "spec_from_dict"]

Spec = SketchSpec | RandomSpec
"""A public specification of either kind."""


def plan_spec(
    bounds: ArrayLike | None, bandwidths: Any = "auto", steps: Any = None, *, features: Any = "auto", shares: Any = None
) -> Spec:
    """Plan a sketch of the kind that suits the number of axes, or of the kind that is asked for.

    Parameters
    ----------
    bounds, bandwidths, steps
        As for :class:`fogline.DensitySketch`.
    features : {"auto", "grid", "random"} or int
        Grid features up to three axes and random ones beyond, or the one named. A number is that of the frequencies
        of random features.
    shares : sequence of float, optional
        Share of each bandwidth.

    Examples
    --------
    >>> plan_spec([(0, 1)] * 3).to_dict()["features"], plan_spec([(0, 1)] * 4).to_dict()["features"]
    ('grid', 'random')
    >>> plan_spec([(0, 1)] * 2, features=1000).n_features
    1000
    """
    is_kind = isinstance(features, str) and features in ("auto", "grid", "random")
    if not is_kind and (isinstance(features, bool | str) or not isinstance(features, int | np.integer)):
        raise ValueError(f"features must be 'auto', 'grid', 'random' or a number of frequencies, got {features!r}")
    d = len(check_bounds(bounds))
    if features == "grid" or (features == "auto" and d <= 3):
        return SketchSpec.plan(bounds, bandwidths, steps, shares=shares)
    size = None if is_kind else check_count(features, "features")
    return RandomSpec.plan(bounds, bandwidths, steps, shares=shares, n_features=size)


def spec_from_dict(data: dict[str, Any]) -> Spec:
    """Specification of either kind from its JSON-safe form."""
    kinds: dict[Any, type[Spec]] = {"grid": SketchSpec, "random": RandomSpec}
    if data.get("features") not in kinds:
        raise ValueError(f"features: there are no features of kind {data.get('features')!r}")
    return kinds[data["features"]].from_dict(data)
