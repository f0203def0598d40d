"""The trainer: robots, worlds and a learner, trained segment by segment.

A segment starts from what was learnt so far, with all worlds reset and all randomness
derived from (seed, segment). So its end is the only thing that needs saving: a run that
is killed and resumed there gives the same result to the bit.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from tensordict import TensorDict

from horizon_rl.curriculum import phase_rng
from horizon_rl.domains import Catalogue, Ranges
from horizon_rl.errors import InputError
from horizon_rl.learning import LearnedPolicy, build_learner
from horizon_rl.physics import CpuBackend, cores_for_physics, sample_pool
from horizon_rl.robots import (
    REFERENCE,
    Robot,
    build_robot,
    generate,
    load_body,
    load_preset,
    preset_names,
)
from horizon_rl.task import (
    NUM_ACTIONS,
    EpisodeTable,
    Scenarios,
    VelocityEnv,
    draw_scenarios,
    rollout,
    succeeded,
)
from horizon_rl.training.config import TrainCfg

PROBE = 1 << 31
"""Segment number whose randomness probes use: no training segment gets there."""


@dataclass(frozen=True)
class Iteration:
    """What one iteration of collecting and learning showed."""

    number: int
    """Iterations done, this one included."""
    env_steps: int
    """Environment steps done."""
    collect_s: float
    learn_s: float
    reward: float
    """Mean reward per control step."""
    episode_length: float | None
    """Mean length of the episodes that ended lately, as a share of the longest."""
    tracking_error: float | None
    """Their mean tracking error, m/s."""
    figures: dict[str, float]
    """The update's own figures."""


class Trainer:
    """Everything a run needs in memory."""

    def __init__(self, cfg: TrainCfg, catalogue: Catalogue, num_threads: int = 0):
        self.cfg, self.catalogue = cfg, catalogue
        self.ranges: Ranges = catalogue.ranges(catalogue.parse_levels(cfg.levels))
        rng = np.random.default_rng(cfg.seed)
        self.robots = choose_robots(cfg, rng)
        backend = CpuBackend(self.robots[0], cfg.num_envs, num_threads)
        self.env = VelocityEnv(backend, cfg.task)
        torch.manual_seed(int(rng.integers(1 << 62)))
        observations = self.env.begin(self._scenarios(4, rng), 0)
        self.learner = build_learner(
            observations, NUM_ACTIONS, cfg.num_envs, cfg.learner, self.env.device
        )
        self.iteration = 0
        self.segment = 0

    @property
    def env_steps(self) -> int:
        return self.iteration * self.cfg.steps_per_iteration

    def run_segment(self) -> Iterator[Iteration]:
        """Train one segment, yielding after every iteration."""
        rng = phase_rng(self.cfg.seed, self.segment)
        scenarios = self._scenarios(self.cfg.rows_per_env * self.cfg.num_envs, rng)
        torch.manual_seed(int(rng.integers(1 << 62)))
        observations = self.env.begin(scenarios, int(rng.integers(1 << 62)))
        self.learner.forget()
        for _ in range(self.cfg.segment_iterations):
            observations, iteration = self._iterate(observations)
            yield iteration
        self.segment += 1

    def probe(self, num_episodes: int, seed: int) -> EpisodeTable:
        """Run fresh episodes with mean actions; training is not affected."""
        rng = phase_rng(seed, PROBE)
        scenarios = self._scenarios(num_episodes, rng)
        policy = LearnedPolicy(self.learner.actor)
        return rollout(self.env, policy, scenarios, seed=int(rng.integers(1 << 62)))

    def _iterate(self, observations: TensorDict) -> tuple[TensorDict, Iteration]:
        learner, env = self.learner, self.env
        began = time.perf_counter()
        total = torch.zeros((), device=env.device)
        with torch.no_grad(), cores_for_physics(env.backend):
            for _ in range(self.cfg.learner.ppo.num_steps):
                actions = learner.act(observations)
                observations, reward, done, extras = env.step(actions)
                learner.process_env_step(observations, reward, done, extras)
                total += reward.mean()
            learner.compute_returns(observations)
        collected = time.perf_counter()
        figures = learner.update()
        self.iteration += 1
        length, error = _recent(env.episodes.table(), env.max_episode_length)
        return observations, Iteration(
            number=self.iteration,
            env_steps=self.env_steps,
            collect_s=collected - began,
            learn_s=time.perf_counter() - collected,
            reward=float(total) / self.cfg.learner.ppo.num_steps,
            episode_length=length,
            tracking_error=error,
            figures=figures,
        )

    def _scenarios(self, n: int, rng: np.random.Generator) -> Scenarios:
        pool = sample_pool(self.robots, self.catalogue, self.ranges, n, rng)
        return draw_scenarios(pool, self.cfg.task, rng)


def choose_robots(cfg: TrainCfg, rng: np.random.Generator) -> list[Robot]:
    """Build the bodies a run trains on; every scenario draws one of them evenly."""
    match cfg.robot:
        case "generated":
            bodies = generate(rng, cfg.num_bodies)
        case "mixed":
            others = [load_preset(name) for name in preset_names() if name != REFERENCE]
            others += generate(rng, cfg.num_bodies)
            bodies = [load_preset(REFERENCE)] * len(others) + others
        case name:
            try:
                bodies = [load_body(name)]
            except InputError as error:
                raise InputError(f"{error}; or generated, mixed") from error
    built = {body.name: build_robot(body) for body in bodies}
    return [built[body.name] for body in bodies]


def success_rate(episodes: EpisodeTable, longest: int) -> float:
    """Return the share of episodes that are a success."""
    return float(np.mean(succeeded(episodes, longest)))


def _recent(
    episodes: EpisodeTable, longest: int, count: int = 100
) -> tuple[float | None, float | None]:
    if len(episodes) == 0:
        return None, None
    length = float(np.mean(episodes.length[-count:])) / longest
    return length, float(np.mean(episodes.tracking_error[-count:]))
