import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from horizon_rl.domains import shipped_catalogue
from horizon_rl.policies.load import EvaluatedPolicy, as_policy, load_policy
from horizon_rl.robots import FLAT
from horizon_rl.robots.terrain import Terrain
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.body import BodyVariant, read_state
from horizon_rl.viewer.session import Pace, Session
from horizon_rl.viewer.setup import (
    free_setup,
    ground_of,
    load_scenario,
    named_grounds,
)


def start(policy: str = "stand", robot: str = "go2") -> Session:
    return Session(load_policy(policy), free_setup(robot))


def advance(session: Session, seconds: float) -> Session:
    for _ in range(round(seconds * 50)):
        session.step()
    return session


def height_with(**values: float) -> float:
    session = start()
    session.set_values({k.replace("__", "."): np.array([v]) for k, v in values.items()})
    return advance(session, 2.0).readout().height_m


def test_heavier_robot_stands_lower():
    assert height_with(mass__scale=2.0) < height_with(mass__scale=1.0) - 0.01


def test_softer_robot_stands_lower():
    assert height_with(actuation__stiffness=20.0) < height_with() - 0.01


def test_change_of_physics_keeps_pose_and_speed():
    session = advance(start("base-mlp"), 0.5)
    before = read_state(session.robot, session.state)
    session.set_values({"mass.scale": np.array([1.5])})
    after = read_state(session.robot, session.state)
    np.testing.assert_allclose(after.qpos, before.qpos, atol=1e-12)
    np.testing.assert_allclose(after.qvel, before.qvel, atol=1e-12)
    assert session.readout().mass_kg == pytest.approx(1.5 * 15.206, rel=1e-3)


def test_push_changes_the_velocity_by_what_was_asked_in_the_robots_own_frame():
    session = advance(start(), 1.0)
    state = session.env.backend.state
    # Turned left by a quarter: its left is the world's -x.
    state.root_quat[0] = state.root_quat.new_tensor((0.5**0.5, 0.0, 0.0, 0.5**0.5))
    session.push(np.array((0.0, 0.7)))
    np.testing.assert_allclose(session._next_push, (-0.7, 0.0), atol=1e-6)
    before = state.linear_velocity[0, 0].item()
    session.step()
    assert state.linear_velocity[0, 0].item() - before == pytest.approx(-0.7, abs=0.2)
    assert session.shown_push is not None
    np.testing.assert_allclose(session.shown_push, (-0.7, 0.0), atol=1e-6)
    assert not session._next_push.any()


def slide_m(friction: float) -> float:
    session = advance(start(), 1.0)
    names = ("contact.static_friction", "contact.dynamic_friction")
    session.set_values({name: np.array([friction]) for name in names})
    before = session.env.backend.state.root_position[0].clone()
    session.push(np.array((0.6, 0.0)))
    advance(session, 1.0)
    return float((session.env.backend.state.root_position[0] - before).norm())


def test_robot_slides_further_on_ice():
    assert slide_m(0.05) > 2.0 * slide_m(1.2)


def test_payload_adds_its_mass_and_keeps_the_pose():
    session = advance(start("base-mlp"), 0.5)
    before = read_state(session.robot, session.state)
    session.change_body(BodyVariant(robot="go2", payload_kg=4.0, payload_x_m=0.1))
    after = read_state(session.robot, session.state)
    assert session.readout().mass_kg == pytest.approx(15.206 + 4.0, abs=0.01)
    np.testing.assert_allclose(after.qpos[:19], before.qpos[:19], atol=1e-9)
    advance(session, 1.0)
    assert not session.fallen


def test_stilts_lift_the_trunk_and_leave_the_feet_on_the_ground():
    session = advance(start(), 1.0)
    before = session.readout().height_m
    session.change_body(session.body.with_intervention("stilts", True))
    assert 0.09 < session.readout().height_m - before < 0.15
    advance(session, 0.04)
    assert session.env.backend.state.foot_force.sum() > 50.0


def test_damage_is_seen_as_it_is_simulated():
    setup = free_setup("go2", shipped_catalogue("extended"))
    session = advance(Session(load_policy("stand"), setup), 1.0)
    built, before = session.robot, session.readout().height_m
    session.set_values({"drivetrain.friction": np.array([1.0])})
    assert session.robot is built, "it looks as before"
    session.set_values({"damage.stilts": np.array([0.15])})
    assert 0.09 < session.readout().height_m - before < 0.15
    data = read_state(session.robot, session.state)
    radius = session.robot.model.geom_size[session.robot.foot_geom_ids, 0]
    feet = data.geom_xpos[session.robot.foot_geom_ids, 2] - radius
    assert np.abs(feet).max() < 0.03, f"feet are shown at {feet} m"
    advance(session, 0.04)
    assert session.env.backend.state.foot_force.sum() > 50.0


