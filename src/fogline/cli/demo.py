"""``fogline demo``: one release of a made hospital table, several readings, a profile, and a page that leads to all."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fogline.cli.common import Command, Phase, need, write

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity
    from fogline.ledger import Ledger

__all__ = ["demo"]

EPSILON, RELEASE, PROFILE = 1.0, 0.7, 0.3
"""Budget of the demo in all, for the release, and for the profile."""

QUESTIONS = (
    "count",
    "median stay",
    "P(stay > 10)",
    "P(stay > 10 | age > 70)",
    "mean stay by age 0:100:25",
    "correlation of age and stay",
)

COMMANDS = f"""\
fogline ledger create budget.ledger --dataset visits --unit person --max-contributions 1 \\
    --epsilon {EPSILON:g} --delta 0
fogline release visits.csv --columns age,stay --bounds age,0:60 --unit person --epsilon {RELEASE:g} \\
    --ledger budget.ledger --out visits.fog
fogline modes visits.fog --report modes.html                  # this and what follows is free
fogline clusters visits.fog --report clusters.html
fogline regress visits.fog --y stay --report branches.html
fogline mixture visits.fog --components 2 --report mixture.html
fogline ask visits.fog "median stay" "P(stay > 10 | age > 70)"
fogline notebook visits.fog --out visits.ipynb
fogline profile visits.csv --bounds age=age,stay=0:60,cost=0:9000,score=0:20 \\
    --steps score=1 --category sex=f/m --pairs age,stay,cost --unit person \\
    --epsilon {PROFILE:g} --ledger budget.ledger --report profile.html"""

RECIPE = f"""\
# What fogline demo does, as a recipe. Run it here with: fogline run fogline.toml (the ledger answers again for nothing)

[source]
file = "visits.csv"
unit = "person"

[ledger]
path = "budget.ledger"
high_water = "marks"

[release.visits]
columns = ["age", "stay"]
bounds = {{ age = "age", stay = [0, 60] }}
epsilon = {RELEASE:g}

[profile.columns]
columns = ["sex", "age", "stay", "cost", "score"]
bounds = {{ age = "age", stay = [0, 60], cost = [0, 9000], score = [0, 20] }}
steps = {{ score = 1 }}
category = {{ sex = ["f", "m"] }}
pairs = ["age", "stay", "cost"]
epsilon = {PROFILE:g}
report = "profile.html"

[[reading]]
kind = "card"
report = "density.html"

[[reading]]
kind = "modes"
report = "modes.html"

[[reading]]
kind = "clusters"
report = "clusters.html"

[[reading]]
kind = "regress"
y = "stay"
report = "branches.html"

[[reading]]
kind = "mixture"
components = 2
report = "mixture.html"

