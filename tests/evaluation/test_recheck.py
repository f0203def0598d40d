"""Verdicts on record, found again from episodes or not."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy")

from studied_runs import N, cut_short, first, make_run, phase

from horizon_rl.curriculum import CurriculumCfg, Horizon, LeapCfg, choose_method
from horizon_rl.curriculum.scouting import BEYOND, WITHIN
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


def test_missing_predecessor_does_not_hide_a_phases_own_numbers():
    run = make_run(first(), phase(), phase(checkpoint=0.25))
    altered = {**run.evidence[2], "window_error": run.evidence[2]["window_error"] * 0.0}
    found = recheck(replace(run, evidence={0: run.evidence[0], 2: altered}))
    (complaint,) = found.disagreements
    assert complaint.phase == 2
    assert complaint.what == "tracking_error is 0.2, its episodes say 0"
    assert (found.checked, found.agreed) == (1, 1)


# HORIZON's gates: a test of length, every size of body, level 0.

GOVERNOR = Horizon(
    leap=LeapCfg(
        ready=0.0,
        recovery=0.5,
        rungs=(0.5, 1.0),
        patience=2,
        margin=0.15,
        anchor_margin=0.4,
    )
)
LARGE = np.arange(N) % 2 == 0


def leap(length=95.0, spread=0.0, large=0.0, anchor=0.0, within=40.0, **numbers):
    """Return a phase with scouts and sizes; `large` is added to large bodies' errors."""
    arrays = phase(length, **numbers)
    arrays["window_length"] = length + spread * np.linspace(-1.0, 1.0, 10)
    for name in ("checkpoint", "candidate", "anchor"):
        arrays[f"{name}_size:large"], arrays[f"{name}_size:small"] = LARGE, ~LARGE
        arrays[f"{name}_length"] = np.full(N, length + 3.0)  # Without noise.
    arrays["checkpoint_error"] = arrays["checkpoint_error"] + large * LARGE
    arrays["anchor_error"] = arrays["anchor_error"] + anchor
    scouted = {f"{BEYOND} 0.5": 70.0, f"{BEYOND} 1": 40.0}
    scouted |= dict.fromkeys(
        (f"{WITHIN} {share:g}" for share in LeapCfg().keep), within
    )
    for name, value in scouted.items():
        arrays[f"{name}_length"] = np.full(4, value)
        arrays[f"{name}_error"] = np.full(4, 0.2)
    return arrays


def start():
    return {k: v for k, v in leap().items() if not k.startswith("checkpoint")}


def measured(arrays):
    """Add the scenarios of a commit that is measured as the phase begins."""
    for what in ("length", "error", "return", "size:large", "size:small"):
        arrays[f"reference_{what}"] = arrays[f"checkpoint_{what}"].copy()
    return arrays


def govern(*phases):
    return make_run(*phases, method=GOVERNOR, name="horizon")


def test_governors_verdicts_are_found_again():
    run = govern(
        start(),
        leap(84.8, spread=3.0),  # 0.2 below, and a standard error of 0.6: it passes.
        leap(70.0),
        leap(70.0, within=90.0),  # It stalls: a part is committed,
        measured(leap()),  # which is measured now.
        leap(large=0.05),  # 0.025 over all bodies is allowed, 0.05 of the large not.
        leap(anchor=0.05),
        cut_short(),
        leap(),
    )
    found = recheck(run)
    assert found.disagreements == ()
    assert (found.checked, found.agreed, found.gate_c, found.aborted) == (9, 9, 8, 1)
    verdicts = [entry.decision.verdict for entry in run.entries]
    assert [v.feasible for v in verdicts] == [
        *(True, True, False, False, True, True, True, False, True)
    ]
    assert [v.preserved for v in verdicts[:7]] == [None, *[True] * 4, False, False]
    assert run.entries[3].decision.levels is not None


def complain(run, number: int, **changed) -> str:
    """Alter a phase's file, and return what is said of it."""
    evidence = {**run.evidence, number: {**run.evidence[number], **changed}}
    complaints = recheck(replace(run, evidence=evidence)).disagreements
    return next(c.what for c in complaints if c.phase == number)


def test_altered_episodes_of_a_governed_run_are_found():
    run = govern(start(), leap(84.8, spread=3.0), leap(70.0), leap(70.0, within=90.0))
    what = complain(run, 1, window_length=np.full(10, 84.8))
    assert "length_se is 0.00638285, its episodes say" in what
    assert "gate L passed, recomputed failed" in what
    large = run.evidence[1]["checkpoint_error"] + 0.05 * LARGE
    what = complain(run, 1, checkpoint_error=large)
    assert "checkpoint_error:large is 0.198" in what
    assert "gate C passed, recomputed failed" in what
    drifted = run.evidence[1]["anchor_error"] + 0.05
    assert "gate C passed, recomputed failed" in complain(run, 1, anchor_error=drifted)
    scouts = {f"within {s}_length": np.full(4, 40.0) for s in (0.75, 0.5, 0.25)}
    what = complain(run, 3, **scouts)
    assert "within 0.75_length is 0.9, its episodes say 0.4" in what
    assert "decision commit, recomputed rollback" in what


def test_scouts_that_are_not_on_file_are_missed():
    run = govern(start(), leap(70.0))
    lacking = {k: v for k, v in run.evidence[1].items() if k != f"{BEYOND} 1_length"}
    found = recheck(replace(run, evidence={**run.evidence, 1: lacking}))
    (complaint,) = found.disagreements
    assert complaint.what == (
        f"{BEYOND} 1_length is 0.4, its episodes say not measured"
    )


@pytest.mark.parametrize("missing", range(6))
def test_sound_phases_of_a_governed_run_agree_beside_a_missing_one(missing):
    run = govern(
        start(),
        leap(),
        leap(70.0),
        leap(70.0, within=90.0),  # A part is committed,
        measured(leap()),  # which is measured now.
        leap(large=0.05),
        leap(anchor=0.05),
    )
    kept = {k: v for k, v in run.evidence.items() if k != missing}
    found = recheck(replace(run, evidence=kept))
    assert found.disagreements == ()
    assert found.agreed == found.checked < 7
