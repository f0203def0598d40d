"""Evaluations beside each other: success by suite, column and policy.

They come from files of `horizon eval --json`, from the records of shipped policies, or
fresh from an evaluator, and all look the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from horizon_rl.evaluation.statistics import Interval
from horizon_rl.evaluation.success import read_json
from horizon_rl.runs.read import NUMBER, find
from horizon_rl.support.errors import InputError


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
        at = "" if self.severity is None else f" at severity {self.severity:g}"
        return f"{self.suite}{at}"

    def of(self, policy: str, column: str) -> list[Score]:
        """Return what a policy's seeds scored in a column."""
        return [s[column] for s in self.policies.get(policy, ()) if column in s]

    def about(self, column: str, what: str) -> float | None:
        """Return `stand` or `impossible` of a column, as the most scenarios say."""
        scores = [s for name in self.policies for s in self.of(name, column)]
        known = [s for s in scores if getattr(s, what) is not None]
        best = max(known, key=lambda s: s.episodes, default=None)
        return getattr(best, what) if best else None


def read_records(file: Path, name: str | None = None) -> list[dict[str, Any]]:
    """Read the evaluations in a file, calling all their policies `name` if it is given."""
    data = read_json(file)
    records = data if isinstance(data, list) else [data]
    if not records or not all(map(_is_record, records)):
        raise InputError(
            f"{file}: not results; accepted: what `horizon eval --json FILE` writes"
        )
    return [{**record, "policy": name or record["policy"]} for record in records]


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


def collect(
    records: Iterable[Mapping[str, Any]],
    compared: Iterable[Mapping[str, Any]] = (),
) -> tuple[SuiteScores, ...]:
    """Put evaluations of one suite into one table.

    Args:
        records: Evaluations that are reported.
        compared: Others, to stand beside them where they are of the same suite.
    """
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        tables.setdefault(record["suite"]["hash"], []).append(record)
    for record in compared:
        table = tables.get(record["suite"]["hash"], [])
        if table and record["policy"] not in [r["policy"] for r in table]:
            table.append(record)
    found = [_table(digest, table) for digest, table in tables.items()]
    return tuple(sorted(found, key=lambda t: (t.suite, t.severity or 0.0)))


def _table(digest: str, records: Sequence[Mapping[str, Any]]) -> SuiteScores:
    policies: dict[str, list[dict[str, Score]]] = {}
    for record in records:
        scores = {name: _score(column) for name, column in record["columns"].items()}
        mine = policies.setdefault(record["policy"], [])
        # The same evaluation by two ways, a file and a record, is not two seeds.
        mine += [scores] if scores not in mine else []
    suite = records[0]["suite"]
    return SuiteScores(
        suite=suite["name"],
        severity=suite.get("severity"),
        digest=digest,
        columns=tuple(dict.fromkeys(c for r in records for c in r["columns"])),
        policies=policies,
    )


def _score(column: Mapping[str, Any]) -> Score:
    low, high = (find(column, NUMBER, "interval", key) for key in ("low", "high"))
    known = _is_share(low) and _is_share(high)
    stand, impossible = (find(column, NUMBER, key) for key in ("stand", "impossible"))
    return Score(
        success=column["success"],
        interval=Interval(low, high) if known else None,
        episodes=find(column, int, "episodes") or 0,
        stand=stand if _is_share(stand) else None,
        impossible=impossible if _is_share(impossible) else None,
    )
