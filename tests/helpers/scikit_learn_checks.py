"""scikit-learn's estimator checks, and the one list of those that a private estimator cannot pass."""

import functools

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fogline.testing import seeded_noise

EXPECTED_FAILURES = {
    "check_dtype_object": "an array of objects declares no numbers; judging its cells would leak them",
    "check_estimators_empty_data_messages": "no rows is never an error: that there are none is secret",
    "check_fit1d": "one column may be given flat, as all sources of records allow",
}
"""For every private estimator."""

NOT_PICKLED = {"check_estimators_pickle": "a fitted sampler holds a secret, which a pickle would carry away"}
"""For estimators that keep a secret after ``fit``."""

MISSING_RESPONSE = {"check_supervised_y_no_nan": "a record without a response is no error: that there is one is secret"}
"""For estimators that take y."""


def scikit_learn_checks(estimator, more=None):
    """Parametrise ``test(estimator, check)`` with all checks of an estimator; those of `more` fail as well.

    Every fit has the same noise, so that checks which compare two fits compare what was done with the records.
    """
    failures = EXPECTED_FAILURES | (more or {})
    decorate = parametrize_with_checks([estimator], expected_failed_checks=lambda _: failures)
    fit = type(estimator).fit

    @functools.wraps(fit)
    def seeded_fit(self, *given, **named):
        with seeded_noise(0):
            return fit(self, *given, **named)

    def decorated(test):
        @functools.wraps(test)
        def run(estimator, check, **fixtures):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(type(estimator), "fit", seeded_fit)
                test(estimator, check, **fixtures)

        return decorate(run)

    return decorated
