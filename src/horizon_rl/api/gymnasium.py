"""The environment for Gymnasium: `gymnasium.make_vec("HorizonVelocity-v0", ...)`."""

import multiprocessing
from typing import Any

import numpy as np

from horizon_rl.api.environment import make_env
from horizon_rl.api.registration import register_env
from horizon_rl.support.errors import needs_extra

with needs_extra("gymnasium"):
    import gymnasium
    import torch
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

LARGEST_ACTION = 10.0
"""Bound of the action space. With 0.25 rad to the unit, targets further off are out of
any joint's reach; the environment itself does not clip."""

register_env()


def _spaces(num_observations: int, num_actions: int) -> tuple[Box, Box]:
    return (
        Box(-np.inf, np.inf, (num_observations,), np.float32),
        Box(-LARGEST_ACTION, LARGEST_ACTION, (num_actions,), np.float32),
    )


def _survive_fork() -> None:
    """Keep torch to one thread in a child process: one that was forked has no others.

    Gymnasium's AsyncVectorEnv makes an environment before it forks, and torch would wait
    for the threads of that one without end.
    """
    if multiprocessing.parent_process():
        torch.set_num_threads(1)


class HorizonGymEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One robot; an episode that has ended stays so until `reset`."""

    metadata = {"render_modes": [], "render_fps": 50}
    render_mode = None

    def __init__(self, robot: str = "go2", **options: Any):
        """Make a world; `options` are those of `horizon_rl.make_env`."""
        _survive_fork()
        self.numpy_env = env = make_env(robot, num_envs=1, **options)
        self.observation_space, self.action_space = _spaces(
            env.num_observations, env.num_actions
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        observations, info = self.numpy_env.reset(seed)
        return observations[0], info

    def step(
        self, action: np.ndarray
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        seen, reward, fell, late, info = self.numpy_env.step(np.asarray(action)[None])
        # The world has begun another episode already; this one is not to see it.
        last = info["final_obs"] if fell[0] or late[0] else seen
        return last[0], float(reward[0]), bool(fell[0]), bool(late[0]), {}


class HorizonVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """n robots; where an episode ends, another begins in the same step.

    Then `info["final_obs"]` has the last observation of the old one and
    `info["final_info"]` its return and length, where `info["_final_obs"]` is true.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, robot: str = "go2", **options: Any):
        """Make worlds; `options` are those of `horizon_rl.make_env`."""
        _survive_fork()
        self.numpy_env = env = make_env(robot, num_envs=num_envs, **options)
        self.num_envs, self.render_mode = num_envs, None
        self.single_observation_space, self.single_action_space = _spaces(
            env.num_observations, env.num_actions
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, dtype=int)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in every world; all that is random follows from `seed`."""
        super().reset(seed=seed)
        self._returns[:], self._lengths[:] = 0.0, 0
        return self.numpy_env.reset(seed)

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        seen, reward, fell, late, info = self.numpy_env.step(actions)
        self._returns += reward
        self._lengths += 1
        done, infos = fell | late, {}
        if done.any():
            final = np.full(self.num_envs, None, dtype=object)
            for world in np.flatnonzero(done):
                final[world] = info["final_obs"][world]
            infos = {"final_obs": final, "_final_obs": done.copy()}
            infos["final_info"] = {
                "episode_return": np.where(done, self._returns, 0.0),
                "_episode_return": done.copy(),
                "episode_length": np.where(done, self._lengths, 0),
                "_episode_length": done.copy(),
            }
            infos["_final_info"] = done.copy()
            self._returns[done], self._lengths[done] = 0.0, 0
        return seen, reward, fell, late, infos
