"""Damage: what an intervention builds into a body, drawn per instance into a sound one."""

import numpy as np
import pytest
import torch
from worlds import (
    STRONG,
    begin,
    exact_pool,
    hold,
    model_of,
    varied_targets,
)

from horizon_rl.domains import AtLevels, shipped_catalogue
from horizon_rl.physics import Pool, sample_pool
from horizon_rl.physics.damage import FAULTS
from horizon_rl.physics.stance import rest_on_plane
from horizon_rl.robots import (
    FLAT,
    JOINT_NAMES,
    TERRAIN,
    Robot,
    build_robot,
    load_body,
    load_preset,
    preset_names,
)

EXTENDED = shipped_catalogue("extended")
FRONT_KNEES, HIND_KNEES = 12.5 / 16, 13.5 / 16


@pytest.fixture(scope="module")
def go2() -> Robot:
    return build_robot(load_preset("go2"))


def damaged(robots: list[Robot], n: int = 1, **values) -> Pool:
    chosen = {f"damage.{name}": value for name, value in values.items()}
    return exact_pool(robots, n, chosen, catalogue=EXTENDED)


def alone(joint: str) -> float:
    """The value of `faulty_joints` that names one joint."""
    return (JOINT_NAMES.index(joint) + 0.5) / 16


def inertia_of(pool: Pool, row: int) -> np.ndarray:
    """Inertia of all bodies about their centres, along their own frames."""
    import mujoco

    model, found = model_of(pool, row), []
    for quat, moments in zip(model.body_iquat, model.body_inertia, strict=True):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, quat)
        found.append(turn.reshape(3, 3) @ np.diag(moments) @ turn.reshape(3, 3).T)
    return np.array(found)


@pytest.mark.parametrize(
    ("name", "stilts"), [("stilts", [0.15, 0.15]), ("hind-stilts", [0.0, 0.15])]
)
@pytest.mark.parametrize("ground", [FLAT, TERRAIN], ids=["plane", "terrain"])
@pytest.mark.parametrize("body", ["go2", "anymal_c"])
def test_stilts_are_those_of_the_intervention(body, ground, name, stilts):
    intact = build_robot(load_preset(body), ground)
    scale = intact.leg_length_m / load_preset("go2").leg_length_m
    drawn = damaged([intact], stilts=np.array(stilts) / scale)
    built = damaged([build_robot(load_body(f"{body}+{name}"), ground)])
    for field, values in drawn.fields.items():
        if field != "body_iquat":  # Axes may point either way.
            assert values == pytest.approx(built.fields[field], abs=1e-9), field
    assert inertia_of(drawn, 0) == pytest.approx(inertia_of(built, 0), abs=1e-12)
    assert drawn.start_qpos == pytest.approx(built.start_qpos, abs=1e-6)
    assert drawn.standing_height == pytest.approx(built.standing_height, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "which", "factor"),
    [
        ("front-knees-locked", FRONT_KNEES, 1.1),
        ("hind-knees-locked", HIND_KNEES, 0.9),
    ],
)
def test_locked_knees_are_those_of_the_intervention(go2, name, which, factor):
    drawn = damaged([go2], faulty_joints=which, stuck_at=factor, travel_lost=1.0)
    built = damaged([build_robot(load_body(f"go2+{name}"))])
    for field, values in drawn.fields.items():
        assert values == pytest.approx(built.fields[field], abs=1e-9), field
    # The intervention starts at the lock's middle, a drawn one within its play.
    assert drawn.start_qpos == pytest.approx(built.start_qpos, abs=1e-3)
    one, other = begin(drawn), begin(built)
    for target in varied_targets(drawn, 50):
        one.step(target)
        other.step(target)
    knees = np.flatnonzero(FAULTS[int(which * 16)])
    angle = factor * drawn.default_pose[0, knees]
    for backend in (one, other):
        play = backend.state.joint_position[0, knees].numpy() - angle
        assert np.abs(play).max() < 5e-3, f"gives way by {play} rad"


