"""How many cores this process may take."""

import os


def default_threads() -> int:
    """Return how many threads to take where nobody says: one per core of this process.

    Or as many as OMP_NUM_THREADS says: who keeps torch to a few cores has other uses for
    the rest, such as runs side by side.
    """
    # OpenMP takes a list, one entry per level of nesting.
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(asked) if asked.isdecimal() and int(asked) else count_cores()


def count_cores() -> int:
    """Return how many cores this process may run on."""
    # Not all systems can keep a process to some of the cores.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
