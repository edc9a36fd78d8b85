"""``fogline plan``: how well modes, clusters, branches or a density would be known, before any data are touched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from fogline.cli import parse
from fogline.cli.common import Command, Phase, console_for_people, drawable, need, print_json, writable, write
from fogline.cli.options import need_reader, query_option, reading_options, source_table
from fogline.cli.release import checked_numbers

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import ArrayLike

    from fogline._typing import JSON, FloatArray
    from fogline.datasets.simulated import Mixture
    from fogline.estimators import PrivateModalRegression, PrivateModeClustering
    from fogline.estimators.mode_fit import ModeFit
    from fogline.planning.clustering import ExpectedClusterError
    from fogline.planning.density import ExpectedDensity
    from fogline.planning.modes import ExpectedError
    from fogline.planning.regression import ExpectedBranches
    from fogline.planning.scenarios import ShapeLike
    from fogline.report.outlook import Outlook, Terms

    Planned = ModeFit | PrivateModeClustering | PrivateModalRegression
    Expected = ExpectedError | ExpectedClusterError | ExpectedBranches | ExpectedDensity

__all__ = ["STAGED", "outlook_document", "plan", "show_outlook"]

STAGED = ("bounds", "mixture", "profile")
"""As in :mod:`fogline.planning.stages`, which would load numerical libraries here."""

KIND_WORDS = {"bounds": "bounds", "mixture": "a mixture", "profile": "a profile"}

EXAMPLES = """\b
Examples:
  fogline plan --bounds 0:100 --n 5000
  fogline plan --bounds 0:100 --n 5000 --delta 1e-6
  fogline plan --bounds 0:10 --n 5000 --delta 1e-6 --shape "gaussian:3,0.8;7,0.8"
  fogline plan --bounds 0:100,0:240 --n 2000 --delta 1e-6 --shape last-years-public-sample.csv
        --columns age,minutes --epsilons 0.2,0.5,1 --picture plan.svg
  fogline plan --for clusters --bounds 0:8,0:5,0:8,0:3 --n 150 --delta 1e-5 --n-clusters 3
  fogline plan --for regression --bounds 0.5:6.5,30:110 --n 2000 --delta 1e-5 --shape branches:2,5
  fogline plan --for density --bounds age,0:60 --n 20000 --picture plan.html
  fogline plan --for profile --bounds age,0:60 --open 3 --n 20000

