"""When a run that died goes on, and when it is given up."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from horizon_rl.grid.execution import Told, execute, should_retry
from horizon_rl.grid.job import Ended


@pytest.mark.parametrize(
    ("deaths", "goes_on"),
    [
        ([0], True),
        ([0, 0, 0], True),
        ([0, 0, 0, 0], False),
        ([0, 0, 0, 1], True),
        ([0, 0, 0, 1, 1, 1, 1], False),
        ([*range(100)], True),  # It judges a phase each time.
    ],
)
def test_a_run_may_die_three_times_without_a_phase_in_between(deaths, goes_on):
    assert should_retry(deaths, retries=3) == goes_on


def test_without_retries_the_first_death_is_the_last():
    assert not should_retry([5], retries=0)


@pytest.mark.parametrize(("given_up", "starts"), [(False, 3), (True, 1)])
def test_a_run_that_was_given_up_is_not_started_again(given_up, starts):
    submitted: list[str] = []

    def die() -> list[Told]:
        return [Told(submitted[-1], Ended(standing="failed", code=1))]

    workers: Any = SimpleNamespace(
        submit=lambda job, files: submitted.append(job.name), receive=die
    )
    job: Any = SimpleNamespace(name="a", away=False)
    told = list(
        execute(
            workers,
            [job],
            retries=2,
            num_phases=lambda name: 0,
            files_of=lambda name: None,
            is_stopped=lambda: False,
            is_given_up=lambda name: given_up,
        )
    )
    assert len(submitted) == len(told) == starts
    assert [t.retried for t in told if t] == [True] * (starts - 1) + [False]


def test_a_run_whose_files_cannot_be_read_fails_alone():
    submitted: list[str] = []

    def finish() -> list[Told]:
        return [Told(submitted[-1], Ended(standing="finished"))]

    def files_of(name: str) -> None:
        if name == "a":
            raise PermissionError("no")

    workers: Any = SimpleNamespace(
        submit=lambda job, files: submitted.append(job.name), receive=finish
    )
    jobs: Any = [SimpleNamespace(name=name, away=True) for name in "ab"]
    told = execute(
        workers,
        jobs,
        retries=2,
        num_phases=lambda name: 0,
        files_of=files_of,
        is_stopped=lambda: False,
    )
    found = {t.name: t.message for t in told if t}
    reason = "cannot read its files: no"
    assert found == {
        "a": Ended(standing="failed", code=2, reason=reason),
        "b": Ended(standing="finished"),
    }


def test_a_flag_that_has_died_stops_no_run():
    pytest.importorskip("ray", reason="needs the extra grid")
    from ray.exceptions import RayActorError

    from horizon_rl.grid.cluster import FlagReader

    answers: list[Future[bool]] = []

    def ask() -> SimpleNamespace:
        answers.append(Future())
        return SimpleNamespace(future=lambda: answers[-1])

    reader = FlagReader(SimpleNamespace(get=SimpleNamespace(remote=ask)))
    assert not reader()
    answers[-1].set_exception(RayActorError())
    assert not reader()
    answers[-1].set_result(True)
    assert reader() and reader()
