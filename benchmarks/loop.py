"""The whole training loop, part by part: half Go2, half other bodies, all groups wide.

    python benchmarks/loop.py transformer 4096
    python benchmarks/loop.py transformer 16384 update

The third argument is what `torch.compile` compiles: none, task, update or all. Prints
milliseconds per iteration on the device's clock. `horizon bench train` measures
the same loop with fewer parts.
"""

import dataclasses
import sys
import time
from collections import Counter
from statistics import median
from typing import Any

import torch

from horizon_rl.bench.stopwatch import Stopwatch, count_waits, finish
from horizon_rl.domains import AtLevels, paper_catalogue
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.presets import preset_cfg
from horizon_rl.training.worlds import SimulatedWorlds

WARM_UP, MEASURED = 4, 6


def main(policy: Any, num_envs: int, compile: Any = "none") -> None:
    cfg = preset_cfg("paper", policy)
    cfg = dataclasses.replace(
        cfg,
        learner=dataclasses.replace(cfg.learner, compile=compile),
        num_envs=num_envs,
        robot="mixed",
        levels="all=1",
        phase_iterations=1 << 30,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.perf_counter()
    worlds = SimulatedWorlds(cfg, paper_catalogue(), device)
    learner, env = TorchLearner(worlds, paper_catalogue()), worlds.env
    on, algorithm = env.device, learner.algorithm
    watches = {
        "act": Stopwatch(algorithm, "act", on),
        "env": Stopwatch(env, "step", on),
        "physics": Stopwatch(env.backend, "step", on),
        "push": Stopwatch(env.backend, "push", on),
        "reset": Stopwatch(env.backend, "reset", on),
        "process": Stopwatch(algorithm, "process_env_step", on),
        "returns": Stopwatch(algorithm, "compute_returns", on),
    }
    worlds.begin(0, AtLevels({}))
    learner.begin(worlds)
    for _ in range(WARM_UP):
        learner.iterate(worlds)
        finish(on)
        for watch in watches.values():
            watch.lap()
    print(f"start-up {time.perf_counter() - began:.1f} s")
    rows, began = [], time.perf_counter()
    for _ in range(MEASURED):
        last = learner.iterate(worlds)
        laps = [watch.lap() for watch in watches.values()]
        rows.append([last.collect_s, last.learn_s, *laps])
    finish(on)
    whole = (time.perf_counter() - began) / MEASURED
    names = ["collect", "learn", *watches]
    columns = zip(*rows, strict=True)
    for name, column in zip(names, columns, strict=True):
        print(f"{name:8} {1e3 * median(column):8.2f} ms")
    print(
        f"all      {1e3 * whole:8.2f} ms: {cfg.steps_per_iteration / whole:,.0f} steps/s"
    )
    with count_waits(on) as waits:
        learner.iterate(worlds)
    print(f"host waits in an iteration: {len(waits)}", Counter(waits).most_common(4))
    print(env.backend.counters)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
