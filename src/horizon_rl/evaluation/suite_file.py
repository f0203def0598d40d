"""Suites as TOML: the built-in ones and the users' own are written the same way."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from horizon_rl.domains import Catalogue, Range, paper_catalogue
from horizon_rl.evaluation.suite import Column, Spans, Suite, spans_at
from horizon_rl.physics import effects_of
from horizon_rl.robots import REFERENCE, load_robot
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.records import decode
from horizon_rl.support.toml_text import TomlText, Where, is_number
from horizon_rl.task import SuccessCfg, TaskCfg

BUILT_IN = ("ood", "compositions", "interventions", "robots")
SUITE_KEYS = (
    *("about", "episodes", "seed", "severity", "robots", "motors"),
    *("task", "success", "columns"),
)
COLUMN_KEYS = ("robot", "motors", "groups", "levels", "parameters")

T = TypeVar("T")


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
        name = source
    elif source.endswith(".toml"):
        try:
            text = Path(source).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot read {source}: {why}") from error
        name = Path(source).stem
    else:
        raise InputError(f"{unknown('suite', source, BUILT_IN)}, or a .toml file")
    reader = _Reader(text, source, catalogue or paper_catalogue())
    return reader.suite(name, severity, robot)


class _Reader(TomlText):
    """Turns tables into columns."""

    def __init__(self, text: str, source: str, catalogue: Catalogue):
        super().__init__(text, source)
        self.catalogue = catalogue

    def suite(self, name: str, severity: float | None, robot: str | None) -> Suite:
        data = self.parse()
        self._expect_keys(data, SUITE_KEYS, ())
        tables = self._table(data.get("columns", {}), ("columns",))
        if severity is not None:
            if not any("groups" in t for t in tables.values() if isinstance(t, dict)):
                raise InputError(
                    f"suite '{name}' has no severity: no column of it shifts groups"
                )
            _check_severity(severity)
        level = self._number(data.get("severity", 1.0), ("severity",))
        level = level if severity is None else severity
        robots = self._robots(data, tables, robot)
        columns = [
            self._column(key, table, level, body, data.get("motors", "scaled"))
            for key, table, body in _expand(tables, robots)
        ]
        if not columns:
            raise InputError(f"{self.source}: no columns and no robots in this suite")
        shifts = any("groups" in table for table in tables.values())
        if "severity" in data and not shifts:
            self._fail(("severity",), "no column of this suite shifts groups")
        return Suite(
            name=name,
            columns=tuple(columns),
            num_episodes=self._count(data, "episodes", 1024, least=1),
            seed=self._count(data, "seed", 0, least=0),
            severity=level if shifts else None,
            about=self._string(data.get("about", ""), ("about",)),
            task=self._task(data),
            success=self._decode(SuccessCfg, data, "success"),
            catalogue=self.catalogue,
        )

    def _robots(
        self, data: Mapping[str, Any], tables: Mapping[str, Any], robot: str | None
    ) -> list[str]:
        named = data.get("robots", [])
        if not isinstance(named, list) or not all(isinstance(r, str) for r in named):
            self._fail(("robots",), f"{named!r} is not a list of names")
        if len(set(named)) < len(named):
            self._fail(("robots",), f"{named!r} names a robot twice")
        own = any("robot" in t for t in tables.values() if isinstance(t, dict))
        if named and own:
            self._fail(("robots",), "every column runs on each, but one names its own")
        for body in named:
            self._build(("robots",), lambda body=body: load_robot(body))
        if robot is None:
            return named
        if named or own:
            raise InputError(
                f"{self.source} names its own robots: leave out --robot {robot}"
            )
        load_robot(robot)
        return [robot]

    def _column(
        self, name: str, table: Any, level: float, robot: str | None, motors: Any
    ) -> Column:
        # A column that runs on several robots stands in the file once.
        where = ("columns", name.removesuffix(f"/{robot}"))
        table = self._table(table, where)
        self._expect_keys(table, COLUMN_KEYS, where)
        levels = dict.fromkeys(self._groups(table.get("groups", []), where), level)
        fixed = self._table(table.get("levels", {}), (*where, "levels"))
        levels |= {k: self._number(x, (*where, "levels", k)) for k, x in fixed.items()}
        at = (*where, "levels" if "levels" in table else "groups")
        spans = self._build(at, lambda: spans_at(self.catalogue, levels))
        spans |= self._exact(table.get("parameters", {}), (*where, "parameters"))
        motors = table.get("motors", motors)
        if motors not in ("scaled", "own"):
            self._fail(where, unknown("motors", str(motors), ("scaled", "own")))
        if "robot" in table:
            at = (*where, "robot")
            robot = self._string(table["robot"], at)
            self._build(at, lambda: load_robot(robot))
        return Column(name=name, spans=spans, robot=robot or REFERENCE, motors=motors)

    def _groups(self, names: Any, where: Where) -> Sequence[str]:
        if not isinstance(names, list):
            self._fail((*where, "groups"), f"{names!r} is not a list of groups")
        if names == ["all"]:
            return self.catalogue.names
        return [
            self._build(
                (*where, "groups"), lambda name=name: self.catalogue[str(name)].name
            )
            for name in names
        ]

    def _exact(self, table: Any, where: Where, prefix: str = "") -> Spans:
        """Read parameters: `mass.scale = 5.0` and `"mass.scale" = 5.0` are the same."""
        spans: Spans = {}
        for key, value in self._table(table, where).items():
            name, at = f"{prefix}{key}", (*where, key)
            if isinstance(value, dict):
                spans |= self._exact(value, at, f"{name}.")
            elif name not in self.catalogue.parameters:
                self._fail(at, unknown("parameter", name, self.catalogue.parameters))
            else:
                spans[name] = self._spans(name, value, at)
        return spans

    def _spans(self, name: str, value: Any, where: Where) -> tuple[Range, ...]:
        """Read a number, [low, high], or a list of these, one for every draw."""
        draws = self.catalogue.parameters[name].draws
        if (span := self._span(value, where)) is not None:
            spans = (span,) * draws
        else:
            entries = value if isinstance(value, list) else []
            each = [self._span(entry, where) for entry in entries]
            spans = tuple(span for span in each if span is not None)
            if len(spans) != draws or len(each) != draws:
                self._fail(
                    where,
                    f"{value!r} is neither a number, a range [low, high], nor a list "
                    f"of these with one for each of the {draws} draws",
                )
        effect = effects_of(self.catalogue).get(name)
        for span in spans:
            if effect and not effect.low <= span.low <= span.high <= effect.high:
                self._fail(
                    where,
                    f"{span} is impossible; accepted: {effect.low:g}..{effect.high:g}",
                )
        return spans

    def _span(self, value: Any, where: Where) -> Range | None:
        ends = [value, value] if is_number(value) else value
        if isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)):
            low, high = (self._number(end, where) for end in ends)
            return self._build(where, lambda: Range(low, high))
        return None

    def _task(self, data: Mapping[str, Any]) -> TaskCfg:
        task = self._decode(TaskCfg, data, "task")
        # Times so short that they round to no control step at all.
        if task.max_steps < 1 or task.hold_steps < 1:
            self._fail(("task",), "episode_s and command.hold_s: at least 0.02 s")
        return task

    def _decode(self, cls: type[T], data: Mapping[str, Any], key: str) -> T:
        table = data.get(key, {})
        self._expect_finite(table, (key,))
        return self._build((key,), lambda: decode(cls, table))

    def _expect_finite(self, value: Any, where: Where) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                self._expect_finite(inner, (*where, key))
        elif is_number(value):
            self._number(value, where)

    def _count(self, data: Mapping[str, Any], key: str, usual: int, least: int) -> int:
        value = data.get(key, usual)
        if type(value) is not int or value < least:
            accepted = f"accepted: whole numbers, at least {least}"
            self._fail((key,), f"{value!r}; {accepted}")
        return value


def _expand(
    tables: Mapping[str, Any], robots: Sequence[str]
) -> list[tuple[str, Any, str | None]]:
    """Cross columns with robots; a robot alone is a column at the baseline."""
    if not tables:
        return [(robot, {}, robot) for robot in robots]
    if len(robots) < 2:
        return [(name, t, next(iter(robots), None)) for name, t in tables.items()]
    return [
        (f"{name}/{robot}", table, robot)
        for robot in robots
        for name, table in tables.items()
    ]


def _check_severity(severity: float) -> None:
    if not 0.0 <= severity <= 1.0:
        raise InputError(f"severity is {severity:g}; accepted: 0..1")
