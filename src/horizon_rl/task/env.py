"""The vector environment: velocity tracking for rsl_rl, on any backend.

Everything in a step is tensor arithmetic over all worlds at once: worlds that are done
are reset by mask, episodes are recorded on the device, and nothing waits for the host.
What the task does between two calls of the backend is written into tensors that stay
where they are, so that a GPU can replay it as one graph.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from tensordict import TensorDict

from horizon_rl.physics import CONTROL_DT, Backend
from horizon_rl.support.graphs import Recorded, compiled
from horizon_rl.task.config import RewardCfg, TaskCfg
from horizon_rl.task.episodes import EpisodeRecorder
from horizon_rl.task.noise import fold_seed, random_rows
from horizon_rl.task.observations import Motion, observe, observe_motion
from horizon_rl.task.rewards import Step, total_reward
from horizon_rl.task.scenarios import Scenarios
from horizon_rl.task.signals import ActionDelay, Sensors
from horizon_rl.task.table import WorldTable

NUM_ACTIONS = 12
CONTACT_FORCE = 1.0
"""Normal force, N, from which a foot or the trunk counts as touching the ground."""
PAPERS_REWARDS = RewardCfg()
DELAY = "action_delay"
"""The pool's signal, [rows] s, that delays actions; without it they arrive at once."""


