"""Scalar ADR: counts by hand, and one level for all groups."""

from dataclasses import replace
from typing import cast

import pytest
from evidence import GOOD
from hypothesis import given
from hypothesis import strategies as st

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    GateCfg,
    Outcomes,
    Plan,
    ScalarAdr,
)
from horizon_rl.curriculum.methods.scalar_adr import ScalarState, count
from horizon_rl.support.errors import InputError

GROUPS = ("mass", "com")
GATES = GateCfg()


def outcomes(*episodes) -> Outcomes:
    """Return episodes: world, length, and perhaps the error."""
    return Outcomes(
        row=tuple(range(len(episodes))),
        length=tuple(each[1] for each in episodes),
        tracking_error=tuple((*each, 0.2)[2] for each in episodes),
        values=((),) * len(episodes),
        world=tuple(each[0] for each in episodes),
    )


def tell(curriculum: Curriculum, *episodes) -> float:
    """Return the level that follows; all groups have it."""
    curriculum.tell(replace(GOOD, outcomes=outcomes(*episodes)))
    proposal = curriculum.ask()
    assert proposal is not None
    assert proposal.levels == dict.fromkeys(GROUPS, proposal.candidate)
    return proposal.candidate


def test_counts_by_hand():
    # World 0: a success, a failure, a success. World 1 falls at 0: it stays there.
    # World 2 lasts, but strays. World 3 does not tell. World 4 is at the thresholds.
    told = outcomes(
        *((0, 1.0), (1, 0.2), (2, 1.0, 0.51), (4, 0.85, 0.5)),
        *((0, 0.84), (1, 1.0), (0, 1.0)),
    )
    assert count((0, 0, 5), told, GATES) == (1, 1, 4, 0, 1)
    assert count((10,), outcomes((0, 1.0), (0, 0.0), (0, 1.0)), GATES) == (10,)


def test_level_is_the_mean_and_does_not_change_below_a_tenth():
    curriculum = Curriculum(GROUPS, ScalarAdr())
    # Two worlds: one success, mean 0.5 / 10 = 0.05: below 0.1, so nothing changes.
    assert tell(curriculum, (0, 1.0), (1, 0.0)) == 0.0
    assert tell(curriculum, (0, 1.0), (1, 1.0)) == 0.15
    assert tell(curriculum, (0, 1.0), (1, 0.0)) == 0.15
    assert tell(curriculum, (0, 0.0), (1, 1.0)) == 0.15
    assert tell(curriculum, (0, 0.0), (1, 1.0), (1, 1.0)) == 0.2
    # 1 and 0: no change again, not back to 0.
    assert tell(curriculum, *[(1, 0.0)] * 9) == 0.2
    assert cast(ScalarState, curriculum.state).difficulties == (1, 0)
    assert curriculum.state.mastered == dict.fromkeys(GROUPS, 0.2)


def test_it_arrives_at_the_limit_and_comes_back():
    curriculum = Curriculum(GROUPS, ScalarAdr())
    assert tell(curriculum, *[(0, 1.0)] * 12) == 1.0
    assert tell(curriculum, (0, 0.0)) == 0.9
    assert [e.kind for e in curriculum.entries[-1].decision.events] == ["complete"] * 2


def test_nothing_told_changes_nothing():
    curriculum = Curriculum(GROUPS, ScalarAdr())
    assert tell(curriculum) == 0.0
    curriculum.tell(GOOD)
    assert cast(ScalarState, curriculum.state).difficulties == ()


def test_worlds_must_be_known():
    with pytest.raises(InputError, match="the world of every episode"):
        count((), replace(outcomes((0, 1.0)), world=()), GATES)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 1.0)), max_size=20),
        max_size=8,
    )
)
def test_whatever_the_evidence(phases):
    first, second = (Curriculum(GROUPS, ScalarAdr()) for _ in range(2))
    for phase in phases:
        level = tell(first, *phase)
        assert level == tell(second, *phase) and 0.0 <= level <= 1.0
        told = cast(ScalarState, first.state).difficulties
        assert all(0 <= each <= 10 for each in told)
    assert first.state == second.state


@pytest.mark.parametrize(
    "method",
    [ScalarAdr(plan=Plan(phases=1)), ScalarAdr(cfg=CurriculumCfg(max_phases=1))],
)
def test_a_budget_of_one_phase_is_refused(method):
    with pytest.raises(
        InputError, match="it allows 1 phase. Accepted: a larger budget"
    ):
        method.start(GROUPS)
