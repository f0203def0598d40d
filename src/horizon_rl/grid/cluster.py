"""Jobs on a Ray cluster, by its address.

Ray places a job where its share of cores and GPUs is free, and tells when its worker or
its node has died.
"""

import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from horizon_rl.grid.execution import RECEIVE_S, Told
from horizon_rl.grid.job import Ended, Files, Job, Message, Started, run_job
from horizon_rl.support.errors import InputError, RunError, needs_extra

CONNECT_S = 5.0
ASK_S = 5.0
"""How often the head is asked whether it is there."""
SILENT_S = 0.5 * float(os.environ.get("RAY_gcs_rpc_server_reconnect_timeout_s", 60.0))
"""How long it may give no answer. After twice that Ray itself would end this process."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5)
"""How gRPC begins, which Ray speaks: both sides send a frame of kind 4, here empty."""

# Before Ray is imported: nothing is sent to its makers, and workers have the Python that
# `horizon grid` has, also where uv started it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # We say who died.

# As `ray start` does, but a program that joins its cluster does not.
TOKEN = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
if "RAY_AUTH_TOKEN" in os.environ or Path(TOKEN).exists():
    os.environ.setdefault("RAY_AUTH_MODE", "token")

with needs_extra("grid"):
    import ray
    from ray.exceptions import RayError, TaskCancelledError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


class StopFlag:
    """Tells all workers whether to stop."""

    def __init__(self):
        self.is_raised = False

    def raise_it(self) -> None:
        self.is_raised = True

    def get(self) -> bool:
        return self.is_raised


class FlagReader:
    """Asks for the flag and does not wait: a worker that waits gives up its cores.

    A flag that does not answer is no news: a run is worth more than its being stopped.
    """

    def __init__(self, flag: Any):
        self._flag, self._is_raised = flag, False
        self._answer = flag.get.remote().future()

    def __call__(self) -> bool:
        if self._answer.done() and not self._is_raised:
            with suppress(RayError):
                self._is_raised = self._answer.result()
            self._answer = self._flag.get.remote().future()
        return self._is_raised


def work_on(job: Job, files: bytes | None, flag: Any) -> Iterator[Message]:
    """Do a job in a worker of Ray's."""
    yield from run_job(job, files, FlagReader(flag))


class Head:
    """The cluster's first node: no other can do without it."""

    def __init__(self, address: str):
        self._address, self._host_port = address, _split(address)
        self._asked, self._silent_since = time.monotonic(), None

    def check(self) -> None:
        """Raise an error if it has given no answer for too long."""
        now = time.monotonic()
        if now - self._asked < ASK_S:
            return
        self._asked = now
        try:
            socket.create_connection(self._host_port, CONNECT_S).close()
            self._silent_since = None
        except OSError as error:
            self._silent_since = self._silent_since or now
            if now - self._silent_since > SILENT_S:
                raise RunError(
                    f"the head of the Ray cluster at {self._address} does not answer any "
                    "more. Its runs end; what they had committed is intact. Start the "
                    "cluster, then the same command goes on with them"
                ) from error


class RayWorkers:
    """The cluster that this process has joined."""

    where = "Ray"

    def __init__(self):
        self._head = Head(ray.get_runtime_context().gcs_address)
        self._task: Any = ray.remote(work_on)
        actor: Any = ray.remote(StopFlag)
        # It lives as long as we do; another node may die.
        here = NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._flag = actor.options(num_cpus=0, scheduling_strategy=here).remote()
        self._under_way: dict[Any, str] = {}
        self._begun: set[Any] = set()

    def largest(self) -> tuple[float, float]:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus, cpus = (
            max((node.get(kind, 0.0) for node in nodes), default=0.0)
            for kind in ("GPU", "CPU")
        )
        return gpus, cpus

    def submit(self, job: Job, files: bytes | None) -> None:
        work = self._task.options(
            num_cpus=job.cpus,
            num_gpus=job.gpus,
            num_returns="streaming",
            # The grid knows when to give up, and goes on from what is on disk.
            max_retries=0,
            name=job.name,
        )
        self._under_way[work.remote(job, files, self._flag)] = job.name

    def receive(self) -> list[Told]:
        self._head.check()
        ready, _ = ray.wait(list(self._under_way), timeout=RECEIVE_S)
        return [self._receive(work) for work in ready]

    def stop(self) -> None:
        with suppress(RayError):
            ray.get(self._flag.raise_it.remote())
        for work in self._under_way.keys() - self._begun:
            ray.cancel(work)

    def _receive(self, work: Any) -> Told:
        message = _next_message(work)
        self._begun.add(work)
        name = self._under_way[work]
        if isinstance(message, Ended):
            del self._under_way[work]
        return Told(name, message)


@contextmanager
def join_cluster(address: str) -> Iterator[RayWorkers]:
    """Join the cluster at an address."""
    _check_address(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray cluster answers at {address} ({error})") from error
    try:
        yield RayWorkers()
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address where no Ray listens at once: Ray would try for minutes."""
    if address == "auto":
        return
    try:
        host, port = _split(address)
        if "/" in address or not host or port not in range(65536):
            raise ValueError
        with socket.create_connection((host, port), CONNECT_S) as opened:
            if "RAY_USE_TLS" not in os.environ:
                opened.sendall(HELLO)
                if opened.recv(9)[3:4] != b"\4":
                    raise ConnectionError("something else listens there")
    except ValueError as error:  # No host can have such a name, say.
        raise InputError(
            f"--address {address}: accepted: HOST:PORT of the cluster's head, or auto on "
            "one of its nodes"
        ) from error
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"no Ray cluster answers at {address}: {why}") from error


def _split(address: str) -> tuple[str, int]:
    """Return host and port; an IPv6 address stands in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _next_message(work: Any) -> Message:
    """Return a job's next message; its end, where its worker or node has died."""
    try:
        message = ray.get(next(work))
        assert isinstance(message, Started | Files | Ended)
        return message
    except StopIteration:
        reason = "its worker ended without a word"
        return Ended(standing="failed", code=1, reason=reason)
    except TaskCancelledError:
        return Ended(standing="stopped")
    except RayError as error:
        return Ended(standing="failed", code=1, reason=_describe(error))


def _describe(error: RayError) -> str:
    """Say in a line how a worker died; an error of our own shows where it arose."""
    lines: Mapping[str, str] = {
        "WorkerCrashedError": "its worker was killed",
        "NodeDiedError": "its node died",
        "ObjectLostError": "its node died",
        "OwnerDiedError": "its node died",
        "OutOfMemoryError": "its worker was killed: the node's memory is full",
    }
    text = str(error).strip().splitlines() or [""]
    return lines.get(type(error).__name__) or f"{type(error).__name__}: {text[-1]}"
