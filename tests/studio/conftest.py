"""A studio that most tests share, with a release of each data set, and one client per role."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("starlette") else ["test_*.py"]


@pytest.fixture(scope="session")
def hospital(tmp_path_factory):
    """A studio that all tests share which do not break it: studio, application, and a release of each data set."""
    from hospital import enter, hospital_config, open_studio, released

    from fogline.studio.app import make_app

    studio = open_studio(hospital_config(tmp_path_factory.mktemp("hospital")))
    app = make_app(studio)
    custodian = enter(app, "custodian")
    releases = {
        "visits": released(studio, custodian, "visits", "column=age&column=stay&epsilon=1"),
        "lab": released(studio, custodian, "lab", "column=heart_rate&epsilon=1"),
        "other-lab": released(studio, custodian, "other-lab", "column=heart_rate&epsilon=1"),
    }
    yield studio, app, releases
    studio.close()


@pytest.fixture
def custodian(hospital):
    from hospital import enter

    return enter(hospital[1], "custodian")


@pytest.fixture
def analyst(hospital):
    from hospital import enter

    return enter(hospital[1], "analyst")
