"""Names of a package that are imported when they are first used.

A package that shows the names of its modules would import them all, and with them libraries that take a second to load.
The names stay where users look for them; what is not used is not loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        For each public name the module of the package that defines it; a name must not be that of a module.

    Examples
    --------
    >>> find, names = lazy_names("fogline.density", {"PrivateDensity": "private_density"})
    >>> names(), find("PrivateDensity").__module__
    (['PrivateDensity'], 'fogline.density.private_density')
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # not kept in the package: an audit compares the state of all modules before and after a fit
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return find, lambda: sorted(homes)
