"""The paper's rule, told by worked examples. Read from the top.

Every line of a trace is one phase: its kind, the frontier and level on trial, what
the phase shows (P passes both gates, F fails), and what is decided. `check` runs the
curriculum and compares each line with it.
"""

import pytest
from evidence import FALLS, FORGETS, GOOD

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Method,
    Paper,
    choose_method,
)
from horizon_rl.support.errors import InputError

EVIDENCE = {"P": GOOD, "F": FALLS}


def check(groups: str, trace: str, method: Method | None = None) -> Curriculum:
    curriculum = Curriculum(groups.split(), method or Paper())
    for line in trace.strip().splitlines():
        kind, name, level, shows, action, *events = line.split("#")[0].split()
        proposal = curriculum.ask()
        assert proposal is not None, f"ended before: {line}"
        on_trial = (proposal.kind, proposal.frontier or "-", proposal.candidate)
        assert on_trial == (kind, name, pytest.approx(float(level))), line
        decision = curriculum.tell(EVIDENCE[shows])
        assert decision.action == action, line
        happened = [f"{event.kind}:{event.frontier}" for event in decision.events]
        assert happened == events, line
    return curriculum


def test_pass_chain_to_the_limit():
    """Nothing ever fails: the level grows by half, and by 0.05 at least."""
    curriculum = check(
        "mass",
        """
        baseline  -     0         F  hold                    # not walking yet
        baseline  -     0         P  commit   unlock:mass    # first checkpoint
        coarse    mass  0.05      P  commit                  # 0    + 0.05
        coarse    mass  0.10      P  commit                  # 0.05 + 0.05
        coarse    mass  0.15      P  commit                  # 0.10 * 1.5
        coarse    mass  0.225     P  commit
        coarse    mass  0.3375    P  commit
        coarse    mass  0.50625   P  commit
        coarse    mass  0.759375  P  commit
        coarse    mass  1         P  commit   complete:mass  # at most the limit
        """,
    )
    assert curriculum.ask() is None
    assert curriculum.state.ended == "no frontier is left to try"
    assert curriculum.state.mastered == {"mass": 1.0}


def test_fail_then_recovery_then_commit_then_retry():
    """A failure is approached again from closer in, and then tried itself."""
    curriculum = check(
        "mass com",
        """
        baseline  -     0      P  commit    unlock:mass
        coarse    mass  0.05   F  rollback  unlock:com   # bracket 0..0.05
        coarse    com   0.05   P  commit                 # never the one that failed
        recovery  mass  0.02   P  commit                 # 0 + 0.4 * 0.05; 0.05 waits
        coarse    com   0.10   P  commit                 # 1st commit elsewhere
        coarse    com   0.15   P  commit                 # 2nd
        coarse    com   0.225  P  commit    reopen:mass  # 3rd: the policy has changed
        retry     mass  0.05   P  commit                 # now it passes
        coarse    com   0.3375 P  commit                 # least recently tried
        coarse    mass  0.10   P  commit                 # reaching outward again
        """,
    )
    mass, com = curriculum.state.frontiers
    assert (mass.status, mass.mastered, mass.failed) == ("coarse", 0.10, None)
    assert mass.reopenings == 1
    assert com.mastered == 0.3375


def test_fail_to_the_last_rung_then_boundary_then_reopened_by_commits_elsewhere():
    """Three recovery proposals fail: a local boundary. It is not the last word."""
    curriculum = check(
        "mass com",
        """
        baseline  -     0       P  commit    unlock:mass
        coarse    mass  0.1     P  commit    unlock:com
        coarse    com   0.1     P  commit
        coarse    mass  0.2     P  commit
        coarse    com   0.2     P  commit
        coarse    mass  0.3     F  rollback                 # 0.2..0.3,    rung 0
        coarse    com   0.3     P  commit
        recovery  mass  0.24    F  rollback                 # 0.2..0.24,   rung 1
        coarse    com   0.4     P  commit
        recovery  mass  0.216   F  rollback                 # 0.2..0.216,  rung 2
        coarse    com   0.5     P  commit
        recovery  mass  0.2064  F  rollback  boundary:mass  # 0.2..0.2064, rung 3
        coarse    com   0.6     P  commit                   # 1st commit elsewhere
        coarse    com   0.7     P  commit                   # 2nd
        coarse    com   0.8     P  commit    reopen:mass    # 3rd
        retry     mass  0.2064  P  commit                   # the boundary has moved
        coarse    com   0.9     P  commit
        coarse    mass  0.3064  P  commit                   # reaching outward again
        """,
        Paper(cfg=CurriculumCfg(grow=1.0, min_step=0.1)),
    )
    mass = curriculum.state.frontiers[0]
    assert (mass.status, mass.rung, mass.failed) == ("coarse", 0, None)


