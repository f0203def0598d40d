"""Our simulator's worlds: robots under drawn physics, for training and for probes."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.curriculum import Episodes, ProbeSet, phase_rng
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains import Catalogue
from horizon_rl.domains.distribution import (
    SCORE,
    TEACHER,
    TRAINS,
    AtLevels,
    Distribution,
)
from horizon_rl.physics import ground_for, make_backend, sample_pool
from horizon_rl.robots import (
    FLAT,
    REFERENCE,
    Ground,
    Robot,
    build_robot,
    generate,
    load_preset,
    preset_names,
    size_class,
)
from horizon_rl.robots.bodies import DRAWN, check_robot
from horizon_rl.robots.mjcf import load_robot
from horizon_rl.support.ranks import ALONE, Ranks
from horizon_rl.support.records import dumps, encode
from horizon_rl.task import (
    Policy,
    Scenarios,
    VelocityEnv,
    draw_scenarios,
    join_scenarios,
    rollout,
)
from horizon_rl.task.episodes import UNHEALTHY
from horizon_rl.training.config import TrainCfg, fixed_levels
from horizon_rl.training.protocols import Worlds
from horizon_rl.training.scores import RowScores

GATED = ("candidate", "checkpoint", "reference")
"""Probes that gate C compares."""
PROBE = 1 << 31
"""Added to a phase's number, gives its stream of probe scenarios; training never uses
these streams."""


class Draw(NamedTuple):
    """All that is random about a phase before it starts."""

    scenarios: Scenarios
    torch_seed: int
    env_seed: int


class SimulatedWorlds(Worlds):
    """Worlds for training and, apart from them, worlds for probes on rank 0."""

    def __init__(
        self,
        cfg: TrainCfg,
        catalogue: Catalogue,
        device: str = "auto",
        ranks: Ranks = ALONE,
        num_threads: int = 0,
    ):
        """Build robots and worlds, and draw the seed of the first weights.

        Args:
            cfg: What to train.
            catalogue: The groups of parameters.
            device: Where: auto, cpu, cuda, cuda:1, ...
            ranks: Who else trains. Bodies are those of all ranks, scenarios of this one.
            num_threads: Threads of the physics on a CPU; 0: as OMP_NUM_THREADS says,
                else one per core.
        """
        self.cfg, self.ranks = cfg, ranks
        # Groups that the run does not widen have the range they are fixed at.
        fixed = fixed_levels(cfg, catalogue)
        self.catalogue = catalogue.fixed_at(fixed)
        self.max_length = cfg.task.max_steps
        rng = np.random.default_rng(cfg.seed)
        widest = {g: 1.0 for g in catalogue.select(cfg.groups) if g not in fixed}
        ground = ground_for(self.catalogue.ranges(widest))
        self.robots = choose_robots(cfg, rng, ground)
        sizes = np.array([size_class(robot) for robot in self.robots])
        self._sizes = sizes if len(np.unique(sizes)) > 1 else None
        self._num_threads = num_threads or ranks.num_threads
        self._device = device
        # Enough for the fair episodes of a phase even if they last eight steps each, as
        # long as the memory for it is bounded: half a gigabyte.
        max_records = cfg.num_envs * max(4, cfg.task.max_steps // 8)
        max_records = max(4 * cfg.num_envs, min(max_records, 1 << 24))
        self.env = self._make_env(cfg.num_envs, max_records)
        torch.manual_seed(int(rng.integers(1 << 62)))
        self._teachers: Tensor | None = None
        if cfg.teachers:
            self._teachers = torch.zeros(4, device=self.env.device)
        self.observations = self._show(
            self.env.begin(self._draw_scenarios(AtLevels({}), 4, rng), 0)
        )
        """What the worlds show now; with teachers, also the number of each world's."""
        self.scores: RowScores | None = None
        """Scores of the phase's scenarios, where its distribution asks for them."""
        self._scenarios: Scenarios | None = None
        self._drawn_ahead: dict[tuple[int, str], Future[Draw]] = {}
        has_probes = ranks.leads and cfg.num_probed > 0
        self._probe_env = self._make_env(cfg.num_probed) if has_probes else None
        self._probe_sets: dict[tuple[int, int, str], Scenarios] = {}

    def begin(self, phase: int, distribution: Distribution) -> None:
        ahead = self._drawn_ahead.pop(_key(phase, distribution), None)
        draw = ahead.result() if ahead else self._draw(phase, distribution)
        # Of what was drawn, the other outcome of the phase before is of no use now.
        self._drawn_ahead = {k: d for k, d in self._drawn_ahead.items() if k[0] > phase}
        self._scenarios = draw.scenarios
        trains = draw.scenarios.pool.marks.get(TRAINS)
        self.scores = None if trains is None else RowScores(trains, self.env.device)
        if self._teachers is not None:
            marks = draw.scenarios.pool.marks[TEACHER]
            self._teachers = torch.from_numpy(marks).to(self._teachers)
        torch.manual_seed(draw.torch_seed)
        self.observations = self._show(self.env.begin(draw.scenarios, draw.env_seed))
        if self.cfg.stagger:
            # As if they had begun one after the other: synchronised worlds would all
            # be at the same age, and what is learnt would follow it.
            ages = torch.randint(self.max_length, (self.cfg.num_envs,))
            self.env.episode_length_buf = ages.to(self.env.device)

    def prepare(self, phase: int, distribution: Distribution) -> None:
        """Draw a phase that may come while a GPU trains another; a CPU is busy."""
        key = _key(phase, distribution)
        if self.env.device.type == "cpu" or key in self._drawn_ahead:
            return
        worker = ThreadPoolExecutor(max_workers=1)
        self._drawn_ahead[key] = worker.submit(self._draw, phase, distribution)
        worker.shutdown(wait=False)

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict]:
        # Noted before: a step gives worlds that end an episode their next row.
        noted = self.scores.note(self.env.rows) if self.scores else {}
        observations, reward, done, extras = self.env.step(actions)
        self.observations = self._show(observations)
        return self.observations, reward, done, extras | noted

    def _show(self, observations: TensorDict) -> TensorDict:
        if self._teachers is None:
            return observations
        numbers = self._teachers[self.env.rows].unsqueeze(1)
        return observations.set(TEACHER, numbers)

    def episodes(self, parameters: tuple[str, ...] | None = None) -> Episodes:
        """Return the episodes of all ranks; a row is counted over the ranks' rows."""
        found = self.env.episodes.table()
        columns = (found.start, found.length, found.tracking_error)
        if parameters is not None:
            assert self._scenarios is not None
            first_row = self.ranks.rank * len(self._scenarios)
            known = self._known(parameters)
            columns = (*columns, first_row + found.row, found.returns, known[found.row])
            first_world = self.ranks.rank * self.cfg.num_envs
            columns = (*columns, first_world + self.env.episodes.worlds())
        parts = self.ranks.gather(columns)
        return Episodes(*map(np.concatenate, zip(*parts, strict=True)))

    def probe(
        self, policy: Policy, sets: Mapping[str, ProbeSet]
    ) -> dict[str, ProbedEpisodes]:
        """Run all sets in one rollout, in worlds of their own, on rank 0."""
        return self.ranks.once(lambda: self._probe(policy, sets))

    def _probe(
        self, policy: Policy, sets: Mapping[str, ProbeSet]
    ) -> dict[str, ProbedEpisodes]:
        sizes = {name: self._size(name) for name in sets if self._size(name)}
        if self._probe_env is None or not sizes:
            return {}
        before = self._probe_env.backend.counters.overflow
        known, self._probe_sets, parts = self._probe_sets, {}, []
        for name, size in sizes.items():
            wanted = sets[name]
            stream = PROBE if wanted.phase is None else PROBE + 1 + wanted.phase
            # Near the limit a scout may have the candidate's levels, but another size.
            key = size, *_key(stream, wanted.distribution)
            drawn = known.get(key) or self._draw_set(stream, wanted, size)
            self._probe_sets[key] = drawn
            parts.append(drawn)
        noise_seed = int(phase_rng(self.cfg.seed, PROBE).integers(1 << 62))
        scenarios = join_scenarios(parts)
        found = rollout(self._probe_env, policy, scenarios, seed=noise_seed)
        ends, bodies = np.cumsum(list(sizes.values())).tolist(), scenarios.pool.body_ids
        rows = (
            slice(end - n, end) for n, end in zip(sizes.values(), ends, strict=True)
        )
        overflow = self._probe_env.backend.counters.overflow - before
        return {
            name: ProbedEpisodes(
                found.length[part],
                found.tracking_error[part],
                found.returns[part],
                None if self._sizes is None else self._sizes[bodies[part]],
                int((found.cause[part] == UNHEALTHY).sum()),
                # Which world it was is not known: all of it stands with the first set.
                0 if part.start else overflow,
            )
            for name, part in zip(sizes, rows, strict=True)
        }

    def _size(self, name: str) -> int:
        sizes: dict[str, int] = dict.fromkeys(GATED, self.cfg.probe_scenarios)
        sizes["anchor"] = self.cfg.anchor_scenarios
        return sizes.get(name, self.cfg.scout_scenarios)

    def _draw_set(self, stream: int, wanted: ProbeSet, size: int) -> Scenarios:
        """Draw a set whose scenarios keep their sensor noise from probe to probe."""
        rng = phase_rng(self.cfg.seed, stream)
        drawn = self._draw_scenarios(wanted.distribution, size, rng)
        first = int(rng.integers(1 << 31))
        # Sets are joined, and only some distributions mark their instances.
        pool = replace(drawn.pool, marks={})
        return replace(drawn, pool=pool, ids=first + np.arange(size))

    def _draw(self, phase: int, distribution: Distribution) -> Draw:
        """Draw scenarios and seeds: they depend on the phase's number and the rank."""
        rng = phase_rng(self.cfg.seed, phase, self.ranks.rank)
        n = self.cfg.rows_per_env * self.cfg.num_envs
        scenarios = self._draw_scenarios(distribution, n, rng)
        return Draw(scenarios, int(rng.integers(1 << 62)), int(rng.integers(1 << 62)))

    def _draw_scenarios(
        self, distribution: Distribution, n: int, rng: np.random.Generator
    ) -> Scenarios:
        pool = sample_pool(self.robots, self.catalogue, distribution, n, rng)
        return draw_scenarios(pool, self.cfg.task, rng)

    def _known(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the values of parameters and marks of every row, [rows, -]."""
        assert self._scenarios is not None
        pool, columns, start = self._scenarios.pool, dict(self._scenarios.pool.marks), 0
        if self.scores:
            columns[SCORE] = self.scores.means()
        for name, parameter in self.catalogue.parameters.items():
            columns[name] = pool.parameters[:, start : start + parameter.draws]
            start += parameter.draws
        parts = [columns[name].reshape(len(pool), -1) for name in names]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(pool), 0))

    def _make_env(self, num_worlds: int, max_records: int = 16384) -> VelocityEnv:
        backend = make_backend(
            self.robots[0], num_worlds, self._device, self._num_threads
        )
        compiles = self.cfg.learner.compiles("task")
        return VelocityEnv(
            backend,
            self.cfg.task,
            max_records,
            compiles=compiles,
            rewards=self.cfg.rewards,
        )


def _key(phase: int, distribution: Distribution) -> tuple[int, str]:
    return phase, dumps(encode(distribution))


def choose_robots(
    cfg: TrainCfg, rng: np.random.Generator, ground: Ground = FLAT
) -> list[Robot]:
    """Build the bodies a run trains on; every scenario draws one of them evenly."""
    if cfg.robot not in DRAWN:
        check_robot(cfg.robot)
        return [load_robot(cfg.robot, ground)]
    bodies = generate(rng, cfg.num_bodies)
    if cfg.robot == "mixed":
        others = [load_preset(name) for name in preset_names() if name != REFERENCE]
        others += bodies
        bodies = [load_preset(REFERENCE)] * len(others) + others
    built = {body.name: build_robot(body, ground) for body in bodies}
    return [built[body.name] for body in bodies]
