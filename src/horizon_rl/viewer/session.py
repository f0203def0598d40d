"""A session: one robot under one policy, which a user changes while it goes on.

It drives the task's environment with one world, so that a scenario of a suite runs to
the bit as in an evaluation. It knows no viewer: front ends call `step` and look.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import acos, degrees

import numpy as np
import torch

from horizon_rl.evaluation.blocks import Padded
from horizon_rl.evaluation.evaluate import block_of
from horizon_rl.physics import CONTROL_DT, CpuBackend, Pool, build_pool, ground_for
from horizon_rl.policies.load import EvaluatedPolicy, check_actions
from horizon_rl.robots import Robot
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.task import FALL_CAUSES, Scenarios, VelocityEnv
from horizon_rl.viewer.body import (
    BodyVariant,
    read_state,
    reshape_robot,
    transfer_state,
)
from horizon_rl.viewer.levels import Values
from horizon_rl.viewer.setup import Setup

CPU = torch.device("cpu")
EVERYONE = torch.ones(1, dtype=torch.bool)
FIRST_ROW = torch.zeros(1, dtype=torch.long)
LIE_S = 1.0
"""How long a fallen robot lies before it is put on its feet again, s."""
ARROW_S = 0.5
"""How long a push is shown, s."""
MEAN_STEPS = 50
"""Control steps that readouts average over: a second."""
MAX_COMMAND, KEY_STEP = 1.5, 0.2
"""How far a command goes by hand, and what a key adds to it, m/s or rad/s."""
MAX_LAG_S = 0.25
"""A machine that is further behind real time than this does not catch up."""


@dataclass(frozen=True, kw_only=True)
class Readout:
    """What a session shows of itself."""

    time_s: float
    """Since the last reset."""
    height_m: float
    command: tuple[float, ...]
    velocity: tuple[float, ...]
    """Forward and sideways, m/s; yaw, rad/s; mean of the last second."""
    error: float
    """|commanded - actual| horizontal velocity, m/s, mean since the last reset."""
    tilt_deg: float
    torque_nm: float
    """Largest of the joints' torques."""
    effort_nm: float
    """Most that a joint can give."""
    mass_kg: float
    fallen: str
    """Cause, of `FALL_CAUSES`, since the last reset; empty: it has not."""
    falls: int
    """In all, resets or not."""