def test_the_ground_changes_under_the_robot_and_is_shown():
    setup = free_setup("go2", shipped_catalogue("extended"))
    session = advance(Session(load_policy("stand"), setup), 0.5)
    height = session.readout().height_m
    session.set_values({"terrain.stairs": np.array([0.1])})
    ground, floor = session.robot.ground, session.robot.model.geom("floor").id
    assert isinstance(ground, Terrain) and not ground.is_plane
    patch = int(session._pool.patch[0])
    assert ground.patch == session.robot.model.geom_dataid[floor] == patch > 0
    assert session.readout().height_m == pytest.approx(height, abs=0.15)
    session.set_values({"terrain.stairs": np.array([0.0])})
    assert session.robot.ground.is_plane
    advance(session, 0.1)


def test_locked_knees_do_not_move():
    session = start("base-mlp")
    session.drive(np.array((0.8, 0.0, 0.0)))
    advance(session, 0.5)
    session.change_body(session.body.with_intervention("front-knees-locked", True))
    knees = session.env.backend.state.joint_position[0, [2, 5]].clone()
    for _ in range(50):
        session.step()
        now = session.env.backend.state.joint_position[0, [2, 5]]
        assert (now - knees).abs().max() < 2e-3


def test_interventions_come_off_again():
    session = start()
    session.change_body(session.body.with_intervention("payload-5kg", True))
    session.change_body(session.body.with_intervention("payload-5kg", False))
    assert session.body == BodyVariant(robot="go2")
    assert session.readout().mass_kg == pytest.approx(15.206, abs=0.01)


def test_another_robot_stands_at_its_own_height():
    session = advance(start(), 0.5)
    session.change_body(BodyVariant(robot="b2"))
    advance(session, 1.0)
    assert 0.47 < session.readout().height_m < 0.55
    assert not session.fallen


def test_fallen_robot_is_put_up_again_if_asked():
    session = start()
    session.auto_reset = True
    session.set_values({"mass.scale": np.array([5.0])})
    session.push(np.array((0.0, 4.0)))
    steps = 0
    while not session.fallen and steps < 200:
        session.step()
        steps += 1
    assert session.fallen and session.falls == 1
    advance(session, 1.1)
    assert session.steps < 60


def test_impossible_value_is_refused_and_changes_nothing():
    session = start()
    with pytest.raises(InputError, match="mass.scale = -1"):
        session.set_values({"mass.scale": np.array([-1.0])})
    with pytest.raises(InputError, match="did you mean 'mass.scale'"):
        session.set_values({"mass.scal": np.array([1.0])})
    assert session.values["mass.scale"] == 1.0
    session.step()


def test_imported_robot_is_changed_in_mid_stride_but_takes_no_payload():
    path = str(Path(__file__).parents[2] / "examples" / "own_robot.xml")
    session = advance(start("stand", path), 0.5)
    before = session.readout()
    session.set_values({"mass.scale": np.array([1.5])})
    assert session.readout().mass_kg == pytest.approx(1.5 * before.mass_kg)
    assert session.readout().height_m == pytest.approx(before.height_m)
    with pytest.raises(InputError, match="presets only"):
        session.change_body(BodyVariant(robot=path, payload_kg=3.0))
    session.step()


def test_ground_is_changed_in_mid_stride():
    setup = free_setup("go2", shipped_catalogue("extended"))
    session = Session(load_policy("base-mlp"), setup)
    session.drive(np.array((0.3, 0.0, 0.0)))
    plane = advance(session, 0.6).robot
    assert plane.ground is FLAT
    before = session.readout()
    session.set_values(named_grounds()["stairs-8"])
    assert ground_of(session.values) == "stairs-8"
    ground = session.robot.ground
    assert isinstance(ground, Terrain)
    kind, size = ground.patches[ground.patch]
    assert (kind.name, size) == ("stairs", 0.08)
    # The lowest foot stays as far from the ground; the trunk may be above another step.
    assert session.readout().height_m == pytest.approx(before.height_m, abs=0.09)
    assert session.readout().velocity == pytest.approx(before.velocity)
    advance(session, 0.4)
    assert not session.fallen
    stairs = session.robot
    session.set_values({"mass.scale": np.array([1.1])})
    assert session.robot is stairs, "the page need not draw it again"
    session.set_values(named_grounds()["ramp-15"])
    assert session.robot is not stairs
    # At its foot, where a robot begins.
    session.reset()
    assert session.place == pytest.approx((-1.6, session.place[1], 0.0), abs=0.01)
    session.set_values(named_grounds()["flat"])
    assert session.robot is plane and ground_of(session.values) == "flat"
    session.set_values({"terrain.noise": np.array([0.033])})
    assert ground_of(session.values) == ""


