"""What holds for the paper's rule, whatever the evidence: thousands of random runs."""

import math
import random
from dataclasses import dataclass, replace
from itertools import islice

from evidence import FALLS, FORGETS, GOOD
from hypothesis import given, settings
from hypothesis import strategies as st

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Decision,
    Evidence,
    Frontier,
    GateCfg,
    Paper,
    State,
)
from horizon_rl.runs.journal import create_curriculum, replay
from horizon_rl.support.records import dumps, encode

GROUPS = ("actuation", "mass", "disturbance", "contact", "inertia", "com", "reset")
NEVER = 100_000

groups = st.integers(1, 7).map(lambda n: GROUPS[:n])
configs = st.builds(
    CurriculumCfg,
    grow=st.floats(1.0, 3.0),
    min_step=st.floats(0.02, 0.5),
    alpha=st.floats(0.05, 0.95),
    max_rungs=st.integers(1, 5),
    min_bracket=st.floats(1e-4, 0.2),
    reopen_after=st.integers(1, 4),
    reopen_gain=st.floats(0.0, 0.1),
    max_reopenings=st.integers(0, 6),
    joint=st.booleans(),
    rollback=st.sampled_from([True, True, True, False]),
    gates=st.builds(GateCfg, preservation=st.booleans()),
    max_phases=st.just(NEVER),
)


@dataclass
class Stream:
    """An endless stream of evidence: lucky, unlucky, or with a hidden boundary."""

    seed: int
    luck: float
    boundary: float

    def __iter__(self):
        rng = random.Random(self.seed)
        while True:
            lucky = rng.random() < self.luck
            yield GOOD if lucky else rng.choice((FALLS, FORGETS))

    def answer(self, state: State, evidence: Evidence) -> Evidence:
        """Beyond the hidden boundary every phase fails; in phase 0 none fails on."""
        assert state.proposal is not None
        if state.proposal.kind == "baseline" and state.phase > 3:
            return GOOD
        return FALLS if state.proposal.candidate > self.boundary else evidence


streams = st.builds(
    Stream,
    seed=st.integers(0, 2**32),
    luck=st.sampled_from([0.05, 0.3, 0.5, 0.7, 0.95, 1.0]),
    boundary=st.sampled_from([0.1, 0.4, 0.8, 2.0, 2.0]),
)


def run(names, cfg, stream):
    """Run to the end; return [(state before, decision, state after)]."""
    method = Paper(cfg=cfg)
    state, steps, evidence = method.start(names), [], iter(stream)
    while state.proposal:
        before = state
        state, decision = method.step(before, stream.answer(before, next(evidence)))
        steps.append((before, decision, state))
    return steps


def on_trial(state: State, decision: Decision) -> Frontier | None:
    return next((f for f in state.frontiers if f.name == decision.frontier), None)


def mastered_levels_never_fall(_, steps):
    for before, decision, after in steps:
        for old, new in zip(before.frontiers, after.frontiers, strict=True):
            assert new.mastered >= old.mastered
            if new.mastered > old.mastered:
                assert decision.action == "commit" and decision.frontier == new.name


def candidate_lies_beyond_mastered_and_within_limit_or_bracket(_, steps):
    for before, decision, _ in steps:
        frontier = on_trial(before, decision)
        if frontier is None:
            assert decision.kind == "baseline" and decision.candidate == 0.0
            continue
        assert frontier.mastered < decision.candidate <= 1.0
        if decision.kind == "coarse":
            assert frontier.failed is None
        else:
            assert frontier.failed is not None
            assert decision.candidate <= frontier.failed
            assert (decision.candidate < frontier.failed) == (
                decision.kind == "recovery"
            )


def verdict_inside_a_bracket_leaves_at_most_its_larger_part(cfg, steps):
    for before, decision, after in steps:
        if decision.kind != "recovery":
            continue
        old, new = on_trial(before, decision), on_trial(after, decision)
        assert old and new and old.failed is not None and new.failed is not None
        left = (new.failed - new.mastered) / (old.failed - old.mastered)
        assert left <= max(cfg.alpha, 1.0 - cfg.alpha) + 1e-9