def test_what_waits_is_due_at_once_where_no_other_group_is_open():
    cfg = Paper(cfg=CurriculumCfg(max_rungs=1))
    check(
        "mass com",
        """
        baseline  -     0      P  commit    unlock:mass
        coarse    mass  0.05   F  rollback  unlock:com
        coarse    com   0.05   P  commit
        recovery  mass  0.02   F  rollback  boundary:mass
        coarse    com   0.10   P  commit                  # 1
        coarse    com   0.15   P  commit                  # 2
        coarse    com   0.225  P  commit    reopen:mass   # 3
        retry     mass  0.02   F  rollback                # 0..0.02, rung 0 again
        coarse    com   0.3375 P  commit
        recovery  mass  0.008  P  commit                  # 0.02 waits again
        coarse    com   0.50625  P  commit                # 1
        coarse    com   0.759375 F  rollback              # failures do not count
        recovery  com   0.6075   P  commit  reopen:mass   # none is open: due at once
        """,
        cfg,
    )


def test_run_of_one_group_retries_at_once_and_ends_after_five_reopenings():
    curriculum = check(
        "mass",
        """
        baseline  -     0        P  commit    unlock:mass
        coarse    mass  0.05     F  rollback
        recovery  mass  0.02     P  commit    reopen:mass
        retry     mass  0.05     F  rollback                              # 1
        recovery  mass  0.032    P  commit    reopen:mass
        retry     mass  0.05     F  rollback                              # 2
        recovery  mass  0.0392   P  commit    reopen:mass
        retry     mass  0.05     F  rollback                              # 3
        recovery  mass  0.04352  P  commit    boundary:mass reopen:mass   # narrow
        retry     mass  0.05     F  rollback  boundary:mass reopen:mass   # 4
        retry     mass  0.05     F  rollback  boundary:mass               # 5, the last
        """,
    )
    assert curriculum.ask() is None
    assert curriculum.state.mastered["mass"] == pytest.approx(0.04352)


def test_due_retry_comes_before_a_group_that_waited_longer():
    check(
        "mass com inertia",
        """
        baseline  -        0      P  commit    unlock:mass
        coarse    mass     0.05   F  rollback  unlock:com
        coarse    com      0.05   P  commit    unlock:inertia
        coarse    inertia  0.05   P  commit
        recovery  mass     0.02   P  commit                 # 0.05 waits from here
        coarse    com      0.10   P  commit                 # 1
        coarse    inertia  0.10   P  commit                 # 2
        coarse    com      0.15   P  commit    reopen:mass  # 3
        retry     mass     0.05   P  commit                 # not inertia, tried before
        coarse    inertia  0.15   P  commit
        """,
    )


@pytest.mark.parametrize(("gain", "reopened"), [(0.02, True), (0.1, False)])
def test_small_gains_elsewhere_do_not_count(gain, reopened):
    cfg = Paper(cfg=CurriculumCfg(reopen_gain=gain, reopen_after=1))
    curriculum = check(
        "mass com",
        """
        baseline  -     0      P  commit    unlock:mass
        coarse    mass  0.05   F  rollback  unlock:com
        coarse    com   0.05   P  commit
        recovery  mass  0.02   P  commit
        """,
        cfg,
    )
    decision = curriculum.tell(GOOD)  # com 0.05 -> 0.10: a gain of 0.05.
    assert ("reopen" in [event.kind for event in decision.events]) == reopened


def test_failures_elsewhere_never_count_as_commits():
    cfg = Paper(cfg=CurriculumCfg(reopen_gain=0.0, reopen_after=1))
    check(
        "mass com",
        """
        baseline  -     0      P  commit    unlock:mass
        coarse    mass  0.05   F  rollback  unlock:com
        coarse    com   0.05   P  commit
        recovery  mass  0.02   P  commit                  # 0.05 waits
        coarse    com   0.10   F  rollback                # no commit: mass waits on
        recovery  com   0.07   F  rollback
        """,
        cfg,
    )


def test_joint_mode_advances_all_groups_as_one_frontier():
    curriculum = check(
        "mass com",
        """
        baseline  -      0     P  commit    unlock:joint
        coarse    joint  0.05  P  commit
        coarse    joint  0.10  F  rollback
        recovery  joint  0.07  P  commit    reopen:joint
        """,
        choose_method("joint", CurriculumCfg()),
    )
    assert curriculum.state.mastered == pytest.approx({"mass": 0.07, "com": 0.07})
    proposal = curriculum.ask()
    assert proposal and proposal.levels == pytest.approx({"mass": 0.10, "com": 0.10})


