"""The paper's own rule: frontiers advance by gates, retreat into brackets, return."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from horizon_rl.curriculum.config import CurriculumCfg
from horizon_rl.curriculum.early_stopping import EarlyCfg, Look, look_early
from horizon_rl.curriculum.evidence import Episodes, Evidence
from horizon_rl.curriculum.frontier import (
    Frontier,
    can_reopen,
    coarse_level,
    commit,
    count_commit_elsewhere,
    is_due,
    recovery_level,
    reopen,
    roll_back,
)
from horizon_rl.curriculum.gates import Verdict
from horizon_rl.curriculum.method import (
    DONE,
    book,
    budget_spent,
    check_groups,
    conclude,
    judge_phase,
    on_trial,
    register_method,
)
from horizon_rl.curriculum.state import (
    Action,
    Decision,
    Event,
    Kind,
    Proposal,
    State,
)


@register_method("paper")
@dataclass(frozen=True, kw_only=True)
class Paper:
    """The curriculum as published; joint mode and the ablations are settings of it."""

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """How frontiers advance, retreat, wait and end."""
    early: EarlyCfg = field(default_factory=EarlyCfg)
    """Looks at a running phase, which may end it."""

    outcome_parameters = None

    def start(self, groups: Sequence[str]) -> State:
        """Return the state before the first phase, with its proposal.

        Args:
            groups: Domain groups to widen; the catalogue's others stay at level 0.
        """
        check_groups(groups)
        if self.cfg.joint:
            frontiers = (Frontier(name="joint", groups=tuple(groups)),)
        else:
            frontiers = tuple(Frontier(name=name, groups=(name,)) for name in groups)
        return _propose(State(frontiers=frontiers), self.cfg)

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        """Judge the phase on trial by its evidence, and propose the next."""
        cfg, proposal = self.cfg, on_trial(state)
        verdict = judge_phase(state, evidence, cfg)
        action = _choose_action(proposal, verdict, cfg)
        judged = replace(
            book(state, evidence, action),
            frontiers=_settle(state.frontiers, proposal, action, cfg),
        )
        following = _propose(judged, cfg)
        reason = _explain(proposal, action, verdict, judged)
        events = _changes(state, judged) + _changes(judged, following)
        return following, conclude(proposal, action, verdict, reason, events)

    def looks(self, state: State) -> tuple[float, ...]:
        return (*self.early.looks, 1.0)

    def look(self, state: State, window: Episodes, index: int, longest: int) -> Look:
        seen = look_early(
            window, index, max_length=longest, gates=self.cfg.gates, cfg=self.early
        )
        # A collapse is worth cutting short only where there is something to restore.
        can_fail = on_trial(state).kind != "baseline" and self.cfg.rollback
        return "go on" if seen == "abort" and not can_fail else seen


def choose(frontiers: tuple[Frontier, ...], cfg: CurriculumCfg) -> Frontier | None:
    """Pick the frontier to try next, or None if none is left to try.

    Due retries come first, then the open frontier least recently tried: so the one that
    just failed comes again only if it is alone. Where none is open, waiting would last
    forever: every frontier that may reopen is due at once.
    """
    if any(f.is_open for f in frontiers):
        ready = [f for f in frontiers if f.is_open or is_due(f, cfg)]
    else:
        ready = [f for f in frontiers if can_reopen(f, cfg)]
    return min(ready, key=lambda f: (f.is_open, f.last_phase), default=None)


def _choose_action(proposal: Proposal, verdict: Verdict, cfg: CurriculumCfg) -> Action:
    if verdict.passed:
        return "commit"
    if proposal.kind == "baseline":
        return "hold"
    if not cfg.rollback:
        return "commit"
    return "rollback" if cfg.restore else "retreat"


def _settle(
    frontiers: tuple[Frontier, ...],
    proposal: Proposal,
    action: Action,
    cfg: CurriculumCfg,
) -> tuple[Frontier, ...]:
    """Apply the action to the frontier on trial; a real gain counts for the others."""
    if proposal.frontier is None:
        return frontiers
    before = next(f for f in frontiers if f.name == proposal.frontier)
    apply = commit if action == "commit" else roll_back
    after = apply(before, proposal.candidate, cfg)
    # Rounded: from 0.04 to 0.06 is a gain of 0.02.
    gain = round(after.mastered - before.mastered, 9)
    counts = gain > 0.0 and gain >= cfg.reopen_gain
    return tuple(
        after if f is before else count_commit_elsewhere(f) if counts else f
        for f in frontiers
    )


def _propose(state: State, cfg: CurriculumCfg) -> State:
    """Set the next phase's proposal, or the reason why there is none."""
    if spent := budget_spent(state, cfg):
        return replace(state, ended=spent)
    if state.reference is None:
        return _try(state, None, "baseline", 0.0, "learn the baseline first")
    frontier = choose(state.frontiers, cfg)
    if frontier is None:
        return replace(state, ended="no frontier is left to try")
    return _try(state, frontier, *_next_level(frontier, cfg))


