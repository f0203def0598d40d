"""What one test shortens, the next finds as it was."""

import pytest

pytest.importorskip("mujoco")
from horizon_rl.task import TaskCfg
from horizon_rl.training.presets import preset_cfg

SMOKE_HOLD_S = 0.5


@pytest.mark.parametrize("time", ["first", "again"])
def test_presets_are_made_from_the_episode_of_the_test_alone(last_only, time):
    assert preset_cfg("smoke", "mlp").task.command.hold_s == SMOKE_HOLD_S
    last_only(4.0)
    assert TaskCfg().episode_s == 4.0
    assert preset_cfg("smoke", "mlp").task.command.hold_s == 5 * SMOKE_HOLD_S
