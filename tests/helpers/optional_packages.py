"""Packages that a test may lack: who touches one that is not installed skips the test, and that test alone."""

from importlib import import_module

import pytest


class NotInstalled:
    """Stands in the place of a package."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        pytest.skip(f"{self._name} is not installed", allow_module_level=True)


def optional(name):
    """The package, or what skips a test that uses it; for packages that a whole file needs there is importorskip."""
    try:
        return import_module(name)
    except ImportError:
        return NotInstalled(name)
