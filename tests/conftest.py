"""Settings shared by all tests."""

import gc
import os
import shutil
import sys
from pathlib import Path

# Before torch is imported: its threads would wait for the simulator's, and for those of
# the other test process, longer than the tests' small tensors take.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from browsing import browser, page  # noqa: F401
from short_evaluations import last_only, short_evaluations  # noqa: F401
from short_exports import shared_operators, short_exports  # noqa: F401
from small_checkpoints import make_checkpoint  # noqa: F401
from trained_run import trained, trained_copy  # noqa: F401

# The same examples every time: a red build can be repeated anywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# The test processes, and the commands they start, compile the package only once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Runs sync every file that they write, some milliseconds each on a disk.
MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# What is imported and collected stays: looking through it for garbage takes seconds.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # Before pytest leaves out what is slow.
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
