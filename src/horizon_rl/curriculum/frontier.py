"""One frontier: where it stands, what it proposes next, what a verdict does to it.

| status        | proposes                 | pass                 | fail            |
|---------------|--------------------------|----------------------|-----------------|
| coarse        | outward, to the limit    | coarse, or complete  | recovery        |
| recovery      | between mastered, failed | pending retry        | recovery, one   |
|               |                          |                      | rung down;      |
|               |                          |                      | then boundary   |
| pending retry | once due, failed again   | coarse, or complete  | recovery        |
| boundary      | once due, failed again   | coarse, or complete  | recovery        |
| complete      | nothing                  |                      |                 |

All functions are pure: they take a `Frontier` and return another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from horizon_rl.curriculum.config import CurriculumCfg

Status = Literal["coarse", "recovery", "pending retry", "boundary", "complete"]
LIMIT = 1.0


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Levels of one domain group, or of several that advance as one."""

    name: str
    groups: tuple[str, ...]
    status: Status = "coarse"
    mastered: float = 0.0
    """Committed level."""
    failed: float | None = None
    """Far end of the bracket: the nearest level known to fail."""
    rung: int = 0
    """How often the bracket has been refined by a failure."""
    unlocked: bool = False
    """It has been proposed at least once."""
    last_phase: int = -1
    """Phase that tried it last."""
    commits_elsewhere: int = 0
    """Commits of other frontiers since this one began to wait."""
    reopenings: int = 0
    """How often its failed level has been tried again."""
    commits: int = 0
    rollbacks: int = 0

    @property
    def is_open(self) -> bool:
        """It has a proposal to make without waiting."""
        return self.status in ("coarse", "recovery")

    @property
    def is_waiting(self) -> bool:
        """Its failed level may be tried again once the policy has changed."""
        return self.status in ("pending retry", "boundary")


def can_reopen(frontier: Frontier, cfg: CurriculumCfg) -> bool:
    return frontier.is_waiting and frontier.reopenings < cfg.max_reopenings


def is_due(frontier: Frontier, cfg: CurriculumCfg) -> bool:
    """It has waited long enough for the policy to have changed."""
    changed = frontier.commits_elsewhere >= cfg.reopen_after
    return changed and can_reopen(frontier, cfg)


def coarse_level(frontier: Frontier, cfg: CurriculumCfg) -> float:
    """Grow the mastered level toward the limit (paper, eq. 5, first case)."""
    mastered = frontier.mastered
    return min(LIMIT, max(mastered * cfg.grow, mastered + cfg.min_step))


def recovery_level(frontier: Frontier, cfg: CurriculumCfg) -> float:
    """Retreat between mastered and failed level (paper, eq. 5, second case)."""
    assert frontier.failed is not None
    return frontier.mastered + cfg.alpha * (frontier.failed - frontier.mastered)


def reopen(frontier: Frontier) -> Frontier:
    """Take the failed level up again, from the top rung."""
    return replace(
        frontier, status="recovery", rung=0, reopenings=frontier.reopenings + 1
    )


def commit(frontier: Frontier, candidate: float, cfg: CurriculumCfg) -> Frontier:
    """Take `candidate` as mastered."""
    after = replace(frontier, mastered=candidate, commits=frontier.commits + 1)
    if candidate >= LIMIT:
        return replace(after, status="complete", failed=None, rung=0)
    if after.failed is None or candidate >= after.failed:
        return replace(after, status="coarse", failed=None, rung=0)
    narrow = after.failed - candidate < cfg.min_bracket
    return _wait(after, "boundary" if narrow else "pending retry")


def roll_back(frontier: Frontier, candidate: float, cfg: CurriculumCfg) -> Frontier:
    """Take `candidate` as failed: it becomes the far end of the bracket."""
    inside = frontier.failed is not None and candidate < frontier.failed
    after = replace(
        frontier,
        status="recovery",
        failed=candidate,
        # Only a failure inside the bracket refines it; one that sets it does not.
        rung=frontier.rung + 1 if inside else frontier.rung,
        rollbacks=frontier.rollbacks + 1,
    )
    narrow = candidate - frontier.mastered < cfg.min_bracket
    if after.rung >= cfg.max_rungs or narrow:
        return _wait(after, "boundary")
    return after


def advance(
    frontiers: tuple[Frontier, ...],
    levels: Mapping[str, float],
    failed: Mapping[str, float] | None = None,
) -> tuple[Frontier, ...]:
    """Take levels of several frontiers as mastered, whatever they were before.

    What failed is the far end of their brackets.
    """

    def move(frontier: Frontier) -> Frontier:
        level, before = levels[frontier.name], frontier.mastered
        end = failed[frontier.name] if failed else 0.0
        on_the_way: Status = "recovery" if failed else "coarse"
        return replace(
            frontier,
            mastered=level,
            commits=frontier.commits + (level > before),
            failed=end if end > before else None,
            status="complete" if level >= LIMIT else on_the_way,
        )

    return tuple(map(move, frontiers))


def count_commit_elsewhere(frontier: Frontier) -> Frontier:
    """Note that the policy has gained somewhere else."""
    return replace(frontier, commits_elsewhere=frontier.commits_elsewhere + 1)


def _wait(frontier: Frontier, status: Status) -> Frontier:
    return replace(frontier, status=status, commits_elsewhere=0)
