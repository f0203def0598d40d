"""Methods: HORIZON, its ablations and controls, on the real simulator."""

from dataclasses import replace

import pytest
import torch
from small_runs import (
    CALM,
    LENIENT,
    STORM,
    actions,
    create,
    finish,
    journal,
    levels,
    read_evidence,
    resume,
    run_phases,
    stormy,
    tiny,
    weights,
)

from horizon_rl.domains import paper_catalogue
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.training.presets import preset_cfg


def both(level: float) -> dict[str, float]:
    return {"mass": level, "com": level}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("base", [both(0.0), both(0.0), both(0.0)]),
        ("wide", [both(1.0), both(1.0), both(1.0)]),
        ("linear", [both(0.0), both(0.25), both(0.5)]),
        ("joint", [both(0.0), both(0.05), both(0.1)]),
        ("paper", [both(0.0), {"mass": 0.05, "com": 0.0}, both(0.05)]),
        ("no-rollback", [both(0.0), {"mass": 0.05, "com": 0.0}, both(0.05)]),
        ("feasibility-only", [both(0.0), {"mass": 0.05, "com": 0.0}, both(0.05)]),
    ],
)
def test_method_sets_the_levels(method, expected, tmp_path):
    entries = finish(create(tiny(method=method, linear_phases=4), tmp_path))
    assert levels(entries) == expected
    assert actions(entries) == ["commit"] * 3


@pytest.mark.parametrize(
    ("method", "named", "expected"),
    [
        ("fixed", "0.5", [both(0.5)] * 4),
        ("fixed", "mass=0.5", [{"com": 0.0}] * 4),
        ("fixed", "mass=0.5,com=0.25", [{}] * 4),
        ("linear", "0.5", [both(0.0), both(0.25), both(0.5), both(0.5)]),
        ("linear", "mass=0.5", [{"com": level} for level in (0.0, 0.5, 1.0, 1.0)]),
    ],
)
def test_levels_of_a_control(method, named, expected, tmp_path):
    cfg = tiny(method=method, levels=named, linear_phases=2, max_phases=4)
    run = create(cfg, tmp_path)
    entries = finish(run)
    assert levels(entries) == expected and actions(entries) == ["commit"] * 4
    known = {"mass=0.5": {"mass": 0.5}, "mass=0.5,com=0.25": {"mass": 0.5, "com": 0.25}}
    recorded = load_checkpoint(run.checkpoint).record.levels
    assert recorded == {**known.get(named, {}), **expected[-1]}
    assert len(resume(tmp_path).curriculum.entries) == 4


@pytest.mark.parametrize(
    ("changes", "arrives"),
    [
        ({}, 8),  # Of 11 phases.
        ({"steps": 0}, 50),
        ({"linear_phases": 3}, 3),
    ],
)
def test_linear_arrives_after_two_thirds_of_the_budget(changes, arrives):
    cfg = replace(preset_cfg("laptop"), method="linear", levels="0.5", **changes)
    clock = cfg.make_method(paper_catalogue()).cfg.clock
    assert clock and clock.level_at(arrives - 1) < 0.5 == clock.level_at(arrives)


