"""Choice of a backend: the GPU where there is one, else the CPU."""

from importlib.util import find_spec

import torch

from horizon_rl.physics.backend import Backend
from horizon_rl.physics.cpu import CpuBackend
from horizon_rl.robots import Robot
from horizon_rl.support.cores import default_threads
from horizon_rl.support.errors import InputError, install

ACCEPTED = "auto, cpu, cuda, cuda:1, ..."


def make_backend(
    robot: Robot, num_worlds: int, device: str = "auto", num_threads: int = 0
) -> Backend:
    """Make n worlds on a device.

    Args:
        robot: Template of all bodies that the worlds may have.
        num_worlds: How many.
        device: As `choose_device` takes it.
        num_threads: Threads on the CPU; 0: as `default_threads` says.
    """
    chosen = choose_device(device)
    if chosen.type == "cpu":
        return CpuBackend(robot, num_worlds, num_threads or default_threads())
    # Here, since Warp takes a second to import and the CPU needs none of it.
    from horizon_rl.physics.gpu import GpuBackend

    return GpuBackend(robot, num_worlds, str(chosen))


def choose_device(name: str) -> torch.device:
    """Return the device called "cpu", "cuda", "cuda:1", ... or the best, "auto".

    "auto" is the GPU where torch sees one and mujoco_warp is installed, else the CPU.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() and not _missing() else "cpu"
    return torch.device("cpu") if name == "cpu" else check_device(name)


def check_device(name: str | torch.device) -> torch.device:
    """Refuse a device that torch or Warp cannot use, and say why."""
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    on_gpu = device.type == "cuda"
    if on_gpu and device.index is None and torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
    if device.type not in ("cpu", "cuda"):
        why = "there is no such device"
    elif missing := _missing():
        why = f"needs {missing}: {install('gpu')}"
    elif on_gpu and not torch.cuda.is_available():
        why = "torch sees no GPU: check the driver and that torch is a CUDA build"
    elif on_gpu and device.index >= torch.cuda.device_count():
        why = f"there are {torch.cuda.device_count()} GPUs, from cuda:0 on"
    elif on_gpu and (needed := _newer_driver()):
        why = needed
    else:
        return device
    raise InputError(f"device '{name}': {why}. Accepted: {ACCEPTED}")


def _missing() -> str:
    """Name what the GPU backend lacks; nothing if it is all there."""
    return " and ".join(n for n in ("warp", "mujoco_warp") if find_spec(n) is None)


def _newer_driver() -> str:
    """Say which driver Warp needs where torch can use the one there is; else nothing."""
    import warp as wp

    wp.init()
    if wp.is_cuda_available():
        return ""
    driver = ".".join(map(str, wp.get_cuda_driver_version() or ["unknown"]))
    needed = ".".join(map(str, wp.get_cuda_toolkit_version() or ["unknown"]))
    return (
        f"the driver (CUDA {driver}) is too old for Warp {wp.config.version}, made for "
        f"CUDA {needed}: update the driver, or take 'cpu'"
    )
