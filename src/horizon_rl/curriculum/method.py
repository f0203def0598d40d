"""What a curriculum method is: two pure functions over a state, and when to look."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Protocol, TypeVar

from horizon_rl.curriculum.config import CurriculumCfg, Plan
from horizon_rl.curriculum.early_stopping import Look
from horizon_rl.curriculum.evidence import Episodes, Evidence, split_by_size
from horizon_rl.curriculum.frontier import advance
from horizon_rl.curriculum.gates import Verdict, judge
from horizon_rl.curriculum.state import (
    Action,
    Decision,
    Event,
    Proposal,
    Reference,
    State,
)
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.records import decode, encode
from horizon_rl.support.words import counted


class Method(Protocol):
    """How levels, or any other distribution over instances, follow from evidence.

    A method is a frozen dataclass of its settings, registered under a name. It touches
    no file, clock or random number but those in its settings and the phase's number, so
    that a journal of evidence gives every state again. `Curriculum` adds ask and tell.
    """

    @property
    def cfg(self) -> CurriculumCfg:
        """Gates and budget, which every method has."""
        ...

    @property
    def outcome_parameters(self) -> tuple[str, ...] | None:
        """Parameters and marks whose values come with every episode in
        `Evidence.outcomes`; None: the method needs no single episodes."""
        ...

    def start(self, groups: Sequence[str]) -> State:
        """Return the state before the first phase, with its proposal."""
        ...

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        """Judge the phase on trial by its evidence, and propose the next."""
        ...

    def looks(self, state: State) -> tuple[float, ...]:
        """Return when to look at the phase, in usual phase lengths; it ends at the last."""
        ...

    def look(self, state: State, window: Episodes, index: int, longest: int) -> Look:
        """Look at a running phase at `looks(state)[index]`, except at its end.

        Args:
            state: The state with the phase on trial.
            window: Its episodes that gate L may judge.
            index: Which look it is.
            longest: Control steps of the longest episode.
        """
        ...


class WholePhases:
    """A method without looks: a phase that ends as it must is not worth one."""

    def looks(self, state: State) -> tuple[float, ...]:
        return (1.0,)

    def look(self, state: State, window: Episodes, index: int, longest: int) -> Look:
        return "go on"


METHODS: dict[str, type[Any]] = {}
"""Methods by the name that a journal knows them by."""

M = TypeVar("M")


def register_method(name: str) -> Callable[[type[M]], type[M]]:
    """Make a method known by `name` to runs, journals and the command line."""

    def register(method: type[M]) -> type[M]:
        METHODS[name] = method
        return method

    return register


def check_is_method(method: object) -> None:
    """Refuse what only stands for a method: its name, its class, its settings."""
    if isinstance(method, type) or not callable(getattr(method, "start", None)):
        raise InputError(
            f"method is {method!r:.80}; accepted: a method, as Horizon() is, or what "
            "choose_method returns for a name"
        )


def name_of(method: Method) -> str:
    """Return the name that a method is registered under."""
    for name, known in METHODS.items():
        if type(method) is known:
            return name
    raise InputError(f"{type(method).__name__} is not registered as a method")


def settings_of(method: Method) -> dict[str, Any]:
    """Return a method's own settings, without those that all methods have."""
    return {key: v for key, v in encode(method).items() if key != "cfg"}


def make_method(name: str, cfg: CurriculumCfg, settings: dict[str, Any]) -> Method:
    """Return the method of that name; what `settings` leaves out is as by default."""
    if name not in METHODS:
        raise InputError(unknown("method", name, METHODS))
    return decode(METHODS[name], {**settings, "cfg": encode(cfg)})


def budget_spent(state: State, cfg: CurriculumCfg) -> str | None:
    """Say which budget of the curriculum is spent, if one is."""
    if state.phase >= cfg.max_phases:
        return f"budget of {counted(cfg.max_phases, 'phase')} spent"
    if 0 < cfg.max_env_steps <= state.env_steps:
        return f"budget of {cfg.max_env_steps} env steps spent"
    return None


DONE: dict[Action, str] = {
    "commit": "committed",
    "rollback": "rolled back",
    "hold": "not learnt yet, train on",
    "retreat": "failed, weights kept",
}
"""The outcome of a phase, in words."""


def check_groups(groups: Sequence[str]) -> None:
    """Refuse groups that no frontier could own."""
    if not groups or len(set(groups)) < len(groups):
        raise InputError(f"groups are {tuple(groups)}: name each once, at least one")


