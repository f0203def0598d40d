"""Policies by name: checkpoints, runs, Python code, and what is refused."""

import resource
import sys
from typing import Any

import numpy as np
import pytest
from acting import CPU, act, see

from horizon_rl.evaluation.blocks import Padded
from horizon_rl.learning.checkpoint import RECORD, WEIGHTS
from horizon_rl.policies.learned import LearnedPolicy, load_actor
from horizon_rl.policies.load import as_policy, load_policy
from horizon_rl.runs.journal import create_curriculum
from horizon_rl.runs.paths import CHECKPOINTS, INITIAL, JOURNAL
from horizon_rl.support.durable import SUMS
from horizon_rl.support.errors import InputError


def test_stand_holds_the_default_pose():
    policy = load_policy("stand", "floor")
    assert policy.name == "floor" and policy.digest
    assert (act(policy.make(CPU), np.ones((3, 45))) == np.zeros((3, 12))).all()


# Checkpoints.


@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_checkpoint_acts_as_its_actor(make_checkpoint, random_obs, kind):
    path = make_checkpoint(kind)
    policy = load_policy(str(path)).make(CPU)
    actor = LearnedPolicy(load_actor(path)[0])
    for obs in random_obs:
        found = act(policy, obs)
        np.testing.assert_array_equal(found, act(actor, obs))
        assert np.abs(found).max() > 0.01


def test_policy_is_made_without_a_past(make_checkpoint, random_obs):
    policy = load_policy(str(make_checkpoint("transformer")))
    first = act(policy.make(CPU), random_obs[0])
    used = policy.make(CPU)
    act(used, random_obs[1])
    assert not np.array_equal(act(used, random_obs[0]), first)
    np.testing.assert_array_equal(act(policy.make(CPU), random_obs[0]), first)


def test_run_directory_stands_for_the_checkpoint_its_journal_names(
    make_checkpoint, tmp_path
):
    run = tmp_path / "run"
    run.mkdir()
    create_curriculum(run / JOURNAL, ["mass"]).close()
    named = make_checkpoint(seed=1, path=run / CHECKPOINTS / INITIAL)
    make_checkpoint(seed=2, path=run / CHECKPOINTS / "phase-00000")
    assert load_policy(str(run)).digest == load_policy(str(named)).digest


def test_action_scale_is_that_of_the_checkpoints_task(make_checkpoint):
    policies = [load_policy(str(make_checkpoint(action_scale=s))) for s in (0.25, 0.4)]
    assert [p.action_scale for p in policies] == [0.25, 0.4]
    assert policies[0].digest != policies[1].digest


