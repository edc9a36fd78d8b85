"""Several released densities of one budget, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fogline.accounting.guarantee import Guarantee
from fogline.density.private_density import PrivateDensity

__all__ = ["Releases"]

FORMAT = "fogline-densities-1"


class Releases(Mapping[str, PrivateDensity]):
    """Released densities by name; cannot be changed, and is safe to publish.

    Made by :func:`fogline.release` where columns are asked for in groups. Each density states the guarantee of all of
    them together, which is what whoever reads them all may rely on.

    Parameters
    ----------
    densities : mapping of str to PrivateDensity
    shares : mapping of str to Fraction
        Part of the budget that each was paid; they sum to exactly 1.

    Attributes
    ----------
    guarantee : Guarantee
        Of all densities together.
    receipt : dict or None
        What a ledger was charged for all of them.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fogline import release
    >>> rng = np.random.default_rng(0)
    >>> visits = pd.DataFrame({"stay": rng.gamma(2, 3, 3000), "cost": rng.lognormal(6, 1, 3000)})
    >>> found = release(visits, columns=[["stay"], ["cost"]], bounds={"stay": (0, 60), "cost": (0, 9000)}, epsilon=1.0)
    >>> list(found), found.shares["cost"], found["stay"].guarantee.epsilon
    (['stay', 'cost'], Fraction(1, 2), 1.0)
    """

    def __init__(self, densities: Mapping[str, PrivateDensity], shares: Mapping[str, Fraction]) -> None:
        if not densities or densities.keys() != shares.keys() or sum(shares.values()) != 1:
            raise ValueError("shares must name each density, and sum to exactly 1")
        self._densities = MappingProxyType(dict(densities))
        self.shares = MappingProxyType({name: Fraction(share) for name, share in shares.items()})

    def __getitem__(self, name: str) -> PrivateDensity:
        return self._densities[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._densities)

    def __len__(self) -> int:
        return len(self._densities)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {share}" for name, share in self.shares.items())
        return f"Releases({{{inside}}}; {self.guarantee})"

    def __getstate__(self) -> dict[str, Any]:
        return {"densities": dict(self._densities), "shares": dict(self.shares)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of all densities together; that of each is the same."""
        return next(iter(self.values())).guarantee

    @property
    def receipt(self) -> dict[str, Any] | None:
        """What a ledger was charged for all of them."""
        return next(iter(self.values())).receipt

    @property
    def message(self) -> str:
        """What the released counts and the budget give cause to say."""
        said = dict.fromkeys(part for density in self.values() for part in density.message.split("; ") if part)
        return "; ".join(said)

    def save(self, folder: str | Path) -> list[Path]:
        """Write each density to a ``.fog`` of its name in a folder, which is made if it is not there."""
        place = Path(folder)
        for name in self:
            if name in (".", "..") or any(part in name for part in ("/", "\\", "\0")):
                raise ValueError(f"columns: the density {name!r} cannot be the name of a file")
        place.mkdir(parents=True, exist_ok=True)
        paths = [place / f"{name}.fog" for name in self]
        for path, density in zip(paths, self.values(), strict=True):
            density.save(path)
        return paths

    def to_bytes(self) -> bytes:
        """All densities in one text of bytes, for a ledger."""
        parts = [density.to_bytes() for density in self.values()]
        header = {
            "format": FORMAT,
            "names": list(self),
            "shares": [str(share) for share in self.shares.values()],
            "sizes": [len(part) for part in parts],
        }
        return json.dumps(header).encode() + b"\n" + b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, *, receipt: dict[str, Any] | None = None) -> Releases:
        """Inverse of :meth:`to_bytes`; a receipt given here takes the place of those inside."""
        line, _, rest = data.partition(b"\n")
        try:
            header = json.loads(line)
            is_known = header["format"] == FORMAT
            names, sizes = header["names"], header["sizes"]
            shares = dict(zip(names, map(Fraction, header["shares"]), strict=True))
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"payload: not densities of format {FORMAT}") from None
        if not is_known or sum(sizes) != len(rest):
            raise ValueError(f"payload: not densities of format {FORMAT}")
        densities, place = {}, 0
        for name, size in zip(names, sizes, strict=True):
            densities[name] = PrivateDensity.from_bytes(rest[place : place + size], receipt=receipt)
            place += size
        return cls(densities, shares)
