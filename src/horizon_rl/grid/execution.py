"""A study's jobs, whoever does them: when a run goes on, and when it is given up.

Workers are threads of this process or those of a Ray cluster. All else (what a run is,
how it goes on) is `horizon train`'s.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from horizon_rl.grid.job import BAD_INPUT, INTERRUPTED, Ended, Job, Message
from horizon_rl.support.errors import InputError

RECEIVE_S = 0.5
"""How long to wait for news."""


@dataclass(frozen=True)
class Told:
    """What became known of a run."""

    name: str
    message: Message
    retried: bool = False
    """It died, and goes on as soon as a worker is free."""


class Workers(Protocol):
    """Who does jobs, as many at a time as there is room for."""

    where: str
    """What they work on, as in "this machine"."""

    def largest(self) -> tuple[float, float]:
        """Return the GPUs and the cores that one run can have, at most."""
        ...

    def submit(self, job: Job, files: bytes | None) -> None:
        """Do a job as soon as there is room; `files` as `run_job` takes them."""
        ...

    def receive(self) -> list[Told]:
        """Return what became known within some `RECEIVE_S`, if anything did.

        The last that is told of a job is its end, whatever became of its worker.
        """
        ...

    def stop(self) -> None:
        """Begin no more jobs; those under way end after their iteration."""
        ...


def check_resources(workers: Workers, jobs: Sequence[Job]) -> None:
    """Refuse jobs that could never run."""
    gpus, cpus = workers.largest()
    for kind, asked, most in (
        ("GPU", max(job.gpus for job in jobs), gpus),
        ("CPU", float(max(job.cpus for job in jobs)), cpus),
    ):
        if asked > most:
            found = f"{most:g} at most" if most else "none"
            raise InputError(
                f"a run asks for {asked:g} {kind} and {workers.where} has {found}: take "
                f"another --{kind.lower()}s, or an --address"
            )


def should_retry(deaths: Sequence[int], retries: int) -> bool:
    """Decide whether a run goes on that had judged so many phases at each of its deaths.

    It may die `retries` times without judging a phase in between.
    """
    return sum(phases == deaths[-1] for phases in deaths) <= retries


def execute(
    workers: Workers,
    jobs: Sequence[Job],
    *,
    retries: int,
    num_phases: Callable[[str], int],
    files_of: Callable[[str], bytes | None],
    is_stopped: Callable[[], bool],
    is_given_up: Callable[[str], bool] = lambda name: False,
) -> Iterator[Told | None]:
    """Run jobs; yields what becomes known, and None where nothing did for a while.

    Args:
        workers: Who does them.
        jobs: Runs to train, go on with, or evaluate.
        retries: See `should_retry`.
        num_phases: Returns how many phases a run has judged.
        files_of: Returns a run's files so far, for a job that is `away`.
        is_stopped: Whether to stop: no run is begun, and those under way end after
            their iteration.
        is_given_up: Whether a run has failed for good, whatever its worker says.
    """

    def submit(job: Job) -> Told | None:
        """Hand a job over; return how it ended where its files cannot be read."""
        try:
            files = files_of(job.name) if job.away else None
        except (InputError, OSError) as error:
            reason = f"cannot read its files: {error}"
            del under_way[job.name]
            return Told(
                job.name, Ended(standing="failed", code=BAD_INPUT, reason=reason)
            )
        workers.submit(job, files)
        return None

    under_way = {job.name: job for job in jobs}
    deaths: dict[str, list[int]] = {name: [] for name in under_way}
    was_stopped = False
    for job in jobs:
        if failed := submit(job):
            yield failed
    while under_way:
        if is_stopped() and not was_stopped:
            was_stopped = True
            workers.stop()
        found = workers.receive()
        for told in found:
            name, message = told.name, told.message
            if isinstance(message, Ended):
                job = under_way.pop(name)
                if is_stopped() and message.code in INTERRUPTED:
                    # A scheduler's signal reaches the runs before we pass it on.
                    message = replace(message, standing="stopped")
                    told = Told(name, message)
                may_retry = message.code != BAD_INPUT and not is_given_up(name)
                if message.standing == "failed" and may_retry:
                    deaths[name].append(num_phases(name))
                    if not is_stopped() and should_retry(deaths[name], retries):
                        under_way[name] = job
                        told = submit(job) or Told(name, message, retried=True)
            yield told
        if not found:
            yield None
