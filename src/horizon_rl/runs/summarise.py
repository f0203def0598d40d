"""Summarise a run from its files.

Neither the simulator nor the learner is needed: a run can be summarised wherever its
files are, while it trains, when it is done, and after a crash.
"""

import shlex
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, get_args

from horizon_rl.curriculum import Entry, last_checkpoint
from horizon_rl.curriculum.entry import last_try
from horizon_rl.curriculum.state import Action
from horizon_rl.runs.paths import INITIAL, checkpoint_folder
from horizon_rl.runs.read import RunFiles, RunKind, find
from horizon_rl.runs.summary import (
    BudgetSummary,
    CheckpointSummary,
    Drift,
    FrontierSummary,
    Progress,
    RunSummary,
    Spent,
    Times,
)
from horizon_rl.runs.telemetry import Line

RECENT = 10
"""Iterations that the speed is the mean of: the last ones."""
PATIENCE_S = 60.0
"""A live run that shows nothing for so long may hang, unless its probes take longer."""


def summarise(run: RunFiles) -> RunSummary:
    """Put together what the files of a run tell."""
    state, entries = run.journal.state, run.entries
    progress, ended = _progress(run), state.ended
    if not (ended or run.locked or progress):
        # Runs end between phases. One cut off within a phase had been given more.
        ended = run.spent
    standing = "finished" if ended else "running" if run.locked else "stopped"
    ranks = find(run.context, int, "ranks") or 1
    checkpoint = _checkpoint(run)
    # A healthy one may be silent for so long: it writes no lines in probes.
    quiet_s = (3.0 * (t.probe_s + t.settle_s) for t in run.times.values())
    patience_s = max([PATIENCE_S, *quiet_s])
    # A shipped run, whose last checkpoint is the policy itself, cannot go on.
    can_go_on = standing == "stopped" and (checkpoint is None or checkpoint.exists)
    return RunSummary(
        run=str(run.path),
        kind=run.kind,
        method=find(run.settings, str, "method"),
        start=run.start or find(run.context, str, "start"),
        seed=run.seed,
        ranks=ranks,
        standing=standing,
        ended=ended,
        resume=resume_command(run.path, run.kind, ranks) if can_go_on else None,
        age_s=run.age_s,
        is_silent=standing == "running" and run.age_s > patience_s,
        budget=_budget(run),
        phases=len(entries),
        boundaries=sum(
            e.kind == "boundary" for entry in entries for e in entry.decision.events
        ),
        env_steps=state.env_steps,
        unhealthy=_count(run, "unhealthy"),
        overflow=_count(run, "overflow"),
        by_action={
            a: _spent(entries, a, run.steps_per_iteration) for a in get_args(Action)
        },
        difficulty=state.difficulty,
        frontiers=_frontiers(run, ended),
        last_decision=entries[-1].decision if entries else None,
        proposal=None if ended else state.proposal,
        progress=progress,
        times=_sum_times(run),
        anchor=_drift(entries),
        checkpoint=checkpoint,
        results=run.results,
    )


def _number(line: Line, key: str) -> float | None:
    """Return a number of a log's line; None where there is none, or no finite one."""
    value: Any = line.get(key)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if fits and isfinite(value) else None


def _count(run: RunFiles, name: str) -> int:
    """Add up a counter of the judged phases and of the one under way."""
    judged = sum(getattr(entry.evidence, name) for entry in run.entries)
    last = run.metrics[-1] if run.metrics else {}
    under_way = last.get("phase") == len(run.entries)
    return judged + ((find(last, int, name) or 0) if under_way else 0)


def _sum_times(run: RunFiles) -> Times | None:
    by_phase = run.phase_times()
    if not len(by_phase):
        return None
    sums = by_phase.sum(axis=0).tolist()
    parts = dict(zip(("train", "probe", "settle"), sums, strict=True))
    total = sum(parts.values())
    seconds = {f"{name}_s": part for name, part in parts.items()}
    shares = {f"{name}_share": part / (total or 1.0) for name, part in parts.items()}
    return Times(phases=len(by_phase), total_s=total, **seconds, **shares)


