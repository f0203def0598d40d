"""`horizon train`, as a user runs it."""

import errno
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from killing import fork, wait

from horizon_rl.cli import film_commits, main
from horizon_rl.cli.train_flags import default
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.runs.journal import committed_folder, replay
from horizon_rl.runs.paths import checkpoint_folder
from horizon_rl.runs.results import read_results
from horizon_rl.support.errors import NonFiniteError
from horizon_rl.training.run import Run
from run_files import stop
from waiting import wait_for

TINY = [
    *("train", "--preset", "smoke", "--num-envs", "8", "--task.episode-s", "0.4"),
    *("--learner.ppo.num-steps", "8", "--steps", "1500", "--table", "0"),
    *("--learner.actor.hidden-dims", "32"),
]
"""Phases of 7 iterations, 448 steps of training, from scratch."""


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_run_from_a_shipped_policy_shows_verdicts_and_a_table(
    run, capsys, short_evaluations
):
    args = ["train", "--preset", "smoke", "--steps", "8000", "--task.episode-s", "0.5"]
    assert main([*args, "--run", str(run), "--table", "2"]) == 0
    out = capsys.readouterr().out
    assert f"Run: {run}" in out and "base-mlp" in out
    assert "phase 0: baseline committed: episode length" in out
    assert "phase 1: all at " in out, "a leap, of all groups"
    assert "Frontiers after" in out and "coverage" in out
    assert "ended: budget of 8000 env steps spent" in out
    assert "Finished: budget of 8000 env steps spent." in out
    assert "before" in out and "after" in out and "disturbance" in out
    assert f"Checkpoint: {committed_folder(run)}" in out
    kept, committed = read_results(run), committed_folder(run)
    assert kept and committed and kept.checkpoint == committed.name
    assert set(kept.after["columns"]) >= {"none", "disturbance", "all"}
    standard = load_suite("ood", 0.5).digest
    assert kept.after["suite"]["hash"] == standard, "the suite that horizon eval has"
    assert list(run.glob("events.out.tfevents*"))
    entries = replay(run / "journal.jsonl").entries
    assert sum(e.evidence.iterations for e in entries) == len(
        lines(run / "metrics.jsonl")
    )


def test_table_is_left_out_where_the_run_s_start_was_deleted(run, capsys):
    args = ["train", "--preset", "smoke", "--steps", "8000", "--task.episode-s", "0.5"]
    assert main([*args, "--run", str(run), "--table", "0"]) == 0
    shutil.rmtree(checkpoint_folder(run))
    more = ["--steps", "9000", "--table", "2"]
    assert main(["train", "--resume", str(run), *more]) == 0
    out = capsys.readouterr().out
    assert "No table of success before and after" in out
    assert f"Checkpoint: {committed_folder(run)}" in out


def test_folder_with_a_run_is_refused_with_the_command_that_goes_on(tmp_path, capsys):
    run = stop(tmp_path / "run", ranks=1)
    assert main([*TINY, "--run", str(run)]) == 2
    err = capsys.readouterr().err
    assert (
        f"already holds a run: go on with it by horizon train --resume {run}, or" in err
    )


def test_tensorboard_gets_levels_coverage_gates_and_verdicts(run):
    assert main([*TINY, "--run", str(run)]) == 0
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(run))
    found.Reload()
    tags = set(found.Tags()["scalars"])
    assert {"train/reward", "gate/tracking_error", "gate/anchor_return"} <= tags
    assert {"mastered/mass", "coverage/com", "verdict/outcome"} <= tags
    phases = len(replay(run / "journal.jsonl").entries)
    assert len(found.Scalars("verdict/outcome")) == phases


def test_transformer_of_the_papers_size_runs(run, capsys):
    args = ["train", "--preset", "smoke", "--policy", "transformer", "--run", str(run)]
    args += ["--task.episode-s", "0.4", "--steps", "384", "--table", "0"]
    assert main(args) == 0
    assert "from base\n" in capsys.readouterr().out
    folder = committed_folder(run)
    assert folder is not None
    config = load_checkpoint(folder).record.config["learner"]["actor"]
    assert (config["embedding_dim"], config["window"]) == (128, 127)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 0), ("SIGTERM", 75)])
