"""Leaps of several groups at once on the board, in summaries and in figures."""

import json
from io import StringIO

import pytest
from rich.console import Console

from governed_run import FAILED, GROUPS, HELD, STALLED, START, STUCK, govern, write
from horizon_rl.cli import main
from horizon_rl.curriculum import CurriculumCfg
from horizon_rl.curriculum.entry import lost_env_steps
from horizon_rl.show.actions import describe_phases, describe_undone
from horizon_rl.show.board import board, frontier_table
from horizon_rl.show.report.figures import _checks
from horizon_rl.show.table import Cell
from run_files import status, status_json


def draw(curriculum) -> str:
    out = StringIO()
    state, entries = curriculum.state, curriculum.entries
    Console(width=200, file=out).print(board(state, entries, {}, CurriculumCfg()))
    return out.getvalue()


def row(curriculum, group: str) -> dict[str, str]:
    state, entries = curriculum.state, curriculum.entries
    table = frontier_table(state, entries, {}, CurriculumCfg())
    cells = next(r for r in table.rows if r[0] == group)
    words = [cell.text if isinstance(cell, Cell) else cell for cell in cells]
    return dict(zip(table.headings, words, strict=True))


def test_leap_is_told_by_its_levels_and_is_no_baseline():
    curriculum = govern(START)
    proposal = curriculum.ask()
    assert proposal and proposal.frontier is None and proposal.kind == "leap"
    level = proposal.levels["mass"]
    assert f"phase 1: leap, all at {level:.3g}: scouts" in draw(curriculum)
    for group in GROUPS:
        assert row(curriculum, group)["candidate"] == f"{level:.3f}"
        assert row(curriculum, group)["last verdict"] == "not tried yet"


def test_baseline_is_told_without_a_level():
    out = draw(govern())
    assert "phase 0: baseline: learn the baseline first" in out


def test_last_verdict_of_every_group_that_leapt():
    held = govern(START, HELD)
    level = held.entries[1].proposal.levels["com"]
    assert row(held, "com")["last verdict"] == f"… {level:.3f}"
    part = govern(START, HELD, STALLED)
    kept = part.entries[2].decision.levels
    assert kept and kept["com"] == pytest.approx(level / 2, abs=1e-3)
    assert row(part, "com")["last verdict"] == f"★ {kept['com']:.3f} of {level:.3f}"
    assert row(part, "com")["status"] == "recovery", "a leap has no rungs"
    lost = govern(START, HELD, FAILED)
    assert row(lost, "mass")["last verdict"] == f"✗ {level:.3f}"


def test_consolidation_tries_no_group():
    curriculum = govern(START, STUCK)
    proposal = curriculum.ask()
    assert proposal and proposal.kind == "consolidate"
    assert "consolidate, all at" in draw(curriculum)
    assert row(curriculum, "mass")["candidate"] == ""
    assert row(curriculum, "mass")["last verdict"].startswith("★")


def test_figure_marks_what_became_of_every_phase():
    pytest.importorskip("matplotlib")
    from horizon_rl.show.frontier_figure import frontier_figure

    curriculum = govern(START, HELD, STALLED, HELD, FAILED, START, STUCK)
    entries = curriculum.entries
    assert "consolidate" in [entry.decision.kind for entry in entries]
    figure = frontier_figure(entries, GROUPS, "mine")
    for panel, group in zip(figure.axes, GROUPS, strict=True):
        marks = {
            int(line.get_xdata()[0]): (line.get_marker(), float(line.get_ydata()[0]))
            for line in panel.lines
            if line.get_marker() != "None"
        }
        assert 0 not in marks, "the baseline widens nothing"
        for phase, entry in enumerate(entries[1:], start=1):
            levels = entry.decision.levels or entry.proposal.levels
            marker = {"commit": "*", "rollback": "x", "hold": "o"}
            assert marks[phase] == (marker[entry.decision.action], levels[group])
        line = next(line for line in panel.lines if line.get_marker() == "None")
        mastered = [e.proposal.mastered[group] for e in entries]
        assert list(line.get_ydata())[:-1] == mastered
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == [
        *("leap", "consolidate", "commit", "rollback", "hold"),
        *("partial commit", "mastered"),
    ]


def test_phases_are_counted_by_what_became_of_them():
    entries = govern(START, HELD, FAILED).entries
    assert describe_phases(entries) == "3 phases: 1 committed, 1 rolled back, 1 held"
    # The phase on hold before the rollback is lost with it.
    assert lost_env_steps(entries) == 200 and lost_env_steps(entries[:2]) == 0
    assert describe_phases(()) == "0 phases: none judged"
    assert describe_undone(entries) == (
        "67% undone by rollbacks, with the phases held before them"
    )
    assert describe_undone((entries[0], entries[2])) == "50% undone by rollbacks"
    assert describe_undone(()) == "0% undone by rollbacks"


def test_gate_c_has_a_limit_only_where_it_judged():
    pytest.importorskip("matplotlib")
    curriculum = govern(START, FAILED)
    method = curriculum.method
    for entry in curriculum.entries:
        *_, error, value = _checks(entry, method)
        judged = entry.decision.verdict.preserved is not None
        assert (error.threshold is not None) == (value.threshold is not None) == judged


def test_status_tells_every_group_of_a_leap(tmp_path, capsys):
    run = write(tmp_path / "run", START, HELD, STALLED)
    data = status_json(capsys, run)
    assert data["by_action"]["hold"]["phases"] == 1
    for frontier in data["frontiers"]:
        assert (frontier["mastered"], frontier["candidate"]) == (0.25, 0.375)
        assert frontier["last_level"] == 0.5
        assert frontier["last_decision"]["levels"] == {"mass": 0.25, "com": 0.25}
    out = status(capsys, run)
    assert "★ 0.250 of 0.500" in out and "leap, all at 0.375" in out


def test_report_and_study_of_a_governed_run(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    run = write(tmp_path / "run", START, HELD, STALLED, HELD, FAILED, START)
    assert main(["report", str(run), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    for words in ("committed in part", "held", "rolled back", "consolidate"):
        assert words in page, words
    assert main(["study", str(run), "--json", str(tmp_path / "study.json")]) == 0
    costs = json.loads((tmp_path / "study.json").read_text())["runs"][0]["costs"]
    assert (costs["commits"], costs["holds"], costs["rollbacks"]) == (3, 2, 1)
    # The phase that was held before the rollback is lost with it.
    assert costs["rolled_back_share"] == pytest.approx(200 / 600)
