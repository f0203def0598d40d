"""Several ranks: started by torchrun, of one mind, and ended together."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rank_work import normalise, normaliser_rows, whole
from small_runs import (
    ITERATIONS,
    PHASE_STEPS,
    STORMY_ACTIONS,
    actions,
    journal,
    read_evidence,
)

from horizon_rl.curriculum import phase_rng
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.runs.journal import committed_folder, replay
from horizon_rl.support.errors import InputError
from horizon_rl.support.ranks import ALONE, _take_gpu, join
from horizon_rl.training.context import read_context
from waiting import PATIENCE_S

pytestmark = pytest.mark.slow
WORK = Path(__file__).with_name("rank_work.py")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory) -> Path:
    """Return the folder of the sessions of two ranks, see `rank_work`."""
    out = tmp_path_factory.mktemp("ranks")
    done = subprocess.run(
        [sys.executable, str(WORK), str(out)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,  # Ranks that wait for each other would take half an hour.
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def ended_well(sessions) -> dict[str, bool]:
    """Tell of every session whether both ranks did."""
    return json.loads((sessions / "sessions.json").read_text())


@pytest.fixture(scope="module")
def measured(sessions, ended_well):
    """Return what two ranks saw, see `rank_work.measure`, and where."""
    assert ended_well["measure"], (sessions / "measure.stderr").read_text()
    files = [sessions / f"rank-{k}.pt" for k in range(2)]
    return [torch.load(file, weights_only=False) for file in files], sessions


@pytest.fixture
def finished(measured) -> Path:
    """Return the directory of a run of two ranks."""
    return measured[1] / "finished"


def assert_close(found, expected, **options) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, msg=name, **options)


# Runs.


def test_two_ranks_make_one_run_and_count_the_worlds_of_both(finished):
    assert read_context(finished).ranks == 2
    so_far = replay(finished / "journal.jsonl")
    assert actions(so_far.entries) == STORMY_ACTIONS
    for entry in so_far.entries:
        found = read_evidence(finished, entry.proposal.phase)
        probes = [v for k, v in found.items() if k.endswith("_length")][1:]
        steps = 2 * PHASE_STEPS + sum(int(lengths.sum()) for lengths in probes)
        assert entry.evidence.env_steps == steps
    lines = (finished / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["env_steps"] for line in lines[:ITERATIONS]]
    assert steps == [80, 160, 240, 320]
    checkpoint = committed_folder(finished)
    assert checkpoint is not None and checkpoint.name == "phase-00004"
    assert load_checkpoint(checkpoint).record.counters == {
        "iteration": 5 * ITERATIONS,
        "ranks": 2,
        "phase": 5,
        "env_steps": so_far.state.env_steps,
    }


def test_gate_l_judges_the_episodes_of_all_ranks(finished):
    # Of 16 worlds, each with episodes from steps 0 and 8 of 20, 8 steps long.
    first = replay(finished / "journal.jsonl").entries[0].evidence
    assert (first.episodes, first.length) == (32, 1.0)


def test_killed_and_resumed_equals_uninterrupted_to_the_bit(ended_well, finished):
    assert not ended_well["die"]
    left, run = finished.with_name("die"), finished.with_name("killed")
    assert len(replay(left / "journal.jsonl").entries) == 2
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 5 * ITERATIONS
    assert journal(run) == journal(finished)


def test_error_on_one_rank_ends_all_with_its_message(ended_well, sessions):
    assert not ended_well["fail"]
    said = (sessions / "fail.stderr").read_text()
    assert said.count("RunError: rank 1: the roof fell in\n") == 1
    assert "lost touch" not in said


# One mind.


def test_gradients_and_steps_are_those_of_all_worlds_together(measured):
    seen, _ = measured
    for kind, expected in whole().items():
        for rank, found in enumerate(s["halves"][kind] for s in seen):
            own = expected["advantages"].chunk(2, dim=1)[rank]
            torch.testing.assert_close(found["advantages"], own)
            assert_close(
                {"gradient": found["gradient"]},
                {"gradient": expected["gradient"]},
                rtol=1e-4,
                atol=1e-6,
            )
            assert found["figures"] == pytest.approx(
                expected["figures"], rel=1e-3, abs=1e-6
            )
            weights = {k: v for k, v in expected["tensors"].items() if "adam" not in k}
            ours = {k: found["tensors"][k] for k in weights}
            assert_close(ours, weights, rtol=1e-4, atol=1e-5)


def test_halves_alone_would_not_do(measured):
    """What is compared above does differ between the halves."""
    first, second = (s["halves"]["mlp"] for s in measured[0])
    assert (first["advantages"].mean() - second["advantages"].mean()).abs() > 0.1
    assert torch.equal(first["gradient"], second["gradient"])


def test_merged_normaliser_is_that_of_all_data(measured):
    seen, _ = measured
    expected = normalise(normaliser_rows().flatten(0, 2))
    for s in seen:
        assert_close(s["normaliser"], expected)
    assert expected["count"] == 24
    for name, value in seen[0]["normaliser"].items():
        assert torch.equal(value, seen[1]["normaliser"][name])


def test_all_that_learns_is_the_same_on_all_ranks_to_the_bit(measured):
    first, second = (s["cut"] for s in measured[0])
    assert first["rates"] == second["rates"]
    assert first["entries"] == second["entries"]
    assert first["env_steps"] == second["env_steps"]
    assert first["tensors"].keys() == second["tensors"].keys()
    for name, value in first["tensors"].items():
        assert torch.equal(value, second["tensors"][name]), name


def test_ranks_have_their_own_scenarios_and_actions(measured):
    first, second = (s["cut"] for s in measured[0])
    assert not torch.equal(first["commands"], second["commands"])
    assert not torch.equal(first["actions"], second["actions"])


def test_ranks_that_differ_are_an_error_on_all_before_anything_is_saved(measured):
    seen, out = measured
    for s in seen:
        assert "rank 1 no longer agrees with rank 0: 'critic." in s["disagreement"]
    committed = committed_folder(out / "disagreement")
    assert committed is not None and committed.name == "initial"


def test_run_resumed_from_a_phase_on_hold_is_rolled_back_alike_on_all(measured):
    """Every rank holds the last commit, though rank 0 alone has read it."""
    seen, out = measured
    for s in seen:
        assert actions(s["held"]["cut"])[3:5] == ["hold", "rollback"]
        assert s["held"]["cut"] == s["held"]["whole"] == seen[0]["held"]["whole"]
    assert journal(out / "held" / "cut") == journal(out / "held" / "whole")


def test_plr_knows_the_instances_of_all_ranks(measured):
    seen, out = measured
    first, second = (s["replayed"] for s in seen)
    assert first["entries"] == second["entries"]
    for name, value in first["tensors"].items():
        assert torch.equal(value, second["tensors"][name]), name
    outcomes = first["entries"][0].evidence.outcomes
    # Two cohorts of 8 worlds on each of two ranks; new instances, so no two are the same.
    assert len(outcomes) == 2 * 16
    seeds = {values[0] for values in outcomes.values}
    assert len({row for row in outcomes.row if row >= 32}) > 5
    assert len(seeds) == len(set(outcomes.row))
    assert journal(out / "replayed" / "cut") == journal(out / "replayed" / "whole")


def test_bad_number_on_one_rank_is_rolled_back_on_all(measured):
    for s in measured[0]:
        assert actions(s["collapse"]) == ["commit", "rollback"]
        assert s["collapse"][1].evidence.aborted


def test_bad_number_on_one_rank_is_refused_and_named_on_all(measured):
    for s in measured[0]:
        assert "Not finite in the rollout: rewards" in s["refusal"]


# One voice.


def test_budget_of_minutes_is_judged_by_the_clock_of_rank_0(measured):
    for s in measured[0]:
        assert s["minutes"] == [1, 2, 3, 4]  # One phase.


def test_cut_in_two_it_ends_as_the_uninterrupted_run(measured, finished):
    seen, out = measured
    assert journal(out / "cut-0") == journal(finished)
    assert not (out / "cut-1").exists()
    checkpoint = committed_folder(finished)
    assert checkpoint is not None
    kept = load_checkpoint(checkpoint)
    for s in seen:
        assert_close(s["cut"]["tensors"], kept.tensors, rtol=0.0, atol=0.0)
        assert s["cut"]["rates"][1] == kept.record.numbers["learning_rate"]


def test_rank_0_decides_and_speaks(measured):
    seen, out = measured
    assert [s["once"] for s in seen] == [0, 0]
    assert [s["gathered"] for s in seen] == [[0, 1], [0, 1]]
    said = (out / "measure.stdout").read_text()
    assert "rank 0 speaks" in said and "rank 1 speaks" not in said


def test_the_command_line_speaks_once(ended_well, sessions):
    assert ended_well["speak"], (sessions / "speak.stderr").read_text()
    said, run = (sessions / "speak.stdout").read_text(), sessions / "speak"
    assert said.count("Run: ") == 2 and said.count("Finished") == 1
    assert "on each of 2 ranks" in said
    assert len(list(run.glob("events.out.tfevents*"))) == 1


def test_run_is_resumed_by_as_many_ranks_as_it_began_with(measured):
    message = measured[0][0]["resumed"]
    assert "is a run of 2 rank(s), not 1" in message
    assert (
        "torchrun --nproc-per-node 2 -m horizon_rl" in message and "--init" in message
    )


# A process alone.


def test_process_alone_is_no_rank_among_others(monkeypatch):
    with join("cpu") as ranks:
        assert ranks is ALONE
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with join("cuda:1") as ranks:
        assert ranks is ALONE
    tensor = torch.tensor([1.0, 2.0])
    ranks.average(tensor)
    assert tensor.tolist() == [1.0, 2.0]
    assert ranks.once(lambda: 3) == 3 and ranks.gather(4) == [4]


def test_randomness_of_rank_0_is_that_of_a_process_alone():
    draws = [phase_rng(5, 2, rank).integers(1 << 62) for rank in range(3)]
    assert draws[0] == phase_rng(5, 2).integers(1 << 62)
    assert len(set(draws)) == 3
    assert phase_rng(5, 2, 1).integers(1 << 62) != phase_rng(5, 1, 2).integers(1 << 62)


def test_gpu_goes_by_the_number_of_the_rank(monkeypatch):
    with pytest.raises(InputError, match="'cuda:1'.*Accepted: auto, cpu, cuda"):
        _take_gpu("cuda:1", 0)
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    assert _take_gpu("auto", 1) and _take_gpu("cuda", 0) and not _take_gpu("cpu", 7)
    assert taken == [1, 0]
    with pytest.raises(InputError, match="rank 2 of this machine has no GPU.*are 2"):
        _take_gpu("cuda", 2)