@pytest.mark.parametrize("method", ["base", "wide", "linear"])
def test_clock_goes_on_whatever_happens(method, tmp_path):
    gates = replace(LENIENT, max_error=0.0)
    run = create(tiny(method=method, gates=gates), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit"] * 3
    assert not any(entry.decision.verdict.passed for entry in entries)


def test_baseline_that_is_not_learnt_is_trained_on_from_where_it_is(tmp_path):
    run = create(tiny(gates=replace(LENIENT, max_error=0.0), max_phases=2), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["hold", "hold"]
    assert levels(entries) == [both(0.0)] * 2
    first, second = (
        load_checkpoint(tmp_path / "checkpoints" / f"phase-0000{k}") for k in (0, 1)
    )
    assert not torch.equal(
        first.tensors["actor.mlp.0.weight"], second.tensors["actor.mlp.0.weight"]
    )
    assert entries[1].evidence.reference_error is None


def test_without_rollback_weights_of_a_failed_phase_stay(tmp_path):
    run = create(stormy(method="no-rollback", max_phases=3), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit"] * 3
    assert not entries[1].decision.verdict.passed
    assert entries[2].proposal.mastered == {"disturbance": 0.5, "com": 0.0}
    assert run.checkpoint.name == "phase-00002"
    assert entries[2].evidence.reference_error == entries[1].evidence.candidate_error


def test_without_restore_levels_retreat_and_weights_stay(tmp_path):
    cfg = stormy(method="no-restore", max_phases=4)
    run = create(cfg, tmp_path / "whole")
    entries = finish(run)
    assert actions(entries) == ["commit", "retreat", "commit", "retreat"]
    rolled_back = finish(create(stormy(max_phases=4), tmp_path / "other"))
    assert levels(entries) == levels(rolled_back)
    # The next phase goes on from the weights of the failed one, which are saved.
    assert [entry.checkpoint is None for entry in entries] == [False] * 4
    assert run.checkpoint.name == "phase-00003"
    cut = tmp_path / "cut"
    for _ in range(4):
        run_phases(resume(cut) if cut.exists() else create(cfg, cut), 1)
    assert journal(cut) == journal(run.path)


def test_joint_frontier_falls_back_as_one(tmp_path):
    entries = finish(create(stormy(method="joint"), tmp_path))
    assert actions(entries[:3]) == ["commit", "rollback", "rollback"]
    assert [set(phase.values()) for phase in levels(entries[:3])] == [
        {0.0},
        {0.5},
        {0.2},
    ]


def test_feasibility_only_is_not_judged_by_the_checkpoint_but_measures_it(tmp_path):
    strict = replace(CALM, error_margin=0.0, return_margin=0.0)
    entries = finish(create(tiny(method="feasibility-only", gates=strict), tmp_path))
    assert actions(entries) == ["commit"] * 3
    assert {entry.decision.verdict.preserved for entry in entries} == {None}
    assert entries[1].evidence.checkpoint_error is not None


def test_without_probes_gate_c_is_switched_off(tmp_path):
    run = create(tiny(probe_scenarios=0, anchor_scenarios=0), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit"] * 3
    assert {entry.decision.verdict.preserved for entry in entries} == {None}
    assert set(read_evidence(tmp_path, 2)) == {
        "window_start",
        "window_length",
        "window_error",
    }


def test_anchor_alone_can_be_measured(tmp_path):
    entries = finish(create(tiny(probe_scenarios=0), tmp_path))
    assert all(entry.evidence.anchor_error is not None for entry in entries)
    assert all(entry.evidence.candidate_error is None for entry in entries)


# Levels that are fixed.


def test_fixed_group_keeps_its_level_and_is_not_widened(tmp_path):
    run = create(tiny(levels="mass=0.5,reset=0.25"), tmp_path)
    entries = finish(run)
    assert levels(entries) == [{"com": 0.0}, {"com": 0.05}, {"com": 0.1}]
    ranges = run.worlds._draw(1, AtLevels({"com": 0.05})).scenarios.pool.instances
    assert ranges["mass.scale"].max() > 1.1 > ranges["inertia.scale"].max()
    record = load_checkpoint(run.checkpoint).record
    assert record.levels == {"mass": 0.5, "reset": 0.25, "com": pytest.approx(0.1)}
    fixed = STORM.fixed_at({"mass": 0.5, "reset": 0.25})
    assert resume(tmp_path).worlds.catalogue == fixed != STORM


def test_probes_hold_the_fixed_levels_too(tmp_path):
    run = create(tiny(levels="mass=1", max_phases=1), tmp_path)
    finish(run)
    assert len(run.worlds._probe_sets) == 2
    for scenarios in run.worlds._probe_sets.values():
        assert scenarios.pool.instances["mass.scale"].max() > 1.1


def test_base_with_every_group_fixed_trains_there(tmp_path):
    run = create(tiny(method="base", levels="all=0.5"), tmp_path)
    entries = finish(run)
    assert levels(entries) == [{}, {}, {}] and actions(entries) == ["commit"] * 3
    assert set(load_checkpoint(run.checkpoint).record.levels.values()) == {0.5}
    again = resume(tmp_path)
    for name, value in weights(run).items():
        assert torch.equal(weights(again)[name], value)
