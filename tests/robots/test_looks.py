"""What presets look like, and that it is looks only."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from horizon_rl.robots import build_robot, generate, load_robot, preset_names
from horizon_rl.robots.look_parts import FEATURES
from horizon_rl.robots.looks import _looks, dress, is_dressed
from horizon_rl.robots.picture import choose_gl, draw_robots
from horizon_rl.support.errors import InputError

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_robot.xml"


def simulate(model: mujoco.MjModel) -> np.ndarray:
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(200):
        data.ctrl[:] = 3.0 * np.sin(40.0 * data.time + np.arange(model.nu))
        mujoco.mj_step(model, data)
    return np.concatenate([data.qpos, data.qvel, data.sensordata])


@pytest.mark.parametrize("name", preset_names())
def test_look_changes_no_bit_of_the_physics(name):
    robot = load_robot(name)
    plain = robot.model.geom_group.copy(), robot.model.geom_rgba.copy()
    before = simulate(robot.model)
    shapes, drawn = dress(robot)
    assert shapes
    np.testing.assert_array_equal(simulate(robot.model), before)
    np.testing.assert_array_equal(simulate(drawn), before)
    np.testing.assert_array_equal(robot.model.geom_group, plain[0])
    np.testing.assert_array_equal(robot.model.geom_rgba, plain[1])


def test_every_preset_has_a_look_of_its_own():
    looks = _looks()
    assert set(looks) == {*preset_names(), "plain"}
    kinds = [(look.trunk, look.deck, look.features) for look in looks.values()]
    assert len(set(kinds)) == len(kinds)
    assert {f for look in looks.values() for f in look.features} == set(FEATURES)


@pytest.mark.parametrize("name", preset_names())
def test_trunk_reaches_the_hips(name):
    robot = load_robot(name)
    shapes, model = dress(robot)
    trunk = [s for s in shapes if s.body == robot.trunk_body_id]
    corners = [
        s.pos + sign * np.abs(s.mat @ s.extent_m) for s in trunk for sign in (-1, 1)
    ]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    for leg in ("FL", "RR"):
        hip = model.body(f"{leg}_hip").pos
        assert low[0] < hip[0] < high[0]
        # The hip's own motor fills what is left between trunk and leg.
        gap = abs(hip[1]) - max(high[1], -low[1])
        assert gap < 0.19 * abs(model.body(f"{leg}_calf").pos[2])


def test_bodies_that_are_no_preset_are_plain_and_imported_ones_their_own():
    body = build_robot(generate(np.random.default_rng(0), 1)[0])
    assert is_dressed(body) and dress(body)[0]
    assert dress(load_robot("go2+stilts"))[0]
    imported = load_robot(str(EXAMPLE))
    shapes, model = dress(imported)
    assert shapes == []
    np.testing.assert_array_equal(model.geom_group, imported.model.geom_group)


def test_pictures_show_the_look():
    try:
        choose_gl()
    except InputError as error:
        pytest.skip(str(error))
    spot, anymal = draw_robots([load_robot("spot"), load_robot("anymal_c")], 120)
    red, green, blue = (spot[..., k].astype(int) for k in range(3))
    yellow = ((red > 180) & (green > 130) & (blue < 90)).mean()
    assert yellow > 0.05, "Spot is yellow"
    red, green, blue = (anymal[..., k].astype(int) for k in range(3))
    assert ((red > 120) & (green < 80) & (blue < 90)).mean() > 0.05, "ANYmal is red"


def test_an_imported_light_is_not_doubled(tmp_path):
    text = EXAMPLE.read_text()
    bare = load_robot(str(EXAMPLE)).model.nlight
    light = '<worldbody><light pos="0 0 3" dir="0 0 -1"/>'
    lit = tmp_path / "lit.xml"
    lit.write_text(text.replace("<worldbody>", light, 1))
    own = text.count("<light")
    assert bare == max(1, own)
    assert load_robot(str(lit)).model.nlight == own + 1