def test_a_ground_that_is_none_is_refused_with_what_is_accepted():
    extended = shipped_catalogue("extended")
    with pytest.raises(InputError, match="did you mean 'stairs-8'"):
        free_setup("go2", extended, "stairs-88")
    with pytest.raises(InputError, match="needs the group terrain.*extended"):
        free_setup("go2", ground="stairs-8")


def test_actions_are_late_from_now_on():
    setup = free_setup("go2", shipped_catalogue("extended"))
    prompt, late = (Session(load_policy("base-mlp"), setup) for _ in range(2))
    for session in (prompt, late):
        session.drive(np.array((0.8, 0.0, 0.0)))
        advance(session, 1.0)
    np.testing.assert_array_equal(late.state, prompt.state)
    late.set_values({"latency.action_delay": np.array([0.03])})
    for session in (prompt, late):
        advance(session, 0.2)
    assert not late.fallen
    assert not np.allclose(late.state, prompt.state, atol=1e-3)


def standing_witness() -> tuple[Session, list[np.ndarray]]:
    """Let a robot stand, and keep what it senses."""
    seen: list[np.ndarray] = []

    def stand(observations: np.ndarray) -> np.ndarray:
        seen.append(observations[0])
        return np.zeros((1, 12), np.float32)

    policy = EvaluatedPolicy("seen", lambda device: as_policy(stand))
    setup = free_setup("go2", shipped_catalogue("extended"))
    return Session(policy, setup), seen


def test_sensors_are_biased_from_now_on():
    session, seen = standing_witness()
    advance(session, 1.0)
    before = len(seen)
    session.set_values({"sensing.gyro_bias": np.array((0.2, 0.0, 0.0))})
    advance(session, 1.0)
    shift = np.mean(seen[before:], axis=0) - np.mean(seen[10:before], axis=0)
    np.testing.assert_allclose(shift[:3], (0.2, 0.0, 0.0), atol=0.08)


def test_readings_that_are_lost_from_now_on_leave_the_last_one():
    session, seen = standing_witness()
    advance(session, 0.2)
    before = len(seen)
    session.set_values({"sensing.lost_readings": np.array([1.0])})
    advance(session, 0.2)
    # Gravity points down; a reading that never was would be zero.
    gravity = np.array(seen)[:, 3:6]
    np.testing.assert_allclose(gravity, [(0.0, 0.0, -1.0)] * len(seen), atol=0.15)
    assert (gravity[before:] == gravity[before]).all()
    assert not (gravity[:before] == gravity[0]).all(), "what was seen stays as it was"


def test_push_before_the_first_step_comes_once():
    setup = load_scenario("ood:disturbance@0.5#0")
    now = np.where(np.arange(len(setup.push_steps)) == 0, 0, 10_000)
    session = Session(load_policy("base-mlp"), replace(setup, push_steps=now))
    session.step()
    np.testing.assert_allclose(session.last_push, session.planned_push, rtol=1e-6)
    session.step()
    assert session.last_push_step == 0


def test_example_in_the_docs_runs():
    page = Path(__file__).parents[2] / "docs" / "play.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    world: dict = {}
    exec(code, world)
    assert world["session"].readout().mass_kg == pytest.approx(
        1.5 * (15.206 + 3.0), 1e-3
    )


def test_file_that_has_changed_is_built_anew(tmp_path):
    path = tmp_path / "mine.xml"
    shutil.copy(Path(__file__).parents[2] / "examples" / "own_robot.xml", path)
    body = BodyVariant(robot=str(path))
    first = body.build()
    assert body.build() is first
    os.utime(path, ns=(0, 10**18))
    assert body.build() is not first


def test_pace_holds_real_time_and_gives_up_what_it_cannot_catch_up_with():
    now, session = 0.0, start()
    pace = Pace(clock=lambda: now)
    for _ in range(100):
        now += 0.01
        pace.advance(session)
    assert session.steps in (49, 50)
    assert pace.real_time_factor() == pytest.approx(1.0, abs=0.03)
    now += 10.0
    assert pace.advance(session) <= 13
    pace.paused = True
    now += 1.0
    assert pace.advance(session) == 0
