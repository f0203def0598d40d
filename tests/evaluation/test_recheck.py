"""Verdicts on record, found again from episodes or not."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy")

from studied_runs import N, cut_short, first, make_run, phase

from horizon_rl.curriculum import (
    CurriculumCfg,
    choose_method,
)
from horizon_rl.evaluation.studies.recheck import recheck


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
    assert "decision commit, recomputed rollback" in complaint.what


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
