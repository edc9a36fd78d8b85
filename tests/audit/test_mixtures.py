"""The audit's lines on mixtures and on the parts that locate."""

import pytest

from fogline_research.audit_campaign import estimators as mixtures
from fogline_research.audit_campaign.estimators import Answer, check_mixture_replay

QUICK = ("one_cluster", "private_spherical_gaussian", "private_pca")


def test_whole_results_are_replayed(monkeypatch):
    chosen = tuple(reader for reader in mixtures._MIXTURE_READERS if reader[0] in QUICK)
    monkeypatch.setattr(mixtures, "_MIXTURE_READERS", chosen)
    lines = list(check_mixture_replay(1, True))
    assert [line.check for line in lines] == [
        "one_cluster, d = 2, add-remove: replay",
        "private_spherical_gaussian, d = 5, add-remove: replay",
        "private_spherical_gaussian, d = 5, replace: replay",
        "private_pca, d = 5, add-remove: replay",
        "private_pca, d = 5, replace: replay",
    ]
    for line in lines:
        assert line.passed, line.found


def test_a_result_that_tells_whether_there_was_a_record_fails(monkeypatch):
    reader = mixtures._located(mixtures.private_spherical_gaussian)

    def leaky(box, relation):
        release = reader(box, relation)

        def told(data):
            answer = release(data)
            return Answer((answer.found, len(data) > 0), answer.guarantee)

        return told

    monkeypatch.setattr(mixtures, "_MIXTURE_READERS", (("leaky", 2, ("add-remove",), leaky),))
    (line,) = check_mixture_replay(1, True)
    assert not line.passed
    assert "empty and one record" in line.found


@pytest.mark.parametrize("method", ["sketch", "recursive", "spherical", "sample-aggregate"])
def test_every_method_is_among_the_readers(method):
    assert any(name.endswith(method) for name, *_ in mixtures._MIXTURE_READERS)
