"""Thirteen real robots against their published facts."""

import dataclasses
import json

import numpy as np
import pytest

from horizon_rl.robots import can_stand, load_preset, preset_names
from horizon_rl.support.errors import InputError

# name: (in the facts file, total kg, thigh m, calf m, front and rear height m). The
# heights are those of a level trunk's origin over the lowest point of the feet.
FACTS = {
    "go2": ("unitree_go2", 15.206408, 0.213, 0.213, 0.3222206, 0.3129666),
    "go1": ("unitree_go1", 12.743448, 0.213, 0.213, 0.324768, 0.315514),
    "a1": ("unitree_a1", 12.453, 0.2, 0.2, 0.3023586, 0.2936694),
    "spot": ("boston_dynamics_spot", 31.6, 0.3214736, 0.33532, 0.5150089, 0.4960513),
    "cyberdog1": ("xiaomi_cyberdog1", 13.5731456, 0.2, 0.2, 0.3251098, 0.3251098),
    "cyberdog2": ("xiaomi_cyberdog2", 8.5234, 0.12, 0.1739969, 0.2419211, 0.2419211),
    "b1": ("unitree_b1", 55.689001, 0.35, 0.35, 0.516164, 0.516164),
    "b2": ("unitree_b2", 69.0032, 0.35, 0.35, 0.5435421, 0.5435421),
    "aliengo": ("unitree_aliengo", 24.937, 0.25, 0.25, 0.337305, 0.337305),
    "laikago": ("unitree_laikago", 25.433, 0.25, 0.25, 0.4315711, 0.4315711),
    "anymal_b": ("anymal_b", 30.4753975, 0.25, 0.314331, 0.4967996, 0.4967996),
    "anymal_c": ("anymal_c", 52.13485, 0.285, 0.3275004, 0.5488202, 0.5488202),
    "barkour": ("google_barkour_vb", 14.496472, 0.19, 0.2280001, 0.279752, 0.279752),
}


def test_the_reference_comes_first_and_none_is_missing():
    assert preset_names() == tuple(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_masses_and_lengths_are_the_published_ones(name):
    body, (_, mass, thigh, calf, *_) = load_preset(name), FACTS[name]
    # The facts are rounded to 1e-7 kg a link.
    assert body.total_mass_kg == pytest.approx(mass, abs=2e-7)
    assert body.body_mass_kg == pytest.approx(mass, abs=2e-7)
    assert (body.front.thigh_length_m, body.front.calf_length_m) == (thigh, calf)
    assert body.leg_length_m == pytest.approx(thigh + calf)


@pytest.mark.parametrize("name", FACTS)
def test_standing_heights_are_within_2_mm_of_the_facts(name):
    body, (*_, front_height, rear_height) = load_preset(name), FACTS[name]
    for leg, expected in ((body.front, front_height), (body.rear, rear_height)):
        foot = leg.frames(leg.default_pose_rad)[3][0]
        assert leg.foot_radius_m - foot[2] == pytest.approx(expected, abs=1e-6)
    # On four feet the origin stands on the line between front and rear feet.
    front_x = body.front.frames(body.front.default_pose_rad)[3][0][0]
    rear_x = body.rear.frames(body.rear.default_pose_rad)[3][0][0]
    expected = np.interp(0.0, (rear_x, front_x), (rear_height, front_height))
    error_mm = 1e3 * (body.standing_height_m - expected)
    assert abs(error_mm) < 2.0, f"{name}: {error_mm:.2f} mm off {expected:.4f} m"


@pytest.mark.parametrize("name", FACTS)
def test_presets_stand_with_their_weight_over_their_feet(name):
    body = load_preset(name)
    assert can_stand(body), f"margin {body.support_margin_m:.3f} m, {body.stance}"


@pytest.mark.parametrize("name", FACTS)
def test_every_number_is_the_facts_files(name, shared):
    facts = json.loads((shared / "robots/robots.json").read_text())["robots"]
    fact, body = facts[FACTS[name][0]], load_preset(name)
    pose = fact["nominal_pose"][fact["recommended"]["nominal_pose"]]
    assert body.total_mass_kg == pytest.approx(fact["mass"]["total"], abs=2e-7)
    for end, leg in (("front", body.front), ("rear", body.rear)):
        links = fact["links"][f"{end}_left"]
        pairs = [(leg.hip, "hip"), (leg.thigh, "thigh"), (leg.calf, "calf")]
        for link, kind in [(body.trunk, None), *pairs]:
            source = links[kind] if kind else fact["trunk"]
            inertia = source["inertia"]
            axes = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
            assert link.mass_kg == source["mass"]
            assert link.com_m == tuple(source["com"])
            assert link.inertia_kg_m2 == tuple(inertia[axis] for axis in axes)
        kinds = ("hip", "thigh", "calf")
        ranges = [tuple(fact["joints"][k][f"range_{end}_left"]) for k in kinds]
        assert list(leg.joint_range_rad) == ranges
        assert leg.default_pose_rad == tuple(pose[f"{end}_left"])
    for i, kind in enumerate(("hip", "thigh", "calf")):
        limits = fact["joints"][kind]
        assert body.torque_limit_nm[i] == limits["torque_limit"]
        if "velocity limit" not in body.estimated:
            assert body.velocity_limit_rad_s[i] == limits["velocity_limit"]


def test_every_robot_names_its_sources_and_licence():
    for name in FACTS:
        body = load_preset(name)
        assert body.sources and body.licence, name


def test_unknown_robot_suggests_the_nearest():
    with pytest.raises(
        InputError, match="unknown robot 'anymal_d': did you mean 'anymal"
    ):
        load_preset("anymal_d")


def test_presets_cannot_be_changed():
    body = load_preset("go2")
    with pytest.raises(dataclasses.FrozenInstanceError):
        body.front.thigh_length_m = 1.0  # pyright: ignore[reportAttributeAccessIssue]
    body.default_pose_rad[0] = 9.0
    assert load_preset("go2").default_pose_rad[0] == 0.1
