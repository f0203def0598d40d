"""Suites as TOML: the built-in ones and the users' own are written the same way."""

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from horizon_rl.domains import Catalogue, Range, load_catalogue
from horizon_rl.domains.toml import SHIPPED
from horizon_rl.evaluation.draws import Draw
from horizon_rl.evaluation.suite import Column, Suite, spans_at
from horizon_rl.physics import effects_of
from horizon_rl.physics.motors import Motors
from horizon_rl.robots import REFERENCE, load_robot
from horizon_rl.support.bounds import MAX_NUMBERS, Bounded, Seed, Share, Within
from horizon_rl.support.errors import InputError, blame, require, unknown
from horizon_rl.support.reading import read_text
from horizon_rl.support.records import FieldError, decode_value, flatten, inside
from horizon_rl.support.toml_text import toml_tables
from horizon_rl.task import SuccessCfg, TaskCfg

Velocity = Annotated[float, Within(-5.0, 5.0)]
BUILT_IN = ("ood", "compositions", "interventions", "robots", "field", "ground")


@dataclass(frozen=True, kw_only=True)
class ColumnTable(Bounded):
    """A column as a file has it."""

    robot: str | None = None
    motors: Motors | None = None
    groups: tuple[str, ...] = ()
    """Groups at the suite's severity; `all` stands for all of them."""
    levels: dict[str, Share] = field(default_factory=dict)
    """Groups at levels of their own."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Exact values and ranges; `mass.scale = 5.0` and `"mass.scale" = 5.0` are one."""


@dataclass(frozen=True, kw_only=True)
class SuiteTable(Bounded):
    """A suite as a file has it."""

    about: str = ""
    catalogue: str = "paper"
    """What the parameters and their ranges are: a name, or a file beside this one."""
    episodes: Annotated[int, Within(1, 100_000)] = 1024
    seed: Seed = 0
    severity: Share | None = None
    robots: tuple[str, ...] = ()
    motors: Motors = "scaled"
    command: tuple[Velocity, Velocity, Velocity] | None = None
    """One for all scenarios: forward and left, m/s, turn, rad/s; drawn without it."""
    task: TaskCfg = field(default_factory=TaskCfg)
    success: SuccessCfg = field(default_factory=SuccessCfg)
    columns: dict[str, ColumnTable] = field(default_factory=dict)


def load_suite(
    source: str,
    severity: float | None = None,
    robot: str | None = None,
    catalogue: Catalogue | None = None,
    draw: Draw = "dev",
) -> Suite:
    """Load a built-in suite by name, or one of your own from its TOML file.

    Args:
        source: A name in `BUILT_IN`, or a path that ends in .toml.
        severity: Level of the groups that columns shift; the file's, else 1.
        robot: Body to use in place of Go2; refused where the suite names its own.
        catalogue: In place of the one that the file names, or of the paper's.
        draw: Which scenarios.
    """
    if source in BUILT_IN:
        folder = Path(str(files("horizon_rl.evaluation")))
        file = folder / "suites" / f"{source}.toml"
    elif source.endswith(".toml"):
        file = Path(source)
    else:
        raise InputError(f"{unknown('suite', source, BUILT_IN)}, or a .toml file")
    with blame(f"cannot read {source}"):
        text = read_text(file)
    with toml_tables(text, source) as tables:
        table = decode_value(SuiteTable, tables)
        shifts = any(column.groups for column in table.columns.values())
        wanted = table.severity if severity is None else severity
        if wanted is not None and not shifts:
            raise InputError(f"{source} has no severity: no column of it shifts groups")
        level = 1.0 if wanted is None else wanted
        require("severity", level, 0.0, 1.0)
        if catalogue is None:
            with inside("catalogue"):
                named = table.catalogue
                found = named if named in SHIPPED else file.parent / named
                catalogue = load_catalogue(found)
        columns = _make_columns(table, level, robot, catalogue)
        draws = sum(p.draws for p in catalogue.parameters.values())
        numbers = len(columns) * table.episodes * draws
        require("columns times episodes times draws", numbers, 0, MAX_NUMBERS)
        return Suite(
            name=Path(source).stem,
            columns=columns,
            num_episodes=table.episodes,
            seed=table.seed,
            draw=draw,
            severity=level if shifts else None,
            about=table.about,
            command=table.command,
            task=table.task,
            success=table.success,
            catalogue=catalogue,
        )


def _make_columns(
    suite: SuiteTable, severity: float, robot: str | None, catalogue: Catalogue
) -> tuple[Column, ...]:
    """Cross columns with robots; a robot alone is a column at the baseline."""
    robots, tables = suite.robots, suite.columns
    own = any(table.robot for table in tables.values())
    if robot:
        if robots or own:
            raise InputError(
                f"the suite names its own robots: leave out --robot {robot}"
            )
        load_robot(robot)  # Of the command line: no line of the file is at fault.
        robots = (robot,)
    elif robots and own:
        raise FieldError(
            "every column runs on each, but one names its own", ("robots",)
        )
    with inside("robots"):
        for name in robots:
            load_robot(name)
    if not tables:
        tables = {name: ColumnTable(robot=name) for name in robots}
        robots = ()
    columns = []
    for body in robots or (REFERENCE,):
        for key, table in tables.items():
            with inside("columns", key):
                with inside("robot"):
                    load_robot(table.robot or body)
                columns.append(
                    Column(
                        name=f"{key}/{body}" if len(robots) > 1 else key,
                        spans=_read_spans(table, severity, catalogue),
                        robot=table.robot or body,
                        motors=table.motors or suite.motors,
                    )
                )
    return tuple(columns)


def _read_spans(
    table: ColumnTable, severity: float, catalogue: Catalogue
) -> dict[str, tuple[Range, ...]]:
    """Return the ranges of every parameter's draws."""
    groups = catalogue.names if table.groups == ("all",) else table.groups
    with inside("levels" if table.levels else "groups"):
        levels = dict.fromkeys(groups, severity) | table.levels
        spans = spans_at(catalogue, levels)
    effects = effects_of(catalogue)
    for name, value in flatten(table.parameters).items():
        with inside("parameters", name):
            if name not in catalogue.parameters:
                raise FieldError(unknown("parameter", name, catalogue.parameters))
            spans[name] = _read_draws(value, catalogue.parameters[name].draws)
            effect = effects.get(name)
            for span in spans[name]:
                if effect and not effect.low <= span.low <= span.high <= effect.high:
                    raise FieldError(
                        f"{span} is impossible; accepted: {effect.low:g}..{effect.high:g}"
                    )
    return spans


def _read_draws(value: Any, draws: int) -> tuple[Range, ...]:
    """Read a number, [low, high], or a list of these, one for every draw."""
    spans = [_read_range(value)] * draws
    if None in spans and isinstance(value, list):
        spans = [_read_range(entry) for entry in value]
    found = tuple(span for span in spans if span is not None)
    if not len(found) == len(spans) == draws:
        raise FieldError(
            f"{value!r} is neither a number, a range [low, high], nor a list "
            f"of these with one for each of the {draws} draws"
        )
    return found


def _read_range(value: Any) -> Range | None:
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or not all(type(end) in (int, float) for end in ends):
        return None
    return Range(*(decode_value(float, end) for end in ends))