\b
Shapes: uniform; gaussian:MEANS,SCALE;... with one mean per column and one scale, or one scale per column,
and a weight if you like (gaussian:3,0.8@0.7;7,0.8@0.3); or a file with a public sample,
or with --query the postgres:// or sqlite:// address of a database that has one.
For regression the last pair of bounds is that of y; shapes are branches:K, branches:K,SCALE, or a file.
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.option(
    "--for",
    "kind",
    type=click.Choice(["modes", "clusters", "regression", "density", *STAGED]),
    default="modes",
    show_default=True,
    help="What would be asked for.",
)
@click.option("--bounds", metavar="LO:HI,LO:HI", help="Public range of each column; bounds and profile need none.")
@click.option("--open", "open_columns", type=int, help="Columns whose range is to be found, for bounds and profile.")
@click.option("--n", type=int, required=True, help="Number of records, as you guess it.")
@click.option(
    "--delta",
    type=float,
    help="Chance that the promise may fail; well below 1/n. Modes and densities of up to three columns need none.",
)
@click.option("--epsilons", metavar="E,E", help="Epsilons to try; by default 0.1,0.2,0.5,1,2,5.")
@click.option("--shape", help="A public guess, by default uniform or one branch; never the data. See below.")
@click.option("--columns", metavar="A,B", help="Names of the columns; of a public sample, which to take.")
@query_option
@reading_options
@click.option("--n-modes", type=int, help="Expect this many modes to be asked for.")
@click.option("--n-clusters", type=int, help="Expect this many clusters, or components, to be asked for.")
@click.option(
    "--level", type=float, default=0.05, show_default=True, help="Probability of reporting a mode that is only noise."
)
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option("--neighbours", type=click.Choice(["add-remove", "replace"]), default="add-remove", show_default=True)
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of one person.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value per column."
)
@click.option(
    "--runs",
    type=int,
    help="Simulated fits per epsilon; by default 16, 6 or 3 by dimension; without --delta 6, 2 or 1.",
)
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw it (.svg or .html).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.pass_context
def plan(ctx: click.Context, /, **options: Any) -> None:
    """Say how well modes, clusters, branches or a density would be known. Free: no private data are touched.

    Data are simulated from a public guess of their shape, with exactly the noise that a release would have. For
    clusters of more than three columns the noise itself is told; for bounds, a mixture or a profile how the stages
    divide the budget, and their noise.
    """
    as_json: bool = options["as_json"]
    if not as_json:
        need("rich")
    _refuse_idle(options)
    if options["kind"] in STAGED:
        _plan_stages(options, str(ctx.meta["fogline.command"]))
        return
    drawable(options["picture"], "--picture", (".svg", ".html", ".htm"))
    writable(options["picture"], "--picture", [Path(options["shape"] or "uniform")])
    bounds = parse.bounds_option(options["bounds"])
    checked_numbers({**options, "delta": options["delta"] or None}, bounds=bounds)
    guess = _shape(options, len(bounds))
    with Phase("simulating fits; no private data are touched", quiet=as_json):
        try:
            expected = _simulated(options, bounds, guess)
        except (ValueError, TypeError) as error:
            found = parse.refused(error)
            found.param_hint = "--epsilons" if found.param_hint == "--epsilon" else found.param_hint
            raise found from None
    command = str(ctx.meta["fogline.command"])
    from fogline.report.outlook import Terms, outlook_of, plan_cautions, risk_by_epsilon

    terms = Terms(_names(options, len(bounds)), tuple(bounds), options["delta"] or 0.0, options["neighbours"], command)
    risks = risk_by_epsilon(expected, terms)
    for words in plan_cautions(list(risks), terms.delta, options["n"]):
        click.echo(f"Beware: {words}.", err=True)
    if as_json:
        told = [{"epsilon": epsilon, **risk} for epsilon, risk in risks.items()]
        print_json({**outlook_document(expected, options, command), "risk": told})
    else:
        show_outlook(outlook_of(expected, terms))
        _show_risk(risks)
    if options["picture"] is not None:
        _draw(expected, terms, options["picture"], quiet=as_json)


def _plan_stages(options: dict[str, Any], command: str) -> None:
    """Say how the stages of a fit would divide its budget, by epsilon."""
    from fogline.planning.modes import EPSILONS
    from fogline.planning.stages import expected_stages

    declared = parse.bounds_option(options["bounds"]) if options["bounds"] else []
    kind, opened = options["kind"], options["open_columns"] or 0
    chosen = {name: options[name] for name in ("neighbours", "max_contributions")}
    if kind == "profile":
        chosen["open_columns"] = opened
    if kind == "mixture":
        chosen["n_components"] = options["n_clusters"]
    try:
        plans = [
            expected_stages(
                kind,
                options["n"],
                epsilon=epsilon,
                delta=options["delta"] or 0.0,
                columns=len(declared) + opened,
                **chosen,
            )
            for epsilon in parse.numbers_option(options["epsilons"], "--epsilons") or EPSILONS
        ]
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None
    if options["as_json"]:
        rows = [{"epsilon": plan.epsilon, **row} for plan in plans for row in plan.table()]
        shown = {"command": command, "n": options["n"], "for": kind, "delta": options["delta"] or 0.0}
        print_json({"format": "fogline-plan-stages-1", **shown, "rows": rows})
        return
    title = f"How the stages of {KIND_WORDS[kind]} of about {options['n']} records divide its budget"
    _show_table(
        f"{title}{', per column' if kind == 'bounds' else ''}",
        ["epsilon", "stage", "share", "noise, in records"],
        [
            [
                f"{plan.epsilon:g}",
                stage.name,
                str(stage.share),
                "-" if math.isnan(stage.noise) else f"{stage.noise:,.3g}",
            ]
            for plan in plans
            for stage in plan.stages
        ],
    )


