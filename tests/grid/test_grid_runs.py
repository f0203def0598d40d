"""Runs of a grid are those that a user starts by hand, whoever is killed meanwhile."""

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

pytest.importorskip("mujoco", reason="needs the extra train")
from grids import (
    PATIENCE_S,
    assert_same_runs,
    descendants,
    finish,
    is_alive,
    kill_at_random,
    kill_node,
    node,
    read_records,
    start_grid,
    train_by_hand,
    wait_for_phase,
    workers,
    write_study,
)

from waiting import wait_for

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="looks for processes in /proc"
)
EVALUATE = '[[evaluate]]\nseverity = [0.5]\ncolumns = ["all"]\nepisodes = 2'


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_ends_as_the_one_started_by_hand(tmp_path, capfd):
    out = tmp_path / "grid"
    study = write_study(tmp_path, [0], steps=9000)
    grid = start_grid(study, out, "--workers", "2")
    wait_for_phase(out / "runs" / "fixed_s0", 1, grid)
    (fixed,) = (p for p, line in descendants(grid.pid).items() if "fixed_s0" in line)
    # With the priority of who started it.
    assert os.getpriority(os.PRIO_PROCESS, fixed) == os.nice(0)
    os.kill(fixed, signal.SIGKILL)
    said = finish(grid)
    assert "fixed_s0: its process was killed (signal 9" in said
    assert "it goes on from its last phase" in said
    names = ["horizon_s0", "fixed_s0"]
    train_by_hand(out, names, tmp_path)
    assert_same_runs(out / "runs", tmp_path, names)
    records = read_records(out)
    assert [*records] == names
    assert records["fixed_s0"]["levels"]["mass"] == 0.35
    assert "2 of 2 runs done" in said


# What takes minutes.


@pytest.fixture(scope="module")
def six(tmp_path_factory) -> tuple[Path, Path, list[str]]:
    """Six runs of a grid on two workers, and the same six by hand."""
    folder = tmp_path_factory.mktemp("six")
    study = write_study(folder, [0, 1, 2], steps=16_000, more=EVALUATE)
    said = finish(start_grid(study, folder / "grid", "--workers", "2"))
    assert "6 of 6 runs done" in said
    names = [*read_records(folder / "grid")]
    train_by_hand(folder / "grid", names, folder / "hand")
    return study, folder, names


@pytest.mark.manual
def test_six_runs_are_the_same_to_the_bit_as_six_by_hand(six):
    study, folder, names = six
    assert len(names) == 6
    assert_same_runs(folder / "grid" / "runs", folder / "hand", names)
    # And a second time nothing is left to do.
    began = (folder / "grid/runs/fixed_s0/journal.jsonl").stat().st_mtime
    assert "under way" not in finish(start_grid(study, folder / "grid"))
    assert (folder / "grid/runs/fixed_s0/journal.jsonl").stat().st_mtime == began


@pytest.mark.manual
def test_workers_killed_at_twenty_random_moments(six, tmp_path):
    study, folder, names = six
    out, rng, killed = tmp_path / "grid", random.Random(0), 0
    while killed < 20:
        grid = start_grid(study, out, "--workers", "2", "--retries", "1000")
        killed += kill_at_random(grid, 20 - killed, rng)
        finish(grid)
        assert_same_runs(out / "runs", folder / "hand", names)
        assert read_records(out) == read_records(folder / "grid")
        out = out.with_name(f"{out.name}-more")


@pytest.mark.manual
def test_a_grid_that_is_killed_leaves_nothing_behind_and_goes_on(six, tmp_path):
    study, folder, names = six
    out, rng = tmp_path / "grid", random.Random(1)
    for _ in range(4):
        grid = start_grid(study, out, "--workers", "2")
        time.sleep(rng.uniform(8.0, 30.0))
        below = workers(grid.pid)
        grid.kill()
        grid.communicate()
        wait_for(lambda below=below: not any(map(is_alive, below)))
    finish(start_grid(study, out, "--workers", "2"))
    assert_same_runs(out / "runs", folder / "hand", names)
    assert read_records(out) == read_records(folder / "grid")


