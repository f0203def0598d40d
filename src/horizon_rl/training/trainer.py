"""The trainer: robots, worlds and a learner, trained phase by phase.

A phase starts from what was learnt so far, with all worlds reset and all randomness
derived from (seed, phase, rank). So its end is the only thing that needs saving: a run
that is killed and resumed there gives the same result to the bit.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tensordict import TensorDict

from horizon_rl.curriculum import phase_rng
from horizon_rl.domains import AtLevels, Catalogue
from horizon_rl.learning import build_learner
from horizon_rl.physics import cores_for_physics, make_backend, sample_pool
from horizon_rl.robots import (
    REFERENCE,
    Robot,
    build_robot,
    generate,
    load_body,
    load_mjcf,
    load_preset,
    preset_names,
)
from horizon_rl.support.errors import InputError
from horizon_rl.support.graphs import is_on
from horizon_rl.support.ranks import ALONE, Ranks
from horizon_rl.support.timers import Clock
from horizon_rl.task import NUM_ACTIONS, Scenarios, VelocityEnv, draw_scenarios
from horizon_rl.training.config import TrainCfg

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


_Ahead = tuple[int, tuple[tuple[str, float], ...]]
"""A phase drawn ahead: its number and its levels."""


class Draw(NamedTuple):
    """All that is random about a phase before it starts."""

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
        self.fixed = catalogue.parse_levels(cfg.levels)
        """Levels of groups that the run does not widen."""
        rng = np.random.default_rng(cfg.seed)
        self.robots = choose_robots(cfg, rng)
        num_threads = num_threads or ranks.num_threads
        backend = make_backend(self.robots[0], cfg.num_envs, device, num_threads)
        allow_fast_matmul(backend.device)
        # Enough for the fair episodes of a phase even if they last eight steps each.
        max_records = cfg.num_envs * max(4, cfg.task.max_steps // 8)
        self.env = VelocityEnv(backend, cfg.task, max_records)
        torch.manual_seed(int(rng.integers(1 << 62)))
        observations = self.env.begin(self.draw_scenarios({}, 4, rng), 0)
        self.learner = build_learner(
            observations, NUM_ACTIONS, cfg.num_envs, cfg.learner, self.env.device, ranks
        )
        self.iteration = 0
        """Iterations done, rolled-back ones included."""
        self.env_steps = 0
        """Environment steps done by all ranks, probes included."""
        self._ahead: dict[_Ahead, Future[Draw]] = {}

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of an iteration, by all ranks."""
        return self.ranks.size * self.cfg.steps_per_iteration

    def run_phase(self, phase: int, levels: Mapping[str, float]) -> Iterator[Iteration]:
        """Train one phase, yielding after every iteration."""
        ahead = self._ahead.pop(_key(phase, levels), None)
        draw = ahead.result() if ahead else self._draw(phase, levels)
        # Of what was drawn, the other outcome of the phase before is of no use now.
        self._ahead = {key: d for key, d in self._ahead.items() if key[0] > phase}
        torch.manual_seed(draw.torch_seed)
        observations = self.env.begin(draw.scenarios, draw.env_seed)
        self.learner.forget()
        for _ in range(self.cfg.iterations):
            observations, iteration = self._iterate(observations)
            yield iteration

    def draw_ahead(self, phase: int, levels: Mapping[str, float]) -> None:
        """Draw a phase that may come while a GPU trains another; a CPU is busy."""
        key = _key(phase, levels)
        if self.env.device.type == "cpu" or key in self._ahead:
            return
        worker = ThreadPoolExecutor(max_workers=1)
        self._ahead[key] = worker.submit(self._draw, phase, dict(levels))
        worker.shutdown(wait=False)

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
        # Before the update, which may be refused: the steps are spent all the same.
        self.iteration += 1
        self.env_steps += self.steps_per_iteration
        figures = learner.update()
        clock.mark()
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

    def _draw(self, phase: int, levels: Mapping[str, float]) -> Draw:
        """Draw a phase's scenarios and seeds: they hang on its number and the rank."""
        rng = phase_rng(self.cfg.seed, phase, self.ranks.rank)
        n = self.cfg.rows_per_env * self.cfg.num_envs
        scenarios = self.draw_scenarios(levels, n, rng)
        return Draw(scenarios, int(rng.integers(1 << 62)), int(rng.integers(1 << 62)))

    def draw_scenarios(
        self, levels: Mapping[str, float], n: int, rng: np.random.Generator
    ) -> Scenarios:
        """Draw n scenarios at `levels`; groups that the run does not widen stay put."""
        distribution = AtLevels({**self.fixed, **levels})
        pool = sample_pool(self.robots, self.catalogue, distribution, n, rng)
        return draw_scenarios(pool, self.cfg.task, rng)


def _key(phase: int, levels: Mapping[str, float]) -> _Ahead:
    return phase, tuple(sorted(levels.items()))


def choose_robots(cfg: TrainCfg, rng: np.random.Generator) -> list[Robot]:
    """Build the bodies a run trains on; every scenario draws one of them evenly."""
    match cfg.robot:
        case "generated":
            bodies = generate(rng, cfg.num_bodies)
        case "mixed":
            others = [load_preset(name) for name in preset_names() if name != REFERENCE]
            others += generate(rng, cfg.num_bodies)
            bodies = [load_preset(REFERENCE)] * len(others) + others
        case file if Path(file).suffix.lower() in (".xml", ".mjcf"):
            return [load_mjcf(file)]
        case name:
            try:
                bodies = [load_body(name)]
            except InputError as error:
                others = "generated, mixed, or an MJCF file, *.xml"
                raise InputError(f"{error}; or {others}") from error
    built = {body.name: build_robot(body) for body in bodies}
    return [built[body.name] for body in bodies]


def allow_fast_matmul(device: torch.device) -> None:
    """Let a GPU multiply matrices of single floats in TF32, unless HORIZON_TF32=0.

    Inputs are rounded to 10 bits, sums stay in single precision.
    """
    if device.type == "cuda" and is_on("HORIZON_TF32"):
        torch.set_float32_matmul_precision("high")