def test_digest_follows_the_content_and_not_the_place(make_checkpoint, tmp_path):
    paths = [make_checkpoint(path=tmp_path / name) for name in ("a", "b")]
    a, b = (load_policy(str(path)) for path in paths)
    assert a.digest == b.digest and a.name != b.name


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        (WEIGHTS, lambda data: data[:-1] + b"\xff", "damaged: its checksum"),
        (RECORD, lambda data: data[: len(data) // 2], "is damaged"),
        (RECORD, lambda d: d.replace(b'"task"', b'"tusk"'), "TaskCfg"),
        (RECORD, lambda d: d.replace(b'"learner"', b'"x"'), "LearnerCfg"),
        (RECORD, lambda d: d.replace(b'"actor":', b'"actr":'), "did you mean 'actor'"),
        (
            RECORD,
            lambda d: d.replace(b'"hidden_dims":[32]', b'"hidden_dims":[8]'),
            "'mlp.0.weight' is",
        ),
        (RECORD, lambda d: d.replace(b'_scale":0.25', b'_scale":"x"'), "not a number"),
    ],
)
def test_damaged_checkpoint_is_refused(make_checkpoint, file, damage, message):
    path = make_checkpoint()
    content = (path / file).read_bytes()
    (path / file).write_bytes(damage(content))
    (path / SUMS).unlink()  # As older versions wrote it.
    assert (path / file).read_bytes() != content
    with pytest.raises(InputError, match=message) as error:
        load_policy(str(path))
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("mlp", b'"hidden_dims":[32]', b'"hidden_dims":[20000,20000]'),
        ("transformer", b'"embedding_dim":16', b'"embedding_dim":8000'),
    ],
)
def test_networks_that_the_weights_do_not_fill_are_never_built(
    make_checkpoint, kind, ours, theirs
):
    path = make_checkpoint(kind)
    record = (path / RECORD).read_bytes()
    (path / RECORD).write_bytes(record.replace(ours, theirs))
    (path / SUMS).unlink()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"expected: \(.*000"):
        load_policy(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_checkpoint_for_other_observations_is_refused(make_checkpoint):
    with pytest.raises(InputError, match="not a policy for 45 observations"):
        load_policy(str(make_checkpoint(width=48)))


def test_directory_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(InputError, match="no checkpoint .* or of a run"):
        load_policy(str(tmp_path))


@pytest.mark.parametrize(
    "source", ["nowhere", "no/where", "nowhere.pt", ":f", "a:", ""]
)
def test_what_is_nowhere_is_refused(source):
    with pytest.raises(InputError, match="no policy|no checkpoint"):
        load_policy(source)


# Python.

CODE = """
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from beside import LEVEL

@dataclass
class Settings:
    level: float = LEVEL

def level(observations):
    assert observations.dtype == np.float32
    return np.full((len(observations), 12), Settings().level)

def backwards(observations):
    return observations[:, 11::-1]

def narrow(observations):
    return np.zeros((len(observations), 11))

def nothing(observations):
    pass

class Counts:
    def reset(self, mask):
        self.reset_worlds = mask
    def act(self, observations):
        import torch
        return torch.ones((len(observations["actor"]), 12))

NUMBER = 3
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "beside.py").write_text("LEVEL = 0.5")
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere")
    yield tmp_path / "mine.py"
    sys.modules.pop("beside", None)


def test_function_of_a_file(code):
    policy = load_policy(f"{code}:level")
    # Nothing tells whether code has changed: its results are not kept.
    assert policy.digest is None and policy.action_scale is None
    assert (act(policy.make(CPU), np.zeros((4, 45))) == 0.5).all()


def test_array_that_runs_backwards_is_taken(code):
    obs = np.arange(45.0)[None]
    found = act(load_policy(f"{code}:backwards").make(CPU), obs)
    assert found.tolist() == [list(range(11, -1, -1))]


def test_module_of_the_working_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    text = "import numpy as np\ndef act(x): return np.zeros((len(x), 12))\n"
    (tmp_path / "policy_of_this_folder.py").write_text(text)
    policy = load_policy("policy_of_this_folder:act").make(CPU)
    assert act(policy, np.zeros((4, 45))).shape == (4, 12)


def test_function_of_a_module(code, monkeypatch):
    monkeypatch.syspath_prepend(code.parent)
    assert act(load_policy("mine:level").make(CPU), np.zeros((4, 45))).shape == (4, 12)


def test_class_with_act_and_reset_is_used_as_it_is(code):
    policy: Any = load_policy(f"{code}:Counts").make(CPU)
    policy.reset("mask")
    assert policy.reset_worlds == "mask"
    assert as_policy(policy) is policy


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narrow", r"shape \(4, 11\); 4 worlds need \(4, 12\)"),
        ("nothing", "the policy's actions"),
    ],
)
def test_function_with_other_actions_is_refused_when_it_acts(code, name, message):
    policy = load_policy(f"{code}:{name}").make(CPU)
    with pytest.raises(InputError, match=message):
        Padded(policy, 4).act(see(np.zeros((4, 45))))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{folder}/mine.py:leve", "has no 'leve'"),
        ("{folder}/mine.py:NUMBER", "3 is no policy: it cannot be called"),
        ("{folder}/none.py:level", "there is no file"),
        ("no_such_module:level", "no module or directory of that name"),
        ("horizon_rl.no_such:level", "no module or directory of that name"),
        (".task:Stand", "no module or directory of that name"),
        ("C:level", "no module or directory of that name"),
    ],
)
def test_function_that_does_not_exist_is_refused(code, source, message):
    with pytest.raises(InputError, match=message):
        load_policy(source.format(folder=code.parent))


def test_error_inside_the_users_code_is_left_to_the_user(code):
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        load_policy(f"{code.parent}/broken.py:policy")