def test_travel_closes_in_on_where_the_joint_sticks(go2):
    share = np.array([0.0, 0.5, 1.0, 1.5])
    pool = damaged([go2], 4, faulty_joints=alone("RL_calf"), travel_lost=share)
    limits = pool.fields["jnt_range"][:, 1 + JOINT_NAMES.index("RL_calf")]
    (low, high), angle = limits[0], pool.default_pose[0, 8]
    half = [(low + angle) / 2.0, (high + angle) / 2.0]
    assert limits[1] == pytest.approx(half, abs=5e-4)
    assert limits[2] == pytest.approx([angle - 5e-4, angle + 5e-4])
    assert np.array_equal(limits[2], limits[3])
    others = np.delete(pool.fields["jnt_range"], 1 + 8, axis=1)
    assert np.array_equal(others, np.broadcast_to(others[0], others.shape))


def test_an_encoder_bias_moves_neither_the_lock_nor_the_stance(go2):
    values = {
        "damage.faulty_joints": alone("FL_calf"),
        "damage.travel_lost": 1.0,
        "sensing.encoder_bias": np.stack([np.zeros(12), np.full(12, 0.1)]),
    }
    pool = exact_pool([go2], 2, values, catalogue=EXTENDED)
    assert pool.default_pose[1] == pytest.approx(pool.default_pose[0] - 0.1)
    lock = pool.fields["jnt_range"][:, 1 + JOINT_NAMES.index("FL_calf")]
    assert lock.mean(axis=1) == pytest.approx([-1.5, -1.5])
    assert np.array_equal(pool.start_qpos[0], pool.start_qpos[1])
    assert pool.standing_height[0] == pool.standing_height[1]


def test_a_robot_starts_within_what_is_left_of_its_travel(go2):
    rng = np.random.default_rng(0)
    levels = AtLevels({"damage": 1.0, "reset": 1.0})
    pool = sample_pool([go2], EXTENDED, levels, 256, rng)
    low, high = np.moveaxis(pool.fields["jnt_range"][:, 1:], 2, 0)
    start = pool.start_qpos[:, 7:]
    assert (low - 1e-12 <= start).all() and (start <= high + 1e-12).all()
    assert (high - low).min() == pytest.approx(1e-3)


def test_a_weak_joint_has_less_torque_and_no_other_has(go2):
    pool = damaged([go2], faulty_joints=alone("FR_thigh"), strength_lost=0.75)
    backend = begin(pool)
    backend.step(torch.from_numpy(pool.default_pose) + 100.0)
    torque, index = backend.torque_bounds[0, :, 1], JOINT_NAMES.index("FR_thigh")
    assert pool.effort[0, index] == pytest.approx(10.0)
    assert np.delete(pool.effort[0], index) == pytest.approx(40.0)
    assert torque[index] <= 10.0


def test_every_joint_fails_alone_and_knees_in_pairs(go2):
    unit = (np.arange(16) + 0.5) / 16
    pool = damaged([go2], 17, faulty_joints=[*unit, 1.0], strength_lost=0.5)
    weak = pool.effort < 30.0
    assert weak[:12].sum(axis=1).tolist() == [1] * 12 and weak[:12].any(axis=0).all()
    assert weak[12:16].sum(axis=1).tolist() == [2] * 4
    named = [[JOINT_NAMES[i] for i in np.flatnonzero(row)] for row in weak[12:]]
    assert named == [["FL_calf", "FR_calf"], ["RL_calf", "RR_calf"]] * 2 + [named[-1]]


def test_a_leg_s_weight_is_that_leg_s_alone(go2):
    pool = damaged([go2], leg_mass=[1.0, 2.0, 1.0, 1.0])
    ratio = pool.fields["body_mass"][0, 1:] / go2.model.body_mass[1:]
    heavy = [go2.model.body(i).name[:2] == "FR" for i in range(1, go2.model.nbody)]
    assert ratio == pytest.approx(np.where(heavy, 2.0, 1.0))
    assert inertia_of(pool, 0)[5:8] == pytest.approx(
        2.0 * inertia_of(damaged([go2]), 0)[5:8]
    )