def test_first_signal_stops_and_says_how_to_resume(run, tmp_path, number, code):
    said = tmp_path / "said"
    endless = [*TINY, "--run", str(run), "--steps", "100000000"]
    pid = fork(lambda: main(endless), said)
    metrics = run / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.stat().st_size)
    os.kill(pid, getattr(signal, number))
    assert wait(pid) == code
    out = said.read_text()
    assert "was not judged and will run again" in out
    assert f"Go on with: horizon train --resume {run}" in out
    resumed = Run.resume(run)
    assert resumed.checkpoint.is_dir()
    resumed.close()


def test_init_takes_a_run_or_a_checkpoint(run, tmp_path, capsys):
    assert main([*TINY, "--run", str(run)]) == 0
    for number, source in enumerate((run, committed_folder(run))):
        args = [*TINY, "--init", str(source), "--run", str(tmp_path / str(number))]
        assert main(args) == 0
        assert f"from {source}" in capsys.readouterr().out
    assert main([*TINY, "--init", "base", "--run", str(tmp_path / "no")]) == 2
    assert "is of another policy" in capsys.readouterr().err


def test_resumed_run_takes_a_new_budget_and_no_other_settings(run, capsys):
    assert main([*TINY, "--run", str(run)]) == 0
    before = len(lines(run / "metrics.jsonl"))
    assert main(["train", "--resume", str(run), "--steps", "6000", "--table", "0"]) == 0
    assert "budget of 6000 env steps spent" in capsys.readouterr().out
    assert len(lines(run / "metrics.jsonl")) > before
    assert main(["train", "--resume", str(run), "--table", "0"]) == 0
    assert "budget of 6000 env steps spent" in capsys.readouterr().out
    assert main(["status", str(run)]) == 0
    assert "finished" in capsys.readouterr().out
    assert main(["train", "--resume", str(run), "--num-envs", "9"]) == 2
    assert "leave out --num-envs (is 8)" in capsys.readouterr().err


def test_minutes_alone_replace_the_env_steps_of_a_preset_or_a_run(run):
    """They would end it before."""
    assert default([]).cfg.steps > 0
    assert default(["--minutes", "30"]).cfg.steps == 0
    assert default(["--minutes=30", "--steps=9"]).cfg.steps > 0
    assert main([*TINY, "--run", str(run)]) == 0
    assert default(["--resume", str(run)]).cfg.steps > 0
    assert default(["--resume", str(run), "--minutes", "30"]).cfg.steps == 0


def test_last_run_can_be_resumed_without_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--resume", "last"]) == 2
    assert "there is no run in logs/train" in capsys.readouterr().err
    assert main(["train", "--resume", "lst"]) == 2
    assert "there is no run lst: did you mean last?" in capsys.readouterr().err
    assert main(TINY) == 0
    assert main(["train", "--resume", "last", "--table", "0"]) == 0
    assert "Finished" in capsys.readouterr().out
    # What another run began with goes on record by its name.
    (first,) = Path("logs/train").iterdir()
    assert main([*TINY, "--init", "last"]) == 0
    assert f"from {first}" in capsys.readouterr().out


def test_scratch_is_no_run_of_that_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*TINY, "--run", "logs/train/scratch"]) == 0
    assert main([*TINY, "--init", "scratch"]) == 0
    assert "from logs" not in capsys.readouterr().out


def test_poisoned_run_stops_with_a_clear_message(run, capsys, monkeypatch):
    def poisoned(self, worlds):
        raise NonFiniteError("gradient not finite in minibatch 1 of 4")

    monkeypatch.setattr("horizon_rl.training.learner.TorchLearner.iterate", poisoned)
    assert main([*TINY, "--run", str(run)]) == 1
    err = capsys.readouterr().err
    assert "gradient not finite" in err
    assert f"Last good checkpoint: {run / 'checkpoints' / 'initial'}" in err


