"""What holds for the governor, whatever the evidence: hundreds of random runs each."""

import math
import random
from dataclasses import dataclass, replace

from evidence import GOOD
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from horizon_rl.curriculum import Curriculum, CurriculumCfg, Evidence, Horizon, LeapCfg
from horizon_rl.curriculum.state import State
from horizon_rl.domains import AtLevels
from horizon_rl.runs.journal import create_curriculum, replay
from horizon_rl.support.records import dumps, encode

GROUPS = ("actuation", "mass", "disturbance", "contact", "inertia", "com", "reset")
BUDGET, NEVER = 60, 20_000

many = settings(max_examples=300)
groups = st.integers(1, 7).map(lambda n: GROUPS[:n])
rungs = st.sets(st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.75])).map(
    lambda found: (*sorted(found), 1.0)
)
parts = st.sets(st.sampled_from([0.25, 0.5, 0.75])).map(
    lambda found: tuple(sorted(found, reverse=True))
)
governors = st.builds(
    Horizon,
    cfg=st.builds(
        CurriculumCfg,
        restore=st.sampled_from([True, True, False]),
        max_phases=st.just(BUDGET),
    ),
    leap=st.builds(
        LeapCfg,
        recovery=st.floats(0.0, 0.99),
        measure_recovery=st.booleans(),
        ready=st.floats(0.0, 1.0),
        smoothing=st.floats(0.0, 0.99),
        weigh_error=st.booleans(),
        min_gain=st.floats(0.001, 0.2),
        rungs=rungs,
        keep=parts,
        retry=st.floats(0.0, 1.0),
        last_leap=st.floats(0.0, 1.0),
        patience=st.integers(1, 6),
        patience_lost=st.integers(1, 6),
        sigmas=st.floats(0.0, 3.0),
        margin=st.floats(0.0, 1.0),
        by_size=st.booleans(),
        anchor_margin=st.floats(0.0, 10.0),
        idle_phases=st.integers(0, 5),
    ),
)


@dataclass
class Robot:
    """Survives up to a hidden level; luck, damage and gaps in what is measured."""

    seed: int
    boundary: float
    luck: float
    gaps: float
    limit: int = 0
    """Env steps of its run, of which every phase takes 1000; 0 is no limit."""

    def answers(self):
        """Return a function from the state to the evidence of its phase."""
        rng = random.Random(self.seed)

        def survives(levels) -> float:
            beyond = max(levels.values()) - self.boundary
            return min(1.0, max(0.0, 0.95 - beyond + rng.gauss(0.0, 0.05)))

        def gap(value: float) -> float:
            return rng.choice((math.nan, math.inf)) if self.is_missing(rng) else value

        def answer(state: State) -> Evidence:
            assert state.proposal is not None
            probed = {}
            for name, probe in state.probes.items():
                assert isinstance(probe.distribution, AtLevels)
                if not self.is_missing(rng):
                    probed[f"{name}_length"] = gap(survives(probe.distribution.levels))
                    probed[f"{name}_error"] = gap(rng.uniform(0.1, 0.6))
            lucky = rng.random() < self.luck
            return replace(
                GOOD,
                length=gap(survives(state.proposal.levels)),
                tracking_error=gap(0.2),
                length_se=gap(0.02),
                checkpoint_error=gap(0.2 if lucky else 0.3),
                anchor_error=gap(0.1 if lucky else rng.choice((0.1, 0.9))),
                iterations=rng.choice((0, 100)) if state.phase == 0 else 100,
                progress=self.progress(state.env_steps + GOOD.env_steps),
                aborted=not lucky and rng.random() < 0.2,
                probed=probed,
            )

        return answer

    def progress(self, env_steps: int) -> float | None:
        return min(1.0, env_steps / self.limit) if self.limit else None

    def is_missing(self, rng: random.Random) -> bool:
        return rng.random() < self.gaps


robots = st.builds(
    Robot,
    seed=st.integers(0, 2**32),
    boundary=st.sampled_from([-0.5, 0.1, 0.4, 0.8, 2.0]),
    luck=st.sampled_from([0.3, 0.7, 0.95, 1.0]),
    gaps=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    limit=st.sampled_from([0, 1000, 30_000, 100_000]),
)


def run(names, method, robot):
    """Run to the end; return [(state before, evidence, decision, state after)]."""
    state, steps, answer = method.start(names), [], robot.answers()
    while state.proposal:
        before, evidence = state, answer(state)
        state, decision = method.step(before, evidence)
        steps.append((before, evidence, decision, state))
    return steps


