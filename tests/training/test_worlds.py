"""Our worlds: what a phase draws, and probes that are fair and disturb nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_runs import (
    LENIENT,
    STORM,
    actions,
    assert_same,
    create,
    finish,
    read_evidence,
    resume,
    stormy,
    tiny,
    weights,
)

from horizon_rl.curriculum import (
    Curriculum,
    LeapCfg,
    ProbeSet,
    Verdict,
    select_window,
)
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning import Ppo
from horizon_rl.robots import load_preset, preset_names
from horizon_rl.support.errors import InputError
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.worlds import SimulatedWorlds, _key, choose_robots

STRICT = replace(LENIENT, error_margin=0.0, return_margin=0.0)


def assert_equal(a: ProbedEpisodes, b: ProbedEpisodes) -> None:
    for name in ("length", "tracking_error", "returns"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)


def make(cfg: TrainCfg) -> tuple[SimulatedWorlds, TorchLearner]:
    worlds = SimulatedWorlds(cfg, STORM, "cpu")
    return worlds, TorchLearner(worlds, STORM)


def sets_of(phase: int, checkpoint: int | None = None, **levels) -> dict[str, ProbeSet]:
    """Return what to probe in a phase; the levels of a phase follow from its number."""
    sets = {
        "anchor": ProbeSet(None, AtLevels({})),
        "candidate": ProbeSet(phase, AtLevels({"com": 0.1 * phase, **levels})),
    }
    if checkpoint is not None:
        mastered = AtLevels({"com": 0.1 * checkpoint})
        sets["checkpoint"] = ProbeSet(checkpoint, mastered)
    return sets


# Probes.


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_policy_measured_as_candidate_and_as_checkpoint_is_the_same_to_the_bit(policy):
    worlds, learner = make(tiny(policy))
    checkpoint, expected = None, None
    for number in range(6):
        sets = sets_of(number, checkpoint)
        if number % 2:  # Wherever its rows are.
            sets = dict(reversed(sets.items()))
        found = worlds.probe(learner.policy, sets)
        assert found.keys() == sets.keys()
        if expected is not None:
            assert_equal(found["checkpoint"], expected)
            assert (found["candidate"].returns != expected.returns).all()
        if number in (0, 1, 3, 4):  # The others are rolled back.
            checkpoint, expected = number, found["candidate"]


def test_run_that_learns_nothing_never_fails_against_itself(tmp_path, monkeypatch):
    def learn_nothing(self) -> dict[str, float]:
        self.storage.clear()
        return {}

    monkeypatch.setattr(Ppo, "update", learn_nothing)
    run = create(tiny(gates=STRICT, max_phases=6), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit"] * 6
    for entry in entries[1:]:
        found = entry.evidence
        assert found.checkpoint_error == found.reference_error
        assert found.checkpoint_return == found.reference_return
    assert len({entry.evidence.candidate_error for entry in entries}) == 6
    assert len({entry.evidence.anchor_return for entry in entries}) == 1


def test_reference_measured_again_after_a_resume_is_the_one_on_record(tmp_path):
    """The scenarios are drawn again from the journal alone."""
    finish(create(stormy(), tmp_path))
    run = resume(tmp_path)
    reference = run.curriculum.state.reference
    assert reference is not None and reference.phase == 4
    sets = {
        "candidate": ProbeSet(5, AtLevels({"disturbance": 0.1, "com": 1.0})),
        "checkpoint": ProbeSet(reference.phase, reference.distribution),
    }
    found = run.worlds.probe(run.learner.policy, sets)["checkpoint"]
    kept = read_evidence(tmp_path, 4)
    np.testing.assert_array_equal(found.returns, kept["candidate_return"])
    assert np.mean(found.tracking_error, dtype=np.float64) == reference.error


def test_scenarios_of_probes_and_of_training_are_disjoint():
    # As many of each: from the same stream they would be the same.
    worlds, learner = make(tiny(rows_per_env=1, anchor_scenarios=8))
    drawn = {}
    for number in range(4):
        worlds.probe(learner.policy, sets_of(number, 0 if number else None))
        levels = AtLevels({"com": 0.1 * number})
        drawn[f"training {number}"] = worlds._draw(number, levels).scenarios
        drawn |= {f"probe {stream}": s for stream, s in worlds._probe_sets.items()}
    assert len(drawn) == 4 + 4 + 1
    starts = np.concatenate([s.pool.start_qvel for s in drawn.values()])
    assert len(np.unique(starts, axis=0)) == len(starts)


def test_scouts_at_the_candidates_levels_keep_their_scenarios_from_look_to_look():
    """So close to the limit may a candidate be that a rung rounds to it."""
    worlds, learner = make(tiny(method="horizon", scout_scenarios=4))
    sets = sets_of(1)
    sets["beyond 0.1"] = ProbeSet(1, sets["candidate"].distribution)
    first, second = (worlds.probe(learner.policy, sets) for _ in range(2))
    for name in sets:
        assert_equal(first[name], second[name])


@pytest.mark.parametrize(("method", "scouted"), [("horizon", 6), ("paper", 0)])
def test_only_horizon_has_worlds_for_scouts(method, scouted):
    leap = LeapCfg(rungs=(0.5, 1.0))
    worlds, _ = make(tiny(method=method, scout_scenarios=10, leap=leap))
    assert worlds._probe_env is not None
    assert worlds._probe_env.num_envs == 4 + 2 * 8 + 10 * scouted


def test_probe_stays_within_its_levels():
    worlds, learner = make(tiny(probe_scenarios=64, anchor_scenarios=64))
    sets = {
        "anchor": ProbeSet(None, AtLevels({"mass": 0.0, "com": 0.0})),
        "checkpoint": ProbeSet(1, AtLevels({"mass": 0.5, "com": 0.5})),
        "candidate": ProbeSet(3, AtLevels({"mass": 1.0, "com": 0.5})),
    }
    worlds.probe(learner.policy, sets)
    heaviest = [
        s.pool.instances["mass.scale"].max() for s in worlds._probe_sets.values()
    ]
    anchor, checkpoint, candidate = heaviest
    assert anchor <= 1.1 < checkpoint <= 3.05 < candidate <= 5.0


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_probing_does_not_disturb_training(policy, tmp_path):
    probed = create(tiny(policy, method="base"), tmp_path / "probed")
    cfg = tiny(policy, method="base", probe_scenarios=0, anchor_scenarios=0)
    plain = create(cfg, tmp_path / "plain")
    finish(probed)
    finish(plain)
    assert_same(weights(probed), weights(plain))


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_probing_in_mid_phase_does_not_disturb_training(policy, tmp_path, monkeypatch):
    """Looks that settle nothing, with probes that would end a phase if they could."""
    plain = create(tiny(policy, phase_iterations=8), tmp_path / "plain")
    finish(plain)
    cfg = tiny(policy, phase_iterations=8)
    cfg = replace(cfg, early=replace(cfg.early, looks=(0.5, 0.75), min_episodes=2))
    failed = Verdict(feasible=False, preserved=None, score=0.0, reason="")
    decide = Curriculum.decide
    monkeypatch.setattr(
        Curriculum, "decide", lambda *args: replace(decide(*args), verdict=failed)
    )
    looked = create(cfg, tmp_path / "looked")
    finish(looked)
    steps = [r.curriculum.state.env_steps for r in (plain, looked)]
    assert steps[1] > steps[0]
    assert_same(weights(looked), weights(plain))


def test_probes_leave_the_normalisers_alone():
    worlds, learner = make(tiny())
    actor = learner.algorithm.actor
    before = {k: v.clone() for k, v in actor.state_dict().items()}
    worlds.probe(learner.policy, sets_of(0))
    after = actor.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


# Phases.


def test_phase_drawn_ahead_is_the_one_drawn_on_time(tmp_path):
    on_time, ahead = create(tiny(), tmp_path / "a"), create(tiny(), tmp_path / "b")
    finish(on_time)
    worlds, drawn, draw, waited = ahead.worlds, [], ahead.worlds._draw, []

    def prepare(phase, distribution):
        drawn.append(_key(phase, distribution))
        with ThreadPoolExecutor() as worker:
            worlds._drawn_ahead[drawn[-1]] = worker.submit(draw, phase, distribution)

    def draw_now(phase, distribution):
        waited.append(phase)
        return draw(phase, distribution)

    worlds.prepare, worlds._draw = prepare, draw_now
    finish(ahead)
    assert waited == [0], "what was drawn ahead is taken"
    tried = [entry.proposal for entry in ahead.curriculum.entries]
    assert {_key(p.phase, p.distribution) for p in tried[1:]} < set(drawn)
    assert_same(weights(ahead), weights(on_time))


def test_staggered_worlds_begin_at_random_ages_of_an_episode_that_does_not_count():
    worlds, learner = make(tiny(stagger=True, num_envs=64))

    def ages(phase: int) -> list[int]:
        worlds.begin(phase, AtLevels({}))
        return worlds.env.episode_length_buf.tolist()

    assert set(ages(1)) == set(range(worlds.max_length))
    assert ages(1) == ages(1) != ages(2)
    begun = np.array(ages(3))
    learner.begin(worlds)
    for _ in range(4):
        learner.iterate(worlds)
    found = worlds.episodes()
    under_way = found.start < 0
    assert under_way.sum() == (begun > 0).sum()
    fair = select_window(found, phase_steps=20, max_length=8, window=999)
    assert 0 < len(fair) <= (~under_way).sum() and (fair.start >= 0).all()
    assert len(np.unique(fair.start)) > 3, "they end at any time"


def test_episodes_know_their_rows_and_the_values_asked_for():
    worlds, learner = make(tiny(rows_per_env=1))
    worlds.begin(0, AtLevels({"mass": 1.0}))
    learner.begin(worlds)
    for _ in range(4):
        learner.iterate(worlds)
    plain = worlds.episodes()
    found = worlds.episodes(("mass.scale", "actuation.stiffness"))
    assert plain.row is None and plain.values is None
    assert found.row is not None and found.values is not None
    np.testing.assert_array_equal(found.start, plain.start)
    assert worlds._scenarios is not None
    mass = worlds._scenarios.pool.instances["mass.scale"][found.row]
    limit = STORM.parameters["mass.scale"].limit
    middle, half = (limit.low + limit.high) / 2, (limit.high - limit.low) / 2
    np.testing.assert_allclose(found.values[:, 0], (mass - middle) / half, atol=1e-6)
    assert len(set(found.row.tolist())) > 1


def test_robots_are_chosen_by_name():
    rng = np.random.default_rng(0)
    assert [r.name for r in choose_robots(tiny(robot="a1"), rng)] == ["a1"]
    assert len(choose_robots(tiny(robot="generated", num_bodies=3), rng)) == 3
    mixed = [r.name for r in choose_robots(tiny(robot="mixed", num_bodies=2), rng)]
    assert mixed.count("go2") == len(mixed) // 2
    with pytest.raises(InputError, match="did you mean 'go2'.*or generated, mixed"):
        choose_robots(tiny(robot="go3"), rng)


def test_training_on_generated_bodies_holds_all_presets_out():
    cfg = TrainCfg(robot="generated", num_bodies=64)
    robots = choose_robots(cfg, np.random.default_rng(cfg.seed))
    assert [r.name for r in robots] == [f"generated-{i}" for i in range(64)]
    measures = ("body_mass_kg", "thigh_length_m", "calf_length_m", "standing_height_m")
    built = np.array([[getattr(r, m) for m in measures] for r in robots])
    for name in preset_names():
        real = np.array([getattr(load_preset(name), m) for m in measures])
        nearest = np.abs(np.log(built / real)).max(axis=1).min()
        assert nearest > 0.01, f"a body is {name} within {nearest:.1%}"


@pytest.mark.parametrize(
    ("robot", "message"),
    [("no.xml", "no.xml"), ("packhorse", "or an MJCF file, .*or generated, mixed")],
)
def test_what_is_no_robot_is_refused(robot, message):
    with pytest.raises(InputError, match=message):
        choose_robots(tiny(robot=robot), np.random.default_rng(0))
