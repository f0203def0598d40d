"""Methods side by side on one GPU: train, resume, and evaluate at equal env steps.

    python benchmarks/methods.py OUT --steps 60e6 --marks 10,20,40,60 \
        "horizon" "fixed-0.5: --method fixed --levels 0.5" "paper: --method paper"

Every run is `horizon train` in a process of its own; a name without flags is a method.
What is there already is resumed or left alone. At every mark (million env steps) the
checkpoint that the run would go on from there is evaluated on `all` at four severities,
development draw; the area is the mean success of the four. Rows go to OUT/curve.jsonl as
they come.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from horizon_rl.curriculum import last_checkpoint
from horizon_rl.evaluation.suite import FrozenColumn
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.physics import make_backend
from horizon_rl.policies.load import load_policy
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import JOURNAL, checkpoint_folder, journal_of
from horizon_rl.task import (
    SuccessCfg,
    VelocityEnv,
    join_scenarios,
    rollout,
    succeeded,
)

SEVERITIES = (0.0, 0.25, 0.5, 0.75, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", nargs="*", help="NAME or 'NAME: FLAGS'")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--steps", type=float, default=60e6)
    parser.add_argument("--marks", default="10,20,40,60")
    parser.add_argument("--flags", default="--preset gpu --policy mlp --num-envs 2048")
    parser.add_argument("--jobs", type=int, default=8, help="runs side by side")
    parser.add_argument("--minutes", type=float, default=9.0, help="stop training then")
    parser.add_argument("--scenarios", type=int, default=256, help="0: train only")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--evaluate", help="(internal) evaluate one run")
    args = parser.parse_intermixed_args()
    if args.evaluate:
        evaluate(args)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    todo = []
    for seed in map(int, args.seeds.split(",")):
        for run in args.runs:
            name, _, flags = run.partition(":")
            flags = flags.split() or ["--method", name]
            todo.append((f"{name}-s{seed}", [*flags, "--seed", str(seed)]))
    deadline = time.monotonic() + 60.0 * args.minutes
    with ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(train_and_evaluate, args, *job, deadline) for job in todo]
        for job in jobs:
            job.result()
    print_table(args.out / "curve.jsonl")


def train_and_evaluate(args, name: str, flags: list[str], deadline: float) -> None:
    run = args.out / name
    if time.monotonic() > deadline - 20.0:
        return
    command = [sys.executable, "-m", "horizon_rl", "train", "--table", "0"]
    command += ["--device", args.device, "--steps", str(int(args.steps))]
    if (run / JOURNAL).exists():
        command += ["--resume", str(run)]
    else:
        command += [*args.flags.split(), *flags, "--run", str(run)]
    with open(args.out / f"{name}.log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
        try:
            process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        if not args.scenarios:
            return
        own = [sys.executable, __file__, str(args.out), "--evaluate", name]
        own += ["--marks", args.marks, "--device", args.device]
        own += ["--scenarios", str(args.scenarios)]
        subprocess.run(own, stdout=log, stderr=log, env=environment(), check=False)


def environment() -> dict[str, str]:
    # One thread each: sixteen cores for many processes.
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def evaluate(args) -> None:
    """Evaluate a run's checkpoints at the marks that it has passed."""
    run = args.out / args.evaluate
    entries = replay(journal_of(run)).entries
    points, total = [], 0
    for number, entry in enumerate(entries, start=1):
        total += entry.evidence.env_steps
        # After a rollback it is the last commit's, not what a held phase has saved.
        if named := last_checkpoint(entries[:number]):
            points.append((total, checkpoint_folder(run, named.name)))
    columns = [_column(severity) for severity in SEVERITIES]
    n, task = args.scenarios, columns[0].task
    # One rollout for all severities: a GPU wants many worlds.
    scenarios = join_scenarios([column.scenarios(n) for column in columns])
    backend = make_backend(columns[0].robot, len(scenarios), args.device, 1)
    env = VelocityEnv(backend, task)
    done: dict[Path, dict] = {}
    for mark in [1e6 * float(m) for m in args.marks.split(",")]:
        # A phase ends where it ends: a twentieth beyond the mark still counts.
        known = [point for point in points if point[0] <= 1.05 * mark]
        if total < 0.9 * mark or not known:
            continue
        steps, folder = known[-1]
        if folder not in done:
            policy = load_policy(str(folder)).make(env.device)
            found = rollout(env, policy, scenarios, columns[0].noise_seed)
            won = succeeded(found, task.max_steps, SuccessCfg()).reshape(-1, n)
            error = found.tracking_error.reshape(-1, n)
            done[folder] = {
                f"{severity:g}": {
                    "success": float(won[i].mean()),
                    "tracking_error": float(error[i].mean()),
                }
                for i, severity in enumerate(SEVERITIES)
            }
        row = done[folder]
        record = {
            "run": args.evaluate,
            "mark_m": mark / 1e6,
            "env_steps": steps,
            "area": sum(row[f"{s:g}"]["success"] for s in SEVERITIES[1:]) / 4.0,
            **{f"success_{s}": round(v["success"], 4) for s, v in row.items()},
            "error_0": row["0"]["tracking_error"],
            "error_0.5": row["0.5"]["tracking_error"],
        }
        with open(args.out / "curve.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")


def _column(severity: float) -> FrozenColumn:
    suite = load_suite("ood", severity)
    return suite.frozen["all"]


def print_table(file: Path) -> None:
    rows = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        row = json.loads(line)
        rows[row["mark_m"], row["run"]] = row
    for (mark, name), row in sorted(rows.items()):
        shown = " ".join(f"{100 * row[f'success_{s:g}']:5.1f}" for s in SEVERITIES)
        print(
            f"{mark:5.0f} M {name:24} at {row['env_steps'] / 1e6:5.1f} M  area "
            f"{100 * row['area']:5.1f}  at 0 .25 .5 .75 1: {shown}  error "
            f"{row['error_0']:.3f}"
        )


if __name__ == "__main__":
    main()
