"""Work on a GPU that is recorded once and then replayed with a single call.

A control step is some hundred small kernels, and launching one from Python takes longer
than running it. A CUDA graph launches them all at once. On a CPU, and with the
environment variable HORIZON_GRAPHS=0, work is simply done.
"""

import gc
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
T = TypeVar("T")

WARM_UPS = 2
"""Calls before the recording: libraries load, allocate and choose their kernels."""


class Recorded:
    """A function without arguments or result, recorded at its third call on a GPU.

    All that goes in or out lies in tensors that are made before and never replaced;
    what is made inside may be overwritten by any other recording. Python runs in the
    first calls only, and nothing inside may wait for the device. No call is done twice:
    a recording itself does nothing but record.
    """

    def __init__(self, work: Callable[[], object], device: torch.device | str):
        """Wrap `work`, whose tensors lie on `device`; nothing runs yet."""
        self._device = torch.device(device)
        self._work = work
        self._graph: torch.cuda.CUDAGraph | None = None
        wanted = os.environ.get("HORIZON_GRAPHS", "1") not in ("", "0")
        self._records = self._device.type == "cuda" and wanted
        self._warm_ups = WARM_UPS

    def __call__(self) -> None:
        if self._graph is not None:
            self._graph.replay()
        elif not self._records:
            self._work()
        elif self._warm_ups:
            self._warm_ups -= 1
            self._warm_up()
        else:
            self._record()
            self()

    def _warm_up(self) -> None:
        """Do the work on the stream of the recording: autograd remembers streams."""
        with torch.cuda.device(self._device):
            stream, *_ = _pool(self._device)
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._work()
            torch.cuda.current_stream().wait_stream(stream)

    def _record(self) -> None:
        """Record the work without doing it; where that fails, do not try again."""
        graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream(self._device)
        # Garbage may hold other graphs, and to free those would break the recording.
        gc.disable()
        try:
            with torch.cuda.device(self._device):
                stream, pool, _ = _pool(self._device)
                with torch.cuda.graph(
                    graph, pool, stream, capture_error_mode="thread_local"
                ):
                    self._work()
        except RuntimeError as error:
            self._records = False
            # Torch leaves its stream behind; and what it says last is not the cause.
            torch.cuda.set_stream(before)
            warnings.warn(
                f"{self._work} cannot be recorded as a CUDA graph and runs step by step"
                " (HORIZON_GRAPHS=0 does so from the start): "
                f"{error.__context__ or error}",
                stacklevel=3,
            )
        else:
            self._graph = graph
        finally:
            gc.enable()


def compiled(
    function: Callable[P, T], device: torch.device | str, wanted: bool
) -> Callable[P, T]:
    """Return a function of tensors, compiled at its first call if that is `wanted`.

    Fewer, longer kernels, for a minute's wait. On a CPU it is the function itself.
    """
    on_gpu = torch.device(device).type == "cuda"
    return torch.compile(function) if on_gpu and wanted else function


def set_matmul_precision(device: torch.device | str, precision: str) -> None:
    """Set how a GPU multiplies matrices of single floats, in all of this process.

    By `float32` exactly, by `tf32` with inputs rounded to 10 bits. A CPU stays exact.
    """
    if torch.device(device).type == "cuda":
        is_fast = precision == "tf32"
        torch.set_float32_matmul_precision("high" if is_fast else "highest")


@cache
def _pool(device: torch.device) -> tuple[torch.cuda.Stream, Any, torch.cuda.CUDAGraph]:
    """Return the stream and the memory that all recordings of a device share.

    The graph is kept only because torch gives up memory that no graph uses any more,
    and would refuse the next recording in it.
    """
    # Any: torch has no public name for what identifies memory.
    stream, pool = torch.cuda.Stream(device), torch.cuda.graph_pool_handle()
    keeper = torch.cuda.CUDAGraph()
    with torch.cuda.graph(keeper, pool, stream, capture_error_mode="thread_local"):
        torch.zeros(1, device=device)
    return stream, pool, keeper
