"""What an imported robot was taken for: joints, limits, contacts, how it stands."""

import math
from typing import Any

import mujoco
import numpy as np

from horizon_rl.robots.joint_map import describe_geom
from horizon_rl.robots.morphology import JOINT_NAMES, LEG_NAMES
from horizon_rl.robots.robot import Robot


def inspect_robot(robot: Robot) -> dict[str, Any]:
    """Describe a robot as plain data; angles are canonical, unknown numbers None."""
    model, data = robot.model, stand(robot)
    joints = model.dof_jntid[robot.dof_adr]
    in_file = robot.source_position(robot.default_pose_rad)
    ranges, limited = np.stack(robot.joint_ranges(), 1), model.jnt_limited[joints]
    solid = np.flatnonzero(model.geom_conaffinity == 1).tolist()
    feet = robot.foot_geom_ids.tolist()
    names = [describe_geom(model, i) for i in range(model.ngeom)]
    return {
        "pose_source": robot.pose_source,
        "left_out": list(robot.left_out),
        "standing_pitch_rad": 2.0 * math.atan2(data.qpos[5], data.qpos[3]),
        "joints": [
            {
                "name": name,
                "joint": model.joint(joint).name,
                "axis": data.xaxis[joint].round(3).tolist(),
                "limits_rad": ranges[i].tolist() if limited[i] else None,
                "default_rad": float(robot.default_pose_rad[i]),
                "default_in_file_rad": float(in_file[i]),
                "friction_nm": float(model.dof_frictionloss[robot.dof_adr[i]]),
                "armature_kg_m2": float(model.dof_armature[robot.dof_adr[i]]),
            }
            for i, (name, joint) in enumerate(zip(JOINT_NAMES, joints, strict=True))
        ],
        "feet": dict(zip(LEG_NAMES, [names[i] for i in feet], strict=True)),
        "contacts": [names[i] for i in solid if i not in feet],
        "trunk_touches_ground": bool(
            np.any(model.geom_bodyid[solid] == robot.trunk_body_id)
        ),
    }


def stand(robot: Robot) -> mujoco.MjData:
    """Return the robot in keyframe 'stand', all of its state computed."""
    data = mujoco.MjData(robot.model)
    mujoco.mj_resetDataKeyframe(robot.model, data, robot.model.key("stand").id)
    mujoco.mj_forward(robot.model, data)
    return data


def outline(robot: Robot) -> list[np.ndarray]:
    """Return lines that show how the robot stands, seen from its right: x, z in m.

    Each leg from hip to foot, and the trunk from rear to front hips.
    """
    data = stand(robot)
    joints = robot.model.dof_jntid[robot.dof_adr].reshape(4, 3)
    feet = data.geom_xpos[robot.foot_geom_ids]
    legs = [
        np.concatenate([data.xanchor[leg], foot[None]])[:, [0, 2]]
        for leg, foot in zip(joints, feet, strict=True)
    ]
    return [*legs, np.stack([legs[2][0], legs[0][0]])]
