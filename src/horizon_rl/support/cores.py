"""How many cores this process may take."""

import os


def default_threads() -> int:
    """Return how many threads to take where nobody says: one per core of this process.

    Or as many as OMP_NUM_THREADS says: who keeps torch to a few cores has other uses for
    the rest, such as runs side by side.
    """
    # OpenMP takes a list, one entry per level of nesting.
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    # Not all systems can keep a process to some of the cores.
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return int(asked) if asked.isdecimal() and int(asked) else cores
