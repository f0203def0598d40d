"""Models as built: facts kept, one structure, standing where they should."""

from dataclasses import replace

import numpy as np
import pytest

from horizon_rl.robots import (
    JOINT_NAMES,
    build_robot,
    generate,
    intervene,
    load_preset,
    preset_names,
)

mujoco = pytest.importorskip("mujoco")

GRAVITY = 9.81


def some_bodies():
    """Presets, generated bodies, and interventions that add no joints."""
    go2 = load_preset("go2")
    damaged = ("front-knees-locked", "hind-knees-locked", "stilts", "hind-stilts")
    return [
        *map(load_preset, preset_names()),
        *generate(np.random.default_rng(7), 12),
        *(intervene(go2, name) for name in damaged),
    ]


def arrays(model):
    values = {name: getattr(model, name, None) for name in dir(model) if name[0] != "_"}
    return {name: v for name, v in values.items() if isinstance(v, np.ndarray)}


@pytest.mark.parametrize("name", preset_names())
def test_model_has_the_facts_masses_and_inertias(name):
    body, model = load_preset(name), build_robot(load_preset(name)).model
    assert model.body_mass.sum() == pytest.approx(body.total_mass_kg, abs=1e-12)
    for link, link_name in ((body.trunk, "trunk"), (body.front.calf, "FL_calf")):
        i = model.body(link_name).id
        principal = np.linalg.eigvalsh(link.inertia_matrix_kg_m2)
        assert np.sort(model.body_inertia[i]) == pytest.approx(principal, rel=1e-9)
        assert model.body_ipos[i] == pytest.approx(link.com_m)


@pytest.mark.parametrize("name", preset_names())
def test_stand_keyframe_puts_every_foot_on_the_ground(name, standing):
    robot = build_robot(load_preset(name))
    data = standing(robot)
    radius = robot.model.geom_size[robot.foot_geom_ids, 0]
    gap_mm = 1e3 * (data.geom_xpos[robot.foot_geom_ids, 2] - radius)
    assert np.abs(gap_mm).max() < 1e-6, f"gaps {gap_mm} mm"
    assert data.qpos[2] == robot.standing_height_m
    body = load_preset(name)
    level = data.xmat[robot.trunk_body_id].reshape(3, 3)
    expected = data.xpos[robot.trunk_body_id] + level @ body.com_m
    assert data.subtree_com[robot.trunk_body_id] == pytest.approx(expected, abs=1e-9)


def test_joints_and_motors_are_in_canonical_order_and_radians():
    robot = build_robot(load_preset("go2"))
    model = robot.model
    assert tuple(model.joint(i).name for i in range(1, 13)) == JOINT_NAMES
    assert tuple(model.actuator(i).name for i in range(12)) == JOINT_NAMES
    assert robot.qpos_adr.tolist() == list(range(7, 19))
    assert robot.dof_adr.tolist() == list(range(6, 18))
    assert model.joint("RL_thigh").range.tolist() == [-0.5236, 4.5379]
    assert model.opt.timestep == 0.005


def test_a_motor_turns_its_joint_by_torque_over_inertia():
    model = build_robot(load_preset("go2")).model
    model.opt.gravity[:] = 0.0
    data = mujoco.MjData(model)
    data.qpos[2] = 1.0
    data.qpos[7:] = load_preset("go2").default_pose_rad
    for i in range(12):
        data.ctrl[:] = 0.0
        data.ctrl[i] = 1.0
        mujoco.mj_forward(model, data)
        mass_matrix = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass_matrix)
        force = mass_matrix @ data.qacc + data.qfrc_bias
        expected = np.eye(model.nv)[6 + i]
        assert force == pytest.approx(expected, abs=1e-9), JOINT_NAMES[i]


def test_all_bodies_give_models_of_one_structure():
    models = [build_robot(body).model for body in some_bodies()]
    first = arrays(models[0])
    # Trees for a midphase that is switched off; the batch cannot hold them per world.
    ignored = {name for name in first if name.startswith("bvh_")}
    assert models[0].opt.disableflags & mujoco.mjtDisableBit.mjDSBL_MIDPHASE
    differing = set()
    for model in models[1:]:
        other = arrays(model)
        assert other.keys() == first.keys()
        assert model.names == models[0].names
        assert model.stat.meaninertia == models[0].stat.meaninertia
        for name in first.keys() - ignored:
            assert other[name].shape == first[name].shape, name
            if not np.array_equal(other[name], first[name]):
                differing.add(name)
    # Only numbers may differ: an index or a flag would be a difference in structure.
    kinds = {name: first[name].dtype.kind for name in differing}
    assert set(kinds.values()) == {"f"}, kinds


