"""scikit-learn's estimator checks, and the one list of those that a private estimator cannot or need not pass."""

import functools

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

EXPECTED_FAILURES = {
    "check_dtype_object": "an array of objects declares no numbers; judging its cells would leak them",
    "check_estimators_empty_data_messages": "no rows is never an error: that there are none is secret",
    "check_fit1d": "one column may be given flat, as all sources of records allow",
}
"""For every private estimator."""

NOT_PICKLED = {"check_estimators_pickle": "a fitted sampler holds a secret, which a pickle would carry away"}
"""For estimators that keep a secret after ``fit``."""

UNDECIDED = {"check_fit_idempotent": "each fit draws its noise anew: two need not agree, and may agree by chance"}
"""Neither a pass nor a failure would say anything, so these do not run."""


def scikit_learn_checks(estimator, more=None):
    """Parametrise ``test(estimator, check)`` with all checks of an estimator; those of `more` fail as well."""
    failures = EXPECTED_FAILURES | (more or {})
    decorate = parametrize_with_checks([estimator], expected_failed_checks=lambda _: failures)

    def decorated(test):
        @functools.wraps(test)
        def run(estimator, check, **fixtures):
            if check.func.__name__ in UNDECIDED:
                pytest.skip(UNDECIDED[check.func.__name__])
            test(estimator, check, **fixtures)

        return decorate(run)

    return decorated
