"""The door: order of events, scope, and what other doors can do with it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from fogline.mechanisms import add_gaussian, choose, current_provider, private_count, provider_reason, use_provider
from fogline.mechanisms.randomness import SystemProvider, SystemSource
from fogline.testing import SeededProvider, seeded_noise


class WatchedSource:
    certified = False

    def __init__(self, log):
        self.log = log

    def gaussian(self, scale, size):
        self.log.append("noise")
        return SystemSource().gaussian(scale, size)

    def bytes(self, size):
        self.log.append("noise")
        return SystemSource().bytes(size)


class Watcher:
    """Records the order in which the source and the data are touched."""

    certified = False

    def __init__(self):
        self.log, self.calls = [], []

    def answer(self, call, query, sample):
        self.calls.append(call)

        finish = sample(WatchedSource(self.log))
        exact = query()
        self.log.append("data")
        return finish(exact)

    def generator(self, purpose):
        return np.random.default_rng(0)


def test_noise_comes_before_data():
    order = []

    def sample(source):
        order.append("noise")
        return lambda exact: exact + 1

    def query():
        order.append("data")
        return np.array([1])

    assert SystemProvider().answer(None, query, sample).tolist() == [2]
    assert order == ["noise", "data"]
    with use_provider(Watcher()) as provider:
        add_gaussian(lambda: np.zeros(2, dtype=int), size=2, sensitivity=1, rho=0.1, parameters=(("what", "test"),))
        choose(lambda: np.zeros(3), size=3, sensitivity=1, epsilon=1.0)
    assert provider.log == ["noise", "data", "noise", "data"]
    assert ("what", "test") in provider.calls[0].parameters
    assert [call.norm for call in provider.calls] == ["l2", "linf"]
    assert hash(provider.calls[0]) == hash(provider.calls[0])


def test_a_recorded_answer_can_be_replayed_on_other_data():
    class Replay:
        certified = False
        reason = "replayed"

        def answer(self, call, query, sample):
            self.exact = query()
            return np.array([41])

    with use_provider(Replay()) as provider:
        assert private_count(lambda: 7, epsilon=1.0).value == 41
        assert provider.exact.tolist() == [7]
        assert provider_reason() == "replayed"


def test_doors_nest_and_are_left_on_errors():
    assert current_provider().certified

    def fail():
        with seeded_noise(2) as inner:
            assert current_provider() is inner
            raise ZeroDivisionError

    with seeded_noise(1) as outer:
        with pytest.raises(ZeroDivisionError):
            fail()
        assert current_provider() is outer
    assert current_provider().certified
    assert provider_reason() == ""


def test_a_door_stays_in_its_thread():
    seen = []
    with seeded_noise(1):
        thread = threading.Thread(target=lambda: seen.append(current_provider().certified))
        thread.start()
        thread.join()
        assert not current_provider().certified
    assert seen == [True]


def test_a_door_without_a_reason_still_gives_one():
    with use_provider(Watcher()):
        assert "operating system" in provider_reason()


def test_seeded_noise_repeats_and_is_not_certified():
    def everything():
        values = add_gaussian(lambda: np.zeros(5, dtype=int), size=5, sensitivity=1, rho=1e-4).values.tolist()
        picks = [choose(lambda: np.zeros(9), size=9, sensitivity=1, epsilon=1.0) for _ in range(5)]
        return values, picks, current_provider().generator("shift").integers(1 << 30, size=3).tolist()

    with seeded_noise(5):
        first, again = everything(), everything()
    with seeded_noise(5) as provider:
        assert everything() == first
        assert not provider.certified
        assert "seeded" in provider_reason()
    with seeded_noise(6):
        assert everything() != first
    assert first != again
    assert first[2] != again[2]


def test_seeds_are_checked():
    for bad in (-1, 1.5, None, "x"):
        with pytest.raises((ValueError, TypeError), match="seed"), seeded_noise(bad):
            pass
    assert SeededProvider(3) == SeededProvider(3)


def test_heavy_libraries_are_imported_only_when_needed():
    script = (
        "import sys, fogline.accounting, fogline.mechanisms, fogline.testing;"
        "print([name for name in ('opendp', 'sklearn', 'pandas') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 on forking beside threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_draws_other_noise():
    SystemSource().gaussian(1e9, 1)  # the mechanism is cached before the fork
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, SystemSource().gaussian(1e9, 4).tobytes() + SystemProvider().generator("x").bytes(8))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    theirs = os.read(reading, 40)
    os.close(reading)
    ours = SystemSource().gaussian(1e9, 4).tobytes() + SystemProvider().generator("x").bytes(8)
    assert len(theirs) == 40
    assert theirs[:32] != ours[:32]
    assert theirs[32:] != ours[32:]
