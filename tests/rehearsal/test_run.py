"""Rehearsals: what they show, and that they stop and resume without a trace."""

import shutil
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from horizon_rl.curriculum import (
    AdrCfg,
    CurriculumCfg,
    DoraemonCfg,
    LeapCfg,
    phase_rng,
)
from horizon_rl.domains import Catalogue, paper_catalogue, parse_catalogue
from horizon_rl.rehearsal import (
    Rehearsal,
    RehearsalCfg,
    SyntheticCfg,
    compare,
    summarise,
)
from horizon_rl.rehearsal.compare import COMPARED, installed_methods, learners
from horizon_rl.rehearsal.synthetic import success_rate
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import JOURNAL
from horizon_rl.support.errors import InputError

PAPER = paper_catalogue()
SLOW = ("adr", "scalar-adr", "plr", "doraemon")
"""Methods that learn from single episodes, until the budget of phases ends."""

STILL = """
extends = "paper"
[groups.mass.parameters.scale]
baseline = [1.0, 1.0]
limit = [1.0, 1.0]
[groups.disturbance.parameters.external_force]
baseline = [0.0, 0.0]
limit = [0.0, 0.0]
"""
"""Nothing of `mass` moves, and of `disturbance` not all."""
PUBLISHED = RehearsalCfg(method="paper")
BOLD = RehearsalCfg(leap=LeapCfg(recovery=0.95, weigh_error=False))
"""Leaps so far that some fail."""


def run_to_end(cfg: RehearsalCfg, catalogue: Catalogue) -> Rehearsal:
    """Rehearse in memory, to the end."""
    rehearsal = Rehearsal.in_memory(cfg, catalogue)
    for _ in rehearsal.phases():
        pass
    return rehearsal


def test_rehearsal_of_the_papers_rule_meets_every_kind_of_verdict_and_ends():
    rehearsal = run_to_end(PUBLISHED, PAPER)
    summary = summarise(rehearsal)
    assert summary["ended"] == "no frontier is left to try"
    assert summary["commits"] > 10
    assert summary["rollbacks"] > 10
    assert summary["boundaries"] > 0
    kinds = {d["kind"] for d in summary["decisions"]}
    assert kinds == {"baseline", "coarse", "recovery", "retry"}
    assert summary["phases"] == len(summary["decisions"])
    for group, coverage in summary["coverage"].items():
        assert coverage > PAPER.coverage({})[group]


def test_rehearsal_of_the_governor_leaps_holds_stalls_and_retreats():
    rehearsal = run_to_end(BOLD, PAPER)
    decisions = [entry.decision for entry in rehearsal.curriculum.entries]
    assert {d.kind for d in decisions} == {"baseline", "leap", "consolidate"}
    assert {d.action for d in decisions} == {"commit", "hold", "rollback"}
    assert any(d.levels for d in decisions), "none that stalled kept a part"
    assert rehearsal.curriculum.state.difficulty > 0.4


@pytest.mark.parametrize("cfg", [BOLD, PUBLISHED], ids=["horizon", "paper"])
def test_summary_adds_up(cfg):
    rehearsal = run_to_end(cfg, PAPER)
    summary, entries = summarise(rehearsal), rehearsal.curriculum.entries
    trained = sum(e.evidence.iterations for e in entries)
    steps = trained * RehearsalCfg().learner.phase_env_steps
    probed = summary["env_steps"] - steps
    assert 0.01 * steps < probed < 0.1 * steps
    assert summary["env_steps"] == sum(e.evidence.env_steps for e in entries)
    assert 0 < summary["env_steps_rolled_back"] < summary["env_steps"]
    failed = [e.evidence for e in entries if e.decision.action == "rollback"]
    alone = sum(evidence.env_steps for evidence in failed)
    # HORIZON's failures go back with what was held before them.
    assert (summary["env_steps_rolled_back"] > alone) == (cfg is BOLD)
    assert summary["commits"] + summary["rollbacks"] <= summary["phases"]


@pytest.mark.parametrize("method", ["gram", "distill"])
def test_ways_to_learn_are_no_curricula_to_rehearse(method):
    message = f"{method} is a way to learn at given levels.*: rehearse fixed instead"
    with pytest.raises(InputError, match=message):
        RehearsalCfg(method=method)


def test_groups_in_which_nothing_can_be_widened_are_refused():
    still = parse_catalogue(STILL)
    for method in ("horizon", "scalar-adr", "paper"):
        with pytest.raises(InputError, match="nothing to widen in mass: limits are"):
            RehearsalCfg(method=method).make_method(still)
        RehearsalCfg(method=method, groups="disturbance").make_method(still)
    RehearsalCfg(method="fixed").make_method(still)