@pytest.mark.manual
def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(six, tmp_path):
    study, folder, names = six
    out = tmp_path / "grid"
    grid = start_grid(study, out, "--workers", "2")
    wait_for_phase(out / "runs" / names[0], 1, grid)
    grid.send_signal(signal.SIGINT)
    said = finish(grid)
    assert "stopping: runs end after their iteration" in said
    assert "Stopped. The same command goes on from there." in said
    log = (out / "logs" / f"{names[0]}.log").read_text()
    assert "was not judged and will run again" in log
    finish(start_grid(study, out, "--workers", "2"))
    assert_same_runs(out / "runs", folder / "hand", names)


# On a cluster.


@contextmanager
def cluster(num_cpus: int) -> Iterator[tuple[str, Popen[bytes]]]:
    """The first node of a cluster: its address, and its processes."""
    pytest.importorskip("ray", reason="needs the extra grid")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ("--head", "--port", str(port), "--include-dashboard", "false")
    with node(*flags, *cores(num_cpus)) as head:
        wait_for(lambda: answers(port))
        yield f"127.0.0.1:{port}", head


def cores(number: int) -> tuple[str, ...]:
    return ("--num-cpus", str(number), "--disable-usage-stats")


@pytest.mark.slow
def test_a_run_whose_ray_worker_is_killed_ends_as_the_one_started_by_hand(tmp_path):
    out = tmp_path / "grid"
    # So long that it is far from its end when it is killed.
    study = write_study(tmp_path, [0], steps=16_000)
    with cluster(num_cpus=2) as (address, head):
        grid = start_grid(study, out, "--address", address)
        wait_for_phase(out / "runs" / "fixed_s0", 1, grid)
        (worker,) = workers(head.pid, "ray::fixed_s0")
        os.kill(worker, signal.SIGKILL)
        said = finish(grid)
    assert "fixed_s0: its worker was killed" in said
    assert "it goes on from its last phase" in said
    names = [*read_records(out)]
    train_by_hand(out, names, tmp_path)
    assert_same_runs(out / "runs", tmp_path, names)


@pytest.mark.manual
@pytest.mark.parametrize("flags", [(), ("--bring-back",)])
def test_a_node_that_dies_loses_no_run(six, tmp_path, flags):
    study, folder, names = six
    out = tmp_path / "grid"
    with cluster(num_cpus=1) as (address, _):
        with node("--address", address, *cores(1)) as second:
            time.sleep(15.0)
            grid = start_grid(study, out, "--address", address, *flags)
            for name in names[:2]:  # Side by side, a node each.
                wait_for_phase(out / "runs" / name, 1, grid)
            kill_node(second)
            said = finish(grid)
    assert "it goes on from its last phase" in said
    assert_same_runs(out / "runs", folder / "hand", names)
    assert read_records(out) == read_records(folder / "grid")


@pytest.mark.manual
def test_the_head_that_dies_ends_the_grid_and_the_same_command_goes_on(six, tmp_path):
    study, folder, names = six
    out = tmp_path / "grid"
    with cluster(num_cpus=2) as (address, head):
        grid = start_grid(study, out, "--address", address)
        for name in names[:2]:
            wait_for_phase(out / "runs" / name, 1, grid)
        kill_node(head)
        said, _ = grid.communicate(timeout=PATIENCE_S)
    assert grid.returncode == 1
    assert "the head of the Ray cluster at" in said
    with cluster(num_cpus=2) as (address, _):
        finish(start_grid(study, out, "--address", address))
    assert_same_runs(out / "runs", folder / "hand", names)
    assert read_records(out) == read_records(folder / "grid")


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.manual
def test_a_full_disk_fails_the_run_and_harms_nothing(tmp_path):
    study = write_study(tmp_path, [0], steps=16_000)
    out = tmp_path / "grid"
    grid = start_grid(study, out, "--workers", "2", "--retries", "1")
    wait_for_phase(out / "runs" / "fixed_s0", 1, grid)
    # A folder that takes no more stands for the disk.
    evidence = out / "runs" / "fixed_s0" / "evidence"
    evidence.rename(out / "kept")
    evidence.write_text("")
    said, _ = grid.communicate(timeout=PATIENCE_S)
    assert grid.returncode == 1
    assert "failed: fixed_s0:" in said and "what they had committed is intact" in said
    assert [*read_records(out)] == ["horizon_s0"]
    evidence.unlink()
    (out / "kept").rename(evidence)
    finish(start_grid(study, out, "--workers", "2"))
    train_by_hand(out, ["fixed_s0"], tmp_path)
    assert_same_runs(out / "runs", tmp_path, ["fixed_s0"])
