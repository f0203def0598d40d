"""ADR: buffers per bound, worked by hand, and what holds whatever the evidence."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path
from time import thread_time
from typing import cast

import numpy as np
import pytest
from evidence import GOOD
from hypothesis import given, settings
from hypothesis import strategies as st

from horizon_rl.curriculum import (
    Adr,
    AdrCfg,
    Curriculum,
    CurriculumCfg,
    Episodes,
    Evidence,
    Outcomes,
    Plan,
    choose_method,
)
from horizon_rl.curriculum.evidence import outcomes_of
from horizon_rl.curriculum.method import describe, make_method, name_of, settings_of
from horizon_rl.curriculum.methods.adr import AdrProposal, AdrState, Buffer
from horizon_rl.domains import AtBounds, paper_catalogue, parse_catalogue
from horizon_rl.rehearsal import SyntheticCfg, SyntheticPolicy
from horizon_rl.rehearsal.worlds import SyntheticWorlds
from horizon_rl.runs.journal import create_curriculum, replay, resume_curriculum
from horizon_rl.support.errors import InputError

PAPER = paper_catalogue()
GROUPS = ("mass", "com")
NONE, MASS, COM = (0.0,), (1.0,), (2.0,)
"""Mark of an episode inside the ranges, at the bound of mass, at that of com."""


def adr(
    groups: Sequence[str] = GROUPS, phases=0, a_phase=0, catalogue=PAPER, **changes
):
    plan = Plan.of(catalogue, groups, phases, a_phase)
    return Adr(adr=AdrCfg(**changes), plan=plan)


def evidence(*episodes) -> Evidence:
    """Return a phase of episodes: mark, length, and perhaps the error."""
    return replace(
        GOOD,
        outcomes=Outcomes(
            row=tuple(range(len(episodes))),
            length=tuple(each[1] for each in episodes),
            tracking_error=tuple((*each, 0.2)[2] for each in episodes),
            values=tuple(each[0] for each in episodes),
        ),
    )


def bounds(curriculum: Curriculum) -> dict[str, float]:
    return cast(AdrProposal, curriculum.ask()).bounds


def buffers(curriculum: Curriculum) -> dict[str, Buffer]:
    return cast(AdrState, curriculum.state).buffers


def test_a_trace_by_hand():
    curriculum = Curriculum(GROUPS, adr(episodes=4, step=0.1))
    assert bounds(curriculum) == {"mass": 0.0, "com": 0.0}
    # Mass: 3 of 4. Com: (1 + 1 + 0.9 + 0.9) / 4 = 0.95, above 0.85.
    inside = [(NONE, 0.1)] * 5
    com = [(COM, 1.0), (COM, 1.0), (COM, 0.9), (COM, 0.9)]
    decision = curriculum.tell(evidence(*inside, *[(MASS, 1.0)] * 3, *com))
    assert bounds(curriculum) == {"mass": 0.0, "com": 0.1}
    assert buffers(curriculum) == {
        "mass": Buffer(episodes=3, length=3.0, error=0.2 + 0.2 + 0.2),
        "com": Buffer(),
    }
    assert decision.action == "commit" and "widened com 0.1" in decision.reason
    # Mass: (3 + 2 x 0.2) / 5 = 0.68, between 0.425 and 0.85. Com: 0.4, below 0.425.
    curriculum.tell(evidence(*[(MASS, 0.2)] * 2, *[(COM, 0.4)] * 4))
    assert bounds(curriculum) == {"mass": 0.0, "com": 0.0}
    assert set(buffers(curriculum).values()) == {Buffer()}, "cleared either way"
    # Com is at the baseline: no further. Mass lasts, but strays.
    curriculum.tell(evidence(*[(MASS, 1.0, 0.6)] * 4, *[(COM, 0.0)] * 4))
    assert bounds(curriculum) == {"mass": 0.0, "com": 0.0}
    # Exactly at the threshold, twice as many episodes: one step.
    curriculum.tell(evidence(*[(MASS, 0.85, 0.5)] * 8))
    assert bounds(curriculum) == {"mass": 0.1, "com": 0.0}
    assert curriculum.state.mastered == {"mass": 0.0, "com": 0.0}, "as trained so far"


def test_bounds_stop_at_the_limit_and_say_so():
    curriculum = Curriculum(GROUPS, adr(episodes=1, step=0.4))
    levels, events = [], []
    for _ in range(5):
        decision = curriculum.tell(evidence((MASS, 1.0)))
        levels.append(bounds(curriculum)["mass"])
        events += decision.events
    assert levels == [0.4, 0.8, 1.0, 1.0, 1.0]
    assert [(e.kind, e.frontier, e.level) for e in events] == [
        ("complete", "mass", 1.0)
    ]


def test_episodes_that_began_together_count_together():
    """They lie in the order of their ends, falls first: taking some would narrow."""
    curriculum = Curriculum(GROUPS, adr(episodes=4, step=0.1))
    falls, lasting = [(MASS, 0.1)] * 4, [(MASS, 1.0)] * 36
    curriculum.tell(evidence(*falls, *lasting))
    assert bounds(curriculum)["mass"] == 0.1


def test_ends_of_a_parameter_that_can_move_do_so_on_their_own():
    method = adr(["mass", "contact"], unit="parameter", episodes=2, step=0.1)
    names = [*method.bounds]
    assert names[:2] == ["mass.scale.low", "mass.scale.high"]
    # Restitution is never below 0: one end. Mass, and friction twice, have two.
    assert len(names) == 7 and "contact.restitution.low" not in names
    curriculum = Curriculum(["mass", "contact"], method)
    low, high, third = (1.0,), (2.0,), (3.0,)
    curriculum.tell(evidence(*[(high, 1.0)] * 2, (low, 1.0), *[(third, 1.0)] * 2))
    moved = {name: level for name, level in bounds(curriculum).items() if level}
    assert moved == {"mass.scale.high": 0.1, names[2]: 0.1}
    proposal = curriculum.ask()
    assert proposal and proposal.levels["mass"] == 0.05, "the mean of both ends"
    assert proposal.distribution == AtBounds(bounds(curriculum), 0.4)


def test_reason_names_the_bounds_that_moved():
    groups = ["mass", "com"]
    method = adr(groups, unit="parameter", episodes=1, step=0.2)
    curriculum = Curriculum(groups, method)
    assert len(method.bounds) == 4
    ends = dict(zip(method.bounds, [(1.0,), (2.0,), (3.0,), (4.0,)], strict=True))
    com = [(ends["com.offset.low"], 1.0), (ends["com.offset.high"], 1.0)]
    low = [(ends["mass.scale.low"], 1.0)]
    for phase, words in (
        # A group whose bounds are all at one level is named once.
        (com, "2 of 4 bounds tested, widened com 0.2"),
        (low, "1 of 4 bounds tested, widened mass.scale.low 0.2"),
        (
            [*low, com[0], (ends["com.offset.high"], 0.0)],
            "3 of 4 bounds tested, widened mass.scale.low 0.4, com.offset.low 0.4, "
            "narrowed com.offset.high 0",
        ),
    ):
        decision = curriculum.tell(evidence(*phase))
        assert f"; {words}. Gates" in decision.reason


def test_phase_without_episodes_moves_nothing():
    curriculum = Curriculum(GROUPS, adr(episodes=1, step=0.1))
    for nothing in (GOOD, evidence()):
        decision = curriculum.tell(nothing)
        assert set(bounds(curriculum).values()) == {0.0}
        assert "no buffer is full" in decision.reason


def test_episodes_without_their_bound_are_refused():
    told = evidence((MASS, 1.0), (COM, 1.0))
    assert told.outcomes
    for values in ((), ((1.0, 0.0), (0.0, 1.0))):
        wrong = replace(told, outcomes=replace(told.outcomes, values=values))
        with pytest.raises(InputError, match="the bound of every episode"):
            Curriculum(GROUPS, adr()).tell(wrong)


def test_decision_costs_little_more_than_to_read_the_episodes():
    """Seven groups, 4000 episodes: 0.5 ms where sorting their lengths takes 0.2.

    Compared with work of the same kind in turn: a busy machine slows both.
    """
    groups, rng = PAPER.names, np.random.default_rng(0)
    method = adr(groups, episodes=128, step=0.1)
    marks, lengths = rng.integers(0, 8, 4000), rng.random(4000).tolist()
    pairs = zip(marks.tolist(), lengths, strict=True)
    told = evidence(*(((float(mark),), length) for mark, length in pairs))
    state, times, sorting = method.start(groups), [], []
    for _ in range(20):
        began = thread_time()
        _, decision = method.step(state, told)
        decided = thread_time()
        sorted(lengths)
        times.append(decided - began)
        sorting.append(thread_time() - decided)
        assert "7 of 7 bounds tested" in decision.reason
    assert min(times) < 6.0 * min(sorting)


def test_no_success_at_all_stays_at_the_baseline():
    curriculum = Curriculum(GROUPS, adr(episodes=1, step=0.1, narrow=1.0))
    curriculum.tell(evidence(*[(MASS, 0.0)] * 9, *[(COM, 0.0)] * 9))
    assert set(bounds(curriculum).values()) == {0.0}


@pytest.mark.parametrize(
    ("groups", "unit", "updates", "step"),
    [
        # 60 M steps: 40 phases of 1.5 M. Bounds get 0.4 x 1500 / n episodes a phase:
        # core 150, at once enough for 128; full 85.7, every second phase.
        ("core", "group", 40, 0.0417),
        ("full", "group", 20, 0.0833),
        # Of 9 parameters 18 ends: 33.3 a phase, more than 20.
        ("core", "parameter", 40, 0.0417),
    ],
)
def test_step_follows_from_the_updates_that_the_budget_allows(
    groups, unit, updates, step
):
    method = adr(PAPER.select(groups), phases=40, a_phase=1500, unit=unit)
    assert (method.updates, method.step_size) == (updates, step)
    assert step == pytest.approx(1.0 / (0.6 * updates), abs=1e-4)
    said = describe(method)
    assert f"allows {updates} updates of each" in said and f"step {step:g}" in said


@pytest.mark.parametrize(
    ("phases", "said"), [(1, "1 update of each"), (3, "3 updates of each")]
)
def test_updates_are_counted_in_words(phases, said):
    assert f"(the budget allows {said})" in describe(adr(phases=phases, a_phase=1000))


def test_without_a_budget_the_step_is_the_default():
    assert adr().step_size == 0.05 and "no budget of env steps" in describe(adr())
    assert adr(step=0.2).step_size == 0.2


def test_budget_too_small_for_one_update_is_refused():
    with pytest.raises(
        InputError, match="before one buffer of ADR is full.*a larger budget"
    ):
        adr(phases=3, a_phase=100).start(GROUPS)
    with pytest.raises(InputError, match="about 1 phase of 100 episodes"):
        adr(phases=1, a_phase=100).start(GROUPS)
    # Of phases alone, too: 20 episodes at a bound in each, and 128 are needed.
    short = CurriculumCfg(max_phases=6)
    with pytest.raises(InputError, match="about 6 phases of 100 episodes"):
        replace(adr(a_phase=100), cfg=short).start(GROUPS)
    replace(adr(a_phase=100), cfg=replace(short, max_phases=7)).start(GROUPS)


def test_groups_of_another_plan_and_constants_are_refused():
    with pytest.raises(
        InputError, match="groups are mass, but the method's plan has none"
    ):
        Adr().start(["mass"])
    constant = parse_catalogue("""
    [groups.load.parameters.payload]
    baseline = [1.0, 1.0]
    limit = [1.0, 1.0]
    """)
    with pytest.raises(InputError, match="nothing to widen in load"):
        adr(["load"], catalogue=constant).start(["load"])


@pytest.mark.parametrize(
    "wrong", [{"boundary": 0.0}, {"step": 1.5}, {"episodes": -1}, {"narrow": 2.0}]
)
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}.*accepted"):
        AdrCfg(**wrong)


def test_nats_are_on_record():
    curriculum = Curriculum(GROUPS, adr(episodes=1, step=0.5))
    curriculum.tell(evidence((MASS, 1.0)))
    proposal = cast(AdrProposal, curriculum.ask())
    # Mass 0.65..3.05 of 0.4..5; com -0.003..0.003 of -0.3..0.3, which is 1 %.
    expected = (log(2.4 / 4.6) + log(0.01)) / 2
    assert proposal.nats == pytest.approx(expected, abs=1e-4)
    decision = curriculum.tell(evidence((NONE, 1.0)))
    assert f"{proposal.nats:.3g} nats per dimension" in decision.reason
    # External torque has no width at level 0: no infinity.
    start = adr(["disturbance"]).start(["disturbance"])
    assert -5.0 < cast(AdrProposal, start.proposal).nats < 0.0


def test_what_no_level_widens_has_no_nats():
    """As `Plan.groups` has it: of a choice, say, baseline and limit are the same."""
    ranges = """
    [groups.damage.parameters.{}]
    baseline = [{}, 1.0]
    limit = [0.0, 1.0]
    """
    leg, choice = ranges.format("leg", 0.8), ranges.format("choice", 0.0)
    alone, both = (
        cast(AdrProposal, adr(["damage"], catalogue=c).start(["damage"]).proposal).nats
        for c in (parse_catalogue(leg), parse_catalogue(leg + choice))
    )
    assert alone == both == pytest.approx(log(0.2), abs=1e-4)


def test_name_and_settings_give_the_method_again():
    method = adr(unit="parameter", phases=40, a_phase=1500, step=0.1)
    plain = json.loads(json.dumps(settings_of(method)))
    assert make_method(name_of(method), method.cfg, plain) == method
    plan, cfg = Plan.of(PAPER, GROUPS, 9, 9), CurriculumCfg()
    assert choose_method("adr", cfg, plan=plan) == Adr(plan=plan)


MARKS = st.sampled_from([NONE, MASS, COM])
PHASES = st.lists(
    st.lists(st.tuples(MARKS, st.floats(0.0, 1.0), st.floats(0.0, 1.0)), max_size=8),
    min_size=1,
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(PHASES, st.integers(1, 6), st.floats(0.01, 1.0))
def test_whatever_the_evidence(phases, size, step):
    method = adr(episodes=size, step=step)
    first, second = Curriculum(GROUPS, method), Curriculum(GROUPS, method)
    for phase in phases:
        before, told = bounds(first), evidence(*phase)
        assert first.tell(told) == second.tell(told), "same evidence, same decision"
        for bound, level in bounds(first).items():
            assert 0.0 <= level <= 1.0
            assert abs(level - before[bound]) <= step + 1e-6
            held = buffers(first)[bound]
            assert held.episodes < size, "a full buffer is cleared"
            assert level == before[bound] or held == Buffer()
    assert first.state == second.state


@settings(max_examples=20, deadline=None)
@given(PHASES)
def test_journal_replays_and_resumes(phases):
    method = adr(episodes=3, step=0.2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        curriculum = create_curriculum(path, GROUPS, method)
        for phase in phases:
            curriculum.tell(evidence(*phase))
        curriculum.close()
        assert replay(path).state == curriculum.state
        resumed = resume_curriculum(path)
        assert resumed.method == method and resumed.state == curriculum.state
        resumed.close()


def test_it_narrows_again_when_the_learner_gets_worse():
    groups, longest = ("mass",), 1000
    worlds = SyntheticWorlds(SyntheticCfg(probe_env_steps=longest), seed=0)
    curriculum = Curriculum(groups, adr(groups, episodes=64, step=0.1))
    levels = []
    for phase in range(30):
        proposal = curriculum.ask()
        assert proposal is not None
        levels.append(proposal.levels["mass"])
        skill = 0.8 if phase < 15 else 0.3
        worlds.begin(phase, proposal.distribution)
        worlds.step(SyntheticPolicy(skill={"mass": skill}, ceiling={"mass": 1.0}))
        found: Episodes = worlds.episodes(("bound",))
        told = outcomes_of(found, max_length=longest)
        curriculum.tell(replace(GOOD, outcomes=told))
    assert max(levels[:16]) == levels[15] == pytest.approx(0.8, abs=0.11)
    assert levels[-1] == pytest.approx(0.35, abs=0.11)
    assert any(after < before for before, after in pairwise(levels))


@pytest.mark.parametrize("mark", [-1.0, 0.5, 3.0])
def test_marks_of_no_bound_are_refused(mark):
    curriculum = Curriculum(GROUPS, adr(episodes=1, step=0.1))
    with pytest.raises(InputError, match=r"accepted: 1\.\.2, for mass, com, and 0"):
        curriculum.tell(evidence((MASS, 1.0), ((mark,), 1.0)))
    assert not curriculum.entries
