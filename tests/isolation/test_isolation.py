"""Record isolation: a hundred pairs of hostile tables on every source, and every break that was ever found."""

from pathlib import Path

import pytest

from fogline.sources.warehouse import WarehouseQuery
from fogline_research.audit_campaign.forms import SOURCES, is_available, source_named
from fogline_research.audit_campaign.forms.sources import SHORTER
from fogline_research.audit_campaign.isolation import check_isolation, try_case
from fogline_research.audit_campaign.isolation_cases import load_cases

SEED = 20
VERBS = ("release", "named releases", "profile", "profile found")
REGRESSIONS = load_cases(Path(__file__).parent / "regressions")


def servers_of(source, request):
    if not is_available(source.form):
        pytest.skip(f"{source.name} needs {', '.join(source.form.needs)}")
    name = source.form.server
    return {name: request.getfixturevalue(name)} if name else {}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_one_record_touches_no_other(source, request):
    report = check_isolation(source, source.form.pairs, SEED, servers=servers_of(source, request))
    shown = [f"{violation.case}: {violation.what}"[:2000] for violation in report.found]
    assert not report.violations, "\n".join(shown)
    # A verb reads through readers that are tried on a hundred pairs above.
    assert report.pairs >= source.form.pairs >= (SHORTER if source.state in VERBS else 100)
    assert report.read + report.refused == report.pairs, "no cell may keep a table from being read"
    assert bool(report.read) != source.form.is_refused


@pytest.mark.parametrize("name", REGRESSIONS)
def test_what_was_found_once_stays_mended(name, request):
    case = REGRESSIONS[name]
    source = source_named(case.source)
    assert not try_case(case, servers=servers_of(source, request))


def test_a_printed_query_that_ranks_all_units_together_is_found(monkeypatch):
    """The campaign sees it if a query bounds the table where it should bound each unit."""
    pytest.importorskip("duckdb")
    steps = WarehouseQuery._cut

    def torn(self, key):
        return [(name, sql.replace("PARTITION BY who ORDER BY lot", "ORDER BY lot")) for name, sql in steps(self, key)]

    monkeypatch.setattr(WarehouseQuery, "_cut", torn)
    assert check_isolation("printed query in DuckDB", 100, SEED, shrinking=False).violations > 0
