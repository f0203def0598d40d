"""Settings shared by all tests."""

import os

# Before torch is imported: its threads would wait for the simulator's, and for those of
# the other test process, longer than the tests' small tensors take.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

from browsing import browser, page  # noqa: F401
from short_evaluations import short_evaluations  # noqa: F401
from small_checkpoints import make_checkpoint  # noqa: F401
from trained_run import trained, trained_copy  # noqa: F401

# The same examples every time: a red build can be repeated anywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
