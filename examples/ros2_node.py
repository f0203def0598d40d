"""A skeleton of a ROS 2 node that runs an exported policy.

    horizon export core-quiet policy.onnx --motors own
    python ros2_node.py --ros-args -p policy:=policy.onnx

It reads /joint_states, /imu/data and /cmd_vel and sends 12 joint angles, 50 times a second, to
a position controller of ros2_control: /position_controller/commands, in the order of its
parameter `joints`. Give the node the same list: -p joints:=[FL_hip_joint,...]. Stiffness and
damping are the driver's to set; the node logs those that the policy was trained with.

NOT tested with ROS 2, nor on a robot, nor with a simulator: none was at hand. Tested is the node
with stand-ins for rclpy and the messages: order of joints and quaternion, memory, limits, what is
done about readings that are old. The IMU must turn with the trunk: x forward, y left, z up. Where
the robot tilts too far or a reading is no number the node says so and ends; where readings stop, it
sends nothing until they come again. In both cases a position controller holds the last targets:
cutting the torque is up to the driver.
"""

import time

import numpy as np
import rclpy
from controller import STALE_S, Controller
from geometry_msgs.msg import Twist
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

COMMAND_S = 0.5
"""A command older than this means to stand."""


class PolicyNode(Node):
    """From the last readings to joint targets."""

    def __init__(self):
        super().__init__("horizon_policy")
        self.declare_parameter("policy", "policy.onnx")
        self.declare_parameter("joints", [""])
        joints = [name for name in self.get_parameter("joints").value if name]
        self.controller = Controller(self.get_parameter("policy").value, joints or None)
        self._seen: dict[str, tuple[float, np.ndarray]] = {}
        """When each was read last, s, and what."""
        sensor = qos_profile_sensor_data
        self.create_subscription(JointState, "joint_states", self._take_joints, sensor)
        self.create_subscription(Imu, "imu/data", self._take_imu, sensor)
        self.create_subscription(Twist, "cmd_vel", self._take_command, 10)
        topic = "position_controller/commands"
        self._sender = self.create_publisher(Float64MultiArray, topic, 10)
        self.create_timer(1.0 / self.controller.rate_hz, self._tick)
        self.get_logger().info(
            f"joints {self.controller.names}, stiffness {self.controller.stiffness} "
            f"N m/rad, damping {self.controller.damping} N m s/rad"
        )

    def _take_joints(self, message: JointState) -> None:
        readings = zip(message.position, message.velocity, strict=False)
        found = dict(zip(message.name, readings, strict=False))
        # Grippers and the like may have messages of their own.
        if all(name in found for name in self.controller.names):
            self._keep("joints", [found[name] for name in self.controller.names])

    def _take_imu(self, message: Imu) -> None:
        turn, rate = message.orientation, message.angular_velocity
        self._keep("quat", [turn.w, turn.x, turn.y, turn.z])
        self._keep("gyro", [rate.x, rate.y, rate.z])

    def _take_command(self, message: Twist) -> None:
        wish = [message.linear.x, message.linear.y, message.angular.z]
        self._keep("command", wish)

    def _keep(self, name: str, values) -> None:
        # By a clock that never jumps, unlike ROS's.
        self._seen[name] = time.monotonic(), np.array(values)

    def _read(self, name: str, within_s: float) -> np.ndarray | None:
        read_s, values = self._seen.get(name, (-np.inf, None))
        return values if time.monotonic() - read_s <= within_s else None

    def _tick(self) -> None:
        joints, quat, gyro = (
            self._read(name, STALE_S) for name in ("joints", "quat", "gyro")
        )
        command = self._read("command", COMMAND_S)
        if joints is None or quat is None or gyro is None:
            self.get_logger().warning(
                f"waiting for the IMU and for joints {', '.join(self.controller.names)}",
                throttle_duration_sec=1.0,
            )
            # Standing up comes first again: who knows where it is by then.
            self.controller.reset()
            return
        command = np.zeros(3) if command is None else command
        targets = self.controller.advance(gyro, quat, *joints.T, command)
        if targets is None:
            raise SystemExit("tilted too far, or a broken reading: no more is sent")
        self._sender.publish(Float64MultiArray(data=targets.tolist()))


def main() -> None:
    rclpy.init()
    try:
        rclpy.spin(PolicyNode())
    finally:
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
