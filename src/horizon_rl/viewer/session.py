"""A session: one robot under one policy in one world, step by step, changed at will.

Physics, motors, observations, noise and the definition of a fall are the task's own:
in a scenario of a suite a session does to the bit what an evaluation does. It knows no
viewer; front ends call `step` and look.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import acos, degrees

import numpy as np
import torch
from tensordict import TensorDict

from horizon_rl.domains import Instances
from horizon_rl.evaluation.evaluate import CHUNK, Padded
from horizon_rl.physics import CONTROL_DT, CpuBackend, build_pool
from horizon_rl.policies.load import EvaluatedPolicy, check_actions
from horizon_rl.robots import Robot
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.task import FALL_CAUSES, NUM_ACTIONS
from horizon_rl.task.env import find_falls, least_level, sense
from horizon_rl.task.latency import make_delay
from horizon_rl.task.motion import Motion, observe_motion
from horizon_rl.task.noise import fold_seed
from horizon_rl.task.sensing import make_sensors
from horizon_rl.viewer.body_variant import Outfit
from horizon_rl.viewer.levels import Values
from horizon_rl.viewer.setup import Setup
from horizon_rl.viewer.state_transfer import carry_state, read_state

CPU = torch.device("cpu")
EVERYONE = torch.ones(1, dtype=torch.bool)
FIRST_ROW = torch.zeros(1, dtype=torch.long)
LIE_S = 1.0
"""How long a fallen robot lies before it is put up again, s."""
ARROW_S = 0.5
"""How long a push is shown, s."""
MEAN_STEPS = 50
"""Control steps that readouts average over: a second."""


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
    fallen_s: float
    """When, since the last reset."""
    falls: int
    since_fall_s: float
    """Since the last fall, resets or not; since the start if there was none."""


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
        self.setup, self.task = setup, setup.task
        self._exact = exact
        self.command = np.zeros(3)
        self.auto_reset = False
        self.falls, self._clock, self._fell_at = 0, 0, 0
        seed = setup.script.noise_seed if setup.script else 0
        self._noise_key = torch.tensor(fold_seed(seed))
        self._upright = least_level(self.task)
        self.use_policy(policy)
        self.replay()

    # What a user can do.

    def use_policy(self, policy: EvaluatedPolicy) -> None:
        """Hand over to another policy, in mid-stride."""
        self.policy = policy
        made = policy.make(CPU)
        self._policy = Padded(made, CHUNK) if self._exact else made
        scale = policy.action_scale
        self._action_scale = self.task.action_scale if scale is None else scale
        self._policy.reset(EVERYONE)
        self._last_action = torch.zeros((1, NUM_ACTIONS))

    def set_values(self, changes: Mapping[str, np.ndarray]) -> None:
        """Change parameters in mid-stride; those of `reset` act at the next reset."""
        for name in changes:
            if name not in self.values:
                raise InputError(unknown("parameter", name, self.values))
        shapes = {name: value.shape for name, value in self.values.items()}
        changed = {k: np.broadcast_to(v, shapes[k]) for k, v in changes.items()}
        now = read_state(self.robot, self.state)
        self._take(self.robot, self.values | changed)
        self._go_on(now.qpos, now.qvel)

    def wear(self, outfit: Outfit) -> None:
        """Change the body: in mid-stride, or standing if it is another robot."""
        robot, state = self.robot, self.state
        same_robot = outfit.robot == self.outfit.robot
        self._enter(outfit)
        if same_robot:
            self._go_on(*carry_state(robot, state, self.robot))
        else:
            self.reset()

    def push(self, velocity: np.ndarray) -> None:
        """Change the trunk's velocity before the next step: forward, left, m/s."""
        w, x, y, z = self.backend.state.root_quat[0].double().numpy()
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        self._next_push = self._next_push + turn @ velocity

    def drive(self, command: np.ndarray) -> None:
        """Command velocities by hand; a scenario's own commands and pushes end."""
        self.script = None
        self.command = np.array(command, float)

    def reset(self) -> None:
        """Begin anew: a scenario at its start, else the same world."""
        self.backend.load(self._pool)
        self.backend.reset(EVERYONE, FIRST_ROW)
        self._policy.reset(EVERYONE)
        self._delay.forget(EVERYONE)
        self._last_action = torch.zeros((1, NUM_ACTIONS))
        self.steps, self._error_sum = 0, 0.0
        self.fallen, self.fallen_step = "", 0
        self._next_push = np.zeros(2)
        self.last_push, self.last_push_step = np.zeros(2), -1
        self._velocities: deque[np.ndarray] = deque(maxlen=MEAN_STEPS)
        self._follow_script()

    def replay(self) -> None:
        """Go back to the setup, whatever was changed since, and begin."""
        self.script = self.setup.script
        self.values = dict(self.setup.values)
        self._enter(self.setup.outfit)
        self.reset()

    @torch.no_grad()
    def step(self) -> None:
        """Advance one control step."""
        self._follow_script()
        actions = self._policy.act(self._observe(self.steps))
        check_actions(actions, 1)
        push = self._next_push + self._scripted_push()
        if push.any():
            self.last_push, self.last_push_step = push, self.steps
        self._next_push = np.zeros(2)
        self.backend.push(torch.from_numpy(push).float().unsqueeze(0))
        arriving = self._delay.arrive(actions)
        self.backend.step(self._default_pose + self._action_scale * arriving)
        self._last_action = actions.clone()
        self.steps += 1
        self._clock += 1
        self._judge()

    # What front ends look at.

    @property
    def state(self) -> np.ndarray:
        """The integration state, to draw the world with; see `carry.show_state`."""
        return self.backend.snapshot().state[0]

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
        motion, pool = self._motion(), self._pool
        velocity = np.mean(self._velocities or [np.zeros(3)], axis=0)
        down = float(motion.gravity[0, 2])
        return Readout(
            time_s=self.steps * CONTROL_DT,
            height_m=float(motion.height[0]),
            command=tuple(self.command.tolist()),
            velocity=tuple(velocity.tolist()),
            error=self._error_sum / max(self.steps, 1),
            tilt_deg=degrees(acos(min(1.0, max(-1.0, -down)))),
            torque_nm=float(self.backend.state.torque.abs().max()),
            effort_nm=float(pool.effort.max()),
            mass_kg=float(pool.fields["body_mass"].sum()),
            fallen=self.fallen,
            fallen_s=self.fallen_step * CONTROL_DT,
            falls=self.falls,
            since_fall_s=(self._clock - self._fell_at) * CONTROL_DT,
        )

    # How it is done.

    def _enter(self, outfit: Outfit) -> None:
        """Put a body in place of the last one; it is built before anything changes."""
        robot = outfit.build()
        self._take(robot, self.values)
        self.outfit, self.robot = outfit, robot
        self.backend = CpuBackend(robot, 1, num_threads=1)

    def _take(self, robot: Robot, values: Values) -> None:
        """Make these values the world's; they are refused before anything changes."""
        instances: Instances = {
            name: value if len(value) == 1 else value[None]
            for name, value in values.items()
        }
        catalogue, first = self.setup.catalogue, np.zeros(1, dtype=int)
        pool = self._pool = build_pool([robot], catalogue, instances, first)
        self.values = {name: np.array(value) for name, value in values.items()}
        self._default_pose = torch.from_numpy(pool.default_pose).float()
        privileged = np.concatenate((pool.body, pool.parameters), axis=1)
        self._privileged = torch.from_numpy(privileged).float()
        signals = {k: torch.from_numpy(v).float() for k, v in pool.signals.items()}
        self._sensors = make_sensors(self.task.noise, signals, 1, CPU)
        self._delay = make_delay(pool, signals, NUM_ACTIONS)
        # As if it had always been so: else the robot would twitch.
        self._delay.settle(self._last_action)

    def _go_on(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Take up changed physics in mid-stride: a reset whose start is the present."""
        now = replace(self._pool, start_qpos=qpos[None], start_qvel=qvel[None])
        self.backend.load(now)
        self.backend.reset(EVERYONE, FIRST_ROW)
        # Sensors are new too, and an episode's first reading is never lost.
        self._observe(0)

    def _follow_script(self) -> None:
        if self.script is None:
            return
        number = self.steps // self.task.hold_steps
        self.command = self.script.commands[min(number, len(self.script.commands) - 1)]

    def _scripted_push(self) -> np.ndarray:
        if self.script is None:
            return np.zeros(2)
        now = self.script.push_steps == self.steps
        return self._pool.push_velocity[0][now].sum(axis=0)

    def _observe(self, step: int) -> TensorDict:
        row = self.script.row if self.script else 0
        return sense(
            self._sensors,
            (self._noise_key, torch.tensor([row]), torch.tensor([step])),
            self.backend.state,
            self._motion(),
            torch.from_numpy(self.command).float().unsqueeze(0),
            self._last_action,
            self._privileged,
        )

    def _motion(self) -> Motion:
        return observe_motion(self.backend.state, self._default_pose)

    def _judge(self) -> None:
        """Measure the step, note a fall, and put the robot up again if asked to."""
        motion = self._motion()
        cause = int(find_falls(self.backend.state, motion, self._upright)[0])
        velocity = torch.cat(
            (motion.linear_velocity[0, :2], motion.angular_velocity[0, 2:])
        )
        self._velocities.append(velocity.double().numpy())
        self._error_sum += float(np.hypot(*(self.command - self._velocities[-1])[:2]))
        if cause and not self.fallen:
            self.fallen, self.fallen_step = FALL_CAUSES[cause], self.steps
            self._fell_at = self._clock
            self.falls += 1
        lain = (self.steps - self.fallen_step) * CONTROL_DT
        broken = self.fallen == FALL_CAUSES[-1]
        if self.fallen and (broken or (self.auto_reset and lain >= LIE_S)):
            self.reset()
