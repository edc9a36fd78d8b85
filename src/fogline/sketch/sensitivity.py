"""How far neighbouring data sets can be apart on the lattice of a release, in Euclidean norm."""

from __future__ import annotations

import math

import numpy as np

from fogline.sketch.fourier import LATTICE_BITS, TABLE_BITS
from fogline.sketch.planning import Spec
from fogline.sketch.random_features import random_sensitivity
from fogline.sketch.random_spec import RandomSpec
from fogline.sketch.spec import WEIGHT_BITS, SketchSpec

__all__ = ["covers_gain_and_loss", "lattice_sensitivity", "least_kernel", "strata_sensitivity"]

SQRT2 = math.sqrt(2.0)


def lattice_sensitivity(spec: Spec, neighbours: str, max_contributions: int) -> float:
    r"""How far the lattice sums of neighbouring data sets can be apart, in steps, in Euclidean norm.

    .. math:: c\,2^{22} + \sqrt{K} \quad\text{(add-remove)}, \qquad c\,\sqrt{2 - 2\kappa}\;2^{22} + \sqrt{K}
       \quad\text{(replace)},

    with :math:`K` coefficients, :math:`c` contributions and :math:`\kappa` the least value of the kernel that
    the features make. The square root is what the floor to the lattice adds. Random features have their own formula,
    :func:`~fogline.sketch.random_features.random_sensitivity`.
    """
    if isinstance(spec, RandomSpec):
        return random_sensitivity(spec, neighbours, max_contributions)
    per_record = 1.0 if neighbours == "add-remove" else math.sqrt(2 - 2 * least_kernel(spec))
    steps = max_contributions * per_record * 2.0**LATTICE_BITS + math.sqrt(spec.n_coefficients)
    return _up(steps)


def strata_sensitivity(spec: Spec, strata: int, neighbours: str, max_contributions: int) -> float:
    r"""How far the sums of several strata, one after the other in one vector, can be apart for neighbouring data sets.

    A record is in one stratum. Adding it moves that one as it would move a sketch of all records; replacing it may take
    it from one stratum to another, which moves two at right angles: :math:`\sqrt 2` where a sketch of all records has
    :math:`\sqrt{2 - 2\kappa}`. Floors differ only in strata that are touched.
    """
    if strata == 1:
        return lattice_sensitivity(spec, neighbours, max_contributions)
    added = neighbours == "add-remove"
    if isinstance(spec, RandomSpec):
        apart = random_sensitivity(spec, "add-remove", max_contributions)
        return apart if added else max(random_sensitivity(spec, neighbours, max_contributions), _up(SQRT2 * apart))
    per_record = 1.0 if added else max(math.sqrt(2 - 2 * least_kernel(spec)), SQRT2)
    touched = min(strata, (1 if added else 2) * max_contributions)
    return _up(max_contributions * per_record * 2.0**LATTICE_BITS + math.sqrt(spec.n_coefficients * touched))


def covers_gain_and_loss(spec: Spec, max_contributions: int, strata: int = 1) -> bool:
    """Whether a release under "replace" holds, at the same cost, for a record that comes or goes.

    It does where replacing moves the sums at least as far as adding does; a wide kernel makes records so much alike
    that it does not. Needed for parts of a data set, which a replaced record may leave and enter.

    Examples
    --------
    >>> from fogline.sketch.planning import plan_spec
    >>> covers_gain_and_loss(plan_spec([(0, 1)], [0.1]), 1)
    True
    """
    replaced, added = (
        strata_sensitivity(spec, strata, neighbours, max_contributions) for neighbours in ("replace", "add-remove")
    )
    return replaced >= added


def _up(steps: float) -> float:
    return math.nextafter(steps * (1 + 1e-12), math.inf)


def least_kernel(spec: SketchSpec) -> float:
    r"""Give a lower bound of :math:`\langle z(c), z(c')\rangle` over all pairs of cells.

    The kernel of the real-valued weights is evaluated at every difference of cells by one FFT; the margin pays
    for the integer tables (less than three units of :math:`2^{-20}` an axis and side) and the FFT.
    """
    pairs = (spec.integer_weights / 2.0**WEIGHT_BITS) ** 2
    spectrum = np.zeros(spec.torus_cells)
    index = tuple(spec.frequencies.T % np.array(spec.torus_cells)[:, None])
    spectrum[index] = pairs
    kernel = np.fft.fftn(spectrum).real  # pairs already hold both signs of a frequency: the real part is the kernel
    for axis, cells in enumerate(spec.cells):  # differences of cells of the box only
        size = spec.torus_cells[axis]
        possible = np.minimum(np.arange(size), size - np.arange(size)) < cells
        kernel = np.compress(possible, kernel, axis=axis)
    margin = 2 * spec.d * 3.0 * 2.0**-TABLE_BITS + 1e-9
    return min(max(float(kernel.min()) - margin, -1.0), 0.5)
