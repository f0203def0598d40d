"""Methods of one's own: each is a class and its registration, and nothing else."""

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from killing import kill, run_in_child, wait
from small_runs import (
    actions,
    assert_same,
    create,
    finish,
    journal,
    levels,
    resume,
    tiny,
    weights,
)

from horizon_rl.cli import main
from horizon_rl.curriculum import (
    CurriculumCfg,
    Decision,
    Entry,
    Evidence,
    Frontier,
    Outcomes,
    Proposal,
    State,
    phase_rng,
    register_method,
)
from horizon_rl.curriculum.method import (
    METHODS,
    book,
    budget_spent,
    conclude,
    judge_phase,
    on_trial,
)
from horizon_rl.runs.directory import RunDirectory
from horizon_rl.runs.journal import Journal, replay


@dataclass(frozen=True, kw_only=True)
class RandomLevels:
    """Levels at random, from the seed and the phase's number; every phase is committed."""

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    seed: int = 0

    outcome_parameters = None

    def start(self, groups: Sequence[str]) -> State:
        frontiers = tuple(Frontier(name=group, groups=(group,)) for group in groups)
        return self._propose(State(frontiers=frontiers))

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        proposal, verdict = on_trial(state), judge_phase(state, evidence, self.cfg)
        frontiers = tuple(
            replace(f, mastered=proposal.levels[f.name], commits=f.commits + 1)
            for f in state.frontiers
        )
        judged = replace(book(state, evidence, "commit"), frontiers=frontiers)
        decision = conclude(proposal, "commit", verdict, "kept, whatever happened")
        return self._propose(judged), decision

    def looks(self, state: State) -> tuple[float, ...]:
        return (1.0,)

    def look(self, state, window, index, longest):
        return "go on"

    def _propose(self, state: State) -> State:
        if spent := budget_spent(state, self.cfg):
            return replace(state, ended=spent)
        rng = phase_rng(self.seed, state.phase)
        proposal = Proposal(
            phase=state.phase,
            kind="other",
            frontier=None,
            candidate=0.0,
            levels={group: float(rng.random()) for group in state.mastered},
            mastered=state.mastered,
            reason="drawn at random",
        )
        return replace(state, proposal=proposal)


@dataclass(frozen=True, kw_only=True)
class HeavyOutcomes(RandomLevels):
    """One level for all groups, raised where most of the heavier robots survive."""

    rise: float = 0.25

    outcome_parameters = ("mass.scale",)

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        assert evidence.outcomes is not None
        masses = np.array([values[0] for values in evidence.outcomes.values])
        lengths = np.array(evidence.outcomes.length)[masses >= np.median(masses)]
        rise = self.rise if np.mean(lengths >= 1.0) > 0.5 else 0.0
        judged, decision = super().step(state, evidence)
        if judged.proposal is None:
            return judged, decision
        levels = {g: min(level + rise, 1.0) for g, level in judged.mastered.items()}
        return replace(
            judged, proposal=replace(judged.proposal, levels=levels)
        ), decision

    def start(self, groups: Sequence[str]) -> State:
        state = super().start(groups)
        proposal = replace(on_trial(state), levels=dict.fromkeys(groups, 0.0))
        return replace(state, proposal=proposal)


TOYS = {"random-levels": RandomLevels, "heavy-outcomes": HeavyOutcomes}


@pytest.fixture(autouse=True, scope="module")
def registered():
    for name, toy in TOYS.items():
        register_method(name)(toy)
    yield
    for name in TOYS:
        del METHODS[name]


@pytest.fixture(scope="module", params=TOYS)
def trained(request, tmp_path_factory):
    """A run of three phases by one of the methods, uninterrupted."""
    run = create(tiny(method=request.param), tmp_path_factory.mktemp("toy") / "run")
    finish(run)
    return run


def test_it_trains_in_the_loop_and_its_journal_replays(trained):
    so_far = replay(trained.path / "journal.jsonl")
    assert so_far.header.method == trained.cfg.method
    assert actions(so_far.entries) == ["commit"] * 3
    assert so_far.state == trained.curriculum.state
    assert so_far.entries == tuple(trained.curriculum.entries)
    assert so_far.state.ended == "budget of 3 phases spent"
    # Gate C compares where the phase before was trained.
    first, second = (entry.evidence for entry in so_far.entries[:2])
    assert second.reference_error == first.candidate_error is not None


def test_levels_are_those_of_the_seed(tmp_path):
    run = create(tiny(method="random-levels", max_phases=2), tmp_path)
    found = levels(finish(run))
    expected = [phase_rng(0, phase).random(2).tolist() for phase in range(2)]
    assert [list(phase.values()) for phase in found] == expected
    heaviest = run.worlds._probe_sets.popitem()[1].pool.instances["mass.scale"].max()
    assert heaviest > 1.1, "the worlds are of these levels"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_killed_and_resumed_equals_uninterrupted_to_the_bit(trained, tmp_path):
    path = tmp_path / "run"
    create(trained.cfg, path).close()
    for owner, name in ((RunDirectory, "write_evidence"), (Journal, "append")):
        pid = run_in_child(path, lambda o=owner, n=name: kill(o, n, 2))
        assert wait(pid) == -signal.SIGKILL
    assert len(replay(path / "journal.jsonl").entries) == 2
    run = resume(path)
    finish(run)
    assert journal(path) == journal(trained.path)
    assert_same(weights(run), weights(trained))


def test_status_shows_it(trained, capsys):
    assert main(["status", str(trained.path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["method"], shown["phases"]) == (trained.cfg.method, 3)
    assert shown["difficulty"] == trained.curriculum.state.difficulty > 0.0
    assert main(["status", str(trained.path)]) == 0
    assert trained.cfg.method in capsys.readouterr().out


def test_outcomes_arrive_with_row_length_error_and_value(tmp_path):
    run = create(tiny(method="heavy-outcomes"), tmp_path)
    column = [*run.catalogue.parameters].index("mass.scale")
    for event in run.events():
        if not isinstance(event, Entry):
            continue
        outcomes, scenarios = event.evidence.outcomes, run.worlds._scenarios
        assert scenarios is not None and outcomes is not None
        assert len(outcomes) >= event.evidence.episodes > 0
        known = scenarios.pool.parameters[list(outcomes.row), column]
        assert np.ravel(outcomes.values) == pytest.approx(known, abs=1e-6)
        assert 0.0 < min(outcomes.length) and max(outcomes.length) <= 1.0
        assert min(outcomes.tracking_error) >= 0.0
        assert len(outcomes.returns) == len(outcomes)
        length = np.mean(outcomes.length)
        assert event.evidence.length == pytest.approx(length)
    run.close()
    assert levels(run.curriculum.entries)[1:] == [
        dict.fromkeys(("mass", "com"), level) for level in (0.25, 0.5)
    ]
    kept = [
        entry.evidence.outcomes for entry in replay(tmp_path / "journal.jsonl").entries
    ]
    assert kept == [entry.evidence.outcomes for entry in run.curriculum.entries]


def test_level_stays_where_heavy_robots_fall():
    method = HeavyOutcomes()
    state = method.start(["mass"])
    fallen = Outcomes(
        row=(0, 1, 2, 3),
        length=(0.5,) * 4,
        tracking_error=(0.1,) * 4,
        values=((0.0,), (0.1,), (0.2,), (0.3,)),
    )
    evidence = Evidence(length=0.5, tracking_error=0.1, outcomes=fallen)
    state, _ = method.step(state, evidence)
    assert on_trial(state).levels == {"mass": 0.0}
