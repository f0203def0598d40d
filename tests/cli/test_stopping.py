"""SIGTERM, as job schedulers and containers send it, asks for another try."""

import signal

import pytest

from horizon_rl.cli import main
from horizon_rl.rehearsal import Rehearsal

phases = Rehearsal.phases


def terminate(*args, **options) -> None:
    signal.raise_signal(signal.SIGTERM)


def test_rehearsal_ends_with_75_and_goes_on(tmp_path, monkeypatch, capsys):
    run = ["--run", str(tmp_path / "run")]
    few = ["--curriculum.max-phases", "3"]
    with monkeypatch.context() as patch:
        patch.setattr(Rehearsal, "phases", lambda run: map(terminate, phases(run)))
        assert main(["rehearse", *run, *few]) == 75
    err = capsys.readouterr().err
    assert f"Go on with: horizon rehearse --resume {' '.join(run)}\n" in err
    assert err.endswith("horizon: terminated\n")
    assert main(["rehearse", "--resume", *run]) == 0


def test_evaluation_ends_with_75(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("mujoco")
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path))
    monkeypatch.setattr("horizon_rl.cli.eval.evaluate_suite", terminate)
    assert main(["eval", "stand", "--columns", "none", "--device", "cpu"]) == 75
    assert capsys.readouterr().err.endswith("horizon: terminated\n")
