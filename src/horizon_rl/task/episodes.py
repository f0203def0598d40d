"""Episode records, kept on the device: gates and suites read them, rarely."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch

from horizon_rl.support.bounds import Amount, Bounded, Share

FALL_CAUSES = ("none", "trunk", "tilt", "unhealthy")
"""Why an episode ended before its time: nothing, trunk contact, lean, broken physics."""
UNHEALTHY = FALL_CAUSES.index("unhealthy")


@dataclass(frozen=True, eq=False)
class EpisodeTable:
    """Finished episodes, one row each, as numpy arrays."""

    start: np.ndarray
    """Control step, counted from `begin`, at which it began; negative if it was set to
    begin in mid-episode."""
    length: np.ndarray
    """Control steps it lasted."""
    tracking_error: np.ndarray
    """Time mean of |commanded - actual| horizontal velocity, m/s; where the physics
    broke, `TaskCfg.worst_errors` at least."""
    yaw_error: np.ndarray
    """Time mean of |commanded - actual| yaw rate, rad/s; likewise."""
    returns: np.ndarray
    """Sum of rewards."""
    cause: np.ndarray
    """Index into `FALL_CAUSES`."""
    row: np.ndarray
    """Row of the scenarios, and so of the pool: its instance."""

    def __len__(self) -> int:
        return len(self.start)

    def rows(self, rows: slice) -> "EpisodeTable":
        """Return some of the episodes."""
        columns = (getattr(self, field.name) for field in fields(self))
        return EpisodeTable(*(column[rows] for column in columns))


@dataclass(frozen=True, kw_only=True)
class SuccessCfg(Bounded):
    """When an episode is a success; the defaults are the paper's."""

    min_length: Share = 0.95
    """It lasts at least this share of the longest episode."""
    max_error: Amount = 0.4
    """Its tracking error is at most this, m/s."""
    close_error: Amount = 0.2
    """A success that tracks within this is a close one, m/s."""


def succeeded(
    episodes: EpisodeTable, longest: int, cfg: SuccessCfg | None = None
) -> np.ndarray:
    """Tell for each episode whether it is a success, `longest` being in steps."""
    cfg = cfg or SuccessCfg()
    lasted = episodes.length >= cfg.min_length * longest
    tracked = episodes.tracking_error <= cfg.max_error
    return lasted & tracked & (episodes.cause != UNHEALTHY)


def concatenate(tables: Sequence[EpisodeTable]) -> EpisodeTable:
    """Put tables one after the other."""
    names = [field.name for field in fields(EpisodeTable)]
    columns = ([getattr(table, name) for table in tables] for name in names)
    return EpisodeTable(*map(np.concatenate, columns))


class EpisodeRecorder:
    """The last episodes, and each world's first, written without leaving the device."""

    def __init__(
        self,
        num_worlds: int,
        capacity: int,
        device: torch.device,
        worst_errors: tuple[float, float] = (1.0, 1.0),
    ):
        """Make room for the last `capacity` episodes.

        Where the physics broke, the mean over the steps before says nothing: a world
        that breaks at once would track perfectly. So errors of such episodes are
        `worst_errors` at least.
        """
        self.capacity = capacity
        self._worst = torch.tensor(worst_errors, device=device)
        self.sums = torch.zeros((num_worlds, 3), device=device)
        """Of the running episodes: tracking error, yaw error, reward."""
        # The last row takes what is not to be kept: no branch, no host sync.
        width = len(fields(EpisodeTable))
        # One column more: the world. In single precision up to 16 million are exact.
        self._ring = torch.zeros((capacity + 1, width + 1), device=device)
        self._ids = torch.arange(num_worlds, device=device, dtype=torch.float)
        self._first = torch.zeros((num_worlds, width), device=device)
        self._count = torch.zeros((), dtype=torch.long, device=device)

    def clear(self) -> None:
        """Forget finished and running episodes."""
        self.sums.zero_()
        self._first.zero_()
        self._count.zero_()

    def add(self, error: torch.Tensor, yaw_error: torch.Tensor, reward: torch.Tensor):
        """Add one control step's errors and reward, [n] each."""
        self.sums += torch.stack((error, yaw_error, reward), dim=1)

    def finish(
        self,
        done: torch.Tensor,
        step: torch.Tensor,
        length: torch.Tensor,
        cause: torch.Tensor,
        row: torch.Tensor,
    ) -> None:
        """Record the episodes that are `done` [n], which lasted `length` steps."""
        steps = length.clamp(min=1).unsqueeze(1)
        means = self.sums[:, :2] / steps
        broke = (cause == UNHEALTHY).unsqueeze(1)
        means = torch.where(broke, means.maximum(self._worst), means)
        table = torch.stack(
            (
                (step - length).float(),
                length.float(),
                means[:, 0],
                means[:, 1],
                self.sums[:, 2],
                cause.float(),
                row.float(),
            ),
            dim=1,
        )
        first = done & (step == length)
        self._first.copy_(torch.where(first.unsqueeze(1), table, self._first))
        slot = (self._count + done.cumsum(0) - 1) % self.capacity
        slot = slot.masked_fill(~done, self.capacity)
        self._ring[slot] = torch.cat((table, self._ids.unsqueeze(1)), dim=1)
        self._count += done.sum()
        self.sums *= (~done).unsqueeze(1)

    def recent(self, count: int) -> torch.Tensor:
        """Return how many of the last `count` episodes there are, their mean length and
        their mean tracking error, [3], without waiting for the device. Those that were
        set to begin in mid-episode do not count."""
        ages = torch.arange(min(count, self.capacity), device=self._ring.device)
        episodes = self._ring[(self._count - 1 - ages) % self.capacity, :3]
        there = (ages < self._count) & (episodes[:, 0] >= 0.0)
        total = there.sum()
        means = (episodes[:, 1:] * there.unsqueeze(1)).sum(0) / total.clamp(min=1)
        return torch.cat((total.unsqueeze(0), means))

    def first(self, num_worlds: int) -> EpisodeTable:
        """Read the first episode since `clear` of the first `num_worlds` worlds."""
        return _to_table(self._first[:num_worlds])

    def table(self) -> EpisodeTable:
        """Read the last finished episodes, oldest first."""
        return _to_table(self._ring[self._order(), :-1])

    def worlds(self) -> np.ndarray:
        """Read in which world each episode of `table` took place."""
        return self._ring[self._order(), -1].cpu().numpy().astype(int)

    def _order(self) -> torch.Tensor:
        """Return where the last finished episodes lie, oldest first."""
        count = int(self._count)
        kept = min(count, self.capacity)
        order = (torch.arange(kept) + count - kept) % self.capacity
        return order.to(self._ring.device)


def _to_table(records: torch.Tensor) -> EpisodeTable:
    # A copy: the recorder goes on writing where these numbers came from.
    columns = records.cpu().numpy().copy().T
    whole = ("start", "length", "cause", "row")
    return EpisodeTable(
        *(
            column.astype(int) if field.name in whole else column
            for field, column in zip(fields(EpisodeTable), columns, strict=True)
        )
    )
