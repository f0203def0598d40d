"""Figures that outlive the terminal: a line of JSON with all it takes to judge them."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps

PACKAGES = ("torch", "mujoco", "mjbatch", "mujoco-warp", "warp-lang", "rsl-rl-lib")


def append_record(
    path: Path, settings: Mapping[str, Any], figures: Mapping[str, float]
) -> None:
    """Append figures, with settings, hardware, versions and commit, to a file."""
    installed = {found.name: found.version for found in distributions()}
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["horizon", *sys.argv[1:]]),
        "settings": {k: v for k, v in settings.items() if k not in ("json", "save")},
        "figures": dict(figures),
        "hardware": describe_hardware(),
        "versions": {name: installed.get(name) for name in PACKAGES},
        "commit": _commit(),
    }
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(dumps(record) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def describe_hardware() -> dict[str, Any]:
    """Name the processor, its cores, and the GPU if torch sees one."""
    found: dict[str, Any] = {"cpu": _cpu(), "cores": os.cpu_count()}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":")[1].strip() for line in lines if "model name" in line)
    return next(names, platform.machine())


def _commit() -> str | None:
    """Return the commit of this source, marked if it has been changed."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=7"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
