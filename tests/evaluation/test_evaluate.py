"""Evaluations: what is counted is what happened, to the bit, and only once."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tables import assert_equal, constant, head, table_of

from horizon_rl.evaluation import evaluate as evaluate_module
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluation, Evaluator, side_by_side
from horizon_rl.evaluation.lanes import Lanes
from horizon_rl.evaluation.results import success_table, summaries, to_json
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.physics import CpuBackend
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import EvaluatedPolicy, as_policy, load_policy
from horizon_rl.policies.onnx_graph import to_onnx
from horizon_rl.support.errors import InputError
from horizon_rl.task import SuccessCfg, VelocityEnv, succeeded
from horizon_rl.task.rollouts import SLICE

STILL = """
episodes = 6
[task]
episode_s = 1.0
command = { max_speed = 0.0, max_yaw_rate = 0.0 }
"""


# What is counted.


def test_policy_that_folds_its_legs_scores_0(make_suite, run):
    result = run(constant(0.0, 6.0, -8.0), make_suite(STILL + "[columns]\na = {}"))
    found = summaries(result)["a"]
    assert (
        found["success"] == 0.0
        and found["falls"]["trunk"] == 1.0
        and found["length"] < 0.5
    )
    assert (result.columns["a"].length < 50).all()


def test_standing_where_no_motion_is_asked_for_scores_1(make_suite, run):
    result = run("stand", make_suite(STILL + "[columns]\na = {}"))
    found = summaries(result)["a"]
    assert found["success"] == 1.0 and found["tracking_error"] < 0.2
    # The time is up: that is no fall.
    assert (result.columns["a"].length == 50).all()
    assert (result.columns["a"].cause == 0).all()
    assert set(found["falls"].values()) == {0.0} and found["length"] == 1.0


def test_first_episode_alone_counts(make_suite, run):
    result = run(constant(0.0, 6.0, -8.0), make_suite(STILL + "[columns]\na = {}"))
    table = result.columns["a"]
    # They fell early and began again, until the time was up.
    assert table.row.tolist() == list(range(6))
    assert (table.start == 0).all()


def test_recorded_push_comes_at_its_time_with_its_velocity(make_suite):
    suite = make_suite("""
        episodes = 3
        [task]
        episode_s = 0.6
        push = { min_interval_s = 0.1, max_interval_s = 0.3 }
        [columns]
        a.parameters.disturbance.push_velocity = [[0.4, 1.0], [-1.0, -0.4], 0.7, 0.0]
    """)
    column = suite.frozen["a"]
    jumps = []

    class Spy(CpuBackend):
        def push(self, velocity):
            before = self.state.linear_velocity.clone()
            super().push(velocity)
            jumps.append((self.state.linear_velocity - before).numpy())

    env = VelocityEnv(Spy(column.robot, 3), suite.task)
    env.begin(column.scenarios(3), 0, torch.arange(3))
    for _ in range(suite.task.max_steps):
        env.step(torch.zeros((3, 12)))
    expected = np.zeros((suite.task.max_steps, 3, 3))
    drawn = column.instances["disturbance.push_velocity"].reshape(3, 2, 2)
    for world in range(3):
        for push in range(2):
            step = column.push_steps[world, push]
            assert 0 <= step <= 30
            if step < len(expected):
                expected[step, world, :2] += drawn[world, push]
    np.testing.assert_allclose(np.stack(jumps), expected, atol=1e-6)
    assert (env.episodes.first(3).length == suite.task.max_steps).all()
    assert (np.abs(expected).sum(axis=(0, 2)) > 0.8).all()


def test_push_is_felt(make_suite, run):
    text = """
        episodes = 4
        [task]
        episode_s = 0.3
        command = { max_speed = 0.0, max_yaw_rate = 0.0 }
        push = { min_interval_s = 0.1, max_interval_s = 0.1 }
        [columns]
        soft.parameters.disturbance.push_velocity = 0.0
        hard.parameters.disturbance.push_velocity = [2.0, 0.0, 0.0, 0.0]
    """
    tables = run("stand", make_suite(text)).columns
    assert (tables["hard"].tracking_error > tables["soft"].tracking_error + 0.1).all()


def test_success_is_long_enough_and_close_enough():
    table = table_of([1000, 950, 949, 1000, 1000], [0.1, 0.39, 0.1, 0.41, 0.39])
    assert succeeded(table, 1000).tolist() == [True, True, False, False, True]
    suite = load_suite("ood")
    evaluation = Evaluation(load_policy("stand"), suite, {"all": table})
    found = summaries(evaluation)["all"]
    assert found["success"] == 0.6 and found["episodes"] == 5
    assert found["length"] == pytest.approx(4.899 / 5) and found["yaw_error"] == 0.5
    assert found["tracking_error"] == pytest.approx(1.39 / 5)
    assert found["falls"] == {"trunk": 0.4, "tilt": 0.0, "unhealthy": 0.0}
    assert found["interval"]["low"] < 0.6 < found["interval"]["high"]
    # Within 0.2 m/s are the first and the third, which is too short.
    assert found["close"] == 0.2
    far = replace(suite, success=SuccessCfg(close_error=0.5))
    assert summaries(replace(evaluation, suite=far))["all"]["close"] == 0.6
    strict = replace(suite, success=SuccessCfg(min_length=1.0, max_error=0.2))
    assert summaries(replace(evaluation, suite=strict))["all"]["success"] == 0.2


def test_success_over_columns_leaves_the_control_out():
    tables = {"none": table_of([1000], [0.1]), "mass": table_of([1000], [0.5])}
    evaluation = Evaluation(load_policy("stand"), load_suite("ood"), tables)
    assert success_table(evaluation).tolist() == [[False]]
    alone = Evaluation(evaluation.policy, evaluation.suite, {"none": tables["none"]})
    assert success_table(alone).tolist() == [[True]]


def test_thresholds_are_the_suites(make_suite, run):
    lenient = make_suite(STILL + "[columns]\na = {}")
    strict = replace(lenient, success=SuccessCfg(max_error=0.0))
    assert success_table(run("stand", lenient)).all()
    assert not success_table(run("stand", strict)).any()


def test_action_scale_is_the_checkpoints_else_the_suites(
    make_suite, make_checkpoint, run
):
    suite = make_suite()
    doubled = replace(suite, task=replace(suite.task, action_scale=0.5))
    same = run(make_checkpoint(), suite, 2), run(make_checkpoint(), doubled, 2)
    assert_equal(same[0].columns["plain"], same[1].columns["plain"])
    wider = run(make_checkpoint(action_scale=0.5), suite, 2).columns["plain"]
    assert (wider.returns != same[0].columns["plain"].returns).all()
    half, full = constant(0.0, 0.5, -1.0), constant(0.0, 1.0, -2.0)
    a, b = run(half, doubled, 2), run(full, suite, 2)
    np.testing.assert_allclose(
        a.columns["plain"].tracking_error, b.columns["plain"].tracking_error, atol=1e-5
    )


def test_more_episodes_than_there_are_is_refused(make_suite, run):
    for n in (0, 7, -1):
        with pytest.raises(InputError, match=r"accepted: whole numbers, 1\.\.6"):
            run("stand", make_suite(), n)


def test_columns_that_are_alike_run_once(make_suite, run, monkeypatch):
    calls = []

    class Spy(Lanes):
        def begin(self, *args, **named):
            calls.append(1)
            super().begin(*args, **named)

    monkeypatch.setattr(evaluate_module, "Lanes", Spy)
    text = "episodes = 2\n[task]\nepisode_s = 0.1\n[columns]\na = {}\nb = {}"
    result = run("stand", make_suite(text + "\nc.parameters.mass.scale = 2.0"))
    assert len(calls) == 2
    assert_equal(result.columns["a"], result.columns["b"])
    assert list(result.columns) == ["a", "b", "c"]


def test_progress_ends_when_all_is_done(make_suite, run, small_chunk):
    told: list[tuple[str, int, int]] = []
    run("stand", make_suite(), progress=lambda *what: told.append(what))
    done = [steps for _, steps, _ in told]
    assert done == sorted(done) and done[-1] == 2 * 6 * 10
    assert {total for *_, total in told} == {120}
    assert [told[0][0], told[-1][0]] == ["plain", "heavy"]


# To the bit.


@pytest.fixture
def policies(make_checkpoint, tmp_path):
    """Return policies of every kind."""
    found = {kind: load_policy(str(make_checkpoint(kind))) for kind in ACTOR_KINDS}
    for kind in ACTOR_KINDS:
        path = tmp_path / f"{kind}.onnx"
        path.write_bytes(to_onnx(load_actor(make_checkpoint(kind))[0]))
        found[f"{kind}.onnx"] = load_policy(str(path))
    found["stand"] = load_policy("stand")
    gain = np.random.default_rng(0).normal(size=(45, 12)).astype(np.float32)
    function = as_policy(lambda obs: np.tanh(obs @ gain))
    found["function"] = EvaluatedPolicy("f", lambda _: function, is_shared=True)
    return found


ACTOR_KINDS = ("mlp", "transformer")


def test_results_repeat_to_the_bit_however_many_run_and_on_any_threads(
    policies, make_suite, run, small_chunk
):
    suite = make_suite("""
        episodes = 11
        [task]
        episode_s = 0.3
        [columns]
        a.groups = ["all"]
    """)
    for policy in policies.values():
        whole = run(policy, suite).columns["a"]
        assert len(whole) == 11 and len(set(whole.returns.tolist())) == 11
        # Two blocks: one lane for one thread, two lanes for two and for three.
        for threads in (2, 3):
            assert_equal(run(policy, suite, threads=threads).columns["a"], whole)
        # Less than a block, a whole one, across its border and that of a chunk.
        for n in (1, 3, 4, 6, 8, 9):
            assert_equal(run(policy, suite, n).columns["a"], head(whole, n))


def test_policy_that_fails_in_one_lane_stops_the_others(make_suite, run, small_chunk):
    made = []

    class Failing:
        def __init__(self):
            self.acts, self.fails = 0, len(made) == 1
            made.append(self)

        def reset(self, mask):
            pass

        def act(self, observations):
            self.acts += 1
            if self.fails and self.acts == 3:
                raise InputError("no action")
            return torch.zeros((len(observations), 12))

    suite = make_suite("episodes=8\n[task]\nepisode_s=4.0\n[columns]\na={}")
    with pytest.raises(InputError, match="no action"):
        run(EvaluatedPolicy("own", lambda device: Failing()), suite, threads=2)
    (other, failed) = (each.acts for each in made)
    assert failed == 3 and other < SLICE


def test_policy_with_one_memory_meets_one_block_at_a_time(make_suite, run, small_chunk):
    class Counting:
        acts = 0

        def reset(self, mask):
            if mask.all():
                self.acts = 0

        def act(self, observations):
            self.acts += 1
            return torch.full((len(observations), 12), 0.01 * self.acts)

    one = Counting()
    shared = EvaluatedPolicy("own", lambda device: one, is_shared=True)
    suite = make_suite("episodes=12\n[task]\nepisode_s=0.4\n[columns]\na={}")
    whole = run(shared, suite, threads=2).columns["a"]
    assert_equal(run(shared, suite, threads=1).columns["a"], whole)
    assert_equal(run(shared, suite, 4).columns["a"], head(whole, 4))


def test_more_episodes_continue_at_the_last_whole_block(
    policies, make_suite, run, small_chunk, tmp_path, monkeypatch
):
    suite = make_suite(
        "episodes=11\n[task]\nepisode_s=0.2\n[columns.a]\ngroups=['all']"
    )
    whole = run(policies["transformer"], suite).columns["a"]
    cache, ran = ArrayCache(tmp_path / "kept"), []

    class Spy(Lanes):
        def begin(self, make, scenarios, seed, rows):
            ran.append(rows)
            super().begin(make, scenarios, seed, rows)

    monkeypatch.setattr(evaluate_module, "Lanes", Spy)
    run(policies["transformer"], suite, 6, cache)
    more = run(policies["transformer"], suite, 11, cache)
    assert ran == [range(6), range(4, 11)]
    assert_equal(more.columns["a"], whole)


def test_policy_meets_no_more_blocks_than_the_episodes_need(make_suite, run):
    met: list[int] = []

    class Counting:
        def reset(self, mask):
            pass

        def act(self, observations):
            met.append(len(observations))
            return torch.zeros((len(observations), 12))

    suite = make_suite("episodes=70\n[task]\nepisode_s=0.02\n[columns]\na={}")
    for n, expected in ((2, [64]), (64, [64]), (70, [64, 64])):
        met.clear()
        run(EvaluatedPolicy("own", lambda device: Counting()), suite, n)
        assert met == expected
    met.clear()
    # Code that may remember is one for all, and always meets as many.
    shared = Counting()
    run(EvaluatedPolicy("one", lambda device: shared, is_shared=True), suite, 2)
    assert met == [256]


def test_estimate_grows_with_the_work_and_is_0_for_what_is_kept(
    make_suite, tmp_path, monkeypatch
):
    suite, policy = make_suite(), load_policy("stand")
    evaluator = Evaluator(ArrayCache(tmp_path / "kept"), "cpu", 1)
    ticks = iter(range(100))
    monkeypatch.setattr(evaluate_module, "perf_counter", lambda: float(next(ticks)))
    # A tick for eight steps; two columns of ten steps, then one.
    assert evaluator.estimate(policy, suite, 2) == pytest.approx(2 * 10 / 8)
    evaluator.evaluate(policy, suite.choose(["plain"]), 2)
    assert evaluator.estimate(policy, suite, 2) == pytest.approx(10 / 8)
    evaluator.evaluate(policy, suite, 2)
    assert evaluator.estimate(policy, suite, 2) == 0.0
    assert evaluator.estimate(policy, suite, 3) > 0.0


class Joining(Evaluator):
    """Runs the columns of one body together, as on a GPU."""

    def _batches(self, columns):
        return side_by_side(columns)


def test_columns_side_by_side_find_what_each_finds_alone(
    make_checkpoint, make_suite, run, small_chunk, own_cache
):
    """Each scenario keeps its noise."""
    suite = make_suite("""
        episodes = 8
        [task]
        episode_s = 0.3
        [columns]
        plain = {}
        heavy.parameters.mass.scale = [2.0, 4.0]
        other.robot = "a1"
    """)
    policy, told = load_policy(str(make_checkpoint("mlp"))), []
    alone, evaluator = run(policy, suite), Joining(ArrayCache(own_cache), "cpu", 1)
    assert [len(batch) for batch in side_by_side([*suite.frozen.values()])] == [2, 1]
    assert evaluator.estimate(policy, suite) > 0.0
    for _ in range(2):  # Run, then from disk.
        together = evaluator.evaluate(policy, suite, None, lambda *t: told.append(t))
        for name, table in alone.columns.items():
            assert_equal(together.columns[name], table)
    assert evaluator.estimate(policy, suite) == 0.0
    steps = [steps for _, steps, _ in told[: len(told) // 2]]
    assert steps == sorted(steps) and told[-1][1] == told[-1][2]


def test_stopped_evaluation_leaves_the_longer_one_before_it(
    make_checkpoint, make_suite, small_chunk, own_cache
):
    suite = make_suite("""
        episodes = 12
        [task]
        episode_s = 0.1
        [columns]
        plain = {}
        heavy.parameters.mass.scale = [2.0, 4.0]
    """)
    policy = load_policy(str(make_checkpoint("mlp")))
    evaluator = Joining(ArrayCache(own_cache), "cpu", 1)
    evaluator.evaluate(policy, suite, 10)

    def stop(name, steps, total):
        if steps > total // 2 + 8 * suite.task.max_steps // 2:
            raise KeyboardInterrupt  # Rows 16 to 23: heavy has 4 of its 12 so far.

    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(policy, suite, 12, stop)
    for column in suite.frozen.values():
        kept = evaluator.kept(policy, column)
        assert kept is not None and len(kept) >= 10


def test_exported_file_scores_as_its_checkpoint(policies, make_suite, run):
    suite = make_suite("episodes=4\n[task]\nepisode_s=0.3\n[columns.a]\ngroups=['all']")
    for kind in ACTOR_KINDS:
        ours, exported = (
            run(policies[name], suite).columns["a"] for name in (kind, f"{kind}.onnx")
        )
        np.testing.assert_array_equal(ours.length, exported.length)
        for name in ("tracking_error", "yaw_error", "returns"):
            x, y = getattr(ours, name), getattr(exported, name)
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)


def test_scenario_meets_the_same_noise_in_every_chunk(make_suite, run, monkeypatch):
    suite = make_suite("episodes=6\n[task]\nepisode_s=0.2\n[columns]\na={}")
    seen = {}
    for chunk in (4, 8):
        monkeypatch.setattr(evaluate_module, "CHUNK", chunk)
        monkeypatch.setattr(evaluate_module, "SHARED_BLOCK", chunk)
        log: list[np.ndarray] = []

        def look(obs: np.ndarray, log=log) -> np.ndarray:
            log.append(obs[:, :9].copy())
            return np.zeros((len(obs), 12))

        policy = partial(lambda p, device: p, as_policy(look))
        run(EvaluatedPolicy("look", policy, is_shared=True), suite)
        seen[chunk] = log
    steps = len(seen[8])
    first, second = (np.stack(seen[4][i : i + steps]) for i in (0, steps))
    np.testing.assert_array_equal(np.stack(seen[8])[:, :4], first)
    np.testing.assert_array_equal(np.stack(seen[8])[:, 4:6], second[:, :2])


# As a file.


def test_results_as_plain_data(make_suite, run):
    suite = make_suite(STILL + "[columns]\na.groups = ['mass']", severity=0.5)
    stand = run("stand", suite)
    data = to_json(run(constant(0.0, 6.0, -8.0), suite), stand, {"a": 0.25}, {"k": 1})
    assert data["policy"] == "constant" and data["policy_hash"] is None
    expected = {"name": "mine", "hash": suite.digest, "severity": 0.5}
    assert data["suite"] == expected | {"draw": "dev"}
    assert data["context"] == {"k": 1} and list(data["columns"]) == ["a"]
    column = data["columns"]["a"]
    assert column["success"] == 0.0 and column["episodes"] == 6
    assert column["stand"] == 1.0 and column["impossible"] == 0.25
    assert set(column["falls"]) == {"trunk", "tilt", "unhealthy"}
    assert {"length", "tracking_error", "yaw_error", "interval"} <= set(column)
    assert to_json(stand, None, {}, {})["columns"]["a"]["stand"] is None