def _budget(run: RunFiles) -> BudgetSummary | None:
    seconds = float(run.phase_times().sum())
    share = run.budget.share(run.journal.state.env_steps, seconds)
    if share is None:
        return None
    return BudgetSummary(
        steps=run.budget.steps or None,
        minutes=run.budget.minutes or None,
        share=share,
        spent=run.spent,
    )


def _progress(run: RunFiles) -> Progress | None:
    entries, steps = run.entries, run.steps_per_iteration
    lines = [line for line in run.metrics if line.get("phase") == len(entries)]
    number = find(lines[-1], int, "number") if lines else None
    judged = [entry.evidence.iterations for entry in entries]
    if number is None or number <= sum(judged):
        return None
    done = number - sum(judged)
    # A phase lasts longer than the settings say where its episodes need it.
    longest = max([find(run.settings, int, "phase_iterations") or 0, *judged])
    seconds = [
        (_number(line, "collect_s") or 0.0) + (_number(line, "learn_s") or 0.0)
        for line in lines[-RECENT:]
    ]
    return Progress(
        iterations=done,
        max_iterations=longest if longest >= done else None,
        env_steps=done * steps if steps else None,
        steps_per_s=steps * len(seconds) / sum(seconds)
        if steps and sum(seconds) > 0.0
        else None,
        reward=_number(lines[-1], "reward"),
        episode_length=_number(lines[-1], "episode_length"),
        tracking_error=_number(lines[-1], "tracking_error"),
    )


def _spent(entries: Sequence[Entry], action: Action, steps: int | None) -> Spent:
    mine = [e.evidence for e in entries if e.decision.action == action]
    spent = sum(e.env_steps for e in mine)
    trained = sum(e.iterations for e in mine) * steps if steps else None
    total = sum(e.evidence.env_steps for e in entries)
    return Spent(
        phases=len(mine),
        env_steps=spent,
        share=spent / max(total, 1),
        probe_env_steps=None if trained is None else max(0, spent - trained),
    )


def _frontiers(run: RunFiles, ended: str | None) -> tuple[FrontierSummary, ...]:
    state = run.journal.state
    coverage = run.coverage()
    proposal = None if ended else state.proposal
    tried = [(f, last_try(f, run.entries)) for f in state.frontiers]
    return tuple(
        FrontierSummary(
            name=f.name,
            groups=f.groups,
            status=f.status,
            mastered=f.mastered,
            candidate=proposal.level_of(f) if proposal else None,
            failed=f.failed,
            rung=f.rung,
            coverage={group: coverage.get(group) for group in f.groups},
            last_level=last.proposal.level_of(f) if last else None,
            last_decision=last.decision if last else None,
        )
        for f, last in tried
    )


def _drift(entries: Sequence[Entry]) -> Drift | None:
    measured = [
        (e.decision.phase, error, e.evidence.anchor_return)
        for e in entries
        if e.decision.action == "commit"
        and (error := e.evidence.anchor_error) is not None
    ]
    if not measured:
        return None
    first, last = measured[0], measured[-1]
    return Drift(
        first_phase=first[0],
        last_phase=last[0],
        first_error=first[1],
        last_error=last[1],
        first_return=first[2],
        last_return=last[2],
    )


def _checkpoint(run: RunFiles) -> CheckpointSummary | None:
    named = last_checkpoint(run.entries)
    if named is None and run.kind != "training":
        return None
    name = named.name if named else INITIAL
    path = str(checkpoint_folder(run.path, name))
    return CheckpointSummary(path=path, exists=name in run.checkpoints)


def resume_command(run: Path, kind: RunKind, ranks: int = 1) -> str | None:
    """Return the command that goes on with a run of ours."""
    path = shlex.quote(str(run))
    if kind == "rehearsal":
        return f"horizon rehearse --resume --run {path}"
    if kind == "training":
        several = f"torchrun --nproc-per-node {ranks} -m horizon_rl"
        return f"{'horizon' if ranks == 1 else several} train --resume {path}"
    return None
