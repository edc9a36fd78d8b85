"""Settings of the program that calls (numpy's errors, filters of warnings) never meet a record."""

import threading
import warnings

import numpy as np
import pytest

from fogline import (
    DensitySketch,
    IntegralSampler,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
    one_cluster,
    private_bounds,
    private_gaussian,
    private_pca,
    private_spherical_gaussian,
    private_strata,
    terrific_ball,
)
from fogline._validation import contained, quiet
from fogline.ledger import BudgetExceeded, LedgerRefused
from fogline.mechanisms.errors import PUBLIC_ERRORS, ReleaseFailed
from fogline.sources.registry import table
from fogline.testing import seeded_noise
from fogline_research.baselines import DPGAN, BernsteinDensity, dp_em, noisy_histogram_modes

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
BOX = [(-10.0, 10.0)] * 2
NORMAL = {"mu": (-5.0, 5.0), "sigma": (0.5, 3.0)}
ODD = np.array([[1e-308, 5e-324], [-1e-308, 1e308], [-0.0, 1e-160], [1e200, 1e-200], [np.nan, np.inf], [3.0, 3.0]])
SIGNALLING = np.array([0x7FF4000000000000, 0xFFF4000000000000], dtype=np.uint64).view(np.float64)[:, None]
X = np.vstack([np.repeat(ODD, 20, axis=0), np.hstack([SIGNALLING, SIGNALLING])])

RELEASES = {
    "modes": lambda X: PrivateModes(**BUDGET, bounds=BOX).fit(X),
    "modes of a unit": lambda X: PrivateModes(**BUDGET, bounds=BOX).fit(table(X, unit=np.arange(len(X)))),
    "clusters": lambda X: PrivateModeClustering(**BUDGET, bounds=BOX, n_clusters=2).fit(X),
    "regression": lambda X: PrivateModalRegression(**BUDGET, x_bounds=BOX[:1], y_bounds=BOX[0]).fit(X[:, :1], X[:, 1]),
    "hellinger": lambda X: PrivateHellinger(family="normal", **BUDGET, parameter_bounds=NORMAL).fit(X[:, :1]),
    "mixture": lambda X: PrivateGaussianMixture(n_components=1, **BUDGET, radius=10.0, steps=1).fit(X),
    "gaussian": lambda X: private_gaussian(X, **BUDGET, radius=10.0),
    "spherical": lambda X: private_spherical_gaussian(X, **BUDGET, radius=10.0),
    "one cluster": lambda X: one_cluster(X, **BUDGET, radius=10.0),
    "terrific ball": lambda X: terrific_ball(X, **BUDGET, radius=10.0),
    "pca": lambda X: private_pca(X, **BUDGET, bounds=BOX),
    "bounds": lambda X: private_bounds(X, **BUDGET),
    "strata": lambda X: private_strata(X, ["f"] * len(X), categories=["f"], **BUDGET, bounds=BOX),
    "sampler": lambda X: IntegralSampler(epsilon=1.0, max_samples=1, bounds=BOX, rounds=1, training_draws=50).fit(X),
    "em": lambda X: dp_em(X, n_components=1, **BUDGET, radius=10.0, steps=1),
    "bernstein": lambda X: BernsteinDensity.fit(X, epsilon=1.0, bounds=[(0.0, 10.0)] * 2, degree=4),
    "histogram": lambda X: noisy_histogram_modes(X, **BUDGET, bounds=BOX, bandwidth=1.0, n_modes=1),
    "dpgan": lambda X: DPGAN.fit(X, epsilon=1.0, delta=1e-6, bounds=BOX, epochs=1, batch_size=30),
    "sketch": lambda X: DensitySketch(BOX).update(X).subtract(X),
    "random features": lambda X: DensitySketch(BOX, features=16).update(X).subtract(X),
}


