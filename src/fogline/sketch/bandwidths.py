"""Bandwidths and rounding steps as a user asks for them, checked, and as a file has them, checked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_bounds

__all__ = ["FINEST", "as_bandwidth", "check_steps", "check_stored", "lift_to_steps", "wanted_bandwidths"]

FloatArray = NDArray[np.float64]

FINEST = 1e-12
"""Bandwidths and steps below this part of the box's width are refused before anything is computed from them."""

STEP_SMOOTHING = 0.75
"""Values rounded to steps of s are read with bandwidths of 0.75 s or more: the ripple is then below 4e-5."""


def as_bandwidth(bandwidth: Any, widths: FloatArray, *, name: str = "bandwidth") -> FloatArray:
    """Bandwidth an axis in data units: an array is taken as it is, a scalar as a fraction of each width."""
    value = _numbers(bandwidth, name)
    if value.ndim == 0:
        with np.errstate(all="ignore"):  # any bits may come as a number: they are looked at below
            value = value * widths
    if value.shape != widths.shape:
        raise ValueError(f"{name} must be a number or one value an axis ({len(widths)}), got shape {value.shape}")
    if not np.all(np.isfinite(value) & (value > 0) & (value <= widths)):
        raise ValueError(f"{name} must be positive and at most the width of the box, got {bandwidth!r}")
    if np.any(value < FINEST * widths):
        raise ValueError(f"{name} must be at least {FINEST:g} of the width of the box, got {bandwidth!r}")
    return value


def _numbers(value: Any, name: str) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or a list of numbers, got {value!r}") from None


def wanted_bandwidths(bandwidths: Any, widths: FloatArray) -> FloatArray | None:
    """Bandwidths that a user asks for, shape (scales, axes), in data units; None for "auto"."""
    if isinstance(bandwidths, str):
        if bandwidths != "auto":
            raise ValueError(f"bandwidths must be 'auto', a number or a list of bandwidths, got {bandwidths!r}")
        return None
    is_list = isinstance(bandwidths, Sequence | np.ndarray) and np.size(np.asarray(bandwidths, dtype=object))
    entries = list(bandwidths) if is_list else [bandwidths]
    if not entries:
        raise ValueError("bandwidths must hold at least one bandwidth")
    return np.array([as_bandwidth(b, widths, name="bandwidths") for b in entries])


def check_steps(steps: Any, widths: FloatArray) -> FloatArray:
    """Public rounding step of each axis in data units, 0 for a continuous one."""
    if steps is None:
        return np.zeros(len(widths))
    entries = list(steps) if isinstance(steps, Sequence | np.ndarray) and not isinstance(steps, str) else [steps]
    if len(entries) != len(widths):
        raise ValueError(f"steps must have one value an axis ({len(widths)}), got {len(entries)}")
    value = np.array([0.0 if s is None else float(_numbers(s, "steps")) for s in entries])
    if not np.all(np.isfinite(value) & (value >= 0) & (value < widths)):
        raise ValueError(f"steps must be None or positive and below the width of the axis, got {steps!r}")
    if np.any((value > 0) & (value < FINEST * widths)):
        raise ValueError(f"steps must be None or at least {FINEST:g} of the width of the axis, got {steps!r}")
    return value


def lift_to_steps(
    planned: FloatArray, shares: tuple[float, ...], steps: FloatArray
) -> tuple[FloatArray, tuple[float, ...]]:
    """Sort the scales, check that they are proportional, and lift those too fine for the rounding of the data."""
    if len(shares) != len(planned) or not np.isclose(sum(shares), 1) or min(shares) <= 0:
        raise ValueError(f"shares must be positive, one for each bandwidth, and sum to 1, got {shares}")
    order = np.argsort(planned[:, 0], kind="stable")
    planned, shares = planned[order], tuple(shares[i] for i in order)
    ratio = planned / planned[0]
    if not np.allclose(ratio, ratio[:, :1], rtol=1e-9):
        raise ValueError("bandwidths must be proportional to each other; rescale the box to mix shapes")
    lift = float(np.max(STEP_SMOOTHING * steps / planned[0], initial=0.0))
    if lift > 1:
        factors = np.maximum(ratio[:, 0], lift)
        planned = factors[:, None] * planned[0]
    return planned, shares


def check_stored(
    bounds: tuple[tuple[float, float], ...],
    scales: tuple[tuple[float, ...], ...],
    shares: tuple[float, ...],
    steps: tuple[float, ...],
) -> None:
    """Refuse fields of a specification from a file that no plan could have made; every error names its field."""
    box = check_bounds(list(bounds))
    widths = box[:, 1] - box[:, 0]
    if not scales or any(len(row) != len(widths) for row in scales):
        raise ValueError(f"scales must hold one bandwidth an axis ({len(widths)}) in each row, and at least one row")
    planned = np.array(scales)
    # Lifting to the steps of one axis lifts the others with it, at most from FINEST of the width to all of it.
    if not np.all((planned >= FINEST * widths) & (planned <= widths / FINEST)):
        raise ValueError("scales must be positive and finite, neither far finer nor far wider than the box")
    if np.any(np.diff(planned[:, 0]) < 0):
        raise ValueError("scales must be in order, the smallest first")
    lift_to_steps(planned, shares, check_steps(list(steps), widths))
