"""`horizon robots`, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from horizon_rl.cli.robots import RobotsCmd, run
from horizon_rl.robots import JOINT_NAMES, preset_names
from horizon_rl.support.errors import InputError

BACKWARD = Path(__file__).parents[1] / "fixtures/backward_axes.xml"


def printed(capsys, **options):
    run(RobotsCmd(**options))
    return capsys.readouterr().out


def test_table_lists_all_robots_on_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(capsys)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    rows = [line.split() for line in out.splitlines() if line.strip()]
    named = [row[0] for row in rows if row[0] in preset_names()]
    assert named == [*preset_names(), *preset_names()]
    go2 = next(row for row in rows if row[0] == "go2")
    assert go2[1:6] == ["15.2", "0.213", "0.213", "0.426", "0.318"]
    assert go2[6:] == ["23.7", "23.7", "45.4", "30.1", "30.1", "15.7"]
    assert "mujoco_menagerie, unitree_ros, IsaacLab" in out


def test_json_has_the_documented_fields(capsys):
    robots = json.loads(printed(capsys, json=True))["robots"]
    assert [robot["name"] for robot in robots] == list(preset_names())
    spot = robots[3]
    assert spot["mass_kg"] == pytest.approx(31.6)
    assert spot["thigh_length_m"] == 0.3214736
    assert spot["standing_height_m"] == pytest.approx(0.508, abs=5e-4)
    assert spot["front_height_m"] == pytest.approx(0.5150089)
    assert spot["rear_height_m"] == pytest.approx(0.4960513)
    assert spot["torque_limit_nm"] == [45.0, 45.0, 115.0]
    assert spot["velocity_limit_rad_s"] == [17.647, 17.647, 12.0]
    assert spot["estimated"] == ["armature"]
    assert spot["sources"][0].startswith("boston-dynamics/spot-sdk@")
    assert len(spot["default_pose_rad"]) == 12


def test_an_intervened_robot_is_listed_as_it_is(capsys):
    [robot] = json.loads(printed(capsys, name=("go2+stilts",), json=True))["robots"]
    assert robot["calf_length_m"] == pytest.approx(0.363)
    assert robot["mass_kg"] == pytest.approx(15.206408 + 4 * 0.241352 * 0.15 / 0.213)


def test_an_mjcf_file_is_listed_beside_the_presets(capsys, shared):
    pytest.importorskip("mujoco")
    path = shared / "fixtures/unitree_a1/a1_nomesh.xml"
    out = printed(capsys, name=("a1", str(path)), json=True)
    ours, theirs = json.loads(out)["robots"]
    assert theirs["mass_kg"] == pytest.approx(ours["mass_kg"])
    assert theirs["velocity_limit_rad_s"] is None
    assert theirs["sources"] == [str(path)]


def test_a_file_is_checked_joint_by_joint(capsys, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(capsys, name=(str(BACKWARD),))
    rows = [line.split() for line in out.splitlines()]
    # The last as the file counts it, about -y.
    thigh = ["FL_thigh", "FL_hip", "0", "-1", "0", "-30.50..10.60", "0.80", "-0.80"]
    assert thigh == next(row[:8] for row in rows if row[:1] == ["FL_thigh"])
    assert "found by kinematics" in out and "0.312 m, 78% of the leg" in out
    assert "FL FL_toe, FR FR_toe" in out and "hull, capsule of FL_upper" in out
    assert max(map(len, out.splitlines())) <= 80
    *drawn, ground = out.rstrip().splitlines()[-12:]
    assert set(ground) == {"▔"} and any("⠋" in line or "⠉" in line for line in drawn)


def test_a_check_has_a_json_form(capsys):
    pytest.importorskip("mujoco")
    [robot] = json.loads(printed(capsys, name=(str(BACKWARD),), json=True))["robots"]
    assert [joint["name"] for joint in robot["joints"]] == list(JOINT_NAMES)
    knee = robot["joints"][2]
    assert knee["axis"] == [0.0, -1.0, 0.0]
    assert knee["limits_rad"] == pytest.approx([-40.5, 10.5])
    assert knee["default_in_file_rad"] == pytest.approx(-knee["default_rad"])
    assert knee["friction_nm"] == 0.5 and knee["joint"] == "FL_knee"
    assert robot["feet"]["RR"] == "RR_toe" and robot["trunk_touches_ground"]
    assert robot["contacts"][0] == "hull" and len(robot["contacts"]) == 5


def test_a_trunk_that_passes_through_the_ground_is_pointed_out(capsys, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec.from_file(str(BACKWARD))
    spec.geom("hull").contype = spec.geom("hull").conaffinity = 0
    spec.compile()
    path = tmp_path / "ghost.xml"
    path.write_text(spec.to_xml())
    assert "a fall shows only by its tilt" in printed(capsys, name=(str(path),))


def test_a_pose_far_from_the_trained_one_is_said(tmp_path):
    pytest.importorskip("mujoco")
    text = (Path(__file__).parents[2] / "examples" / "own_robot.xml").read_text()
    path = tmp_path / "crouch.xml"
    path.write_text(text.replace("0 0.8 -1.5", "0 1.2 -2.4").replace("0.33", "0.2"))
    with pytest.warns(UserWarning, match="shipped policies were trained near"):
        run(RobotsCmd(name=(str(path),)))


def test_a_map_of_joints_beside_the_file_serves_all_commands(tmp_path, capsys):
    mujoco = pytest.importorskip("mujoco")
    from horizon_rl.robots import load_mjcf, load_robot

    spec, joints = mujoco.MjSpec.from_file(str(BACKWARD)), {}
    for number, (name, joint) in enumerate(
        zip(JOINT_NAMES, spec.joints[1:], strict=True)
    ):
        joint.name = joints[name] = f"motor{number}"
    spec.compile()
    path, beside = tmp_path / "mine.xml", tmp_path / "mine.joints.json"
    path.write_text(spec.to_xml())
    with pytest.raises(InputError, match="mine.joints.json beside mine.xml"):
        load_robot(str(path))
    beside.write_text(json.dumps(joints))
    robot = load_robot(str(path))
    assert robot.model.joint(robot.model.dof_jntid[robot.dof_adr[0]]).name == "motor0"
    assert "motor11" in printed(capsys, name=(str(path),))
    # One that is given goes before it; one that changes is read again.
    beside.write_text("[]")
    assert "motor11" in load_mjcf(path, joints=joints).model.names.decode()
    with pytest.raises(InputError, match="mine.joints.json: needs a JSON object"):
        load_robot(str(path))


def test_a_check_says_what_motors_of_its_own_are(tmp_path, capsys):
    pytest.importorskip("mujoco")
    said = " ".join(printed(capsys, name=(str(BACKWARD),)).split())
    assert "motors of its own not known: the file gives no torque limits" in said
    text = BACKWARD.read_text().replace("</mujoco>", "<actuator>")
    text += "".join(
        f'<motor joint="{leg}_{kind}" ctrlrange="-20 20"/>'
        for leg in ("FL", "FR", "RL", "RR")
        for kind in ("abad", "hip", "knee")
    )
    path = tmp_path / "torque.xml"
    path.write_text(f"{text}</actuator></mujoco>")
    said = " ".join(printed(capsys, name=(str(path),)).split())
    assert "limits of the file; velocity, stiffness, damping scaled to the body" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ("go3",)}, "unknown robot 'go3': did you mean 'go"),
        ({"name": ("x.urdf",)}, r"unknown robot .*; or an MJCF file, \*\.xml or"),
        ({"name": ("go2+stilt",)}, "did you mean 'stilts'"),
        ({"name": ("gone.xml",)}, "gone.xml: no such file"),
        (
            {"joints": Path("gone.json"), "name": (str(BACKWARD),)},
            "backward_axes.xml: gone.json: needs a JSON object",
        ),
        ({"joints": Path("map.json")}, "--joints needs the MJCF file"),
        ({"name": ("gone.xml",)}, "gone.xml: no such file"),
        ({"picture": Path("robots.gif")}, "must end in .png"),
        ({"picture": Path("no/such/folder/robots.png")}, "no folder"),
    ],
)
def test_bad_input_is_refused(options, message):
    pytest.importorskip("mujoco")
    with pytest.raises(InputError, match=message):
        run(RobotsCmd(**options))


def test_picture_shows_every_robot(tmp_path, capsys):
    pytest.importorskip("mujoco")
    image = pytest.importorskip("matplotlib.image")
    path = tmp_path / "robots.png"
    try:
        out = printed(capsys, name=("cyberdog2", "b2"), picture=path)
    except InputError as error:
        pytest.skip(str(error))
    assert f"drawn in {path}" in out
    pixels = image.imread(path)[:, :, :3].mean(axis=2)
    background = pixels[0, 0]
    assert background > 0.9, "the background is light"
    drawn = pixels < background - 0.2
    small, large = np.array_split(drawn.any(axis=0), [int(0.38 * drawn.shape[1])])
    assert small.any() and large.any(), "both robots are there"
    assert small.sum() < 0.8 * large.sum(), "both have one scale"
    assert not drawn[:, [0, -1]].any() and not drawn[[0, -1]].any(), (
        "nothing is cut off"
    )


def test_without_a_gl_library_it_says_what_to_install(tmp_path, monkeypatch):
    picture = pytest.importorskip("horizon_rl.robots.picture")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(picture.platform, "system", lambda: "Linux")
    monkeypatch.setattr(picture, "find_library", lambda name: None)
    with pytest.raises(InputError, match="apt-get install libegl1.*libosmesa6"):
        run(RobotsCmd(name=("go2",), picture=tmp_path / "robots.png"))


@pytest.mark.filterwarnings("ignore::UserWarning")  # GLFW warns, then gives up.
@pytest.mark.parametrize("backend", ["wrong", "glfw"])
def test_a_gl_backend_that_does_not_work_is_named(backend, tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.setenv("MUJOCO_GL", backend)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    if backend == "glfw" and sys.platform != "linux":
        pytest.skip("glfw needs no display here")
    with pytest.raises(InputError, match=f"GL backend '{backend}' does not work here"):
        run(RobotsCmd(name=("go2",), picture=tmp_path / "robots.png"))


def test_a_gl_backend_that_mujoco_cannot_load_is_named():
    pytest.importorskip("mujoco")
    code = (
        "from horizon_rl import robots\n"
        "try: robots.build_robot\n"
        "except robots.InputError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "MUJOCO_GL": "wrong"},
    )
    assert "MuJoCo does not load with MUJOCO_GL=wrong" in done.stdout, done.stderr


def test_listing_needs_no_mujoco_and_drawing_says_what_to_install():
    code = (
        "import sys; sys.modules['mujoco'] = None\n"
        "from pathlib import Path\n"
        "from horizon_rl.cli.robots import RobotsCmd, run\n"
        "run(RobotsCmd(json=True))\n"
        "try: run(RobotsCmd(picture=Path('robots.png')))\n"
        "except Exception as error: print(type(error).__name__, error, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert len(json.loads(done.stdout)["robots"]) == 13
    assert done.stderr.startswith("InputError this needs MuJoCo: in a clone, pip ")
    assert "-e '.[train]'" in done.stderr
