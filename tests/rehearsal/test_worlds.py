"""The synthetic learner in the loop: measured with noise, repeatably."""

from dataclasses import replace

import numpy as np
import pytest

from horizon_rl.curriculum import Evidence, Horizon, ProbeSet
from horizon_rl.domains import AtBounds, InRanges, paper_catalogue
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.rehearsal import (
    Rehearsal,
    RehearsalCfg,
    SyntheticCfg,
    SyntheticPolicy,
)
from horizon_rl.rehearsal.synthetic import FALLEN, perform
from horizon_rl.rehearsal.worlds import EPISODES, SyntheticLearner, SyntheticWorlds
from horizon_rl.support.errors import InputError

CFG = SyntheticCfg(ceiling_low=1.0, ceiling_high=1.0)
POLICY = SyntheticPolicy(skill={"mass": 0.3}, ceiling={"mass": 1.0})
LEVELS = {"mass": 0.35}


def probe(policy: SyntheticPolicy, sets: dict[str, ProbeSet], noise: float, phase=1):
    """Return what probes show in a phase at LEVELS."""
    worlds = SyntheticWorlds(replace(CFG, noise=noise), seed=1)
    worlds.begin(phase, AtLevels(LEVELS))
    return worlds.max_length, worlds.probe(policy, sets)


def measure(seed: int, phase: int = 1, noise: float = CFG.noise) -> list[float]:
    """Return what an episode and the probes of a phase show."""
    worlds = SyntheticWorlds(replace(CFG, noise=noise), seed)
    worlds.begin(phase, AtLevels(LEVELS))
    worlds.step(POLICY)
    sets = {name: ProbeSet(0, AtLevels(LEVELS)) for name in ("candidate", "checkpoint")}
    found = worlds.probe(POLICY, sets)
    episodes = [worlds.episodes().length, worlds.episodes().tracking_error]
    episodes[0] = episodes[0] / worlds.max_length
    probes = [x for n in sets for x in (found[n].tracking_error, found[n].returns)]
    return np.concatenate(episodes + probes).tolist()


def test_measurements_are_noisy_but_repeatable():
    assert measure(1) == measure(1)
    assert measure(1) != measure(2)
    assert measure(1, phase=1) != measure(1, phase=2)
    length, error, value = perform(POLICY, LEVELS, CFG)
    expected = [length, error, error, value, error, value]
    assert measure(1, noise=0.0) == pytest.approx(expected, rel=1e-12)


def test_comparison_is_paired():
    """Only the current policy on the checkpoint's scenarios is measured with noise."""
    _, _, error, value, noisy_error, noisy_value = measure(1)
    assert (error, value) == perform(POLICY, LEVELS, CFG)[1:]
    assert noisy_error != error and noisy_value != value


def test_probes_show_how_long_the_policy_lasts():
    sets = {f"at {x}": ProbeSet(1, AtLevels({"mass": x})) for x in (0.0, 0.35, 1.0)}
    longest, found = probe(POLICY, sets, noise=0.0)
    lengths = [float(each.length[0]) / longest for each in found.values()]
    expected = [perform(POLICY, {"mass": x}, CFG)[0] for x in (0.0, 0.35, 1.0)]
    assert lengths == pytest.approx(expected) and lengths[0] > 0.98 > 0.25 > lengths[2]


def test_sets_of_one_phase_share_their_noise_whenever_they_are_probed():
    sets = {f"at {x}": ProbeSet(1, AtLevels({"mass": x})) for x in (0.35, 0.4)}
    off = []
    for phase in (1, 7):
        longest, noisy = probe(POLICY, sets, CFG.noise, phase)
        _, plain = probe(POLICY, sets, 0.0, phase)
        off += [float(noisy[k].length[0] - plain[k].length[0]) / longest for k in sets]
    assert off == pytest.approx(off[:1] * 4, abs=1e-9) and off[0] != 0.0


def test_phase_after_a_commit_has_its_reference_and_scouts():
    method = Horizon()
    state, _ = method.step(
        method.start(["mass"]),
        Evidence(
            length=1.0, tracking_error=0.0, candidate_error=0.2, candidate_return=9.0
        ),
    )
    assert state.reference is not None
    assert (state.reference.error, state.reference.value) == (0.2, 9.0)
    scouts = {f"beyond {rung:g}" for rung in (0.0, *method.leap.rungs)}
    assert set(state.probes) == {"anchor", "candidate", "checkpoint"} | scouts
    _, found = probe(POLICY, state.probes, CFG.noise)
    assert found.keys() == state.probes.keys()


def test_scouts_and_probes_are_booked():
    """Baseline: a look before training and one after, 2 + 4 sets each."""
    cfg = SyntheticCfg(noise=0.0, phase_env_steps=1000, probe_env_steps=100)
    rehearsal = Rehearsal.in_memory(RehearsalCfg(learner=cfg), paper_catalogue())
    entry = next(rehearsal.phases())
    assert entry.evidence.probes == 2
    lasts = [entry.evidence.probed["beyond 0.1_length"] * 100]
    assert 1000 + sum(lasts) < entry.evidence.env_steps <= 1000 + 2 * 6 * 100


def test_learner_trains_a_phase_in_one_iteration_and_is_restored():
    worlds, learner = SyntheticWorlds(CFG, 0), SyntheticLearner(POLICY, CFG)
    before = learner.snapshot()
    worlds.begin(0, AtLevels(LEVELS))
    learner.iterate(worlds)
    assert learner.policy.skill["mass"] > POLICY.skill["mass"]
    assert learner.steps_per_iteration == CFG.phase_env_steps
    learner.restore(before)
    assert learner.policy == POLICY


def single_episodes(distribution, groups, policy=POLICY, phase=1):
    worlds = SyntheticWorlds(CFG, seed=1)
    worlds.begin(phase, distribution)
    worlds.step(policy)
    return worlds, worlds.episodes(groups)


def test_single_episodes_fall_as_often_as_their_levels_say():
    worlds, found = single_episodes(AtLevels(LEVELS), ())
    length, error, _ = perform(POLICY, LEVELS, CFG)
    lasted = found.length / worlds.max_length
    assert set(np.round(lasted, 9)) == {FALLEN, 1.0}
    assert np.mean(lasted) == pytest.approx(length, abs=0.08)
    assert np.mean(found.tracking_error) == pytest.approx(error, abs=0.005)
    assert found.values is not None and found.values.shape == (EPISODES, 0)
    assert found.world is not None and found.world.tolist() == list(range(EPISODES))


def test_single_episodes_have_their_marks_and_their_own_levels():
    wide = AtBounds({"mass": 0.6}, share=0.5)
    worlds, found = single_episodes(wide, ("bound",))
    assert found.values is not None
    at_bound = found.values[:, 0] == 1.0
    assert 0.4 < at_bound.mean() < 0.6
    lasted = found.length / worlds.max_length
    assert lasted[at_bound].mean() < 0.3 < 0.6 < lasted[~at_bound].mean()
    assert worlds.levels["mass"] == pytest.approx(0.6), "what it is trained at"
    _, again = single_episodes(wide, ("bound",))
    np.testing.assert_array_equal(found.length, again.length)


def test_marks_that_are_not_there_are_refused():
    with pytest.raises(InputError, match="marks of groups only, not mass.scale"):
        single_episodes(AtLevels(LEVELS), ("mass.scale",))


def test_distribution_without_levels_is_refused():
    with pytest.raises(InputError, match="levels only, not InRanges"):
        SyntheticWorlds(CFG, 0).begin(0, InRanges({}))
