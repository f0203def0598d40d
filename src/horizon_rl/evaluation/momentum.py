"""Which scenarios momentum makes impossible: pushed hard where nothing brakes.

Friction slows a robot's centre of mass by at most mu g on average, however it uses its
feet. So a hard push on slippery ground carries it away for seconds, and their tracking
error alone may be more than a success can have. It is a bound for those who walk, trunk
within 30 degrees of level, and who do not foresee pushes: when one comes, they are off
their command by no more than a success is on average, in the direction that helps most.
Else it gives every advantage:

- Only distance in the push's direction counts, less what is commanded at the time, as if
  the command pointed there; the way up to a command's speed is free.
- Friction acts with the weight of a landing from `FALL_M` too, and external force helps.
- The trunk may move by two legs' length against the centre of mass.

Restitution is left out: rebounds cost control, but nothing here proves how much.
"""

import numpy as np

from horizon_rl.physics import CONTROL_DT, Pool
from horizon_rl.task import Scenarios, SuccessCfg, TaskCfg

LEVEL = np.cos(np.radians(30.0))
"""Share of a level speed that is measured in the trunk's tilted plane, at least."""
FALL_M = 0.5
"""Height of the fall in which a push may meet the robot."""


def impossible(scenarios: Scenarios, task: TaskCfg, success: SuccessCfg) -> np.ndarray:
    """Tell for each scenario whether pushes take it beyond the error of a success, [n]."""
    pool, steps = scenarios.pool, scenarios.push_steps
    braking, less_speed, less_distance = _braking(pool)
    # A fall after this is no failure.
    end = max(1, int(success.min_length * task.max_steps))
    commanded = _commanded(scenarios, task)[:, :end]
    excess, leftover = np.zeros(len(scenarios)), np.zeros(len(scenarios))
    for push in range(steps.shape[1]):
        start = np.minimum(steps[:, push], end)
        last = push + 1 == steps.shape[1]
        stop = np.full_like(start, end) if last else np.minimum(steps[:, push + 1], end)
        strength = np.linalg.norm(pool.push_velocity[:, push], axis=-1)
        now = np.take_along_axis(commanded, np.maximum(start - 1, 0)[:, None], axis=1)
        off_command = now[:, 0] + success.max_error + leftover
        times = CONTROL_DT * (np.arange(1, end + 1) - start[:, None])
        under_way = (times > 0.0) & (np.arange(1, end + 1) <= stop[:, None])
        slid = (strength - off_command - less_speed)[:, None] * times
        slid -= 0.5 * braking[:, None] * times**2 + less_distance[:, None]
        asked = np.cumsum(commanded * under_way, axis=1) * CONTROL_DT
        excess += np.max(LEVEL * slid - asked, axis=1, where=under_way, initial=0.0)
        # What is left of it at the next push may be against that one.
        gone = CONTROL_DT * (stop - start)
        leftover = np.maximum(strength + off_command - braking * gone, 0.0)
    return excess > success.max_error * task.episode_s


def _braking(pool: Pool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the fastest braking, m/s^2, and what else comes off a speed, m/s, and off a
    distance, m; [n] each.

    From a push to time t, friction's impulse per mass is at most mu times that of the
    normal force, g t + v_z(t) - v_z(0); the integral of v_z over time is a rise.
    """
    model, friction = pool.robot.model, pool.fields["geom_friction"][:, :, 0]
    touching = (model.geom_conaffinity | model.geom_contype) > 0
    mu = friction[:, touching & (model.geom_bodyid > 0)].max(axis=1)
    mass, gravity = pool.fields["body_mass"].sum(axis=1), -model.opt.gravity[2]
    force = pool.wrench[:, :3] / mass[:, None]
    weight = np.maximum(gravity - force[:, 2], 0.0)
    braking = mu * weight + np.linalg.norm(force[:, :2], axis=1)
    legs = 2.0 * (pool.robot.thigh_length_m + pool.robot.calf_length_m)
    return braking, mu * np.sqrt(2.0 * gravity * FALL_M), mu * FALL_M + legs


def _commanded(scenarios: Scenarios, task: TaskCfg) -> np.ndarray:
    """Return the commanded speed in every control step, [n, steps]."""
    speeds = np.linalg.norm(scenarios.commands[:, :, :2], axis=-1)
    return np.repeat(speeds, task.hold_steps, axis=1)[:, : task.max_steps]
