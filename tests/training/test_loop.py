"""The loop: it sees protocols only; and looks at a running phase end what is settled."""

from dataclasses import replace

import pytest
from small_runs import (
    LENIENT,
    PHASE_STEPS,
    actions,
    assert_same,
    create,
    finish,
    journal,
    read_evidence,
    resume,
    run_phases,
    tiny,
    weights,
)

from horizon_rl.curriculum import (
    CheckpointRef,
    Curriculum,
    CurriculumCfg,
    EarlyCfg,
    Entry,
    Paper,
)
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.rehearsal import SyntheticCfg
from horizon_rl.rehearsal.synthetic import novice
from horizon_rl.rehearsal.worlds import SyntheticLearner, SyntheticWorlds
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.loop import run_phases as phases_of
from horizon_rl.training.protocols import Iteration, Recorder

FINE = EarlyCfg(looks=(0.5, 0.75), min_episodes=2, collapse=0.0)
COLLAPSED = EarlyCfg(looks=(0.5, 0.75), min_episodes=2, collapse=2.0)
"""Any length counts as a collapse."""


def watched(early: EarlyCfg, **changes) -> TrainCfg:
    return tiny(**{"early": early, "phase_iterations": 8, **changes})


def iterations(entries: list[Entry]) -> list[int]:
    return [entry.evidence.iterations for entry in entries]


# The loop without simulator, learner and disk.


def rehearse(max_phases: int = 6, recorder: Recorder | None = None):
    cfg = SyntheticCfg()
    method = Paper(cfg=CurriculumCfg(max_phases=max_phases))
    curriculum = Curriculum(["mass", "com"], method)
    learner = SyntheticLearner(novice(("mass", "com"), cfg, 0), cfg)
    worlds = SyntheticWorlds(cfg, 0)
    events = phases_of(curriculum, worlds, learner, recorder=recorder)
    return curriculum, learner, events


class Noted(Recorder):
    """Notes the order in which it is called."""

    def __init__(self):
        self.calls: list[str] = []

    def record_iteration(self, phase, iteration):
        self.calls.append(f"iteration {phase}")

    def record_evidence(self, phase, result):
        self.calls.append(f"evidence {phase}")

    def save(self, proposal, after):
        self.calls.append(f"save {proposal.phase}")
        return CheckpointRef(f"phase-{proposal.phase:05d}", "0" * 64)

    def record_times(self, times):
        assert times.total_s == times.train_s + times.probe_s + times.settle_s >= 0.0
        self.calls.append(f"times {times.phase}")


def test_without_a_recorder_it_trains_until_the_curriculum_ends():
    curriculum, _, events = rehearse()
    seen = list(events)
    assert [e for e in seen if isinstance(e, Entry)] == curriculum.entries
    assert curriculum.state.ended == "budget of 6 phases spent"
    numbers = [(e.number, e.env_steps) for e in seen if isinstance(e, Iteration)]
    each = SyntheticCfg().phase_env_steps
    assert [number for number, _ in numbers] == list(range(1, 7))
    before = sum(e.evidence.env_steps for e in curriculum.entries[:-1])
    assert before > 5 * each, "probes count"
    assert numbers[0][1] == each and numbers[-1][1] == before + each


def test_evidence_comes_before_the_checkpoint_and_that_before_the_entry():
    recorder = Noted()
    curriculum, _, events = rehearse(30, recorder)
    for event in events:
        if not isinstance(event, Entry):
            continue
        phase = event.proposal.phase
        kept = event.decision.keeps_weights
        assert (event.checkpoint is not None) == kept
        expected = ["iteration", "evidence", *["save"][:kept], "times"]
        assert recorder.calls == [f"{call} {phase}" for call in expected]
        recorder.calls.clear()
    assert {"commit", "rollback"} <= set(actions(curriculum.entries))


def test_what_was_rolled_back_is_not_learnt():
    curriculum, learner, events = rehearse(60)
    before = learner.policy
    for event in events:
        if isinstance(event, Entry):
            same = learner.policy == before
            assert same == (event.decision.action == "rollback")
            before = learner.policy
    assert {"commit", "rollback"} <= set(actions(curriculum.entries))


def test_caller_that_stops_in_mid_phase_loses_only_that_phase():
    curriculum, _, events = rehearse()
    for event in events:
        if isinstance(event, Iteration) and event.number == 3:
            break
    assert [entry.proposal.phase for entry in curriculum.entries] == [0, 1]
    proposal = curriculum.ask()
    assert proposal is not None and proposal.phase == 2


