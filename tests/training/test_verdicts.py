"""Every verdict follows from the episodes on disk, by arithmetic of our own."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_runs import CALM, PPO, create, finish, read_evidence, stormy, tiny

from horizon_rl.curriculum import Entry, GateCfg
from horizon_rl.training.config import TrainCfg

REAL = GateCfg(min_length=0.8, max_error=1.0, error_slack=0.005)
SETTINGS = {
    "commits and rollbacks": stormy(gates=replace(CALM, return_margin=0.5)),
    "near the thresholds": stormy(gates=REAL, max_phases=6, seed=2),
    "by the clock": tiny(method="linear", linear_phases=3, gates=REAL),
    "one window": stormy(window=3),
}


@pytest.fixture(params=SETTINGS, scope="module")
def judged(request, tmp_path_factory):
    """Return settings, journal and evidence of a run, and all training episodes."""
    cfg, path = SETTINGS[request.param], tmp_path_factory.mktemp("run") / "run"
    run = create(cfg, path)
    entries, episodes = [], []
    for event in run.events():
        if isinstance(event, Entry):
            entries.append(event)
            table = run.worlds.env.episodes.table()
            rows = zip(table.start, table.length, table.tracking_error, strict=True)
            episodes.append(list(rows))
    run.close()
    found = [read_evidence(path, k) for k in range(len(entries))]
    return cfg, entries, found, episodes


def close(value: float):
    return pytest.approx(value, rel=1e-6)


def mean(values: np.ndarray) -> float:
    return math.fsum(values.tolist()) / len(values)


def test_gate_l_judges_the_last_fair_episodes_of_the_phase(judged):
    cfg, entries, found, episodes = judged
    longest = cfg.task.max_steps
    for entry, kept, rows in zip(entries, found, episodes, strict=True):
        total = entry.evidence.iterations * PPO.num_steps
        fair = [row for row in rows if 0 <= row[0] and row[0] + longest <= total]
        fair = sorted(fair, key=lambda row: row[0])
        since = fair[-cfg.window :][0][0]
        fair = [row for row in fair if row[0] >= since]
        window = [kept[f"window_{name}"] for name in ("start", "length", "error")]
        assert list(zip(*(w.tolist() for w in window), strict=True)) == [
            (int(start), int(length), float(error)) for start, length, error in fair
        ]
        assert entry.evidence.episodes == len(fair) > 0
        assert entry.evidence.length == close(mean(kept["window_length"]) / longest)
        assert entry.evidence.tracking_error == close(mean(kept["window_error"]))


def test_probes_on_record_are_the_means_of_their_episodes(judged):
    cfg, entries, found, _ = judged
    for entry, kept in zip(entries, found, strict=True):
        sets = {name.rsplit("_", 1)[0] for name in kept} - {"window"}
        assert sets == {"candidate", "anchor"} | (
            {"checkpoint"} if entry.proposal.phase else set()
        )
        for name in sets:
            size = cfg.anchor_scenarios if name == "anchor" else cfg.probe_scenarios
            for what in ("error", "return"):
                values = kept[f"{name}_{what}"]
                assert len(values) == size
                assert getattr(entry.evidence, f"{name}_{what}") == close(mean(values))


def test_reference_is_what_the_last_commit_showed_as_candidate(judged):
    _, entries, found, _ = judged
    committed = None
    for entry, kept in zip(entries, found, strict=True):
        reference = entry.evidence.reference_error, entry.evidence.reference_return
        if committed is None:
            assert reference == (None, None)
        else:
            assert reference == tuple(
                close(mean(committed[f"candidate_{what}"]))
                for what in ("error", "return")
            )
        if entry.decision.action == "commit":
            committed = kept


def verdict(cfg: TrainCfg, kept: dict, committed: dict | None) -> bool:
    """Weigh a phase by the paper's equations 2 to 4."""
    gates, longest = cfg.curriculum.gates, cfg.task.max_steps
    passed = mean(kept["window_length"]) >= gates.min_length * longest
    passed &= mean(kept["window_error"]) <= gates.max_error
    if committed is not None:
        error, value = (mean(committed[f"candidate_{x}"]) for x in ("error", "return"))
        allowed = error * (1.0 + gates.error_margin) + gates.error_slack
        passed &= mean(kept["checkpoint_error"]) <= allowed
        least = value - gates.return_margin * abs(value)
        passed &= mean(kept["checkpoint_return"]) >= least
    return passed


def test_verdict_and_action_follow_from_the_evidence_alone(judged):
    cfg, entries, found, _ = judged
    committed = None
    for entry, kept in zip(entries, found, strict=True):
        passed = verdict(cfg, kept, committed)
        assert entry.decision.verdict.passed == passed
        by_clock = entry.proposal.kind == "clock"
        failed = "hold" if entry.proposal.kind == "baseline" else "rollback"
        assert entry.decision.action == ("commit" if passed or by_clock else failed)
        if entry.decision.action == "commit":
            committed = kept


def test_run_judges_the_same_by_its_seed_alone(tmp_path):
    cfg = stormy(max_phases=2)
    first, second = (finish(create(cfg, tmp_path / name)) for name in "ab")
    assert first == second
    other = finish(create(replace(cfg, seed=1), tmp_path / "c"))
    assert first[0].evidence != other[0].evidence
