"""PLR in the simulator: scores come back, new instances teach nothing, and it resumes."""

import shutil
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import (
    PHASE_STEPS,
    WORLDS,
    assert_same,
    create,
    finish,
    journal,
    resume,
    run_phases,
    tiny,
    weights,
)

from horizon_rl.cli import main
from horizon_rl.curriculum import Entry, PlrCfg
from horizon_rl.learning import build_ppo, register_algorithm
from horizon_rl.learning.algorithm import ALGORITHMS
from horizon_rl.runs.journal import replay
from horizon_rl.support.errors import InputError


def cfg(policy="mlp", **changes: Any):
    return tiny(policy, method="plr", max_phases=4, stagger=True, **changes)


def listen(run) -> dict[int, list[float]]:
    """Note the value loss of every step by the row it took place in."""
    algorithm, env, heard = run.learner.algorithm, run.worlds.env, defaultdict(list)
    rows, step, value_losses = [], run.worlds.step, algorithm.value_losses

    def noting_step(actions):
        rows.append(env.rows.tolist())
        return step(actions)

    def noting_losses():
        found = value_losses()
        for world_rows, losses in zip(rows, found.tolist(), strict=True):
            for row, loss in zip(world_rows, losses, strict=True):
                heard[row].append(loss)
        rows.clear()
        return found

    run.worlds.step, algorithm.value_losses = noting_step, noting_losses
    return heard


def test_seeds_and_scores_come_back_with_the_episodes(tmp_path):
    run = create(cfg(), tmp_path)
    heard, met = listen(run), []
    for event in run.events():
        if not isinstance(event, Entry):
            continue
        outcomes, scenarios = event.evidence.outcomes, run.worlds._scenarios
        assert outcomes and scenarios and len(outcomes) > WORLDS // 2
        seeds, scores = np.array(outcomes.values).T
        rows = list(outcomes.row)
        np.testing.assert_array_equal(seeds, scenarios.pool.marks["seed"][rows])
        expected = [np.mean(heard[row]) for row in rows]
        assert scores == pytest.approx(expected, abs=2e-6) and scores.max() > 0.0
        # Steps of all worlds are counted, whether anything was learnt from them or not.
        assert sum(map(len, heard.values())) == PHASE_STEPS
        assert event.evidence.env_steps > PHASE_STEPS
        met.append(set(seeds))
        heard.clear()
    run.close()
    assert met[0] & met[1] & met[2], "some are met again"
    assert replay(tmp_path / "journal.jsonl").state == run.curriculum.state


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_nothing_is_learnt_until_instances_are_known(policy, tmp_path):
    run = create(cfg(policy), tmp_path)
    before, changed = weights(run), []
    for event in run.events():
        if isinstance(event, Entry):
            after, proposal = weights(run), event.proposal
            moved = [k for k in after if not torch.equal(after[k], before[k])]
            moved = [name for name in moved if "normalizer" not in name]
            changed.append((getattr(proposal, "share"), len(moved) > 10))  # noqa: B009
            assert moved == [] or changed[-1][1]
            before = after
    run.close()
    assert changed == [(0.0, False), (0.9, True), (0.9, True), (0.9, True)]


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_worlds_of_new_instances_have_no_say_in_an_update(policy, tmp_path):
    """Other rewards there in the second phase, and the same is learnt, to the bit."""

    def train(path, whom: str):
        run = create(cfg(policy), path)
        step, entries = run.worlds.step, run.curriculum.entries
        spoilt = 0

        def spoiling_step(actions):
            nonlocal spoilt
            observations, reward, done, extras = step(actions)
            chosen = extras["trains"] == (1.0 if whom == "known" else 0.0)
            if entries and whom:
                reward = reward + 5.0 * chosen * reward.cos()
                spoilt += int(chosen.sum())
            return observations, reward, done, extras

        run.worlds.step = spoiling_step
        found = run_phases(run, 2)[1].evidence.outcomes
        assert found and (spoilt > 0) == bool(whom)
        return weights(run), found.values

    plain, scores = train(tmp_path / "plain", "")
    same, others = train(tmp_path / "new", "new")
    assert_same(plain, same)
    assert scores != others, "but they are scored by them"
    changed, _ = train(tmp_path / "known", "known")
    with pytest.raises(AssertionError):
        assert_same(plain, changed)


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_stopped_and_resumed_equals_uninterrupted_to_the_bit(policy, tmp_path):
    finish(whole := create(cfg(policy), tmp_path / "whole"))
    for phases in (1, 2):
        path = tmp_path / str(phases)
        run_phases(create(cfg(policy), path), phases)
        finish(run := resume(path))
        assert journal(path) == journal(tmp_path / "whole")
        assert_same(weights(run), weights(whole))


