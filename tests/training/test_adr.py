"""ADR in the simulator: its marks come back with the episodes, and it resumes."""

from typing import cast

import numpy as np
import pytest
from small_runs import create, finish, journal, resume, tiny

from horizon_rl.curriculum import Adr, AdrCfg, Entry
from horizon_rl.domains import AtBounds, paper_catalogue
from horizon_rl.runs.journal import replay
from horizon_rl.support.errors import InputError

ADR = AdrCfg(episodes=2, step=0.1, boundary=0.8)


def test_marks_come_back_with_the_episodes(tmp_path):
    run = create(tiny(method="adr", adr=ADR), tmp_path)
    for event in run.events():
        if not isinstance(event, Entry):
            continue
        outcomes, scenarios = event.evidence.outcomes, run.worlds._scenarios
        assert outcomes and scenarios
        assert isinstance(event.proposal.distribution, AtBounds)
        marks = scenarios.pool.marks
        expected = marks["bound"][list(outcomes.row)]
        np.testing.assert_array_equal(np.array(outcomes.values)[:, 0], expected)
        assert set(expected) == {0.0, 1.0, 2.0}
    run.close()
    entries = replay(tmp_path / "journal.jsonl").entries
    assert [e.proposal.levels for e in entries][1] == {"mass": 0.1, "com": 0.1}
    assert replay(tmp_path / "journal.jsonl").state == run.curriculum.state


@pytest.mark.parametrize("method", ["adr", "scalar-adr"])
def test_stopped_and_resumed_equals_uninterrupted_to_the_bit(method, tmp_path):
    cfg = tiny(method=method, adr=ADR)
    finish(create(cfg, tmp_path / "whole"))
    run = create(cfg, tmp_path / "run")
    for event in run.events():
        if isinstance(event, Entry):
            break
    run.close()
    finish(resume(tmp_path / "run"))
    assert journal(tmp_path / "run") == journal(tmp_path / "whole")


def test_plan_is_that_of_the_budget():
    """Phases of 4 iterations of 5 steps, episodes of 8 steps: two and a half of them."""
    cfg = tiny(method="adr", adr=ADR, max_phases=99, steps=4000)
    probed = 8 * (cfg.anchor_scenarios + 2 * cfg.probe_scenarios)
    method = cast(Adr, cfg.make_method(paper_catalogue()))
    assert method.plan.episodes == 2 * 8
    assert method.plan.phases == -(-4000 // (8 * 4 * 5 + probed))
    two = cast(Adr, cfg.make_method(paper_catalogue(), ranks=2))
    assert two.plan.episodes == 2 * 2 * 8 and two.plan.phases < method.plan.phases
    staggered = tiny(method="adr", adr=ADR, stagger=True)
    method = cast(Adr, staggered.make_method(paper_catalogue()))
    assert (method.plan.episodes, method.plan.phases) == (12, 0)


def test_budget_too_small_for_one_update_is_refused_before_anything_is_built(tmp_path):
    with pytest.raises(InputError, match="before one buffer of ADR is full"):
        create(tiny(method="adr", steps=500), tmp_path / "run")
    assert not (tmp_path / "run").exists()