def _next_level(frontier: Frontier, cfg: CurriculumCfg) -> tuple[Kind, float, str]:
    """Return kind, level and reason of the frontier's next proposal."""
    mastered, failed = frontier.mastered, frontier.failed
    if failed is None:
        level = coarse_level(frontier, cfg)
        return "coarse", level, f"reach outward from {mastered:.3g}"
    if frontier.is_waiting:
        turn = f"reopening {frontier.reopenings + 1} of {cfg.max_reopenings}"
        return "retry", failed, f"it failed, and is due again ({turn})"
    level = recovery_level(frontier, cfg)
    rung = f"rung {frontier.rung} of {cfg.max_rungs}"
    return "recovery", level, f"between {mastered:.3g} and failed {failed:.3g} ({rung})"


def _try(
    state: State, frontier: Frontier | None, kind: Kind, level: float, reason: str
) -> State:
    """Put `frontier` on trial at `level`; None tries the baseline."""
    mastered, levels = state.mastered, state.mastered
    if frontier is not None:
        levels.update(dict.fromkeys(frontier.groups, level))
        tried = reopen(frontier) if kind == "retry" else frontier
        tried = replace(tried, unlocked=True, last_phase=state.phase)
        frontiers = tuple(tried if f is frontier else f for f in state.frontiers)
        state = replace(state, frontiers=frontiers)
    proposal = Proposal(
        phase=state.phase,
        kind=kind,
        frontier=frontier.name if frontier else None,
        candidate=level,
        levels=levels,
        mastered=mastered,
        reason=reason,
    )
    return replace(state, proposal=proposal)


def _changes(before: State, after: State) -> tuple[Event, ...]:
    """List what happened to the frontiers between two states."""
    candidate = after.proposal.candidate if after.proposal else 0.0
    events = []
    for old, new in zip(before.frontiers, after.frontiers, strict=True):
        if new.unlocked > old.unlocked:
            events.append(Event("unlock", new.name, candidate))
        if new.reopenings > old.reopenings:
            events.append(Event("reopen", new.name, candidate))
        if new.status != old.status and new.status in ("boundary", "complete"):
            events.append(Event(new.status, new.name, new.mastered))
    return tuple(events)


def _explain(
    proposal: Proposal, action: Action, verdict: Verdict, judged: State
) -> str:
    """Say in words what was decided, by which numbers, and where that leaves it."""
    name = proposal.trial
    if action == "hold":
        return f"{name} {DONE[action]}: {verdict.reason}"
    if action == "commit" and not verdict.passed:
        return f"{name} failed but kept, rollback is off: {verdict.reason}"
    outcome = [_where(f) for f in judged.frontiers if f.name == proposal.frontier]
    return ". ".join(
        filter(None, [f"{name} {DONE[action]}: {verdict.reason}", *outcome])
    )


def _where(frontier: Frontier) -> str:
    match frontier.status:
        case "recovery":
            return f"Next try between {frontier.mastered:.3g} and {frontier.failed:.3g}"
        case "pending retry":
            return f"{frontier.failed:.3g} waits for a retry"
        case "boundary":
            return f"Local boundary between {frontier.mastered:.3g} and {frontier.failed:.3g}"
        case "complete":
            return "Limit reached"
        case "coarse":
            return ""
