"""The control of a suite: the unchanged robot at the baseline, which no mean counts."""

from collections.abc import Mapping
from typing import TypeVar

CONTROL = "none"
"""What its column is called."""

Column = TypeVar("Column")


def drop_control(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return the columns that a mean over columns is taken of."""
    others = {name: column for name, column in columns.items() if name != CONTROL}
    return others or dict(columns)
