"""Draw the pictures of the gallery: one SVG beside each script of ``docs/gallery``, the same each time.

python tools/draw_gallery.py [NAME ...]          needs the extras cli, plot and pandas
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parent.parent / "docs"
GALLERY = DOCS / "gallery"
RISKS = (0.3, 1.0, 3.0)
HEAD = """# Gallery

Made by `python tools/draw_gallery.py`. Each picture is drawn by a script of less than 40 lines, which uses public names only. Records are invented, except those
of the geyser; noise is seeded so that the pictures repeat, and results with seeded noise are never certified: leave `seeded_noise` out for your own data.
"""
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


def page() -> str:
    """Text of the page: the question of each script, its picture and where it is."""
    parts = [HEAD, '<div class="gallery" markdown>\n']
    for path in sorted(GALLERY.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        question, sign, rest = text.partition("? ")
        begin, _, more = rest.partition("\n")
        parts.append(
            f"<div markdown>\n\n## {question}{sign.strip()}\n\n{begin} {more}".rstrip()
            + f"\n\n![{begin.rstrip('.')}](gallery/{path.stem}.svg)\n\n[{path.name}](gallery/{path.name})\n\n</div>\n"
        )
    parts.append("</div>\n")
    return "\n".join(parts)


def draw_risks() -> None:
    """Draw what a guarantee means for a person, at some budgets."""
    from fogline import Guarantee
    from fogline.report.risk import risk_picture

    for epsilon in RISKS:
        promise = Guarantee.certified_release(
            epsilon=epsilon,
            delta=0.0,
            neighbours="add-remove",
            mechanism="discrete Laplace noise",
            proof="laplace-noise",
        )
        (DOCS / "images" / f"risk-epsilon-{epsilon:g}.svg").write_text(risk_picture(promise) + "\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Draw those named, or all."""
    import matplotlib
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "fogline", "svg.fonttype": "none", "path.simplify_threshold": 0.5})
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")
    draw_risks()
    for name in names or sorted(path.stem for path in GALLERY.glob("*.py")):
        place = GALLERY / f"{name}.svg"
        figure = script(name).draw()
        figure.savefig(place, metadata=PLAIN)
        if place.stat().st_size > MOST_BYTES:  # maps and many points are smaller as a picture within the drawing
            for part in figure.findobj(lambda artist: isinstance(artist, Collection | Line2D)):
                part.set_rasterized(True)
            figure.savefig(place, metadata=PLAIN, dpi=110)
        place.write_text("\n".join(line.rstrip() for line in place.read_text("utf-8").split("\n")), encoding="utf-8")
        size = place.stat().st_size
        print(f"{name}: {size} bytes{', too large' if size > MOST_BYTES else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
