"""Lanes: one acts while the other simulates, and no failure leaves one waiting."""

import concurrent.futures
from threading import Barrier, Event, Lock

import pytest
import torch
from tables import assert_equal

from horizon_rl.evaluation import lanes as lanes_module
from horizon_rl.evaluation.lanes import Lanes
from horizon_rl.physics import CpuBackend
from horizon_rl.policies.load import load_policy
from horizon_rl.support.errors import InputError
from horizon_rl.task.rollouts import complete

BLOCK, NUM_WORLDS, SECONDS = 4, 8, 30.0
CPU = torch.device("cpu")


@pytest.fixture
def column(make_suite):
    text = f"episodes={NUM_WORLDS}\n[task]\nepisode_s=0.2\n[columns.a]\ngroups=['all']"
    return make_suite(text).frozen["a"]


@pytest.fixture
def make_lanes(column, monkeypatch):
    """Return a function that makes worlds, with a backend of one's own."""

    def make(backend: type[CpuBackend] = CpuBackend, num_threads: int = 2) -> Lanes:
        monkeypatch.setattr(
            lanes_module,
            "make_backend",
            lambda robot, n, device, threads: backend(robot, n, threads),
        )
        return Lanes(column.robot, column.task, CPU, NUM_WORLDS, BLOCK, num_threads)

    return make


@pytest.fixture
def run(column):
    """Return a function that runs all scenarios of the column."""

    def run_all(lanes: Lanes, make=None):
        make = make or (lambda: load_policy("core").make(CPU))
        lanes.begin(make, column.scenarios(NUM_WORLDS), 0, range(NUM_WORLDS))
        return complete(lanes, lanes.longest, lambda step: None)

    return run_all


class Standing:
    def reset(self, mask):
        pass

    def act(self, observations):
        return torch.zeros((len(observations), 12))


def test_one_lane_acts_at_a_time_on_two_cores(make_lanes, run):
    acting, acts = Lock(), []

    class Alone(Standing):
        def act(self, observations):
            assert acting.acquire(blocking=False)
            # Long enough for the other lane to come in between, were it allowed to.
            acts.append(Event().wait(0.002))
            acting.release()
            return super().act(observations)

    lanes = make_lanes()
    run(lanes, Alone)
    assert len(acts) == 2 * lanes.longest


def test_lanes_of_several_cores_act_together(make_lanes, run):
    both = Barrier(2, timeout=SECONDS)

    class Together(Standing):
        def act(self, observations):
            both.wait()
            return super().act(observations)

    run(make_lanes(num_threads=4), Together)


def test_a_lane_acts_while_the_other_simulates(make_lanes, run):
    made, acts = [], Event()

    class Waiting(CpuBackend):
        def __init__(self, *args):
            super().__init__(*args)
            self.waits = not made
            made.append(self)

        def step(self, targets):
            if self.waits:
                assert acts.wait(SECONDS)
            super().step(targets)

    class Telling(Standing):
        """Tells that it acts, if it is the second one made."""

        def __init__(self):
            self.tells = len(made) == 3
            made.append(self)

        def act(self, observations):
            if self.tells:
                acts.set()
            return super().act(observations)

    run(make_lanes(Waiting), Telling)
    assert acts.is_set() and len(made) == 4


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("failing", range(2))
def test_worlds_go_on_after_a_step_that_failed(make_lanes, run, num_threads, failing):
    fails, made = Event(), []

    class Failing(CpuBackend):
        def __init__(self, *args):
            super().__init__(*args)
            self.number = len(made)
            made.append(self)

        def step(self, targets):
            if fails.is_set() and self.number == failing % len(made):
                raise InputError("no step")
            super().step(targets)

    expected = run(make_lanes(num_threads=1))
    lanes = make_lanes(Failing, num_threads)
    assert len(made) == num_threads
    fails.set()
    with pytest.raises(InputError, match="no step"):
        run(lanes)
    fails.clear()
    assert_equal(run(lanes), expected)


def test_worlds_go_on_after_an_interrupt(make_lanes, run, monkeypatch):
    lanes, wait = make_lanes(), concurrent.futures.wait

    def interrupt(*args, **named):
        monkeypatch.setattr(lanes_module, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(lanes_module, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(lanes)
    assert_equal(run(lanes), run(make_lanes(num_threads=1)))
