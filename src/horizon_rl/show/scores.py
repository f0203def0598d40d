"""Evaluations beside each other: success by suite, column and policy.

They come from files of `horizon eval --json`, from the records of shipped policies, or
fresh from an evaluator, and all look the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from horizon_rl.evaluation.statistics import Interval, spread_by_column
from horizon_rl.evaluation.success import read_json
from horizon_rl.runs.read import NUMBER, find
from horizon_rl.show.numbers import (
    NONE,
    show_interval,
    show_number,
    show_percent,
    show_spread,
)
from horizon_rl.show.table import Cell, Table
from horizon_rl.support.errors import InputError

Record = Mapping[str, Any]
"""An evaluation, as `horizon eval --json` writes it."""
NAME_WIDTH = 14


@dataclass(frozen=True, kw_only=True)
class Score:
    """One policy in one column, one training seed."""

    success: float
    interval: Interval | None
    episodes: int
    stand: float | None
    """Success of the policy that holds the default pose."""
    impossible: float | None
    """Share of the scenarios that statics makes impossible."""


@dataclass(frozen=True, kw_only=True)
class SuiteScores:
    """A frozen suite, and how policies did in it."""

    suite: str
    severity: float | None
    digest: str
    columns: tuple[str, ...]
    policies: Mapping[str, Sequence[Mapping[str, Score]]]
    """Scores by column, one mapping for each of a policy's training seeds."""

    @property
    def title(self) -> str:
        return describe_suite(self.suite, self.severity)

    def of(self, policy: str, column: str) -> list[Score]:
        """Return what a policy's seeds scored in a column."""
        return [s[column] for s in self.policies.get(policy, ()) if column in s]

    def about(self, column: str, what: str) -> float | None:
        """Return `stand` or `impossible` of a column, as the most scenarios say."""
        scores = [s for name in self.policies for s in self.of(name, column)]
        known = [s for s in scores if getattr(s, what) is not None]
        best = max(known, key=lambda s: s.episodes, default=None)
        return getattr(best, what) if best else None


def describe_suite(name: str, severity: float | None) -> str:
    return name if severity is None else f"{name} at severity {severity:g}"


def read_records(file: Path, name: str | None = None) -> list[dict[str, Any]]:
    """Read the evaluations in a file, calling all their policies `name` if it is given."""
    data = read_json(file)
    records = data if isinstance(data, list) else [data]
    if not records or not all(map(_is_record, records)):
        raise InputError(
            f"{file}: not results; accepted: what `horizon eval --json FILE` writes"
        )
    return [{**record, "policy": name or record["policy"]} for record in records]


def collect(
    records: Iterable[Record], compared: Iterable[Record] = ()
) -> tuple[SuiteScores, ...]:
    """Put evaluations of one suite into one table.

    Args:
        records: Evaluations that are reported; one that comes twice counts once.
        compared: Others, to stand beside them where they are of the same suite.
    """
    tables: dict[str, list[Record]] = {}
    for record in records:
        table = tables.setdefault(record["suite"]["hash"], [])
        # The same evaluation by two ways, a file and a record, is not two seeds.
        table += [record] if _key(record) not in map(_key, table) else []
    for record in compared:
        table = tables.get(record["suite"]["hash"], [])
        if table and record["policy"] not in [r["policy"] for r in table]:
            table.append(record)
    found = map(score_suite, tables.values())
    return tuple(sorted(found, key=lambda t: (t.suite, t.severity or 0.0)))


def score_suite(records: Sequence[Record]) -> SuiteScores:
    """Put evaluations of one suite together; those of one name are training seeds."""
    policies: dict[str, list[dict[str, Score]]] = {}
    for record in records:
        policies.setdefault(record["policy"], []).append(_scores(record))
    suite = records[0]["suite"]
    return SuiteScores(
        suite=suite["name"],
        severity=suite.get("severity"),
        digest=suite["hash"],
        columns=tuple(dict.fromkeys(c for r in records for c in r["columns"])),
        policies=policies,
    )


