"""The equality table: integers of every engine of this machine against those of numpy, on hostile rows."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from adversarial_rows import GRIDS, PLACES, adversarial_rows, exact_doubles, grid_edges
from common import write_csv
from fogline import DensitySketch
from fogline.sources.warehouse import WarehouseQuery
from warehouse_engines import ENGINES, Engine, NotInstalled, opened_engine

__all__ = ["compared"]


def compared(engine: Engine, rows: list[tuple[Any, ...]]) -> tuple[int, int]:
    """Cells that were compared over all grids, and those that differ."""
    cells = different = 0
    for spec, columns in GRIDS.values():
        query = WarehouseQuery.of(spec, columns, dialect=engine.dialect, table="t")
        theirs = {int(cell): int(records) for cell, records, _, _ in engine.run(query.sql()) if int(cell) >= 0}
        numbers = np.column_stack([exact_doubles(rows, PLACES[name]) for name in columns])
        keys, counts = DensitySketch.of(spec).update(numbers).state()
        mine = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        cells += len({*mine, *theirs})
        different += sum(mine.get(cell, 0) != theirs.get(cell, 0) for cell in {*mine, *theirs})
    return cells, different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true", help="print the figures and write nothing")
    options = parser.parse_args()
    rows = adversarial_rows(grid_edges(), others=2000)
    found = []
    for name in ENGINES:
        try:
            with opened_engine(name) as engine:
                engine.load("t", rows)
                cells, different = compared(engine, rows)
        except NotInstalled as error:
            print(f"{name}: left out, {error}", flush=True)
            continue
        found.append(
            {"engine": name, "dialect": engine.dialect, "rows": len(rows), "cells": cells, "different": different}
        )
        print(found[-1], flush=True)
    if not options.dry:
        write_csv("warehouse", found)


if __name__ == "__main__":
    main()
