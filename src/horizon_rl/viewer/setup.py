"""What a session starts from: free play at the baseline, or a scenario of a suite."""

import re
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from horizon_rl.domains import Catalogue, middle_instance, paper_catalogue
from horizon_rl.evaluation.control import CONTROL
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.physics.terrain import SIZES
from horizon_rl.support.errors import InputError, require, unknown
from horizon_rl.task import TaskCfg
from horizon_rl.viewer.body import BodyVariant, parse_body
from horizon_rl.viewer.levels import Values

FLAT_GROUND = "flat"
SCENARIO = "SUITE:COLUMN[@SEVERITY][#NUMBER], as in ood:all@0.5#17"


@dataclass(frozen=True, kw_only=True, eq=False)
class Setup:
    """A world to begin with, and what happens in it by itself."""

    body: BodyVariant
    catalogue: Catalogue
    values: Values
    task: TaskCfg = field(default_factory=TaskCfg)
    scenario: str = ""
    """Its name, as `load_scenario` reads it; empty in free play."""
    commands: np.ndarray = field(default_factory=lambda: np.zeros((1, 3)))
    """[k, 3] one after the other, each for `TaskCfg.hold_steps`."""
    push_steps: np.ndarray = field(default_factory=lambda: np.array([-1]))
    """[pushes] control step before which each push comes; below 0: never."""
    noise_seed: int = 0
    noise_id: int = 0
    """The scenario's id, for sensor noise of its own."""


def free_setup(
    robot: str, catalogue: Catalogue | None = None, ground: str = FLAT_GROUND
) -> Setup:
    """Put a robot into the middle of the baseline ranges, nothing planned.

    Args:
        robot: Preset, intervention or MJCF file.
        catalogue: What can be changed; the paper's without it.
        ground: One of `named_grounds`.
    """
    catalogue = catalogue or paper_catalogue()
    values = middle_values(catalogue)
    if ground != FLAT_GROUND:
        if ground not in named_grounds():
            raise InputError(unknown("ground", ground, named_grounds()))
        if not set(SIZES) <= set(catalogue.parameters):
            raise InputError(
                f"ground '{ground}' needs the group terrain: take --catalogue extended"
            )
        values |= named_grounds()[ground]
    return Setup(body=parse_body(robot), catalogue=catalogue, values=values)


@cache
def named_grounds() -> dict[str, dict[str, np.ndarray]]:
    """Return values of the group terrain by name: flat, and the columns of `ground`."""
    columns = {column.name: column.spans for column in load_suite("ground").columns}
    columns[FLAT_GROUND] = columns.pop(CONTROL)
    names = (FLAT_GROUND, *(name for name in columns if name != FLAT_GROUND))
    return {
        name: {size: np.array([columns[name][size][0].middle]) for size in SIZES}
        for name in names
    }


def ground_of(values: Values) -> str:
    """Name the ground that parameters ask for; empty if it has no name."""
    asked = {size: values.get(size, np.zeros(1)) for size in SIZES}
    same = (n for n, v in named_grounds().items() if all(v[s] == asked[s] for s in v))
    return next(same, "")


def middle_values(catalogue: Catalogue) -> dict[str, np.ndarray]:
    """Return the middle of every parameter's baseline."""
    return {name: np.ravel(v) for name, v in middle_instance(catalogue).items()}


def load_scenario(
    name: str, robot: str | None = None, catalogue: Catalogue | None = None
) -> Setup:
    """Load one frozen scenario by its name, `SCENARIO`."""
    parts = re.fullmatch(r"(.+?):([^@#]+)(?:@(\d*\.?\d+))?(?:#(\d+))?", name)
    if not parts:
        raise InputError(f"scenario '{name}' is not of the form {SCENARIO}")
    source, column_name, severity, number = parts.groups()
    level, row = float(severity) if severity else None, int(number or 0)
    suite = load_suite(source, level, robot, catalogue)
    columns = {column.name: column for column in suite.columns}
    if column_name not in columns:
        raise InputError(unknown("column", column_name, columns))
    require(f"number of scenario '{name}'", row, 0, suite.num_episodes - 1)
    frozen = suite.frozen[column_name]
    at = "" if suite.severity is None else f"@{suite.severity:g}"
    return Setup(
        body=parse_body(columns[column_name].robot),
        catalogue=frozen.catalogue,
        values={k: np.atleast_1d(v[row]) for k, v in frozen.instances.items()},
        task=frozen.task,
        scenario=f"{suite.name}:{column_name}{at}#{row}",
        commands=frozen.commands[row],
        push_steps=frozen.push_steps[row],
        noise_seed=frozen.noise_seed,
        noise_id=row,
    )
