"""Kill processes at random moments, resume, and compare what is left with a whole run."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import NamedTuple

MAX_STARTS = 60
"""A training that was started so often has had time enough to end, many times over."""
MAX_GRID_STARTS = 8
"""A run of a grid that was killed too often is left for the next start."""


class Found(NamedTuple):
    """What came of one target."""

    kills: int
    """Processes that died of it."""
    starts: int | None
    """Of these, how many had not written a line of their journal; None: not counted."""
    runs: int
    """Runs that were killed until they ended, each compared with a whole one."""
    lost: int
    """Runs that ended otherwise, or could not go on."""


def kill_rehearsals(kills: int, folder: Path, method: str = "horizon") -> Found:
    """Rehearsals in forked processes, killed as their journals grow."""
    program = Path(__file__).parents[1] / "rehearsal" / "test_kills.py"
    command = [sys.executable, str(program), method, str(folder), str(kills)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    for run in runs:
        if run["problem"]:
            print(f"rehearsal: {run}", file=sys.stderr)
    return Found(
        kills=sum(run["kills"] for run in runs),
        starts=sum(run["starts"] for run in runs),
        runs=len(runs),
        # One that ended the program itself has no line.
        lost=sum(bool(run["problem"]) for run in runs) + (done.returncode != 0),
    )


def kill_trainings(kills: int, folder: Path) -> Found:
    """Trainings of two phases by the preset `smoke`, in forked processes."""
    from killing import assert_ends_as, fork, wait
    from small_runs import finish, resume

    from horizon_rl.domains import paper_catalogue
    from horizon_rl.runs.paths import has_run
    from horizon_rl.training.presets import preset_cfg
    from horizon_rl.training.run import Run

    warnings.simplefilter("ignore")  # Torn lines are what this is about.
    cfg = replace(preset_cfg("smoke", "mlp"), steps=3000)

    def train(path: Path) -> int:
        def work() -> None:
            begun = has_run(path)
            new = None if begun else Run.create(cfg, paper_catalogue(), path, "cpu")
            finish(new or resume(path))

        return fork(work)

    whole, began = folder / "whole", time.perf_counter()
    assert wait(train(whole)) == 0
    reach_s = 0.6 * (time.perf_counter() - began)
    rng, hits, starts, runs, lost = random.Random(0), 0, 0, 0, 0
    while hits < kills and runs < 10 * kills:
        path, patience_s = folder / f"run-{runs}", reach_s
        runs, status, num_starts = runs + 1, -signal.SIGKILL, 0
        while status == -signal.SIGKILL and num_starts < MAX_STARTS:
            pid = train(path)
            if runs % 2 and not num_starts:  # Every other one as it begins, too.
                _wait_for(path, 10.0 * reach_s)
                time.sleep(rng.uniform(0.0, 0.02))
            else:
                time.sleep(rng.uniform(0.0, patience_s))
            os.kill(pid, signal.SIGKILL)
            status = wait(pid)
            num_starts += 1
            hits += status == -signal.SIGKILL
            starts += status == -signal.SIGKILL and not has_run(path)
            patience_s *= 1.1  # It must get to its end some time.
        try:
            assert status == 0, f"it ended with {status} at start {num_starts}"
            assert_ends_as(path, whole)
        except AssertionError as error:
            print(f"training {runs}: {error}", file=sys.stderr)
            lost += 1
        shutil.rmtree(path, ignore_errors=True)
    lost += hits < kills  # Hardly a kill came in time.
    return Found(hits, starts, runs, lost)


def _wait_for(path: Path, patience_s: float) -> None:
    """Wait until a directory is there, but not for ever."""
    began = time.perf_counter()
    while not path.exists() and time.perf_counter() - began < patience_s:
        time.sleep(1e-3)


def kill_grids(kills: int, folder: Path) -> Found:
    """Commands of a grid of two runs."""
    import grids

    names = ["horizon_s0", "fixed_s0"]
    rng, hits, runs, lost = random.Random(0), 0, 0, 0
    while hits < kills and not lost:
        place = folder / f"grid-{runs}"
        place.mkdir()
        study, code, said = grids.write_study(place, [0], steps=6000), 1, ""
        for _ in range(MAX_GRID_STARTS):
            grid = grids.start_grid(study, place / "out", "--workers", "2")
            with _ended_after(grid, grids.PATIENCE_S):
                hits += grids.kill_at_random(grid, min(4, kills - hits), rng)
                said, _ = grid.communicate()
            if (code := grid.returncode) == 0:
                break
        runs += 1
        try:
            assert code == 0, f"still not done after {MAX_GRID_STARTS} starts:\n{said}"
            hand = folder / "hand"
            if not hand.exists():
                with redirect_stdout(io.StringIO()):
                    grids.train_by_hand(place / "out", names, hand)
            grids.assert_same_runs(place / "out" / "runs", hand, names)
        except AssertionError as error:
            print(f"grid {runs}: {error}", file=sys.stderr)
            lost += 1  # What it took the next one would take, too.
    return Found(hits, None, runs, lost)


@contextmanager
def _ended_after(grid: subprocess.Popen[str], patience_s: float) -> Iterator[None]:
    """End a grid that takes too long, and all its processes."""
    from grids import descendants

    def end() -> None:
        for process in (*descendants(grid.pid), grid.pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    timer = Timer(patience_s, end)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


TARGETS: dict[str, tuple[float, Callable[[int, Path], Found]]] = {
    "rehearse": (0.7, kill_rehearsals),
    "train": (0.27, kill_trainings),
    "grid": (0.03, kill_grids),
}
"""Each with its share of the kills: those that cost least get most."""


def campaign(kills: int, only: str | None) -> int:
    print("| killed | kills | at the start | runs | not equal to the bit | min |")
    print("|---|---:|---:|---:|---:|---:|")
    lost = 0
    for name, (share, attack) in TARGETS.items():
        if only not in (None, name):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            count = kills if only else round(share * kills)
            found = attack(count, Path(folder))
        minutes = (time.monotonic() - began) / 60.0
        starts = "" if found.starts is None else found.starts
        row = (f"`{name}`", found.kills, starts, found.runs, found.lost)
        print(f"| {' | '.join(map(str, row))} | {minutes:.1f} |", flush=True)
        lost += found.lost
    return int(lost > 0)
