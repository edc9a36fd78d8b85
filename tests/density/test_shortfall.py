"""What is said where nothing stands above the fog."""

import pytest

from fogline.density.shortfall import NOTHING, Shortfall, separation_words, two_digits, widths_in_words


@pytest.mark.parametrize(
    ("share", "advice"),
    [
        (0.51, "about 3.0 times the epsilon (or the records) would show it if it is real"),
        (0.5, "about 9.0 times the records would show it if it is real, more epsilon alone would not"),
    ],
)
def test_who_lacks_records_is_not_advised_to_spend(share, advice):
    assert Shortfall("peak", 3.0, share).advice == advice
    assert Shortfall("peak", 3.0, share).message().endswith(advice)


def test_a_message_names_the_finding_its_height_and_its_noise():
    said = Shortfall("peak, at bandwidth 0.3,", 4.0, 0.25).message(noise="the noise there")
    assert said.startswith(f"{NOTHING}: the clearest peak, at bandwidth 0.3, has 25% of the prominence needed; ")
    assert "; 25% of the noise there is privacy noise; " in said


def test_what_was_seen_and_what_helps_can_be_told_by_who_looked():
    said = Shortfall("peak", 0.5, 1.0).message(seen="cannot be told from a slope", advice="stop")
    assert said == f"{NOTHING}: the clearest peak cannot be told from a slope; 100% of the noise is privacy noise; stop"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((None, 0, 0), "no cluster stands above the noise"),
        ((None, 4, 1), ""),
        ((3, 3, 3), ""),
        ((3, 1, 1), "only 1 of 3 clusters stand above the noise"),
        ((3, 3, 0), "of 3 clusters, none can be told apart at level 0.1"),
    ],
)
def test_clusters_are_missed_only_if_they_were_asked_for(asked, said):
    assert separation_words(*asked, 0.1) == said


@pytest.mark.parametrize(
    ("number", "words"), [(9.96, "10"), (0.0123, "0.012"), (99.6, "100"), (12_345.0, "12000"), (2.5e10, "2.5e+10")]
)
def test_two_digits(number, words):
    assert two_digits(number) == words


def test_many_bandwidths_are_named_briefly():
    assert widths_in_words([0.1, 0.2, 0.3, 0.4]) == "0.1, 0.2, 0.3, 0.4"
    assert widths_in_words([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) == "0.1, 0.2, 0.3, ..., 0.6"