def test_full_disk_stops_with_a_clear_message(run, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("horizon_rl.runs.directory.RunDirectory.write_evidence", full)
    assert main([*TINY, "--run", str(run)]) == 1
    err = capsys.readouterr().err
    assert "No space left on device" in err and "The last commit is intact" in err
    assert f"horizon train --resume {run}" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--preset", "lap"], "unknown preset 'lap': did you mean 'laptop'"),
        (["--policy", "mpl"], "unknown policy 'mpl': did you mean 'mlp'"),
        (["--robot", "go3"], "unknown robot 'go3': did you mean 'go2'"),
        (["--levels", "mas=1"], "unknown group 'mas': did you mean 'mass'"),
        (["--num-envs", "0"], "--num-envs is 0; accepted: whole numbers, 1.."),
        (["--groups", "mas"], "unknown group 'mas': did you mean 'mass'"),
        (["--levels", "all=1"], "has none left to widen"),
        (["--init", "nowhere"], "no checkpoint 'nowhere'"),
        (["--init", "bas"], "or base, base-mlp, core, core-mlp"),
        (["--resume", "nowhere"], "leave out --preset and --policy"),
        (["--learner.ppo.clip", "0"], "clip is 0"),
        (["--table", "-1"], "table is -1; accepted: whole numbers, 0.."),
        (
            ["--device", "tpu"],
            "device 'tpu': there is no such device. Accepted: auto, cpu, cuda",
        ),
        pytest.param(
            ["--device", "cuda"],
            "device 'cuda': torch sees no GPU",
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


def test_wandb_gets_the_figures_and_the_films(run, monkeypatch, capsys):
    (film := run.with_name("film.gif")).write_bytes(b"GIF89a")
    monkeypatch.setattr(film_commits, "check_films", lambda: None)
    monkeypatch.setattr(film_commits, "film_commit", lambda run, phase: film)
    said: list[tuple] = []
    client: Any = ModuleType("wandb")  # A stand-in: the real one wants an account.
    client.Error = type("Error", (Exception,), {})
    client.init = lambda **settings: said.append(("init", settings))
    client.Video = lambda path, format: (Path(path).name, format)
    client.log = lambda values: said.append(("log", values))
    client.finish = lambda exit_code: said.append(("finish", exit_code))
    monkeypatch.setitem(sys.modules, "wandb", client)
    flags = ["--method", "fixed", "--levels", "0.1", "--film", "--wandb"]
    assert main([*TINY, *flags, "--run", str(run)]) == 0
    (_, settings), *films, end = said
    assert settings["name"] == run.name and settings["sync_tensorboard"]
    assert films and end == ("finish", 0)
    assert all(values["film/commit"] == ("film.gif", "gif") for _, values in films)

    def refuse(**settings):
        raise client.Error("No API key configured.")

    client.init = refuse
    assert main([*TINY, "--wandb", "--run", str(run.with_name("other"))]) == 2
    assert "--wandb: No API key configured. WANDB_MODE" in capsys.readouterr().err


@pytest.mark.slow
def test_films_of_commits_change_nothing_of_the_run(run, tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg", reason="needs the extra viewer")
    monkeypatch.setattr("horizon_rl.cli.film_commits.SECONDS", 0.4)
    from horizon_rl.robots.picture import choose_gl
    from horizon_rl.support.errors import InputError

    try:
        choose_gl()
    except InputError as error:
        pytest.skip(str(error))
    plain, levels = tmp_path / "plain", ["--method", "fixed", "--levels", "0.1"]
    assert main([*TINY, *levels, "--run", str(plain)]) == 0
    assert main([*TINY, *levels, "--run", str(run), "--film"]) == 0
    journal = (run / "journal.jsonl").read_bytes()
    assert journal == (plain / "journal.jsonl").read_bytes()
    entries = replay(run / "journal.jsonl").entries
    commits = [e.decision.phase for e in entries if e.decision.action == "commit"]
    films = sorted((run / "films").iterdir())
    assert [film.stem for film in films] == [f"phase-{n:05d}" for n in commits]
    assert len(films) > 1
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(run), size_guidance={"images": 0})
    found.Reload()
    shown = [image.encoded_image_string for image in found.Images("film/commit")]
    assert shown == [film.read_bytes() for film in films]
    assert main(["report", str(run), "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "index.html").read_text()
    assert page.count('<img src="data:image/gif;base64,') == min(6, len(films))
