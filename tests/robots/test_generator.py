"""Generated bodies: valid, varied, repeatable."""

import time

import numpy as np
import pytest

from horizon_rl.robots import (
    GeneratorCfg,
    build_robot,
    can_stand,
    generate,
    load_preset,
    preset_names,
)
from horizon_rl.support.errors import InputError


@pytest.fixture(scope="module")
def bodies():
    return generate(np.random.default_rng(2024), 2000)


def all_links(body):
    return [body.trunk, *(link for leg in body.legs for link in leg.links)]


def still_bodies(n):
    """Draw bodies without jitter, each with the presets that it lies between."""
    still = GeneratorCfg(
        size=(1.0, 1.0),
        density=(1.0, 1.0),
        proportion=(1.0, 1.0),
        mass_share=(1.0, 1.0),
        com_shift=(0.0, 0.0),
        pose_shift_rad=(0.0, 0.0),
    )
    presets = {load_preset(name).title: load_preset(name) for name in preset_names()}
    for body in generate(np.random.default_rng(1), n, still):
        one, other = body.title.removeprefix("between ").split(" and ")
        yield body, presets[one], presets[other]


def test_2000_bodies_have_inertias_of_rigid_bodies(bodies):
    worst = np.inf
    for body in bodies:
        for link in all_links(body):
            low, middle, high = np.linalg.eigvalsh(link.inertia_matrix_kg_m2)
            assert low > 0.0, f"{body.name}: {link}"
            worst = min(worst, (low + middle - high) / high)
    assert worst > 0.0, f"triangle inequality broken by {worst:.2e}"


def test_2000_bodies_stand_stably_within_their_joint_ranges(bodies):
    for body in bodies:
        margin = body.support_margin_m / body.leg_length_m
        assert margin > 0.1, f"{body.name}: margin {margin:.2f} leg lengths"
        assert can_stand(body), f"{body.name}: {body.stance}"
        low, high = np.transpose([r for leg in body.legs for r in leg.joint_range_rad])
        pose = body.default_pose_rad
        assert np.all((low <= pose) & (pose <= high)), body.name


def test_2000_bodies_take_a_few_seconds():
    start = time.process_time()
    generate(np.random.default_rng(0), 200)
    seconds = 10.0 * (time.process_time() - start)
    assert seconds < 15.0, f"2000 bodies would take {seconds:.1f} s"


def test_bodies_span_the_presets_and_what_lies_around(bodies):
    for measure in ("body_mass_kg", "leg_length_m", "standing_height_m"):
        drawn = [getattr(body, measure) for body in bodies]
        real = [getattr(load_preset(name), measure) for name in preset_names()]
        assert min(drawn) < min(real) < max(real) < max(drawn), measure
        assert 0.5 * min(real) < min(drawn), f"{measure} {min(drawn):.2f}"
        assert max(drawn) < 2.0 * max(real), f"{measure} {max(drawn):.2f}"
    inward = np.mean([body.rear.default_pose_rad[2] > 0.0 for body in bodies])
    assert 0.1 < inward < 0.2, f"{inward:.2f} have ANYmal's knees; 2 of 13 presets do"


@pytest.mark.parametrize("name", preset_names())
def test_bodies_surround_every_preset(bodies, name):
    """Held out of training, a preset is still no stranger in size or build."""
    preset = load_preset(name)
    measures = ("body_mass_kg", "thigh_length_m", "calf_length_m", "standing_height_m")
    drawn = np.array([[getattr(body, m) for m in measures] for body in bodies])
    real = np.array([getattr(preset, m) for m in measures])
    share_below = np.mean(drawn < real, axis=0)
    assert np.all((share_below > 0.01) & (share_below < 0.99)), share_below
    like_it = np.all(np.abs(np.log(drawn / real)) < 0.15, axis=1)
    assert np.sum(like_it) >= 10, f"{np.sum(like_it)} of 2000 are within 15 % in all"


def test_motors_scale_with_mass_and_leg_length(bodies):
    go2 = load_preset("go2")
    for body in bodies[:50]:
        mass = body.body_mass_kg / go2.body_mass_kg
        length = body.leg_length_m / go2.leg_length_m
        torque = mass * length * np.array(go2.torque_limit_nm)
        velocity = length**-0.5 * np.array(go2.velocity_limit_rad_s)
        damping = mass * length**1.5 * np.array(go2.damping_nm_s_rad)
        assert body.torque_limit_nm == pytest.approx(torque)
        assert body.velocity_limit_rad_s == pytest.approx(velocity)
        assert body.damping_nm_s_rad == pytest.approx(damping)


def test_a_longer_draw_begins_with_the_shorter_one():
    short = generate(np.random.default_rng(5), 3)
    assert generate(np.random.default_rng(5), 6)[:3] == short
    assert generate(np.random.default_rng(6), 3) != short


def test_without_jitter_bodies_lie_between_two_presets():
    for body, one, other in still_bodies(100):
        light, heavy = sorted((one.body_mass_kg, other.body_mass_kg))
        short, long = sorted((one.leg_length_m, other.leg_length_m))
        assert light - 1e-9 <= body.body_mass_kg <= heavy + 1e-9, body.title
        assert short - 1e-9 <= body.leg_length_m <= long + 1e-9, body.title


def test_between_a_preset_and_itself_lies_the_preset():
    seen = set()
    for body, one, other in still_bodies(300):
        if one is not other:
            continue
        seen.add(one.name)
        assert body.default_pose_rad == pytest.approx(one.default_pose_rad), one.name
        assert body.standing_height_m == pytest.approx(one.standing_height_m)
        for link, real in zip(all_links(body), all_links(one), strict=True):
            assert link.mass_kg == pytest.approx(real.mass_kg)
            assert link.com_m == pytest.approx(real.com_m, abs=1e-12)
            size = max(real.inertia_kg_m2)
            assert link.inertia_kg_m2 == pytest.approx(
                real.inertia_kg_m2, abs=1e-9 * size
            )
    assert {"a1", "anymal_c"} <= seen, f"only {seen} were drawn twice"


def test_impossible_demands_are_refused():
    with pytest.raises(InputError, match="none of 100 bodies could stand"):
        generate(np.random.default_rng(0), 1, GeneratorCfg(com_shift=(2.0, 2.0)))


def test_generated_bodies_stand_in_simulation(bodies, standing, drive):
    pytest.importorskip("mujoco")
    for body in bodies[:60]:
        robot = build_robot(body)
        data = standing(robot)
        drive(robot, data, seconds=1.0, scale=4.0)
        assert np.isfinite(data.qpos).all(), body.name
        height = data.qpos[2] / robot.standing_height_m
        assert 0.9 < height < 1.02, f"{body.name} sank to {height:.2f} of its height"
        force = data.sensordata[robot.foot_sensor_adr].sum()
        assert force == pytest.approx(robot.total_mass_kg * 9.81, rel=0.05), body.name
