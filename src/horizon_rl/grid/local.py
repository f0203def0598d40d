"""Jobs on this machine: every worker is a thread that watches the processes of one run.

It costs next to nothing and needs no more than the package itself. Where this process
ends, however it does, the runs end with it: see `child`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from math import inf
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread

from horizon_rl.grid.execution import RECEIVE_S, Told
from horizon_rl.grid.job import Ended, Job, Message, run_job

ROUNDING = 1e-6
"""Twenty shares of 0.05 fit, although they add up to a little more than one."""


class LocalWorkers:
    """Threads that do jobs; a free one takes the first that there is a GPU for."""

    where = "this machine"

    def __init__(self, num_workers: int, gpu_names: Sequence[str]):
        self._changed, self._stopped = Condition(), Event()
        self._waiting: list[tuple[Job, bytes | None]] = []
        self._begun: set[str] = set()
        self._free_gpus = dict.fromkeys(gpu_names, 1.0)
        self._told: SimpleQueue[Told] = SimpleQueue()
        for _ in range(num_workers):
            # A daemon: a second Ctrl-C does not wait for it.
            Thread(target=self._work, daemon=True).start()

    def largest(self) -> tuple[float, float]:
        # Cores are not counted: there are as many workers as have some.
        return float(bool(self._free_gpus)), inf

    def submit(self, job: Job, files: bytes | None) -> None:
        with self._changed:
            # A run that died goes on before others begin.
            place = 0 if job.name in self._begun else len(self._waiting)
            self._waiting.insert(place, (job, files))
            self._changed.notify_all()

    def receive(self) -> list[Told]:
        try:
            return [self._told.get(timeout=RECEIVE_S)]
        except Empty:
            return []

    def stop(self) -> None:
        with self._changed:
            self._stopped.set()
            self._changed.notify_all()

    def _work(self) -> None:
        while taken := self._take():
            job, files, gpu = taken
            try:
                ended = self._do(replace(job, visible_gpu=gpu), files)
            except Exception as error:  # It ends the run, not the thread.
                reason = f"{type(error).__name__}: {error}"
                ended = Ended(standing="failed", code=1, reason=reason)
            with self._changed:
                if gpu:
                    self._free_gpus[gpu] += job.gpus
                self._changed.notify_all()
            # Told last: the job may be submitted again at once.
            self._told.put(Told(job.name, ended))

    def _take(self) -> tuple[Job, bytes | None, str | None] | None:
        """Wait for a job that can be done now; None: there will be no more."""
        with self._changed:
            while True:
                for k, (job, files) in enumerate(self._waiting):
                    gpu = find_gpu(self._free_gpus, job.gpus) if job.gpus else None
                    if gpu or not job.gpus or self._stopped.is_set():
                        del self._waiting[k]
                        self._begun.add(job.name)
                        if gpu:
                            self._free_gpus[gpu] -= job.gpus
                        return job, files, gpu
                if self._stopped.is_set():
                    return None
                self._changed.wait()

    def _do(self, job: Job, files: bytes | None) -> Ended:
        ended: Message = Ended(standing="stopped")
        if not self._stopped.is_set():
            for message in run_job(job, files, self._stopped.is_set):
                if isinstance(message, Ended):
                    ended = message
                else:
                    self._told.put(Told(job.name, message))
        return ended


@contextmanager
def use_this_machine(num_workers: int) -> Iterator[LocalWorkers]:
    """Start workers, who share the GPUs that there are."""
    workers = LocalWorkers(num_workers, gpu_names())
    try:
        yield workers
    finally:
        workers.stop()


def find_gpu(free: Mapping[str, float], asked: float) -> str | None:
    """Return the GPU that has most left, if that is enough."""
    most = max(free, key=free.__getitem__)
    return most if free[most] >= asked - ROUNDING else None


def capacity(num_workers: int, num_gpus: int, share: float) -> int:
    """Return how many runs go side by side that take this share of a GPU each."""
    fit = num_gpus * int(1.0 / share + ROUNDING) if share else num_workers
    return min(num_workers, fit)


def gpu_names() -> Sequence[str]:
    """Name the GPUs that a process started here would see, as CUDA does."""
    # To import it takes longer than a dry run.
    if find_spec("torch") is None or "+cpu" in version("torch"):
        return ()
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    count = torch.cuda.device_count()
    names = [name.strip() for name in visible.split(",")]
    return names[:count] if visible else [str(number) for number in range(count)]
