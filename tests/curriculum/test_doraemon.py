"""DORAEMON as a method: phases, what it proposes, its journal, and bad input."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from doraemon_runs import CATALOGUE, GROUPS, evidence, method, run, shapes_at

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Doraemon,
    DoraemonCfg,
    Evidence,
    Outcomes,
    choose_method,
)
from horizon_rl.curriculum import (
    entropy as entropy_module,
)
from horizon_rl.curriculum.entropy import divergence, entropy
from horizon_rl.curriculum.method import describe, make_method, settings_of
from horizon_rl.domains import Catalogue, Range
from horizon_rl.domains.beta import BetaLevels
from horizon_rl.runs.journal import create_curriculum, replay
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps, encode


def test_it_starts_next_to_the_baseline_and_says_its_step():
    how = method(phases=41)
    proposal = how.start(GROUPS).proposal
    assert proposal.distribution == BetaLevels(dict.fromkeys(GROUPS, (1.0, 100.0)))
    assert proposal.levels == pytest.approx(dict.fromkeys(GROUPS, 0.0069), abs=1e-4)
    assert proposal.mastered == dict.fromkeys(GROUPS, 0.0)
    assert proposal.nats == pytest.approx(1.0 - 0.01 - np.log(100.0), abs=1e-4)
    assert how.outcome_parameters == GROUPS
    # 40 updates, 24 to arrive: 100 ** (-1 / 24) a step, in two groups.
    ratio = 100 ** (-1 / 24)
    assert how.max_step == pytest.approx(2 * (ratio - 1 - np.log(ratio)))
    # A little less than by Fisher's metric, whose length is ln 100 in each group.
    assert how.max_step == pytest.approx(np.log(100) ** 2 / 24**2, rel=0.08)
    assert describe(how) == (
        "DORAEMON: 2 Beta distributions, steps of at most 0.0346 nats (the budget allows "
        "40 updates)"
    )
    assert describe(method(phases=2)).endswith("(the budget allows 1 update)")


def test_it_widens_until_success_holds_it_back():
    curriculum = run(Curriculum(GROUPS, how := method()))
    entries, step = curriculum.entries, how.max_step
    assert {e.decision.action for e in entries} == {"commit"}
    moves = [divergence(shapes_at(a), shapes_at(b)) for a, b in pairwise(entries)]
    assert 0.0 < max(moves) <= step
    assert entries[-1].proposal.nats > entries[0].proposal.nats + 2.0
    seen = [np.mean(np.array(e.evidence.outcomes.length) == 1.0) for e in entries]
    assert seen[0] == 1.0 and np.mean(seen[-5:]) == pytest.approx(0.5, abs=0.05)
    assert curriculum.state.mastered == entries[-1].proposal.levels
    assert all(0.05 < level < 0.4 for level in curriculum.state.mastered.values())
    assert "episodes succeeded: widened by" in entries[3].decision.reason
    low, high = entries[-1].proposal.band_of("mass")
    assert low < entries[-1].proposal.levels["mass"] < high


def test_nothing_moves_before_enough_episodes_have_succeeded():
    how = method()
    state = how.start(GROUPS)
    start = state.proposal.shapes
    state, decision = how.step(state, evidence(state.proposal, limit=0.005))
    assert state.proposal.shapes == start and not state.succeeded
    assert "not enough yet" in decision.reason
    state, _ = how.step(state, evidence(state.proposal, limit=1.0))
    assert state.proposal.shapes != start and state.succeeded
    # Once it has, a loss of success moves the distribution back to it.
    wide = dict.fromkeys(GROUPS, (1.0, 3.0))
    state = replace(state, shapes=wide, proposal=replace(state.proposal, shapes=wide))
    narrower, decision = how.step(state, evidence(state.proposal, limit=0.1))
    assert narrower.proposal.nats < entropy(np.array([*wide.values()]).T) / 2
    assert "moved to success" in decision.reason


@pytest.mark.parametrize(
    "found",
    [
        Evidence(length=None, tracking_error=None),
        Evidence(
            length=None,
            tracking_error=None,
            outcomes=Outcomes(row=(), length=(), tracking_error=()),
        ),
    ],
)
def test_a_phase_without_episodes_or_success_changes_nothing(found):
    how = method()
    state, _ = how.step(how.start(GROUPS), found)
    assert state.proposal.shapes == how.start(GROUPS).proposal.shapes
    state = replace(state, succeeded=True)
    state, decision = how.step(state, evidence(state.proposal, limit=-1.0))
    assert state.proposal.shapes == how.start(GROUPS).proposal.shapes
    assert (
        "0.0% of 400 episodes succeeded: no success, so no direction" in decision.reason
    )
    dumps(encode(state))  # No NaN.


def test_success_is_gate_l_of_each_episode():
    how = method()
    state = how.start(GROUPS)
    good = evidence(state.proposal, limit=1.0)
    outcomes = replace(good.outcomes, tracking_error=(0.51,) * 400)
    state, decision = how.step(state, replace(good, outcomes=outcomes))
    assert "0.0% of 400" in decision.reason


def test_its_journal_replays_and_its_settings_are_on_record(tmp_path):
    how = method(phases=6, min_success=0.6)
    curriculum = run(create_curriculum(tmp_path / "journal.jsonl", GROUPS, how))
    so_far = replay(tmp_path / "journal.jsonl")
    assert so_far.state == curriculum.state
    assert so_far.entries == tuple(curriculum.entries)
    assert so_far.header.make_method() == how
    assert make_method("doraemon", how.cfg, settings_of(how)) == how
    assert run(Curriculum(GROUPS, how)).state == curriculum.state
    curriculum.close()


def test_a_solver_that_stops_a_little_elsewhere_is_no_damage(tmp_path, monkeypatch):
    path, how = tmp_path / "journal.jsonl", method(phases=6)
    run(create_curriculum(path, GROUPS, how)).close()
    solved = entropy_module.minimise

    def changed(factor):
        def minimise(*given):
            return solved(*given) * factor

        monkeypatch.setattr(entropy_module, "minimise", minimise)

    changed(1.0 - 1e-7)
    assert len(replay(path).entries) == 6
    changed(0.99)
    with pytest.raises(InputError, match="another shapes"):
        replay(path)


def test_parameters_may_have_distributions_of_their_own():
    how = method(phases=5, unit="parameter")
    curriculum = run(Curriculum(GROUPS, how), limit=0.1)
    names = [n for n in CATALOGUE.parameters if n.partition(".")[0] in GROUPS]
    assert sorted(curriculum.entries[-1].proposal.shapes) == sorted(names)
    assert how.outcome_parameters == GROUPS
    assert curriculum.state.mastered.keys() == set(GROUPS)
    first, *_, last = (entropy(shapes_at(e)) for e in curriculum.entries)
    assert last > first


def test_a_group_without_width_is_refused():
    point = Range(1.0, 1.0)
    fixed = tuple(
        replace(p, baseline=point, limit=point) for p in CATALOGUE["mass"].parameters
    )
    mass = replace(CATALOGUE["mass"], parameters=fixed)
    how = method(catalogue=Catalogue((mass, CATALOGUE["com"])))
    with pytest.raises(InputError, match="nothing to widen in mass"):
        how.start(GROUPS)


def test_bad_input_is_refused_in_words():
    with pytest.raises(InputError, match="before one update of DORAEMON"):
        method(phases=1).start(GROUPS)
    for name, value in (("min_success", 1.1), ("step", -0.1), ("start", 1.0)):
        with pytest.raises(InputError, match="accepted"):
            replace(DoraemonCfg(), **{name: value})
    how = method()
    state = how.start(GROUPS)
    outcomes = Outcomes(
        row=(0,), length=(1.0,), tracking_error=(0.1,), values=((0.1,),)
    )
    with pytest.raises(InputError, match="a level for each of mass, com"):
        how.step(state, Evidence(length=1.0, tracking_error=0.1, outcomes=outcomes))


def test_a_step_of_one_s_own_and_a_short_run():
    assert method(step=0.02).max_step == 0.02
    assert method(phases=2).max_step == 0.5
    assert method(phases=1000).max_step < 1e-4
    # Without a budget of env steps, as if for 40 updates.
    assert Doraemon(plan=replace(method().plan, phases=0)).max_step == pytest.approx(
        method(phases=41).max_step
    )


def test_it_is_chosen_by_its_name():
    cfg = CurriculumCfg()
    assert choose_method("doraemon", cfg) == Doraemon(cfg=cfg)


def test_without_scipy_the_room_imports_and_the_method_says_what_it_needs():
    code = (
        "import sys; sys.modules['scipy'] = None; sys.modules['scipy.special'] = None\n"
        "from horizon_rl.curriculum import Curriculum, Doraemon, Plan\n"
        "from horizon_rl.domains import paper_catalogue\n"
        "Curriculum(['mass'])\n"
        "plan = Plan.of(paper_catalogue(), ['mass'], phases=9, episodes=9)\n"
        "try: Doraemon(plan=plan).start(['mass'])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("InputError this needs scipy")
    assert "-e '.[doraemon]'" in found.stdout


def test_levels_beyond_the_limit_are_refused():
    how = method()
    state = how.start(GROUPS)
    good = evidence(state.proposal, limit=1.0)
    values = ((1.2, 0.1), *good.outcomes.values[1:])
    with pytest.raises(InputError, match=r"a level of 1\.2; accepted: 0\.\.1"):
        how.step(state, replace(good, outcomes=replace(good.outcomes, values=values)))
