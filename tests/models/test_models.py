"""The policies that come with the package are what their records say."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")

from horizon_rl.cli import main
from horizon_rl.errors import InputError
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.policies import load_policy
from horizon_rl.evaluation.results import summaries
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.models import find_checkpoint, model_names, model_path, read_model
from horizon_rl.models.pack import pack_model


def test_base_and_its_twin_are_shipped():
    assert set(model_names()) >= {"base", "base-mlp"}


@pytest.mark.parametrize("name", model_names())
def test_record_fits_the_weights(name):
    record, checkpoint = read_model(name), load_checkpoint(model_path(name))
    assert not any(key.startswith("adam.") for key in checkpoint.tensors)
    assert any(key.startswith("critic.") for key in checkpoint.tensors)
    config = checkpoint.record.config
    per_iteration = config["num_envs"] * config["learner"]["ppo"]["num_steps"]
    assert record.env_steps == checkpoint.record.counters["iteration"] * per_iteration
    policy = load_policy(name)
    for result in record.results:
        suite = result["suite"]
        assert load_suite(suite["name"], suite["severity"]).digest == suite["hash"]
        assert result["policy_hash"] == policy.digest


@pytest.mark.parametrize("name", model_names())
def test_shipped_policy_walks(name):
    suite = load_suite("ood", 0.0)
    suite = replace(suite, columns=suite.columns[-1:])
    found = Evaluator(ArrayCache(None)).evaluate(load_policy(name), suite, 6)
    summary = summaries(found)["all"]
    assert summary.success == 1.0 and summary.tracking_error < 0.2


def test_command_lists_them(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "base" in out and "base-mlp" in out and "env steps" in out
    assert main(["models", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["base"]["seed"] == 0 and data["base"]["results"]


def test_name_is_a_checkpoint_and_so_are_a_run_and_its_newest(tmp_path):
    assert find_checkpoint("base") == model_path("base")
    with pytest.raises(InputError, match="no checkpoint 'bas'"):
        find_checkpoint("bas")
    with pytest.raises(InputError, match="nor a run with one"):
        find_checkpoint(str(tmp_path))
    record = read_model("base-mlp")
    pack_model(model_path("base-mlp"), tmp_path / "checkpoints" / "a", record)
    assert find_checkpoint(str(tmp_path)) == tmp_path / "checkpoints" / "a"


def test_training_goes_on_from_a_shipped_policy(tmp_path, capsys):
    run = str(tmp_path / "run")
    args = ["--preset", "laptop", "--num-envs", "16", "--segment-iterations", "1"]
    budget = ["--steps", "384", "--probe-episodes", "4", "--task.episode-s", "2"]
    assert main(["train", *args, *budget, "--init", "base-mlp", "--run", run]) == 0
    assert (
        "Success on 4 fresh episodes, mean actions: 100.0%" in capsys.readouterr().out
    )


def test_policy_of_another_kind_is_refused(tmp_path, capsys):
    args = ["--preset", "laptop", "--init", "base", "--run", str(tmp_path / "run")]
    assert main(["train", *args]) == 2
    assert "is of another policy" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
