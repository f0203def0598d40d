"""The trainer: robots, worlds and a learner, trained segment by segment.

A segment starts from what was learnt so far, with all worlds reset and all randomness
derived from (seed, segment, rank). So its end is the only thing that needs saving: a run that
is killed and resumed there gives the same result to the bit.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from tensordict import TensorDict

from horizon_rl.curriculum import phase_rng
from horizon_rl.domains import Catalogue, Ranges
from horizon_rl.errors import InputError
from horizon_rl.graphs import is_on
from horizon_rl.learning import LearnedPolicy, build_learner
from horizon_rl.physics import cores_for_physics, make_backend, sample_pool
from horizon_rl.ranks import ALONE, Ranks
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
from horizon_rl.training.clock import Clock
from horizon_rl.training.config import TrainCfg

PROBE = 1 << 31
"""Segment number whose randomness probes use: no training segment gets there."""

RECENT = 100
"""Episodes that an iteration's figures are the mean of: the last ones."""


@dataclass(frozen=True)
class Iteration:
    """What one iteration of collecting and learning showed."""

    number: int
    """Iterations done, this one included."""
    env_steps: int
    """Environment steps done, by all ranks."""
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


class Draw(NamedTuple):
    """All that is random about a segment before it starts."""

    scenarios: Scenarios
    torch_seed: int
    env_seed: int


class Trainer:
    """Everything a run needs in memory; of several ranks, each has one."""

    def __init__(
        self,
        cfg: TrainCfg,
        catalogue: Catalogue,
        num_threads: int = 0,
        device: str = "auto",
        ranks: Ranks = ALONE,
    ):
        """Build robots, worlds and learner.

        Args:
            cfg: What to train.
            catalogue: The groups of parameters.
            num_threads: Threads of the physics on a CPU; 0 is one per core.
            device: Where: auto, cpu, cuda, cuda:1, ...
            ranks: Who else trains. Bodies and weights are those of all, scenarios and
                action noise of this rank alone.
        """
        self.cfg, self.catalogue, self.ranks = cfg, catalogue, ranks
        self.ranges: Ranges = catalogue.ranges(catalogue.parse_levels(cfg.levels))
        rng = np.random.default_rng(cfg.seed)
        self.robots = choose_robots(cfg, rng)
        num_threads = num_threads or ranks.num_threads
        backend = make_backend(self.robots[0], cfg.num_envs, device, num_threads)
        allow_fast_matmul(backend.device)
        self.env = VelocityEnv(backend, cfg.task)
        torch.manual_seed(int(rng.integers(1 << 62)))
        observations = self.env.begin(self._scenarios(4, rng), 0)
        self.learner = build_learner(
            observations, NUM_ACTIONS, cfg.num_envs, cfg.learner, self.env.device, ranks
        )
        self.iteration = 0
        self.segment = 0
        self._ahead: dict[int, Future[Draw]] = {}

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of an iteration, by all ranks."""
        return self.ranks.size * self.cfg.steps_per_iteration

    @property
    def env_steps(self) -> int:
        return self.iteration * self.steps_per_iteration

    def run_segment(self) -> Iterator[Iteration]:
        """Train one segment, yielding after every iteration."""
        ahead = self._ahead.pop(self.segment, None)
        draw = ahead.result() if ahead else self._draw(self.segment)
        torch.manual_seed(draw.torch_seed)
        observations = self.env.begin(draw.scenarios, draw.env_seed)
        self.learner.forget()
        self._draw_ahead(self.segment + 1)
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
        clock = Clock(env.device)
        total = torch.zeros((), device=env.device)
        with torch.no_grad(), cores_for_physics(env.backend):
            for _ in range(self.cfg.learner.ppo.num_steps):
                actions = learner.act(observations)
                observations, reward, done, extras = env.step(actions)
                learner.process_env_step(observations, reward, done, extras)
                total += reward.mean()
            learner.compute_returns(observations)
        clock.mark()
        figures = learner.update()
        clock.mark()
        self.iteration += 1
        num_ended, length, error = env.episodes.recent(RECENT)
        shown = torch.stack((total, num_ended, num_ended * length, num_ended * error))
        self.ranks.average(shown)
        reward, num_ended, length, error = shown.tolist()
        collect_s, learn_s = clock.seconds()
        return observations, Iteration(
            number=self.iteration,
            env_steps=self.env_steps,
            collect_s=collect_s,
            learn_s=learn_s,
            reward=reward / self.cfg.learner.ppo.num_steps,
            episode_length=(
                length / num_ended / env.max_episode_length if num_ended else None
            ),
            tracking_error=error / num_ended if num_ended else None,
            figures=figures,
        )

    def _draw(self, segment: int) -> Draw:
        """Draw a segment's scenarios and seeds: they hang on its number and the rank."""
        rng = phase_rng(self.cfg.seed, segment, self.ranks.rank)
        scenarios = self._scenarios(self.cfg.rows_per_env * self.cfg.num_envs, rng)
        return Draw(scenarios, int(rng.integers(1 << 62)), int(rng.integers(1 << 62)))

    def _draw_ahead(self, segment: int) -> None:
        """Draw a segment while a GPU trains the one before it; a CPU is busy."""
        if self.env.device.type == "cpu":
            return
        worker = ThreadPoolExecutor(max_workers=1)
        self._ahead = {segment: worker.submit(self._draw, segment)}
        worker.shutdown(wait=False)

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


def allow_fast_matmul(device: torch.device) -> None:
    """Let a GPU multiply matrices of single floats in TF32, unless HORIZON_TF32=0.

    Inputs are rounded to 10 bits, sums stay in single precision.
    """
    if device.type == "cuda" and is_on("HORIZON_TF32"):
        torch.set_float32_matmul_precision("high")
