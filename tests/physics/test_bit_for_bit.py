"""The batch against MuJoCo itself: one compiled model and one `mj_step` loop a world.

Nothing here uses the pool's machinery: bodies are compiled apart, and parameters are
applied by scalar code that follows the table in docs/physics.md.
"""

import mujoco
import numpy as np
import pytest
import torch
from worlds import begin, over_limits, some_robots, varied_targets

from horizon_rl.domains import Catalogue, paper_catalogue, shipped_catalogue
from horizon_rl.physics import Pool, build_pool
from horizon_rl.robots import REFERENCE, Robot, build_robot, load_body, load_preset

NUM_WORLDS = 64
CONTROL_STEPS = 150
SAME_TOPOLOGY = ("front-knees-locked", "hind-knees-locked", "stilts", "hind-stilts")
WITH_DRIVETRAIN = Catalogue(
    (*paper_catalogue().groups, shipped_catalogue("extended")["drivetrain"])
)


class PlainWorld:
    """One robot in one `MjModel`, its motors limited by a scalar formula."""

    def __init__(self, robot: Robot, drawn: dict[str, np.ndarray]):
        reference = load_preset(REFERENCE)
        mass = robot.body_mass_kg / reference.body_mass_kg
        length = robot.leg_length_m / reference.leg_length_m
        self.robot, self.drawn = robot, drawn
        self.effort = float(drawn["actuation.effort_limit"]) * (mass * length)
        self.velocity_limit = float(drawn["actuation.velocity_limit"]) * length**-0.5
        self.stiffness = float(drawn["actuation.stiffness"]) * (mass * length)
        self.damping = float(drawn["actuation.damping"]) * (mass * length**1.5)
        self.mass, self.length = mass, length
        self.model = self._model()
        self.data = mujoco.MjData(self.model)
        wrench = self.data.xfrc_applied[robot.trunk_body_id]
        wrench[:3] = drawn["disturbance.external_force"] * mass
        wrench[3:] = drawn["disturbance.external_torque"] * (mass * length)

    def _model(self) -> mujoco.MjModel:
        drawn, model = self.drawn, self.robot.model
        mass_scale, inertia_scale = drawn["mass.scale"], drawn["inertia.scale"]
        model.body_mass[:] *= mass_scale
        model.body_inertia[:] *= mass_scale
        model.body_inertia[:] *= inertia_scale
        trunk = self.robot.trunk_body_id
        model.body_ipos[trunk] += drawn["com.offset"] * self.length
        on_robot = model.geom_bodyid > 0
        touching = on_robot & (model.geom_conaffinity == 1)
        friction = min(
            drawn["contact.static_friction"], drawn["contact.dynamic_friction"]
        )
        model.geom_friction[touching, 0] = friction
        model.geom_solref[touching] = bouncing_solref(
            float(drawn["contact.restitution"])
        )
        if "drivetrain.friction" in drawn:
            model.dof_frictionloss[6:] += drawn["drivetrain.friction"] * (
                self.mass * self.length
            )
            model.dof_damping[6:] += drawn["drivetrain.damping"] * (
                self.mass * self.length**1.5
            )
            model.dof_armature[6:] += drawn["drivetrain.armature"] * (
                self.mass * self.length**2.0
            )
        model.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
        model.actuator_gainprm[:, 0] = self.stiffness
        model.actuator_biasprm[:, 1] = -self.stiffness
        model.actuator_biasprm[:, 2] = -self.damping
        model.actuator_forcelimited[:] = 1
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.opt.iterations = 20
        model.opt.ls_iterations = 50
        pinned = model.stat.meaninertia
        mujoco.mj_setConst(model, mujoco.MjData(model))
        model.stat.meaninertia = pinned  # Why: see robots/scene.py.
        return model

    def start(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel

    def push(self, velocity: np.ndarray) -> None:
        self.data.qvel[:2] += velocity

    def control_step(self, target: np.ndarray) -> None:
        self.data.ctrl[:] = target
        for _ in range(4):
            for joint in range(12):
                velocity = self.data.qvel[6 + joint]
                self.model.actuator_forcerange[joint] = (
                    -self.torque_left(-velocity),
                    self.torque_left(velocity),
                )
            mujoco.mj_step(self.model, self.data)

    def torque_left(self, velocity: float) -> float:
        """Torque that is left at a velocity in its own direction.

        effort * clip(2 (1 - v / v_max), 0, 1), in the order of operations that gives
        the same bits.
        """
        line = 2.0 * self.effort - 2.0 * self.effort / self.velocity_limit * velocity
        return min(max(line, 0.0), self.effort)

    def expected_start(self) -> tuple[np.ndarray, np.ndarray]:
        """Scale the pose, clamp it, put the lowest geom 1 mm above the floor."""
        robot, model, data = self.robot, self.model, mujoco.MjData(self.model)
        qpos = model.key("stand").qpos.copy()
        for joint, scale in enumerate(self.drawn["reset.joint_position_scale"]):
            low, high = model.jnt_range[1 + joint]
            angle = robot.default_pose_rad[joint] * scale
            qpos[7 + joint] = min(max(angle, low), high)
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        floor = model.geom("floor").id
        gaps = [
            mujoco.mj_geomDistance(model, data, floor, int(geom), 10.0, None)
            for geom in np.flatnonzero(model.geom_conaffinity == 1)
        ]
        qpos[2] += 1e-3 - min(gaps)
        qvel = np.zeros(model.nv)
        qvel[6:] = self.drawn["reset.joint_velocity"]
        return qpos, qvel


def bouncing_solref(restitution: float) -> tuple[float, float]:
    if restitution == 0.0:
        return 0.02, 1.0
    log = np.log(min(restitution, 0.95))  # To the bit, unlike math.log.
    ratio = 1.08 * -log / np.sqrt(np.pi**2 + log**2)
    return -2500.0, -100.0 * min(ratio, 1.0)


def build_robots() -> list[Robot]:
    changed = [build_robot(load_body(f"go2+{name}")) for name in SAME_TOPOLOGY]
    robots = [*changed, *some_robots(NUM_WORLDS)]
    return robots[:NUM_WORLDS]


def build_worlds(pool: Pool) -> list[PlainWorld]:
    return [
        PlainWorld(robot, {name: v[i] for name, v in pool.instances.items()})
        for i, robot in enumerate(build_robots())
    ]


def draw_pool(catalogue: Catalogue) -> Pool:
    """One instance per body, over the whole limit ranges, a few without bounce."""
    rng = np.random.default_rng(11)
    instances = over_limits(catalogue).sample(catalogue, NUM_WORLDS, rng)
    instances["contact.restitution"][::8] = 0.0
    return build_pool(build_robots(), catalogue, instances, np.arange(NUM_WORLDS))


def test_starts_are_the_scaled_poses_just_above_the_ground():
    pool = draw_pool(paper_catalogue())
    starts = [world.expected_start() for world in build_worlds(pool)]
    apart = np.abs(pool.start_qpos - np.array([qpos for qpos, _ in starts])).max()
    assert apart < 1e-12, f"{apart} m or rad"
    assert np.array_equal(pool.start_qvel, np.array([qvel for _, qvel in starts]))


@pytest.mark.slow
@pytest.mark.parametrize("catalogue", [paper_catalogue(), WITH_DRIVETRAIN])
def test_64_bodies_and_parameters_move_as_each_does_alone_in_mujoco(catalogue):
    pool = draw_pool(catalogue)
    worlds, backend = build_worlds(pool), begin(pool)
    for i, world in enumerate(worlds):
        world.start(pool.start_qpos[i], pool.start_qvel[i])
    rng = np.random.default_rng(5)
    touched = np.zeros(NUM_WORLDS, dtype=bool)
    for step, target in enumerate(varied_targets(pool, CONTROL_STEPS)):
        if step % 60 == 30:
            push = pool.push_velocity[:, 0] * rng.integers(0, 2, (NUM_WORLDS, 1))
            backend.push(torch.from_numpy(push))
            for world, velocity in zip(worlds, push, strict=True):
                world.push(velocity)
        backend.step(target)
        for world, own in zip(worlds, target.numpy(), strict=True):
            world.control_step(own)
        touched |= np.array([world.data.ncon > 0 for world in worlds])
    assert touched.all(), "a world without contact proves little"
    qpos = np.array([world.data.qpos for world in worlds])
    qvel = np.array([world.data.qvel for world in worlds])
    apart = np.abs(qpos - backend._qpos).max(), np.abs(qvel - backend._qvel).max()
    assert np.array_equal(qpos, backend._qpos), f"apart by {apart}"
    assert np.array_equal(qvel, backend._qvel), f"apart by {apart}"
    assert backend.counters.unhealthy == 0
