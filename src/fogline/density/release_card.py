"""What a release is, for people who were not there: its columns, its promise, its entry in a public registry.

Everything is read from released values and public parameters. The card stands in every ``.fog`` file, and
``fogline card`` prints it for an ethics board.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fogline.accounting.risk import percent_up, risk_table

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["card_of", "card_text", "column_names", "registry_entry"]

FORMAT = "fogline-card-1"


def column_names(density: PrivateDensity) -> tuple[str, ...]:
    """Names of the columns; numbered where the source had none."""
    return density.columns or tuple(f"column {k + 1}" for k in range(density.spec.d))


def card_of(density: PrivateDensity, *, date: str | None = None) -> dict[str, Any]:
    """Return what there is to say of a release, as values that JSON has.

    Parameters
    ----------
    density : PrivateDensity
    date : str, optional
        Of publication; nothing in a release knows it.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 60)], features="leaves").update([[3.0]] * 500).release(epsilon=1.0)
    >>> card = card_of(density)
    >>> card["columns"][0]["high"], card["registry"]["privacy_loss"]["epsilon"]
    (60.0, 1.0)
    """
    units = density.units or ("",) * density.spec.d
    columns = [
        {"name": name, "unit": unit, "low": float(low), "high": float(high), "step": float(step) or None}
        for name, unit, (low, high), step in zip(
            column_names(density), units, density.spec.bounds, density.spec.steps, strict=True
        )
    ]
    guarantee = density.guarantee
    return {
        "format": FORMAT,
        "columns": columns,
        "records": {"value": density.count, "standard_error": density.count_sd},
        "released": _released(density),
        "guarantee": {**guarantee.to_dict(), "text": str(guarantee), "explained": guarantee.explain()},
        "risk": risk_table(guarantee),
        "receipt": density.receipt,
        "registry": registry_entry(density, date=date),
    }


def _released(density: PrivateDensity) -> str:
    """What was published, in words."""
    if density.leaves is not None:
        pilot, counts = density.leaves.stages
        if len(counts) == density.leaves.spec.n_leaves and len(pilot) == 1:  # one stage, on a fixed partition
            return (
                f"{len(counts)} noisy counts of records in a fixed public grid; the noise is {counts.noise.kind} of "
                f"standard deviation {counts.noise.scale:.3g} records"
            )
        return (
            f"{len(pilot) + len(counts)} noisy counts of records: {len(pilot)} in a coarse public grid, {len(counts)} "
            f"in cells chosen from these; the noise is discrete {counts.noise.kind.capitalize()} of scale "
            f"{counts.noise.scale:.3g} records"
        )
    size = density.spec.n_coefficients
    return f"{size} noisy Fourier sums of records; the noise is discrete Gaussian of scale {density.noise_scale:.3g}"


def registry_entry(density: PrivateDensity, *, date: str | None = None) -> dict[str, Any]:
    """Return an entry for a public registry of deployments of differential privacy.

    The fields follow the questions that such registries ask: what is promised to whom, in which model, by which
    mechanism, how it is composed. Whoever publishes adds who they are and what the release is for.

    Parameters
    ----------
    density : PrivateDensity
    date : str, optional
        Of publication.
    """
    guarantee = density.guarantee
    bound = "enforced" if guarantee.enforced else "declared, not enforced"
    most = guarantee.max_contributions
    return {
        "deployment": {
            "name": f"Density of {', '.join(column_names(density))}",
            "data_product_type": "density estimate, released once and open to any number of questions",
            "publication_date": date,
        },
        "dp_flavor": {
            "name": "pure differential privacy" if guarantee.delta == 0 else "approximate differential privacy",
            "neighbour_relation": guarantee.neighbours,
            "certified": guarantee.certified,
            "reason": guarantee.reason or None,
        },
        "privacy_loss": {
            "unit_of_privacy": guarantee.unit,
            "unit_of_privacy_description": f"at most {most} record{'' if most == 1 else 's'} of each, {bound}",
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "rho": guarantee.rho,
        },
        "model": {"name": "central", "interactive": False},
        "accounting": {
            "composition": "within the release all stages are added up; other releases of the same data add to it",
            "post_processing": "every reading of the release",
            "ledger_entry": None if density.receipt is None else density.receipt.get("commit"),
        },
        "implementation": {"software": "fogline", "mechanism": guarantee.mechanism, "proof": guarantee.proof},
    }


def _risk_lines(risk: dict[str, Any]) -> list[str]:
    """What the release means for a person, as a table: every number is an upper bound."""
    lines = ["The risk to a person, at most, from someone who knows all else:"]
    for each in risk["guesses"]:
        lines.append(f"  a guess that is right with {percent_up(each['before'])}: {percent_up(each['content'])} after")
        if each["presence"] is not None:
            told = f"a test of presence with {percent_up(each['before'])} false alarms: finds"
            lines.append(f"  {told} {percent_up(each['presence'])}")
    if risk["membership_advantage"] is not None:
        lines.append(f"  membership advantage of any such test: {percent_up(risk['membership_advantage'])}")
    for each in risk["more_records"][1:]:
        told = f"a guess that is right with 10%, about {each['who']}"
        lines.append(f"  {told}: {percent_up(each['content'])} after")
    return lines


def card_text(card: dict[str, Any]) -> str:
    """Return a card in plain words, one paragraph per question that an ethics board asks.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 60)], features="leaves").update([[3.0]] * 500).release(epsilon=1.0)
    >>> print(card_text(card_of(density)).splitlines()[0])
    What this is: the shape of column 1, released under differential privacy.
    """
    names = ", ".join(column["name"] for column in card["columns"])
    lines = [f"What this is: the shape of {names}, released under differential privacy.", ""]
    lines += ["Columns, with public bounds (records outside them contributed nothing):"]
    for column in card["columns"]:
        unit = f" {column['unit']}" if column["unit"] else ""
        step = "" if column["step"] is None else f", in steps of {column['step']:g}"
        lines += [f"  {column['name']}: {column['low']:g} to {column['high']:g}{unit}{step}"]
    records, guarantee = card["records"], card["guarantee"]
    lines += [
        "",
        f"Records: about {records['value']:.0f} (noise of standard deviation {records['standard_error']:.2g}).",
    ]
    lines += ["", f"What was published: {card['released']}. No record, and no exact count, is in it."]
    lines += ["", f"What is promised: {guarantee['explained']}", "", f"In one sentence: {guarantee['text']}"]
    lines += ["", *_risk_lines(card["risk"])]
    receipt = card["receipt"]
    if receipt is not None:
        where = f"entry {receipt['commit']}, data set {receipt['dataset']!r}, version {receipt['version']!r}"
        lines += ["", f"Who paid: a ledger of the budget, {where}."]
    else:
        lines += [
            "",
            "Who paid: no ledger. Whoever releases the same data again must add up the budgets by themselves.",
        ]
    if card["registry"]["deployment"]["publication_date"]:
        lines += ["", f"Published: {card['registry']['deployment']['publication_date']}."]
    return "\n".join(lines)