def mastered_levels_never_fall_and_stay_within_the_limit(_, steps):
    for before, _, decision, after in steps:
        for group, level in after.mastered.items():
            assert 0.0 <= before.mastered[group] <= level <= 1.0
            if level > before.mastered[group]:
                assert decision.action == "commit"


def proposals_lie_between_mastered_and_limit_and_scouts_too(_, steps):
    for before, _, _, after in steps:
        for state in (before, after):
            if (proposal := state.proposal) is None:
                continue
            assert proposal.mastered == state.mastered
            tried = (proposal.levels, *(proposal.scouts or {}).values())
            for levels in tried:
                assert levels.keys() == state.mastered.keys()
                for group, level in levels.items():
                    assert state.mastered[group] <= level <= 1.0
            moved = proposal.levels != proposal.mastered
            assert moved == (proposal.kind == "leap")


@many
@given(groups, governors, robots)
def test_every_run_ends_without_a_budget(names, method, robot):
    method = replace(method, cfg=replace(method.cfg, max_phases=NEVER))
    # A robot that cannot do the baseline has nothing to leap from.
    boundary = max(robot.boundary, 0.1)
    steps = run(names, method, replace(robot, boundary=boundary, gaps=0.0, limit=0))
    assert steps[-1][3].ended == "no leap is left to try"
    # A gain is a quarter of the least leap, or more, and so is each of the last of what
    # is left up to the limit, until rounding ends it; `idle_phases` may gain nothing, each
    # of them held as long as patience allows; and the baseline takes its time.
    gains = 1 + math.ceil(4 / method.leap.min_gain) + math.ceil(math.log(1e-4, 0.75))
    patience = max(method.leap.patience, method.leap.patience_lost)
    most = gains * (method.leap.idle_phases + 1) * patience
    baseline = sum(before.reference is None for before, *_ in steps)
    assert len(steps) - baseline <= most


def run_with_limit(names, method, robot, limit=40_000):
    """Run until these env steps are spent."""
    method = replace(method, cfg=replace(method.cfg, max_env_steps=limit))
    return run(names, method, replace(robot, limit=limit))


@many
@given(groups, governors, robots)
def test_run_with_env_steps_left_goes_on_but_leaps_no_more_near_its_end(
    names, method, robot
):
    steps = run_with_limit(names, method, robot)
    assert len(steps) == 40
    assert steps[-1][3].ended == "budget of 40000 env steps spent"
    for _, evidence, decision, after in steps[:-1]:
        if evidence.progress >= method.leap.last_leap and decision.action != "hold":
            assert after.proposal.kind != "leap"


def test_runs_that_are_stuck_with_env_steps_left_are_among_them():
    def is_stuck(drawn) -> bool:
        names, method, robot = drawn
        # Without a limit, a run ends before so many proposals in a row gain nothing.
        most = method.leap.idle_phases + 1
        return any(step[3].idle > most for step in run_with_limit(names, method, robot))

    drawn = st.tuples(groups, governors, robots)
    find(drawn, is_stuck, settings=settings(phases=[Phase.generate], max_examples=300))


@many
@given(groups, governors)
def test_run_that_always_passes_reaches_the_limit_and_ends(names, method):
    steps = run(names, method, Robot(seed=0, boundary=9.0, luck=1.0, gaps=0.0))
    assert steps[1][3].mastered == dict.fromkeys(names, 1.0)
    assert steps[-1][3].ended == "no leap is left to try"


@many
@given(groups, governors)
def test_run_that_never_passes_again_ends(names, method):
    state = method.start(names)
    state, _ = method.step(state, Robot(0, 9.0, 1.0, 0.0).answers()(state))
    while state.proposal:
        state, decision = method.step(state, replace(GOOD, length=0.1))
        assert decision.action in ("hold", "rollback", "retreat")
    assert state.mastered == dict.fromkeys(names, 0.0)
    assert state.ended == "no leap is left to try"


def recovery_stays_a_share_and_is_measured_once_a_leap(_, steps):
    for before, _, decision, after in steps:
        assert 0.0 <= after.recovery.share <= 1.0
        assert before.expected is None or before.proposal.kind == "leap"
        if decision.action == "hold":
            assert after.expected is None
        fails = decision.levels or decision.action in ("rollback", "retreat")
        if before.expected is None and not (fails and before.proposal.kind == "leap"):
            assert after.recovery == before.recovery


