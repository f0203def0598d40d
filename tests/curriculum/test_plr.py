"""PLR: its replay distribution by the formula, a trace by hand, and what always holds."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from evidence import GOOD
from hypothesis import given, settings
from hypothesis import strategies as st

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Evidence,
    Outcomes,
    Plan,
    Plr,
    PlrCfg,
    choose_method,
)
from horizon_rl.curriculum.method import describe, make_method, name_of, settings_of
from horizon_rl.curriculum.methods.plr import (
    PlrProposal,
    PlrState,
    read_scores,
    replay_weights,
)
from horizon_rl.domains import FromSeeds, paper_catalogue, parse_catalogue
from horizon_rl.runs.journal import create_curriculum, replay, resume_curriculum
from horizon_rl.support.errors import InputError

GROUPS = ("mass", "com")
PAPER = paper_catalogue()


def plr(phases=0, a_phase=0, catalogue=PAPER, groups=GROUPS, **changes: Any) -> Plr:
    plan = Plan.of(catalogue, groups, phases, a_phase)
    return Plr(plr=PlrCfg(**changes), plan=plan)


def evidence(*episodes: tuple[int, float]) -> Evidence:
    """Return a phase of episodes: seed and score of each."""
    n = len(episodes)
    outcomes = Outcomes(
        row=tuple(range(n)),
        length=(1.0,) * n,
        tracking_error=(0.2,) * n,
        values=tuple((float(seed), score) for seed, score in episodes),
    )
    return replace(GOOD, outcomes=outcomes)


def buffer(curriculum: Curriculum) -> dict[int, tuple[float, int]]:
    """Return score and phase of everything that is remembered."""
    known = cast(PlrState, curriculum.state).buffer
    return {each.seed: (each.score, each.phase) for each in known}


def weights(curriculum: Curriculum) -> dict[int, float]:
    proposal = cast(PlrProposal, curriculum.ask())
    return dict(zip(proposal.seeds, proposal.weights, strict=True))


def test_weights_are_those_of_the_formula():
    # Ranks 2, 1, 3 at temperature 0.5: 1/4, 1, 1/9, together 49/36.
    scores, staleness = np.array([3.0, 5.0, 1.0]), np.array([0, 1, 3])
    by_rank = np.array([9.0, 36.0, 4.0]) / 49.0
    found = replay_weights(scores, staleness, temperature=0.5, mix=0.0)
    assert found == pytest.approx(by_rank)
    by_age = replay_weights(scores, staleness, temperature=0.5, mix=1.0)
    assert by_age == pytest.approx([0.0, 0.25, 0.75])
    mixed = replay_weights(scores, staleness, temperature=0.5, mix=0.3)
    assert mixed == pytest.approx(0.7 * by_rank + 0.3 * by_age)


def test_authors_temperature_all_but_chooses_the_highest_score():
    found = replay_weights(np.array([1.0, 2.0]), np.zeros(2, int), 0.1, 0.0)
    assert found == pytest.approx([1.0 / 1025.0, 1024.0 / 1025.0])


def test_where_all_are_as_stale_all_are_as_likely():
    found = replay_weights(np.array([1.0, 2.0]), np.zeros(2, int), 0.1, 1.0)
    assert found.tolist() == [0.5, 0.5]


@given(
    st.lists(st.tuples(st.floats(0, 1e3), st.integers(0, 50)), min_size=1, max_size=50),
    st.floats(0.01, 10.0),
    st.floats(0.0, 1.0),
)
def test_whatever_the_scores_weights_are_probabilities(pairs, temperature, mix):
    scores, ages = (np.array(column) for column in zip(*pairs, strict=True))
    found = replay_weights(scores, ages, temperature, mix)
    assert np.isfinite(found).all() and (found >= 0.0).all()
    assert found.sum() == pytest.approx(1.0)
    # At equal age, a higher score is never less likely; at equal rank, a higher age.
    for age in set(ages.tolist()):
        ids = np.flatnonzero(ages == age)
        order = ids[np.argsort(-scores[ids], kind="stable")]
        assert (np.diff(found[order]) <= 1e-15).all()


def test_a_trace_by_hand():
    curriculum = Curriculum(GROUPS, plr(buffer=4, temperature=0.5))
    proposal = cast(PlrProposal, curriculum.ask())
    assert proposal.distribution == FromSeeds(GROUPS), "all new, nothing to train on"
    assert proposal.levels == {"mass": 0.5, "com": 0.5}
    assert proposal.band_of("mass") == (0.1, 0.9)
    # One instance, met twice: (0.2 + 0.4) / 2. Not half of the buffer: all new again.
    curriculum.tell(evidence((11, 0.2), (11, 0.4)))
    assert buffer(curriculum) == {11: (0.3, 0)}
    assert cast(PlrProposal, curriculum.ask()).share == 0.0
    assert weights(curriculum) == {}
    # Two: half of the buffer. Ranks 2 and 1: 1/5, 4/5; ages 1 and 0; each counts half.
    curriculum.tell(evidence((22, 0.5)))
    assert buffer(curriculum) == {11: (0.3, 0), 22: (0.5, 1)}
    assert cast(PlrProposal, curriculum.ask()).share == 0.9
    assert weights(curriculum) == pytest.approx({11: 0.6, 22: 0.4})
    # 22 is met again and has become dull; 33 to 55 are new. Of the five four may stay.
    # By rank (1, 1/4, 1/9, 1/16, 1/25; 1.4636 together): 44, 11, 33, 55, 22; only 11 is
    # stale. So 22 is the least likely, with 0.5 * 0.04 / 1.4636, and is forgotten.
    decision = curriculum.tell(
        evidence((22, 0.01), (33, 0.25), (44, 0.7), (55, 0.02), (44, 0.9))
    )
    assert buffer(curriculum) == {
        11: (0.3, 0),
        33: (0.25, 2),
        44: (0.8, 2),
        55: (0.02, 2),
    }
    total = 1.0 + 1 / 4 + 1 / 9 + 1 / 16
    assert weights(curriculum) == pytest.approx(
        {
            11: 0.5 * (1 / 4) / total + 0.5,
            33: 0.5 * (1 / 9) / total,
            44: 0.5 / total,
            55: 0.5 * (1 / 16) / total,
        },
        abs=1e-9,
    )
    assert decision.action == "commit"
    assert "4 instances scored 0.27, 3 of them new; 4 of 4" in decision.reason
    # Nobody meets 11 for a phase more: staleness 3 of 3 + 0, then shared with the others.
    curriculum.tell(evidence((44, 0.8)))
    ages = {11: 3, 33: 1, 44: 0, 55: 1}
    by_age = {seed: age / 5 for seed, age in ages.items()}
    by_rank = {11: 1 / 4, 33: 1 / 9, 44: 1.0, 55: 1 / 16}
    assert weights(curriculum) == pytest.approx(
        {s: 0.5 * by_rank[s] / total + 0.5 * by_age[s] for s in ages}, abs=1e-9
    )


def test_a_low_score_is_kept_while_it_is_due():
    """What was not met lately is likelier than a new instance with a low score."""
    curriculum = Curriculum(GROUPS, plr(buffer=3))
    curriculum.tell(evidence((1, 0.1), (2, 0.2), (3, 0.3)))
    curriculum.tell(evidence((3, 0.3), (4, 0.25)))
    assert set(buffer(curriculum)) == {1, 2, 3}
    curriculum.tell(evidence((1, 0.1), (2, 0.2), (3, 0.3), (4, 0.25)))
    assert set(buffer(curriculum)) == {2, 3, 4}


def test_levels_are_medians_of_what_is_trained_on():
    curriculum = Curriculum(GROUPS, plr(buffer=2, staleness=0.0))
    curriculum.tell(evidence((5, 1.0), (6, 0.5)))
    proposal = cast(PlrProposal, curriculum.ask())
    expected = {group: proposal.distribution.quantile(group, 0.5) for group in GROUPS}
    assert proposal.levels == expected != {"mass": 0.5, "com": 0.5}
    assert proposal.candidate == round(sum(expected.values()) / 2, 4)
    low, high = proposal.band_of("com")
    assert low <= proposal.levels["com"] <= high
    curriculum.tell(evidence())
    assert curriculum.state.mastered == expected


def test_nothing_told_changes_nothing():
    curriculum = Curriculum(GROUPS, plr(buffer=2))
    curriculum.tell(evidence((5, 1.0), (6, 0.5)))
    before = buffer(curriculum)
    for nothing in (GOOD, evidence()):
        curriculum.tell(nothing)
        assert buffer(curriculum) == before
    # Both are as stale as each other.
    assert sum(weights(curriculum).values()) == pytest.approx(1.0)


def test_buffer_follows_the_plan_and_the_settings():
    assert plr().buffer_size == 1000 and plr().least_known == 500
    assert plr(a_phase=256).buffer_size == 256
    assert plr(a_phase=4000).buffer_size == 1000
    assert plr(a_phase=256, buffer=700).buffer_size == 700
    assert plr(fill=0.0).least_known == 1
    told = describe(plr(buffer=100, fill=0.25))
    assert "100 instances are remembered; once 25 are known, 90%" in told


def test_budget_that_ends_before_it_trains_is_refused():
    with pytest.raises(InputError, match="PLR trains: it allows 1 phase, and"):
        plr(phases=1, a_phase=100).start(GROUPS)
    with pytest.raises(InputError, match="3 phases, .*filled for 5.*--plr.buffer"):
        plr(phases=3, a_phase=100, buffer=1000).start(GROUPS)
    plr(phases=6, a_phase=100, buffer=1000).start(GROUPS)


def test_groups_without_width_and_unknown_ones_are_refused():
    still = parse_catalogue("""
