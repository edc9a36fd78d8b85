"""Fogline: the shape of sensitive data, under differential privacy."""

from fogline.sketch import DensitySketch, PrivateDensity

__all__ = ["DensitySketch", "PrivateDensity"]