class Strict:
    """Numpy's error state as strict as it gets for what touches records, and as it was for what reads the answer."""

    def __init__(self, monkeypatch) -> None:
        import fogline._validation.containment as containment

        self.seen = 0

        def spied(query, failure):
            self.seen += 1
            with np.errstate(all="raise"):
                return contained(query, failure)

        for module in ("fogline.mechanisms.errors", "fogline.sources.tables", "fogline._validation.rows"):
            monkeypatch.setattr(f"{module}.contained", spied)
        assert containment.contained is contained


@pytest.mark.parametrize("name", RELEASES)
def test_no_record_meets_a_strict_error_state(name, monkeypatch):
    Strict(monkeypatch)
    with seeded_noise(0), np.errstate(all="raise"):  # warnings are errors here, too
        RELEASES[name](X)


def test_a_record_that_met_it_would_be_noticed(monkeypatch):
    monkeypatch.setattr("fogline._validation.containment.quiet", lambda: np.errstate(all="raise"))
    with seeded_noise(0), np.errstate(all="raise"), pytest.raises(ReleaseFailed):
        private_gaussian(X, **BUDGET, radius=10.0)


def test_quiet_mutes_and_restores():
    before = list(warnings.filters)
    with np.errstate(all="raise"), quiet():
        warnings.warn("secret 777", stacklevel=1)
        assert np.array([1e308]) * 10 == np.inf
        with quiet():
            pass
        warnings.warn("secret 777", stacklevel=1)
    assert list(warnings.filters) == before
    with pytest.raises(UserWarning):
        warnings.warn("heard again", stacklevel=1)


def test_threads_that_overlap_leave_the_filters_as_they_were():
    before = list(warnings.filters)
    first, second = threading.Event(), threading.Event()

    def long():
        with quiet():
            first.set()
            second.wait(30)

    thread = threading.Thread(target=long)
    thread.start()
    first.wait(30)
    with quiet():
        pass
    with quiet():
        second.set()
        thread.join()
        warnings.warn("secret 777", stacklevel=1)
    assert list(warnings.filters) == before


# -- the closed list of errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1e155, 1e300, 2.0**41, 1.0, np.nan])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_a_stretch_that_overflows_is_refused_with_and_without_records(c, rows):
    with pytest.raises(ValueError, match=r"^c must be"):
        terrific_ball(np.ones((rows, 2)), **BUDGET, radius=10.0, c=c)


def test_errors_before_the_reservation_are_of_a_closed_list(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"777")
    (tmp_path / "t.csv").write_text("a\n1\n")
    fit = PrivateModes(**BUDGET, bounds=[(0, 1)]).fit
    wrong = [
        lambda: fit(np.array(["a"])),
        lambda: PrivateModes(**BUDGET, bounds=[(0, 1)] * 2).fit(np.zeros((2, 3))),
        lambda: fit(object()),
        lambda: fit(tmp_path / "nowhere.csv"),
        lambda: fit(tmp_path / "broken.parquet"),
        lambda: fit(table(tmp_path / "t.csv", ["b"])),
        lambda: fit(table("sqlite:///" + str(tmp_path / "no.db"), query="t")),
        lambda: fit(table("postgres://localhost:1/x", query="t")),
        lambda: PrivateModes(epsilon=0.0, delta=1e-6, bounds=[(0, 1)]).fit(np.zeros(3)),
        lambda: private_bounds([1.0], **BUDGET),
    ]
    for act in wrong:
        with pytest.raises(PUBLIC_ERRORS) as caught:
            act()
        assert "777" not in str(caught.value)
    assert issubclass(BudgetExceeded, LedgerRefused)
    for after in (ReleaseFailed, LedgerRefused):
        assert not issubclass(after, PUBLIC_ERRORS)


def test_what_a_source_raises_in_a_release_is_one_constant(monkeypatch):
    for error in (ImportError, LookupError, UserWarning, MemoryError, SystemExit):
        source = table(np.zeros((3, 1)))

        def scan(take, error=error):
            raise error("secret 777")

        monkeypatch.setattr(source, "_scan", scan)
        with pytest.raises(ReleaseFailed) as caught:
            PrivateModes(**BUDGET, bounds=[(0, 1)]).fit(source)
        assert "777" not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
