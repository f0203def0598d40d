"""The skeletons for robots, without a robot: what turns readings into targets."""

import runpy
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tensordict import TensorDict

from horizon_rl.policies.load import load_policy

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def beside_the_examples(monkeypatch):
    """Find what they share, as Python does for a script."""
    monkeypatch.syspath_prepend(EXAMPLES)


def test_skeleton_for_go2_acts_as_the_policy_in_the_sdks_order(exported):
    skeleton = runpy.run_path(str(EXAMPLES / "unitree_go2.py"))
    controller = skeleton["Controller"](str(exported("core")), skeleton["JOINTS"])
    ours = load_policy(str(exported("core"))).make(torch.device("cpu"))
    ours.reset(torch.ones(1, dtype=torch.bool))
    rng = np.random.default_rng(0)
    pose = np.array(controller.meta["joints"]["default_pose_rad"]).reshape(4, 3)
    # FL FR RL RR here, FR FL RR RL there.
    np.testing.assert_allclose(controller.stand.reshape(4, 3), pose[[1, 0, 3, 2]])
    last, gyro, command = np.zeros(12), np.zeros(3), np.zeros(3)
    for _ in range(5):
        gyro, command = rng.normal(size=3), rng.uniform(-1.0, 1.0, 3)
        angles, rates = pose + 0.2 * rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
        roll, pitch = rng.uniform(-0.3, 0.3, 2)
        x_turn = np.array([np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0])
        y_turn = np.array([np.cos(pitch / 2), 0.0, np.sin(pitch / 2), 0.0])
        quat, matrix = np.empty(4), np.empty(9)
        engine: Any = mujoco
        engine.mju_mulQuat(quat, y_turn, x_turn)
        engine.mju_quat2Mat(matrix, quat)
        gravity = matrix.reshape(3, 3).T @ [0.0, 0.0, -1.0]
        offset = (angles - pose).ravel()
        terms = {
            "angular_velocity": gyro,
            "gravity": gravity,
            "command": command,
            "joint_offset": offset,
            "joint_velocity": rates.ravel(),
            "last_action": last,
        }
        seen = np.concatenate(
            [t["scale"] * terms[t["name"]] for t in controller.meta["observation"]]
        )
        obs = TensorDict({"actor": torch.from_numpy(seen[None]).float()}, [1])
        last = ours.act(obs)[0].numpy()
        order = [1, 0, 3, 2]
        targets = controller.step(
            gyro, quat, angles[order].ravel(), rates[order].ravel(), command
        )
        expected = pose + 0.25 * last.reshape(4, 3)
        np.testing.assert_allclose(
            targets.reshape(4, 3), expected[[1, 0, 3, 2]], atol=1e-5
        )


