"""Evaluations beside each other: success by suite, column and policy.

They come from files of `horizon eval --json`, from the records of shipped policies, or
fresh from an evaluator, and all look the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from horizon_rl.evaluation.statistics import Interval, spread
from horizon_rl.evaluation.success import read_json
from horizon_rl.runs.results import BeforeAfter, Record, is_record
from horizon_rl.show.numbers import (
    NONE,
    show_count,
    show_interval,
    show_number,
    show_percent,
    show_spread,
)
from horizon_rl.show.table import Cell, Table
from horizon_rl.support.errors import InputError

NAME_WIDTH = 14


@dataclass(frozen=True, kw_only=True)
class SuiteScores:
    """A frozen suite, and how policies did in it."""

    suite: str
    draw: str
    severity: float | None
    digest: str
    columns: tuple[str, ...]
    policies: Mapping[str, Sequence[Mapping[str, Record]]]
    """Its columns, one mapping for each of a policy's training seeds."""

    @property
    def title(self) -> str:
        return describe_suite(self.suite, self.severity, self.draw)

    def of(self, policy: str, column: str) -> list[Record]:
        """Return what a policy's seeds scored in a column."""
        return [s[column] for s in self.policies.get(policy, ()) if column in s]

    def about(self, column: str, what: str) -> float | None:
        """Return `stand` or `impossible` of a column, as the most scenarios say."""
        scores = [s for name in self.policies for s in self.of(name, column)]
        known = [s for s in scores if s.get(what) is not None]
        best = max(known, key=lambda s: s.get("episodes", 0), default={})
        return best.get(what)


def describe_suite(name: str, severity: float | None, draw: str = "dev") -> str:
    where = f"{name} ({draw})"
    return where if severity is None else f"{where} at severity {severity:g}"


def read_records(file: Path, name: str | None = None) -> list[dict[str, Any]]:
    """Read the evaluations in a file, calling all their policies `name` if it is given."""
    data = read_json(file)
    records = data if isinstance(data, list) else [data]
    if not records or not all(map(is_record, records)):
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
    policies: dict[str, list[Record]] = {}
    for record in records:
        policies.setdefault(record["policy"], []).append(record["columns"])
    suite = records[0]["suite"]
    return SuiteScores(
        suite=suite["name"],
        # Before there were two draws, there was dev.
        draw=suite.get("draw", "dev"),
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
    policies, columns = scores.policies, scores.columns
    bounds = [
        what
        for what in ("stand", "impossible")
        if any(scores.about(column, what) is not None for column in columns)
    ]
    sizes = {
        c.get("episodes", 0) for s in policies.values() for r in s for c in r.values()
    }
    notes = [f"Scenarios a column: {', '.join(map(str, sorted(sizes)))}."]
    if intervals:
        notes.append("In brackets the 95 % interval of one checkpoint.")
    if any(len(seeds) > 1 for seeds in policies.values()):
        notes.append("Methods with several seeds: mean ± s.d. over training seeds.")
    return Table(
        f"Success, %, in {scores.title}, suite {scores.digest[:12]}",
        ("column", *policies, *bounds),
        tuple(
            (
                column,
                *(
                    _success(scores.of(policy, column), intervals)
                    for policy in policies
                ),
                *(Cell(show_percent(scores.about(column, b)), "dim") for b in bounds),
            )
            for column in columns
        ),
        tuple(notes),
        name_width=NAME_WIDTH,
    )


def tracking_table(scores: SuiteScores) -> Table:
    """Lay out what success hides: how closely policies track, and for how long."""
    return Table(
        f"Beside success, in {scores.title}, suite {scores.digest[:12]}",
        ("column", *scores.policies),
        tuple(
            (column, *(_tracking(scores.of(name, column)) for name in scores.policies))
            for column in scores.columns
        ),
        (
            "Close / length / error: share of episodes that succeed and track closely, %",
            "(within 0.2 m/s by default); mean length, % of the longest; mean error, m/s.",
        ),
        name_width=NAME_WIDTH,
    )


def before_after_tables(found: BeforeAfter) -> tuple[Table, Table]:
    """Lay out a run's start and end: success, and what it hides."""
    named = {"before": found.before, "after": found.after}
    scores = score_suite([{**r, "policy": name} for name, r in named.items()])
    table = suite_table(scores, intervals=False)
    steps = show_count(found.env_steps)
    note = f"After: checkpoint {found.checkpoint}, {steps} env steps."
    return replace(table, notes=(*table.notes, note)), tracking_table(scores)


def policy_table(record: Record) -> Table:
    """Lay out everything about one policy, a row per column of the suite."""
    suite, columns = record["suite"], record["columns"]
    where = describe_suite(suite["name"], suite["severity"], suite["draw"])
    unhealthy = [c["falls"]["unhealthy"] * c["episodes"] for c in columns.values()]
    broken = sum(map(round, unhealthy))
    note = f"In {broken} episodes the physics broke down."
    return Table(
        f"{record['policy']} in {where}, suite {suite['hash'][:12]}",
        (
            *("column", "success", "95 %", "close", "length", "stand"),
            *("impos-\nsible", "error\nm/s", "yaw\nrad/s", "trunk\ndown", "tilt"),
        ),
        tuple(
            (
                name,
                Cell(show_percent(c["success"]), "bold"),
                show_interval(Interval(**c["interval"])),
                show_percent(c["close"]),
                show_percent(c["length"], 0),
                *(show_percent(c[what]) for what in ("stand", "impossible")),
                show_number(c["tracking_error"], ".3f"),
                show_number(c["yaw_error"], ".3f"),
                *(show_percent(c["falls"][cause], 0) for cause in ("trunk", "tilt")),
            )
            for name, c in columns.items()
        ),
        ("Shares in %.", *[note] * bool(broken)),
        name_width=NAME_WIDTH,
    )


def _success(seeds: Sequence[Record], intervals: bool) -> str:
    if not seeds:
        return NONE
    success = spread(s["success"] for s in seeds)
    interval = seeds[0].get("interval") if intervals and len(seeds) == 1 else None
    bounds = f" ({show_interval(Interval(**interval))})" if interval else ""
    return show_spread(success, 100.0, 1) + bounds


def _tracking(seeds: Sequence[Record]) -> str:
    def mean(what: str) -> float | None:
        known = [s[what] for s in seeds if s.get(what) is not None]
        return sum(known) / len(known) if known else None

    return " / ".join(
        (
            show_percent(mean("close")),
            show_percent(mean("length"), 0),
            show_number(mean("tracking_error"), ".3f"),
        )
    )


def _key(record: Record) -> tuple[str, dict[str, tuple[float, int]]]:
    columns = record["columns"].items()
    return record["policy"], {
        name: (c["success"], c.get("episodes", 0)) for name, c in columns
    }
