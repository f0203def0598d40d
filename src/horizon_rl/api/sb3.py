"""The environment for Stable-Baselines3, and its policies on our ruler."""

from collections.abc import Callable
from typing import Any

import numpy as np

from horizon_rl.api.gymnasium import HorizonVectorEnv
from horizon_rl.support.errors import needs_extra

with needs_extra("sb3"):
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize


class HorizonSb3Env(VecEnv):
    """n robots as Stable-Baselines3 wants them.

    Where an episode ends, `infos[i]["terminal_observation"]` has its last observation,
    and `TimeLimit.truncated` says whether it ended by its time limit.
    """

    def __init__(self, num_envs: int = 64, robot: str = "go2", **options: Any):
        """Make worlds; `options` are those of `horizon_rl.make_env`."""
        self.vector_env = env = HorizonVectorEnv(num_envs, robot, **options)
        super().__init__(
            num_envs, env.single_observation_space, env.single_action_space
        )
        self._actions = np.zeros(env.action_space.shape or (), dtype=np.float32)

    def reset(self) -> np.ndarray:
        """Begin an episode in every world, from the seed that `seed` was given last."""
        observations, _ = self.vector_env.reset(seed=self._seeds[0])
        self._reset_seeds()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        seen, reward, fell, late, info = self.vector_env.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for world in np.flatnonzero(fell | late):
            ended = {
                name: info["final_info"][f"episode_{name}"]
                for name in ("return", "length")
            }
            infos[world] = {
                "terminal_observation": info["final_obs"][world],
                "TimeLimit.truncated": bool(late[world]),
                "episode": {
                    "r": float(ended["return"][world]),
                    "l": int(ended["length"][world]),
                },
            }
        return seen, reward, fell | late, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the worlds, which they have in common."""
        value = getattr(self.vector_env, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.vector_env, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        value = getattr(self.vector_env, method_name)(*args, **kwargs)
        return [value] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))


def as_function(
    model: BaseAlgorithm, normalizer: VecNormalize | None = None
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a model's mean actions as a function, for `horizon_rl.evaluate`.

    Args:
        model: Trained by Stable-Baselines3.
        normalizer: What its observations were normalised by, if they were.
    """

    def policy(observations: np.ndarray) -> np.ndarray:
        if normalizer is not None:
            observations = np.asarray(normalizer.normalize_obs(observations))
        actions, _ = model.predict(observations, deterministic=True)
        return actions

    return policy