class Session:
    """One world, and what a user can do to it between two steps."""

    def __init__(self, policy: EvaluatedPolicy, setup: Setup, exact: bool = False):
        """Start standing.

        Args:
            policy: Acts.
            setup: World to begin with.
            exact: Ask the policy as an evaluation does, for many worlds at once, which
                costs time and gives its actions to the bit.
        """
        self.setup, self._exact = setup, exact
        self.auto_reset = False
        self.falls = 0
        self.driven: np.ndarray | None = None
        """The command given by hand; None: commands and pushes are the setup's."""
        robot = setup.body.build(ground_for(setup.values))
        self.body, self.values = setup.body, dict(setup.values)
        self._pool = self._build_pool(robot, self.values)
        self.robot = reshape_robot(robot, self._pool, None)
        """As it looks now: parameters may reshape what was built."""
        backend = CpuBackend(robot, 1, num_threads=1)
        self.env = VelocityEnv(backend, setup.task, endless=True)
        self.use_policy(policy)
        self.reset()

    # What a user can do.

    def use_policy(self, policy: EvaluatedPolicy) -> None:
        """Hand over to another policy, in mid-stride."""
        self.policy = policy
        made = policy.make(CPU)
        self._policy = Padded(made, block_of(policy)) if self._exact else made
        self._policy.reset(EVERYONE)
        scale = policy.action_scale
        self.env.action_scale = self.setup.task.action_scale if scale is None else scale

    def set_values(self, changes: Mapping[str, np.ndarray]) -> None:
        """Change parameters in mid-stride; those of `reset` act at the next reset."""
        values = dict(self.values)
        for name, value in changes.items():
            if name not in values:
                raise InputError(unknown("parameter", name, values))
            values[name] = np.array(np.broadcast_to(value, values[name].shape))
        self._change(self.body, values)

    def change_body(self, body: BodyVariant) -> None:
        """Change the body: in mid-stride, or standing if it is another robot."""
        same_robot = body.robot == self.body.robot
        self._change(body, self.values)
        if not same_robot:
            self.reset()

    def _change(self, body: BodyVariant, values: Values) -> None:
        """Take up another body and other physics, from the state of motion."""
        built = self.env.backend.robot
        ground = ground_for(values)
        same = body == self.body and ground == built.ground
        robot = built if same else body.build(ground)
        pool, now = self._build_pool(robot, values), read_state(self.robot, self.state)
        shown = reshape_robot(robot, pool, self.robot)
        qpos, qvel, backend = now.qpos, now.qvel, None
        if robot is not built:
            backend = CpuBackend(robot, 1, num_threads=1)
            qpos, qvel = pool.start_qpos[0], pool.start_qvel[0]
        if shown is not self.robot and body.robot == self.body.robot:
            qpos, qvel = transfer_state(self.robot, now, shown)
        start = replace(pool, start_qpos=qpos[None], start_qvel=qvel[None])
        self.env.exchange(self._scenario(start), backend)
        self._pool, self.body, self.values = pool, body, dict(values)
        self.robot = shown

    def push(self, velocity: np.ndarray) -> None:
        """Change the trunk's velocity before the next step: forward, left, m/s."""
        w, x, y, z = self.env.backend.state.root_quat[0].double().numpy()
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        self._next_push = self._next_push + turn @ velocity

    def drive(self, command: np.ndarray) -> None:
        """Command velocities by hand; a scenario's own commands and pushes end."""
        self.driven = np.array(command, float)
        self.env.drive(torch.from_numpy(self.driven).unsqueeze(0))

    def steer(self, axis: int, value: float) -> None:
        """Change one of the three commanded velocities by hand."""
        command = self.command.copy()
        command[axis] = np.clip(round(value, 2), -MAX_COMMAND, MAX_COMMAND)
        self.drive(command)

    def nudge(self, axis: int, sign: int) -> None:
        """Change one of the commanded velocities by the step of a key."""
        self.steer(axis, self.command[axis] + sign * KEY_STEP)

    def reset(self) -> None:
        """Start over: a scenario at its beginning, else the same world."""
        self.env.begin(self._scenario(self._pool), self.setup.noise_seed, FIRST_ROW)
        self._policy.reset(EVERYONE)
        self.fallen, self.fallen_step = "", 0
        self._next_push = np.zeros(2)
        self.last_push, self.last_push_step = np.zeros(2), -1
        self._velocities: deque[np.ndarray] = deque(maxlen=MEAN_STEPS)

    def replay(self) -> None:
        """Go back to the setup, whatever was changed since, and begin."""
        self.driven, self.values = None, dict(self.setup.values)
        self.change_body(self.setup.body)
        self.reset()

    @torch.no_grad()
    def step(self) -> None:
        """Advance one control step."""
        env = self.env
        actions = self._policy.act(env.get_observations())
        check_actions(actions, 1)
        env.backend.push(torch.from_numpy(self._next_push).float().unsqueeze(0))
        env.step(actions)
        push = self._next_push + env.push_velocity[0].numpy()
        if push.any():
            self.last_push, self.last_push_step = push, self.steps - 1
        self._next_push = np.zeros(2)
        self._judge()

    # What front ends look at.

    @property
    def state(self) -> np.ndarray:
        """The integration state, to draw the world with: see `read_state`."""
        return self.env.backend.snapshot()["state"][0]

    @property
    def place(self) -> np.ndarray:
        """[3] where the trunk is, world x and y, and how high the ground is there, m."""
        xy = self.env.backend.state.root_position[0, :2].numpy()
        return np.array((*xy, self.robot.ground.height_at(xy)), np.float32)

    @property
    def steps(self) -> int:
        """Control steps since the last reset."""
        return int(self.env.episode_length_buf[0])

    @property
    def command(self) -> np.ndarray:
        """[3] what the robot is asked to do in the coming step."""
        if self.driven is not None:
            return self.driven
        return self.env.command[0].double().numpy()

    @property
    def shown_push(self) -> np.ndarray | None:
        """The last push, world x and y, m/s, while it is to be shown as an arrow."""
        age = (self.steps - self.last_push_step) * CONTROL_DT
        shown = self.last_push_step >= 0 and age <= ARROW_S
        return self.last_push if shown else None

    @property
    def planned_push(self) -> np.ndarray:
        """The first push of the parameters, [2], m/s of this body."""
        return self._pool.push_velocity[0, 0]

    def readout(self) -> Readout:
        motion, pool = self.env.motion, self._pool
        velocity = np.mean(self._velocities or [np.zeros(3)], axis=0)
        down = float(motion.gravity[0, 2])
        return Readout(
            time_s=self.steps * CONTROL_DT,
            height_m=float(motion.height[0]),
            command=tuple(self.command.tolist()),
            velocity=tuple(velocity.tolist()),
            error=float(self.env.episodes.sums[0, 0]) / max(self.steps, 1),
            tilt_deg=degrees(acos(min(1.0, max(-1.0, -down)))),
            torque_nm=float(self.env.backend.state.torque.abs().max()),
            effort_nm=float(pool.effort.max()),
            mass_kg=float(pool.fields["body_mass"].sum()),
            fallen=self.fallen,
            falls=self.falls,
        )

    def describe_end(self) -> str:
        """Say whether the robot has fallen, and when."""
        if self.fallen:
            return f"fell after {self.fallen_step * CONTROL_DT:.1f} s"
        return "broke the simulation and started over" if self.falls else "did not fall"

    # How it is done.

    def _build_pool(self, robot: Robot, values: Values) -> Pool:
        """Return the physics of these values; impossible ones are refused."""
        instances = {k: v if len(v) == 1 else v[None] for k, v in values.items()}
        first = np.zeros(1, dtype=int)
        return build_pool([robot], self.setup.catalogue, instances, first)

    def _scenario(self, pool: Pool) -> Scenarios:
        """Return the one scenario of the environment: as planned, or driven by hand."""
        commands, push_steps = self.setup.commands, self.setup.push_steps
        if self.driven is not None:
            commands, push_steps = self.driven[None], np.array([-1])
        ids = np.array([self.setup.noise_id])
        return Scenarios(pool, commands[None], push_steps[None], ids)

    def _judge(self) -> None:
        """Measure the step, note a fall, and put the robot up again if asked to."""
        motion = self.env.motion
        velocity = motion.linear_velocity[0, :2], motion.angular_velocity[0, 2:]
        self._velocities.append(torch.cat(velocity).double().numpy())
        cause = int(self.env.find_falls(motion)[0])
        if cause and not self.fallen:
            self.fallen, self.fallen_step = FALL_CAUSES[cause], self.steps
            self.falls += 1
        lain_s = (self.steps - self.fallen_step) * CONTROL_DT
        unhealthy = self.fallen == FALL_CAUSES[-1]
        if self.fallen and (unhealthy or (self.auto_reset and lain_s >= LIE_S)):
            self.reset()


class Pace:
    """Advances a session as time passes; `speed` 1 is real time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock, self.speed, self.paused = clock, 1.0, False
        self._last = self._window_began = clock()
        self._due_s, self._window_steps = 0.0, 0

    def advance(self, *sessions: Session) -> int:
        """Take the steps that are due, in all sessions alike, and return how many."""
        now = self._clock()
        passed, self._last = now - self._last, now
        if self.paused:
            return 0
        self._due_s = min(self._due_s + passed * self.speed, MAX_LAG_S)
        steps = int(self._due_s / CONTROL_DT)
        self._due_s -= steps * CONTROL_DT
        self._window_steps += steps
        for _ in range(steps):
            for session in sessions:
                session.step()
        return steps

    def real_time_factor(self) -> float:
        """Return simulated over real time since the last call."""
        now = self._clock()
        passed, self._window_began = now - self._window_began, now
        steps, self._window_steps = self._window_steps, 0
        return steps * CONTROL_DT / max(passed, 1e-9)
