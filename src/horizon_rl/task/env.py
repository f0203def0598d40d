"""The vector environment: velocity tracking for rsl_rl, on any backend.

Everything in a step is tensor arithmetic over all worlds at once: worlds that are done
are reset by mask, episodes are recorded on the device, and nothing waits for the host.
"""

import math

import torch
from tensordict import TensorDict

from horizon_rl.errors import InputError
from horizon_rl.physics import CONTROL_DT, Backend
from horizon_rl.task.config import TaskCfg
from horizon_rl.task.episodes import EpisodeRecorder
from horizon_rl.task.motion import Motion, observe_motion
from horizon_rl.task.noise import fold_seed, symmetric_noise
from horizon_rl.task.observations import NUM_ACTOR, noise_scale, observe
from horizon_rl.task.rewards import Step, total_reward
from horizon_rl.task.scenarios import Scenarios
from horizon_rl.task.table import WorldTable

NUM_ACTIONS = 12
CONTACT_FORCE = 1.0
"""Normal force, N, from which a foot or the trunk counts as touching the ground."""


class VelocityEnv:
    """n robots that are told how fast to go; has the interface of rsl_rl's `VecEnv`."""

    def __init__(self, backend: Backend, cfg: TaskCfg, max_records: int = 16384):
        """Wrap a backend; `begin` must follow before the first step.

        Args:
            backend: Simulates the worlds.
            cfg: The task.
            max_records: Finished episodes to remember.
        """
        n, device = backend.num_worlds, backend.device
        self.backend, self.cfg = backend, cfg
        self.num_envs, self.num_actions, self.device = n, NUM_ACTIONS, device
        self.max_episode_length = cfg.max_steps
        self.episode_length_buf = torch.zeros(n, dtype=torch.long, device=device)
        self.episodes = EpisodeRecorder(n, max_records, device)
        self._ids = torch.arange(n, device=device)
        self._rows = torch.zeros(n, dtype=torch.long, device=device)
        self._last_action = torch.zeros((n, NUM_ACTIONS), device=device)
        self._last_velocity = torch.zeros((n, NUM_ACTIONS), device=device)
        self._air_time = torch.zeros((n, 4), device=device)
        self._steps = torch.zeros((), dtype=torch.long, device=device)
        self._noise = noise_scale(cfg.noise, device)
        self._level_enough = -math.cos(math.radians(cfg.tilt_limit_deg))

    def begin(
        self, scenarios: Scenarios, seed: int, rows: torch.Tensor | None = None
    ) -> TensorDict:
        """Start anew: all worlds reset, all randomness from `seed`, records empty.

        Args:
            scenarios: Rows that worlds take, a random one at every reset.
            seed: Seed of those draws and of the sensor noise.
            rows: [n] each world's first scenario; without it, random ones.
        """
        self._rng = torch.Generator(self.device).manual_seed(seed)
        self._noise_key = fold_seed(seed)
        self._table = WorldTable(scenarios, self.num_envs, self.device)
        self.backend.load(scenarios.pool)
        self.episodes.clear()
        self._steps.zero_()
        rows = self._draw_rows() if rows is None else rows
        if int(rows.min()) < 0 or int(rows.max()) >= len(scenarios):
            raise InputError(f"rows must lie in 0..{len(scenarios) - 1}")
        everyone = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        self._reset(everyone, rows)
        return self.get_observations()

    def step(
        self, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        world, state = self._table, self.backend.state
        self.backend.push(self._pushes())
        self.backend.step(world.default_pose + self.cfg.action_scale * actions)
        command = self.command
        self.episode_length_buf += 1
        self._steps += 1
        motion = observe_motion(state, world.default_pose)
        touching = state.foot_force > CONTACT_FORCE
        reward = total_reward(
            Step(
                motion=motion,
                command=command,
                action=actions,
                last_action=self._last_action,
                torque=state.torque,
                joint_acceleration=(state.joint_velocity - self._last_velocity)
                / CONTROL_DT,
                landed=touching & (self._air_time > 0.0),
                air_time=self._air_time,
                standing_height=world.standing_height,
                mass=world.mass,
                torque_unit=world.torque_unit,
                length_unit=world.length_unit,
            ),
            CONTROL_DT,
        )
        # What a broken world says must not reach the learner.
        reward = torch.where(state.healthy, reward, 0.0)
        self._air_time = (self._air_time + CONTROL_DT) * ~touching
        self._last_action = actions.clone()
        self._last_velocity = state.joint_velocity.clone()
        timed_out, done = self._end_episodes(motion, command, reward)
        self._reset(done, self._draw_rows())
        return self.get_observations(), reward, done, {"time_outs": timed_out}

    def get_observations(self) -> TensorDict:
        state = self.backend.state
        noise = symmetric_noise(
            self._noise_key, self._rows, self.episode_length_buf, NUM_ACTOR
        )
        return observe(
            observe_motion(state, self._table.default_pose),
            self.command,
            self._last_action,
            (state.foot_force > CONTACT_FORCE).float(),
            self._table.privileged,
            noise=noise * self._noise,
        )

    @property
    def command(self) -> torch.Tensor:
        """[n, 3] what each robot is asked to do in the coming step."""
        last = self._table.commands.shape[1] - 1
        number = (self.episode_length_buf // self.cfg.hold_steps).clamp(max=last)
        return self._table.commands[self._ids, number]

    def _pushes(self) -> torch.Tensor:
        """[n, 2] velocity that pushes add before the coming step; mostly zero."""
        now = self._table.push_steps == self.episode_length_buf.unsqueeze(1)
        return (self._table.push_velocity * now.unsqueeze(-1)).sum(dim=1)

    def _end_episodes(
        self, motion: Motion, command: torch.Tensor, reward: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the step to the records; return who timed out and who is done."""
        state = self.backend.state
        error = (command[:, :2] - motion.linear_velocity[:, :2]).norm(dim=1)
        yaw_error = (command[:, 2] - motion.angular_velocity[:, 2]).abs()
        self.episodes.add(
            torch.where(state.healthy, error, 0.0),
            torch.where(state.healthy, yaw_error, 0.0),
            reward,
        )
        tilted = motion.gravity[:, 2] > self._level_enough
        on_trunk = state.trunk_force > CONTACT_FORCE
        # In the order of FALL_CAUSES, the gravest last.
        cause = torch.where(on_trunk, 1, 0)
        cause = torch.where(tilted, 2, cause)
        cause = torch.where(state.healthy, cause, 3)
        timed_out = (self.episode_length_buf >= self.max_episode_length) & (cause == 0)
        done = timed_out | (cause > 0)
        self.episodes.finish(
            done, self._steps, self.episode_length_buf, cause, self._rows
        )
        return timed_out, done

    def _draw_rows(self) -> torch.Tensor:
        return torch.randint(
            self._table.num_rows,
            (self.num_envs,),
            generator=self._rng,
            device=self.device,
        )

    def _reset(self, mask: torch.Tensor, rows: torch.Tensor) -> None:
        """Start the worlds in `mask` anew, with nothing left of their last episode."""
        self._rows = torch.where(mask, rows, self._rows)
        self._table.take(mask, self._rows)
        self.backend.reset(mask, self._rows)
        keep = ~mask
        self.episode_length_buf = self.episode_length_buf * keep
        self._air_time = self._air_time * keep.unsqueeze(1)
        self._last_action = self._last_action * keep.unsqueeze(1)
        self._last_velocity = torch.where(
            mask.unsqueeze(1), self.backend.state.joint_velocity, self._last_velocity
        )
