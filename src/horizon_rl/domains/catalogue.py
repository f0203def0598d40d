"""Domain groups and the catalogue of them: levels become ranges and coverage."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from horizon_rl.domains.parameter import Parameter, Range
from horizon_rl.support.errors import InputError, unknown

Levels = Mapping[str, float]
"""Level in [0, 1] by group name; a group that is left out stays at level 0."""

CORE_GROUPS = ("actuation", "mass", "disturbance", "com")
"""The paper's compact core: the hard axes that gain from being widened together."""

OPTIONAL_GROUPS = ("latency", "sensing", "drivetrain", "damage", "terrain")
"""Groups beyond the paper's, in the shipped catalogue `extended`."""

Ranges = Mapping[str, Range]
"""Range by full parameter name, as in `mass.scale`."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Parameters that move together, under one level."""

    name: str
    parameters: tuple[Parameter, ...]
    about: str = ""

    def __post_init__(self):
        if not self.parameters:
            raise InputError(f"group '{self.name}' has no parameters")

    def coverage_at(self, level: float) -> float:
        """Mean over the parameters of (width at `level` / width of the limit)."""
        return fmean(p.coverage_at(level) for p in self.parameters)


@dataclass(frozen=True)
class Catalogue:
    """All groups a run may widen, in the order tables and samples follow."""

    groups: tuple[Group, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Every parameter by its full name, `group.parameter`."""
        return {
            f"{group.name}.{parameter.name}": parameter
            for group in self.groups
            for parameter in group.parameters
        }

    def __getitem__(self, name: str) -> Group:
        for group in self.groups:
            if group.name == name:
                return group
        known = unknown("group", name, self.names)
        hint = "; the catalogue 'extended' has it" if name in OPTIONAL_GROUPS else ""
        raise InputError(known + hint)

    def select(self, groups: str) -> tuple[str, ...]:
        """Return the groups behind names between commas, `core` and `full` among them."""
        sets = {"core": CORE_GROUPS, "full": self.names}
        asked = [name.strip() for name in groups.split(",")]
        names = [name for part in asked for name in sets.get(part, (part,))]
        return tuple(self[name].name for name in names)

    def parse_levels(self, text: str) -> dict[str, float]:
        """Read levels written as `mass=0.5,com=0.2`; `all=0.25` names every group."""
        levels: dict[str, float] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, number = part.partition("=")
            try:
                level = float(number)
            except ValueError:
                raise InputError(
                    f"level '{part}' is not of the form group=number, as in mass=0.5"
                ) from None
            levels |= dict.fromkeys(self.names if name == "all" else (name,), level)
        self._check(levels)
        return levels

    def ranges(self, levels: Levels) -> dict[str, Range]:
        """Return the range of every parameter when each group is at its level."""
        return {
            f"{group.name}.{parameter.name}": parameter.range_at(level)
            for group, level in self._with_level(levels)
            for parameter in group.parameters
        }

    def fixed_at(self, levels: Levels) -> "Catalogue":
        """Return the catalogue in which groups start from these levels, not from 0.

        Groups that are not named then draw from the ranges they are fixed at.
        """
        ranges = self.ranges(levels)

        def fix(group: Group, parameter: Parameter) -> Parameter:
            return replace(parameter, baseline=ranges[f"{group.name}.{parameter.name}"])

        return Catalogue(
            tuple(
                replace(g, parameters=tuple(fix(g, p) for p in g.parameters))
                for g in self.groups
            )
        )

    def coverage(self, levels: Levels) -> dict[str, float]:
        """Return the coverage of every group at its level."""
        return {g.name: g.coverage_at(level) for g, level in self._with_level(levels)}

    def _check(self, levels: Levels) -> None:
        """Refuse unknown groups, and levels outside 0..1."""
        for name, level in levels.items():
            self[name]  # Refuses a name that is not in the catalogue.
            if not (math.isfinite(level) and 0.0 <= level <= 1.0):
                raise InputError(f"level {name}={level:g} is outside 0..1")

    def _with_level(self, levels: Levels) -> Iterator[tuple[Group, float]]:
        self._check(levels)
        for group in self.groups:
            yield group, levels.get(group.name, 0.0)
