"""Frames: rotations against MuJoCo's own."""

import mujoco
import numpy as np
import torch

from horizon_rl.task.observations import gravity_in_frame, rotate_inverse


def test_vectors_are_rotated_as_mujoco_does():
    rng = np.random.default_rng(0)
    for _ in range(50):
        quat = rng.normal(size=4)
        quat /= np.linalg.norm(quat)
        vector, expected, inverse = rng.normal(size=3), np.zeros(3), np.zeros(4)
        mujoco.mju_negQuat(inverse, quat)
        mujoco.mju_rotVecQuat(expected, vector, inverse)
        got = rotate_inverse(torch.tensor(quat[None]), torch.tensor(vector[None]))
        np.testing.assert_allclose(got[0], expected, atol=1e-12)
        mujoco.mju_rotVecQuat(expected, np.array([0.0, 0.0, -1.0]), inverse)
        got = gravity_in_frame(torch.tensor(quat[None]))
        np.testing.assert_allclose(got[0], expected, atol=1e-12)
