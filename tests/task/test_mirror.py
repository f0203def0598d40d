"""The mirror against physics: a mirrored robot stays the mirror image of the other."""

import mujoco
import numpy as np

from horizon_rl.robots import JOINT_NAMES, build_robot, load_preset
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR
from horizon_rl.task.mirror import ACTION, JOINTS, OBSERVATION, Swap
from horizon_rl.task.observations import ACTOR_LAYOUT

TRUNK = Swap((0, 1, 2), (1.0, -1.0, 1.0))
"""Of positions and velocities."""
TURNING = Swap((0, 1, 2), (-1.0, 1.0, -1.0))
"""Of rotations: axis, angular velocity, the last three of a quaternion."""


def swap(values: np.ndarray, by: Swap) -> np.ndarray:
    return values[list(by.order)] * np.array(by.sign)


def mirrored(data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Return the state of the mirror image; joints lie in canonical order."""
    position, speed = data.qpos, data.qvel
    quat = np.concatenate((position[3:4], swap(position[4:7], TURNING)))
    joints = swap(position[7:], JOINTS), swap(speed[6:], JOINTS)
    trunk = swap(speed[:3], TRUNK), swap(speed[3:6], TURNING)
    return (
        np.concatenate((swap(position[:3], TRUNK), quat, joints[0])),
        np.concatenate((*trunk, joints[1])),
    )


def test_mirrored_robot_under_mirrored_torques_stays_the_mirror_image():
    # Spot's two sides are the same; the trunks of most others are slightly asymmetric.
    model, rng = build_robot(load_preset("spot")).model, np.random.default_rng(0)
    assert [model.joint(i).name for i in range(1, 13)] == list(JOINT_NAMES)
    one, other = mujoco.MjData(model), mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, one, 0)
    one.qpos[7:] += 0.2 * rng.normal(size=12)
    one.qvel[:] = 0.5 * rng.normal(size=18)
    other.qpos[:], other.qvel[:] = mirrored(one)
    touched = False
    for _ in range(150):
        torques = 5.0 * rng.normal(size=12)
        one.qfrc_applied[6:], other.qfrc_applied[6:] = torques, swap(torques, ACTION)
        mujoco.mj_step(model, one)
        mujoco.mj_step(model, other)
        touched |= one.ncon > 0
    for found, expected in zip((other.qpos, other.qvel), mirrored(one), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert touched and np.abs(one.qvel).max() > 0.1


def test_every_number_has_one_image_and_the_image_of_an_image_is_itself():
    for by, width in ((OBSERVATION, NUM_ACTOR), (ACTION, NUM_ACTIONS)):
        values = np.arange(1.0, 1.0 + width)
        np.testing.assert_array_equal(swap(swap(values, by), by), values)
        assert not np.array_equal(swap(values, by), values)


def test_command_to_the_left_is_one_to_the_right():
    names = [name for name, width in ACTOR_LAYOUT for _ in range(width)]
    first = names.index("command")
    obs = np.zeros(NUM_ACTOR)
    obs[first : first + 3] = 0.5, 0.3, 0.2
    image = swap(obs, OBSERVATION)
    np.testing.assert_array_equal(image[first : first + 3], [0.5, -0.3, -0.2])
    assert np.count_nonzero(image) == 3
