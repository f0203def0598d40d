"""Which checkpoint stands for a run at a mark."""

from types import SimpleNamespace
from typing import Any

from horizon_rl.curriculum import CheckpointRef
from horizon_rl.grid.marks import evaluated_at


def entry(env_steps: int, action: str, checkpoint: str | None) -> Any:
    return SimpleNamespace(
        evidence=SimpleNamespace(env_steps=env_steps),
        decision=SimpleNamespace(action=action),
        checkpoint=CheckpointRef(checkpoint, "x") if checkpoint else None,
    )


def replay_of(entries: list[Any], before: int = 0) -> Any:
    spent = before + sum(e.evidence.env_steps for e in entries)
    state = SimpleNamespace(env_steps=spent)
    return SimpleNamespace(entries=tuple(entries), state=state)


RUN = [
    entry(10, "commit", "phase-00000"),
    entry(10, "hold", "phase-00001"),
    entry(10, "rollback", None),
    entry(10, "commit", "phase-00003"),
]


def names(marks, before=0):
    return [
        (point.checkpoint, point.env_steps, point.mark)
        for point in evaluated_at(replay_of(RUN, before), marks)
    ]


def test_without_marks_it_is_the_last():
    assert names(()) == [("phase-00003", 40, None)]


def test_at_a_mark_it_is_what_the_run_would_have_gone_on_from():
    assert names((10, 20, 30)) == [
        ("phase-00000", 10, 10),
        ("phase-00001", 20, 20),
        ("phase-00000", 30, 30),  # What was held is gone with the rollback.
    ]


def test_a_phase_that_ends_a_little_late_still_counts():
    assert names((9.6,)) == [("phase-00000", 10, 9.6)]
    assert names((9.4,)) == []


def test_a_mark_that_the_run_has_not_reached_has_none():
    assert names((44,)) == [("phase-00003", 40, 44)]
    assert names((46,)) == []


def test_what_teachers_spent_counts():
    assert names((110,), before=100) == [("phase-00000", 110, 110)]


def test_a_run_without_a_phase_is_its_start():
    (point,) = evaluated_at(replay_of([]), ())
    assert (point.checkpoint, point.env_steps) == ("initial", 0)
