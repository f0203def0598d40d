"""The mirror image of an instance against physics: its worlds stay mirror images."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from horizon_rl.domains import (
    AtLevels,
    Catalogue,
    paper_catalogue,
    parse_catalogue,
    shipped_catalogue,
)
from horizon_rl.learning import MlpCfg, build_actor
from horizon_rl.physics import CpuBackend, build_pool, join_pools, privileged_numbers
from horizon_rl.physics.pool import Pool, sample_pool
from horizon_rl.robots import build_robot, load_preset
from horizon_rl.robots.terrain import PERIOD_M, Terrain
from horizon_rl.support.errors import InputError
from horizon_rl.task import NoiseCfg, Scenarios, TaskCfg, VelocityEnv, draw_scenarios
from horizon_rl.task.mirror import ACTION, OBSERVATION, VECTORS, Swap, swap_instance

QUIET = NoiseCfg(angular_velocity=0, gravity=0, joint_position=0, joint_velocity=0)
WORLDS, STEPS = 8, 40
# Of most robots the trunk's two sides differ; Spot's do not.
SPOT = build_robot(load_preset("spot"))


def swap(values: torch.Tensor, by: Swap) -> torch.Tensor:
    return values[:, list(by.order)] * torch.tensor(by.sign)


def sound_catalogue() -> Catalogue:
    """Return the groups beyond the paper's, but for what has no mirror image."""
    extended = shipped_catalogue("extended")
    legs = extended["damage"].parameters[:3]
    damage = replace(extended["damage"], parameters=legs)
    names = (*paper_catalogue().names, "latency", "sensing", "drivetrain")
    return Catalogue((*(extended[name] for name in names), damage))


def mirrored(pool: Pool, catalogue: Catalogue) -> Pool:
    """Build the worlds whose privileged numbers are the mirror images of a pool's."""
    numbers = np.concatenate((pool.body, pool.parameters), axis=1)
    by = swap_instance(catalogue)
    image = (numbers[:, list(by.order)] * by.sign)[:, pool.body.shape[1] :]
    instances, first = {}, 0
    for name, p in catalogue.parameters.items():
        share = 0.5 + 0.5 * image[:, first : first + p.draws]
        values = p.limit.low + share * p.limit.width
        instances[name] = values[:, 0] if p.draws == 1 else values
        first += p.draws
    return build_pool([SPOT], catalogue, instances, pool.body_ids)


def make_pair(catalogue: Catalogue, level: float) -> tuple[VelocityEnv, TensorDict]:
    """Return worlds of which the second half begins as the first's mirror image."""
    rng = np.random.default_rng(0)
    levels = AtLevels(dict.fromkeys(catalogue.names, level))
    pool = sample_pool([SPOT], catalogue, levels, WORLDS, rng)
    cfg = TaskCfg(noise=QUIET)
    drawn = draw_scenarios(pool, cfg, rng)
    turned = drawn.commands * np.array(VECTORS["command"].sign)
    both = Scenarios(
        join_pools([pool, mirrored(pool, catalogue)]),
        np.concatenate((drawn.commands, turned)),
        np.tile([10, 20], (2 * WORLDS, 1)),
        # Whether a reading is lost follows from the id.
        np.tile(np.arange(WORLDS), 2),
    )
    env = VelocityEnv(CpuBackend(SPOT, 2 * WORLDS), cfg, endless=True)
    return env, env.begin(both, 0, rows=torch.arange(2 * WORLDS))


def make_oracle(catalogue: Catalogue) -> Any:
    torch.manual_seed(0)
    widths = {"actor": 45, "privileged": len(list(privileged_numbers(catalogue)))}
    obs = TensorDict({k: torch.zeros(1, n) for k, n in widths.items()}, [1])
    cfg = MlpCfg(hidden_dims=(32,), privileged_groups=("privileged",), symmetric=True)
    actor: Any = build_actor(obs, 12, cfg, image=lambda: swap_instance(catalogue))
    return actor.eval()