def test_bodies_in_one_batch_move_as_each_does_alone():
    mjbatch = pytest.importorskip("mjbatch")
    robots = [build_robot(body) for body in some_bodies()]
    models = [robot.model for robot in robots]
    batch = mjbatch.Batch(models[0], len(models), 2)
    for name, value in arrays(models[0]).items():
        rows = [getattr(model, name) for model in models]
        if not name.startswith("bvh_") and not all(
            np.array_equal(r, value) for r in rows
        ):
            batch.expand(name)[:] = np.array(rows).reshape(batch.expand(name).shape)
    batch.reset()
    qpos, qvel, ctrl = batch.bind("qpos"), batch.bind("qvel"), batch.bind("ctrl")
    qpos[:] = [model.key_qpos[0] for model in models]
    alone = [mujoco.MjData(model) for model in models]
    for model, data in zip(models, alone, strict=True):
        mujoco.mj_resetDataKeyframe(model, data, 0)
    pose = np.array([robot.default_pose_rad for robot in robots])
    size = [robot.body_mass_kg * robot.leg_length_m / 6.478 for robot in robots]
    targets = pose + np.random.default_rng(3).normal(0.0, 0.3, (10, *pose.shape))
    for target in np.repeat(targets, 20, axis=0):
        torque = 40.0 * (target - qpos[:, 7:]) - qvel[:, 6:]
        torque *= np.array(size)[:, None]
        ctrl[:] = torque
        batch.step()
        for model, data, own in zip(models, alone, torque, strict=True):
            data.ctrl[:] = own
            mujoco.mj_step(model, data)
    apart = [np.abs(qpos[i] - data.qpos).max() for i, data in enumerate(alone)]
    assert max(apart) == 0.0, f"largest difference {max(apart)}"


@pytest.mark.parametrize("name", preset_names())
def test_standing_robots_weigh_on_their_feet_what_they_weigh(name, standing, drive):
    robot = build_robot(load_preset(name))
    data = standing(robot)
    drive(robot, data, seconds=2.0, scale=2.0)
    force = data.sensordata[robot.foot_sensor_adr]
    weight = robot.total_mass_kg * GRAVITY
    assert force.sum() == pytest.approx(weight, rel=0.01), f"{force} N of {weight:.1f}"
    assert force.min() > 0.05 * weight, f"{name} stands on fewer feet: {force} N"
    assert data.sensordata[robot.trunk_sensor_adr] == 0.0


def test_trunk_sensor_feels_a_belly_landing(standing):
    robot = build_robot(load_preset("go2"))
    data = standing(robot)
    for _ in range(200):  # Motors off: it folds up.
        mujoco.mj_step(robot.model, data)
    assert data.sensordata[robot.trunk_sensor_adr] > 1.0


def test_a_robot_never_collides_with_itself():
    model = build_robot(load_preset("go2")).model
    data = mujoco.MjData(model)
    data.qpos[:3] = (0.0, 0.0, 2.0)
    data.qpos[7:] = np.tile((0.0, 3.0, -2.7), 4)  # Legs folded through the trunk.
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


@pytest.mark.parametrize("direction_deg", [0.0, 30.0, 45.0])
def test_ice_brakes_the_same_in_all_directions(direction_deg, standing):
    body = load_preset("go2")
    rigid = tuple(zip(JOINT_NAMES, body.default_pose_rad, strict=True))
    robot = build_robot(replace(body, locked=rigid))
    robot.model.geom_friction[:, 0] = 0.05
    data = standing(robot)
    mujoco.mj_step(robot.model, data, nstep=200)
    heading = np.deg2rad(direction_deg)
    along = np.array([np.cos(heading), np.sin(heading)])
    data.qvel[:2] = along
    mujoco.mj_step(robot.model, data, nstep=200)
    braking = (1.0 - data.qvel[:2] @ along) / (200 * robot.model.opt.timestep)
    assert braking == pytest.approx(0.05 * GRAVITY, rel=0.05), f"{braking:.3f} m/s2"