def open_frontier_is_tried_within_a_bounded_number_of_phases(cfg, steps):
    # Each other may come first once by its turn and once for each of its reopenings;
    # one phase more goes by where the frontier itself has just failed.
    names = steps[0][0].mastered
    waits = dict.fromkeys(names, 0) | {"joint": 0}
    others = len(names) - 1
    bound = others * (1 + cfg.max_reopenings) + 1
    for _, _, after in steps:
        for frontier in after.frontiers:
            tried = after.proposal and after.proposal.frontier == frontier.name
            waiting = frontier.is_open and after.reference and not tried
            waits[frontier.name] = waits[frontier.name] + 1 if waiting else 0
            assert waits[frontier.name] <= bound or after.proposal is None


def every_run_ends_and_reopening_never_loops(cfg, steps):
    final = steps[-1][2]
    assert final.ended == "no frontier is left to try"
    coarse = math.ceil(1.0 / cfg.min_step) + 1
    per_opening = 1 + cfg.max_rungs + 1
    most = coarse + (1 + cfg.max_reopenings) * (per_opening + 1)
    assert len(steps) <= 5 + len(final.frontiers) * most
    for frontier in final.frontiers:
        assert frontier.reopenings <= cfg.max_reopenings
        assert not frontier.is_open
        spent = frontier.reopenings == cfg.max_reopenings
        assert frontier.status == "complete" or spent


def the_one_that_just_failed_goes_next_only_if_it_is_alone(_, steps):
    for _, decision, after in steps:
        if decision.action != "rollback" or after.proposal is None:
            continue
        others = [f for f in after.frontiers if f.name != decision.frontier]
        if any(f.is_open for f in others):
            assert after.proposal.frontier != decision.frontier


@settings(max_examples=1000)
@given(groups, configs, streams)
def test_properties_of_any_run(names, cfg, stream):
    steps = run(names, cfg, stream)
    for check in (
        mastered_levels_never_fall,
        candidate_lies_beyond_mastered_and_within_limit_or_bracket,
        verdict_inside_a_bracket_leaves_at_most_its_larger_part,
        open_frontier_is_tried_within_a_bounded_number_of_phases,
        every_run_ends_and_reopening_never_loops,
        the_one_that_just_failed_goes_next_only_if_it_is_alone,
    ):
        check(cfg, steps)
    again = run(names, cfg, stream)
    assert [d for _, d, _ in again] == [d for _, d, _ in steps], "same evidence"


@settings(max_examples=300)
@given(groups, configs, streams)
def test_what_follows_was_in_the_outlook(names, cfg, stream):
    curriculum = Curriculum(names, Paper(cfg=cfg))
    for evidence in islice(stream, 60):
        if curriculum.ask() is None:
            break
        outlook = curriculum.outlook()
        curriculum.tell(stream.answer(curriculum.state, evidence))
        following = curriculum.ask()
        assert following is None or following in outlook


@settings(max_examples=100)
@given(groups, configs, streams)
def test_replaying_the_journal_gives_the_live_state_byte_for_byte(
    tmp_path_factory, names, cfg, stream
):
    cfg = replace(cfg, max_phases=40)
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    live = create_curriculum(path, names, Paper(cfg=cfg))
    for evidence in stream:
        if live.ask() is None:
            break
        live.tell(stream.answer(live.state, evidence))
    live.close()
    again = replay(path)
    assert again.state == live.state
    assert dumps([encode(e) for e in again.entries]) == dumps(
        [encode(e) for e in live.entries]
    )


@settings(max_examples=300)
@given(
    groups,
    configs,
    st.lists(
        st.builds(
            Evidence,
            length=st.floats(0.0, 1.0) | st.sampled_from([None, math.nan, math.inf]),
            **{
                name: st.floats(0.0 if "error" in name else None) | st.none()
                for name in (
                    "tracking_error",
                    "checkpoint_error",
                    "checkpoint_return",
                    "reference_error",
                    "reference_return",
                )
            },
            env_steps=st.integers(0, 10**12),
        ),
        max_size=30,
    ),
)
def test_no_evidence_however_strange_breaks_a_step(names, cfg, stream):
    method = Paper(cfg=cfg)
    state = method.start(names)
    for evidence in stream:
        if state.proposal is None:
            break
        state, decision = method.step(state, evidence)
        assert 0.0 <= decision.verdict.score <= 1.0
