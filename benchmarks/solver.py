"""The GPU solver's settings: speed, and distance from the CPU after a trot.

    python benchmarks/solver.py [cuda:0]

4096 worlds of Go2 and 31 generated bodies with all groups wide open and random targets
are timed; 256 worlds trot for 50 control steps, with a push, on the GPU and on the CPU.
"""

import sys
import time

import numpy as np
import torch

from horizon_rl.domains import AtLevels, paper_catalogue
from horizon_rl.physics import CpuBackend, Pool, sample_pool
from horizon_rl.physics.gpu import GpuBackend
from horizon_rl.robots import build_robot, generate, load_preset

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda:0"
SMALL = DEVICE == "cpu"
WORLDS, STEPS, PROBES, TROT = (8, 3, 8, 5) if SMALL else (4096, 150, 256, 50)
SETTINGS = [
    # iterations, line-search steps, loop in the graph, tolerance
    (20, 50, True, 1e-6),
    (20, 50, True, 1e-5),
    (20, 50, True, 1e-4),
    (20, 10, True, 1e-6),
    (20, 10, True, 1e-5),
    (10, 10, True, 1e-5),
    (8, 10, True, 1e-6),
    (8, 10, True, 1e-5),
    (6, 10, True, 1e-5),
    (8, 10, False, 1e-5),
    (6, 10, False, 1e-5),
    (5, 8, False, 1e-5),
    (4, 8, False, 1e-5),
]


class Tuned(GpuBackend):
    """A backend whose solver is set as `setting` says."""

    setting: tuple[int, int, bool, float] = SETTINGS[0]

    def _make_model(self) -> None:
        super()._make_model()
        option = self._model.opt
        option.iterations, option.ls_iterations, loops, tolerance = self.setting
        option.graph_conditional = loops
        option.tolerance.fill_(tolerance)


def draw(n: int, level: float, seed: int) -> Pool:
    catalogue = paper_catalogue()
    levels = AtLevels(dict.fromkeys(catalogue.names, level))
    bodies = [load_preset("go2"), *generate(np.random.default_rng(0), 31)]
    robots = [build_robot(body) for body in bodies]
    return sample_pool(robots, catalogue, levels, n, np.random.default_rng(seed))


def begin(backend, pool: Pool):
    n, device = backend.num_worlds, backend.device
    backend.load(pool)
    everyone = torch.ones(n, dtype=torch.bool, device=device)
    backend.reset(everyone, torch.arange(n, device=device))
    return backend


def trot(backend, pool: Pool):
    """Swing the legs for a second, with a push; return trunk and joint positions."""
    t = 0.02 * np.arange(TROT)[:, None]
    angle = 4.0 * np.pi * t + np.array([0.0, np.pi, np.pi, 0.0])
    swing = np.zeros((TROT, 4, 3))
    swing[:, :, 1], swing[:, :, 2] = 0.25 * np.sin(angle), -0.25 * np.cos(angle)
    targets = torch.from_numpy(pool.default_pose + swing.reshape(TROT, 1, 12)).float()
    push = torch.from_numpy(pool.push_velocity[:, 0]).float()
    for step, target in enumerate(targets):
        if step == 20:
            backend.push(push.to(backend.device))
        backend.step(target.to(backend.device))
    return backend.state.root_position.cpu(), backend.state.joint_position.cpu()


def time_steps(pool: Pool) -> tuple[float, list[int]]:
    backend = begin(Tuned(pool.robot, WORLDS, DEVICE), pool)
    rng = torch.Generator(DEVICE).manual_seed(0)
    pose = torch.from_numpy(pool.default_pose).float().to(DEVICE)
    noise = [torch.randn(pose.shape, generator=rng, device=DEVICE) for _ in range(16)]
    targets = [pose + 0.25 * n for n in noise]
    for i in range(10):
        backend.step(targets[i])
    finish()
    began = time.perf_counter()
    for i in range(STEPS):
        backend.step(targets[i % 16])
    finish()
    return (time.perf_counter() - began) / STEPS, backend._counts.tolist()


def finish() -> None:
    if not SMALL:
        torch.cuda.synchronize()


def main() -> None:
    wide = draw(WORLDS, 1.0, 1)
    probes = {level: draw(PROBES, level, 2) for level in (0.0, 1.0)}
    truth = {
        level: trot(begin(CpuBackend(pool.robot, PROBES), pool), pool)
        for level, pool in probes.items()
    }
    print(
        "iterations, line search, loop, tolerance | env-steps/s, ms | unhealthy, capped"
    )
    print("   level: distance from the CPU, trunk m and joints rad, median and 90 %")
    for setting in SETTINGS[: 2 if SMALL else None]:
        Tuned.setting = setting
        cost, (unhealthy, _, capped) = time_steps(wide)
        print(
            *setting, f"| {WORLDS / cost:,.0f} {1e3 * cost:.2f} | {unhealthy} {capped}"
        )
        for level, pool in probes.items():
            found = trot(begin(Tuned(pool.robot, PROBES, DEVICE), pool), pool)
            gaps = (
                (a - b).abs().amax(dim=1)
                for a, b in zip(found, truth[level], strict=True)
            )
            words = (f"{g.median():.1e} {g.quantile(0.9):.1e}" for g in gaps)
            print(f"   {level:g}:", ", ".join(words), flush=True)


if __name__ == "__main__":
    main()
