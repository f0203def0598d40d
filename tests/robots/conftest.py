"""What the robot tests share."""

from pathlib import Path

import numpy as np
import pytest

from canonical import canonical_position

SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture
def shared():
    """The project's shared folder, which a clone does not have."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared")
    return SHARED


@pytest.fixture
def drive():
    """A function that drives a robot by PD torques and calls back after each step."""
    mujoco = pytest.importorskip("mujoco")

    def run(robot, data, seconds, target=None, scale=1.0, after=lambda: None):
        # Go2's gains of the paper, 40 and 1, scaled with the body.
        size = robot.body_mass_kg * robot.leg_length_m / 6.478
        stiffness = scale * 40.0 * size
        damping = scale * size * np.sqrt(robot.leg_length_m / 0.426)
        target = robot.default_pose_rad if target is None else target
        for _ in range(round(seconds / robot.model.opt.timestep)):
            error = target - canonical_position(robot, data.qpos)
            speed = robot.joint_sign * data.qvel[robot.dof_adr]
            data.ctrl[:] = stiffness * error - damping * speed
            mujoco.mj_step(robot.model, data)
            after()

    return run


@pytest.fixture
def standing():
    """A function that puts a robot into its keyframe."""
    mujoco = pytest.importorskip("mujoco")

    def stand(robot):
        data = mujoco.MjData(robot.model)
        mujoco.mj_resetDataKeyframe(robot.model, data, robot.model.key("stand").id)
        mujoco.mj_forward(robot.model, data)
        return data

    return stand
