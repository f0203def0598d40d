"""Settings of the velocity-tracking task; only the rewards' weights are the paper's."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Annotated

from horizon_rl.physics.rates import CONTROL_DT
from horizon_rl.support.bounds import HUGE, Amount, Bounded, Share, Within
from horizon_rl.support.errors import InputError

Seconds = Annotated[float, Within(CONTROL_DT, 1e6)]
"""A control step at least."""
Weight = Annotated[float, Within(-HUGE, HUGE)]


@dataclass(frozen=True, kw_only=True)
class CommandCfg(Bounded):
    """What the robot is asked to do."""

    max_speed: Annotated[float, Within(0.0, 100.0)] = 1.0
    """Forward and sideways velocity are drawn from +- this, m/s."""
    max_yaw_rate: Annotated[float, Within(0.0, 100.0)] = 1.0
    """Yaw rate is drawn from +- this, rad/s."""
    stand_share: Share = 0.1
    """Share of commands that are to stand still."""
    hold_s: Seconds = 10.0
    """A command lasts this long, s."""


@dataclass(frozen=True, kw_only=True)
class PushCfg(Bounded):
    """When the robot is pushed; how hard is a domain parameter.

    Pushes were under way before the episode began: it starts at a random moment of one
    of their intervals, so that the first may come at once, and in 20 s there are 1.6 on
    average, the second in six of ten episodes and never a third. The catalogue has two:
    an episode of more than two of the shortest intervals is pushed no more at its end.
    """

    min_interval_s: Seconds = 10.0
    """Least time from a push to the next, s."""
    max_interval_s: Seconds = 15.0
    """Most time from a push to the next, s."""


@dataclass(frozen=True, kw_only=True)
class NoiseCfg(Bounded):
    """Sensor noise, uniform in +- these; the critic sees without."""

    angular_velocity: Amount = 0.2
    """rad/s"""
    gravity: Amount = 0.05
    """Of the unit vector."""
    joint_position: Amount = 0.01
    """rad"""
    joint_velocity: Amount = 1.5
    """rad/s"""


@dataclass(frozen=True, kw_only=True)
class RewardCfg(Bounded):
    """Weights of the reward's terms, below 0 for what costs; docs/task.md has the terms."""

    linear_velocity: Weight = 1.25
    """exp(-e^2 / 0.25), e the error of the horizontal velocity, m/s."""
    yaw_velocity: Weight = 1.25
    """The same of the yaw rate, rad/s."""
    vertical_velocity: Weight = -2.0
    """Its square."""
    roll_pitch_velocity: Weight = -0.05
    """The square of both rates."""
    action_rate: Weight = -0.02
    """The square of the change of action."""
    feet_air_time: Weight = 0.2
    """Of every foot that lands: how much longer than 0.5 s it was in the air."""
    flat_orientation: Weight = -2.5
    """The square of the trunk's tilt, as gravity shows it."""
    hip_deviation: Weight = -0.4
    """Hips' distance from the default pose."""
    thigh_calf_deviation: Weight = -0.04
    """Thighs' and calves' distance from the default pose."""
    base_height: Weight = -5.0
    """The square of the distance from the standing height."""
    action_smoothness: Weight = -0.02
    """The size of the change of action."""
    joint_power: Weight = -2.0e-5
    """Power of the joints for each kg."""
    torque: Weight = -2.0e-4
    """The square of the torques, in the body's unit."""
    joint_acceleration: Weight = -2.5e-7
    """The square of the joints' accelerations, in the body's unit."""


@dataclass(frozen=True, kw_only=True)
class TaskCfg(Bounded):
    """Velocity tracking on flat ground."""

    episode_s: Annotated[float, Within(CONTROL_DT, 600.0)] = 20.0
    """Longest episode, s."""
    action_scale: Annotated[float, Within(0.0, 100.0)] = 0.25
    """Joint target = default pose + this times the action, rad."""
    tilt_limit_deg: Annotated[float, Within(0.0, 180.0)] = 70.0
    """An episode ends when the trunk leans further than this."""
    command: CommandCfg = field(default_factory=CommandCfg)
    """Velocity commands."""
    push: PushCfg = field(default_factory=PushCfg)
    """Pushes."""
    noise: NoiseCfg = field(default_factory=NoiseCfg)
    """Sensor noise of the actor's observations."""

    def __post_init__(self):
        super().__post_init__()
        if self.push.min_interval_s > self.push.max_interval_s:
            raise InputError("push.min_interval_s is above push.max_interval_s")

    @property
    def max_steps(self) -> int:
        """Control steps of the longest episode."""
        return round(self.episode_s / CONTROL_DT)

    @property
    def worst_errors(self) -> tuple[float, float]:
        """Least errors of an episode in which the physics broke, m/s and rad/s.

        They are those of a robot that stands still at the fastest command, and 1 at
        least: breaking the simulator must not pay.
        """
        fastest = sqrt(2.0) * self.command.max_speed
        return max(1.0, fastest), max(1.0, self.command.max_yaw_rate)

    @property
    def hold_steps(self) -> int:
        """Control steps a command lasts."""
        return round(self.command.hold_s / CONTROL_DT)

    @property
    def num_commands(self) -> int:
        """Commands in the longest episode."""
        return -(-self.max_steps // self.hold_steps)
