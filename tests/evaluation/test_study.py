"""Studies of runs whose numbers are known, made in memory."""

import pytest

pytest.importorskip("scipy")

from studied_runs import (
    first,
    make_run,
    phase,
)

from horizon_rl.curriculum import (
    CurriculumCfg,
    choose_method,
)
from horizon_rl.evaluation.studies.study import measure_costs, study
from horizon_rl.runs.budget import Budget
from horizon_rl.runs.telemetry import PhaseTimes
from horizon_rl.show.study_tables import outcome_table
from horizon_rl.support.records import encode


def test_costs_of_a_run_by_hand():
    times = {
        k: PhaseTimes(phase=k, train_s=6.0, probe_s=3.0, settle_s=1.0) for k in range(4)
    }
    run = make_run(first(), phase(), phase(50.0), times=times)
    costs = measure_costs(run)
    assert (costs.phases, costs.commits, costs.rollbacks) == (3, 2, 1)
    assert costs.env_steps == 1500
    assert costs.rolled_back_share == pytest.approx(1 / 3)
    assert costs.probe_share == pytest.approx(0.2)  # 100 of a phase's 500.
    assert costs.time_s == 30.0  # The fourth phase is not in the journal.
    assert costs.train_time_share == pytest.approx(0.6)


def test_phases_of_a_run_that_never_restores_are_all_counted():
    method = choose_method("no-restore", CurriculumCfg())
    found = study([make_run(first(), phase(), phase(50.0), method=method)])
    costs = found.runs[0].costs
    assert (costs.commits, costs.rollbacks, costs.retreats) == (2, 0, 1)
    assert "retreats" in outcome_table(found).headings
    assert "retreats" not in outcome_table(study([make_run(first())])).headings


def test_methods_average_over_their_seeds():
    runs = [
        make_run(first(), phase(), seed=0),
        make_run(first(), phase(), phase(), phase(), seed=1),
        make_run(first(), name="other"),
    ]
    ours, other = study(runs).methods
    phases = ours.costs["phases"]
    assert phases is not None and (phases.mean, phases.seeds) == (3.0, 2)
    assert phases.sd == pytest.approx(2**0.5)
    alone = other.costs["phases"]
    assert alone is not None and alone.sd is None
    assert ours.costs["time_s"] is None and ours.coverage == {"mass": None, "com": None}


def test_run_without_phases_has_no_shares():
    found = study([make_run()]).runs[0]
    assert found.costs.probe_share is None and found.length_trends.window is None


def test_runs_without_gate_c_are_not_pooled_in_the_diagnostic():
    method = choose_method("feasibility-only", CurriculumCfg())
    without = make_run(first(), phase(), method=method, name="feasibility-only")
    both = study([make_run(first(), phase()), without])
    assert (both.diagnostic.runs, both.left_out_of_diagnostic) == (1, 1)
    assert study([without]).diagnostic.runs == 1


def test_run_is_finished_by_the_budget_it_was_last_given():
    spent = make_run(first()).journal.state.env_steps
    assert make_run(first(), budget=Budget(steps=spent)).finished
    assert not make_run(first(), budget=Budget(steps=spent + 1)).finished
    assert not make_run(first()).finished


def test_json_keeps_the_keys_of_its_schema():
    data = encode(study([make_run(first(), phase())]))
    assert data["schema"] == 2
    (run,), (method,) = data["runs"], data["methods"]
    assert run["gate_stability"]["commits"] == 2
    assert run["length_trends"]["rollouts"] is None
    assert list(method) == ["name", "runs", "costs", "coverage", "gate_stability"]