def suite_table(scores: SuiteScores, *, intervals: bool = True) -> Table:
    """Lay out success of every policy by column, with the floor.

    Args:
        scores: Policies in one suite.
        intervals: Show the 95 % interval of single checkpoints, which takes room.
    """
    bounds = [
        what
        for what in ("stand", "impossible")
        if any(scores.about(column, what) is not None for column in scores.columns)
    ]
    seeded = any(len(seeds) > 1 for seeds in scores.policies.values())
    sizes = {
        name: ", ".join(map(str, sorted({s[c].episodes for s in seeds for c in s})))
        for name, seeds in scores.policies.items()
    }
    told = "; ".join(f"{name}: {size}" for name, size in sizes.items())
    if len(set(sizes.values())) == 1:
        told = next(iter(sizes.values()))
    notes = [
        f"Scenarios a column: {told}.",
        "In brackets the 95 % interval of one checkpoint.",
        "Methods with several seeds: mean ± s.d. over training seeds.",
    ]
    return Table(
        f"Success, %, in {scores.title}, suite {scores.digest[:12]}",
        ("column", *scores.policies, *bounds),
        tuple(
            (
                column,
                *(_success(scores.of(p, column), intervals) for p in scores.policies),
                *(Cell(show_percent(scores.about(column, b)), "dim") for b in bounds),
            )
            for column in scores.columns
        ),
        (notes[0], *notes[1:2] * intervals, *notes[2:] * seeded),
        name_width=NAME_WIDTH,
    )


def policy_table(record: Record) -> Table:
    """Lay out everything about one policy, a row per column of the suite."""
    suite, columns = record["suite"], record["columns"]
    where = describe_suite(suite["name"], suite["severity"])
    broken = sum(
        round(c["falls"]["unhealthy"] * c["episodes"]) for c in columns.values()
    )
    note = f"In {broken} episodes the physics broke down."
    return Table(
        f"{record['policy']} in {where}, suite {suite['hash'][:12]}",
        (
            *("column", "success", "95 %", "stand", "impos-\nsible", "length"),
            *("error\nm/s", "yaw\nrad/s", "trunk\ndown", "tilt"),
        ),
        tuple(
            (
                name,
                Cell(show_percent(c["success"]), "bold"),
                show_interval(Interval(**c["interval"])),
                *(show_percent(c[what]) for what in ("stand", "impossible")),
                show_percent(c["length"], 0),
                *(
                    show_number(c[f"{what}_error"], ".3f")
                    for what in ("tracking", "yaw")
                ),
                *(show_percent(c["falls"][cause], 0) for cause in ("trunk", "tilt")),
            )
            for name, c in columns.items()
        ),
        ("Shares in %.", *[note] * bool(broken)),
        name_width=NAME_WIDTH,
    )


def _success(seeds: Sequence[Score], intervals: bool) -> str:
    if not seeds:
        return NONE
    (spread,) = spread_by_column([[s.success] for s in seeds])
    interval = seeds[0].interval if intervals and len(seeds) == 1 else None
    bounds = f" ({show_interval(interval)})" if interval else ""
    return show_spread(spread, 100.0, digits=1) + bounds


def _is_record(record: Any) -> bool:
    """Say whether it has what a table needs; other fields may be missing."""
    columns, suite = (find(record, dict, key) or {} for key in ("columns", "suite"))
    return bool(
        columns
        and find(record, str, "policy")
        and find(suite, str, "name")
        and find(suite, str, "hash")
        and isinstance(suite.get("severity"), NUMBER | None)
        and all(_is_share(find(c, NUMBER, "success")) for c in columns.values())
    )


def _is_share(value: Any) -> bool:
    return value is not None and 0.0 <= value <= 1.0


def _key(record: Record) -> tuple[str, dict[str, Score]]:
    return record["policy"], _scores(record)


def _scores(record: Record) -> dict[str, Score]:
    return {name: _score(column) for name, column in record["columns"].items()}


def _score(column: Record) -> Score:
    low, high = (find(column, NUMBER, "interval", key) for key in ("low", "high"))
    stand, impossible = (find(column, NUMBER, key) for key in ("stand", "impossible"))
    return Score(
        success=column["success"],
        interval=Interval(low, high) if _is_share(low) and _is_share(high) else None,
        episodes=find(column, int, "episodes") or 0,
        stand=stand if _is_share(stand) else None,
        impossible=impossible if _is_share(impossible) else None,
    )
