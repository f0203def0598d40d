"""Workers of this machine: how many runs at a time, on which GPU, and how they end."""

import threading
import time
from collections.abc import Iterator

import pytest

from horizon_rl.grid import local
from horizon_rl.grid.execution import Told, check_resources, execute
from horizon_rl.grid.job import Ended, Job, Message, Started
from horizon_rl.grid.local import LocalWorkers, find_gpu, gpu_names, use_this_machine
from horizon_rl.runs.budget import Budget
from horizon_rl.support.errors import InputError
from waiting import wait_for

FINISHED = Ended(standing="finished")
DIED = Ended(standing="failed", code=-9, reason="killed")
PATIENCE_S = 900.0


def make_job(name: str, gpus: float = 0.0) -> Job:
    return Job(
        name=name,
        folder="",
        log="",
        config="",
        groups=(),
        budget=Budget(steps=1),
        device="cpu",
        catalogue=None,
        evaluate=(),
        cwd="",
        gpus=gpus,
    )


@pytest.fixture
def does(monkeypatch):
    """Let jobs do something else than train."""

    def use(run) -> None:
        monkeypatch.setattr(local, "run_job", run)

    return use


def run(workers: LocalWorkers, *jobs: Job, stopped=lambda: False) -> list[Told]:
    told = execute(
        workers,
        jobs,
        retries=1,
        num_phases=lambda _: 0,
        files_of=lambda _: None,
        is_stopped=stopped,
    )
    try:
        return [each for each in told if each]
    finally:
        workers.stop()


def test_no_more_runs_at_a_time_than_workers(does):
    lock, now, most = threading.Lock(), 0, 0
    both = threading.Barrier(2)

    def work(*_) -> Iterator[Message]:
        nonlocal now, most
        with lock:
            now, most = now + 1, max(most, now + 1)
        yield Started("here")
        both.wait(PATIENCE_S)  # Two are under way, or this would not end.
        with lock:
            now -= 1
        yield FINISHED

    does(work)
    told = run(LocalWorkers(2, []), *(make_job(f"run{k}") for k in range(6)))
    assert most == 2
    finished = sorted(t.name for t in told if t.message == FINISHED)
    assert finished == [f"run{k}" for k in range(6)]


def test_a_run_that_dies_is_begun_again_until_it_is_given_up(does):
    does(lambda *_: iter([Started("here"), DIED]))
    ends = [t for t in run(LocalWorkers(1, []), make_job("a")) if t.message == DIED]
    assert [t.retried for t in ends] == [True, False]


def test_a_run_that_died_goes_on_before_others_begin(does):
    begun, go_on = [], threading.Event()

    def work(job: Job, *_) -> Iterator[Message]:
        begun.append(job.name)
        if job.name == "b":
            go_on.wait(PATIENCE_S)
        yield DIED if begun == ["a"] else FINISHED

    does(work)
    workers = LocalWorkers(1, [])
    for name in "abc":
        workers.submit(make_job(name), None)
    wait_for(lambda: begun == ["a", "b"])
    workers.submit(make_job("a"), None)
    go_on.set()
    wait_for(lambda: len(begun) == 4)
    workers.stop()
    assert begun == ["a", "b", "a", "c"]


@pytest.mark.parametrize(
    ("code", "standing"), [(75, "stopped"), (-15, "stopped"), (1, "failed")]
)
def test_a_signal_that_reaches_the_runs_first_is_no_death(code, standing, does):
    """A scheduler signals all processes of a job, and a run may be the faster one."""
    asked = threading.Event()

    def work(*_) -> Iterator[Message]:
        asked.set()
        yield Ended(standing="failed", code=code)

    does(work)
    (told,) = run(LocalWorkers(1, []), make_job("a"), stopped=asked.is_set)
    assert isinstance(told.message, Ended) and told.message.standing == standing
    assert not told.retried


def test_bad_input_is_not_tried_again(does):
    does(lambda *_: iter([Ended(standing="failed", code=2, reason="no")]))
    assert [t.retried for t in run(LocalWorkers(1, []), make_job("a"))] == [False]


def test_an_error_of_ours_fails_the_run_and_not_the_worker(does):
    def work(job: Job, *_) -> Iterator[Message]:
        if job.name == "a":
            raise OSError("disk full")
        yield FINISHED

    does(work)
    told = run(LocalWorkers(1, ["0"]), make_job("a", gpus=1.0), make_job("b", gpus=1.0))
    failed = Ended(standing="failed", code=1, reason="OSError: disk full")
    assert told[0].message == failed
    assert Told("b", FINISHED) in told  # It has the GPU that the other had.


