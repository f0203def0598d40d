"""`horizon train`, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from horizon_rl.cli import main
from horizon_rl.learning import NonFiniteError
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.training import Run, newest_checkpoint

TINY = [
    *("train", "--preset", "smoke", "--num-envs", "8", "--task.episode-s", "0.4"),
    *("--learner.ppo.num-steps", "8", "--steps", "384", "--probe-episodes", "8"),
    *("--learner.actor.hidden-dims", "32"),
]


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def test_run_reports_progress_success_and_where_it_lies(run, capsys):
    assert main([*TINY, "--run", str(run)]) == 0
    out = capsys.readouterr().out
    assert f"Run: {run}" in out
    assert "steps/s" in out and "collecting" in out and "time left" in out
    assert "Finished: budget of 384 env steps spent." in out
    assert "Success on 8 fresh episodes" in out
    assert str(newest_checkpoint(run)) in out
    assert json.loads((run / "config.json").read_text())["train"]["num_envs"] == 8
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 6
    assert list(run.glob("events.out.tfevents*"))


def test_transformer_of_the_papers_size_runs(run, capsys):
    args = ["train", "--preset", "smoke", "--policy", "transformer", "--run", str(run)]
    assert main([*args, "--steps", "384", "--probe-episodes", "0"]) == 0
    checkpoint = newest_checkpoint(run)
    assert checkpoint is not None
    config = load_checkpoint(checkpoint).record.config["learner"]["actor"]
    assert (config["embedding_dim"], config["window"]) == (128, 127)


def test_first_interrupt_saves_and_says_how_to_resume(run):
    command = [sys.executable, "-m", "horizon_rl", *TINY, "--run", str(run)]
    command += ["--steps", "100000000"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    metrics = run / "metrics.jsonl"
    while not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"Go on with: horizon train --resume {run}" in out
    assert newest_checkpoint(run) is not None
    assert Run.resume(run).trainer.iteration > 0


def test_init_starts_from_a_checkpoint(run, tmp_path, capsys):
    assert main([*TINY, "--run", str(run)]) == 0
    checkpoint = str(newest_checkpoint(run))
    args = [*TINY, "--init", checkpoint, "--run", str(tmp_path / "more")]
    assert main(args) == 0
    assert newest_checkpoint(tmp_path / "more") is not None


def test_resumed_run_takes_a_new_budget_and_no_other_settings(run, capsys):
    assert main([*TINY, "--run", str(run)]) == 0
    assert main(["train", "--resume", str(run), "--steps", "640"]) == 0
    assert "budget of 640 env steps spent" in capsys.readouterr().out
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 10
    assert main(["train", "--resume", str(run), "--num-envs", "9"]) == 2
    assert "leave out --num-envs (is 8)" in capsys.readouterr().err


def test_poisoned_run_stops_with_a_clear_message(run, capsys, monkeypatch):
    def poisoned(self):
        raise NonFiniteError("gradient not finite in minibatch 1 of 4")
        yield

    monkeypatch.setattr("horizon_rl.training.trainer.Trainer.run_segment", poisoned)
    assert main([*TINY, "--run", str(run)]) == 1
    err = capsys.readouterr().err
    assert "gradient not finite" in err and "Last good checkpoint: none yet" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--preset", "lap"], "unknown preset 'lap': did you mean 'laptop'"),
        (["--policy", "mpl"], "unknown policy 'mpl': did you mean 'mlp'"),
        (["--robot", "go3"], "unknown robot 'go3': did you mean 'go2'"),
        (["--levels", "mas=1"], "unknown group 'mas': did you mean 'mass'"),
        (["--num-envs", "0"], "num_envs is 0; at least 1"),
        (["--num-envs", "-1"], "num_envs is -1; at least 1"),
        (["--steps", "0"], "no budget: give --steps or --minutes"),
        (["--init", "nowhere"], "no checkpoint 'nowhere'"),
        (["--resume", "nowhere"], "holds no run to resume"),
        (["--learner.ppo.clip", "0"], "clip is 0"),
        (["--device", "tpu"], "unknown device 'tpu'. Accepted: auto, cpu, cuda"),
        pytest.param(
            ["--device", "cuda"],
            "torch sees no GPU for device 'cuda'",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU"),
        ),
    ],
)
def test_bad_input_is_answered_in_one_line_with_code_2(
    args, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main([*TINY, *args]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not list(Path("logs").rglob("checkpoints"))
