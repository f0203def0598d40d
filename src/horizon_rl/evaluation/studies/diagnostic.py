"""The recoverability diagnostic: does the gate predict progress? (Paper, appendix A.)

Every frontier phase on record is put into a class by what its gates said, and compared
with what the run did afterwards: the gain of difficulty over the next decisions. Episode
length that predicts less than the whole gate does is survival without progress.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, get_args

from scipy.stats import spearmanr

from horizon_rl.curriculum import CurriculumCfg, Entry, Method
from horizon_rl.evaluation.studies.recheck import gates_in_force
from horizon_rl.runs.journal import Replay
from horizon_rl.support.errors import require

Outcome = Literal["full pass", "checkpoint fail", "tracking fail", "low length"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LEFT_OUT = {
    "baseline": "at the baseline",
    "consolidate": "at the mastered levels",
    "clock": "by the clock",
    "other": "of methods that no gate decides",
    "no_rollback": "without rollback",
}
"""Phases in which no frontier was on trial, or where a failed one counted as mastered."""
MIN_PHASES = 3
"""A rank correlation of fewer says nothing."""


@dataclass(frozen=True, kw_only=True)
class FrontierPhase:
    """One frontier phase: what it showed, and what followed."""

    outcome: Outcome
    """The first that failed of length, tracking and checkpoint comparison; where gate C
    was not judged, gate L alone makes a full pass."""
    length: float | None
    """Episode fraction: mean episode length as a share of the longest possible."""
    checkpoint_ratio: float | None
    """Return on the checkpoint's scenarios over the committed policy's own; None where
    gate C was not judged, or the latter is not above 0 and a ratio has no meaning."""
    score: float
    """Composite recoverability score."""
    gain: float | None
    """Change of difficulty over the next decisions, this phase's own not included; None
    if the run has not that many left."""


@dataclass(frozen=True, kw_only=True)
class OutcomeRow:
    """Means over the phases of one class; None where there is nothing to average."""

    outcome: Outcome
    phases: int
    length: float | None
    checkpoint_ratio: float | None
    gain: float | None
    improvement_rate: float | None
    """Share of phases with a gain above 0, among those that have a gain."""
    phases_with_gain: int


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Spearman's correlation with the gain, and the phases behind it."""

    rho: float | None
    """None for fewer than three phases, or if either side is constant."""
    phases: int


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """The table of the diagnostic over all runs, and its two correlations."""

    runs: int
    horizon: int
    """Decisions ahead over which a gain is taken."""
    rows: tuple[OutcomeRow, ...]
    length_correlation: Correlation
    score_correlation: Correlation
    left_out: dict[str, int]
    """Phases whose gain does not depend on what they showed, by reason."""


def diagnose(replays: Sequence[Replay], *, horizon: int = 3) -> Diagnostic:
    """Pool the frontier phases of all runs into one table."""
    phases = [p for run in replays for p in frontier_phases(run, horizon=horizon)]
    return pool(phases, len(replays), count_left_out(replays), horizon=horizon)


def pool(
    phases: Sequence[FrontierPhase],
    runs: int,
    left_out: dict[str, int],
    *,
    horizon: int = 3,
) -> Diagnostic:
    """Put phases of several runs into one table."""
    return Diagnostic(
        runs=runs,
        horizon=horizon,
        rows=tuple(_summarise(phases, outcome) for outcome in OUTCOMES),
        length_correlation=_correlate((p.length, p.gain) for p in phases),
        score_correlation=_correlate((p.score, p.gain) for p in phases),
        left_out=left_out,
    )


def count_left_out(replays: Sequence[Replay]) -> dict[str, int]:
    """Count the phases of runs that say nothing of the gates, by reason."""
    why = [
        _why_left_out(e, run.header.curriculum) for run in replays for e in run.entries
    ]
    return {reason: why.count(reason) for reason in LEFT_OUT}


def frontier_phases(run: Replay, *, horizon: int = 3) -> tuple[FrontierPhase, ...]:
    """Return the phases of a run in which evidence decided on a frontier."""
    require("horizon", horizon, 1, whole=True)
    cfg, after = run.header.curriculum, difficulties(run)
    method = run.header.make_method()
    return tuple(
        FrontierPhase(
            outcome=_classify(entry, method),
            length=entry.evidence.length,
            checkpoint_ratio=_checkpoint_ratio(entry),
            score=entry.decision.verdict.score,
            gain=after[k + horizon] - after[k] if k + horizon < len(after) else None,
        )
        for k, entry in enumerate(run.entries)
        if _why_left_out(entry, cfg) is None
    )


def difficulties(run: Replay) -> list[float]:
    """Return the run's difficulty after each decision."""
    # What a decision left mastered is where the next proposal starts from.
    levels = [e.proposal.mastered.values() for e in run.entries[1:]]
    last = [run.state.difficulty] if run.entries else []
    return [sum(mastered) / max(len(mastered), 1) for mastered in levels] + last


def _classify(entry: Entry, method: Method) -> Outcome:
    """Put a judged phase into its class: the first check that failed names it."""
    evidence, verdict = entry.evidence, entry.decision.verdict
    gates = gates_in_force(method, evidence.length_se, evidence.error_se)
    # A phase is cut short because its rollouts collapsed, whatever was measured.
    if (
        evidence.aborted
        or evidence.length is None
        or evidence.length < gates.min_length
    ):
        return "low length"
    if not verdict.feasible:
        return "tracking fail"
    return "full pass" if verdict.passed else "checkpoint fail"


def _checkpoint_ratio(entry: Entry) -> float | None:
    value, reference = entry.evidence.checkpoint_return, entry.evidence.reference_return
    was_judged = entry.decision.verdict.preserved is not None
    if not was_judged or value is None or reference is None or reference <= 0.0:
        return None
    return value / reference


def _why_left_out(entry: Entry, cfg: CurriculumCfg) -> str | None:
    """Return why a phase says nothing of the gates, if so."""
    if entry.decision.kind in ("baseline", "consolidate", "clock", "other"):
        return entry.decision.kind
    return None if cfg.rollback else "no_rollback"


def _summarise(phases: Iterable[FrontierPhase], outcome: Outcome) -> OutcomeRow:
    mine = [p for p in phases if p.outcome == outcome]
    gains = [p.gain for p in mine if p.gain is not None]
    return OutcomeRow(
        outcome=outcome,
        phases=len(mine),
        length=_mean(p.length for p in mine),
        checkpoint_ratio=_mean(p.checkpoint_ratio for p in mine),
        gain=_mean(gains),
        improvement_rate=_mean(float(gain > 0.0) for gain in gains),
        phases_with_gain=len(gains),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _correlate(pairs: Iterable[tuple[float | None, float | None]]) -> Correlation:
    known = [pair for pair in pairs if None not in pair]
    values, gains = [x for x, _ in known], [gain for _, gain in known]
    rho = None
    if len(known) >= MIN_PHASES and len(set(values)) > 1 and len(set(gains)) > 1:
        result: Any = spearmanr(values, gains)
        rho = float(result.statistic)
    return Correlation(rho=rho, phases=len(known))