def test_a_run_ends_once_and_last(does):
    """Nothing is told after its end, and none is until all of it is over."""

    def work(*_) -> Iterator[Message]:
        try:
            yield FINISHED
        finally:
            raise OSError("its folder is not empty")

    does(work)
    told = run(LocalWorkers(1, []), make_job("a"))
    assert [(t.name, t.retried) for t in told] == [("a", True), ("a", False)]
    ended = told[-1].message
    assert isinstance(ended, Ended) and "not empty" in ended.reason


def test_once_stopped_no_run_is_begun_and_those_under_way_are_told(does):
    begun = threading.Event()

    def work(job: Job, _, is_stopped) -> Iterator[Message]:
        yield Started("here")
        begun.set()
        wait_for(is_stopped)
        yield Ended(standing="stopped")

    does(work)
    jobs = make_job("a"), make_job("b"), make_job("c", gpus=1.0)
    told = run(LocalWorkers(1, ["0"]), *jobs, stopped=begun.is_set)
    assert [t.name for t in told if isinstance(t.message, Started)] == ["a"]
    ends = {t.name: t.message.standing for t in told if isinstance(t.message, Ended)}
    assert ends == dict.fromkeys("abc", "stopped")


def test_a_grid_that_fails_begins_no_more_runs(does):
    begun, go_on = [], threading.Event()

    def work(job: Job, *_) -> Iterator[Message]:
        begun.append(job.name)
        yield Started("here")
        go_on.wait(PATIENCE_S)
        yield FINISHED

    does(work)
    with pytest.raises(OSError), use_this_machine(1) as workers:
        for name in "abc":
            workers.submit(make_job(name), None)
        wait_for(lambda: begun)
        raise OSError("disk full")
    go_on.set()
    wait_for(lambda: threads_of(workers) == 0)
    assert begun == ["a"]


def threads_of(workers: LocalWorkers) -> int:
    return sum(
        getattr(thread, "_target", None) == workers._work
        for thread in threading.enumerate()
    )


def test_runs_wait_for_a_share_of_a_gpu_and_others_pass_them(does):
    under_way, seen, go_on = set(), {}, threading.Event()

    def work(job: Job, *_) -> Iterator[Message]:
        under_way.add(job.name)
        seen[job.name] = job.visible_gpu
        go_on.wait(PATIENCE_S)
        yield FINISHED

    does(work)
    workers = LocalWorkers(8, ["4", "7"])
    halves = [make_job(f"half{k}", gpus=0.6) for k in range(3)]
    for job in (*halves, make_job("cpu"), make_job("rest", gpus=0.4)):
        workers.submit(job, None)
    first = {"half0", "half1", "cpu", "rest"}
    wait_for(lambda: under_way == first)
    assert {seen["half0"], seen["half1"]} == {"4", "7"}
    assert seen["cpu"] is None and seen["rest"] in ("4", "7")
    time.sleep(0.05)
    assert under_way == first
    go_on.set()
    wait_for(lambda: "half2" in under_way)
    workers.stop()


def test_as_many_shares_fit_as_make_a_whole():
    for parts in (2, 3, 9, 12, 17, 20):
        free = {"0": 1.0}
        for _ in range(parts):
            assert find_gpu(free, 1 / parts) == "0", parts
            free["0"] -= 1 / parts
        assert find_gpu(free, 1 / parts) is None, parts


def test_the_emptiest_gpu_is_taken():
    assert find_gpu({"0": 0.5, "1": 0.75}, 0.25) == "1"
    assert find_gpu({"0": 0.5, "1": 0.75}, 0.8) is None


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ["0", "1"]),
        ("", ["0", "1"]),
        ("4, 6", ["4", "6"]),
        ("GPU-a,GPU-b,GPU-c", ["GPU-a", "GPU-b"]),
    ],
)
def test_gpus_are_those_that_a_process_would_see(visible, names, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(local, "version", lambda _: "2.13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [*gpu_names()] == names
    monkeypatch.setattr(local, "version", lambda _: "2.13.0+cpu")
    assert not gpu_names()


def test_what_the_machine_does_not_have_is_refused():
    workers = LocalWorkers(1, [])
    with pytest.raises(InputError, match="asks for 0.5 GPU and this machine has none"):
        check_resources(workers, [make_job("a", gpus=0.5)])
    workers.stop()
