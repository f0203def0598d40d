"""Where files of the user's own lie."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return where results are kept: HORIZON_CACHE, else the user's cache folder."""
    if folder := os.environ.get("HORIZON_CACHE"):
        return Path(folder)
    base = os.environ.get(
        "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    )
    return Path(base or Path.home() / ".cache") / "horizon-rl"
