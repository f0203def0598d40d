"""A parameter of one's own: an entry in a catalogue and one function."""

from pathlib import Path

import numpy as np
import pytest
from worlds import GRAVITY, STRONG, begin, exact_pool, hold

from horizon_rl.domains import AtLevels, parse_catalogue
from horizon_rl.physics import EFFECTS, Effect, PoolDraft, sample_pool
from horizon_rl.robots import Robot, build_robot, load_preset
from horizon_rl.support.errors import InputError

CATALOGUE = """
extends = "paper"

[groups.mass.parameters.payload]
baseline = [0.0, 0.0]
limit = [0.0, 5.0]
unit = "kg"
mass_power = 1.0
"""


def add_payload(draft: PoolDraft, kilograms: np.ndarray) -> None:
    """Fix a point mass to the trunk's centre of mass."""
    draft.fields["body_mass"][:, draft.robot.trunk_body_id] += kilograms


MINE = EFFECTS | {"mass.payload": Effect(add_payload, low=0.0, draws=1)}


@pytest.fixture(scope="module")
def go2() -> Robot:
    return build_robot(load_preset("go2"))


def test_it_acts_like_those_of_the_paper(go2):
    catalogue = parse_catalogue(CATALOGUE)
    payload = np.array([0.0, 2.0, 5.0])
    values = STRONG | {"mass.payload": payload}
    pool = exact_pool([go2], 3, values, catalogue=catalogue, effects=MINE)
    backend = begin(pool)
    hold(backend, pool, 150)
    load = backend.state.foot_force.sum(dim=1).numpy()
    expected = (go2.total_mass_kg + payload) * GRAVITY
    assert load == pytest.approx(expected, rel=0.01), f"{load} of {expected} N"
    assert pool.parameters.shape == (3, 47), "the critic is told"


def test_it_scales_with_the_body(go2):
    catalogue = parse_catalogue(CATALOGUE)
    b2 = build_robot(load_preset("b2"))
    values = {"mass.payload": 2.0}
    pool = exact_pool([go2, b2], 2, values, catalogue=catalogue, effects=MINE)
    trunk = go2.trunk_body_id
    for row, robot, expected in ((0, go2, 2.0), (1, b2, 2.0 * 4.537771)):
        added = pool.fields["body_mass"][row, trunk] - robot.model.body_mass[trunk]
        assert added == pytest.approx(expected), f"{robot.name}: {added} kg"


def test_its_ranges_follow_the_levels(go2):
    catalogue = parse_catalogue(CATALOGUE)
    rng = np.random.default_rng(0)
    pool = sample_pool(
        [go2], catalogue, AtLevels({"mass": 0.5}), 200, rng, effects=MINE
    )
    added = pool.instances["mass.payload"]
    assert 0.0 <= added.min() < 0.2, f"{added.min()} kg"
    assert 2.3 < added.max() <= 2.5, f"{added.max()} kg"


def test_its_limits_are_checked_like_all_others(go2):
    catalogue = parse_catalogue(CATALOGUE)
    values = {"mass.payload": -1.0}
    with pytest.raises(InputError, match="mass.payload = -1 is impossible"):
        exact_pool([go2], 1, values, catalogue=catalogue, effects=MINE)
    with pytest.raises(InputError, match="nothing applies.*'mass.payload'"):
        exact_pool([go2], 1, values, catalogue=catalogue)


def test_the_example_in_the_docs_runs():
    page = Path(__file__).parents[2] / "docs" / "physics.md"
    blocks = [
        part.split("```")[0] for part in page.read_text().split("```python\n")[1:]
    ]
    world: dict = {}
    for block in blocks:
        exec(block, world)
    assert len(world["pool"]) > 0
    assert world["backend"].state.healthy.all()