def check_plan(plan: Plan, groups: Sequence[str]) -> None:
    """Refuse groups that a plan does not have, or that have nothing to widen."""
    check_groups(groups)
    known = plan.groups
    if tuple(groups) != tuple(known):
        raise InputError(
            f"groups are {', '.join(groups)}, but the method's plan has "
            f"{', '.join(known) or 'none'}: see Plan.of"
        )
    if constant := [group for group in groups if not known[group]]:
        raise InputError(
            f"nothing to widen in {', '.join(constant)}: limits are the baselines"
        )


def on_trial(state: State) -> Proposal:
    """Return the phase to judge; a run that has ended has none."""
    if state.proposal is None:
        raise InputError(f"the run has ended ({state.ended}): no phase to judge")
    return state.proposal


def judge_phase(state: State, evidence: Evidence, cfg: CurriculumCfg) -> Verdict:
    """Judge the phase on trial by the gates; C needs something to preserve."""
    preservation = cfg.gates.preservation and state.reference is not None
    return judge(evidence, cfg.gates, preservation=preservation)


def conclude(
    proposal: Proposal,
    action: Action,
    verdict: Verdict,
    reason: str,
    events: tuple[Event, ...] = (),
) -> Decision:
    """Return the decision on a phase."""
    return Decision(
        phase=proposal.phase,
        kind=proposal.kind,
        frontier=proposal.frontier,
        candidate=proposal.candidate,
        action=action,
        verdict=verdict,
        reason=reason,
        events=events,
    )


S = TypeVar("S", bound=State)


def book(state: S, evidence: Evidence, action: Action) -> S:
    """Count what the phase on trial cost, and take it as reference if it is committed."""
    proposal, reference = on_trial(state), state.reference
    if action == "commit":
        reference = Reference(
            phase=proposal.phase,
            distribution=proposal.distribution,
            error=evidence.candidate_error,
            value=evidence.candidate_return,
            error_by_size=split_by_size("candidate_error", evidence),
        )
    elif reference and reference.error is None:
        # Measured before the phase trained: once on hold, the policy is another.
        reference = replace(
            reference,
            error=evidence.reference_error,
            value=evidence.reference_return,
            error_by_size=split_by_size("reference_error", evidence),
        )
    return replace(
        state,
        phase=state.phase + 1,
        reference=reference,
        iterations=state.iterations + evidence.iterations,
        env_steps=state.env_steps + evidence.env_steps,
        proposal=None,
    )


def keep(state: S, evidence: Evidence) -> S:
    """Commit the phase on trial: mastered, whether or not the gates passed."""
    frontiers = advance(state.frontiers, on_trial(state).levels)
    return replace(book(state, evidence, "commit"), frontiers=frontiers)


def put_on_trial(
    state: S,
    cfg: CurriculumCfg,
    levels: dict[str, float],
    reason: str,
    kind: type[Proposal] = Proposal,
    **own: Any,
) -> S:
    """Set the next phase of a method that moves all groups at once, or end the run.

    Args:
        state: After the last phase.
        cfg: The budget.
        levels: What stands for each group on boards and in figures.
        reason: Why these.
        kind: The method's own proposal, and `own` its other fields; its candidate is
            the mean level, unless they say otherwise.
    """
    if spent := budget_spent(state, cfg):
        return replace(state, ended=spent)
    own.setdefault("candidate", round(fmean(levels.values()), 4))
    proposal = kind(
        phase=state.phase,
        kind="other",
        frontier=None,
        levels=levels,
        mastered=state.mastered,
        reason=reason,
        **own,
    )
    return replace(state, proposal=proposal)


def conclude_kept(
    proposal: Proposal, verdict: Verdict, news: str, events: tuple[Event, ...] = ()
) -> Decision:
    """Return the decision of a method that keeps every phase; gates are on record."""
    gates = "passed" if verdict.passed else "failed"
    reason = f"{proposal.trial}, kept; {news}. Gates {gates}: {verdict.reason}"
    return conclude(proposal, "commit", verdict, reason, events)


def arrivals(before: State, after: State) -> tuple[Event, ...]:
    """List the frontiers that have just arrived at the limit."""
    pairs = zip(before.frontiers, after.frontiers, strict=True)
    return tuple(
        Event("complete", new.name, new.mastered)
        for old, new in pairs
        if new.status == "complete" != old.status
    )


def describe(method: Method) -> str:
    """Return what a method has to say of its settings; most say nothing."""
    own = getattr(method, "describe", None)
    return own() if own else ""


def with_reference(evidence: Evidence, reference: Reference | None) -> Evidence:
    """Add what gate C compares with, where the checkpoint's scenarios were measured.

    A phase that was cut short was not probed, and has no reference on record either.
    """
    measured = evidence.checkpoint_error is not None
    measured = measured or evidence.checkpoint_return is not None
    if reference is None or not measured or evidence.reference_error is not None:
        return evidence
    return replace(
        evidence, reference_error=reference.error, reference_return=reference.value
    )
