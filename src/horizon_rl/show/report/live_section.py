"""What a run is doing right now: the part of a live page that changes all the time."""

from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.report.blocks import Block, Commands, Facts, Prose, Section
from horizon_rl.show.status_board import show_count, show_duration
from horizon_rl.show.table import NONE, show_number


def live_section(summary: RunSummary | None, problem: str | None = None) -> Section:
    """Say how far the phase under way is; `problem` is why files cannot be read."""
    blocks: list[Block] = [Prose(problem)] if problem else []
    if summary is not None:
        blocks.append(_facts(summary))
        if summary.is_silent:
            silence = show_duration(summary.age_s)
            blocks.append(Prose(f"No line for {silence}: it may hang."))
        if summary.resume:
            blocks.append(Commands(lines=(summary.resume,)))
    return Section(id="live", title="Now", blocks=tuple(blocks))


def _facts(summary: RunSummary) -> Facts:
    progress, proposal = summary.progress, summary.proposal
    if proposal is None:
        return Facts(
            title=summary.standing.capitalize(),
            subtitle=f"{(summary.ended or 'at its end').capitalize()}.",
            pairs=((str(summary.phases), "phases judged"),),
        )
    left = time_left_s(summary) if summary.standing == "running" else None
    done, last = (
        (progress.iterations, progress.max_iterations) if progress else (0, None)
    )
    spent = summary.env_steps + ((progress and progress.env_steps) or 0)
    # Always the same places: numbers that come and go would move the whole page.
    pairs = (
        (str(summary.phases), "phases judged"),
        (f"{done} / {last}" if last else str(done), "iterations of this phase"),
        (show_number(progress and progress.steps_per_s, ",.0f"), "steps/s"),
        (show_number(progress and progress.episode_length, ".0%"), "episode length"),
        (show_number(progress and progress.tracking_error, ".2f"), "error, m/s"),
        (show_count(spent), "env steps"),
        (NONE if left is None else show_duration(left), "left, by the budget"),
    )
    name = proposal.frontier or "baseline"
    return Facts(
        title=f"Phase {proposal.phase}: {name} {proposal.candidate:.3g}, {proposal.kind}",
        subtitle=f"{summary.standing.capitalize()}. {proposal.reason.capitalize()}.",
        pairs=pairs,
        share=done / last if last else None,
    )


def time_left_s(summary: RunSummary) -> float | None:
    """Estimate when the budget will be spent; the frontiers may be done before."""
    budget, progress, times = summary.budget, summary.progress, summary.times
    if budget is None:
        return None
    lately = progress.steps_per_s if progress else None
    under_way = (progress.env_steps or 0) if progress else 0
    # With the probes in between, where phases on record tell what these take.
    speed = summary.env_steps / times.total_s if times and times.total_s else lately
    estimates = []
    if budget.steps and speed:
        left = budget.steps - summary.env_steps - under_way
        estimates.append(left / speed)
    if budget.minutes:
        spent = (times.total_s if times else 0.0) + (
            under_way / lately if lately else 0.0
        )
        estimates.append(60.0 * budget.minutes - spent)
    return max(0.0, min(estimates)) if estimates else None
