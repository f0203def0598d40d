"""How far physics lies from the baseline, and whether the policy's curriculum got there."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np

from horizon_rl.domains import Catalogue, Group, Parameter
from horizon_rl.evaluation.explain import AXES
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.policies.shipped import find_checkpoint, model_names
from horizon_rl.support.records import decode

Values = Mapping[str, np.ndarray]
"""Values of an instance by full parameter name, [draws], in the reference body's units."""

BARE_NAMES = ("scale", "offset")
"""Parameters that mean nothing without their group's name."""


@dataclass(frozen=True, kw_only=True)
class Mastered:
    """The physics that a checkpoint's curriculum has committed."""

    catalogue: Catalogue
    levels: dict[str, float]
    """By group; one that is left out was trained at the baseline."""


@dataclass(frozen=True, kw_only=True)
class GroupLevels:
    """The level that a group's values need, and the one that the policy has mastered."""

    group: str
    needed: float
    """Least level whose ranges hold all values; infinite past the limits."""
    mastered: float | None
    """None: what the policy was trained on is unknown."""

    @property
    def is_outside(self) -> bool:
        return self.mastered is not None and self.needed > self.mastered + 1e-9


def read_mastered(source: str) -> Mastered | None:
    """Read what a checkpoint has mastered; None for policies that keep no record."""
    if source not in model_names() and not Path(source).is_dir():
        return None
    record = load_checkpoint(find_checkpoint(source)).record
    catalogue = decode(Catalogue, record.catalogue)
    return Mastered(catalogue=catalogue, levels=dict(record.levels))


def level_needed(parameter: Parameter, value: float) -> float:
    """Return the least level at which the parameter's range holds a value."""
    baseline, limit = parameter.baseline, parameter.limit
    if baseline.low <= value <= baseline.high:
        return 0.0
    if not limit.low <= value <= limit.high:
        return inf
    side = "high" if value > baseline.high else "low"
    end, last = getattr(baseline, side), getattr(limit, side)
    return (value - end) / (last - end)


def group_level(group: Group, values: Values) -> float:
    """Return the least level of a group that holds all the values given for it."""
    return max(
        (
            level_needed(parameter, float(value))
            for parameter in group.parameters
            for value in np.ravel(values.get(f"{group.name}.{parameter.name}", ()))
        ),
        default=0.0,
    )


def compare_levels(
    catalogue: Catalogue, values: Values, mastered: Mastered | None
) -> list[GroupLevels]:
    """Compare every group's values with what the policy has mastered.

    The policy's own catalogue is the measure where it has the group: a level of another
    catalogue may mean another range.
    """
    trained = {g.name: g for g in mastered.catalogue.groups} if mastered else {}
    return [
        GroupLevels(
            group=group.name,
            needed=group_level(trained.get(group.name, group), values),
            mastered=mastered and mastered.levels.get(group.name, 0.0),
        )
        for group in catalogue.groups
    ]


def describe_values(catalogue: Catalogue, values: Values) -> list[str]:
    """Name the values outside their baselines, the furthest first: 'mass scale 2.7'."""
    far = []
    for name, parameter in catalogue.parameters.items():
        if name.startswith("reset."):
            continue  # Over after a moment.
        levels = [level_needed(parameter, float(v)) for v in values[name]]
        worst = int(np.argmax(levels))
        group = f"{name.split('.')[0]} " if parameter.name in BARE_NAMES else ""
        axis = f" {AXES[worst]}" if parameter.draws == len(AXES) else ""
        text = f"{group}{parameter.name.replace('_', ' ')}{axis}"
        value = f"{values[name][worst]:.2g} {parameter.unit}".rstrip()
        far.append((levels[worst], f"{text} {value}"))
    far.sort(key=lambda item: -item[0])
    return [text for level, text in far if level > 0.0]
