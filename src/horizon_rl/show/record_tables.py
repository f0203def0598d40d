"""Tables of a grid's collected records; a cell's seeds are averaged.

Seeds are the unit, and the best of a row is bold, ours or not.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from statistics import fmean

import numpy as np

from horizon_rl.evaluation.control import drop_control
from horizon_rl.evaluation.draws import Draw
from horizon_rl.evaluation.statistics import interquartile_mean, spread
from horizon_rl.evaluation.studies.diagnostic import FrontierPhase, pool
from horizon_rl.evaluation.success import CurvePoint
from horizon_rl.grid.core import search_core
from horizon_rl.runs.results import Record
from horizon_rl.show.core_tables import core_tables
from horizon_rl.show.glance import check_scenarios, glance_table, suite_of
from horizon_rl.show.numbers import show_count, show_estimate, show_spread
from horizon_rl.show.scores import score_suite, suite_table, tracking_table
from horizon_rl.show.study_tables import diagnostic_table
from horizon_rl.show.table import Table, bold_columns, bold_rows, tabulate
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode
from horizon_rl.support.words import counted


@dataclass(frozen=True)
class AtMark:
    """What a run had reached at a mark."""

    env_steps: int
    success: float
    scenarios: tuple[str, ...]
    """Hashes of what it was evaluated in."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which records and evaluations a table is of."""

    cells: str = "*"
    """Patterns of cells, with commas between them; a table has them in this order."""
    suite: str = "ood"
    severity: float | None = None
    draw: Draw = "dev"
    mark: float | None = None
    """Env steps at which it was evaluated; None: at the end."""
    column: str = "all"
    figure: str = ""
    """Of `cost`: also draw it, to this PNG; named from where records are."""

    def records(self, records: Sequence[Record]) -> list[Record]:
        """Return the records of the cells asked for."""
        found = [
            record
            for pattern in self.cells.split(",")
            for record in records
            if fnmatch(record["cell"], pattern)
        ]
        if not found:
            cells = ", ".join(dict.fromkeys(record["cell"] for record in records))
            raise InputError(f"no cell is called {self.cells}; there are {cells}")
        return list({record["run"]: record for record in found}.values())

    def evaluations(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return their evaluations in the suite asked for, one of every run."""
        fitting = [
            [e for e in record["evaluations"] if self.fits(e)]
            for record in self.records(records)
        ]
        found = list(filter(None, fitting))
        if not found:
            raise InputError(
                f"no evaluation in {self.suite} ({self.draw}) at severity {self.severity}"
                + (f" and mark {self.mark:g}" if self.mark else "")
            )
        check_scenarios([e for mine in found for e in mine])
        return [
            {
                **mine[0],
                "columns": {k: v for e in mine for k, v in e["columns"].items()},
            }
            for mine in found
        ]

    def reached(self, record: Record, mark: float) -> "AtMark | None":
        """Return a run's env steps and success at a mark: the area, where it has one."""
        at_mark = replace(self, mark=mark)
        for found in filter(at_mark.fits, record["evaluations"]):
            columns, name = found["columns"], self.column
            area = found.get("curve", {}).get(name, {}).get("area")
            own = columns.get(name, {}).get("success")
            if (success := own if area is None else area) is not None:
                # A suite's hash is of all its columns: some may have fewer of them.
                mine = (v for k, v in columns.items() if k.split("@")[0] == name)
                met = tuple(str(v.get("hash")) for v in mine)
                return AtMark(found["env_steps"], success, met)
        return None

    def fits(self, evaluation: Record) -> bool:
        """Tell whether an evaluation is in the suite asked for, at the mark."""
        asked = self.suite, self.draw, self.severity
        return (*suite_of(evaluation), evaluation["mark"]) == (*asked, self.mark)


def success_table(records: Sequence[Record], choice: Choice) -> list[Table]:
    """Success by column, a cell of the study in each of the table's columns."""
    found = choice.evaluations(records)
    scores = score_suite(found)
    single = any(len(seeds) == 1 for seeds in scores.policies.values())
    table = bold_rows(suite_table(scores, intervals=single), len(scores.policies))
    return [_note_gaps(table, records, choice, found)]


def close_table(records: Sequence[Record], choice: Choice) -> list[Table]:
    """What success hides: how closely policies track."""
    found = choice.evaluations(records)
    return [_note_gaps(tracking_table(score_suite(found)), records, choice, found)]


def iqm_table(records: Sequence[Record], choice: Choice) -> list[Table]:
    """Mean over columns but the control, and the mean of the middle half of all scores."""
    found = choice.evaluations(records)
    suite = score_suite(found)
    names = list(drop_control(dict.fromkeys(suite.columns)))
    scores = {
        cell: [
            [seed[name]["success"] for name in names if name in seed] for seed in seeds
        ]
        for cell, seeds in suite.policies.items()
    }
    if any(len(row) < len(names) for rows in scores.values() for row in rows):
        raise InputError(f"some runs lack columns of {suite.title}: take fewer cells")

    def middle(cell: str) -> str:
        rng = np.random.default_rng(0)  # Resampled alike in every row.
        return show_estimate(interquartile_mean(scores[cell], rng, whole_seeds=True))

    table = tabulate(
        f"Success, %, over {counted(len(names), 'column')} of {suite.title}",
        scores,
        (
            ("cell", str),
            ("seeds", lambda cell: str(len(scores[cell]))),
            ("mean", lambda cell: _percent(map(fmean, scores[cell]))),
            ("IQM, 95 %", middle),
        ),
        ("Mean ± s.d. over seeds. IQM: of the middle half of all seeds and columns.",),
    )
    return [_note_gaps(bold_columns(table, skip=2), records, choice, found)]


def coverage_table(records: Sequence[Record], choice: Choice) -> list[Table]:
    """What the runs cost, and the coverage of their groups at the end, %."""
    chosen = choice.records(records)
    cells: dict[str, list[Record]] = {}
    for record in chosen:
        cells.setdefault(record["cell"], []).append(record)
    groups = dict.fromkeys(g for r in records for g in r["groups"])

    def of(key: Callable[[Record], float]) -> Callable[[str], str]:
        return lambda cell: show_spread(spread(map(key, cells[cell])), 1.0, 1)

    def covered(group: str) -> Callable[[str], str]:
        return lambda cell: _percent(r["coverage"].get(group) for r in cells[cell])

    return [
        tabulate(
            "Cost, and coverage at the end, %",
            cells,
            (
                ("cell", str),
                ("seeds", lambda cell: str(len(cells[cell]))),
                ("M env steps", of(lambda r: r["env_steps"] / 1e6)),
                ("phases", of(lambda r: r["phases"])),
                (
                    "lost, %",
                    of(lambda r: 100.0 * r["lost_env_steps"] / (r["env_steps"] or 1)),
                ),
                *((group, covered(group)) for group in groups),
            ),
            (
                "Lost: env steps that were rolled back. Mean ± s.d. over seeds.",
                *_note_unfinished(chosen),
            ),
        )
    ]


def cost_table(records: Sequence[Record], choice: Choice) -> list[Table]:
    """Success against env steps: the area of the curve where there is one."""
    points = cost_points(records, choice)
    cells = dict.fromkeys(record["cell"] for record in choice.records(records))
    marks = {mark: show_count(int(mark)) for mark in _marks(records)}
    found = {(cell, mark): list[float]() for cell in cells for mark in marks}
    for point, mark in points:
        found[point.method, mark].append(point.success)

    def at(mark: float) -> Callable[[str], str]:
        return lambda cell: _percent(found[cell, mark])

    seeds = {f"{c} at {marks[m]}": len(x) for (c, m), x in found.items() if x}
    table = tabulate(
        f"Success in {choice.suite}, {choice.column}, %, against env steps",
        cells,
        (("cell", str), *((marks[mark], at(mark)) for mark in marks)),
        (
            "Mean ± s.d. over seeds; of a curve, the mean over its four severities.",
            *_note_seeds(seeds),
        ),
    )
    return [bold_columns(table)]


def cost_points(
    records: Sequence[Record], choice: Choice
) -> list[tuple[CurvePoint, float]]:
    """What `cost_table` shows, run by run, each with its mark: for a figure too."""
    found = [
        (record, mark, reached)
        for record in choice.records(records)
        for mark in _marks(records)
        if (reached := choice.reached(record, mark))
    ]
    if not found:
        raise InputError(
            f"no evaluation in {choice.suite} ({choice.draw}), column {choice.column}, "
            f"at severity {choice.severity} and a mark"
        )
    if len({reached.scenarios for _, _, reached in found}) > 1:
        raise InputError(
            f"scenarios of column {choice.column} differ between runs: take fewer cells"
        )
    return [
        (CurvePoint(r["cell"], r["seed"], at.env_steps, at.success), mark)
        for r, mark, at in found
    ]


def core_search_tables(records: Sequence[Record], choice: Choice) -> list[Table]:
    """The pairwise search, and what it selects."""
    severity = 0.5 if choice.severity is None else choice.severity
    chosen = choice.records(records)
    return core_tables(search_core(chosen, severity, choice.draw, choice.suite))


def diagnostics_table(records: Sequence[Record], choice: Choice) -> list[Table]:
    """The recoverability diagnostic over all runs."""
    chosen = choice.records(records)
    phases = [decode(FrontierPhase, p) for r in chosen for p in r["frontier_phases"]]
    left_out = sum((Counter(r["left_out"]) for r in chosen), Counter())
    table = diagnostic_table(pool(phases, len(chosen), left_out))
    return [replace(table, notes=(*table.notes, *_note_unfinished(chosen)))]


def at_a_glance(records: Sequence[Record], choice: Choice) -> list[Table]:
    """A row of means for every policy."""
    return [glance_table(choice.records(records), choice.draw)]


KINDS: dict[str, Callable[[Sequence[Record], Choice], list[Table]]] = {
    "success": success_table,
    "close": close_table,
    "iqm": iqm_table,
    "coverage": coverage_table,
    "cost": cost_table,
    "core": core_search_tables,
    "diagnostic": diagnostics_table,
    "glance": at_a_glance,
}


def _note_gaps(
    table: Table,
    records: Sequence[Record],
    choice: Choice,
    evaluations: Sequence[Record],
) -> Table:
    """Note where cells differ in their seeds, and at the end, which have not ended."""
    notes = _note_seeds(Counter(found["policy"] for found in evaluations))
    if choice.mark is None:
        notes = (*notes, *_note_unfinished(choice.records(records)))
    return replace(table, notes=(*table.notes, *notes))


def _note_seeds(seeds: Mapping[str, int]) -> tuple[str, ...]:
    """Say of how many seeds means are, where the numbers differ."""
    if len(set(seeds.values())) < 2:
        return ()
    return (f"Seeds: {', '.join(f'{name} {n}' for name, n in seeds.items())}.",)


def _note_unfinished(records: Sequence[Record]) -> tuple[str, ...]:
    # A shipped policy is at its end.
    going = sum(not record.get("finished", True) for record in records)
    if not going:
        return ()
    return (
        f"Not yet as their study asks (budget, evaluations): {going} of {len(records)} "
        "runs.",
    )


def _marks(records: Sequence[Record]) -> list[float]:
    """Return the env steps at which runs were evaluated on the way, in order."""
    evaluations = (found for record in records for found in record["evaluations"])
    return sorted({e["mark"] for e in evaluations if e["mark"] is not None})


def _percent(shares: Iterable[float | None]) -> str:
    known = [100.0 * share for share in shares if share is not None]
    return show_spread(spread(known), 1.0, 1) if known else ""
