"""What the skeletons for robots share: an exported policy as a loop over readings.

It needs onnxruntime and numpy, and nothing of this package.
"""

import json
from collections.abc import Sequence

import numpy as np
import onnxruntime as ort

RAMP_S = 2.0
"""Time to go from where the robot lies to the default pose."""
STALE_S = 0.1
"""Readings older than this are not to be acted upon."""


class Controller:
    """From readings to targets, both in the driver's order, `rate_hz` times a second."""

    def __init__(self, file: str, names: Sequence[str] | None = None):
        """Read the policy and its metadata.

        Args:
            file: ONNX file of `horizon export`.
            names: The joints in the driver's order; without it, the policy's order.
        """
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = ort.InferenceSession(file, options)
        texts = self._session.get_modelmeta().custom_metadata_map
        self.meta = meta = json.loads(texts["horizon"])
        assert meta["schema"] == 1, "this example understands metadata of schema 1"
        joints = {k: np.array(v) for k, v in meta["joints"].items()}
        self.names = tuple(names or meta["joints"]["names"])
        # Drivers say FL_hip_joint where the policy may say FL_hip.
        own = [name.removesuffix("_joint") for name in meta["joints"]["names"]]
        theirs = [name.removesuffix("_joint") for name in self.names]
        assert sorted(theirs) == sorted(own), f"the policy's joints are {own}"
        self._order = order = np.array([own.index(name) for name in theirs])
        """[12] the policy's number of each of the driver's joints."""
        self._sign, self._offset = joints["sign"], joints["offset_rad"]
        self._pose = joints["default_pose_rad"]
        self.stiffness = joints["stiffness_nm_rad"][order]
        self.damping = joints["damping_nm_s_rad"][order]
        self.stand = self._to_driver(self._pose)
        """[12] the default pose, in the driver's order and directions."""
        self.rate_hz = meta["control"]["rate_hz"]
        limits = meta["limits"]
        self._tilt = np.cos(np.radians(limits["tilt_limit_deg"]))
        speed, turn = limits["max_speed_m_s"], limits["max_yaw_rate_rad_s"]
        self._fastest = np.array([speed, speed, turn])
        self.reset()

    def reset(self) -> None:
        """Begin an episode: stand in the default pose first."""
        inputs = self._session.get_inputs()
        self._feed = {x.name: np.zeros(x.shape, np.float32) for x in inputs}
        self._feed["valid"] = np.zeros(1, np.int64)
        self._action = np.zeros(12)
        self._start, self._num_steps = np.zeros(12), 0

    def advance(self, gyro, quat, position, velocity, command) -> np.ndarray | None:
        """Go from where the robot is to the default pose first, then on as `step` says."""
        if not self._may_act(gyro, quat, position, velocity, command):
            return None
        share = self._num_steps / (RAMP_S * self.rate_hz)
        if share >= 1.0:
            return self.step(gyro, quat, position, velocity, command)
        if self._num_steps == 0:
            self._start = np.array(position)
        self._num_steps += 1
        return self._start + share * (self.stand - self._start)

    def step(self, gyro, quat, position, velocity, command) -> np.ndarray | None:
        """Return targets [12], rad; None where readings are broken or it tilts: stop.

        Args:
            gyro: [3] angular velocity in the trunk's frame, rad/s.
            quat: [4] trunk to world, w x y z.
            position: [12] joint angles, the driver's order and directions, rad.
            velocity: [12] joint velocities, rad/s.
            command: [3] forward and left, m/s, and turn, rad/s; kept to what was trained.
        """
        if not self._may_act(gyro, quat, position, velocity, command):
            return None
        angle, rate = np.empty(12), np.empty(12)
        angle[self._order], rate[self._order] = position, velocity
        now = {
            "angular_velocity": np.asarray(gyro),
            "gravity": _gravity(quat),
            "command": np.clip(command, -self._fastest, self._fastest),
            "joint_offset": self._sign * angle + self._offset - self._pose,
            "joint_velocity": self._sign * rate,
            "last_action": self._action,
        }
        for term in self.meta["observation"]:
            part = slice(term["start"], term["stop"])
            self._feed["obs"][0, part] = term["scale"] * now[term["name"]]
        names = ["action", "next_cache", "next_valid"]
        found = self._session.run(names, self._feed)
        (self._action,), self._feed["cache"], self._feed["valid"] = found
        scale = self.meta["control"]["action_scale"]
        return self._to_driver(self._pose + scale * self._action)

    def _may_act(self, gyro, quat, position, velocity, command) -> bool:
        """Tell whether all readings are numbers, and the trunk is upright enough."""
        readings = np.concatenate([gyro, quat, position, velocity, command])
        # An IMU that has no orientation sends zeros.
        is_turn = abs(np.linalg.norm(quat) - 1.0) < 0.1
        is_upright = -_gravity(quat)[2] >= self._tilt
        return bool(np.isfinite(readings).all() and is_turn and is_upright)

    def _to_driver(self, angles: np.ndarray) -> np.ndarray:
        return (self._sign * (angles - self._offset))[self._order]


def _gravity(quat) -> np.ndarray:
    """Return the direction of gravity in the trunk's frame, [3]."""
    w, x, y, z = quat
    return -np.array(
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)]
    )
