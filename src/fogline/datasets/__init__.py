"""Data with known shape: simulated mixtures, a real table and a made one.

These are not private and need not be: they are the inputs of experiments. ``random_state`` is a seed or a
numpy Generator.
"""

from fogline.datasets.simulated import (
    GAUSSIAN_MIXTURE4,
    OWN_MIXTURES,
    T_MIXTURE5,
    Mixture,
    Sample,
    gaussian_mixture4,
    mixture_modes,
    own_mixture,
    t_mixture5,
    uniform_box,
)
from fogline.datasets.tables import ExampleTable, HospitalVisits, hospital_visits, load_faithful

__all__ = [
    "GAUSSIAN_MIXTURE4",
    "OWN_MIXTURES",
    "T_MIXTURE5",
    "ExampleTable",
    "HospitalVisits",
    "Mixture",
    "Sample",
    "gaussian_mixture4",
    "hospital_visits",
    "load_faithful",
    "mixture_modes",
    "own_mixture",
    "t_mixture5",
    "uniform_box",
]
