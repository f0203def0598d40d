"""When a run that died goes on, and when it is given up."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="needs the extra grid")
from ray.exceptions import RayActorError

from horizon_rl.grid.executor import FlagReader, should_retry


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


def test_a_flag_that_has_died_stops_no_run():
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