class VelocityEnv:
    """n robots that are told how fast to go; has the interface of rsl_rl's `VecEnv`."""

    def __init__(
        self,
        backend: Backend,
        cfg: TaskCfg,
        max_records: int = 16384,
        endless: bool = False,
        compiles: bool = False,
        keeps_final: bool = False,
        around_physics: Callable[[], AbstractContextManager[object]] = nullcontext,
        rewards: RewardCfg = PAPERS_REWARDS,
    ):
        """Wrap a backend; `begin` must follow before the first step.

        Args:
            backend: Simulates the worlds.
            cfg: The task.
            max_records: Finished episodes to remember.
            endless: Whether episodes go on after a fall and past their time, until the
                next `begin`: for viewers.
            compiles: On a GPU, compile what is done between two calls of the backend.
            keeps_final: Whether `final_observations` are computed in every step.
            around_physics: Returns what is entered while the backend steps.
            rewards: Weights of the reward's terms.
        """
        n, device = backend.num_worlds, backend.device
        self.backend, self.cfg = backend, cfg
        self._endless, self._compiles = endless, compiles
        self._keeps_final, self._around_physics = keeps_final, around_physics
        self._rewards = rewards
        self.action_scale = cfg.action_scale
        """A policy may bring its own, before `begin` or, on the CPU, at any time."""
        self.num_envs, self.num_actions, self.device = n, NUM_ACTIONS, device
        self.max_episode_length = cfg.max_steps
        self.episodes = EpisodeRecorder(n, max_records, device, cfg.worst_errors)
        self._ids = torch.arange(n, device=device)
        zeros = partial(torch.zeros, device=device)
        self._rows, self._noise_ids, self._lengths = (
            zeros(n, dtype=torch.long) for _ in range(3)
        )
        self._steps, self._noise_key, self._row_key = (
            zeros((), dtype=torch.long) for _ in range(3)
        )
        self._action, self._last_action, self._last_velocity, self._target = (
            zeros((n, NUM_ACTIONS)) for _ in range(4)
        )
        self.push_velocity = zeros((n, 2))
        """[n, 2] what the scenarios pushed each trunk by in the last step, m/s."""
        self._air_time, self._reward = zeros((n, 4)), zeros(n)
        self._timed_out, self._done = (zeros(n, dtype=torch.bool) for _ in range(2))
        # The vertical part of gravity's direction, in the trunk's frame, at the limit.
        self._tilt_threshold = -math.cos(math.radians(cfg.tilt_limit_deg))

    def begin(
        self, scenarios: Scenarios, seed: int, rows: torch.Tensor | None = None
    ) -> TensorDict:
        """Start over: all worlds reset, all randomness from `seed`, records empty.

        Args:
            scenarios: Rows that worlds take, a random one at every reset.
            seed: Seed of those draws and of the sensor noise.
            rows: [n] each world's first scenario; without it, random ones.
        """
        noise_key = fold_seed(seed)
        self._noise_key.fill_(noise_key)
        self._row_key.fill_(fold_seed(noise_key))
        self._load(scenarios)
        self.episodes.clear()
        self._steps.zero_()
        rows = self._draw_rows() if rows is None else rows
        self._observations = self._compute_observations().clone()
        self.final_observations = self._observations.clone()
        """What worlds that were done in the last step showed before they began again,
        if that is kept; of the others, what they show now."""
        self._done.fill_(True)
        self._start_episodes(rows)
        self.backend.reset(self._done, self._rows)
        self._observe()
        return self.get_observations()

    def step(
        self, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        """Take actions [n, 12]; what is returned is the caller's to keep."""
        self._action.copy_(actions)
        self._plan()
        self.backend.push(self.push_velocity)
        with self._around_physics():
            self.backend.step(self._target)
        self._judge()
        self.backend.reset(self._done, self._rows)
        self._observe()
        extras = {"time_outs": self._timed_out.clone()}
        return self.get_observations(), self._reward.clone(), self._done.clone(), extras

    def exchange(
        self, scenarios: Scenarios, backend: Backend | None = None
    ) -> TensorDict:
        """Change the scenarios of running episodes, which keep their rows and go on.

        The worlds continue from the start states of the new rows, which the caller sets
        to where the robots are now.

        Args:
            scenarios: As many as before.
            backend: In place of the last one, for bodies of another structure.
        """
        self.backend = backend or self.backend
        self._load(scenarios)
        everyone = torch.ones_like(self._done)
        self._table.take(everyone, self._rows)
        if self._delay:
            # As if the delay had always been so: else robots would twitch.
            self._delay.settle(self._last_action)
        self.backend.reset(everyone, self._rows)
        # New sensors have no last reading, and the first of an episode is never lost.
        lengths = self._lengths.clone()
        self._lengths.zero_()
        self._observe()
        self._lengths.copy_(lengths)
        self._observe()
        return self.get_observations()

    def drive(self, command: torch.Tensor) -> None:
        """Command robots by hand, [n, 3], until their episodes end.

        The commands and pushes that their scenarios still have are dropped.
        """
        self._table.commands.copy_(command.unsqueeze(1))
        self._table.push_steps.fill_(-1.0)
        self._observe()

    def get_observations(self) -> TensorDict:
        """Return a copy of what the worlds show now."""
        return self._observations.clone()

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """[n] control steps since each episode began; may be set, as rsl_rl does."""
        return self._lengths

    @episode_length_buf.setter
    def episode_length_buf(self, lengths: torch.Tensor) -> None:
        self._lengths.copy_(lengths)

    @property
    def rows(self) -> torch.Tensor:
        """[n] the scenario that each world is in; changes with the next step."""
        return self._rows

    @property
    def command(self) -> torch.Tensor:
        """[n, 3] what each robot is asked to do in the coming step."""
        last = self._table.commands.shape[1] - 1
        number = (self._lengths // self.cfg.hold_steps).clamp(max=last)
        return self._table.commands[self._ids, number]

    @property
    def motion(self) -> Motion:
        """How the robots move now."""
        world = self._table
        return observe_motion(
            self.backend.state, world.default_pose, self._ground, world.patch
        )

    def find_falls(self, motion: Motion) -> torch.Tensor:
        """Return why each robot counts as fallen, [n], as indices of `FALL_CAUSES`."""
        state = self.backend.state
        # The gravest last.
        cause = (state.trunk_force > CONTACT_FORCE).long()
        cause = cause.masked_fill(motion.gravity[:, 2] > self._tilt_threshold, 2)
        return cause.masked_fill(~state.healthy, 3)

    def _load(self, scenarios: Scenarios) -> None:
        """Make scenarios those whose rows worlds take from now on."""
        self._table = WorldTable(scenarios, self.num_envs, self.device)
        signals, delay = self._table.signals, scenarios.pool.signals.get(DELAY)
        self._delay = None
        if delay is not None:
            longest_s = float(delay.max())
            self._delay = ActionDelay(signals[DELAY], longest_s, NUM_ACTIONS)
        self._sensors = Sensors(self.cfg.noise, signals, self.num_envs, self.device)
        self.backend.load(scenarios.pool)
        self._ground = self.backend.robot.ground.on(
            lambda heights: torch.from_numpy(heights).float().to(self.device)
        )
        # Recorded again: the table lies elsewhere now.
        self._plan, self._judge, self._observe = (
            Recorded(compiled(work, self.device, self._compiles), self.device)
            for work in (self._plan_step, self._judge_step, self._observe_worlds)
        )

    # The three parts of a step that lie between the calls of the backend.

    def _plan_step(self) -> None:
        """Compute the joints' targets, and which trunks are pushed; mostly none."""
        world = self._table
        now = world.push_steps == self._lengths.unsqueeze(1)
        self.push_velocity.copy_((world.push_velocity * now.unsqueeze(-1)).sum(dim=1))
        arriving = self._delay.arrive(self._action) if self._delay else self._action
        self._target.copy_(world.default_pose + self.action_scale * arriving)

    def _judge_step(self) -> None:
        """Reward what happened, end episodes, and choose the rows of the next."""
        state, command = self.backend.state, self.command
        self._lengths += 1
        self._steps += 1
        motion = self.motion
        touching = state.foot_force > CONTACT_FORCE
        reward = total_reward(
            Step(
                motion=motion,
                command=command,
                action=self._action,
                last_action=self._last_action,
                torque=state.torque,
                joint_acceleration=(state.joint_velocity - self._last_velocity)
                / CONTROL_DT,
                landed=touching & (self._air_time > 0.0),
                air_time=self._air_time,
                world=self._table,
            ),
            CONTROL_DT,
            self._rewards,
        )
        # The numbers of an unhealthy world must not reach the learner.
        self._reward.copy_(reward.masked_fill(~state.healthy, 0.0))
        self._air_time.add_(CONTROL_DT).masked_fill_(touching, 0.0)
        self._last_action.copy_(self._action)
        self._end_episodes(motion, command)
        if self._keeps_final:
            for name, values in self._compute_observations().items():
                self.final_observations[name].copy_(values)
        self._start_episodes(self._draw_rows())

    def _observe_worlds(self) -> None:
        """Observe the worlds, after those that are done were reset."""
        self._last_velocity.copy_(self.backend.state.joint_velocity)
        for name, values in self._compute_observations().items():
            self._observations[name].copy_(values)

    def _compute_observations(self) -> TensorDict:
        moment = self._noise_key, self._noise_ids, self._lengths
        observations = observe(
            self.motion,
            self.command,
            self._last_action,
            (self.backend.state.foot_force > CONTACT_FORCE).float(),
            self._table.privileged,
        )
        read = self._sensors.read(observations["actor"], *moment)
        return observations.set("actor", read)

    def _end_episodes(self, motion: Motion, command: torch.Tensor) -> None:
        """Add the step to the records; find which worlds timed out or are done."""
        unhealthy = ~self.backend.state.healthy
        error = (command[:, :2] - motion.linear_velocity[:, :2]).norm(dim=1)
        yaw_error = (command[:, 2] - motion.angular_velocity[:, 2]).abs()
        self.episodes.add(
            error.masked_fill(unhealthy, 0.0),
            yaw_error.masked_fill(unhealthy, 0.0),
            self._reward,
        )
        if self._endless:
            self._done.fill_(False)
            return
        cause = self.find_falls(motion)
        fell = cause > 0
        self._timed_out.copy_((self._lengths >= self.max_episode_length) & ~fell)
        self._done.copy_(self._timed_out | fell)
        self.episodes.finish(self._done, self._steps, self._lengths, cause, self._rows)

    def _draw_rows(self) -> torch.Tensor:
        return random_rows(self._row_key, self._ids, self._steps, self._table.num_rows)

    def _start_episodes(self, rows: torch.Tensor) -> None:
        """Give worlds that are done their new rows, and forget their last episode."""
        done = self._done
        self._rows.copy_(torch.where(done, rows, self._rows))
        self._noise_ids.copy_(self._table.ids[self._rows])
        self._table.take(done, self._rows)
        self._lengths.masked_fill_(done, 0)
        self._air_time.masked_fill_(done.unsqueeze(1), 0.0)
        self._last_action.masked_fill_(done.unsqueeze(1), 0.0)
        if self._delay:
            self._delay.forget(done)
