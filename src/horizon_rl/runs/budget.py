"""The budget of a run, and whether it is spent."""

import os
from dataclasses import dataclass
from pathlib import Path
from warnings import warn

from horizon_rl.runs.lines import CHECKSUM, check_line, is_sealed, parse_json, to_line
from horizon_rl.runs.paths import BUDGET, JOURNAL
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, require
from horizon_rl.support.reading import read_bytes
from horizon_rl.support.records import decode, encode


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a run may spend; 0 is no limit. A phase that was begun is finished."""

    steps: int = 0
    """Environment steps, probes and rolled-back phases included."""
    minutes: float = 0.0

    def share(self, env_steps: int, seconds: float) -> float | None:
        """Return the share that is spent, the larger of the two; None without a limit."""
        shares = [env_steps / self.steps] if self.steps else []
        shares += [seconds / 60.0 / self.minutes] if self.minutes else []
        return max(shares, default=None)

    def left_s(
        self, env_steps: int, seconds: float, steps_per_s: float | None
    ) -> float | None:
        """Estimate the seconds until a limit is reached; None where nothing tells."""
        left = [60.0 * self.minutes - seconds] if self.minutes else []
        if self.steps and steps_per_s:
            left.append((self.steps - env_steps) / steps_per_s)
        return max(0.0, min(left)) if left else None

    def spent(self, env_steps: int, seconds: float) -> str | None:
        """Say which limit is reached, if one is."""
        if 0 < self.steps <= env_steps:
            return f"budget of {self.steps} env steps spent"
        if 0.0 < self.minutes * 60.0 <= seconds:
            return f"budget of {self.minutes:g} minutes spent"
        return None


def write_budget(run: Path, budget: Budget) -> None:
    """Remember the budget that a resumed run was given."""
    write_file(run / BUDGET, to_line(encode(budget)))


def read_budget(run: Path) -> Budget | None:
    """Return the budget that a run was last given on resuming; None: none was.

    A damaged file counts as none, with a warning.
    """
    file = run / BUDGET
    if not os.path.lexists(file):
        return None
    try:
        content = read_bytes(file)
        record = parse_json(content, "line 1")
        # Older versions wrote neither a checksum nor the line's end.
        is_new = content.endswith(b"\n") or CHECKSUM in record
        if is_new or is_sealed(run / JOURNAL):
            record = check_line(record, "line 1")
        budget = decode(Budget, record)
        require("steps", budget.steps, 0)
        require("minutes", budget.minutes, 0.0)
        return budget
    except (OSError, InputError) as error:
        warn(
            f"{file} is damaged ({error}): the run has the budget of its start, unless "
            "you give it another",
            stacklevel=2,
        )
        return None
