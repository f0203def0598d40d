"""HORIZON's governor: scout what is recoverable, leap there, keep what was gained."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import cast

from horizon_rl.curriculum.config import CurriculumCfg, GateCfg
from horizon_rl.curriculum.early_stopping import EarlyCfg, Look, look_early
from horizon_rl.curriculum.evidence import Episodes, Evidence, split_by_size
from horizon_rl.curriculum.frontier import LIMIT, Frontier, advance
from horizon_rl.curriculum.gates import (
    Verdict,
    by_size,
    feasibility_checks,
    judge,
    not_worse,
)
from horizon_rl.curriculum.method import (
    DONE,
    arrivals,
    book,
    budget_spent,
    check_groups,
    conclude,
    on_trial,
    register_method,
)
from horizon_rl.curriculum.scouting import (
    TRAINING,
    WITHIN,
    LeapCfg,
    Levels,
    Recovery,
    between,
    choose_leap,
    errors_of,
    is_hopeful,
    ladder,
    reach_by_error,
    smooth,
    survival_of,
)
from horizon_rl.curriculum.state import (
    Action,
    Decision,
    Kind,
    Proposal,
    State,
    describe_levels,
)
from horizon_rl.domains.distribution import AtLevels


@dataclass(frozen=True, kw_only=True)
class GovernorState(State):
    """What the governor remembers beside the frontiers."""

    recovery: Recovery
    """What leaps have cost so far, and what their first phase won back."""
    expected: float | None = None
    """What the scouts survived at the levels of a leap that begins; else None."""
    survival: dict[str, float] = field(default_factory=dict)
    """What the last commit's probes survived; empty: not scouted at its levels."""
    errors: dict[str, float] = field(default_factory=dict)
    """Tracking errors of the same scouts, and of its training."""
    failed: Levels | None = None
    """Levels of the leap that failed since the last whole commit."""
    trail: tuple[float, ...] = ()
    """How nearly gate L passed at the end of the phases held at the present levels."""
    idle: int = 0
    """Proposals since levels were last gained; a phase on hold is no other."""
    anchor: dict[str, float] = field(default_factory=dict)
    """Tracking error at level 0 of the first commit: whole, and by size of body."""
    trained: bool = False
    """The last commit was trained in this run. A start that was trained elsewhere, with
    less noise, is no reference for gate C: noise alone would fail it."""


