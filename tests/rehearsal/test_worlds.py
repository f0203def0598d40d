"""The synthetic learner in the loop: measured with noise, repeatably."""

from dataclasses import replace

import numpy as np
import pytest

from horizon_rl.curriculum import Evidence, Horizon, ProbeSet
from horizon_rl.domains import InRanges
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.rehearsal import SyntheticCfg, SyntheticPolicy
from horizon_rl.rehearsal.synthetic import perform
from horizon_rl.rehearsal.worlds import SyntheticLearner, SyntheticWorlds
from horizon_rl.support.errors import InputError

CFG = SyntheticCfg(ceiling_low=1.0, ceiling_high=1.0)
POLICY = SyntheticPolicy(skill={"mass": 0.3}, ceiling={"mass": 1.0})
LEVELS = {"mass": 0.35}


def measure(seed: int, phase: int = 1, noise: float = CFG.noise) -> list[float]:
    """Return what an episode and the probes of a phase show."""
    worlds = SyntheticWorlds(replace(CFG, noise=noise), seed)
    worlds.begin(phase, AtLevels(LEVELS))
    worlds.step(POLICY)
    sets = {name: ProbeSet(0, AtLevels(LEVELS)) for name in ("candidate", "checkpoint")}
    found = worlds.probe(POLICY, sets)
    episodes = [worlds.episodes().length, worlds.episodes().tracking_error]
    probes = [x for n in sets for x in (found[n].tracking_error, found[n].returns)]
    return np.concatenate(episodes + probes).tolist()


def test_measurements_are_noisy_but_repeatable():
    assert measure(1) == measure(1)
    assert measure(1) != measure(2)
    assert measure(1, phase=1) != measure(1, phase=2)
    length, error, value = perform(POLICY, LEVELS, CFG)
    assert measure(1, noise=0.0) == [
        length,
        *2 * (error, value)[:1],
        value,
        error,
        value,
    ]


def test_comparison_is_paired():
    """Only the current policy on the checkpoint's scenarios is measured with noise."""
    _, _, error, value, noisy_error, noisy_value = measure(1)
    assert (error, value) == perform(POLICY, LEVELS, CFG)[1:]
    assert noisy_error != error and noisy_value != value


def test_phase_after_a_commit_has_its_reference():
    method = Horizon()
    state, _ = method.step(
        method.start(["mass"]),
        Evidence(
            length=1.0, tracking_error=0.0, candidate_error=0.2, candidate_return=9.0
        ),
    )
    assert state.reference is not None
    assert (state.reference.error, state.reference.value) == (0.2, 9.0)
    assert set(state.probes) == {"anchor", "candidate", "checkpoint"}
    worlds = SyntheticWorlds(CFG, 0)
    worlds.begin(1, AtLevels(LEVELS))
    assert set(worlds.probe(POLICY, state.probes)) == {"candidate", "checkpoint"}


def test_learner_trains_a_phase_in_one_iteration_and_is_restored():
    worlds, learner = SyntheticWorlds(CFG, 0), SyntheticLearner(POLICY, CFG)
    before = learner.snapshot()
    worlds.begin(0, AtLevels(LEVELS))
    learner.iterate(worlds)
    assert learner.policy.skill["mass"] > POLICY.skill["mass"]
    assert learner.steps_per_iteration == CFG.phase_env_steps
    learner.restore(before)
    assert learner.policy == POLICY


def test_distribution_without_levels_is_refused():
    with pytest.raises(InputError, match="levels only, not InRanges"):
        SyntheticWorlds(CFG, 0).begin(0, InRanges({}))
