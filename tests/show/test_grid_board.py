"""The board of a grid: runs under way, and the whole."""

from pathlib import Path

import pytest
from rich.console import Console

from horizon_rl.runs.read import read_run
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.grid_board import GridProgress, grid_board, progress_line
from run_files import begin


@pytest.fixture
def summary(tmp_path) -> RunSummary:
    begin(tmp_path / "run", steps=1000)
    return read_run(tmp_path / "run" / "journal.jsonl", evidence=False).summary


def drawn(progress: GridProgress, summaries) -> str:
    console = Console(width=100, record=True, file=open(Path("/dev/null"), "w"))
    console.print(grid_board(progress, summaries))
    return console.export_text()


def test_runs_under_way_have_phase_share_and_frontier(summary):
    progress = GridProgress(total=4, done=1, nodes={"horizon_s0": "here"})
    text = drawn(progress, {"horizon_s0": summary})
    row = next(line for line in text.splitlines() if line.startswith("horizon_s0"))
    assert f" {summary.phases} " in row and row.rstrip().endswith("here")
    assert "53%" in row  # 530 of 1000 env steps.
    assert f"{summary.difficulty:.2f}" in row
    assert "1 of 4 runs done, 1 under way" in text


def test_a_run_that_has_written_nothing_yet_is_shown():
    text = drawn(GridProgress(total=1, nodes={"a_s0": "there"}), {})
    assert "a_s0" in text and "there" in text


def test_failures_and_deaths_are_counted():
    progress = GridProgress(total=9, failed={"x": "disk"}, deaths=2)
    line = progress_line(progress, {})
    assert "1 failed, 2 died and went on" in line


def test_more_runs_than_a_screen_holds_are_counted():
    nodes = {f"run_s{i}": "here" for i in range(40)}
    text = drawn(GridProgress(total=50, nodes=nodes), {})
    assert "and 10 more" in text and "run_s39" not in text
