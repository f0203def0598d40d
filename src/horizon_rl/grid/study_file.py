"""A study as a TOML file: methods x groups x settings x seeds, and what to evaluate.

    seeds = [0, 1]
    groups = ["core", "full"]

    [train]                 # What all runs have, as in a file of `horizon train`.
    preset = "smoke"

    [methods.horizon]
    [methods."fixed-0.35"]
    method = "fixed"
    levels = "0.35"

    [[evaluate]]            # Flags of `horizon eval`, and marks.
    severity = [0.5]

From it follow the runs, their names and their settings, and nothing else: reading and
expanding touches no run.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from horizon_rl.evaluation.draws import Draw
from horizon_rl.support.bounds import Bounded, NumScenarios, Positive, Seed, Share
from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.reading import read_text
from horizon_rl.support.records import FieldError, decode_value, inside
from horizon_rl.support.toml_text import toml_tables

NAME = r"[A-Za-z0-9][\w.+-]*"
"""What may be part of the name of a run, which is a folder's."""
EACH, PAIRS = "each", "pairs"
"""Groups that stand for many: every group of the catalogue alone, and every two."""
AXES = ("seeds", "groups")
"""What a method or a setting may have more or fewer of than the study."""


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan(Bounded):
    """One `horizon eval` of every run, at its end or on the way."""

    suite: str = "ood"
    severity: tuple[Share, ...] = ()
    columns: tuple[str, ...] = ()
    """`own` stands for the run's groups, each alone and all of them together."""
    draw: Draw = "dev"
    episodes: NumScenarios | None = None
    robot: str | None = None
    curve: bool = False
    curve_groups: tuple[str, ...] = ()
    stand: bool = False
    marks: tuple[Positive, ...] = ()
    """Env steps at which to evaluate the checkpoint that the run would have gone on
    from; none: at its end."""

    def flags(self, groups: Sequence[str]) -> list[str]:
        """Return the flags of `horizon eval` for a run that widens `groups`."""
        flags = ["--suite", self.suite] if not self.curve else ["--curve"]
        own = [*groups, *["+".join(groups)] * (len(groups) > 1)]
        columns = [
            c for name in self.columns for c in (own if name == "own" else [name])
        ]
        for flag, values in (
            ("--severity", self.severity),
            ("--columns", tuple(dict.fromkeys(columns))),
            ("--curve-groups", self.curve_groups),
        ):
            flags += [flag, *map(str, values)] if values else []
        flags += ["--draw", self.draw, *["--no-stand"] * (not self.stand)]
        flags += ["--episodes", str(self.episodes)] if self.episodes else []
        return flags + (["--robot", self.robot] if self.robot else [])


