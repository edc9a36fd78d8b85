"""A query that fails says nothing, with a ledger or without."""

import pickle
import traceback

import numpy as np
import pytest

from fogline import PrivateModalRegression, PrivateModeClustering, PrivateModes, private_pca
from fogline.mechanisms import randomness as entropy
from fogline.mechanisms.errors import ReleaseFailed, sealed
from fogline.queries import random_feature_sums as random_features
from fogline.releases import density_sketch

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
CONSTANT = "the release failed after its noise was drawn; count its budget as spent"
ROWS = np.random.default_rng(0).uniform(0, 10, (5000, 6))


def failing(error):
    def act(*args, **options):
        raise error

    return act


def failing_on_records(error):
    """Random features see no rows once before a source is read; only records are an error."""
    real = random_features.coordinates

    def act(rows, spec):
        if len(rows):
            raise error
        return real(rows, spec)

    return act


@pytest.mark.parametrize("error", [ValueError("12.5"), MemoryError("12.5"), SystemExit("12.5"), KeyError(12.5)])
def test_every_failure_is_the_same_constant(error):
    with pytest.raises(ReleaseFailed) as caught:
        sealed(failing(error))()
    assert str(caught.value) == CONSTANT
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    names = [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert "act" not in names
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (ReleaseFailed, CONSTANT)


def test_an_interrupt_stays_one_without_its_history():
    with pytest.raises(KeyboardInterrupt) as caught:
        sealed(failing(KeyboardInterrupt("12.5")))()
    assert caught.value.args == ()
    assert caught.value.__context__ is None


def test_what_does_not_fail_is_passed_on():
    assert sealed(lambda: 7)() == 7


def held(error: BaseException) -> list[str]:
    """Names in frames of fogline's code through which a traceback leads to many numbers."""
    found = []
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "fogline" in frame.f_code.co_filename:
                named = frame.f_locals.items()
                found += [name for name, value in named if isinstance(value, np.ndarray) and value.size >= len(ROWS)]
        error = error.__context__
    return found


def fit_modes(X):
    PrivateModes(**BUDGET, bounds=(0, 10)).fit(X)


def fit_grid(X):
    PrivateModes(**BUDGET, bounds=(0, 10), bandwidth=0.1).fit(X[:, :1])


def fit_regression(X):
    PrivateModalRegression(**BUDGET, x_bounds=(0, 10), y_bounds=(0, 10), bandwidth=0.2).fit(X[:, :1], X[:, 1])


def fit_clusters(X):
    PrivateModeClustering(**BUDGET, bounds=(0, 10), n_clusters=3).fit(X)


def fit_pca(X):
    private_pca(X, **BUDGET, bounds=(0, 10))


@pytest.mark.parametrize("fit", [fit_modes, fit_grid, fit_regression, fit_clusters, fit_pca])
def test_without_a_ledger_a_failing_fit_leads_nowhere(fit, monkeypatch):
    broken = failing(FloatingPointError("12.5"))
    monkeypatch.setattr(random_features, "coordinates", failing_on_records(FloatingPointError("12.5")))
    monkeypatch.setattr(density_sketch, "lattice_sums", broken)
    monkeypatch.setattr("fogline.queries.moments.ExactSum.add", broken)
    with pytest.raises(ReleaseFailed) as caught:
        fit(ROWS)
    assert str(caught.value) == CONSTANT
    assert caught.value.__context__ is None
    assert not held(caught.value)


def test_a_traceback_that_leads_to_records_would_be_found(monkeypatch):
    monkeypatch.setattr(random_features, "coordinates", failing_on_records(FloatingPointError("12.5")))
    for module in (density_sketch, entropy):
        monkeypatch.setattr(module, "sealed", lambda query: query)
    with pytest.raises(FloatingPointError) as caught:
        fit_modes(ROWS)
    assert held(caught.value)


@pytest.mark.parametrize(("fit", "message"), [(fit_modes, "real numbers"), (fit_pca, "real numbers")])
def test_an_error_of_the_schema_is_still_named(fit, message):
    with pytest.raises(TypeError, match=message):
        fit(np.full((5, 6), "Ann"))
