"""Draw the pictures of the gallery: one SVG beside each script of ``docs/gallery``, the same each time.

python tools/draw_gallery.py [NAME ...]          needs the extras cli, plot and pandas
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

GALLERY = Path(__file__).resolve().parent.parent / "docs" / "gallery"
MOST_BYTES = 60_000
PLAIN = {"Date": None, "Creator": None}


def script(name: str) -> ModuleType:
    """One script of the gallery, imported without drawing anything."""
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", GALLERY / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"there is no script {name} in the gallery")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(names: list[str]) -> int:
    """Draw those named, or all."""
    import matplotlib
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "fogline", "svg.fonttype": "none", "path.simplify_threshold": 0.5})
    for name in names or sorted(path.stem for path in GALLERY.glob("*.py")):
        place = GALLERY / f"{name}.svg"
        figure = script(name).draw()
        figure.savefig(place, metadata=PLAIN)
        if place.stat().st_size > MOST_BYTES:  # maps and many points are smaller as a picture within the drawing
            for part in figure.findobj(lambda artist: isinstance(artist, Collection | Line2D)):
                part.set_rasterized(True)
            figure.savefig(place, metadata=PLAIN, dpi=110)
        size = place.stat().st_size
        print(f"{name}: {size} bytes{', too large' if size > MOST_BYTES else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