def test_policy_that_is_held_keeps_what_it_learnt():
    # At this rate one phase does not reach the baseline: only what adds up does.
    slow = RehearsalCfg(learner=SyntheticCfg(rate=0.1))
    entries = run_to_end(slow, PAPER).curriculum.entries
    actions = [e.decision.action for e in entries[:30]]
    assert actions[:3] == ["hold", "hold", "hold"] and "commit" in actions


def test_part_that_was_committed_is_measured_at_its_own_weights():
    """A phase on hold has moved on: it is no reference for the commit before it."""
    compared = 0
    for seed in range(5):
        entries = run_to_end(replace(BOLD, seed=seed), PAPER).curriculum.entries
        for k, entry in enumerate(entries[:-2]):
            held, after = entries[k + 1], entries[k + 2]
            if entry.decision.levels and held.decision.action == "hold":
                compared += 1
                assert after.evidence.reference_error == held.evidence.reference_error
    assert compared


def test_phases_do_not_share_their_noise():
    draws = [phase_rng(0, phase).random() for phase in range(5)]
    draws += [phase_rng(1, 0).random(), np.random.default_rng(0).random()]
    assert len(set(draws)) == 7


def test_failed_level_is_mastered_later():
    entries = run_to_end(PUBLISHED, PAPER).curriculum.entries
    failed = {
        (e.decision.frontier, e.decision.candidate)
        for e in entries
        if e.decision.action == "rollback"
    }
    mastered = {
        (e.decision.frontier, e.decision.candidate)
        for e in entries
        if e.decision.action == "commit"
    }
    assert failed & mastered


@pytest.mark.parametrize("seed", range(5))
def test_rollback_keeps_the_policy_sound_and_its_absence_ruins_it(seed):
    def final(method):
        rehearsal = run_to_end(RehearsalCfg(method=method, seed=seed), PAPER)
        baseline = dict.fromkeys(rehearsal.curriculum.state.mastered, 0.0)
        return success_rate(rehearsal.policy, baseline, rehearsal.cfg.learner)

    assert final("horizon") > 0.95
    assert final("paper") > 0.95
    assert final("no-rollback") < 0.5
    assert final("no-restore") < 0.5
    assert final("wide") < 0.5


@pytest.fixture(scope="module")
def rows():
    methods = [name for name in COMPARED if name not in SLOW]
    found = compare(RehearsalCfg(), PAPER, range(3), methods)
    return {(row.learner, row.method): row for row in found}


def test_comparison_shows_when_rollback_pays(rows):
    assert len(rows) == 3 * (len(COMPARED) - len(SLOW)) == 24
    assert rows["forgiving", "no-rollback"].all > 0.95  # No need for it there.
    for learner in ("as given", "fragile"):
        with_it, without = rows[learner, "paper"], rows[learner, "no-rollback"]
        assert with_it.baseline > 0.95 > without.baseline
        assert with_it.own > without.own
        assert without.level == 1.0  # It claims everything.
        # Gates and brackets alone do not help: the damage stays.
        assert rows[learner, "no-restore"].baseline < 0.5


def test_peers_are_compared_where_they_are_installed(monkeypatch):
    assert installed_methods() == COMPARED and {*SLOW} < {*COMPARED}
    limit = RehearsalCfg(curriculum=CurriculumCfg(max_phases=6))
    found = list(compare(limit, PAPER, [0]))
    assert [row.method for row in found] == [*COMPARED] * 3
    # The room has a function of the module's name.
    module = sys.modules["horizon_rl.rehearsal.compare"]
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert [*installed_methods(), "doraemon"] == [*COMPARED]


def steps_to(level: float, learner: str, method: str, seed: int) -> float:
    """Return the env steps, scouts and all, until the mean mastered level is `level`."""
    cfg = RehearsalCfg(method=method, seed=seed)
    cfg = replace(cfg, learner=learners(cfg.learner)[learner])
    rehearsal = Rehearsal.in_memory(cfg, PAPER)
    for _ in rehearsal.phases():
        if rehearsal.curriculum.state.difficulty >= level:
            return rehearsal.curriculum.state.env_steps
    return np.inf


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("learner", "level"), [("forgiving", 0.9), ("as given", 0.3)])
def test_leaping_pays_where_much_is_recoverable(learner, level, seed):
    leaps, steps = (steps_to(level, learner, m, seed) for m in ("horizon", "paper"))
    assert leaps < 0.5 * steps


