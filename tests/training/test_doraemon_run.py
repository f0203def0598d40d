"""DORAEMON in the simulator: levels come back with the episodes, and it resumes."""

from typing import Any, Literal

import numpy as np
import pytest
from small_runs import create, finish, journal, resume, run_phases, tiny

from horizon_rl.cli import main
from horizon_rl.curriculum import DoraemonCfg, Entry
from horizon_rl.curriculum.entropy import divergence
from horizon_rl.runs.journal import replay
from horizon_rl.support.errors import InputError


@pytest.mark.parametrize("unit", ["group", "parameter"])
def test_levels_come_back_with_the_episodes(
    unit: Literal["group", "parameter"], tmp_path
):
    cfg = tiny(method="doraemon", doraemon=DoraemonCfg(unit=unit))
    run = create(cfg, tmp_path)
    shapes = []
    for event in run.events():
        if not isinstance(event, Entry):
            continue
        proposal: Any = event.proposal
        outcomes, scenarios = event.evidence.outcomes, run.worlds._scenarios
        assert outcomes and scenarios
        marks = scenarios.pool.marks
        expected = np.concatenate([marks["mass"], marks["com"]], axis=1)
        assert expected.shape[1] == len(proposal.shapes)
        found = np.array(outcomes.values)
        assert found == pytest.approx(expected[list(outcomes.row)], abs=1e-6)
        shapes.append(np.array([*proposal.shapes.values()]).T)
    run.close()
    # Gates let all pass here, so that the first step is as large as it may be.
    step = run.curriculum.method.max_step  # pyright: ignore[reportAttributeAccessIssue]
    assert 0.9 * step < divergence(shapes[0], shapes[1]) <= step
    assert replay(tmp_path / "journal.jsonl").state == run.curriculum.state


def test_stopped_and_resumed_equals_uninterrupted_to_the_bit(tmp_path, capsys):
    cfg = tiny(method="doraemon")
    finish(create(cfg, tmp_path / "whole"))
    run_phases(create(cfg, tmp_path / "run"), 1)
    finish(resume(tmp_path / "run"))
    assert journal(tmp_path / "run") == journal(tmp_path / "whole")
    assert main(["status", str(tmp_path / "run")]) == 0
    assert "doraemon" in capsys.readouterr().out


def test_a_budget_without_an_update_is_refused_before_anything_is_built(tmp_path):
    with pytest.raises(InputError, match="before one update of DORAEMON"):
        create(tiny(method="doraemon", max_phases=1), tmp_path / "run")
    assert not (tmp_path / "run").exists()
