"""How things are timed here: warmed up, interleaved, medians; and how they are kept."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from horizon_rl.domains import Catalogue
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps

PACKAGES = ("torch", "mujoco", "mjbatch", "mujoco-warp", "warp-lang", "rsl-rl-lib")


class Sizes(NamedTuple):
    """How much is measured, and where."""

    num_envs: int
    num_threads: int
    """Of the engine; 0: one per core."""
    repeats: int
    device: str
    catalogue: Catalogue
    """Parameters of the worlds, all of them wide open."""


def median_costs(
    works: Mapping[str, Callable[[], int]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return each work's median seconds per unit; a work returns its units.

    The works take turns, so that a machine that grows slow or fast during the run does
    so for all of them, and ratios between them stay fair.
    """
    for work in works.values():
        work()
    costs: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            began = clock()
            units = work()
            costs[name].append((clock() - began) / units)
    return {name: median(values) for name, values in costs.items()}


def append_record(
    path: Path, settings: Mapping[str, Any], figures: Mapping[str, float]
) -> None:
    """Append figures, with settings, hardware, versions and commit, to a file."""
    installed = {found.name: found.version for found in distributions()}
    hardware: dict[str, Any] = {"cpu": _cpu(), "cores": os.cpu_count()}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        hardware["gpu"] = torch.cuda.get_device_name()
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["horizon", *sys.argv[1:]]),
        "settings": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in settings.items()
            if name not in ("json", "save")
        },
        "figures": dict(figures),
        "hardware": hardware,
        "versions": {name: installed.get(name) for name in PACKAGES},
        "commit": _commit(),
    }
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(dumps(record) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _cpu() -> str:
    """Name the processor, as well as this system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """Return the commit of this source, marked if it has been changed."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7"]
    here = Path(__file__).parent
    with suppress(OSError, subprocess.CalledProcessError):
        found = subprocess.check_output(command, cwd=here, stderr=subprocess.DEVNULL)
        return found.decode().strip()
    return None
