"""Jobs on Ray: on this machine by default, on a cluster by its address.

Ray places a job where its share of cores and GPUs is free, and tells when its worker or
its node has died. All else (what a run is, how it goes on) is `horizon train`'s.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from horizon_rl.grid.job import Ended, Files, Job, Message, Started, run_job
from horizon_rl.support.errors import InputError, needs_extra

POLL_S = 0.5
CONNECT_S = 5.0
BAD_INPUT = 2
"""Exit code of a command that would fail again."""

# Before Ray is imported: nothing is sent to its makers, and workers have the Python that
# `horizon grid` has, also where uv started it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # We say who died.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
# Runs get the priority that they have by hand: Ray's own, nice 15, starves them wherever
# anything else computes.
os.environ.setdefault("RAY_worker_niceness", "0")

# As `ray start` does, but a program that joins its cluster does not.
TOKEN = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
if "RAY_AUTH_TOKEN" in os.environ or Path(TOKEN).exists():
    os.environ.setdefault("RAY_AUTH_MODE", "token")

with needs_extra("grid"):
    import ray
    from ray.exceptions import RayError, TaskCancelledError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@dataclass(frozen=True)
class Told:
    """What became known of a run."""

    name: str
    message: Message
    retried: bool = False
    """It died, and goes on as soon as a worker is free."""


@contextmanager
def connect(address: str | None, num_cpus: int | None = None) -> Iterator[None]:
    """Join the cluster at an address, or start Ray in this machine's own processes."""
    if address:
        _check_address(address)
    options: dict[str, Any] = {"address": address}
    if not address:
        options = {
            # Another cluster on this machine is not ours to use.
            "address": "local",
            "num_cpus": num_cpus,
            "include_dashboard": False,
            # Next to nothing goes through it: runs write files.
            "object_store_memory": 100 * 1024 * 1024,
        }
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"at {address} " if address else ""
        raise InputError(f"no Ray cluster answers {where}({error})") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address where nobody listens at once: Ray would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "/" in address or not host or not port.isdigit():
        raise InputError(
            f"--address {address}: accepted: HOST:PORT of the cluster's head, or auto on "
            "one of its nodes"
        )
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"no Ray cluster answers at {address}: {why}") from error


def check_resources(jobs: Sequence[Job]) -> None:
    """Refuse jobs that no node of the cluster could ever run."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for kind, asked in (
        ("GPU", max(job.gpus for job in jobs)),
        ("CPU", float(max(job.cpus for job in jobs))),
    ):
        most = max((node.get(kind, 0.0) for node in nodes), default=0.0)
        if asked > most:
            found = f"{most:g} on its largest node" if most else "none"
            raise InputError(
                f"a run asks for {asked:g} {kind} and Ray has {found}: take another "
                f"--{kind.lower()}s, or an --address"
            )


def num_gpus() -> float:
    """Return how many GPUs the cluster has."""
    return ray.cluster_resources().get("GPU", 0.0)


def should_retry(deaths: Sequence[int], retries: int) -> bool:
    """Decide whether a run that died goes on.

    Args:
        deaths: How many phases it had judged at each of its deaths.
        retries: How often it may die without judging a phase in between.
    """
    return sum(phases == deaths[-1] for phases in deaths) <= retries


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


def execute(
    jobs: Sequence[Job],
    *,
    retries: int,
    num_phases: Callable[[str], int],
    files_of: Callable[[str], bytes | None],
    is_stopped: Callable[[], bool],
) -> Iterator[Told | None]:
    """Run jobs; yields what becomes known, and None where nothing did for a while.

    Args:
        jobs: Runs to train, go on with, or evaluate.
        retries: See `should_retry`.
        num_phases: Returns how many phases a run has judged.
        files_of: Returns a run's files so far, for a job that is `away`.
        is_stopped: Whether to stop: no run is begun, and those under way end after
            their iteration.
    """

    task: Any = ray.remote(work_on)
    actor: Any = ray.remote(StopFlag)
    # It lives as long as we do; another node may die.
    here = NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    flag = actor.options(num_cpus=0, scheduling_strategy=here).remote()

    def submit(job: Job) -> Any:
        work = task.options(
            num_cpus=job.cpus,
            num_gpus=job.gpus,
            num_returns="streaming",
            # We know when to give up, and go on from what is on disk.
            max_retries=0,
            name=job.name,
        )
        return work.remote(job, files_of(job.name) if job.away else None, flag)

    under_way = {submit(job): job for job in jobs}
    begun: set[Any] = set()
    deaths: dict[str, list[int]] = {}
    was_stopped = False
    while under_way:
        if is_stopped() and not was_stopped:
            was_stopped = True
            with suppress(RayError):
                ray.get(flag.raise_it.remote())
            for work in under_way.keys() - begun:
                ray.cancel(work)
        ready, _ = ray.wait(list(under_way), timeout=POLL_S)
        for work in ready:
            job = under_way[work]
            told = _receive(work, job.name)
            begun.add(work)
            if isinstance(told.message, Ended):
                del under_way[work]
                ended = told.message
                died = deaths.setdefault(job.name, [])
                if ended.standing == "failed" and ended.code != BAD_INPUT:
                    died.append(num_phases(job.name))
                    if not was_stopped and should_retry(died, retries):
                        under_way[submit(job)] = job
                        told = Told(job.name, ended, retried=True)
            yield told
        if not ready:
            yield None


def _receive(work: Any, name: str) -> Told:
    """Return a job's next message; its end, where its worker or node has died."""
    try:
        message = ray.get(next(work))
        assert isinstance(message, Started | Files | Ended)
        return Told(name, message)
    except StopIteration:
        reason = "its worker ended without a word"
        return Told(name, Ended(standing="failed", code=1, reason=reason))
    except TaskCancelledError:
        return Told(name, Ended(standing="stopped"))
    except RayError as error:
        return Told(name, Ended(standing="failed", code=1, reason=_describe(error)))


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
