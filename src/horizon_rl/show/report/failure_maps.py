"""Where a policy breaks, as a value; finding it out takes the simulator's libraries."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from horizon_rl.evaluation.explain import Factor


@dataclass(frozen=True, kw_only=True, eq=False)
class FailureMap:
    """Success of a policy by the values of what varies between scenarios."""

    policy: str
    source: str
    """Its path or name: what a command takes."""
    title: str
    """Suite, severity, column and number of scenarios, in words."""
    success: float
    factors: "tuple[Factor, ...]"
    """The most telling first."""