[[reading]]
kind = "notebook"
out = "visits.ipynb"
"""

MADE = f"fogline demo\n\n# the same as a recipe:\n{RECIPE}"
"""What the pages say that they were made by."""


class Page(NamedTuple):
    """A line of the index."""

    file: str
    name: str
    answers: str
    cost: str


OTHERS = (
    Page("visits.ipynb", "Notebook", "All of this again, in cells to change", "none: reads the release"),
    Page("fogline.toml", "Recipe", "How was it all made?", "none: the ledger knows the answers"),
)
"""What is no page."""


@click.command(cls=Command, epilog="\b\nExample:\n  fogline demo --out /tmp/fogline-demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    show_default=True,
    help="Folder for the pages.",
)
def demo(out: Path) -> None:
    """Release the shape of a made-up table of 20 000 hospital visits once, and read it in six ways.

    A ledger keeps a budget of epsilon = 1 per person: 0.7 pay for the release of age and stay, 0.3 for a profile of
    all columns. Modes, clusters, branches, a mixture and questions are read from the release for nothing. Done again in
    the same folder, the answers come from the ledger; that of an earlier version of fogline is put aside.
    """
    need("rich", "jinja2")
    write(lambda: out.mkdir(parents=True, exist_ok=True), "--out")
    from fogline.datasets.tables import hospital_visits
    from fogline.report.notebook import write_notebook

    visits = hospital_visits()
    write(lambda: visits.to_csv(out / "visits.csv"), "--out")
    shape, pages, left = _asked(out)
    write(lambda: (out / "fogline.toml").write_text(RECIPE, encoding="utf-8"), "--out")
    write(lambda: write_notebook(shape, out / "visits.ipynb", "visits.fog", command=MADE), "--out")
    answers = [(text, line) for text in QUESTIONS for line in _answer(shape, text)]
    page = _index(shape, pages, answers, left)
    write(lambda: (out / "index.html").write_text(page, encoding="utf-8"), "--out")
    click.echo("\nAsked, for nothing:")
    for text, line in answers:
        click.echo(f"  {text}: {line}")
    click.echo(f"\n{shape.guarantee}\n")
    for one in pages:
        click.echo(f"{out / one.file}: {one.answers}")
    click.echo(f"{out / 'visits.fog'}: the release itself; try: fogline ask {out / 'visits.fog'} 'P(stay > 20)'")
    click.echo(f"\nOpen {out / 'index.html'}")


def _asked(out: Path) -> tuple[PrivateDensity, list[Page], str]:
    """Release, readings and profile, with what is left in the ledger."""
    from fogline.ledger.question import LedgerRefused

    try:
        return _ask(out)
    except LedgerRefused as refused:
        if refused.check != "edition":
            raise
    # An earlier version has answered here. These records are made up, so that a second budget for them harms nobody.
    aside = next(folder for k in itertools.count(1) if not (folder := out / f"earlier-{k}").exists())
    write(aside.mkdir, "--out")
    for path in [*out.glob("budget.ledger*"), out / "marks"]:
        path.rename(aside / path.name)
    return _ask(out)


def _ask(out: Path) -> tuple[PrivateDensity, list[Page], str]:
    with _ledger(out) as ledger:
        shape = _release(out, ledger)
        pages = [*_read(shape, out), _profile(out, ledger), *OTHERS]
        return shape, pages, f"ε = {round(ledger.remaining().pure, 6):g}"


def _ledger(out: Path) -> Ledger:
    from fogline.ledger import Ledger

    path, marks = out / "budget.ledger", out / "marks"
    if path.exists():
        return Ledger.open(path, high_water=marks)
    marks.mkdir(exist_ok=True)
    return Ledger.create(
        path, dataset="visits", epsilon=EPSILON, delta=0.0, unit="person", max_contributions=1, high_water=marks
    )


def _release(out: Path, ledger: Ledger) -> PrivateDensity:
    import fogline

    with Phase("releasing the density of age and stay, once"):
        shape: PrivateDensity = fogline.release(
            out / "visits.csv",
            bounds={"age": "age", "stay": (0, 60)},
            unit="person",
            epsilon=RELEASE,
            ledger=ledger.on(),
        )
        shape.save(out / "visits.fog")
    return shape


def _read(shape: PrivateDensity, out: Path) -> list[Page]:
    """Write the pages that are read from the release."""
    from fogline import PrivateGaussianMixture, PrivateModalRegression, PrivateModeClustering, PrivateModes

    readings: list[tuple[str, str, Any]] = [
        ("density", "How are age and stay distributed, together and each?", lambda: shape),
        ("modes", "Which ages and stays are typical?", lambda: PrivateModes().read(shape)),
        ("clusters", "Which groups of visits are there?", lambda: PrivateModeClustering().read(shape)),
        ("branches", "How long do people stay, by age?", lambda: PrivateModalRegression().read(shape, "stay")),
        ("mixture", "Which two normal laws?", lambda: PrivateGaussianMixture(n_components=2).read(shape)),
    ]
    pages = []
    for stem, answers, read in readings:
        with Phase(f"reading the release: {stem}"):
            result = read()
            page = out / f"{stem}.html"
            write(lambda result=result, page=page: result.report(page, command=MADE), "--out")  # type: ignore[misc]
        cost = f"epsilon = {RELEASE:g}, the release" if stem == "density" else "none: read from the release"
        pages.append(Page(f"{stem}.html", stem.capitalize(), answers, cost))
    return pages


def _profile(out: Path, ledger: Ledger) -> Page:
    import fogline

    with Phase("releasing a profile of every column"):
        profile = fogline.profile(
            out / "visits.csv",
            bounds={"age": "age", "stay": (0, 60), "cost": (0, 9000), "score": (0, 20)},
            steps={"score": 1},
            categories={"sex": ["f", "m"]},
            columns=["sex", "age", "stay", "cost", "score"],
            pairs=["age", "stay", "cost"],
            unit="person",
            epsilon=PROFILE,
            ledger=ledger.on(),
        )
        write(lambda: profile.report(out / "profile.html", command=MADE), "--out")
    answers = "What does each column look like, and which depend on each other?"
    return Page("profile.html", "Profile", answers, f"epsilon = {PROFILE:g}")


def _answer(shape: PrivateDensity, text: str) -> list[str]:
    said = str(shape.ask(text))
    lines = said.split("\n")
    return [said.removeprefix(f"{text}: ")] if len(lines) == 1 else [line.strip() for line in lines[1:]]


def _index(shape: PrivateDensity, pages: list[Page], answers: list[tuple[str, str]], left: str) -> str:
    import fogline
    from fogline.report.frame import render_index

    content = {
        "lead": "A made table of 20 000 visits, published under differential privacy. Its records are never shown.",
        "tiles": [
            (f"{shape.count:.0f} ± {shape.count_sd:.0f}", "visits counted, one per person at most"),
            (f"ε = {EPSILON:g}", "privacy budget of all pages together, δ = 0"),
            (left, "left in the ledger"),
        ],
        "sentences": [str(shape.guarantee)],
        "pages": [page._asdict() for page in pages],
        "answers": answers,
        "commands": COMMANDS,
        "version": fogline.__version__,
        "secret": "visits.csv",
    }
    return render_index("Hospital visits: one release, six readings", content)