extends = "paper"
[groups.mass.parameters.scale]
baseline = [1.0, 1.0]
limit = [1.0, 1.0]
""")
    with pytest.raises(InputError, match="nothing to widen in mass"):
        plr(catalogue=still).start(GROUPS)
    with pytest.raises(InputError, match="but the method's plan has mass, com"):
        plr().start(("mass",))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("buffer", -1), ("buffer", 1.5), ("fill", 1.1), ("replay", 0.0)),
        *(("replay", 1.01), ("temperature", 0.0), ("temperature", float("nan"))),
        *(("staleness", -0.1), ("staleness", 2.0)),
    ],
)
def test_bad_settings_are_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"{name} is .*accepted"):
        PlrCfg(**{name: value})


def test_outcomes_without_scores_are_refused():
    told = evidence((1, 0.5), (2, 0.5)).outcomes
    assert told
    for values in ((), ((1.0,), (2.0,))):
        with pytest.raises(InputError, match="seed and score of every episode"):
            read_scores(replace(told, values=values))
    for values in (((1.0, 0.5), (2.5, 0.5)), ((1.0, -0.5), (2.0, 0.5))):
        with pytest.raises(InputError, match="impossible seeds or scores"):
            read_scores(replace(told, values=values))


def test_it_is_chosen_by_name_with_its_settings():
    method = choose_method("plr", CurriculumCfg(), plan=plr().plan)
    assert isinstance(method, Plr) and name_of(method) == "plr"
    again = make_method("plr", method.cfg, settings_of(method))
    assert again == method


PHASES = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.floats(0.0, 2.0)), max_size=12),
    max_size=8,
)


@given(PHASES, st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_whatever_the_evidence(phases, size):
    method = plr(buffer=size)
    first, second = (Curriculum(GROUPS, method) for _ in range(2))
    met: dict[int, int] = {}
    for number, phase in enumerate(phases):
        first.tell(evidence(*phase))
        second.tell(evidence(*phase))
        met |= {seed: number for seed, _ in phase}
        known = buffer(first)
        assert len(known) == min(size, len(known)) and set(known) <= set(met)
        assert all(known[seed][1] == met[seed] for seed in known)
        if phase and size > 1:
            # The highest score stays; a buffer of one may hold what is stale instead.
            scores = read_scores(evidence(*phase).outcomes)
            assert max(scores.values()) <= max(score for score, _ in known.values())
        proposal = cast(PlrProposal, first.ask())
        assert bool(proposal.share) == (2 * len(known) >= size and bool(known))
        if proposal.share:
            assert set(weights(first)) == set(known)
            assert sum(proposal.weights) == pytest.approx(1.0, abs=1e-6)
        assert all(0.0 <= level <= 1.0 for level in proposal.levels.values())
    assert first.state == second.state


@given(PHASES)
@settings(max_examples=10, deadline=None)
def test_journal_gives_the_state_again_to_the_bit(phases):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        curriculum = create_curriculum(path, GROUPS, plr(buffer=4))
        for phase in phases:
            curriculum.tell(evidence(*phase))
        curriculum.close()
        assert replay(path).state == curriculum.state
        resumed = resume_curriculum(path)
        assert resumed.state == curriculum.state
        resumed.close()


def test_journal_line_of_a_full_buffer_is_small(tmp_path):
    path = tmp_path / "journal.jsonl"
    curriculum = create_curriculum(path, GROUPS, plr())
    rng = np.random.default_rng(0)
    for _ in range(2):
        seeds = rng.integers(1 << 31, size=1000).tolist()
        curriculum.tell(evidence(*((s, float(s % 997)) for s in seeds)))
    before = path.stat().st_size
    curriculum.tell(evidence())
    curriculum.close()
    assert path.stat().st_size - before < 30_000