def only_a_rollback_restores_and_it_gains_nothing(method, steps):
    for before, _, decision, after in steps:
        assert decision.keeps_weights == (decision.action != "rollback")
        if decision.action in ("rollback", "retreat"):
            assert after.mastered == before.mastered
            assert after.reference is None or before.reference is not None
            assert (decision.action == "rollback") == method.cfg.restore
        if decision.action == "hold" and after.proposal:
            assert after.proposal.levels == before.proposal.levels
            assert after.mastered == before.mastered


def no_leap_is_committed_that_was_not_measured(method, steps):
    gates = method.cfg.gates
    for before, evidence, decision, _ in steps:
        if decision.action != "commit":
            continue
        assert not evidence.aborted
        if decision.levels is None:
            assert evidence.length is not None and evidence.tracking_error is not None
            assert evidence.tracking_error <= gates.max_error
            if before.trained:
                assert evidence.checkpoint_error is not None
            continue
        # A part of a leap: scouts at its levels passed gate L.
        assert any(
            evidence.probed.get(f"{name}_length", 0.0) >= gates.min_length
            and evidence.probed.get(f"{name}_error", 9.0) <= gates.max_error
            for name, levels in before.proposal.scouts.items()
            if name.startswith("within") and levels == decision.levels
        )


@many
@given(groups, governors, robots)
def test_properties_of_any_run(names, method, robot):
    steps = run(names, method, robot)
    for check in (
        mastered_levels_never_fall_and_stay_within_the_limit,
        proposals_lie_between_mastered_and_limit_and_scouts_too,
        recovery_stays_a_share_and_is_measured_once_a_leap,
        only_a_rollback_restores_and_it_gains_nothing,
        no_leap_is_committed_that_was_not_measured,
    ):
        check(method, steps)
    again = run(names, method, robot)
    assert [step[2:] for step in again] == [step[2:] for step in steps], "same evidence"


@settings(max_examples=100)
@given(groups, governors, robots)
def test_replaying_the_journal_gives_the_live_state_byte_for_byte(
    tmp_path_factory, names, method, robot
):
    answer = robot.answers()
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    live = create_curriculum(path, names, method)
    while live.ask():
        live.tell(answer(live.state))
    live.close()
    again = replay(path)
    assert again.state == live.state
    assert dumps([encode(e) for e in again.entries]) == dumps(
        [encode(e) for e in live.entries]
    )


@settings(max_examples=300)
@given(groups, governors, robots)
def test_outlook_looks_ahead_and_decides_nothing(names, method, robot):
    curriculum, answer = Curriculum(names, method), robot.answers()
    while curriculum.ask():
        before = curriculum.state
        assert all(p.phase == before.phase + 1 for p in curriculum.outlook())
        assert curriculum.state is before
        curriculum.tell(answer(before))


shares = st.floats(0.0, 1.0) | st.sampled_from([math.nan, math.inf])
errors = st.floats(min_value=0.0) | st.sampled_from([math.nan, math.inf])


@settings(max_examples=300)
@given(
    groups,
    governors,
    st.lists(
        st.builds(
            Evidence,
            length=shares | st.none(),
            **{
                name: (st.floats() if "return" in name else errors) | st.none()
                for name in (
                    "tracking_error",
                    "checkpoint_error",
                    "checkpoint_return",
                    "reference_error",
                    "reference_return",
                    "anchor_error",
                    "length_se",
                )
            },
            progress=shares | st.none(),
            iterations=st.integers(0, 100),
            probed=st.fixed_dictionaries(
                {},
                optional={
                    f"{name}_{what}": shares if what == "length" else errors
                    for name in ("candidate", "beyond 0.5", "beyond 1")
                    + ("within 0.75", "within 0.25", "mass 1")
                    for what in ("length", "error", "error:large")
                },
            ),
            env_steps=st.integers(0, 10**12),
        ),
        max_size=30,
    ),
)
def test_no_evidence_however_strange_breaks_a_step(names, method, stream):
    state = method.start(names)
    for evidence in stream:
        if state.proposal is None:
            break
        state, decision = method.step(state, evidence)
        assert 0.0 <= decision.verdict.score <= 1.0
        assert all(0.0 <= level <= 1.0 for level in state.mastered.values())
        encode(state)
