"""The environment on numpy arrays, with the words of Gymnasium."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.domains import AtLevels, Catalogue, load_catalogue, paper_catalogue
from horizon_rl.support.bounds import MAX_THREADS, MAX_WORLDS
from horizon_rl.support.errors import InputError, needs_extra, require

with needs_extra("train"):
    import torch

    from horizon_rl.physics import (
        cores_for_physics,
        ground_for,
        make_backend,
        sample_pool,
    )
    from horizon_rl.robots import Robot, load_robot
    from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR, TaskCfg, VelocityEnv
    from horizon_rl.task import draw_scenarios as draw

Step = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
ROWS_PER_WORLD, MIN_ROWS = 4, 64
"""Scenarios that are drawn at a reset, and that worlds take one after another."""


class NumpyEnv:
    """n robots that are told how fast to go; a world whose episode ends begins another.

    Observations, actions and rewards: docs/task.md.
    """

    num_observations, num_actions = NUM_ACTOR, NUM_ACTIONS

    def __init__(
        self, env: VelocityEnv, robot: Robot, catalogue: Catalogue, levels: AtLevels
    ):
        """Wrap worlds that keep final observations; `make_env` builds them."""
        self.torch_env, self.num_envs = env, env.num_envs
        self.max_episode_steps = env.max_episode_length
        self._robot, self._catalogue, self._levels = robot, catalogue, levels
        self._rng = np.random.default_rng()
        self._scenarios = None

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in every world; return observations [n, 45] and info.

        Args:
            seed: All that is random follows from it; without it, other episodes of the
                same worlds.
        """
        if seed is not None or self._scenarios is None:
            self._rng = rng = np.random.default_rng(seed)
            rows = max(MIN_ROWS, ROWS_PER_WORLD * self.num_envs)
            pool = sample_pool([self._robot], self._catalogue, self._levels, rows, rng)
            self._scenarios = draw(pool, self.torch_env.cfg, rng)
        noise_seed = int(self._rng.integers(2**63))
        seen = self.torch_env.begin(self._scenarios, noise_seed)
        return _numpy(seen["actor"]), {}

    def step(self, actions: np.ndarray) -> Step:
        """Take one control step, 20 ms, with actions [n, 12].

        Returns:
            Observations [n, 45], rewards [n], which episodes ended by a fall [n], which
            by their time limit [n], and info. Where one ended, the observation is the
            first of the next episode, and `info["final_obs"]` [n, 45] has the last of
            the old.
        """
        given = np.array(actions, dtype=np.float32)
        if given.shape != (self.num_envs, NUM_ACTIONS):
            raise InputError(
                f"actions of shape {given.shape}; accepted: {self.num_envs, NUM_ACTIONS}"
            )
        if self._scenarios is None:
            raise InputError("call reset() before the first step")
        env = self.torch_env
        with cores_for_physics(env.backend):
            seen, reward, done, extras = env.step(
                torch.from_numpy(given).to(env.device)
            )
        timed_out = _numpy(extras["time_outs"])
        info = {"final_obs": _numpy(env.final_observations["actor"])}
        fell = _numpy(done) & ~timed_out
        return _numpy(seen["actor"]), _numpy(reward), fell, timed_out, info

    def drive(self, command: Any) -> np.ndarray:
        """Command robots by hand until their episodes end; no pushes come any more.

        Args:
            command: [3] or [n, 3] forward and left, m/s, and turn, rad/s.

        Returns:
            Observations [n, 45] with the command in them.
        """
        env, values = self.torch_env, np.asarray(command, dtype=np.float32)
        if values.shape not in ((3,), (self.num_envs, 3)):
            raise InputError(
                f"a command of shape {values.shape}; accepted: (3,) or "
                f"{self.num_envs, 3}: forward and left, m/s, and turn, rad/s"
            )
        wanted = np.broadcast_to(values, (self.num_envs, 3)).copy()
        env.drive(torch.from_numpy(wanted).to(env.device))
        return _numpy(env.get_observations()["actor"])

    def close(self) -> None:
        """Do nothing: worlds go with the last reference to them. Others have it too."""

    def __repr__(self) -> str:
        return f"NumpyEnv({self._robot.name!r}, num_envs={self.num_envs})"

    @property
    def command(self) -> np.ndarray:
        """[n, 3] what each robot is asked to do now: m/s, m/s, rad/s."""
        return _numpy(self.torch_env.command)

    @property
    def velocity(self) -> np.ndarray:
        """[n, 3] what it does, in its trunk's frame: m/s, m/s, rad/s."""
        motion = self.torch_env.motion
        turn = motion.angular_velocity[:, 2:]
        return _numpy(torch.cat((motion.linear_velocity[:, :2], turn), dim=1))


