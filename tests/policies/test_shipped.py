"""The policies that come with the package are what their records say."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")

from tools.pack import pack_model

from horizon_rl.cli import main
from horizon_rl.cli.models import _highlights
from horizon_rl.curriculum import CurriculumCfg, Entry, GateCfg
from horizon_rl.domains import paper_catalogue
from horizon_rl.evaluation import evaluate
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.curve import curve_suite
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.results import summaries
from horizon_rl.evaluation.studies.recheck import recheck
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.shipped import (
    RUN,
    find_checkpoint,
    model_names,
    model_path,
    read_model,
)
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import JOURNAL
from horizon_rl.runs.read import read_run
from horizon_rl.support.errors import InputError
from horizon_rl.training.presets import preset_cfg
from horizon_rl.training.run import Run

# Suites in which an episode had one push: what was measured in them stays on record.
ONE_PUSH = {
    ("ood", 0.0): "0de33ae42fb0a6351ebdf122ca504d95ee3e6797420e9aaca9281b873922e84a",
    ("ood", 0.5): "199ce5d6512886185f3ee1f3d7dbe84347c9e3bae3f2f4cf3278e4fa6885efc9",
    ("ood", 1.0): "8924afb3727b913cceb9796b0345e1c0c60f1572fc454300941f5aab855af56d",
    ("compositions", 0.5): (
        "9fd6e360816ee7522470de43f6027f599a239e5bdaf8f3f3f154f14b1ae6cc42"
    ),
    ("interventions", None): (
        "03e821e7ff4ac6d9ee57058fb61154e64ee0517d756a8b31c588dfa055340a5d"
    ),
    ("robots", None): (
        "0bd714593830e837915f2a7a447ee80fa649f418e03ad952c7761a31ed59c771"
    ),
}


def test_base_and_its_twin_are_shipped():
    assert set(model_names()) >= {"base", "base-mlp"}


@pytest.mark.parametrize("name", model_names())
def test_record_fits_the_weights(name):
    record, checkpoint = read_model(name), load_checkpoint(model_path(name))
    assert not any(key.startswith("adam.") for key in checkpoint.tensors)
    assert any(key.startswith("critic.") for key in checkpoint.tensors)
    counters, config = checkpoint.record.counters, checkpoint.record.config
    per_iteration = config["num_envs"] * config["learner"]["ppo"]["num_steps"]
    # A run goes on after its last commit; older ones do not count their steps.
    steps = counters["iteration"] * per_iteration
    steps = counters["env_steps"] if "env_steps" in counters else steps
    journal = model_path(name) / RUN / JOURNAL
    if journal.exists():
        assert replay(journal).state.env_steps == record.env_steps >= steps
    else:
        assert record.env_steps == steps
    policy = load_policy(name)
    for result in record.results:
        suite, draw = result["suite"], result["suite"].get("draw", "dev")
        kind = suite["name"], suite["severity"]
        is_curve = suite["name"] == "curve"
        now = curve_suite(draw=draw) if is_curve else load_suite(*kind, draw=draw)
        assert suite["hash"] in (now.digest, ONE_PUSH.get(kind))
        assert result["policy_hash"] == policy.digest


@pytest.mark.parametrize("name", model_names())
def test_shipped_policy_walks(name, monkeypatch):
    # A transformer takes as long for blank worlds as for walking ones.
    monkeypatch.setattr(evaluate, "CHUNK", 6)
    suite = load_suite("ood", 0.0)
    task = replace(suite.task, episode_s=8.0)
    suite = replace(suite, columns=suite.columns[-1:], task=task)
    found = Evaluator(ArrayCache(None)).evaluate(load_policy(name), suite, 6)
    summary = summaries(found)["all"]
    # What a curriculum widened tracks less closely: gate C lets 5 % go at every commit.
    widened = (model_path(name) / RUN).exists()
    assert summary["success"] == 1.0
    assert summary["tracking_error"] < (0.35 if widened else 0.2)


@pytest.mark.parametrize(
    "name", [name for name in model_names() if (model_path(name) / RUN).exists()]
)
def test_every_verdict_behind_a_policy_follows_from_its_episodes(name):
    found = recheck(read_run(model_path(name) / RUN / JOURNAL))
    assert found.agreed == found.checked == found.phases > 0
    assert found.disagreements == ()


def test_models_show_the_area_of_a_curve():
    columns = {name: {"success": 0.9} for name in ("none", "all@0.5", "core@0.5")}
    suite = {"name": "curve", "draw": "test", "severity": None}
    record = {"suite": suite, "columns": columns, "curve": {"all": {"area": 0.6}}}
    # Of fewer scenarios: two numbers for one condition would confuse.
    ood = {"suite": suite | {"name": "ood"}, "columns": {"all": {"success": 0.88}}}
    assert _highlights([record, ood]) == [
        *("curve (test), all at 0.5: 90.0 %", "curve (test), area of all: 60.0 %")
    ]


def test_command_lists_them(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "base" in out and "base-mlp" in out and "env steps" in out
    # The mean of the eight interventions; `none`, the control, has 100 %.
    assert "interventions (test), mean: 79.3 %" in out
    for motors, share in (("scaled", 96.3), ("own", 95.9)):
        line = f"robots (test), mean of 13 with {motors} motors: {share} %"
        assert line in " ".join(out.split())
    assert main(["models", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["base"]["seed"] == 0 and data["base"]["results"]


def test_a_sheet_says_in_which_ranges_a_policy_holds(capsys):
    for name in model_names():
        assert main(["models", name]) == 0
    assert main(["models", "core"]) == 0
    facts, _, out = capsys.readouterr().out.rpartition("Ranges that it mastered")
    assert "81.3 M" in facts.rpartition("env steps")[2]
    assert "mass at level 0.5116" in out and "29.3..61 " in out
    assert "Suite ood at severity 0.5 (test)" in out
    assert main(["models", "cor"]) == 2
    assert "core" in capsys.readouterr().err


def test_name_is_a_checkpoint_and_so_is_a_directory(tmp_path):
    assert find_checkpoint("base") == model_path("base")
    with pytest.raises(InputError, match="no checkpoint 'bas'"):
        find_checkpoint("bas")
    with pytest.raises(InputError, match="or of a run that has one"):
        find_checkpoint(str(tmp_path))
    copy = tmp_path / "copy"
    pack_model(model_path("base-mlp"), copy, read_model("base-mlp"))
    assert find_checkpoint(str(copy)) == copy


def walking(policy: str, path: Path) -> Run:
    """Start a small run from a shipped policy, with gate C wide open."""
    cfg = preset_cfg("smoke", "mlp")
    gates = GateCfg(error_margin=1.0, return_margin=1.0)
    curriculum = CurriculumCfg(gates=gates, max_phases=2)
    cfg = replace(cfg, method="paper", curriculum=curriculum, steps=0)
    return Run.create(cfg, paper_catalogue(), path, "cpu", init=model_path(policy))


@pytest.mark.slow
def test_training_goes_on_from_a_shipped_policy_and_commits(tmp_path):
    run = walking("base-mlp", tmp_path / "run")
    assert run.start == f"from {model_path('base-mlp')}"
    assert find_checkpoint(str(run.path)) == run.checkpoint
    entries = [event for event in run.events() if isinstance(event, Entry)]
    assert [entry.decision.action for entry in entries] == ["commit", "commit"]
    assert entries[1].proposal.levels["actuation"] == 0.05
    for entry in entries:
        assert entry.evidence.length == 1.0, "it walks already"
        error = entry.evidence.anchor_error
        assert error is not None and error < 0.5
    assert find_checkpoint(str(run.path)).name == "phase-00001"
    run.close()


def test_packed_run_keeps_its_new_budget(tmp_path):
    run = walking("base-mlp", tmp_path / "run")
    for _ in run.events():
        pass
    run.close()
    Run.resume(run.path, steps=10**9, device="cpu").close()
    pack_model(run.checkpoint, tmp_path / "model", read_model("base-mlp"))
    packed = read_run(tmp_path / "model" / RUN / JOURNAL)
    assert packed.budget.steps == 10**9
    assert len(packed.entries) == 2


def test_run_stands_for_its_last_commit_and_not_for_its_newest_folder(tmp_path):
    run = walking("base-mlp", tmp_path / "run")
    run.close()
    newer = run.path / "checkpoints" / "phase-00000"
    shutil.copytree(run.checkpoint, newer)
    assert find_checkpoint(str(run.path)).name == "initial"


def test_policy_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match="is of another policy"):
        walking("base", tmp_path / "run")
    assert not (tmp_path / "run").exists()
