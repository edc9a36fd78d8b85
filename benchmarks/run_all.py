"""Run every benchmark and write the pages of measurements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from page import write_pages

SCRIPTS = (
    "density.py",
    "calibration.py",
    "reading_ends.py",
    "quantiles.py",
    "one_release.py",
    "modes.py",
    "modes_bias.py",
    "many_axes.py",
    "clusters.py",
    "clusters_printed.py",
    "cluster_shapes.py",
    "regression.py",
    "hellinger.py",
    "integral.py",
    "mixtures.py",
    "groups.py",
    "scale.py",
    "warehouse.py",
    "doors.py",
    "startup.py",
    "studio.py",
)

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    for script in SCRIPTS:
        subprocess.run([sys.executable, str(here / script)], check=True, cwd=here)
    print(f"wrote {len(write_pages())} pages")
