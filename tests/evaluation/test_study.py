"""Studies of runs whose numbers are known, made in memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Evidence,
    GateCfg,
    Horizon,
    choose_method,
)
from horizon_rl.curriculum.method import name_of, settings_of
from horizon_rl.evaluation.studies.gate_stability import measure_gate_stability
from horizon_rl.evaluation.studies.plateau import find_length_trends, moving_mean
from horizon_rl.evaluation.studies.recheck import recheck
from horizon_rl.evaluation.studies.study import measure_costs, study
from horizon_rl.evaluation.success import (
    CurvePoint,
    Result,
    make_curves,
    match_results,
    read_curve,
    read_results,
)
from horizon_rl.runs.budget import Budget
from horizon_rl.runs.journal import Header, Replay
from horizon_rl.runs.read import RunFiles
from horizon_rl.support.errors import InputError

LONGEST, N = 100, 64
CONTEXT = {
    "train": {
        **{"method": "horizon", "seed": 3, "num_envs": 4, "steps": 0, "minutes": 0.0},
        **{"task": {"episode_s": 2.0}, "learner": {"ppo": {"num_steps": 50}}},
    },
    "ranks": 1,
}
PROBES = ("checkpoint", "candidate", "anchor")
Phase = dict[str, np.ndarray]


def phase(length=95.0, error=0.2, checkpoint=0.2, value=10.0, candidate=0.2) -> Phase:
    """Return a phase's arrays with these means, and some spread around them."""
    around = np.linspace(-1.0, 1.0, N)
    arrays = {
        "window_length": np.full(10, length),
        "window_error": error + 0.1 * around[:10] - 0.1 * around[:10].mean(),
    }
    for probe, e in zip(PROBES, (checkpoint, candidate, 0.1), strict=True):
        arrays[f"{probe}_error"] = e + 0.1 * around
        arrays[f"{probe}_return"] = value + around
    return arrays


def first() -> Phase:
    return {k: v for k, v in phase().items() if not k.startswith("checkpoint")}


def cut_short() -> Phase:
    return {k: v for k, v in phase(20.0).items() if k.startswith("window")}


def make_run(
    *phases: Phase, method=None, name="horizon", seed=3, **changes
) -> RunFiles:
    """Run a curriculum through phases; two iterations of 200 env steps each."""
    curriculum = Curriculum(["mass", "com"], method)
    for arrays in phases:
        means = {key: float(np.mean(values)) for key, values in arrays.items()}
        figures: dict[str, Any] = {
            k: v for k, v in means.items() if not k.startswith("window")
        }
        evidence = Evidence(
            length=means["window_length"] / LONGEST,
            tracking_error=means["window_error"],
            **figures,
            episodes=10,
            iterations=2,
            env_steps=500,
            aborted="candidate_error" not in means,
        )
        curriculum.tell(evidence)
    context = {**CONTEXT, "train": {**CONTEXT["train"], "seed": seed}}
    header = Header(
        schema=2,
        version="0",
        groups=("mass", "com"),
        method=name_of(curriculum.method),
        settings=settings_of(curriculum.method),
        curriculum=curriculum.cfg,
        context=context,
    )
    entries = tuple(curriculum.entries)
    journal = Replay(
        header=header, entries=entries, state=curriculum.state, num_bytes=0
    )
    files = RunFiles(
        name=name,
        path=Path(f"{name}-{seed}"),
        journal=journal,
        evidence=dict(enumerate(phases)),
        damaged={},
        metrics=(),
        times=(),
    )
    return replace(files, **changes)


def test_verdicts_of_every_kind_are_found_again():
    run = make_run(
        first(),
        phase(),
        phase(50.0),  # Gate L fails by length,
        phase(error=0.7),  # by error;
        phase(checkpoint=0.25),  # gate C by error,
        phase(value=8.0),  # by return.
        cut_short(),
        phase(),
    )
    actions = [entry.decision.action for entry in run.entries]
    assert actions == ["commit"] * 2 + ["rollback"] * 5 + ["commit"]
    found = recheck(run)
    assert found.disagreements == ()
    assert (found.phases, found.checked, found.agreed) == (8, 8, 8)
    assert (found.gate_c, found.aborted) == (7, 1)
    assert found.worst_difference is not None and found.worst_difference < 1e-12


@pytest.mark.parametrize("method", ["wide", "no-rollback", "feasibility-only"])
def test_other_methods_verdicts_are_found_again(method):
    chosen = choose_method(method, CurriculumCfg())
    found = recheck(
        make_run(first(), phase(50.0), phase(checkpoint=0.3), method=chosen)
    )
    assert (found.agreed, found.disagreements) == (3, ())
    assert found.gate_c == (0 if method == "feasibility-only" else 2)


