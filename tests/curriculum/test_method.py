"""Methods by name, and what all of them share: the reference, probes, outcomes."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from evidence import FALLS, GOOD

from horizon_rl.curriculum import (
    Clock,
    Curriculum,
    CurriculumCfg,
    EarlyCfg,
    Episodes,
    Evidence,
    Horizon,
    LeapCfg,
    MethodCfgs,
    Outcomes,
    Paper,
    Plan,
    PlrCfg,
    ProbeSet,
    Proposal,
    choose_method,
)
from horizon_rl.curriculum.evidence import fair_episodes, outcomes_of
from horizon_rl.curriculum.method import METHODS, make_method, name_of, settings_of
from horizon_rl.curriculum.methods import find_unread
from horizon_rl.domains import AtLevels, InRanges, Parameter, Range, paper_catalogue
from horizon_rl.runs.journal import create_curriculum, resume_curriculum
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode

MEASURED = Evidence(
    length=0.95,
    tracking_error=0.2,
    checkpoint_error=0.2,
    checkpoint_return=20.0,
    candidate_error=0.3,
    candidate_return=30.0,
)


@pytest.mark.parametrize(
    "method",
    [
        Horizon(early=EarlyCfg(looks=(0.5,), min_episodes=7)),
        choose_method("linear", CurriculumCfg(max_phases=3), clock_phases=4),
    ],
)
def test_name_and_settings_give_the_method_again(method):
    name, settings = name_of(method), settings_of(method)
    assert make_method(name, method.cfg, settings) == method


def test_unknown_method_is_refused_with_those_that_exist():
    with pytest.raises(InputError, match="did you mean 'horizon'.*no-rollback"):
        choose_method("horizont", CurriculumCfg())


def test_methods_take_the_settings_that_they_have_a_field_for():
    settings = MethodCfgs(leap=LeapCfg(recovery=0.3))
    early = EarlyCfg(looks=(0.5,))
    chosen = choose_method("horizon", CurriculumCfg(), settings, early=early)
    assert chosen == Horizon(early=early, leap=settings.leap)
    chosen = choose_method("paper", CurriculumCfg(), settings, early=early)
    assert chosen == Paper(early=early)


def test_a_plan_names_what_can_be_widened():
    constant = Parameter(name="x", baseline=Range(1.0, 1.0), limit=Range(1.0, 1.0))
    mass = replace(paper_catalogue()["mass"], parameters=(constant,))
    catalogue = replace(paper_catalogue(), groups=(mass, paper_catalogue()["com"]))
    plan = Plan.of(catalogue, ["mass", "com"], phases=3, episodes=8)
    assert plan.groups == {"mass": (), "com": ("com.offset",)}


def test_clock_in_the_settings_is_the_clock():
    cfg = choose_method("wide", CurriculumCfg()).cfg
    assert isinstance(choose_method("horizon", cfg), Clock)


def test_commit_sets_the_reference_and_a_rollback_leaves_it():
    curriculum = Curriculum(["mass", "com"], Paper())
    assert curriculum.state.reference is None
    curriculum.tell(MEASURED)
    first = curriculum.state.reference
    assert first and (first.phase, first.error, first.value) == (0, 0.3, 30.0)
    curriculum.tell(replace(MEASURED, length=0.1))
    assert curriculum.state.reference == first
    curriculum.tell(replace(MEASURED, checkpoint_error=0.3, checkpoint_return=30.0))
    second = curriculum.state.reference
    assert second and second.phase == 2
    assert second.distribution == AtLevels({"mass": 0.0, "com": 0.05})


def test_evidence_on_record_says_what_it_was_compared_with():
    curriculum = Curriculum(["mass"], Paper())
    curriculum.tell(MEASURED)
    decision = curriculum.tell(replace(MEASURED, checkpoint_error=0.32))
    assert decision.verdict.preserved is False, "0.32 is more than 5 % above 0.3"
    evidence = curriculum.entries[1].evidence
    assert (evidence.reference_error, evidence.reference_return) == (0.3, 30.0)
    # A phase that was cut short was not compared with anything.
    curriculum.tell(Evidence(length=0.1, tracking_error=None, aborted=True))
    assert curriculum.entries[2].evidence.reference_error is None


def test_probe_sets_name_what_must_be_measured():
    curriculum = Curriculum(["mass", "com"], Paper())
    assert curriculum.state.probes.keys() == {"anchor", "candidate"}
    curriculum.tell(GOOD)
    sets = curriculum.state.probes
    assert sets["anchor"].phase is None
    assert sets["candidate"].phase == 1
    assert sets["candidate"].distribution == AtLevels({"mass": 0.05, "com": 0.0})
    assert sets["checkpoint"].phase == 0
    curriculum.tell(FALLS)
    assert curriculum.state.probes["checkpoint"] == sets["checkpoint"]


def test_scouts_are_probe_sets_drawn_like_the_candidate():
    curriculum = Curriculum(["mass"], Horizon(leap=LeapCfg(rungs=(0.5, 1.0))))
    sets = curriculum.state.probes
    scouted = {"beyond 0", "beyond 0.5", "beyond 1"}
    assert sets.keys() == {"anchor", "candidate", *scouted}
    assert sets["beyond 0.5"] == ProbeSet(0, AtLevels({"mass": 0.5}))
    assert sets["candidate"].phase == 0


def test_commit_that_is_measured_late_is_not_measured_again_on_hold():
    """In the next phase the policy may be another: the measure belongs to the commit."""
    curriculum = Curriculum(["mass"])
    curriculum.tell(MEASURED)
    curriculum.forget_reference()
    bodies = {"reference_error:small": 0.4, "checkpoint_error:small": 0.41}
    late = replace(
        MEASURED,
        length=0.5,
        reference_error=0.35,
        reference_return=25.0,
        probed=bodies,
    )
    assert curriculum.tell(late).action == "hold"
    known = curriculum.state.reference
    assert known and (known.phase, known.error, known.value) == (0, 0.35, 25.0)
    assert known.error_by_size == {"small": 0.4}


def test_iterations_and_env_steps_are_counted_once_in_the_state():
    curriculum = Curriculum(["mass"])
    for evidence in (GOOD, FALLS):
        curriculum.tell(replace(evidence, iterations=7, env_steps=100))
    state = curriculum.state
    assert (state.phase, state.iterations, state.env_steps) == (2, 14, 200)


def test_outcomes_are_the_fair_episodes_with_their_instances():
    episodes = Episodes(
        start=np.array([3, -2, 0, 9]),
        length=np.array([10, 10, 4, 1]),
        tracking_error=np.array([0.1, 0.2, 0.3, 0.4]),
        row=np.array([5, 6, 7, 8]),
        values=np.array([[0.5, -1.0], [0.0, 0.0], [1.0, 0.25], [0.0, 0.0]]),
    )
    fair = fair_episodes(episodes, phase_steps=15, max_length=10)
    found = outcomes_of(fair, max_length=10)
    assert (found.row, found.length, found.tracking_error) == (
        (7, 5),
        (0.4, 1.0),
        (0.3, 0.1),
    )
    assert found.values == ((1.0, 0.25), (0.5, -1.0)) and found.returns == ()
    evidence = replace(GOOD, outcomes=found)
    assert decode(Evidence, json.loads(dumps(encode(evidence)))) == evidence


@pytest.mark.parametrize("column", ["length", "tracking_error", "returns", "values"])
def test_outcomes_of_an_episode_in_which_physics_broke(column):
    plain = np.array([[5.0, 0.25], [10.0, 0.5]])
    columns = {"length": plain[:, 0], "tracking_error": plain[:, 1], "values": plain}
    told = Episodes(start=np.zeros(2), row=np.array([3, 4]), **columns)
    assert outcomes_of(told, max_length=10).row == (3, 4)
    broken = plain.copy() if column == "values" else plain[:, 0].copy()
    broken[1:] = np.nan
    found = outcomes_of(replace(told, **{column: broken}), max_length=10)
    if column == "values":  # Nobody knows what it is of.
        assert found.row == (3,) and found.values == ((5.0, 0.25),)
    else:
        assert found.row == (3, 4) and found.length == (0.5, 0.0)
    again = decode(Outcomes, json.loads(dumps(encode(found))))  # As in a journal.
    assert again == found
    none = told.take(np.flatnonzero([False, False]))
    assert len(outcomes_of(none, max_length=10)) == 0


@dataclass(frozen=True, kw_only=True)
class Pinned(Proposal):
    """A proposal of another distribution than levels."""

    low: float

    @property
    def distribution(self) -> InRanges:
        return InRanges({"mass.scale": Range(self.low, 1.0)})


@dataclass(frozen=True, kw_only=True)
class PinnedMethod(Horizon):
    """HORIZON whose proposals have a field of their own."""

    def start(self, groups):
        return self._pin(super().start(groups))

    def step(self, state, evidence):
        state, decision = super().step(state, evidence)
        return self._pin(state), decision

    def _pin(self, state):
        if state.proposal is None:
            return state
        pinned = Pinned(**encode(state.proposal), low=0.1 * state.phase)
        return replace(state, proposal=pinned)


def test_proposal_of_another_distribution_is_journaled(tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "pinned", PinnedMethod)
    path = tmp_path / "journal.jsonl"
    curriculum = create_curriculum(path, ["mass"], PinnedMethod())
    for evidence in (MEASURED, FALLS):
        curriculum.tell(evidence)
    curriculum.close()
    again = resume_curriculum(path)
    assert again.state == curriculum.state and again.entries == curriculum.entries
    assert again.state.proposal is not None
    ranges = {"mass.scale": Range(0.2, 1.0)}
    assert again.state.proposal.distribution == InRanges(ranges)


def test_outlook_of_a_method_that_needs_outcomes_is_empty():
    class Wants(Horizon):
        outcome_parameters = ()

    assert (
        Curriculum(["mass"]).outlook() and not Curriculum(["mass"], Wants()).outlook()
    )


@pytest.mark.parametrize("given", ["adr", Horizon, CurriculumCfg(), 0, ""])
def test_what_only_stands_for_a_method_is_refused(given, tmp_path):
    with pytest.raises(
        InputError, match="method is .*; accepted: a method, as Horizon"
    ):
        Curriculum(["mass"], given)
    with pytest.raises(InputError, match="accepted: a method"):
        create_curriculum(tmp_path / "journal.jsonl", ["mass"], given)
    assert not [*tmp_path.iterdir()]


def test_settings_that_the_method_does_not_read_are_found():
    settings = MethodCfgs(leap=LeapCfg(recovery=0.3), plr=PlrCfg(fill=0.7))
    for name, unread in {
        "horizon": ["plr.fill"],
        "plr": ["leap.recovery"],
        "fixed": ["leap.recovery", "plr.fill"],
    }.items():
        method = choose_method(name, CurriculumCfg(), settings)
        assert [*find_unread(method, settings)] == unread
    assert not [*find_unread(Paper(), MethodCfgs())]
