"""``fogline audit``: check the claim of an estimator on canaries, with the options you would use."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, Phase, need, print_json
from fogline.cli.release import checked_numbers

if TYPE_CHECKING:
    from fogline.audit import AttackReport, Pair, ReplayReport

__all__ = ["audit"]

ESTIMATORS = ("PrivateModes",)

EXAMPLES = """\b
Examples:
  fogline audit PrivateModes --bounds 0:10 --epsilon 1 --delta 1e-5
  fogline audit PrivateModes --bounds 0:10 --epsilon 1 --delta 1e-5 --neighbours replace --attack

\b
Exit codes: 0 the claim stands; 1 it does not; 2 wrong usage.
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("estimator", type=click.Choice(ESTIMATORS), metavar="ESTIMATOR")
@click.option("--bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each column.")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of the fit that is audited.")
@click.option("--delta", type=float, required=True, help="Its delta.")
@click.option("--pairs", type=click.IntRange(min=1), default=40, show_default=True, help="Pairs of neighbours.")
@click.option("--neighbours", type=click.Choice(["add-remove", "replace"]), default="add-remove", show_default=True)
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of one person.")
@click.option("--n-modes", type=int, help="As for fogline modes.")
@click.option("--attack", "attacked", is_flag=True, help="Also try to tell neighbours apart by their releases.")
@click.option("--runs", type=click.IntRange(min=100), default=20_000, show_default=True, help="Releases attacked.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the pairs and the noise.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.pass_context
def audit(ctx: click.Context, /, estimator: str, as_json: bool, **options: Any) -> None:
    """Audit ESTIMATOR: replay its fits on pairs of neighbours; nothing but noise may tell them apart.

    A fit on D is recorded, then repeated on a neighbour D' with the same noisy answers. All that can be seen must
    be the same to the last bit, and the exact sums must differ by no more than the noise was made for. ESTIMATOR is
    PrivateModes, the only one so far.
    """
    if not as_json:
        need("rich")
    bounds = parse.bounds_option(options["bounds"])
    checked_numbers(options, bounds=bounds)
    try:
        replayed = _replayed(bounds, options, quiet=as_json or not sys.stderr.isatty())
        found = None
        if options["attacked"]:
            with Phase("attacking releases", quiet=as_json):
                found = _attacked(bounds, options)
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None
    passed = replayed.passed and not (found is not None and found.broken)
    if as_json:
        print_json(_document(str(ctx.meta["fogline.command"]), estimator, replayed, found, passed))
    else:
        _show(estimator, replayed, found, passed)
    if not passed:
        ctx.exit(1)


def _replayed(bounds: list[tuple[float, float]], options: dict[str, Any], *, quiet: bool) -> ReplayReport:
    from fogline import PrivateModes
    from fogline.audit import canary_pairs, random_pairs, replay
    from fogline.cli.release import progress_bar

    names = ("epsilon", "delta", "neighbours", "max_contributions", "n_modes")
    audited = PrivateModes(bounds=bounds, **{name: options[name] for name in names})
    audited.cost()  # refuse a bad budget before the work begins
    setting = {name: options[name] for name in ("neighbours", "seed", "max_contributions")}
    wanted: int = options["pairs"]
    canaries = canary_pairs(bounds, **setting)
    drawn = random_pairs(bounds, pairs=max(0, wanted - len(canaries)), **setting)
    # Canaries first: they are made to show what random pairs rarely would.
    pairs = itertools.islice(itertools.chain(canaries, drawn), wanted)
    with progress_bar(quiet=quiet) as progress:
        return replay(audited, _counted(pairs, wanted, progress), seed=options["seed"])


def _counted(pairs: Iterable[Pair], wanted: int, progress: Callable[[int, int, str], None] | None) -> Iterator[Pair]:
    """Hand the pairs over one by one, and say how many are done."""
    for done, pair in enumerate(pairs):
        if progress is not None:
            progress(done, wanted, "replaying fits on pairs of neighbours")
        yield pair


def _attacked(bounds: list[tuple[float, float]], options: dict[str, Any]) -> AttackReport:
    """Attack the sketch of the first column by its likelihood ratio: there is no better attack on it."""
    import numpy as np

    from fogline.audit import sketch_attack
    from fogline.density.spec import SketchSpec

    low, high = bounds[0]
    # All in one place: whoever is elsewhere stands out as far as the bounds allow.
    crowd = np.full((100, 1), low + 0.4 * (high - low))
    before = crowd if options["neighbours"] == "add-remove" else np.append(crowd, [[low]], axis=0)
    return sketch_attack(
        SketchSpec.plan(bounds[:1], [0.05]),
        before,
        np.append(crowd, [[high]], axis=0),
        epsilon=options["epsilon"],
        delta=options["delta"],
        neighbours=options["neighbours"],
        runs=options["runs"],
    )


# -- what is printed -----------------------------------------------------------------------------------------


def _verdict(estimator: str, replayed: ReplayReport, passed: bool) -> str:
    if passed:
        return (
            f"Passed: on {len(replayed.pairs)} pairs of neighbours, {estimator} let out nothing but its noisy sums, "
            f"and these differed by at most {replayed.largest_ratio:.4f} of what their noise is made for."
        )
    return f"FAILED: the claim of {estimator} does not stand; {len(replayed.failures)} findings in the replay."


def _document(
    command: str, estimator: str, replayed: ReplayReport, found: AttackReport | None, passed: bool
) -> dict[str, Any]:
    from dataclasses import asdict

    attacked = None
    if found is not None:
        attacked = {
            "epsilon": found.epsilon,
            "delta": found.delta,
            "mu": found.mu,
            "epsilon_lower": found.epsilon_lower,
            "mu_lower": found.mu_lower,
            "confidence": found.confidence,
            "broken": found.broken,
            "verdict": found.verdict,
        }
    return {
        "format": "fogline-audit-1",
        "command": command,
        "estimator": estimator,
        "passed": passed,
        "verdict": _verdict(estimator, replayed, passed),
        "largest_ratio": replayed.largest_ratio,
        "pairs": [asdict(pair) for pair in replayed.pairs],
        "attack": attacked,
    }


def _show(estimator: str, replayed: ReplayReport, found: AttackReport | None, passed: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.common import console_for_people

    console = console_for_people()
    table = Table(title=Text(f"Replay of {estimator}"), title_justify="left")
    table.add_column("pair of neighbours")
    table.add_column("distance / sensitivity", justify="right")
    table.add_column("found")
    for pair in replayed.pairs:
        told = "; ".join(pair.failures) or "the same"
        table.add_row(Text(pair.name), f"{pair.ratio:.4f}", Text(told))
    console.print(table)
    if found is not None:
        console.print(f"Likelihood-ratio attack on the first column: {found.verdict}")
    console.print(_verdict(estimator, replayed, passed))
