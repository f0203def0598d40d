"""Robots by what the command line calls them."""

from functools import cache
from pathlib import Path

from horizon_rl.robots.build import build_robot
from horizon_rl.robots.interventions import load_body
from horizon_rl.robots.mjcf import load_mjcf
from horizon_rl.robots.robot import Robot
from horizon_rl.support.errors import InputError


def is_mjcf(source: str) -> bool:
    """Tell whether `source` is the path of a file, not the name of a body."""
    return Path(source).suffix.lower() in (".xml", ".mjcf")


def load_robot(source: str) -> Robot:
    """Load a preset, an intervention (go2+stilts), or an MJCF file by its path.

    The same source gives the same object as long as its file does not change.
    """
    if not is_mjcf(source):
        return _build_named(source)
    path = Path(source)
    changed_ns = path.stat().st_mtime_ns if path.exists() else 0
    # The working folder may change too: the same path then means another file.
    return _import_file(path, path.resolve(), changed_ns)


@cache
def _build_named(name: str) -> Robot:
    try:
        return build_robot(load_body(name))
    except InputError as error:
        raise InputError(f"{error}; or an MJCF file, *.xml") from error


@cache
def _import_file(path: Path, place: Path, changed_ns: int) -> Robot:
    return load_mjcf(path)
