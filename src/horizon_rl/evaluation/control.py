"""The control of a suite: the unchanged robot at the baseline, which no mean counts."""

from collections.abc import Mapping
from typing import TypeVar

CONTROL = "none"
"""What its column is called; on several robots, with the robot's name after a slash."""

Column = TypeVar("Column")


def drop_control(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return the columns that a mean over columns is taken of."""
    others = {k: v for k, v in columns.items() if k.split("/")[0] != CONTROL}
    return others or dict(columns)
