"""The long audit of draws, in its short form: what is certified stands, what is published falls."""

from fogline_research.audit_campaign.estimators import check_draws, check_published_draws


def test_certified_draws_stand():
    lines = list(check_draws(1, True))
    assert len(lines) == 4
    assert all(line.passed for line in lines), lines


def test_published_draws_fall():
    lines = list(check_published_draws(1, True))
    assert [line.section for line in lines] == ["published"] * 2
    assert all(line.passed for line in lines), lines