BROKEN = {
    "on its side": {"quat": (np.cos(0.7), np.sin(0.7), 0.0, 0.0)},
    "no orientation": {"quat": np.zeros(4)},
    "no turn": {"quat": np.full(4, np.nan)},
    "no command": {"command": np.full(3, np.nan)},
    "no angles": {"position": np.full(12, np.inf)},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_skeletons_stop_where_it_tilts_or_a_reading_is_broken(broken, exported):
    skeleton = runpy.run_path(str(EXAMPLES / "unitree_go2.py"))
    controller = skeleton["Controller"](str(exported("core")), skeleton["JOINTS"])
    sound = {
        "gyro": np.zeros(3),
        "quat": np.array([1.0, 0.0, 0.0, 0.0]),
        "position": controller.stand,
        "velocity": np.zeros(12),
        "command": np.zeros(3),
    }
    for act in (controller.advance, controller.step):
        assert act(**sound) is not None
        assert act(**{**sound, **broken}) is None


class StandInNode:
    """What the skeleton uses of a ROS 2 node; time passes by hand."""

    parameters: dict[str, Any] = {}

    def __init__(self, name: str):
        self.name = name
        self.hear, self.sent, self.said = {}, [], []

    def declare_parameter(self, name, value):
        self.parameters.setdefault(name, value)

    def get_parameter(self, name):
        return SimpleNamespace(value=self.parameters[name])

    def create_subscription(self, kind, topic, callback, qos):
        self.hear[topic] = lambda **parts: callback(SimpleNamespace(**parts))

    def create_publisher(self, kind, topic, depth):
        return SimpleNamespace(publish=lambda m: self.sent.append((topic, m.data)))

    def create_timer(self, period_s, callback):
        self.period_s, self.tick = period_s, callback

    def get_logger(self):
        def say(text, **options):
            self.said.append(text)

        return SimpleNamespace(info=say, warning=say)


@pytest.fixture
def ros(exported, monkeypatch) -> SimpleNamespace:
    """Return the node on stand-ins for ROS, and the policy's joints in another order."""
    parts = {
        "rclpy": {},
        "rclpy.node": {"Node": StandInNode},
        "rclpy.qos": {"qos_profile_sensor_data": "sensor"},
        "geometry_msgs": {},
        "geometry_msgs.msg": {"Twist": SimpleNamespace},
        "sensor_msgs": {},
        "sensor_msgs.msg": {"Imu": SimpleNamespace, "JointState": SimpleNamespace},
        "std_msgs": {},
        "std_msgs.msg": {"Float64MultiArray": SimpleNamespace},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    found = runpy.run_path(str(EXAMPLES / "ros2_node.py"))
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now_s)
    file = str(exported("core"))
    joints = [f"{name}_joint" for name in reversed(found["Controller"](file).names)]
    given = {"policy": file, "joints": joints}
    monkeypatch.setattr(StandInNode, "parameters", given)
    alone = found["Controller"](file, joints)
    node = found["PolicyNode"]()
    return SimpleNamespace(node=node, alone=alone, joints=joints, clock=clock)


def vector(x: float, y: float, z: float, **more: float) -> SimpleNamespace:
    return SimpleNamespace(x=x, y=y, z=z, **more)


def read(ros, position, velocity, gyro=(0.0, 0.0, 0.0), quat=(1.0, 0.0, 0.0, 0.0)):
    """Let the node hear readings; joints arrive in an order of their own."""
    shuffled = np.random.default_rng(1).permutation(12)
    ros.node.hear["joint_states"](
        name=[ros.joints[k] for k in shuffled],
        position=[position[k] for k in shuffled],
        velocity=[velocity[k] for k in shuffled],
    )
    w, x, y, z = quat
    turn = vector(x, y, z, w=w)
    ros.node.hear["imu/data"](orientation=turn, angular_velocity=vector(*gyro))


def stand_up(ros) -> None:
    for _ in range(100):
        read(ros, ros.alone.stand, np.zeros(12))
        ros.node.tick()
        rest = np.zeros(3), (1, 0, 0, 0), ros.alone.stand, np.zeros(12), np.zeros(3)
        ros.alone.advance(*rest)


def test_ros_node_stands_up_and_then_acts_as_the_policy(ros):
    node, rng = ros.node, np.random.default_rng(0)
    assert node.period_s == pytest.approx(1.0 / 50.0)
    lying = ros.alone.stand + 0.5
    read(ros, lying, np.zeros(12))
    node.tick()
    np.testing.assert_allclose(node.sent[0][1], lying)
    for _ in range(99):
        node.tick()
    topic, targets = node.sent[-1]
    assert topic == "position_controller/commands"
    np.testing.assert_allclose(targets, ros.alone.stand, atol=0.01)
    for _ in range(5):
        position = ros.alone.stand + 0.2 * rng.normal(size=12)
        velocity, gyro = rng.normal(size=12), rng.normal(size=3)
        quat = np.array([1.0, *0.1 * rng.normal(size=3)])
        quat /= np.linalg.norm(quat)
        node.hear["cmd_vel"](linear=vector(0.5, -0.2, 0), angular=vector(0, 0, 0.3))
        read(ros, position, velocity, gyro, quat)
        node.tick()
        expected = ros.alone.step(gyro, quat, position, velocity, (0.5, -0.2, 0.3))
        np.testing.assert_allclose(node.sent[-1][1], expected, atol=1e-6)


def test_ros_node_keeps_to_the_commands_of_training_and_stops_without_any(ros):
    node, rest = ros.node, (np.zeros(3), (1.0, 0.0, 0.0, 0.0))
    stand_up(ros)
    node.hear["cmd_vel"](linear=vector(9.0, 0, 0), angular=vector(0, 0, -9.0))
    limits = ros.alone.meta["limits"]
    fastest = (limits["max_speed_m_s"], 0.0, -limits["max_yaw_rate_rad_s"])
    for waited_s, command in ((0.0, fastest), (0.4, fastest), (0.2, (0.0, 0.0, 0.0))):
        ros.clock.now_s += waited_s
        read(ros, ros.alone.stand, np.zeros(12))
        node.tick()
        expected = ros.alone.step(*rest, ros.alone.stand, np.zeros(12), command)
        np.testing.assert_allclose(node.sent[-1][1], expected, atol=1e-6)


def test_ros_node_sends_nothing_without_readings(ros):
    node = ros.node
    node.tick()
    assert node.sent == [] and "waiting for the IMU" in node.said[-1]
    stand_up(ros)
    num_sent = len(node.sent)
    ros.clock.now_s += 0.2
    node.tick()
    # Nor if some joints have no reading, as a gripper's.
    node.hear["joint_states"](name=["gripper"], position=[0.0], velocity=[0.0])
    node.tick()
    assert len(node.sent) == num_sent
    # Then it goes to the default pose first, from where it is.
    sunk = ros.alone.stand + 0.3
    read(ros, sunk, np.zeros(12))
    node.tick()
    np.testing.assert_allclose(node.sent[-1][1], sunk)


def test_ros_node_ends_where_the_robot_has_tilted_too_far(ros):
    stand_up(ros)
    read(ros, ros.alone.stand, np.zeros(12), quat=(np.cos(0.7), np.sin(0.7), 0.0, 0.0))
    num_sent = len(ros.node.sent)
    with pytest.raises(SystemExit, match="tilted too far"):
        ros.node.tick()
    assert len(ros.node.sent) == num_sent
