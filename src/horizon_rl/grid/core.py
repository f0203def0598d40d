"""The pairwise search: which groups make a compact core, from a finished grid's records.

An *expert* widens one group, a *pair* two, the *full* run all. Of every pair, in points
and as means over its two groups (the paper names F and O, and gives no formulae):

    F, frontier change     coverage in the pair run - coverage in the expert's
    O, isolated transfer   success in the group's own column: pair run - expert

The rule was written down before any of our results were seen:

    hard  a group whose own column the full run masters less than 90 %
    core  the hard groups that have a partner with F + O > 0

Seeds are the unit: F and O are taken seed by seed, then averaged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from horizon_rl.evaluation.draws import Draw
from horizon_rl.evaluation.statistics import Spread, spread
from horizon_rl.runs.results import Record
from horizon_rl.support.errors import InputError

HARD_BELOW = 0.9

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class GroupFinding:
    """One group: its expert, and the full run in the group's own column."""

    group: str
    expert_success: Spread
    expert_coverage: Spread
    full_success: Spread
    full_coverage: Spread
    core_coverage: Spread | None
    """Of the run of all selected groups, where the records have it at its end."""
    is_hard: bool
    partner: str
    """With whom it gains most."""
    gain: float
    """F + O of that pair, points."""
    is_core: bool


@dataclass(frozen=True, kw_only=True)
class PairFinding:
    """Two groups widened together."""

    groups: Pair
    success: Spread
    """With both groups shifted, the others at the baseline."""
    frontier_change: Spread
    """F, points."""
    transfer: Spread
    """O, points."""

    @property
    def gain(self) -> float:
        """F + O, points."""
        return self.frontier_change.mean + self.transfer.mean


@dataclass(frozen=True, kw_only=True)
class CoreSearch:
    """The matrix, and what the rule selects."""

    severity: float
    draw: Draw
    seeds: tuple[int, ...]
    groups: tuple[GroupFinding, ...]
    pairs: tuple[PairFinding, ...]

    @property
    def core(self) -> tuple[str, ...]:
        return tuple(finding.group for finding in self.groups if finding.is_core)


def select_core(
    full_success: Mapping[str, float], gains: Mapping[Pair, float]
) -> tuple[str, ...]:
    """Apply the rule: the hard groups that have a partner with F + O > 0.

    Args:
        full_success: The full run's success in every group's own column.
        gains: F + O of every pair, points.
    """
    return tuple(
        group
        for group, success in full_success.items()
        if success < HARD_BELOW
        and any(gain > 0.0 for pair, gain in gains.items() if group in pair)
    )


def search_core(
    records: Sequence[Record],
    severity: float = 0.5,
    draw: Draw = "dev",
    suite: str = "ood",
) -> CoreSearch:
    """Put the records of experts, pairs and full runs into the matrix.

    They are of one method and setting, one of every group, pair and seed.
    """
    names = max((tuple(r["groups"]) for r in records), key=len)
    # A run of the core may go on: the rule does without it.
    needed = [r for r in records if len(r["groups"]) in (1, 2, len(names))]
    _refuse_unfinished(needed)
    runs = {(frozenset(r["groups"]), r["seed"]): r for r in records if r["finished"]}
    seeds = tuple(sorted({r["seed"] for r in needed}))
    pairs = list(combinations(names, 2))
    _refuse_gaps(runs, names, pairs, seeds)

    def run(groups: Iterable[str], seed: int) -> Record:
        return runs[frozenset(groups), seed]

    def coverage(groups: Iterable[str], group: str) -> Spread:
        return spread(run(groups, seed)["coverage"][group] for seed in seeds)

    def success(record: Record, *groups: str) -> float:
        return _success(record, groups, (suite, severity, draw))

    def change(pair: Pair, seed: int) -> float:
        both = run(pair, seed)["coverage"]
        return fmean(both[g] - run([g], seed)["coverage"][g] for g in pair)

    def transfer(pair: Pair, seed: int) -> float:
        both = run(pair, seed)
        return fmean(success(both, g) - success(run([g], seed), g) for g in pair)

    found = tuple(
        PairFinding(
            groups=pair,
            success=spread(success(run(pair, seed), *pair) for seed in seeds),
            frontier_change=spread(100.0 * change(pair, seed) for seed in seeds),
            transfer=spread(100.0 * transfer(pair, seed) for seed in seeds),
        )
        for pair in pairs
    )
    full = {g: spread(success(run(names, s), g) for s in seeds) for g in names}
    gains = {finding.groups: finding.gain for finding in found}
    core = select_core({g: s.mean for g, s in full.items()}, gains)
    has_core = all((frozenset(core), seed) in runs for seed in seeds)
    return CoreSearch(
        severity=severity,
        draw=draw,
        seeds=seeds,
        groups=tuple(
            GroupFinding(
                group=g,
                expert_success=spread(success(run([g], s), g) for s in seeds),
                expert_coverage=coverage([g], g),
                full_success=full[g],
                full_coverage=coverage(names, g),
                core_coverage=coverage(core, g) if has_core and g in core else None,
                is_hard=full[g].mean < HARD_BELOW,
                partner=(best := _best_pair(g, gains))[0],
                gain=best[1],
                is_core=g in core,
            )
            for g in names
        ),
        pairs=found,
    )


def _best_pair(group: str, gains: Mapping[Pair, float]) -> tuple[str, float]:
    pair = max((pair for pair in gains if group in pair), key=lambda p: gains[p])
    return pair[pair[0] == group], gains[pair]


def _refuse_unfinished(records: Sequence[Record]) -> None:
    if names := [record["run"] for record in records if not record["finished"]]:
        raise InputError(
            "a search compares runs at their end, evaluated; not yet as their study asks: "
            f"{_name_some(names)}. The command that began their grid goes on with them"
        )


def _refuse_gaps(
    runs: Mapping[tuple[frozenset[str], int], Record],
    names: Sequence[str],
    pairs: Sequence[Pair],
    seeds: Sequence[int],
) -> None:
    if len(names) < 3:
        raise InputError(
            "a search needs experts, pairs and a run of all groups, 3 or more"
        )
    wanted = [*((name,) for name in names), *pairs, tuple(names)]
    missing = [
        f"{'+'.join(groups)} seed {seed}"
        for groups in wanted
        for seed in seeds
        if (frozenset(groups), seed) not in runs
    ]
    if missing:
        raise InputError(
            "a search needs an expert of every group, every pair and a run of all, each "
            f"with every seed; missing: {_name_some(missing)}"
        )


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _success(
    record: Record, groups: Sequence[str], asked: tuple[str, float, Draw]
) -> float:
    """Return success in the column of groups, of the last checkpoint evaluated."""
    found = [
        (evaluation["env_steps"], column["success"], column["episodes"])
        for evaluation in record["evaluations"]
        if tuple(evaluation["suite"][k] for k in ("name", "severity", "draw")) == asked
        for name, column in evaluation["columns"].items()
        if set(name.split("+")) == set(groups)
    ]
    suite, severity, draw = asked
    where = (
        f"column {'+'.join(groups)} of {suite} at severity {severity:g}, draw {draw}"
    )
    if not found:
        raise InputError(
            f"{record['run']} was not evaluated in {where}: its study needs "
            'columns = ["own"] there'
        )
    last = {hit for hit in found if hit[0] == max(found)[0]}
    if len(last) > 1:
        raise InputError(
            f"{record['run']} was evaluated {len(last)} times in {where}, and they "
            "differ: a search needs one such evaluation in the study"
        )
    return last.pop()[1]