@pytest.mark.parametrize("leg", range(4))
def test_one_long_leg_lifts_its_corner_and_all_feet_stay_near_the_ground(go2, leg):
    added = np.zeros(4)
    added[leg] = 0.04
    pool = damaged([go2], calf_length=added)
    flat = damaged([go2])
    assert pool.standing_height[0] > flat.standing_height[0] + 0.004
    import mujoco

    model = model_of(pool, 0)
    data = mujoco.MjData(model)
    data.qpos[:] = pool.start_qpos[0]
    mujoco.mj_kinematics(model, data)
    feet = data.geom_xpos[go2.foot_geom_ids][:, 2]
    # The plane halves it: two diagonal feet lie higher, two lower, by a quarter each.
    assert np.ptp(feet) < 0.025, f"feet at {feet}"


def test_stilts_hold_and_their_feet_feel_the_ground(go2):
    pool = exact_pool(
        [go2], 1, STRONG | {"damage.stilts": [0.15, 0.15]}, catalogue=EXTENDED
    )
    backend = begin(pool)
    hold(backend, pool, 100)
    weight = 9.81 * pool.fields["body_mass"].sum()
    assert float(backend.state.foot_force.sum()) == pytest.approx(weight, rel=0.02)
    assert float(backend.state.foot_force.min()) > 10.0
    assert float(backend.state.root_position[0, 2]) == pytest.approx(
        pool.standing_height[0], abs=0.02
    )


def test_an_imported_robot_grows_the_same_legs(tmp_path, go2):
    from test_imported_robot import imported_go2

    imported = imported_go2(tmp_path)
    stilts = {"damage.stilts": [0.05, 0.15]}
    pools = [exact_pool([r], 1, stilts, catalogue=EXTENDED) for r in (go2, imported)]
    ours, theirs = (begin(pool) for pool in pools)
    assert theirs.state.root_position[0, 2] == pytest.approx(
        float(ours.state.root_position[0, 2]), abs=1e-5
    )
    mass = [pool.fields["body_mass"].sum() for pool in pools]
    assert mass[0] == pytest.approx(mass[1], rel=1e-9)


def test_level_0_is_the_sound_robot_to_the_bit(go2):
    sound = exact_pool([go2], 4)
    drawn = damaged([go2], 4, faulty_joints=[0.0, 0.3, 0.8, 1.0])
    for field, values in sound.fields.items():
        assert np.array_equal(values, drawn.fields[field]), field
    assert np.array_equal(sound.start_qpos, drawn.start_qpos)
    assert np.array_equal(sound.effort, drawn.effort)


def test_damage_at_its_limits_stays_healthy_on_every_preset():
    robots = [build_robot(load_preset(name)) for name in preset_names()]
    rng = np.random.default_rng(1)
    pool = sample_pool(robots, EXTENDED, AtLevels({"damage": 1.0}), 128, rng)
    moments = pool.fields["body_inertia"][:, 1:]
    assert moments.min() > 0.0
    assert (2.0 * moments.max(axis=2) <= moments.sum(axis=2) * (1 + 1e-9)).all()
    backend = begin(pool)
    for target in varied_targets(pool, 100):
        backend.step(target)
    assert backend.counters.unhealthy == 0


def test_a_plane_through_the_feet_is_found_exactly():
    # Legs that end on z = -0.3 + 0.1 x: the trunk pitches by atan 0.1.
    xy = np.array([[0.2, 0.1], [0.2, -0.1], [-0.2, 0.1], [-0.2, -0.1]])
    feet = np.column_stack([xy, -0.3 + 0.1 * xy[:, 0]])
    height, quat = rest_on_plane(feet[None])
    assert height[0] == pytest.approx(0.3 * np.cos(np.arctan(0.1)))
    half = np.arctan(0.1) / 2.0
    assert quat[0] == pytest.approx([np.cos(half), 0.0, np.sin(half), 0.0])