def test_without_rollback_a_failed_candidate_counts_as_mastered():
    curriculum = check(
        "mass",
        """
        baseline  -     0     P  commit  unlock:mass
        coarse    mass  0.05  F  commit
        coarse    mass  0.10  F  commit
        """,
        choose_method("no-rollback", CurriculumCfg()),
    )
    assert not curriculum.entries[-1].decision.verdict.passed
    assert "rollback is off" in curriculum.entries[-1].decision.reason


@pytest.mark.parametrize(
    ("method", "levels"),
    [("wide", [1, 1, 1]), ("base", [0, 0, 0]), ("linear", [0, 0.25, 0.5])],
)
def test_clock_sets_all_levels_whatever_the_evidence(method, levels):
    cfg = choose_method(method, CurriculumCfg(max_phases=3), clock_phases=4)
    curriculum = Curriculum(["mass", "com"], cfg)
    seen = []
    while proposal := curriculum.ask():
        assert set(proposal.levels) == {"mass", "com"}
        seen += set(proposal.levels.values())
        assert curriculum.tell(FALLS).action == "commit"
    assert seen == levels
    assert curriculum.state.ended == "budget of 3 phases spent"


def test_clock_stops_at_the_limit():
    cfg = choose_method("linear", CurriculumCfg(max_phases=9), clock_phases=3)
    curriculum = Curriculum(["mass"], cfg)
    levels = []
    while proposal := curriculum.ask():
        levels.append(proposal.candidate)
        curriculum.tell(GOOD)
    assert max(levels) == 1.0 and levels[-1] == 1.0


def test_feasibility_only_forgives_what_the_checkpoint_would_not():
    strict = Curriculum(["mass"], Paper())
    lenient = Curriculum(["mass"], choose_method("feasibility-only", CurriculumCfg()))
    for curriculum, action in ((strict, "rollback"), (lenient, "commit")):
        curriculum.tell(GOOD)
        assert curriculum.tell(FORGETS).action == action


def test_gate_c_is_not_judged_before_the_first_checkpoint():
    curriculum = Curriculum(["mass"], Paper())
    assert curriculum.tell(FORGETS).action == "commit"


def test_env_step_budget_ends_the_run_and_counts_rolled_back_phases():
    curriculum = Curriculum(["mass"], Paper(cfg=CurriculumCfg(max_env_steps=2500)))
    for evidence in (GOOD, FALLS, FALLS):  # 1000 steps each.
        curriculum.tell(evidence)
    assert curriculum.ask() is None
    assert curriculum.state.ended == "budget of 2500 env steps spent"
    exact = Curriculum(["mass"], Paper(cfg=CurriculumCfg(max_env_steps=1000)))
    exact.tell(GOOD)
    assert exact.ask() is None


def test_focused_mode_leaves_the_other_groups_at_their_mastered_level():
    curriculum = check(
        "mass com",
        """
        baseline  -     0     P  commit  unlock:mass
        coarse    mass  0.05  P  commit  unlock:com
        """,
    )
    proposal = curriculum.ask()
    assert proposal is not None
    assert proposal.levels == {"mass": 0.05, "com": 0.05}
    assert proposal.mastered == {"mass": 0.05, "com": 0.0}


def test_outlook_is_what_a_pass_and_a_failure_would_lead_to():
    curriculum = Curriculum(["mass", "com"], Paper())
    after_pass, after_failure = curriculum.outlook()
    assert (after_pass.kind, after_pass.levels) == ("coarse", {"mass": 0.05, "com": 0})
    assert (after_failure.kind, after_failure.phase) == ("baseline", 1)
    curriculum.tell(GOOD)
    after_pass, after_failure = curriculum.outlook()
    assert after_pass.levels == {"mass": 0.05, "com": 0.05}
    assert after_failure.levels == {"mass": 0.0, "com": 0.05}
    assert curriculum.state.phase == 1, "looking ahead decides nothing"


def test_outlook_has_nothing_after_the_end():
    curriculum = Curriculum(["mass"], Paper(cfg=CurriculumCfg(max_phases=1)))
    assert curriculum.ask() and curriculum.outlook() == ()
    curriculum.tell(GOOD)
    assert curriculum.outlook() == ()


def test_clock_may_have_no_group_to_move():
    cfg = choose_method("base", CurriculumCfg(max_phases=2))
    curriculum = Curriculum([], cfg)
    while proposal := curriculum.ask():
        assert proposal.levels == proposal.mastered == {}
        assert curriculum.tell(GOOD).action == "commit"
    assert curriculum.state.phase == 2
    assert curriculum.state.difficulty == 0.0


@pytest.mark.parametrize("method", ["horizon", "joint", "no-rollback"])
def test_evidence_cannot_move_what_is_not_there(method):
    with pytest.raises(InputError, match="name each once, at least one"):
        Curriculum([], choose_method(method, CurriculumCfg()))