def test_commands_show_it(tmp_path, capsys):
    finish(create(cfg(), tmp_path / "1"))
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    runs, page = [str(tmp_path / "1"), str(tmp_path / "2")], tmp_path / "page"
    drawn = str(tmp_path / "drawn")
    for command in (["status", runs[0]], ["study", *runs, "--figures", drawn]):
        assert main(command) == 0
        assert "plr" in capsys.readouterr().out
    assert main(["report", runs[0], "--out", str(page)]) == 0
    assert "plr" in (page / "index.html").read_text()
    assert len([*(tmp_path / "drawn").glob("frontiers-plr*.png")]) == 2


def test_other_methods_are_not_scored(tmp_path):
    run = create(tiny(method="doraemon"), tmp_path)
    run_phases(run, 1)
    assert run.worlds.scores is None
    assert run.learner.algorithm.storage.weights is None  # pyright: ignore[reportAttributeAccessIssue]
    actions = torch.zeros(WORLDS, 12)
    assert "trains" not in run.worlds.step(actions)[3]


class Unscored:
    """An algorithm with all but value losses."""

    def __init__(self, algorithm: Any):
        self._algorithm = algorithm

    def __getattr__(self, name: str) -> Any:
        if name == "value_losses":
            raise AttributeError(name)
        return getattr(self._algorithm, name)


@register_algorithm("unscored")
def build_unscored(*args: Any) -> Any:
    return Unscored(build_ppo(*args))


def test_algorithm_that_cannot_score_is_refused_before_its_run_begins(tmp_path):
    plain = cfg()
    learner = replace(plain.learner, algorithm="unscored")
    refused = "plr needs an algorithm that scores steps; 'unscored' does not"
    with pytest.raises(InputError, match=refused):
        create(replace(plain, learner=learner), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_that_no_longer_scores_is_refused_when_its_run_is_resumed(
    tmp_path, monkeypatch
):
    plain = cfg()
    learner = replace(plain.learner, algorithm="changed")
    monkeypatch.setitem(ALGORITHMS, "changed", ALGORITHMS["ppo"])
    create(replace(plain, learner=learner), tmp_path / "run")
    monkeypatch.setitem(ALGORITHMS, "changed", ALGORITHMS["unscored"])
    for _ in range(2):  # It lets go of the journal, which is locked.
        with pytest.raises(InputError, match="'changed' does not"):
            resume(tmp_path / "run")


def test_gram_with_plr_is_refused_with_the_settings(tmp_path, capsys):
    run = tmp_path / "run"
    flags = ["--preset", "smoke", "--policy", "mlp", "--method", "plr"]
    flags += ["--learner.algorithm", "gram", "--device", "cpu", "--run", str(run)]
    assert main(["train", *flags]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "plr needs an algorithm that scores steps; 'gram' does not" in error
    assert not run.exists()


def test_budget_without_training_is_refused_before_anything_is_built(tmp_path):
    with pytest.raises(InputError, match="the budget ends before PLR trains"):
        create(tiny(method="plr", max_phases=1), tmp_path / "run")
    with pytest.raises(InputError, match="the budget ends before PLR trains"):
        create(cfg(plr=PlrCfg(buffer=500)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
