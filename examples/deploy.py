"""Walk a policy that `horizon export` wrote, with onnxruntime and MuJoCo alone.

    horizon export core policy.onnx --mjcf go2.xml
    python deploy.py policy.onnx go2.xml --seconds 20 --command 0.5 0 0

Layout, joints, gains and rates come from the metadata in the policy's file. On a robot, its
driver takes the place of `read` and `drive`; the loop stays as it is.
"""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

if "--video" in sys.argv and sys.platform == "linux" and "DISPLAY" not in os.environ:
    os.environ.setdefault("MUJOCO_GL", "egl")  # Before MuJoCo is imported.

import mujoco
import numpy as np
import onnxruntime as ort

OUTPUTS = ["action", "next_cache", "next_valid"]
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("policy", help="ONNX file")
parser.add_argument("robot", help="MuJoCo model with the joints that the policy names")
parser.add_argument("--seconds", type=float, default=20.0)
parser.add_argument("--command", type=float, nargs=3, default=(0.5, 0.0, 0.0))
parser.add_argument("--joint-friction", type=float, help="dry friction, N m")
parser.add_argument("--push", type=float, default=0.0, help="m/s, every 5 s")
parser.add_argument("--video", help="film it, .mp4 or .gif; needs imageio and OpenGL")
args = parser.parse_args()
for path in (args.policy, args.robot):
    if not Path(path).is_file():
        parser.error(f"there is no file {path}")

options = ort.SessionOptions()
options.intra_op_num_threads = 1  # Leave the robot's other cores alone.
session = ort.InferenceSession(args.policy, options)
texts = session.get_modelmeta().custom_metadata_map
# The checksum is the last entry, of 84 bytes.
found = hashlib.sha256(Path(args.policy).read_bytes()[:-84]).hexdigest()
assert texts.get("horizon_sha256", found) == found, "the policy's file is damaged"
meta = json.loads(texts["horizon"])
assert meta["schema"] == 1, "this example understands metadata of schema 1"
control, joints = meta["control"], {k: np.array(v) for k, v in meta["joints"].items()}
sign, offset, pose = joints["sign"], joints["offset_rad"], joints["default_pose_rad"]
stiffness, damping = joints["stiffness_nm_rad"], joints["damping_nm_s_rad"]
torque, fastest = joints["torque_limit_nm"], joints["velocity_limit_rad_s"]
height = meta["robot"]["standing_height_m"]

model = mujoco.MjModel.from_xml_path(args.robot)
still = model.body_weldid[model.geom_bodyid] == 0  # Geoms fixed to the world.
if not np.any(still & ((model.geom_contype | model.geom_conaffinity) > 0)):
    parser.error(f"{args.robot} has no floor: add a plane, or give a scene with one")
ids = [model.joint(name).id for name in joints["names"]]  # In the policy's order.
qpos, dof = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
motor = [list(model.actuator_trnid[:, 0]).index(i) for i in ids]
# As in training, MuJoCo computes the PD torque in each physics step, damping implicitly.
model.opt.timestep = control["physics_step_s"]
model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
model.actuator_biastype[motor] = mujoco.mjtBias.mjBIAS_AFFINE
model.actuator_gainprm[motor, 0] = stiffness
model.actuator_biasprm[motor, 1:3] = np.stack([-stiffness, -damping], axis=1)
model.actuator_forcelimited[motor], model.actuator_ctrllimited[motor] = 1, 0
model.dof_damping[dof] = 0.0  # All damping is the controller's.
if args.joint_friction is not None:
    model.dof_frictionloss[dof] = args.joint_friction
data = mujoco.MjData(model)
data.qpos[:7] = 0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0
data.qpos[qpos] = sign * (pose - offset)


def read():
    """Return IMU and encoders by the names of the observation's terms, and the truth."""
    to_world = np.empty(9)
    mujoco.mju_quat2Mat(to_world, data.qpos[3:7])
    to_trunk = to_world.reshape(3, 3).T
    return {
        "angular_velocity": data.qvel[3:6].copy(),  # In the trunk's frame already.
        "gravity": to_trunk @ (0.0, 0.0, -1.0),
        "joint_offset": sign * data.qpos[qpos] + offset - pose,
        "joint_velocity": sign * data.qvel[dof],
        "velocity": to_trunk @ data.qvel[:3],
    }


def drive(target):
    """Move the joints towards `target` until the next action is due."""
    data.ctrl[motor] = sign * (target - offset)
    for _ in range(control["physics_steps"]):
        # At speed a motor has less torque left in the direction of its motion.
        speed = (data.qvel[dof] / fastest)[:, None] * [-1.0, 1.0]
        share = np.clip(control["stall_share"] * (1.0 - speed), 0.0, 1.0)
        model.actuator_forcerange[motor] = torque[:, None] * [-1.0, 1.0] * share
        mujoco.mj_step(model, data)


frames, film = [], mujoco.Renderer(model, 368, 640) if args.video else None
camera = mujoco.MjvCamera()
camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
camera.distance, camera.elevation = 6.0 * height, -15.0
feed = {x.name: np.zeros(x.shape, np.float32) for x in session.get_inputs()}
feed["valid"] = np.zeros(1, np.int64)  # Nothing to remember: an episode begins.
action, now, moved, fell = np.zeros(len(ids)), read(), [], False
while len(moved) < args.seconds * control["rate_hz"] and not fell:
    now |= {"command": np.array(args.command), "last_action": action}
    for term in meta["observation"]:
        feed["obs"][0, term["start"] : term["stop"]] = term["scale"] * now[term["name"]]
    (action,), feed["cache"], feed["valid"] = session.run(OUTPUTS, feed)
    pushes, steps = divmod(len(moved), 5 * control["rate_hz"])
    if steps == 0 and pushes > 0:  # Each from another side.
        data.qvel[:2] += args.push * np.array([np.cos(2 * pushes), np.sin(2 * pushes)])
    drive(pose + control["action_scale"] * action)
    now = read()
    if film and len(moved) % 2 == 0:  # 25 frames a second.
        film.update_scene(data, camera)
        frames.append(film.render())
    moved.append([*now["velocity"][:2], now["angular_velocity"][2]])
    tilted = -now["gravity"][2] < np.cos(np.radians(meta["limits"]["tilt_limit_deg"]))
    fell = tilted or data.qpos[2] < 0.5 * height

seconds, error = len(moved) / control["rate_hz"], np.array(moved) - args.command
off, yaw_off = np.hypot(error[:, 0], error[:, 1]).mean(), np.abs(error[:, 2]).mean()
forward, left, turned = seconds * np.mean(moved, axis=0)
print(f"{forward:.2f} m forward, {left:.2f} m left, {turned:.2f} rad turned")
print(f"mean error {off:.3f} m/s, {yaw_off:.3f} rad/s; trunk at {data.qpos[2]:.3f} m")
print(f"{'fell' if fell else 'upright'} after {seconds:.2f} s")
if film:
    import imageio

    imageio.mimwrite(args.video, frames, fps=control["rate_hz"] / 2)
    print(f"filmed in {args.video}")