@dataclass(frozen=True, kw_only=True)
class StudyFile(Bounded):
    """A study as its file has it."""

    about: str = ""
    seeds: tuple[Seed, ...] = (0,)
    groups: tuple[str, ...] = ()
    """As `horizon train --groups` takes them; `each` and `pairs` stand for every group
    of the catalogue and every two. Without any, those of the settings."""
    steps_per_s: Positive | None = None
    """Env steps a second of one run beside the others, to say what the study costs."""
    train: dict[str, Any] = field(default_factory=dict)
    """Settings of all runs."""
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings by method; without `method` among them the key names it."""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Other settings to cross the methods with, by what to call them."""
    evaluate: tuple[EvaluationPlan, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of a study."""

    name: str
    cell: str
    """Its name without the seed: what the seeds of one method have in common."""
    method: str
    groups: str
    setting: str
    seed: int
    settings: dict[str, Any]
    """As a file of `horizon train` has them, but for `{grid}`: see `settings_in`."""

    def settings_in(self, grid: Path) -> dict[str, Any]:
        """Return its settings where that is the study's folder."""
        return _fill_in(self.settings, "{grid}", str(grid))


def load_study(path: Path) -> StudyFile:
    """Read a study; what is wrong with it is said with file and line."""
    with blame(f"cannot read study {path}"):
        text = read_text(path)
    return parse_study(text, str(path))


def parse_study(text: str, source: str = "study") -> StudyFile:
    """Read a study from its text."""
    with toml_tables(text, source) as tables:
        study = decode_value(StudyFile, tables)
        for kind in ("methods", "settings"):
            for key, table in getattr(study, kind).items():
                with inside(kind, key):
                    _check_part(key, table)
        if not study.methods:
            raise FieldError("a study needs methods: add [methods.horizon], say")
        for axis in ("seed", *AXES):
            if axis in study.train:
                raise FieldError("an axis: put it above [train]", ("train", axis))
        return study


def expand(
    study: StudyFile, group_names: Callable[[str | None], Sequence[str]]
) -> tuple[PlannedRun, ...]:
    """Return all runs of a study, in its order.

    Args:
        study: The study.
        group_names: Returns the groups of a catalogue by its name or file; None stands
            for the usual one.
    """
    runs: dict[str, PlannedRun] = {}
    for method, own in study.methods.items():
        for setting, other in (study.settings or {"": {}}).items():
            parts = (study.train, {"method": method}, own, other)
            axes = {k: own.get(k, getattr(study, k)) for k in AXES}
            axes |= {k: other[k] for k in AXES if k in other}
            settings: dict[str, Any] = {}
            for part in parts:
                plain = {k: v for k, v in part.items() if k not in AXES}
                settings = merge(settings, plain)
            names = group_names(settings.get("catalogue"))
            for groups in _groups(axes["groups"], names) or ("",):
                for seed in axes["seeds"]:
                    run = _plan(method, groups, setting, seed, settings)
                    if run.name in runs:
                        raise InputError(
                            f"two runs of one name: {run.name}. Names follow from method, "
                            "groups, setting and seed: list each of them once"
                        )
                    runs[run.name] = run
    return tuple(runs.values())


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others laid over them, table by table."""
    merged = dict(old)
    for key, value in new.items():
        key = key.replace("-", "_")
        if isinstance(value, Mapping):
            before = merged.get(key)
            value = merge(before if isinstance(before, Mapping) else {}, value)
        merged[key] = value
    return merged


def _plan(
    method: str, groups: str, setting: str, seed: int, settings: dict[str, Any]
) -> PlannedRun:
    label = groups.replace(",", "+").replace(" ", "")
    cell = "_".join(filter(None, (method, label, setting)))
    if not re.fullmatch(NAME, cell):
        raise InputError(f"'{cell}_s{seed}' is not a name for a run: a folder's name")
    own = {"groups": groups, "seed": seed} if groups else {"seed": seed}
    return PlannedRun(
        name=f"{cell}_s{seed}",
        cell=cell,
        method=method,
        groups=groups,
        setting=setting,
        seed=seed,
        settings=_fill_in({**settings, **own}, "{seed}", str(seed)),
    )


def _fill_in(value: Any, key: str, text: str) -> Any:
    """Put a text where texts have its key: teachers, or a start, of the same seed."""
    if isinstance(value, str):
        return value.replace(key, text)
    if isinstance(value, Mapping):
        return {name: _fill_in(inner, key, text) for name, inner in value.items()}
    return [_fill_in(x, key, text) for x in value] if isinstance(value, list) else value


def _groups(asked: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    many = {EACH: tuple(names), PAIRS: tuple(map(",".join, combinations(names, 2)))}
    return tuple(groups for text in asked for groups in many.get(text, (text,)))


def _check_part(key: str, table: Mapping[str, Any]) -> None:
    if not re.fullmatch(NAME, key):
        raise FieldError(f"not a name for a folder; accepted: {NAME}")
    for inner in table:
        if inner[0].isdigit():  # To TOML a dot in a name begins another table.
            raise FieldError(f'quote the name: "{key}.{inner}"', (inner,))
    if "seed" in table:
        raise FieldError("seeds are a list, as in seeds = [0, 1, 2]", ("seed",))
    if axes := {axis: table[axis] for axis in AXES if axis in table}:
        decode_value(StudyFile, axes)
