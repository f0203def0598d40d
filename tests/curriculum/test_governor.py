"""The governor, told by a worked example and by what each of its rules does alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from evidence import GOOD

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    EarlyCfg,
    Episodes,
    Evidence,
    Horizon,
    LeapCfg,
)
from horizon_rl.curriculum.methods.horizon import GovernorState
from horizon_rl.domains import AtLevels
from horizon_rl.support.errors import InputError

LEAP = LeapCfg(
    recovery=0.75,
    ready=0.0,
    min_gain=0.02,
    rungs=(0.5, 1.0),
    patience=6,
    sigmas=1.0,
    margin=0.15,
    anchor_margin=0.4,
    idle_phases=2,
)
GOVERNOR = Horizon(leap=LEAP)


def shows(
    length: float | None,
    outward: str = "1 1 1",
    within: str = "0 0 0",
    **changes,
) -> Evidence:
    """Return evidence of a phase that preserves all.

    Args:
        length: Mean length of its training episodes.
        outward: What scouts survive at the candidate and on both rungs.
        within: What they survive at 0.75, 0.5 and 0.25 of the leap.
    """
    names = ("candidate", "beyond 0.5", "beyond 1")
    names += tuple(f"within {share:g}" for share in (0.75, 0.5, 0.25))
    found = zip(names, (outward + " " + within).split(), strict=True)
    probed = {f"{name}_length": float(value) for name, value in found}
    probed |= {f"{name}_error": 0.2 for name in names if name.startswith("within")}
    measured = {"length_se": 0.02, "anchor_error": 0.1, "iterations": 100}
    return replace(GOOD, **{"length": length, "probed": probed, **measured, **changes})


def test_leap_hold_pass_stall_half_way_rollback_smaller_leap_consolidate_end():
    """Every line is a phase: kind, levels, length, scouts outward and within, action.

    The goal is 0.85, and the loss that is allowed (here - goal) / (1 - recovery). Both
    groups go the same way here.
    """
    trace = """
    baseline    0      0.95 | 0.95 0.55 0.15 | 0    0    0 | commit   0
    leap        0.5    0.70 | 0.75 0    0    | 0    0    0 | hold     0
    leap        0.5    0.94 | 0.94 0.74 0.30 | 0    0    0 | commit   0.5
    leap        0.75   0.60 | 0    0    0    | 0    0    0 | hold     0.5
    leap        0.75   0.61 | 0    0    0    | 0.80 0.86 1 | commit   0.625
    leap        0.6875 0.50 | 0    0    0    | 0    0    0 | hold     0.625
    leap        0.6875 0.50 | 0    0    0    | 0    0    0 | rollback 0.625
    leap        0.6562 0.90 | 0.76 0    0    | 0    0    0 | commit   0.6562
    consolidate 0.6562 0.90 | 0.62 0    0    | 0    0    0 | commit   0.6562
    consolidate 0.6562 0.90 | 0.62 0    0    | 0    0    0 | commit   0.6562
    """
    # Before any leap: 0.15 of 0.2 is won back.
    # 0: 0.1 / (1 - 0.75) = 0.4 may be lost, and is at rung 0.5.
    # 1: not passed, but one phase shows no slope. 0.75 - 0.55 = 0.2 of 0.4 is won back:
    #    with half of what was before, 0.275 of 0.5.
    # 2: 0.09 / (1 - 0.55) = 0.2 may be lost: rung 0.5.
    # 3: it survives less than scouts did: none of 0.2 is won back, 0.1375 of 0.45 in all.
    # 4: from 0.60 to 0.61 is flat, and half of the leap passes. A failure: 0.06875.
    # 5: what was committed has no scouts: half way to where the leap stalled.
    # 6: flat, and nothing of it passes: 0.034375 of 0.45, which is a share of 0.0764.
    # 7: half way again. Its probe is worse than training, which is a lower bound.
    # 8: 0.05 / (1 - 0.0764) = 0.0541 of 0.9 is 0.06 of the way to rung 0.5: a gain of
    #    0.03 * 0.3438 = 0.0103, which is not worth a leap. 10: two phases without a leap.
    curriculum = Curriculum(["mass", "com"], GOVERNOR)
    for line in trace.strip().splitlines():
        head, outward, within, tail = line.split("|")
        (kind, level, length), (action, mastered) = head.split(), tail.split()
        proposal = curriculum.ask()
        assert proposal is not None, f"ended before: {line}"
        assert proposal.kind == kind, line
        assert proposal.levels == dict.fromkeys(("mass", "com"), float(level)), line
        decision = curriculum.tell(shows(float(length), outward, within))
        assert decision.action == action, line
        levels = dict.fromkeys(("mass", "com"), float(mastered))
        assert curriculum.state.mastered == levels, line
    assert curriculum.ask() is None
    assert curriculum.state.ended == "no leap is left to try"
    stalled = curriculum.entries[4].decision
    assert stalled.levels == {"mass": 0.625, "com": 0.625}
    assert "stalled, committed all at 0.625" in stalled.reason
    why = "scouts survive 74% of an episode there, a phase wins back 55% of the loss"
    assert curriculum.entries[3].proposal.reason == why
    assert recovery(curriculum) == pytest.approx(0.034375 / 0.45)


def after(*told: Evidence, method: Horizon = GOVERNOR) -> Curriculum:
    """Return the curriculum of one group that was told so."""
    curriculum = Curriculum(["mass"], method)
    for evidence in told:
        curriculum.tell(evidence)
    return curriculum


LEAPT = shows(0.95, "0.95 0.55 0.15")
"""From it the governor leaps to 0.5, where scouts survive 0.55: 0.4 is lost."""


def recovery(curriculum: Curriculum) -> float:
    assert isinstance(curriculum.state, GovernorState)
    return curriculum.state.recovery.share


def leap_from(curriculum: Curriculum) -> float:
    proposal = curriculum.ask()
    assert proposal and proposal.kind == "leap"
    return proposal.levels["mass"]


def test_leap_that_wins_back_little_makes_the_next_one_smaller():
    little = after(LEAPT, shows(0.6, "0.65 0 0"))
    # 0.65 - 0.55 = 0.1 of 0.4, and half of 0.15 of 0.2: 0.175 of 0.5.
    assert recovery(little) == pytest.approx(0.35)
    little.tell(LEAPT)  # It passes now, but only the first phase counts.
    assert recovery(little) == pytest.approx(0.35)
    # 0.1 / (1 - 0.35) = 0.1538 of 0.4 is 0.1923 of the way from 0.5 to the limit.
    assert leap_from(little) == pytest.approx(0.5 + 0.5 * 0.1923, abs=1e-4)


def test_leap_that_wins_back_all_counts_no_more_than_the_setting():
    everything = after(LEAPT, LEAPT)
    assert recovery(everything) == pytest.approx(0.475 / 0.5)
    # 0.1 / (1 - 0.75), not 0.1 / (1 - 0.95): rung 0.5 again.
    assert leap_from(everything) == 0.75
    # After a leap that won back nothing, 0.075 of 0.5, one of 0.1 / 0.85 = 0.1176 wins
    # back all of it: 0.0375 + 0.1176 of 0.25 + 0.1176.
    regained = after(LEAPT, shows(0.4, "0.4 0 0"), LEAPT)
    assert recovery(regained) == pytest.approx(0.15)
    regained.tell(LEAPT)
    assert recovery(regained) == pytest.approx(0.1551 / 0.3676, abs=1e-3)


def test_what_training_survives_counts_as_won_back():
    # It is a lower bound of what is survived without noise; and all there is where the
    # candidate is not probed.
    probed = {"beyond 0.5_length": 0.0, "beyond 1_length": 0.0}
    for evidence in (shows(0.75, "0.6 0 0"), shows(0.75, probed=probed)):
        assert recovery(after(LEAPT, evidence)) == pytest.approx(0.275 / 0.5)


def test_aborted_phase_has_won_back_nothing_and_a_failure_halves():
    # 0.075 of 0.5, halved.
    aborted = after(LEAPT, shows(0.6, probed={}, aborted=True))
    assert recovery(aborted) == pytest.approx(0.075)
    # 0.75 - 0.55 = 0.2 of 0.4 is won back at first: 0.275 of 0.5. Then it stalls.
    flat = (shows(0.7, "0.75 0 0"), shows(0.7, "0.75 0 0"))
    curriculum = after(LEAPT, *flat)
    assert curriculum.entries[-1].decision.action == "rollback"
    assert recovery(curriculum) == pytest.approx(0.275)
    # 0.1 / (1 - 0.275) = 0.1379 of 0.4 up to rung 0.5.
    assert leap_from(curriculum) == pytest.approx(0.1724)


def test_only_a_scouted_leap_shows_what_is_won_back():
    stalled = (shows(0.7, "0.75 0 0"), shows(0.7, "0.75 0 0", "0 1 1"))
    half_way = after(LEAPT, *stalled)
    assert recovery(half_way) == pytest.approx(0.275)
    assert leap_from(half_way) == 0.375
    half_way.tell(shows(0.95, "0.95 0 0"))
    assert recovery(half_way) == pytest.approx(0.275)
    # Nor does a consolidation, whether it passes or fails.
    stuck = after(shows(0.85, "0.85 0 0"), *3 * (shows(0.4),))
    assert stuck.entries[-1].decision.action == "rollback"
    assert kind(stuck) == "consolidate" and recovery(stuck) == pytest.approx(0.75)


def test_consolidation_waits_where_a_leap_would_fail():
    """At levels that are mastered only lost skill is a reason to go back."""
    flat = (shows(0.7), shows(0.69))
    assert after(LEAPT, *flat).entries[-1].decision.action == "rollback"
    here = shows(0.85, "0.85 0 0")
    waiting = after(here, *flat)
    assert waiting.entries[-1].decision.action == "hold"
    assert waiting.decide(shows(0.69)).action == "rollback"  # Two phases, and no more.
    bad = shows(0.69, anchor_error=1.0)
    commits = after(here, replace(here, iterations=1))
    commits.tell(shows(0.7, anchor_error=1.0))
    assert commits.decide(bad).action == "rollback"


def test_leap_after_a_failure_goes_half_as_far_at_most():
    # Scouts see no loss at all up to rung 0.5: it is gate L that the leap fails.
    easy = shows(0.95, "0.95 0.95 0.15")
    curriculum = after(easy)
    tried = [leap_from(curriculum)]
    for _ in range(2):
        for evidence in (shows(0.7, "0.95 0 0"), shows(0.7, "0.95 0 0")):
            curriculum.tell(evidence)
        tried.append(leap_from(curriculum))
    # 0.1 / (1 - 0.75) = 0.4 of the 0.8 from rung 0.5 to 1.
    assert tried == [0.75, 0.375, 0.1875]


def without(**changes: Any) -> Horizon:
    """Return the governor with one of its rules switched off."""
    return Horizon(leap=replace(LEAP, **changes))


def test_recovery_can_be_left_as_it_is_set():
    little = (LEAPT, shows(0.6, "0.65 0 0"), LEAPT)
    curriculum = after(*little, method=without(measure_recovery=False))
    assert recovery(curriculum) == pytest.approx(LEAP.recovery)
    assert leap_from(curriculum) == 0.75 > leap_from(after(*little))


def test_whole_leaps_or_nothing_can_be_asked_for():
    stalled = shows(0.4, within="1 1 1")
    assert after(LEAPT, stalled).decide(stalled).levels == {"mass": 0.375}
    curriculum = after(LEAPT, stalled, method=without(keep=()))
    assert curriculum.decide(stalled).action == "rollback"
    proposal = curriculum.ask()
    assert proposal and not any("within" in name for name in proposal.scouts or {})


def test_leap_after_a_failure_can_go_as_far_again():
    easy = shows(0.95, "0.95 0.95 0.15")
    flat = (shows(0.7, "0.95 0 0"), shows(0.7, "0.95 0 0"))
    curriculum = after(easy, *flat, method=without(retry=1.0, measure_recovery=False))
    assert leap_from(curriculum) == 0.75
    curriculum = after(easy, *flat, method=without(retry=0.25))
    assert leap_from(curriculum) == 0.1875
    proposal = curriculum.ask()
    assert proposal and proposal.reason == "25% of the way to where a leap failed"


def test_shares_that_may_be_kept_fall():
    for keep in ((0.25, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 0.5)):
        with pytest.raises(InputError, match="keep is .*; accepted: falling, between"):
            LeapCfg(keep=keep)


def test_run_ends_when_proposals_in_a_row_gain_nothing():
    """A leap that fails time and again does not go on forever: here, three times."""
    curriculum = after(LEAPT, *3 * (shows(0.4), shows(0.4)))
    assert [e.proposal.kind for e in curriculum.entries[1:]] == ["leap"] * 6
    assert curriculum.ask() is None
    assert curriculum.state.ended == "no leap is left to try"


def test_miss_within_the_error_is_no_failure():
    assert after(LEAPT).decide(shows(0.84)).action == "commit"
    assert after(LEAPT).decide(shows(0.82)).action == "hold"
    strict = Horizon(leap=replace(LEAP, sigmas=0.0))
    assert after(LEAPT, method=strict).decide(shows(0.84)).action == "hold"


def test_collapse_is_rolled_back_at_once():
    decision = after(LEAPT).decide(shows(0.5, aborted=True))
    assert decision.action == "rollback" and not decision.keeps_weights


def test_without_restore_levels_retreat_and_weights_stay():
    method = Horizon(cfg=CurriculumCfg(restore=False), leap=LEAP)
    curriculum = after(LEAPT, shows(0.4), shows(0.4), method=method)
    assert curriculum.entries[-1].decision.action == "retreat"
    assert curriculum.entries[-1].decision.keeps_weights
    assert curriculum.state.mastered == {"mass": 0.0}


def test_nothing_of_a_leap_is_kept_that_has_lost_old_skill():
    forgets: dict[str, Any] = {"checkpoint_error": 0.24}  # More than 0.2 * 1.15.
    curriculum = after(LEAPT, shows(0.4))
    assert curriculum.decide(shows(0.4, within="1 1 1")).action == "commit"
    lost = shows(0.4, within="1 1 1", **forgets)
    assert curriculum.decide(lost).action == "rollback"


@pytest.mark.parametrize("error", [0.6, None])
def test_nothing_of_a_leap_is_kept_where_its_error_fails_gate_l(error):
    curriculum = after(LEAPT, shows(0.4))
    evidence = shows(0.4, within="1 1 1")
    probed = {k: v for k, v in evidence.probed.items() if not k.endswith("_error")}
    if error:
        probed |= {f"within {share:g}_error": error for share in (0.75, 0.5, 0.25)}
    assert curriculum.decide(replace(evidence, probed=probed)).action == "rollback"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"anchor_error": 0.15}, "anchor error 0.15 (at most 0.14)"),
        (
            {"probed": {"checkpoint_error:large": 0.5}},
            "checkpoint error, large bodies 0.5 (at most 0.46)",
        ),
        (
            {"probed": {"anchor_error:large": 0.6}},
            "anchor error, large bodies 0.6 (at most 0.56)",
        ),
    ],
)
def test_gate_c_holds_for_every_size_of_body_and_at_level_zero(changes, words):
    sizes = {"candidate_error:large": 0.4, "anchor_error:large": 0.4}
    first = replace(LEAPT, probed={**LEAPT.probed, **sizes})
    curriculum = after(first)
    assert curriculum.decide(shows(0.95)).verdict.passed
    verdict = curriculum.decide(shows(0.95, **changes)).verdict
    assert verdict.preserved is False and verdict.reason == words
    blind = after(first, method=without(by_size=False)).decide(shows(0.95, **changes))
    assert blind.verdict.passed is ("large" in words)


def test_start_that_was_trained_elsewhere_is_no_reference_for_gate_c():
    confirmed = after(replace(LEAPT, iterations=0))
    forgets = shows(0.95, "0.95 0.55 0.15", checkpoint_error=0.5)
    assert confirmed.tell(forgets).action == "commit"
    assert not confirmed.decide(forgets).verdict.passed


def test_anchor_is_that_of_the_first_commit():
    drifted = shows(0.95, "0.95 0.55 0.15", anchor_error=0.13)
    curriculum = after(LEAPT, drifted)
    assert curriculum.state.mastered == {"mass": 0.5}
    # 0.15 is little above 0.13, but much above 0.1.
    assert not curriculum.decide(shows(0.95, anchor_error=0.15)).verdict.passed


def test_without_scouts_the_governor_trains_on_and_ends():
    """Worlds may keep no scenarios for scouts: then there is no leap."""
    unscouted = replace(GOOD, probed={})
    curriculum = after(unscouted, unscouted, unscouted)
    assert [e.proposal.kind for e in curriculum.entries[1:]] == ["consolidate"] * 2
    assert curriculum.state.ended == "no leap is left to try"
    assert curriculum.state.mastered == {"mass": 0.0}


def test_training_episodes_stand_in_where_the_candidate_is_not_probed():
    """Worlds may keep scenarios for scouts alone; to 0.5, as after `LEAPT`."""
    scouted = {k: v for k, v in LEAPT.probed.items() if "candidate" not in k}
    proposal = after(replace(LEAPT, probed=scouted)).ask()
    assert proposal and (proposal.kind, proposal.levels) == ("leap", {"mass": 0.5})


def test_part_that_was_committed_is_measured_before_the_next_phase():
    curriculum = after(LEAPT, shows(0.4), shows(0.4, within="0 1 1"))
    known = curriculum.state.reference
    assert known and known.distribution == AtLevels({"mass": 0.25})
    assert known.error is None and known.value is None


def test_limit_is_complete_and_trained_on():
    curriculum = after(shows(0.95), shows(0.95))  # Scouts survive everything.
    decision = curriculum.entries[-1].decision
    assert [(e.kind, e.frontier, e.level) for e in decision.events] == [
        ("complete", "mass", 1.0)
    ]
    proposal = curriculum.ask()
    assert proposal and (proposal.kind, proposal.levels) == ("consolidate", {"mass": 1})
    assert proposal.reason == "the limit is reached: train on"
    assert proposal.scouts == {}


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({"length": 0.84, "length_se": 0.011}, True),
        ({"length": 0.84, "length_se": 0.009}, False),
        ({"tracking_error": 0.51, "error_se": 0.011}, True),
        ({"tracking_error": 0.51, "error_se": 0.009}, False),
        ({"tracking_error": 0.51}, False),
    ],
)
def test_a_miss_within_the_standard_error_is_none(changes, passes):
    curriculum = after(LEAPT, replace(shows(0.9), **changes))
    assert curriculum.entries[-1].decision.verdict.feasible is passes


@pytest.mark.parametrize(("length", "leaps"), [(0.89, False), (0.9, True)])
def test_leap_waits_until_training_episodes_last(length, leaps):
    method = Horizon(leap=replace(LEAP, ready=0.9))
    curriculum = after(replace(LEAPT, length=length), method=method)
    assert kind(curriculum) == ("leap" if leaps else "consolidate")
    proposal = curriculum.ask()
    assert proposal and ("less than 90%" in proposal.reason) is not leaps


def kind(curriculum: Curriculum) -> str | None:
    proposal = curriculum.ask()
    return proposal.kind if proposal else None


def test_no_leap_begins_when_the_run_is_nearly_over():
    early = after(replace(LEAPT, progress=0.79))
    late = after(replace(LEAPT, progress=0.8))
    assert [kind(c) for c in (early, late)] == ["leap", "consolidate"]
    # However long that lasts, it is the run's budget that ends it.
    for _ in range(5):
        late.tell(replace(LEAPT, progress=0.9))
    assert kind(late) == "consolidate"


def test_run_without_a_limit_of_env_steps_is_never_nearly_over():
    never = after(LEAPT, method=without(last_leap=0.0))
    assert kind(never) == "leap"


def test_stuck_run_with_env_steps_left_trains_on_and_may_leap_again():
    """It would end before its noise has gone down; and with less noise it can do more."""
    stuck = shows(0.85, "0.85 0 0")  # Gate L is just passed: there is nothing to lose.
    assert after(*3 * (stuck,)).state.ended == "no leap is left to try"
    curriculum = after(*9 * (replace(stuck, progress=0.3),))
    proposal = curriculum.ask()
    assert proposal and proposal.kind == "consolidate"
    assert proposal.reason.startswith("no leap is in sight: ")
    curriculum.tell(replace(LEAPT, progress=0.3))
    assert leap_from(curriculum) > 0.0


def test_scouts_of_earlier_phases_at_the_same_levels_count_too():
    """One draw of few scenarios may be a lucky one."""
    careful = Horizon(leap=replace(LEAP, ready=0.9, smoothing=0.5))
    hasty = Horizon(leap=replace(LEAP, ready=0.9, smoothing=0.0))
    unlucky, lucky = shows(0.89, "0.95 0.15 0"), shows(0.95, "0.95 0.55 0.15")
    # 0.05 / (1 - 0.75) = 0.2 is allowed: of 0.4 up to rung 0.5, or of (0.8 + 0.4) / 2.
    assert leap_from(after(unlucky, lucky, method=hasty)) == 0.25
    assert leap_from(after(unlucky, lucky, method=careful)) == pytest.approx(0.1667)
    # Scouts of other levels are no help.
    leapt = after(lucky, lucky, method=careful)
    assert leap_from(leapt) == pytest.approx(0.25 + 0.75 * 0.25)


def test_leap_goes_no_further_than_the_tracking_error_allows():
    errors = {"beyond 0": 0.3, "beyond 0.5": 0.5, "beyond 1": 0.9}
    probed = LEAPT.probed | {f"{name}_error": value for name, value in errors.items()}
    blurred = replace(LEAPT, probed=probed, tracking_error=0.42)
    # 0.08 are left up to 0.5 in training, and rung 0.5 costs 0.2: 0.4 of that rung.
    assert leap_from(after(blurred)) == pytest.approx(0.2)
    by_survival = Horizon(leap=replace(LEAP, weigh_error=False))
    assert leap_from(after(blurred, method=by_survival)) == 0.5
    # What scouts survive there is what the phase will be measured by.
    expected = after(blurred).state
    assert isinstance(expected, GovernorState) and expected.expected is not None
    assert expected.expected == pytest.approx(0.95 - 0.4 * 0.4)
    # Where nothing is left, the mastered levels are trained on.
    assert kind(after(replace(blurred, tracking_error=0.5))) == "consolidate"


def test_policy_that_masters_the_baseline_is_not_taught_it():
    method = Horizon(early=EarlyCfg(looks=(0.5,)), leap=LEAP)
    state = method.start(["mass"])
    assert method.looks(state) == (0.0, 0.5, 1.0)
    nothing = Episodes(*3 * (np.zeros(0),))
    assert method.look(state, nothing, 0, 10) == "judge"
    assert method.look(state, nothing, 1, 10) == "go on"
    state, _ = method.step(state, LEAPT)
    assert method.looks(state) == (0.5, 1.0)
