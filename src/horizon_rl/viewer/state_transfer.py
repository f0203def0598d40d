"""Move a robot in mid-stride to another model of it: new payload, stilts, locks."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np

from horizon_rl.physics.pool import reach_down
from horizon_rl.robots import Robot


def transfer_state(
    old: Robot, state: np.ndarray, new: Robot
) -> tuple[np.ndarray, np.ndarray]:
    """Return qpos and qvel of `new` in the pose that `old` is in.

    Joints of one name keep angle and speed, within the new ranges; others, such as a
    fresh payload's, start as the standing robot has them. The lowest point stays as far
    from the ground as it was: longer legs lift the trunk.

    Args:
        old: What is simulated so far.
        state: Its integration state, [nstate].
        new: What goes on in its place.
    """
    before, after = read_state(old, state), mujoco.MjData(new.model)
    mujoco.mj_resetDataKeyframe(new.model, after, new.model.key("stand").id)
    names = [new.model.joint(i).name for i in range(new.model.njnt)]
    known = {old.model.joint(i).name for i in range(old.model.njnt)}
    for name in filter(known.__contains__, names):
        joint = after.joint(name)
        joint.qpos[:], joint.qvel[:] = before.joint(name).qpos, before.joint(name).qvel
        kind = new.model.joint(name)
        if kind.limited[0]:
            angle = np.clip(joint.qpos, *kind.range)
            joint.qvel[angle != joint.qpos] = 0.0
            joint.qpos[:] = angle
    mujoco.mj_kinematics(new.model, after)
    after.qpos[2] += _clearance_m(old, before) - _clearance_m(new, after)
    return after.qpos.copy(), after.qvel.copy()


def read_state(
    robot: Robot, state: np.ndarray, data: mujoco.MjData | None = None
) -> mujoco.MjData:
    """Write an integration state into `data`, positions of all bodies computed."""
    data = data or mujoco.MjData(robot.model)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    mujoco.mj_setState(robot.model, data, state, kind)
    mujoco.mj_kinematics(robot.model, data)
    # Cameras and shadows go by it.
    mujoco.mj_comPos(robot.model, data)
    return data


def _clearance_m(robot: Robot, data: mujoco.MjData) -> float:
    """Return how high above the ground the lowest point that can touch it is."""
    model = robot.model
    lowest = np.inf
    for geom in np.flatnonzero(model.geom_conaffinity == 1):
        size, up = model.geom_size[geom][None], data.geom_xmat[geom][None, 6:]
        reach = reach_down(model, int(geom), size, up)[0]
        lowest = min(lowest, robot.ground.above(data.geom_xpos[geom]) - reach)
    return float(lowest)