def test_held_baseline_has_no_gate_c():
    held = {k: v for k, v in phase(30.0).items() if not k.startswith("checkpoint")}
    found = recheck(make_run(held, first(), phase()))
    assert (found.agreed, found.gate_c) == (3, 1)


def test_altered_episodes_overturn_the_verdict_on_record():
    run = make_run(first(), phase(), phase())
    altered = {**run.evidence[1], "window_length": np.full(10, 40.0)}
    found = recheck(replace(run, evidence={**run.evidence, 1: altered}))
    assert (found.checked, found.agreed) == (3, 2)
    (complaint,) = found.disagreements
    assert complaint.phase == 1
    assert "length is 0.95, its episodes say 0.4" in complaint.what
    assert "gate L passed, recomputed failed" in complaint.what
    assert "commit should be rollback" in complaint.what


def test_altered_reference_is_found_in_the_phases_compared_with_it():
    run = make_run(first(), phase(), phase())
    altered = {**run.evidence[0], "candidate_error": np.full(N, 0.1)}
    found = recheck(replace(run, evidence={**run.evidence, 0: altered}))
    assert [d.phase for d in found.disagreements] == [0, 1]
    assert "gate C passed, recomputed failed" in found.disagreements[1].what


def test_missing_probe_is_a_disagreement_and_a_missing_file_is_not():
    run = make_run(first(), phase(), phase())
    lacking = {k: v for k, v in run.evidence[2].items() if "anchor" not in k}
    found = recheck(replace(run, evidence={**run.evidence, 2: lacking}))
    assert "its episodes say not measured" in found.disagreements[0].what
    found = recheck(replace(run, evidence={0: run.evidence[0], 2: run.evidence[2]}))
    # Phase 2 is compared with phase 1, whose episodes are gone.
    assert (found.checked, found.agreed, found.disagreements) == (1, 1, ())


def test_policy_never_fails_itself_on_the_same_scenarios():
    found = measure_gate_stability(
        make_run(first(), phase(), phase()), np.random.default_rng(0)
    )
    assert (found.commits, found.scenarios, found.paired) == (3, 64, 0.0)
    # Errors of 0.2 with a deviation of 0.06: means of 64 differ by 5 % of them in
    # about 1 of 6 draws, those of 32 more often.
    assert found.unpaired is not None and found.halves is not None
    assert 0.05 < found.unpaired < found.halves < 0.5


def test_error_slack_lets_a_policy_pass_against_itself():
    method = Horizon(
        cfg=CurriculumCfg(gates=GateCfg(error_slack=0.1, return_margin=0.5))
    )
    found = measure_gate_stability(
        make_run(first(), phase(), method=method), np.random.default_rng(0)
    )
    assert (found.unpaired, found.halves) == (0.0, 0.0)


def test_close_verdict_is_overturned_more_often_than_a_clear_one():
    def overturned(error_added: np.ndarray) -> float | None:
        arrays = phase()
        arrays["checkpoint_error"] = arrays["checkpoint_error"] + error_added
        found = measure_gate_stability(
            make_run(first(), arrays), np.random.default_rng(0)
        )
        return found.passes_overturned

    # The allowed growth is 0.01. What all scenarios share is no luck.
    uneven = np.random.default_rng(1).permutation(np.linspace(-0.05, 0.065, N))
    assert overturned(np.full(N, 0.004)) == 0.0
    close = overturned(uneven)
    assert close is not None and 0.1 < close < 0.9


def test_costs_of_a_run_by_hand():
    times = tuple(
        {"phase": k, "train_s": 6.0, "probe_s": 3.0, "settle_s": 1.0} for k in range(4)
    )
    run = make_run(first(), phase(), phase(50.0), times=times)
    costs = measure_costs(run)
    assert (costs.phases, costs.commits, costs.rollbacks) == (3, 2, 1)
    assert costs.env_steps == 1500
    assert costs.rolled_back_share == pytest.approx(1 / 3)
    assert costs.probe_share == pytest.approx(0.2)  # 100 of a phase's 500.
    assert costs.time_s == 30.0  # The fourth phase is not in the journal.
    assert costs.train_time_share == pytest.approx(0.6)


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


def test_moving_mean_looks_back_by_its_width():
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 5.0, 1.0])
    assert moving_mean(x, y, 2.0).tolist() == [1.0, 2.0, 4.0, 3.0]
    assert moving_mean(x, y, 0.5).tolist() == y.tolist()


