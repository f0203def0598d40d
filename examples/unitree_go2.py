"""A skeleton that runs an exported policy on a Unitree Go2, by unitree_sdk2_python.

    horizon export core-quiet policy.onnx --motors own
    python unitree_go2.py policy.onnx --interface eth0

NOT tested on a robot, nor with the SDK: no robot was at hand. Tested is `Controller`, which
needs onnxruntime and numpy: order of joints, observation, memory, limits. Read the part below
it with the SDK's own low-level example beside you. Hang the robot up, switch its sport mode
off, and keep the remote's stop in your hand. A ROS 2 node looks the same: `Controller.step` in
a timer of 50 Hz, between a subscriber of LowState and a publisher of LowCmd.
"""

import argparse
import json
import time

import numpy as np
import onnxruntime as ort

SDK_LEGS = ("FR", "FL", "RR", "RL")
"""The SDK's order of legs; each has hip, thigh and calf, as the policy's."""
RAMP_S = 2.0
"""Time to go from where the robot lies to the default pose."""


class Controller:
    """From readings in the SDK's order to targets in the SDK's order, 50 times a second."""

    def __init__(self, file: str):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = ort.InferenceSession(file, options)
        texts = self._session.get_modelmeta().custom_metadata_map
        self.meta = meta = json.loads(texts["horizon"])
        assert meta["schema"] == 1, "this example understands metadata of schema 1"
        joints = {k: np.array(v) for k, v in meta["joints"].items()}
        legs = [name.split("_")[0] for name in joints["names"][::3]]
        order = [3 * legs.index(leg) + k for leg in SDK_LEGS for k in range(3)]
        self._order = np.array(order)
        """[12] the policy's number of each of the SDK's joints."""
        self._sign, self._offset = joints["sign"], joints["offset_rad"]
        self._pose = joints["default_pose_rad"]
        self.stiffness = joints["stiffness_nm_rad"][order]
        self.damping = joints["damping_nm_s_rad"][order]
        self.stand = self._to_sdk(self._pose)
        """[12] the default pose, in the SDK's order and directions."""
        self.rate_hz = meta["control"]["rate_hz"]
        self._tilt = np.cos(np.radians(meta["limits"]["tilt_limit_deg"]))
        self.reset()

    def reset(self) -> None:
        """Begin an episode: stand in the default pose first."""
        inputs = self._session.get_inputs()
        self._feed = {x.name: np.zeros(x.shape, np.float32) for x in inputs}
        self._feed["valid"] = np.zeros(1, np.int64)
        self._action = np.zeros(12)

    def step(self, gyro, quat, position, velocity, command) -> np.ndarray | None:
        """Return targets [12], rad; None where the robot has tilted too far: stop.

        Args:
            gyro: [3] angular velocity in the trunk's frame, rad/s.
            quat: [4] trunk to world, w x y z.
            position: [12] joint angles, the SDK's order, rad.
            velocity: [12] joint velocities, rad/s.
            command: [3] forward and left, m/s, and turn, rad/s.
        """
        w, x, y, z = quat
        gravity = -np.array(
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)]
        )
        if -gravity[2] < self._tilt:
            return None
        angle, rate = np.empty(12), np.empty(12)
        angle[self._order], rate[self._order] = position, velocity
        now = {
            "angular_velocity": np.asarray(gyro),
            "gravity": gravity,
            "command": np.asarray(command),
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
        return self._to_sdk(self._pose + scale * self._action)

    def _to_sdk(self, angles: np.ndarray) -> np.ndarray:
        return (self._sign * (angles - self._offset))[self._order]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", help="ONNX file of `horizon export`")
    parser.add_argument("--interface", required=True, help="network interface, eth0")
    parser.add_argument("--command", type=float, nargs=3, default=(0.0, 0.0, 0.0))
    args = parser.parse_args()
    controller = Controller(args.policy)

    # From here on untested.
    from unitree_sdk2py.core.channel import (
        ChannelFactoryInitialize,
        ChannelPublisher,
        ChannelSubscriber,
    )
    from unitree_sdk2py.idl.default import unitree_go_msg_dds__LowCmd_
    from unitree_sdk2py.idl.unitree_go.msg.dds_ import LowCmd_, LowState_
    from unitree_sdk2py.utils.crc import CRC

    ChannelFactoryInitialize(0, args.interface)
    seen: list[LowState_] = []
    ChannelSubscriber("rt/lowstate", LowState_).Init(
        lambda state: seen.__setitem__(slice(None), [state]), 1
    )
    sender = ChannelPublisher("rt/lowcmd", LowCmd_)
    sender.Init()
    crc, message = CRC(), unitree_go_msg_dds__LowCmd_()
    message.head[0], message.head[1], message.level_flag = 0xFE, 0xEF, 0xFF

    def send(targets, stiffness, damping) -> None:
        for k in range(12):
            motor = message.motor_cmd[k]
            motor.mode, motor.q, motor.dq, motor.tau = 0x01, float(targets[k]), 0.0, 0.0
            motor.kp, motor.kd = float(stiffness[k]), float(damping[k])
        message.crc = crc.Crc(message)
        sender.Write(message)

    while not seen:
        time.sleep(0.01)
    start = np.array([seen[0].motor_state[k].q for k in range(12)])
    began, period, targets = time.monotonic(), 1.0 / controller.rate_hz, start
    while targets is not None:
        elapsed, state = time.monotonic() - began, seen[0]
        motors = state.motor_state[:12]
        if elapsed < RAMP_S:
            targets = start + elapsed / RAMP_S * (controller.stand - start)
        else:
            targets = controller.step(
                state.imu_state.gyroscope,
                state.imu_state.quaternion,
                [motor.q for motor in motors],
                [motor.dq for motor in motors],
                args.command,
            )
        if targets is not None:
            send(targets, controller.stiffness, controller.damping)
        time.sleep(max(0.0, period - (time.monotonic() - began - elapsed)))
    # Tilted: no stiffness, some damping, so that it sinks down.
    send(start, np.zeros(12), controller.damping)


if __name__ == "__main__":
    main()
