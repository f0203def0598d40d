"""Budgets end a run at the end of a phase; what was learnt does not depend on them."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_runs import (
    ITERATIONS,
    PHASE_STEPS,
    STORMY_ACTIONS,
    actions,
    create,
    finish,
    journal,
    read_evidence,
    resume,
    stormy,
    tiny,
)

from horizon_rl.curriculum import Entry
from horizon_rl.runs.journal import replay
from horizon_rl.runs.telemetry import read_times


def digests(path) -> list[str]:
    entries = replay(path / "journal.jsonl").entries
    return [entry.checkpoint.digest for entry in entries if entry.checkpoint]


def test_budget_of_steps_ends_the_run_with_the_phase_that_spends_it(tmp_path):
    run = create(tiny(steps=PHASE_STEPS + 1), tmp_path)
    assert actions(finish(run)) == ["commit"]
    assert run.ended == f"budget of {PHASE_STEPS + 1} env steps spent"
    assert run.curriculum.state.ended is None


def test_budget_of_minutes_ends_the_run_with_the_phase_that_spends_it(tmp_path):
    run = create(tiny(minutes=1e-4), tmp_path)
    assert actions(finish(run)) == ["commit"]
    assert run.ended == "budget of 0.0001 minutes spent"
    spent = run.trained_s
    resumed = resume(tmp_path)
    assert resumed.trained_s == pytest.approx(spent)
    assert not finish(resumed)


def test_run_at_its_end_has_nothing_more_to_do(tmp_path):
    finish(create(tiny(), tmp_path))
    resumed = resume(tmp_path, steps=10**9)
    assert resumed.ended == "budget of 3 phases spent" and not finish(resumed)


@pytest.mark.parametrize(
    ("first", "then"),
    [({"steps": 1}, {"steps": 10**9}), ({"minutes": 1e-4}, {"minutes": 0.0})],
)
def test_larger_budget_goes_on_as_if_it_had_been_there(first, then, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    finish(create(stormy(max_phases=3), whole))
    finish(create(stormy(max_phases=3, **first), cut))
    assert actions(finish(resume(cut, **then))) == STORMY_ACTIONS[1:3]
    assert digests(cut) == digests(whole)
    assert _entries(cut) == _entries(whole)


def _entries(path: Path) -> list[dict[str, Any]]:
    """Return a journal's lines without what follows from the budget alone."""
    lines = [json.loads(line) for line in journal(path).splitlines()[1:]]
    for line in lines:
        del line["crc"], line["evidence"]["progress"]
    return lines


def test_steps_are_those_of_training_and_of_probes(tmp_path):
    run = create(stormy(), tmp_path)
    entries, total = [], 0
    for event in run.events():
        if isinstance(event, Entry):
            entries.append(event)
            found = read_evidence(tmp_path, event.proposal.phase)
            probes = [found[name] for name in found if name.endswith("_length")]
            probes = [
                lengths for lengths in probes if lengths is not found["window_length"]
            ]
            steps = PHASE_STEPS + int(sum(lengths.sum() for lengths in probes))
            assert event.evidence.env_steps == steps
            assert event.evidence.iterations == ITERATIONS
            total += steps
            assert run.curriculum.state.env_steps == total
    run.close()
    assert len(entries) == 5
    assert resume(tmp_path).curriculum.state.env_steps == total


def test_metrics_count_on_through_probes_and_rollbacks(tmp_path):
    finish(create(stormy(), tmp_path))
    lines = [
        json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line["number"] for line in lines] == list(range(1, 5 * ITERATIONS + 1))
    assert [line["phase"] for line in lines] == sorted(list(range(5)) * ITERATIONS)
    gains = [
        b["env_steps"] - a["env_steps"] for a, b in zip(lines, lines[1:], strict=False)
    ]
    each = PHASE_STEPS // ITERATIONS
    inside = [gain for i, gain in enumerate(gains, start=1) if i % ITERATIONS]
    assert set(inside) == {each}
    assert all(gain > each for i, gain in enumerate(gains, 1) if i % ITERATIONS == 0)


def test_times_have_a_line_per_phase_and_add_up(tmp_path):
    run = create(stormy(), tmp_path)
    finish(run)
    assert len((tmp_path / "times.jsonl").read_text().splitlines()) == 5
    times, _ = read_times(tmp_path)
    assert list(times) == list(range(5))
    assert all(seconds > 0.0 for t in times.values() for seconds in t.parts)
    assert sum(t.total_s for t in times.values()) == pytest.approx(run.trained_s)
