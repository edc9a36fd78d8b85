"""What all tests and doctests share: a state directory of their own, so that no notes go to the user's."""

import atexit
import os
import shutil
import tempfile

import pytest

_STATE = tempfile.mkdtemp(prefix="fogline-state-")
os.environ["XDG_STATE_HOME"] = _STATE
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)


@pytest.fixture(autouse=True)
def _pages_write_into_a_folder_of_their_own(request, monkeypatch):
    """Examples of a page write files by plain names, as a reader would: not into the repository."""
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