@pytest.mark.parametrize("catalogue", [paper_catalogue(), sound_catalogue()])
@torch.no_grad()
def test_mirrored_instance_in_a_mirrored_world_gets_the_mirrored_action(catalogue):
    env, obs = make_pair(catalogue, 0.3)
    actor, moved = make_oracle(catalogue), 0.0
    for _ in range(STEPS):
        action = actor(obs)
        motion, n = env.motion, WORLDS
        for found, by in (
            (action, ACTION),
            (motion.linear_velocity, VECTORS["gravity"]),
            (motion.angular_velocity, VECTORS["angular_velocity"]),
            (env.backend.state.joint_position, ACTION),
            (obs["actor"], OBSERVATION),
        ):
            image = swap(found[:n], by)
            torch.testing.assert_close(found[n:], image, rtol=1e-4, atol=1e-4)
        obs, *_ = env.step(action)
        moved = max(moved, motion.linear_velocity[:, 1].abs().max().item())
    assert moved > 0.5
    blind = obs.clone().set("privileged", torch.zeros_like(obs["privileged"]))
    assert (actor(blind) - actor(obs)).abs().max() > 0.01


@pytest.mark.parametrize("name", ["paper", "sound"])
def test_every_number_has_one_image_and_the_image_of_an_image_is_itself(name):
    catalogue = paper_catalogue() if name == "paper" else sound_catalogue()
    by, names = swap_instance(catalogue), list(privileged_numbers(catalogue))
    values = np.arange(1.0, 1.0 + len(names))
    image = values[list(by.order)] * by.sign
    np.testing.assert_array_equal(image[list(by.order)] * by.sign, values)
    for number, (parameter, _) in zip(image, names, strict=True):
        assert names[int(abs(number)) - 1][0] == parameter


TWO = "[groups.wind.parameters.force]\nbaseline = [0, 0]\nlimit = [-9, 9]\ndraws = 2\n"
REFUSED = {
    "no linear image": (
        'extends = "extended"\n',
        "sees damage.faulty_joints cannot be symmetric",
    ),
    "may have a side": (TWO.replace("draws = 2", ""), "wind.force"),
    "not said": (TWO, "wind.force cannot be symmetric: the catalogue gives no"),
    "not of this many draws": (TWO + "mirror = [1, -2, 3]", "wind.force"),
    "one draw for many": (TWO.replace("[-9, 9]", "[0, 9]") + "mirror = [1]", "wind.fo"),
    "perhaps a choice": (
        TWO.replace("[0, 0]", "[0, 9]").replace("-9", "0").replace("draws = 2", ""),
        "wind.force cannot be symmetric: the catalogue gives no",
    ),
    "limit on one side": (
        'extends = "paper"\n[groups.com.parameters.offset]\nlimit = [-0.1, 0.3]\n',
        r"com.offset cannot be .* its limit -0.1..0.3 is not symmetric about 0",
    ),
}


@pytest.mark.parametrize("text, message", REFUSED.values(), ids=REFUSED.keys())
def test_parameter_without_a_mirror_image_is_refused_by_name(text, message):
    with pytest.raises(InputError, match=message + ".*no-symmetric"):
        swap_instance(parse_catalogue(text))


@pytest.mark.parametrize("kind", ["slope", "stairs"])
def test_slopes_and_stairs_are_their_own_mirror_images(kind):
    """Of noise and blocks an instance tells the size alone, which has no side."""
    ground = Terrain()
    patches = [n for n, (each, _) in enumerate(ground.patches) if each.name == kind]
    rng = np.random.default_rng(0)
    places = rng.uniform(-PERIOD_M / 2, PERIOD_M / 2, (1000, 2))
    for patch in patches:
        heights = ground.height_at(places, patch)
        assert np.ptp(heights) > 0.0
        np.testing.assert_allclose(
            ground.height_at(places * (1.0, -1.0), patch), heights, atol=1e-12
        )


def test_catalogue_says_what_the_mirror_image_is():
    wind = swap_instance(parse_catalogue(TWO + "mirror = [1, -2]"))
    assert wind == Swap((0, 1, 2, 3, 4, 5, 6), (1, 1, 1, 1, 1, 1, -1))
    alone = swap_instance(parse_catalogue(TWO.replace("draws = 2", "mirror = [-1]")))
    assert alone == Swap((0, 1, 2, 3, 4, 5), (1, 1, 1, 1, 1, -1))
    # A single one that has no side need not say so.
    plain = TWO.replace("draws = 2", "").replace("[-9, 9]", "[0, 9]")
    assert swap_instance(parse_catalogue(plain)).sign == (1,) * 6
    # What is always the same looks the same.
    constant = swap_instance(parse_catalogue(TWO.replace("[-9, 9]", "[0, 0]")))
    assert constant == Swap((0, 1, 2, 3, 4, 5, 6), (1,) * 7)
