"""The diagnostic on journals whose classes and gains are known."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from scipy.stats import spearmanr

from horizon_rl.curriculum import (
    CurriculumCfg,
    Evidence,
    GateCfg,
    Paper,
    choose_method,
)
from horizon_rl.domains import paper_catalogue
from horizon_rl.evaluation.studies.diagnostic import (
    Diagnostic,
    diagnose,
    difficulties,
    frontier_phases,
)
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg
from horizon_rl.runs.journal import Replay, create_curriculum, replay
from horizon_rl.runs.paths import JOURNAL
from horizon_rl.support.errors import InputError

GOOD = Evidence(
    length=0.95,
    tracking_error=0.2,
    checkpoint_error=0.2,
    checkpoint_return=20.0,
    reference_error=0.2,
    reference_return=20.0,
)
FALLS = replace(GOOD, length=0.6, checkpoint_return=10.0)
STRAYS = replace(GOOD, length=0.9, tracking_error=0.7)
FORGETS = replace(GOOD, length=0.99, checkpoint_return=18.0)


@pytest.fixture
def record(tmp_path):
    """Return a function that writes a journal of given evidence and reads it."""

    def run(*evidence: Evidence, groups=("mass",), method=None) -> Replay:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        curriculum = create_curriculum(path, groups, method or Paper())
        for phase in evidence:
            curriculum.tell(phase)
        curriculum.close()
        return replay(path)

    return run


@pytest.fixture(scope="module")
def rehearsals(tmp_path_factory) -> list[Path]:
    """Journals of two rehearsals that end, and of one cut off by its budget."""
    folder, paths = tmp_path_factory.mktemp("runs"), []
    for seed, max_phases in ((0, 200), (1, 200), (2, 20)):
        cfg = RehearsalCfg(
            method="paper", seed=seed, curriculum=CurriculumCfg(max_phases=max_phases)
        )
        rehearsal = Rehearsal.create(cfg, paper_catalogue(), folder / str(seed))
        list(rehearsal.phases())
        rehearsal.close()
        paths.append(folder / str(seed) / JOURNAL)
    return paths


def rows_of(diagnostic: Diagnostic) -> dict:
    return {row.outcome: row for row in diagnostic.rows}


def test_class_is_the_first_check_that_failed(record):
    everything = replace(FALLS, tracking_error=0.7)
    run = record(GOOD, GOOD, FALLS, STRAYS, FORGETS, everything)
    assert [phase.outcome for phase in frontier_phases(run)] == [
        "full pass",
        "low length",
        "tracking fail",
        "checkpoint fail",
        "low length",
    ]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"length": 0.85, "tracking_error": 0.5}, "full pass"),  # At the thresholds.
        ({"length": 0.8499}, "low length"),
        ({"length": None}, "low length"),
        ({"tracking_error": None}, "tracking fail"),
        ({"checkpoint_return": None}, "checkpoint fail"),
        ({"checkpoint_error": 0.3}, "checkpoint fail"),
        ({"aborted": True}, "low length"),
    ],
)
def test_class_at_the_edges(record, changes, outcome):
    (phase,) = frontier_phases(record(GOOD, replace(GOOD, **changes)))
    assert phase.outcome == outcome


def test_class_goes_by_the_runs_own_thresholds(record):
    gates = GateCfg(min_length=0.5, return_margin=0.6)
    lenient = Paper(cfg=CurriculumCfg(gates=gates))
    (phase,) = frontier_phases(record(GOOD, FALLS, method=lenient))
    assert phase.outcome == "full pass"


def test_gain_is_what_the_next_three_decisions_add(record):
    # One group. Decision 0 is the baseline, then 0.05 and 0.1 are mastered, 0.15 fails,
    # the recovery to 0.1 + 0.4 * 0.05 = 0.12 passes, and 0.15 is mastered by a retry.
    run = record(GOOD, GOOD, GOOD, FALLS, GOOD, GOOD)
    assert difficulties(run) == pytest.approx([0.0, 0.05, 0.1, 0.1, 0.12, 0.15])
    gains = [phase.gain for phase in frontier_phases(run)]
    # After decision 1: 0.12 - 0.05; after decision 2: 0.15 - 0.1; then too few follow.
    assert gains == [pytest.approx(0.07), pytest.approx(0.05), None, None, None]
    ahead = [phase.gain for phase in frontier_phases(run, horizon=1)]
    assert ahead[:4] == pytest.approx([0.05, 0.0, 0.02, 0.03]) and ahead[4] is None


def test_difficulty_is_the_mean_over_all_groups_of_the_run(record):
    run = record(GOOD, GOOD, GOOD, groups=("mass", "com"))
    assert difficulties(run) == pytest.approx([0.0, 0.025, 0.05])


def test_table_of_two_small_runs(record):
    # Gains one decision ahead. Run A masters 0.05, 0.1, fails at 0.15 by falls, fails
    # again at 0.12: gains 0.05, 0, 0, none. Run B fails at 0.05 by forgetting, then
    # masters 0.02: gains 0.02, none.
    a = record(GOOD, GOOD, GOOD, FALLS, replace(FALLS, length=0.4))
    b = record(GOOD, FORGETS, GOOD)
    table = diagnose([a, b], horizon=1)
    rows = rows_of(table)
    assert table.runs == 2 and table.left_out["baseline"] == 2
    full, forgot = rows["full pass"], rows["checkpoint fail"]
    assert (full.phases, full.phases_with_gain) == (3, 2)
    assert full.length == pytest.approx(0.95)
    assert full.checkpoint_ratio == pytest.approx(1.0)
    assert (full.gain, full.improvement_rate) == (pytest.approx(0.025), 0.5)
    assert (forgot.phases, forgot.length) == (1, 0.99)
    assert forgot.checkpoint_ratio == pytest.approx(0.9)
    assert (forgot.gain, forgot.improvement_rate) == (pytest.approx(0.02), 1.0)
    low = rows["low length"]
    assert (low.phases, low.phases_with_gain) == (2, 1)
    assert low.length == pytest.approx(0.5)  # (0.6 + 0.4) / 2.
    assert low.checkpoint_ratio == pytest.approx(0.5)
    assert (low.gain, low.improvement_rate) == (0.0, 0.0)
    none = rows["tracking fail"]
    assert (none.phases, none.phases_with_gain) == (0, 0)
    assert none.length is none.checkpoint_ratio is none.gain is None
    assert none.improvement_rate is None


def test_correlation_by_ranks(record):
    # Gains one ahead: 0.05 (after length 0.95), 0 (after 0.9), 0.02 (after 0.6).
    # Ranks of length 3 2 1, of gain 3 1 2: rho = 1 - 6 (0 + 1 + 1) / (3 * 8) = 0.5.
    run = record(GOOD, GOOD, replace(GOOD, length=0.9), FALLS, GOOD)
    gains = [phase.gain for phase in frontier_phases(run, horizon=1)]
    assert gains[:3] == pytest.approx([0.05, 0.0, 0.02])
    table = diagnose([run], horizon=1)
    assert table.length_correlation.rho == pytest.approx(0.5)
    assert table.length_correlation.phases == 3


def test_correlation_of_nothing_to_rank_is_none(record):
    few = diagnose([record(GOOD, GOOD, FALLS, GOOD)], horizon=1)
    assert (few.length_correlation.rho, few.length_correlation.phases) == (None, 2)
    constant = diagnose([record(*[GOOD] * 8)], horizon=1)
    assert constant.score_correlation.rho is None
    assert constant.score_correlation.phases == 6
    # Nothing is gained: constant on the other side.
    falls = [replace(FALLS, length=length) for length in (0.6, 0.5, 0.4, 0.3)]
    stuck = diagnose([record(GOOD, *falls)], horizon=1)
    assert (stuck.length_correlation.rho, stuck.length_correlation.phases) == (None, 3)


def test_length_that_was_not_measured_is_in_no_mean_and_no_correlation(record):
    unknown = replace(GOOD, length=None)
    table = diagnose([record(GOOD, GOOD, unknown, FALLS, GOOD)], horizon=1)
    low = rows_of(table)["low length"]
    assert (low.phases, low.length) == (2, 0.6)
    assert table.length_correlation.phases == table.score_correlation.phases - 1


@pytest.mark.parametrize(
    ("reference", "value", "ratio"),
    [
        (20.0, 25.0, 1.25),
        (20.0, -5.0, -0.25),  # Lost all of it and more.
        (-20.0, -10.0, None),  # Better, but half of a negative return says "worse".
        (-20.0, 10.0, None),
        (0.0, 1.0, None),
        (None, 1.0, None),
        (20.0, None, None),
    ],
)
def test_checkpoint_ratio_needs_a_positive_reference(record, reference, value, ratio):
    evidence = replace(GOOD, reference_return=reference, checkpoint_return=value)
    (phase,) = frontier_phases(record(GOOD, evidence))
    assert phase.checkpoint_ratio == ratio


def test_phases_at_the_baseline_are_left_out_and_counted(record):
    run = record(FALLS, STRAYS, GOOD, GOOD)
    assert [phase.outcome for phase in frontier_phases(run)] == ["full pass"]
    assert diagnose([run]).left_out["baseline"] == 3


@pytest.mark.parametrize(
    "method", ["linear", "wide", "base", "no-rollback", "scalar-adr"]
)
def test_runs_whose_levels_do_not_depend_on_the_gates_are_left_out(record, method):
    run = record(
        *[GOOD, FALLS, GOOD] * 3, method=choose_method(method, CurriculumCfg())
    )
    table = diagnose([run])
    left_out = table.left_out
    assert sum(row.phases for row in table.rows) == 0
    why = {"no-rollback": "no_rollback", "scalar-adr": "other"}.get(method, "clock")
    first = {"baseline": 1} if method == "no-rollback" else {}
    expected = {**first, why: 9 - len(first)}
    assert {why: count for why, count in left_out.items() if count} == expected


def test_without_gate_c_gate_l_makes_a_full_pass(record):
    method = choose_method("feasibility-only", CurriculumCfg())
    passed, failed = frontier_phases(record(GOOD, FORGETS, FALLS, method=method))
    assert (passed.outcome, failed.outcome) == ("full pass", "low length")
    assert passed.checkpoint_ratio is None and passed.score == 1.0


def test_run_without_phases_gives_an_empty_table(record):
    table = diagnose([record()])
    assert [row.phases for row in table.rows] == [0] * 4
    assert table.score_correlation.rho is None


@pytest.mark.parametrize("horizon", [0, -1])
def test_horizon_is_at_least_one(record, horizon):
    with pytest.raises(InputError, match=f"horizon is {horizon}"):
        diagnose([record(GOOD)], horizon=horizon)


def test_rehearsals_counted_again_by_a_plain_loop(rehearsals):
    runs = [replay(path) for path in rehearsals]
    table = diagnose(runs)
    phases, gains = [], []
    for run in runs:
        method = run.header.make_method()
        state, levels = method.start(run.header.groups), []
        for entry in run.entries:
            state, _ = method.step(state, entry.evidence)
            levels.append(state.difficulty)
        for k, entry in enumerate(run.entries):
            if entry.proposal.frontier is None:
                continue
            phases.append(entry)
            late = k + 3 >= len(run.entries)
            gains.append(None if late else levels[k + 3] - levels[k])
    rows = rows_of(table)
    assert sum(row.phases for row in table.rows) == len(phases)
    assert rows["full pass"].phases == sum(e.decision.verdict.passed for e in phases)
    failed = [e for e in phases if not e.decision.verdict.feasible]
    assert rows["low length"].phases + rows["tracking fail"].phases == len(failed)
    assert sum(r.phases_with_gain for r in table.rows) == len(phases) - 3 * len(runs)
    known = [
        (e, gain) for e, gain in zip(phases, gains, strict=True) if gain is not None
    ]
    passed = [gain for e, gain in known if e.decision.action == "commit"]
    assert rows["full pass"].gain == pytest.approx(sum(passed) / len(passed))
    better = sum(gain > 0.0 for gain in passed) / len(passed)
    assert rows["full pass"].improvement_rate == pytest.approx(better)
    for correlation, values in (
        (table.length_correlation, [e.evidence.length for e, _ in known]),
        (table.score_correlation, [e.decision.verdict.score for e, _ in known]),
    ):
        rho, _ = spearmanr(values, [gain for _, gain in known])
        assert correlation.rho == pytest.approx(rho)
        assert correlation.phases == len(known)


def test_pooling_is_not_a_mean_of_runs_and_has_no_order(rehearsals):
    runs = [replay(path) for path in rehearsals]
    whole, alone = diagnose(runs), [diagnose([run]) for run in runs]
    for i, row in enumerate(whole.rows):
        assert row.phases == sum(one.rows[i].phases for one in alone)
    backwards = diagnose(runs[::-1])
    assert backwards.score_correlation.rho == pytest.approx(whole.score_correlation.rho)
    assert rows_of(backwards)["full pass"].gain == pytest.approx(
        rows_of(whole)["full pass"].gain
    )


def test_torn_last_line_of_a_killed_run_is_no_phase(rehearsals, tmp_path):
    data = rehearsals[0].read_bytes()
    torn, short = tmp_path / "torn.jsonl", tmp_path / "short.jsonl"
    torn.write_bytes(data[:-20])
    short.write_bytes(data[: data[:-1].rindex(b"\n") + 1])
    with pytest.warns(match="torn last line dropped"):
        assert diagnose([replay(torn)]) == diagnose([replay(short)])
    assert diagnose([replay(short)]) != diagnose([replay(rehearsals[0])])
