"""What all tests and doctests share: a state directory of their own, so that no notes go to the user's."""

import atexit
import os
import shutil
import tempfile

_STATE = tempfile.mkdtemp(prefix="fogline-state-")
os.environ["XDG_STATE_HOME"] = _STATE
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)