def make_env(
    robot: str = "go2",
    *,
    num_envs: int = 1,
    levels: float | str | Mapping[str, float] = 0.0,
    terrain: float | None = None,
    catalogue: Catalogue | str | Path | None = None,
    task: TaskCfg | None = None,
    action_scale: float | None = None,
    device: str = "cpu",
    num_threads: int = 0,
) -> NumpyEnv:
    """Make worlds with a robot in them.

    Args:
        robot: Preset ("go2"), intervention ("go2+stilts") or MJCF file.
        num_envs: How many worlds; each draws its own physics.
        levels: How wide physics is drawn: one number in [0, 1] for all domain groups,
            or by group, {"mass": 0.5} or "mass=0.5"; the others are at level 0.
        terrain: How rough the ground is drawn, 0..1: level of the group of that name.
            Where no catalogue is named, that group of `extended` joins the paper's seven.
        catalogue: Groups and their parameters: `extended`, a TOML file, or a value; the
            paper's seven without it.
        task: Commands, pushes, noise, time limit; the default ones without it.
        action_scale: A policy's own, where the task's does not fit it.
        device: cpu, cuda, cuda:1, ... or auto.
        num_threads: Threads of the engine on the CPU; 0: as OMP_NUM_THREADS says, else
            one per core.
    """
    require("num_envs", num_envs, 1, MAX_WORLDS, whole=True)
    require("num_threads", num_threads, 0, MAX_THREADS, whole=True)
    if terrain is not None:
        require("terrain", terrain, 0.0, 1.0)
    if catalogue is None:
        catalogue = paper_catalogue()
        catalogue = _add_terrain(catalogue) if terrain else catalogue
    elif not isinstance(catalogue, Catalogue):
        catalogue = load_catalogue(Path(catalogue))
    if isinstance(levels, Mapping):
        found = dict(levels)
        for name, level in found.items():
            require(f"level {name}", level, 0.0, 1.0)
    elif isinstance(levels, str):
        found = catalogue.parse_levels(levels)
    else:
        require("levels", levels, 0.0, 1.0)
        found = dict.fromkeys(catalogue.names, float(levels))
    if terrain is not None:
        if isinstance(levels, Mapping) and "terrain" in levels:
            raise InputError("terrain is given twice: leave it out of levels")
        # The paper's catalogue has no such group, and is flat.
        found |= {"terrain": terrain} if terrain or "terrain" in catalogue.names else {}
    catalogue.coverage(found)  # Refuses unknown groups and levels outside 0..1.
    task = task or TaskCfg()
    if action_scale is not None:
        task = replace(task, action_scale=action_scale)
    body = load_robot(robot, ground_for(catalogue.ranges(found)))
    backend = make_backend(body, num_envs, device, num_threads)
    env = VelocityEnv(backend, task, keeps_final=True)
    return NumpyEnv(env, body, catalogue, AtLevels(found))


def _add_terrain(catalogue: Catalogue) -> Catalogue:
    group = load_catalogue(Path("extended"))["terrain"]
    return replace(catalogue, groups=(*catalogue.groups, group))


def _numpy(values: torch.Tensor) -> np.ndarray:
    """Return a copy: the environment writes its tensors again in the next step."""
    return values.detach().cpu().numpy().copy()