@register_method("horizon")
@dataclass(frozen=True, kw_only=True)
class Horizon:
    """Leaps to the furthest levels that scouts show to be recoverable.

    A phase that passes its gates is committed, and the next leap follows from its
    scouts. One that improves is trained on. One that stalls keeps what was gained: the
    furthest levels on its way that pass are committed. One that has lost old skill, or
    gained nothing, is rolled back; then the next leap is smaller.
    """

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """Gates, and the budget."""
    early: EarlyCfg = field(default_factory=EarlyCfg)
    """Looks at a running phase, which may end it."""
    leap: LeapCfg = field(default_factory=LeapCfg)
    """How to scout, leap, wait and give up."""

    outcome_parameters = None

    def start(self, groups: Sequence[str]) -> State:
        check_groups(groups)
        frontiers = tuple(Frontier(name=name, groups=(name,)) for name in groups)
        recovery = Recovery.expect(self.leap.recovery)
        return self._propose(GovernorState(frontiers=frontiers, recovery=recovery))

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        before, proposal = cast(GovernorState, state), on_trial(state)
        verdict = self._judge(before, evidence)
        checks = feasibility_checks(evidence, self.cfg.gates)
        trail = (*before.trail, min(check.ratio for check in checks))
        action, part = self._choose(before, evidence, verdict, trail)
        recovery = before.recovery
        if self.leap.measure_recovery:
            expected = before.expected
            recovery = recovery.after_phase(before.survival, expected, evidence)
            if proposal.kind == "leap" and (part or action in ("rollback", "retreat")):
                recovery = recovery.after_failure()
        after = book(before, evidence, action)
        after = replace(after, recovery=recovery, expected=None)
        if action == "hold":
            after = replace(after, trail=trail)
        elif part:
            after = self._commit_part(after, proposal, part)
        elif action == "commit":
            after = self._commit(after, evidence, proposal)
        else:
            after = self._retreat(after, proposal)
        if after.mastered != before.mastered:
            after = replace(after, idle=0)
        held = proposal if action == "hold" else None
        following = self._propose(after, held, evidence.progress)
        reason = _explain(proposal, action, verdict, part)
        decision = conclude(proposal, action, verdict, reason, arrivals(before, after))
        return following, replace(decision, levels=part)

    def looks(self, state: State) -> tuple[float, ...]:
        # A policy that masters the baseline already need not be taught it.
        first = (0.0,) if state.phase == 0 else ()
        return (*first, *self.early.looks, 1.0)

    def look(self, state: State, window: Episodes, index: int, longest: int) -> Look:
        if state.phase == 0:
            index -= 1
        if index < 0:
            return "judge"
        seen = look_early(
            window, index, max_length=longest, gates=self.cfg.gates, cfg=self.early
        )
        can_fail = on_trial(state).kind != "baseline"
        return "go on" if seen == "abort" and not can_fail else seen

    def gates(self, length_se: float | None, error_se: float | None) -> GateCfg:
        """Return the gates in force, given the standard errors of what L measures."""
        cfg, leap = self.cfg.gates, self.leap
        return replace(
            cfg,
            min_length=max(0.0, cfg.min_length - leap.sigmas * (length_se or 0.0)),
            max_error=cfg.max_error + leap.sigmas * (error_se or 0.0),
            error_margin=leap.margin,
            return_margin=leap.margin,
        )

    def _judge(self, state: GovernorState, evidence: Evidence) -> Verdict:
        """Judge by gate L as a test, and by gate C for all bodies, each size and level 0."""
        cfg, margin, reference = self.cfg.gates, self.leap.margin, state.reference
        gates = self.gates(evidence.length_se, evidence.error_se)
        if not (cfg.preservation and reference and state.trained):
            return judge(evidence, gates, preservation=False)
        anchor_margin = self.leap.anchor_margin
        # A partial commit is measured only as the next phase begins.
        measured = split_by_size("reference_error", evidence)
        sizes = reference.error_by_size or measured
        anchor = state.anchor
        if not self.leap.by_size:  # Of all bodies the name is empty.
            sizes, anchor = {}, {k: v for k, v in anchor.items() if not k}
        further = [
            *not_worse("checkpoint_error", sizes, evidence, margin),
            *not_worse("anchor_error", anchor, evidence, anchor_margin),
        ]
        return judge(evidence, gates, preservation=True, further=further)

    def _choose(
        self,
        state: GovernorState,
        evidence: Evidence,
        verdict: Verdict,
        trail: tuple[float, ...],
    ) -> tuple[Action, Levels | None]:
        """Return what to do, and the levels to commit if only a part of the leap is."""
        proposal, cfg, probed = on_trial(state), self.cfg, evidence.probed
        if verdict.passed:
            return "commit", None
        if proposal.kind == "baseline":
            return "hold", None
        failed: Action = "rollback" if cfg.restore else "retreat"
        if evidence.aborted:
            return failed, None
        lost = verdict.preserved is False
        lost_alone = lost and verdict.feasible
        patience = self.leap.patience_lost if lost_alone else self.leap.patience
        # At levels that are mastered there is nothing to go back to but old skill.
        stays = proposal.kind == "consolidate" and not lost
        waits = stays and len(trail) <= self.leap.idle_phases
        if waits or is_hopeful(trail, evidence.length_se or 0.0, patience):
            return "hold", None
        scouts = {} if lost else proposal.scouts or {}
        for name, levels in scouts.items():  # The furthest on the way comes first.
            scouted = Evidence(
                length=probed.get(f"{name}_length"),
                tracking_error=probed.get(f"{name}_error"),
            )
            checks = feasibility_checks(scouted, cfg.gates)
            if name.startswith(WITHIN) and all(check.passed for check in checks):
                return "commit", levels
        return failed, None

    def _commit(
        self, state: GovernorState, evidence: Evidence, proposal: Proposal
    ) -> GovernorState:
        """Take the candidate as mastered, and remember what lies beyond it."""
        # Elsewhere the scouts' levels are others.
        stays, weight = proposal.levels == state.mastered, self.leap.smoothing
        survival, errors = survival_of(evidence), errors_of(evidence)
        return replace(
            state,
            frontiers=advance(state.frontiers, proposal.levels),
            survival=smooth(state.survival if stays else {}, survival, weight),
            errors=smooth(state.errors if stays else {}, errors, weight),
            failed=None,
            trail=(),
            anchor=state.anchor or by_size("anchor_error", evidence),
            trained=state.trained or evidence.iterations > 0,
        )

    def _commit_part(
        self, state: GovernorState, proposal: Proposal, levels: Levels
    ) -> GovernorState:
        """Take levels on the way to the candidate as mastered: there the phase passes."""
        assert state.reference is not None
        # They have no scouts yet, and are measured before the next phase trains.
        unmeasured = state.reference.unmeasured()
        return replace(
            state,
            frontiers=advance(state.frontiers, levels, proposal.levels),
            survival={},
            errors={},
            failed=proposal.levels,
            trail=(),
            reference=replace(unmeasured, distribution=AtLevels(levels)),
            trained=True,
        )

    def _retreat(self, state: GovernorState, proposal: Proposal) -> GovernorState:
        """Note that the levels on trial were too much."""
        tried = proposal.levels
        frontiers = tuple(
            replace(
                f, failed=tried[f.name], status="recovery", rollbacks=f.rollbacks + 1
            )
            if tried[f.name] > f.mastered
            else f
            for f in state.frontiers
        )
        return replace(state, frontiers=frontiers, failed=tried, trail=())

    def _propose(
        self,
        state: GovernorState,
        held: Proposal | None = None,
        progress: float | None = None,
    ) -> GovernorState:
        """Set the next phase's proposal, or the reason why there is none.

        `progress` is the share of the run's env steps that is spent, if it has a limit.
        """
        if spent := budget_spent(state, self.cfg):
            return replace(state, ended=spent)
        if held:
            return self._try(state, held.kind, held.levels, "it improves: train on")
        mastered, cfg = state.mastered, self.leap
        if state.reference is None:
            return self._try(state, "baseline", mastered, "learn the baseline first")
        goal = max(cfg.ready, self.cfg.gates.min_length)
        share = min(cfg.recovery, state.recovery.share)
        most = reach_by_error(state.errors, self.cfg.gates.max_error, cfg)
        levels, expected = choose_leap(mastered, state.survival, goal, share, cfg, most)
        if state.failed:
            nearer = between(mastered, state.failed, cfg.retry)
            if not state.survival or any(levels[g] > nearer[g] for g in nearer):
                levels, expected = nearer, None
        gain = fmean(levels[g] - mastered[g] for g in mastered)
        arrives = all(level >= LIMIT for level in levels.values())
        is_ready = state.survival.get(TRAINING, 1.0) >= cfg.ready
        leaps = is_ready and gain > 0.0 and (gain >= cfg.min_gain or arrives)
        # Not since the last leap: one that fails time and again would go on forever.
        is_stuck = state.idle + (not leaps) > cfg.idle_phases
        if is_stuck and progress is None:
            return replace(state, ended="no leap is left to try")
        if progress is not None and progress >= cfg.last_leap:
            reason = "the run is nearly over: train on what is mastered"
            return self._try(state, "consolidate", mastered, reason)
        state = replace(state, idle=state.idle + 1)
        if leaps:
            part = "half" if cfg.retry == 0.5 else f"{cfg.retry:.0%} of the"
            reason = f"{part} way to where a leap failed"
            if expected is not None:
                won = f"a phase wins back {share:.0%} of the loss"
                reason = f"scouts survive {expected:.0%} of an episode there, {won}"
            state = replace(state, expected=expected)
            return self._try(state, "leap", levels, reason)
        reason = "the limit is reached" if arrives else "no leap is in sight"
        reason = reason if is_ready else f"episodes last less than {cfg.ready:.0%}"
        return self._try(state, "consolidate", mastered, f"{reason}: train on")

    def _try(
        self, state: GovernorState, kind: Kind, levels: Levels, reason: str
    ) -> GovernorState:
        """Put levels on trial, with what is to be scouted at the end."""
        mastered = state.mastered
        moved = [group for group in levels if levels[group] > mastered[group]]
        proposal = Proposal(
            phase=state.phase,
            kind=kind,
            frontier=moved[0] if len(moved) == 1 else None,
            candidate=round(fmean(levels[group] for group in moved or levels), 4),
            levels=levels,
            mastered=mastered,
            reason=reason,
            scouts=ladder(mastered, levels, self.leap),
        )
        frontiers = tuple(
            replace(f, unlocked=True, last_phase=state.phase) if f.name in moved else f
            for f in state.frontiers
        )
        return replace(state, frontiers=frontiers, proposal=proposal)


def _explain(
    proposal: Proposal, action: Action, verdict: Verdict, part: Levels | None
) -> str:
    """Say in words what was decided, and by which numbers."""
    done = f"stalled, committed {describe_levels(part)}" if part else DONE[action]
    return f"{proposal.trial} {done}: {verdict.reason}"