def _show_risk(risks: Mapping[float, Mapping[str, Any]]) -> None:
    """Print what each epsilon means for a person."""
    from fogline.report.outlook import risk_cells

    _show_table("A guess about a person after the release, at most", *risk_cells(risks))


def _show_table(title: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console_for_people().print(table)


def _names(options: dict[str, Any], d: int) -> tuple[str, ...]:
    """Names of the columns: those that are given, else those of named ranges; any other is x1, x2 and so on."""
    named = parse.columns_option(options["columns"]) or []
    if len(named) == d:
        return tuple(named)
    ranges = [part.strip() for part in (options["bounds"] or "").split(",")]
    alone = [name if name.isidentifier() and ranges.count(name) == 1 else None for name in ranges]
    return tuple((alone[j] if len(alone) == d else None) or f"x{j + 1}" for j in range(d))


def _simulated(options: dict[str, Any], bounds: list[tuple[float, float]], guess: ShapeLike) -> Expected:
    """What the planned fits or releases would show."""
    if options["kind"] != "density":
        return _expected(_estimator(options, bounds), options, guess)
    from fogline.planning.density import expected_density_error

    return expected_density_error(
        bounds,
        options["n"],
        shape=guess,
        epsilons=parse.numbers_option(options["epsilons"], "--epsilons"),
        delta=options["delta"] or 0.0,
        steps=_steps(options, len(bounds)),
        columns=_names(options, len(bounds)),
        neighbours=options["neighbours"],
        max_contributions=options["max_contributions"],
        runs=options["runs"],
    )


def _steps(options: dict[str, Any], d: int) -> float | list[float | None] | None:
    steps = parse.steps_option(options["steps"])
    return steps * d if isinstance(steps, list) and len(steps) == 1 else steps


def _refuse_idle(options: dict[str, Any]) -> None:
    """An option that would do nothing is a mistake."""
    kind = options["kind"]
    if options["delta"] is None and kind not in ("modes", "density", "profile"):
        raise click.UsageError(f"Missing option '--delta': {KIND_WORDS.get(kind, kind)} cannot be had without one.")
    if options["bounds"] is None and (kind not in ("bounds", "profile") or not options["open_columns"]):
        raise click.UsageError("Missing option '--open'." if kind == "bounds" else "Missing option '--bounds'.")
    staged = kind in STAGED
    idle = {
        "open_columns": kind not in ("bounds", "profile"),
        "bounds": kind == "bounds",
        **dict.fromkeys(("shape", "columns", "query", "picture", "steps"), staged),
        "n_modes": kind != "modes",
        "runs": kind not in ("modes", "density"),
        "n_clusters": kind not in ("clusters", "mixture"),
    }
    for name, nothing in idle.items():
        if nothing and options[name] is not None:
            hint = "--" + name.replace("_", "-")
            raise click.BadParameter(f"says nothing about {kind}", param_hint=hint)


def _estimator(options: dict[str, Any], bounds: list[tuple[float, float]]) -> Planned:
    """Give the estimator of which a fit is planned."""
    steps = _steps(options, len(bounds))
    chosen = {name: options[name] for name in ("delta", "level", "neighbours", "max_contributions")}
    chosen |= {"bandwidth": parse.bandwidth_option(options["bandwidth"]), "steps": steps}
    if options["kind"] == "modes":
        from fogline.estimators.mode_fit import ModeFit

        return ModeFit(bounds=bounds, n_modes=options["n_modes"], **chosen)
    if options["kind"] == "clusters":
        from fogline.estimators import PrivateModeClustering

        return PrivateModeClustering(bounds=bounds, n_clusters=options["n_clusters"], **chosen)
    if len(bounds) < 2:
        raise click.BadParameter("expected a pair for each x and one for y", param_hint="--bounds")
    from fogline.estimators import PrivateModalRegression

    return PrivateModalRegression(x_bounds=bounds[:-1], y_bounds=bounds[-1], **chosen)


def _expected(estimator: Planned, options: dict[str, Any], guess: ShapeLike) -> Expected:
    """What fits would show; clusters of up to three columns are modes."""
    from fogline.estimators.mode_fit import ModeFit

    epsilons = parse.numbers_option(options["epsilons"], "--epsilons")
    if isinstance(estimator, ModeFit):
        from fogline.planning.leaf_modes import expected_modes

        return expected_modes(estimator, options["n"], shape=guess, epsilons=epsilons, runs=options["runs"])
    from fogline.estimators import PrivateModeClustering

    if isinstance(estimator, PrivateModeClustering):
        expected = estimator.expected_error(options["n"], shape=guess, epsilons=epsilons)
        return expected.modes or expected
    return estimator.expected_error(options["n"], shape=cast("ArrayLike", guess), epsilons=epsilons)


def _draw(expected: Expected, terms: Terms, path: Path, *, quiet: bool) -> None:
    """Write the page of a plan, or the chart of modes alone."""
    from fogline.planning.modes import ExpectedError
    from fogline.report.ledger import write_picture
    from fogline.report.outlook import write_outlook
    from fogline.report.plan import outlook_picture

    if path.suffix.lower() in (".html", ".htm"):
        need("jinja2")
        write(lambda: write_outlook(expected, terms, path), "--picture")
    elif isinstance(expected, ExpectedError):
        drawing = outlook_picture(expected)
        write(lambda: write_picture(drawing, path, title="Before spending"), "--picture")
    else:
        raise click.BadParameter("a chart by itself is drawn of modes; name a page (.html)", param_hint="--picture")
    if not quiet:
        click.echo(f"picture: {path}")


def _shape(options: dict[str, Any], d: int) -> ShapeLike:
    """Return the guess that the words of --shape stand for."""
    text: str | None = options["shape"]
    branches = options["kind"] == "regression"
    if options["query"] is not None and "://" not in (text or ""):
        raise click.BadParameter("is for a public sample in a database, named by --shape", param_hint="--query")
    if text is None:
        return 1 if branches else "uniform"
    if branches and text.startswith("branches:"):
        return _branches(text.removeprefix("branches:"))
    if not branches and text == "uniform":
        return text
    if text.startswith("gaussian:") and options["kind"] == "clusters" and d > 3:
        raise click.BadParameter(
            "expected uniform or a file for clusters of more than three columns", param_hint="--shape"
        )
    if not branches and text.startswith("gaussian:"):
        return _mixture(text.removeprefix("gaussian:"), d)
    if "://" not in text and not Path(text).is_file():
        words = "branches:number,scale" if branches else "uniform, gaussian:mean,scale;..."
        raise click.BadParameter(f"expected {words} or a file, and there is no file {text!r}", param_hint="--shape")
    return _public_sample(options, d)


def _branches(text: str) -> int | tuple[int, float]:
    numbers = parse.numbers_option(text, "--shape") or []
    if len(numbers) not in (1, 2) or not numbers[0].is_integer():
        raise click.BadParameter(
            f"expected a number of branches, or that and a scale, got {text!r}", param_hint="--shape"
        )
    return int(numbers[0]) if len(numbers) == 1 else (int(numbers[0]), numbers[1])


def _mixture(text: str, d: int) -> Mixture:
    from fogline.datasets.simulated import Mixture

    weights, centers, scales = [], [], []
    for part in text.split(";"):
        body, _, weight = part.partition("@")
        numbers = parse.numbers_option(body, "--shape") or []
        if len(numbers) not in (d + 1, 2 * d):
            raise click.BadParameter(
                f"expected {d} mean{'' if d == 1 else 's'} and one scale, or one per column, got {part.strip()!r}",
                param_hint="--shape",
            )
        given = parse.numbers_option(weight, "--shape") if weight else [1.0]
        weights.append((given or [1.0])[0])
        centers.append(numbers[:d])
        # One scale serves all columns.
        scales.append(numbers[d:] * d if len(numbers) == d + 1 else numbers[d:])
    # Weights are relative, so that nobody has to make them add up to one.
    total = sum(weights)
    try:
        return Mixture.of([weight / total for weight in weights], centers, scales)
    except (ValueError, ZeroDivisionError) as error:
        raise click.BadParameter(str(error), param_hint="--shape") from None


def _public_sample(options: dict[str, Any], d: int) -> FloatArray:
    """Read a public sample."""
    from fogline.sources.tables import ReadFailed, read_public

    need_reader(options["shape"])
    try:
        table = source_table({"file": options["shape"], **options}, parse.columns_option(options["columns"]))
        if table.width != d:
            raise ValueError(f"columns: --bounds has {d} pairs, but the sample has {table.width} columns: name them")
        sample = read_public(table)
    except ReadFailed:
        raise click.BadParameter("cannot be read as a table", param_hint="--shape") from None
    except (ValueError, TypeError, OSError) as error:
        found = parse.refused(error)
        found.param_hint = "--shape" if found.param_hint == "FILE" else found.param_hint
        raise found from None
    return sample


def outlook_document(expected: Expected, options: dict[str, Any], command: str) -> dict[str, Any]:
    """Give a plan for machines."""
    from fogline.planning.modes import ExpectedError

    if isinstance(expected, ExpectedError):
        return _modes_document(expected, command)
    if options["kind"] == "density":
        return _density_document(cast("ExpectedDensity", expected), command)
    chosen = {name: options[name] for name in ("delta", "neighbours", "level")}
    rows = [{name: _plain(value) for name, value in vars(row).items()} for row in expected.rows]
    named = "n_clusters" if options["kind"] == "clusters" else "shape"
    return {
        "format": f"fogline-plan-{options['kind']}-1",
        "command": command,
        "n": expected.n,
        named: getattr(expected, named),
        **chosen,
        "rows": rows,
        **({"shares": _share_document(expected)} if options["kind"] == "clusters" else {}),
    }


def _share_document(expected: Expected) -> dict[str, str]:
    """Give the shares of the stages, as exact fractions."""
    return {name: str(share) for name, share in cast("ExpectedClusterError", expected).shares.items()}


def show_outlook(outlook: Outlook) -> None:
    """Print a plan for people."""
    _show_table(outlook.title, outlook.headings, outlook.rows)
    console_for_people().print(outlook.note)


def _plain(value: FloatArray | float | str | Mapping[str, Fraction]) -> JSON:
    """Numbers that JSON has; an error of nothing is none, and shares are exact fractions."""
    if isinstance(value, Mapping):
        return {name: str(share) for name, share in value.items()}
    if isinstance(value, float | int | str):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    numbers: JSON = value.tolist()
    return numbers


def _modes_document(expected: ExpectedError, command: str) -> dict[str, Any]:
    return {
        "format": "fogline-plan-1",
        "command": command,
        "n": expected.n,
        "shape": expected.shape,
        "delta": expected.delta,
        "neighbours": expected.neighbours,
        "level": expected.level,
        "runs": expected.runs,
        "modes": expected.modes.tolist(),
        "rows": expected.table(),
    }


def _density_document(expected: ExpectedDensity, command: str) -> dict[str, Any]:
    return {
        "format": "fogline-plan-density-1",
        "command": command,
        "n": expected.n,
        "shape": expected.shape,
        "delta": expected.delta,
        "neighbours": expected.neighbours,
        "runs": expected.runs,
        "rows": expected.table(),
    }
