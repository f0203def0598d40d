"""How many cores this process may take."""

import os


def default_threads() -> int:
    """Return how many threads to take where nobody says: one per core.

    Fewer where OMP_NUM_THREADS says so: who keeps torch to a few cores has other uses for
    the rest, such as runs side by side.
    """
    # OpenMP takes a list, one entry per level of nesting.
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(asked) if asked.isdigit() and int(asked) else os.cpu_count() or 1
