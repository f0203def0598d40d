"""How far physics lies from the baseline, and whether the policy's curriculum got there."""

from collections.abc import Mapping
from math import inf
from pathlib import Path

import numpy as np

from horizon_rl.domains import Catalogue, Group, Parameter
from horizon_rl.evaluation.explain import AXES
from horizon_rl.policies.learned import read_checkpoint
from horizon_rl.policies.shipped import find_checkpoint, model_names
from horizon_rl.support.records import decode

Values = Mapping[str, np.ndarray]
"""Values of an instance by full parameter name, [draws], in the reference body's units."""

BARE_NAMES = ("scale", "offset")
"""Parameters that mean nothing without their group's name."""


Mastered = tuple[Catalogue, Mapping[str, float]]
"""What a checkpoint's curriculum has committed: its catalogue, and levels by group."""


def read_mastered(source: str) -> Mastered | None:
    """Read what a checkpoint has mastered; None for policies that keep no record."""
    if source not in model_names() and not Path(source).is_dir():
        return None
    record = read_checkpoint(find_checkpoint(source)).record
    return decode(Catalogue, record.catalogue), record.levels


def levels_needed(parameter: Parameter, values: np.ndarray) -> np.ndarray:
    """Return for each value the least level whose range has it; inf past the limits."""
    baseline, limit = parameter.baseline, parameter.limit
    below = (baseline.low - values) / ((baseline.low - limit.low) or 1.0)
    above = (values - baseline.high) / ((limit.high - baseline.high) or 1.0)
    past_limit = (values < limit.low) | (values > limit.high)
    return np.where(past_limit, inf, np.maximum(0.0, np.maximum(below, above)))


def group_level(group: Group, values: Values) -> float:
    """Return the least level of a group that holds all the values given for it."""
    named = Catalogue((group,)).parameters
    given = {name: values[name] for name in named if name in values}
    needed = (levels_needed(named[name], v).max() for name, v in given.items())
    return float(max(needed, default=0.0))


def compare_levels(
    catalogue: Catalogue, values: Values, mastered: Mastered | None
) -> dict[str, tuple[float, float | None]]:
    """Return for each group the level that its values need and the one mastered.

    The first is infinite past the limits; the second is None where it is unknown. The
    policy's own catalogue is the measure where it has the group: a level of another
    catalogue may mean another range. Groups that it has not were at their baselines.
    """
    trained, levels = mastered or (None, {})
    own = {group.name: group for group in trained.groups} if trained else {}
    return {
        name: (
            group_level(own.get(name, group), values),
            levels.get(name, 0.0) if mastered else None,
        )
        for name, group in ((group.name, group) for group in catalogue.groups)
    }


def describe_values(catalogue: Catalogue, values: Values) -> list[str]:
    """Name the values outside their baselines, the furthest first: 'mass scale 2.7'."""
    far = []
    for name, parameter in catalogue.parameters.items():
        levels = levels_needed(parameter, values[name])
        worst = int(np.argmax(levels))
        if name.startswith("reset.") or levels[worst] == 0.0:
            continue  # A start is over after a moment.
        group = f"{name.split('.')[0]} " if parameter.name in BARE_NAMES else ""
        axis = f" {AXES[worst]}" if parameter.draws == len(AXES) else ""
        text = f"{group}{parameter.name.replace('_', ' ')}{axis}"
        value = f"{values[name][worst]:.2g} {parameter.unit}".rstrip()
        far.append((levels[worst], f"{text} {value}"))
    return [text for _, text in sorted(far, key=lambda item: -item[0])]