def test_recorder_may_end_the_run_between_phases():
    class Poor(Recorder):
        def has_budget(self) -> bool:
            return len(curriculum.entries) < 2

    curriculum, _, events = rehearse(recorder=Poor())
    list(events)
    assert len(curriculum.entries) == 2 and curriculum.state.ended is None


# Looks, on the real simulator.


def test_phase_that_is_clearly_fine_is_committed_at_the_first_look(tmp_path):
    run = create(watched(FINE), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit"] * 3
    assert iterations(entries) == [4, 4, 4]
    assert run.curriculum.state.iterations == 12
    probed = read_evidence(tmp_path, 0)
    steps = sum(int(probed[f"{x}_length"].sum()) for x in ("candidate", "anchor"))
    assert entries[0].evidence.env_steps == PHASE_STEPS + steps


def test_phase_that_is_not_clear_lasts_its_time(tmp_path):
    gates = replace(LENIENT, min_length=1.0)  # Not beyond it, however good.
    entries = finish(create(watched(FINE, gates=gates), tmp_path))
    assert iterations(entries) == [8, 8, 8]


def test_too_few_episodes_say_nothing(tmp_path):
    early = replace(FINE, min_episodes=1000)
    assert iterations(finish(create(watched(early), tmp_path))) == [8, 8, 8]


def test_collapsed_phase_is_aborted_at_the_first_look_and_rolled_back(tmp_path):
    run = create(watched(COLLAPSED), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit", "rollback", "rollback"]
    assert iterations(entries) == [8, 4, 4], "the baseline cannot be given up"
    assert [entry.evidence.aborted for entry in entries] == [False, True, True]
    assert entries[1].evidence.env_steps == PHASE_STEPS, "it is not probed"
    assert not any("candidate" in name for name in read_evidence(tmp_path, 1))
    assert "collapsed" in entries[1].decision.reason
    kept = load_checkpoint(tmp_path / "checkpoints" / "phase-00000")
    assert_same(weights(run), kept.tensors)


def test_what_is_never_rolled_back_is_never_aborted(tmp_path):
    cfg = watched(COLLAPSED, method="no-rollback")
    entries = finish(create(cfg, tmp_path))
    assert iterations(entries) == [8, 8, 8]
    assert not any(entry.evidence.aborted for entry in entries)


@pytest.mark.parametrize("early", [FINE, COLLAPSED])
def test_clock_is_not_looked_at(early, tmp_path):
    entries = finish(create(watched(early, method="wide"), tmp_path))
    assert iterations(entries) == [8, 8, 8]


def test_look_that_fails_gate_c_lets_the_phase_go_on(tmp_path):
    run = create(watched(FINE), tmp_path)
    run_phases(run, 1)
    resumed = resume(tmp_path)
    curriculum, strict = resumed.curriculum, replace(LENIENT, return_margin=0.0)
    assert curriculum.state.reference is not None
    # A reference that nobody reaches, as if the checkpoint were flawless.
    flawless = replace(curriculum.state.reference, value=1e30)
    curriculum.state = replace(curriculum.state, reference=flawless)
    curriculum.method = Paper(cfg=replace(curriculum.cfg, gates=strict), early=FINE)
    entry = run_phases(resumed, 1)[0]
    assert entry.decision.action == "rollback" and entry.evidence.iterations == 8
    assert entry.decision.verdict.feasible and not entry.decision.verdict.preserved
    probed = read_evidence(tmp_path, 1)
    once = sum(
        int(probed[f"{name}_length"].sum())
        for name in ("candidate", "checkpoint", "anchor")
    )
    extra = entry.evidence.env_steps - 2 * PHASE_STEPS - once
    assert extra > once, "two looks were probed, and count"


def test_look_that_falls_on_the_end_is_not_probed_apart(tmp_path):
    strict = replace(LENIENT, error_margin=0.0, return_margin=0.0)
    looked, not_looked = (
        finish(create(watched(early, gates=strict), tmp_path / str(len(early.looks))))
        for early in (replace(FINE, looks=(0.99,)), EarlyCfg())
    )
    assert "rollback" in actions(looked), "gate C fails where it is looked at"
    assert [e.evidence for e in looked] == [e.evidence for e in not_looked]


def test_looks_do_not_depend_on_interruptions(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    finish(create(watched(FINE), whole))
    run_phases(create(watched(FINE), cut), 1)
    finish(resume(cut))
    assert journal(cut) == journal(whole)
