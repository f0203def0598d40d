"""Robots and scenarios small enough for tests."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")

from horizon_rl.domains import InRanges, Range, paper_catalogue
from horizon_rl.physics import CpuBackend, sample_pool
from horizon_rl.robots import build_robot, load_preset
from horizon_rl.task import (
    NoiseCfg,
    RewardCfg,
    TaskCfg,
    VelocityEnv,
    draw_scenarios,
)

QUIET = NoiseCfg(angular_velocity=0, gravity=0, joint_position=0, joint_velocity=0)


PAPERS = RewardCfg()


@pytest.fixture(scope="session")
def go2():
    return build_robot(load_preset("go2"))


@pytest.fixture
def make_env(go2):
    def make(num_envs: int = 4, rewards: RewardCfg = PAPERS, **changes) -> VelocityEnv:
        cfg = TaskCfg(**{"noise": QUIET, **changes})
        backend = CpuBackend(go2, num_envs)
        return VelocityEnv(backend, cfg, rewards=rewards)

    return make


@pytest.fixture
def make_scenarios(go2):
    def make(cfg: TaskCfg, m: int = 8, seed: int = 0, levels=None, **exact):
        """Draw m scenarios on Go2; `exact` sets parameters, `mass__scale=5.0`."""
        catalogue = paper_catalogue()
        ranges = catalogue.ranges(levels or {})
        for name, value in exact.items():
            ranges[name.replace("__", ".")] = Range(value, value)
        rng = np.random.default_rng(seed)
        pool = sample_pool([go2], catalogue, InRanges(ranges), m, rng)
        return draw_scenarios(pool, cfg, rng)

    return make