def test_leaping_pays_at_equal_env_steps(rows):
    for learner in ("forgiving", "as given"):
        best = max(r.early for (name, _), r in rows.items() if name == learner)
        assert rows[learner, "horizon"].early > best - 0.01  # joint is as quick.
        assert rows[learner, "horizon"].early > rows[learner, "paper"].early + 0.2


def test_leaping_does_not_pay_where_scouts_survive_what_damages(rows):
    assert rows["fragile", "horizon"].area <= rows["fragile", "paper"].area
    assert rows["fragile", "horizon"].baseline > 0.95  # Rolled back, it stays sound.


def test_run_on_disk_equals_the_run_in_memory(tmp_path):
    cfg = RehearsalCfg(seed=4)
    rehearsal = Rehearsal.create(cfg, PAPER, tmp_path / "run")
    list(rehearsal.phases())
    rehearsal.close()
    in_memory = run_to_end(cfg, PAPER)
    decisions = [e.decision for e in in_memory.curriculum.entries]
    assert [e.decision for e in replay(tmp_path / "run" / JOURNAL).entries] == decisions
    assert rehearsal.policy == in_memory.policy


@pytest.mark.parametrize(
    ("method", "phases"),
    [
        *(("horizon", 25), ("paper", 25), ("adr", 15), ("scalar-adr", 15)),
        *(("doraemon", 3), ("plr", 12)),
    ],
)
def test_interrupted_after_any_phase_and_resumed_equals_uninterrupted(
    method, phases, tmp_path
):
    limit, adr = CurriculumCfg(max_phases=phases), AdrCfg(episodes=16, step=0.1)
    cfg = replace(BOLD, method=method, seed=1, curriculum=limit, adr=adr)
    whole = run_to_end(cfg, PAPER)
    rehearsal = Rehearsal.create(cfg, PAPER, tmp_path)
    for _ in range(phases):
        next(rehearsal.phases())
        rehearsal.close()
        rehearsal = Rehearsal.resume(tmp_path)
    rehearsal.close()
    assert rehearsal.policy == whole.policy
    decisions = [e.decision for e in rehearsal.curriculum.entries]
    assert decisions == [e.decision for e in whole.curriculum.entries]
    evidence = [e.evidence for e in rehearsal.curriculum.entries]
    assert evidence == [e.evidence for e in whole.curriculum.entries]
    if method.endswith("adr"):
        levels = {e.proposal.candidate for e in whole.curriculum.entries}
        assert len(levels) > 1, "it moved"


@pytest.mark.parametrize("unit", ["group", "parameter"])
def test_doraemon_widens_until_success_holds_it_back(unit):
    cfg = RehearsalCfg(
        method="doraemon",
        doraemon=DoraemonCfg(unit=unit),
        curriculum=CurriculumCfg(max_phases=12),
    )
    entries: Any = run_to_end(cfg, PAPER).curriculum.entries
    nats = [entry.proposal.nats for entry in entries]
    assert nats[-1] > nats[0] + 0.5
    seen = [np.mean(np.array(e.evidence.outcomes.length) == 1.0) for e in entries]
    assert min(seen[1:]) < 0.8 and max(seen) > 0.95


def test_every_named_checkpoint_exists_and_no_other(tmp_path):
    rehearsal = Rehearsal.create(RehearsalCfg(), PAPER, tmp_path)
    list(rehearsal.phases())
    rehearsal.close()
    named = {e.checkpoint.name for e in rehearsal.curriculum.entries if e.checkpoint}
    assert {p.name for p in (tmp_path / "checkpoints").iterdir()} == named


def test_damaged_or_missing_checkpoint_is_an_error_that_names_it(tmp_path):
    rehearsal = Rehearsal.create(RehearsalCfg(), PAPER, tmp_path)
    for _ in range(5):
        next(rehearsal.phases())
    rehearsal.close()
    last = rehearsal.curriculum.checkpoint
    assert last is not None
    file = tmp_path / "checkpoints" / last.name / "policy.json"
    file.write_text(file.read_text().replace("health", "wealth"))
    with pytest.raises(InputError, match=f"{last.name} is missing or damaged"):
        Rehearsal.resume(tmp_path)
    shutil.rmtree(file.parent)
    with pytest.raises(InputError, match=f"{last.name} is missing or damaged"):
        Rehearsal.resume(tmp_path)


def test_directory_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(InputError, match="holds no run: there is no journal"):
        Rehearsal.resume(tmp_path)
