"""Suites as TOML: the built-in ones and the users' own are written the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from horizon_rl.domains import Catalogue, Range, paper_catalogue
from horizon_rl.evaluation.suite import Column, Spans, Suite, spans_at
from horizon_rl.physics import effects_of
from horizon_rl.physics.motors import Motors
from horizon_rl.robots import REFERENCE, load_robot
from horizon_rl.support.errors import InputError, require, unknown
from horizon_rl.support.records import FieldError, decode_value, inside
from horizon_rl.support.toml_text import toml_tables
from horizon_rl.task import SuccessCfg, TaskCfg

BUILT_IN = ("ood", "compositions", "interventions", "robots")


@dataclass(frozen=True, kw_only=True)
class ColumnTable:
    """A column as a file has it."""

    robot: str | None = None
    motors: Motors | None = None
    groups: tuple[str, ...] = ()
    """Groups at the suite's severity; `all` stands for all of them."""
    levels: dict[str, float] = field(default_factory=dict)
    """Groups at levels of their own."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Exact values and ranges; `mass.scale = 5.0` and `"mass.scale" = 5.0` are one."""


@dataclass(frozen=True, kw_only=True)
class SuiteTable:
    """A suite as a file has it."""

    about: str = ""
    episodes: int = 1024
    seed: int = 0
    severity: float | None = None
    robots: tuple[str, ...] = ()
    motors: Motors = "scaled"
    task: TaskCfg = field(default_factory=TaskCfg)
    success: SuccessCfg = field(default_factory=SuccessCfg)
    columns: dict[str, ColumnTable] = field(default_factory=dict)


def load_suite(
    source: str,
    severity: float | None = None,
    robot: str | None = None,
    catalogue: Catalogue | None = None,
) -> Suite:
    """Load a built-in suite by name, or one of your own from its TOML file.

    Args:
        source: A name in `BUILT_IN`, or a path that ends in .toml.
        severity: Level of the groups that columns shift; the file's, else 1.
        robot: Body to use in place of Go2; refused where the suite names its own.
        catalogue: What the parameters and their ranges are; the paper's without it.
    """
    if source in BUILT_IN:
        folder = files("horizon_rl.evaluation").joinpath("suites")
        text = folder.joinpath(f"{source}.toml").read_text("utf-8")
    elif source.endswith(".toml"):
        try:
            text = Path(source).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot read {source}: {why}") from error
    else:
        raise InputError(f"{unknown('suite', source, BUILT_IN)}, or a .toml file")
    with toml_tables(text, source) as tables:
        table = decode_value(SuiteTable, tables)
        return _make_suite(table, source, severity, robot, catalogue)


def _make_suite(
    table: SuiteTable,
    source: str,
    severity: float | None,
    robot: str | None,
    catalogue: Catalogue | None,
) -> Suite:
    name, catalogue = Path(source).stem, catalogue or paper_catalogue()
    shifts = any(column.groups for column in table.columns.values())
    if severity is not None:
        if not shifts:
            raise InputError(
                f"suite '{name}' has no severity: no column of it shifts groups"
            )
        require("severity", severity, 0.0, 1.0)
    elif table.severity is not None and not shifts:
        raise FieldError("no column of this suite shifts groups", ("severity",))
    else:
        severity = 1.0 if table.severity is None else table.severity
    for key, least in (("episodes", 1), ("seed", 0)):
        with inside(key):
            require(key, getattr(table, key), least, whole=True)
    # Times so short that they round to no control step at all.
    if table.task.max_steps < 1 or table.task.hold_steps < 1:
        raise FieldError("episode_s and command.hold_s: at least 0.02 s", ("task",))
    columns = [
        _make_column(column_name, key, body, table, severity, catalogue)
        for column_name, key, body in _expand(table, _robots(table, source, robot))
    ]
    if not columns:
        raise InputError(f"{source}: no columns and no robots in this suite")
    return Suite(
        name=name,
        columns=tuple(columns),
        num_episodes=table.episodes,
        seed=table.seed,
        severity=severity if shifts else None,
        about=table.about,
        task=table.task,
        success=table.success,
        catalogue=catalogue,
    )


def _robots(table: SuiteTable, source: str, robot: str | None) -> tuple[str, ...]:
    """Return the bodies that every column runs on; `robot` is the command line's."""
    own = any(column.robot is not None for column in table.columns.values())
    with inside("robots"):
        if len(set(table.robots)) < len(table.robots):
            raise FieldError(f"{list(table.robots)} names a robot twice")
        if table.robots and own:
            raise FieldError("every column runs on each, but one names its own")
        for body in table.robots:
            load_robot(body)
    if robot is None:
        return table.robots
    if table.robots or own:
        raise InputError(f"{source} names its own robots: leave out --robot {robot}")
    load_robot(robot)
    return (robot,)


def _expand(
    table: SuiteTable, robots: tuple[str, ...]
) -> list[tuple[str, str, str | None]]:
    """Cross columns with robots; a robot alone is a column at the baseline.

    Returns:
        A name, the key of its table and a robot for each column.
    """
    if not table.columns:
        return [(robot, robot, robot) for robot in robots]
    if len(robots) < 2:
        return [(key, key, next(iter(robots), None)) for key in table.columns]
    return [(f"{key}/{robot}", key, robot) for robot in robots for key in table.columns]


def _make_column(
    name: str,
    key: str,
    robot: str | None,
    suite: SuiteTable,
    severity: float,
    catalogue: Catalogue,
) -> Column:
    table = suite.columns.get(key, ColumnTable())
    with inside("columns", key):
        with inside("levels" if table.levels else "groups"):
            everything = table.groups == ("all",)
            groups = catalogue.names if everything else table.groups
            levels = dict.fromkeys(groups, severity) | table.levels
            spans = spans_at(catalogue, levels)
        with inside("parameters"):
            spans |= _read_parameters(table.parameters, catalogue)
        if table.robot is not None:
            with inside("robot"):
                load_robot(table.robot)
    return Column(
        name=name,
        spans=spans,
        robot=table.robot or robot or REFERENCE,
        motors=table.motors or suite.motors,
    )


def _read_parameters(
    table: Mapping[str, Any], catalogue: Catalogue, prefix: str = ""
) -> Spans:
    spans: Spans = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        with inside(key):
            if isinstance(value, dict):
                spans |= _read_parameters(value, catalogue, f"{name}.")
            elif name not in catalogue.parameters:
                raise FieldError(unknown("parameter", name, catalogue.parameters))
            else:
                spans[name] = _read_spans(name, value, catalogue)
    return spans


def _read_spans(name: str, value: Any, catalogue: Catalogue) -> tuple[Range, ...]:
    """Read a number, [low, high], or a list of these, one for every draw."""
    draws = catalogue.parameters[name].draws
    spans = [_read_span(value)] * draws
    if None in spans:
        spans = [_read_span(entry) for entry in value] if type(value) is list else []
    found = tuple(span for span in spans if span is not None)
    if not len(found) == len(spans) == draws:
        raise FieldError(
            f"{value!r} is neither a number, a range [low, high], nor a list "
            f"of these with one for each of the {draws} draws"
        )
    effect = effects_of(catalogue).get(name)
    for span in found:
        if effect and not effect.low <= span.low <= span.high <= effect.high:
            raise FieldError(
                f"{span} is impossible; accepted: {effect.low:g}..{effect.high:g}"
            )
    return found


def _read_span(value: Any) -> Range | None:
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or not all(type(end) in (int, float) for end in ends):
        return None
    return Range(*(decode_value(float, end) for end in ends))
