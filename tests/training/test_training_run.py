"""Runs: budgets, resuming to the bit, and what a poisoned number may not do."""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from horizon_rl.domains import paper_catalogue
from horizon_rl.errors import InputError
from horizon_rl.learning import NonFiniteError, state_tensors
from horizon_rl.physics import CpuBackend
from horizon_rl.training import Run, Trainer, list_checkpoints, success_rate
from horizon_rl.training.trainer import choose_robots

PAPER = paper_catalogue()


def weights(run: Run) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in state_tensors(run.trainer.learner).items()}


def assert_same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


@pytest.fixture
def finished(tiny, tmp_path):
    """Weights of an uninterrupted run, by policy."""

    def train(policy: str) -> dict[str, torch.Tensor]:
        run = Run.create(tiny(policy), PAPER, tmp_path / f"whole-{policy}")
        list(run.iterations())
        return weights(run)

    return train


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_resumed_after_a_segment_equals_uninterrupted_to_the_bit(
    policy, tiny, tmp_path, finished
):
    run = Run.create(tiny(policy), PAPER, tmp_path / "cut")
    for iteration in run.iterations():
        if iteration.number == 3:  # In the second segment, whose start is on disk.
            break
    resumed = Run.resume(tmp_path / "cut")
    assert resumed.trainer.segment == 1 and resumed.trainer.iteration == 2
    numbers = [iteration.number for iteration in resumed.iterations()]
    assert numbers == [3, 4, 5, 6]
    assert_same(weights(resumed), finished(policy))
    lines = (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_killed_at_random_moments_and_resumed_equals_uninterrupted(
    tiny, tmp_path, finished
):
    expected, cfg, path = finished("mlp"), tiny("mlp"), tmp_path / "killed"
    rng = np.random.default_rng(0)
    Run.create(cfg, PAPER, path)
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            try:
                torch.set_num_threads(1)  # A forked child has no thread pool.
                list(Run.resume(path).iterations())
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0.0, 0.4))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    run = Run.resume(path)
    list(run.iterations())
    assert_same(weights(run), expected)


def test_segment_drawn_ahead_is_the_one_drawn_on_time(tiny, finished, tmp_path):
    run = Run.create(tiny("mlp"), PAPER, tmp_path / "ahead", device="cpu")
    trainer = run.trainer
    with ThreadPoolExecutor() as worker:
        trainer._ahead = {k: worker.submit(trainer._draw, k) for k in (0, 2)}
        list(run.iterations())
    assert not trainer._ahead
    assert_same(weights(run), finished("mlp"))


def test_only_the_newest_checkpoints_are_kept(tiny, tmp_path):
    run = Run.create(tiny(steps=8 * 8 * 12), PAPER, tmp_path)
    list(run.iterations())
    names = [path.name for path in list_checkpoints(tmp_path)]
    assert names == ["segment-00004", "segment-00005", "segment-00006"]


def test_budget_of_minutes_ends_the_run(tiny, tmp_path):
    run = Run.create(tiny(steps=0, minutes=1e-4), PAPER, tmp_path)
    assert len(list(run.iterations())) == 2  # One segment.
    assert run.budget_spent == "budget of 0.0001 minutes spent"


def test_directory_that_holds_a_run_is_refused(tiny, tmp_path):
    Run.create(tiny(), PAPER, tmp_path)
    with pytest.raises(InputError, match="already holds a run"):
        Run.create(tiny(), PAPER, tmp_path)


def test_damaged_settings_are_refused(tiny, tmp_path):
    Run.create(tiny(), PAPER, tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="config.json is damaged"):
        Run.resume(tmp_path)
    with pytest.raises(InputError, match="holds no run to resume"):
        Run.resume(tmp_path / "nowhere")


def test_probe_does_not_disturb_training(tiny, tmp_path, finished):
    run = Run.create(tiny("transformer"), PAPER, tmp_path / "probed")
    for iteration in run.iterations():
        if iteration.number % 2 == 0:  # Between segments.
            episodes = run.trainer.probe(8, seed=0)
            assert len(episodes) == 8
            assert 0.0 <= success_rate(episodes, 20) <= 1.0
    assert_same(weights(run), finished("transformer"))


def test_init_takes_the_weights_and_not_the_counters(tiny, tmp_path):
    first = Run.create(tiny(), PAPER, tmp_path / "first")
    list(first.iterations())
    second = Run.create(tiny(seed=5), PAPER, tmp_path / "second")
    second.start_from(list_checkpoints(first.path)[-1])
    assert_same(weights(second), weights(first))
    assert second.trainer.iteration == 0


def test_init_keeps_the_rate_it_was_told_and_can_be_resumed(tiny, tmp_path):
    first = Run.create(tiny(), PAPER, tmp_path / "first")
    list(first.iterations())
    cfg = tiny(seed=5)
    newest = list_checkpoints(first.path)[-1]
    second = Run.create(cfg, PAPER, tmp_path / "second", init=newest)
    told = cfg.learner.ppo.learning_rate
    assert second.trainer.learner.learning_rate == pytest.approx(told)
    resumed = Run.resume(second.path)
    assert_same(weights(resumed), weights(first))
    assert resumed.trainer.learner.learning_rate == pytest.approx(told)


def test_nan_in_one_world_does_not_reach_the_weights(tiny, tmp_path):
    trainer = Trainer(tiny(), PAPER)
    segment = trainer.run_segment()
    next(segment)
    backend = trainer.env.backend
    assert isinstance(backend, CpuBackend)
    backend._batch.bind("qvel")[3] = np.nan
    next(segment)
    assert all(t.isfinite().all() for t in state_tensors(trainer.learner).values())
    assert trainer.env.backend.counters.unhealthy == 1


def test_nan_in_one_reward_stops_with_a_clear_message_and_sound_weights(
    tiny, tmp_path, monkeypatch
):
    run = Run.create(tiny(), PAPER, tmp_path)
    iterations = run.iterations()
    next(iterations)
    next(iterations)
    step = run.trainer.env.step

    def poisoned(actions):
        observations, reward, done, extras = step(actions)
        reward[2] = float("nan")
        return observations, reward, done, extras

    monkeypatch.setattr(run.trainer.env, "step", poisoned)
    with pytest.raises(NonFiniteError, match="rewards"):
        list(iterations)
    assert all(t.isfinite().all() for t in state_tensors(run.trainer.learner).values())
    monkeypatch.undo()
    resumed = Run.resume(tmp_path)  # The last good checkpoint is there.
    assert resumed.trainer.iteration == 2


def test_robots_are_chosen_by_name(tiny):
    rng = np.random.default_rng(0)
    assert [r.name for r in choose_robots(tiny(robot="a1"), rng)] == ["a1"]
    assert len(choose_robots(tiny(robot="generated", num_bodies=3), rng)) == 3
    mixed = [r.name for r in choose_robots(tiny(robot="mixed", num_bodies=2), rng)]
    assert mixed.count("go2") == len(mixed) // 2
    with pytest.raises(InputError, match="did you mean 'go2'.*or generated, mixed"):
        choose_robots(tiny(robot="go3"), rng)


def test_generated_bodies_and_wide_levels_train(tiny, tmp_path):
    cfg = tiny(robot="generated", num_bodies=4, levels="all=0.5")
    run = Run.create(cfg, PAPER, tmp_path)
    assert len(list(run.iterations())) == 6
