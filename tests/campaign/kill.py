"""Kill processes at random moments, resume, and compare what is left with a whole run."""

import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple


class Found(NamedTuple):
    """What came of one target."""

    kills: int
    runs: int
    """Runs that were killed until they ended, each compared with a whole one."""
    lost: int
    """Runs that ended otherwise, or could not go on."""


def kill_rehearsals(kills: int, folder: Path, method: str = "horizon") -> Found:
    """Rehearsals in forked processes, killed as their journals grow."""
    program = Path(__file__).parents[1] / "rehearsal" / "test_kills.py"
    command = [sys.executable, str(program), method, str(folder), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr)
    runs = len(list(folder.glob("run-*")))
    return Found(kills, runs, int(done.returncode != 0))


def kill_trainings(kills: int, folder: Path) -> Found:
    """Trainings of two phases by the preset `smoke`, in forked processes."""
    from killing import assert_ends_as, run_in_child, wait

    from horizon_rl.domains import paper_catalogue
    from horizon_rl.training.presets import preset_cfg
    from horizon_rl.training.run import Run

    warnings.simplefilter("ignore")  # Torn lines are what this is about.
    cfg = replace(preset_cfg("smoke", "mlp"), steps=3000)
    fresh, whole = folder / "fresh", folder / "whole"
    for path in (fresh, whole):
        Run.create(cfg, paper_catalogue(), path, "cpu").close()
    began = time.perf_counter()
    assert wait(run_in_child(whole)) == 0
    reach_s = 0.6 * (time.perf_counter() - began)
    rng, hits, runs, lost = random.Random(0), 0, 0, 0
    while hits < kills:
        path = shutil.copytree(fresh, folder / f"run-{runs}")
        runs, status, patience_s = runs + 1, -signal.SIGKILL, reach_s
        while status == -signal.SIGKILL:
            pid = run_in_child(path)
            time.sleep(rng.uniform(0.0, patience_s))
            os.kill(pid, signal.SIGKILL)
            status = wait(pid)
            hits += status == -signal.SIGKILL
            patience_s *= 1.1  # It must get to its end some time.
        try:
            assert status == 0
            assert_ends_as(path, whole)
        except AssertionError:
            lost += 1
        shutil.rmtree(path)
    return Found(hits, runs, lost)


def kill_grids(kills: int, folder: Path) -> Found:
    """Workers of a grid of two runs, and the commands that they started."""
    from grids import (
        assert_same_runs,
        kill_at_random,
        start_grid,
        train_by_hand,
        write_study,
    )

    names = ["horizon_s0", "fixed_s0"]
    rng, hits, runs, lost = random.Random(0), 0, 0, 0
    while hits < kills:
        place = folder / f"grid-{runs}"
        place.mkdir()
        study, code = write_study(place, [0], steps=6000), 1
        while code != 0:  # A run that was killed too often is left for the next start.
            grid = start_grid(study, place / "out", "--workers", "2")
            hits += kill_at_random(grid, min(4, kills - hits), rng)
            grid.communicate()
            code = grid.returncode
        runs += 1
        try:
            hand = folder / "hand"
            if not hand.exists():
                with redirect_stdout(io.StringIO()):
                    train_by_hand(place / "out", names, hand)
            assert_same_runs(place / "out" / "runs", hand, names)
        except AssertionError as error:
            print(f"grid {runs}: {error}", file=sys.stderr)
            lost += 1
    return Found(hits, runs, lost)


TARGETS: dict[str, tuple[float, Callable[[int, Path], Found]]] = {
    "rehearse": (0.7, kill_rehearsals),
    "train": (0.27, kill_trainings),
    "grid": (0.03, kill_grids),
}
"""Each with its share of the kills: those that cost least get most."""


def campaign(kills: int, only: str | None) -> int:
    print(
        "| killed | kills | runs, each resumed to its end | not equal to the bit | min |"
    )
    print("|---|---:|---:|---:|---:|")
    lost = 0
    for name, (share, attack) in TARGETS.items():
        if only not in (None, name):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            count = kills if only else round(share * kills)
            found = attack(count, Path(folder))
        minutes = (time.monotonic() - began) / 60.0
        row = (f"`{name}`", found.kills, found.runs, found.lost, f"{minutes:.1f}")
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        lost += found.lost
    return int(lost > 0)