def test_signal_leaves_out_what_ended_before_an_episode_could_last():
    # Iterations of 50 control steps, episodes of 100: the first of a phase is falls.
    def run(late: float) -> RunFiles:
        lengths = [(0.1, 0.8), (0.1, 0.9), (0.1, 0.9), (0.1, 0.9), (None, late)]
        lines = [
            {"phase": k, "env_steps": 200 * (2 * k + i + 1), "episode_length": y}
            for k, pair in enumerate(lengths)
            for i, y in enumerate(pair)
        ]
        return make_run(metrics=tuple(lines))

    trend = find_length_trends(run(0.905)).rollouts
    assert trend is not None and trend.best == pytest.approx(0.905)
    assert trend.late_gain == pytest.approx(0.005) and trend.plateau
    trend = find_length_trends(run(0.95)).rollouts
    assert trend is not None and not trend.plateau


def test_window_signal_is_what_gate_l_saw():
    run = make_run(first(), phase(60.0), phase(90.0), phase(70.0), phase(99.0))
    trend = find_length_trends(run).window
    assert trend is not None and not trend.plateau
    assert (trend.best, trend.last) == (pytest.approx(0.99), pytest.approx(0.99))


def results(*pairs: tuple[str, float]) -> list[Result]:
    return [Result(policy=p, success=s, suite_hash="a") for p, s in pairs]


def test_results_go_to_runs_by_name_in_order_and_by_path():
    runs = [make_run(seed=s) for s in (0, 1)] + [make_run(name="wide")]
    given = results(("wide-3/checkpoints/x", 0.1), ("horizon", 0.3), ("horizon", 0.4))
    found = match_results([*given, *results(("stranger", 0.9))], runs)
    assert found == {
        Path("horizon-0"): 0.3,
        Path("horizon-1"): 0.4,
        Path("wide-3"): 0.1,
    }


def test_results_that_fit_no_run_are_refused():
    runs = [make_run(seed=s) for s in (0, 1)]
    with pytest.raises(InputError, match=r"has 2 run\(s\) but 1 result\(s\)"):
        match_results(results(("horizon", 0.3)), runs)
    with pytest.raises(InputError, match="did you mean 'horizon'"):
        match_results(results(("horizn", 0.3)), runs)
    other = Result(policy="horizon", success=0.1, suite_hash="b")
    with pytest.raises(InputError, match="different suites"):
        match_results([*results(("horizon", 0.3)), other], runs)
    two = results(("horizon-0/checkpoints/a", 0.3), ("horizon-0/checkpoints/b", 0.4))
    with pytest.raises(InputError, match="horizon-0 has two results"):
        match_results(two, runs)


def test_run_is_finished_by_the_budget_it_was_last_given():
    spent = make_run(first()).journal.state.env_steps
    assert make_run(first(), budget=Budget(steps=spent)).finished
    assert not make_run(first(), budget=Budget(steps=spent + 1)).finished
    assert not make_run(first()).finished


def test_results_file_gives_column_all_at_severity_half(tmp_path):
    def result(severity, success):
        suite = {"name": "ood", "hash": "a", "severity": severity}
        columns = {"all": {"success": success}, "mass": {"success": 0.9}}
        return {"policy": "horizon", "suite": suite, "columns": columns}

    file = tmp_path / "results.json"
    file.write_text(json.dumps([result(0.5, 0.25), result(1.0, 0.1)]))
    assert [(r.policy, r.success) for r in read_results(file)] == [("horizon", 0.25)]
    assert read_results(file, "mine")[0].policy == "mine"
    file.write_text(json.dumps(result(1.0, 0.1)))
    with pytest.raises(InputError, match="at severity 0.5"):
        read_results(file)


def test_curves_are_compared_at_the_cost_all_reached():
    points = [
        *(CurvePoint("a", 0, x, s) for x, s in ((100, 0.1), (400, 0.4))),
        *(CurvePoint("a", 1, x, s) for x, s in ((100, 0.3), (500, 0.7))),
        *(CurvePoint("b", 0, x, s) for x, s in ((150, 0.0), (450, 0.3))),
    ]
    a, b = make_curves(points)
    spread = a.at_cost["0.5"]  # At 200 of 400.
    assert spread is not None and spread.mean == pytest.approx((0.2 + 0.4) / 2)
    assert a.at_cost["0.25"] is not None
    assert b.at_cost["0.25"] is None  # At 100: before its first checkpoint.
    with pytest.raises(InputError, match="two successes of seed 0"):
        make_curves([*points, CurvePoint("b", 0, 150, 0.1)])


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ({}, "not a list of rows"),
        ([{"method": "a", "seed": 0, "env_steps": 1}], "row 0: needs method, seed"),
        ([{"method": "a", "seed": 0, "env_steps": 1, "success": 31}], "outside 0..1"),
    ],
)
def test_bad_rows_of_a_curve_are_refused(tmp_path, rows, complaint):
    file = tmp_path / "curve.json"
    file.write_text(json.dumps(rows))
    with pytest.raises(InputError, match=complaint):
        read_curve(file)
