"""A skeleton that runs an exported policy on a Unitree Go2, by unitree_sdk2_python.

    horizon export core-quiet policy.onnx --motors own
    python unitree_go2.py policy.onnx --interface eth0

NOT tested on a robot, nor with the SDK: no robot was at hand. Tested is `Controller`, which
needs onnxruntime and numpy: order of joints, observation, memory, limits. Read the part below
with the SDK's own low-level example beside you. Hang the robot up, switch its sport mode off,
and keep the remote's stop in your hand.
"""

import argparse
import time

import numpy as np
from controller import STALE_S, Controller

LEGS, PARTS = ("FR", "FL", "RR", "RL"), ("hip", "thigh", "calf")
JOINTS = [f"{leg}_{part}" for leg in LEGS for part in PARTS]
"""The SDK's order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", help="ONNX file of `horizon export`")
    parser.add_argument("--interface", required=True, help="network interface, eth0")
    parser.add_argument("--command", type=float, nargs=3, default=(0.0, 0.0, 0.0))
    args = parser.parse_args()
    controller = Controller(args.policy, JOINTS)

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
    seen: dict[str, tuple[float, LowState_]] = {}
    ChannelSubscriber("rt/lowstate", LowState_).Init(
        lambda state: seen.update(last=(time.monotonic(), state)), 1
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
    due = time.monotonic()
    try:
        while True:
            read_s, state = seen["last"]
            motors = state.motor_state[:12]
            targets = controller.advance(
                state.imu_state.gyroscope,
                state.imu_state.quaternion,
                [motor.q for motor in motors],
                [motor.dq for motor in motors],
                args.command,
            )
            if targets is None or time.monotonic() - read_s > STALE_S:
                break
            send(targets, controller.stiffness, controller.damping)
            due += 1.0 / controller.rate_hz
            time.sleep(max(0.0, due - time.monotonic()))
    finally:
        # Tilted, without readings, or stopped: no stiffness, so that it sinks down.
        for _ in range(int(controller.rate_hz)):
            send(controller.stand, np.zeros(12), controller.damping)
            time.sleep(1.0 / controller.rate_hz)


if __name__ == "__main__":
    main()
