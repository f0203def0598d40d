"""Another ground is a value of its own: robots start on it and are measured from it."""

import math
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from worlds import begin, exact_pool, hold

from horizon_rl.domains import parse_catalogue
from horizon_rl.physics import EFFECTS, Effect, Pool, PoolDraft
from horizon_rl.robots import (
    FLAT,
    Ground,
    Robot,
    build_robot,
    build_spec,
    load_mjcf,
    load_preset,
)
from horizon_rl.support.errors import InputError
from horizon_rl.task import TaskCfg, VelocityEnv, draw_scenarios


@dataclass(frozen=True)
class Slope(Ground):
    """A plane that rises along x, and lies higher."""

    rise: float = 0.1
    offset_m: float = 0.5
    is_plane = True

    def add_to(self, spec: mujoco.MjSpec) -> None:
        half = -math.atan(self.rise) / 2.0
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0.0, 0.0, 1.0],
            pos=[0.0, 0.0, self.offset_m],
            quat=[math.cos(half), 0.0, math.sin(half), 0.0],
            contype=1,
            conaffinity=0,
        )

    def height_at(self, xy: Any, patch: Any = 0) -> Any:
        return self.offset_m + self.rise * xy[..., 0]


CATALOGUE = parse_catalogue(
    'extends = "paper"\n[groups.terrain.parameters.patch]\n'
    "baseline = [0, 0]\nlimit = [0, 9]"
)


def choose_patch(draft: PoolDraft, patch: np.ndarray) -> None:
    draft.start_xy[:, 0] = 10.0 * patch


def pool_on(robot: Robot) -> Pool:
    effects = EFFECTS | {"terrain.patch": Effect(choose_patch)}
    patches = {"terrain.patch": np.array([0.0, 2.0])}
    return exact_pool([robot], 2, patches, CATALOGUE, effects=effects)


@pytest.fixture(scope="module")
def hillside() -> Robot:
    return build_robot(load_preset("go2"), Slope())


def test_a_row_starts_on_the_patch_that_its_parameter_chooses(hillside):
    pool = pool_on(hillside)
    assert pool.start_qpos[:, 0].tolist() == [0.0, 20.0]
    assert pool.start_qpos[1, 2] - pool.start_qpos[0, 2] == pytest.approx(2.0)
    backend = begin(pool)
    hold(backend, pool, 50)
    above = hillside.ground.above(backend.state.root_position).numpy()
    assert above == pytest.approx(pool.standing_height, abs=0.05)
    assert (backend.state.foot_force > 1.0).all(), "all feet stand on the slope"


def test_the_task_measures_height_from_the_ground(hillside):
    pool = pool_on(hillside)
    cfg, rng = TaskCfg(), np.random.default_rng(0)
    env = VelocityEnv(begin(pool), cfg)
    env.begin(draw_scenarios(pool, cfg, rng), seed=0, rows=torch.arange(2))
    penalties = env.step(torch.zeros(2, 12))[1]
    level = pool_on(build_robot(load_preset("go2")))
    env = VelocityEnv(begin(level), cfg)
    env.begin(draw_scenarios(level, cfg, np.random.default_rng(0)), 0, torch.arange(2))
    assert penalties.numpy() == pytest.approx(
        env.step(torch.zeros(2, 12))[1].numpy(), abs=0.05
    ), "a height of 2 m instead of 0.3 m would cost 0.3 a step"


def test_the_keyframe_stands_on_the_ground(hillside):
    level = build_robot(load_preset("go2"))
    heights = [r.model.key("stand").qpos[2] for r in (hillside, level)]
    assert heights[0] - heights[1] == pytest.approx(0.5)


def test_an_imported_robot_stands_on_the_ground_in_place_of_its_own_plane(tmp_path):
    spec = build_spec(load_preset("go2"))
    spec.compile()
    (tmp_path / "go2.xml").write_text(spec.to_xml())
    pool = pool_on(load_mjcf(tmp_path / "go2.xml", ground=Slope()))
    planes = pool.robot.model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
    assert np.count_nonzero(planes) == 1
    backend = begin(pool)
    hold(backend, pool, 50)
    above = pool.robot.ground.above(backend.state.root_position).numpy()
    assert above == pytest.approx(pool.standing_height, abs=0.05)


def test_shins_touch_ground_that_is_no_plane():
    @dataclass(frozen=True)
    class Rough(Slope):
        is_plane = False

    model = build_robot(load_preset("go2"), Rough()).model
    assert model.geom("FL_shin").conaffinity[0] == 1
    plane = build_robot(load_preset("go2")).model
    assert plane.ngeom == model.ngeom - 4
    assert plane.geom("FL_shank").conaffinity[0] == 0


def test_robots_on_different_grounds_share_no_batch(hillside):
    with pytest.raises(InputError, match=r"differ in structure \(ground\)"):
        exact_pool([hillside, build_robot(load_preset("a1"), Slope(rise=0.2))], 2)


def test_flat_ground_adds_no_arithmetic_to_a_step():
    position = torch.randn(4, 3)
    above = FLAT.above(position)
    assert above.data_ptr() == position[:, 2].data_ptr()
    assert FLAT.height_at(np.ones((5, 2))).tolist() == [0.0] * 5
