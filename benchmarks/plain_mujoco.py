"""Does a policy walk in plain MuJoCo, on robots whose joints have dry friction?

    python benchmarks/plain_mujoco.py core --joint-friction 0.5 --push 1

Exports the policy for every preset and for robots from MJCF files, and walks each model by
`examples/deploy.py`, which knows nothing of this package: 20 s, five commands, pushes.
`--robots` takes other files too; those walked by default are in the repository.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mujoco

from horizon_rl.robots import FLAT, preset_names
from horizon_rl.robots.scene import add_motor

ROOT = Path(__file__).parents[1]
FILES = ("examples/own_robot.xml", "tests/fixtures/backward_axes.xml")
COMMANDS = ("0 0 0", "0.5 0 0", "-0.5 0 0", "0 0.5 0", "0.3 0 0.8")
"""Velocity forward and to the left, m/s, and yaw rate, rad/s."""
MAX_ERROR = 0.4
"""Mean error of the velocity that is a success, as in suites, m/s."""


def run(*command: object) -> str:
    """Run a command and return what it prints."""
    words = [sys.executable, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def stand_on_a_floor(file: Path) -> str:
    """Return a robot's file with the floor and the motors that it may lack."""
    spec = mujoco.MjSpec.from_file(str(file))
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.geoms):
        FLAT.add_to(spec)
    driven = {actuator.target for actuator in spec.actuators}
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE and joint.name not in driven:
            add_motor(spec, joint.name, joint.name)
    spec.compile()
    return spec.to_xml()


def walk(policy: Path, model: Path, args: argparse.Namespace, command: str) -> float:
    """Return the mean error of the velocity, m/s; infinite after a fall."""
    flags = ["--seconds", args.seconds, "--joint-friction", args.joint_friction]
    flags += ["--push", args.push, "--command", *command.split()]
    said = run(ROOT / "examples/deploy.py", policy, model, *flags)
    found = re.search(r"mean error ([\d.]+) m/s", said)
    assert found, said
    return float(found[1]) if "upright after" in said else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("policy", help="name of `horizon models`, run or checkpoint")
    parser.add_argument("--robots", nargs="+", default=[*preset_names(), *FILES])
    parser.add_argument("--motors", default="scaled", help="scaled or own")
    parser.add_argument("--joint-friction", type=float, default=0.5, help="N m")
    parser.add_argument("--push", type=float, default=1.0, help="m/s, every 5 s")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--jobs", type=int, default=1, help="walks side by side")
    args = parser.parse_args()
    succeeded = total = 0
    for robot in args.robots:
        path = ROOT / robot if robot in FILES else robot
        with tempfile.TemporaryDirectory() as folder:
            policy, model = Path(folder) / "policy.onnx", Path(folder) / "robot.xml"
            flags = ["--robot", path, "--motors", args.motors]
            if robot in preset_names():
                flags += ["--mjcf", model]
            else:
                model.write_text(stand_on_a_floor(Path(path)))
            run("-m", "horizon_rl", "export", args.policy, policy, *flags)
            with ThreadPoolExecutor(args.jobs) as pool:
                walks = [pool.submit(walk, policy, model, args, c) for c in COMMANDS]
                errors = [each.result() for each in walks]
        won = sum(error <= MAX_ERROR for error in errors)
        succeeded, total = succeeded + won, total + len(errors)
        shown = "  ".join("fell" if e == float("inf") else f"{e:.2f}" for e in errors)
        print(f"{robot:32} {won} of {len(errors)}   {shown}", flush=True)
    print(f"{succeeded} of {total}: {succeeded / total:.1%}")


if __name__ == "__main__":
    main()
