"""What `horizon grid` shows while it runs: a board in a terminal, else lines."""

import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any

from rich.live import Live

from horizon_rl.cli.common import Terminal
from horizon_rl.cli.printing import printing_may_fail
from horizon_rl.grid.folder import GridFolder
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.grid_board import GridProgress, grid_board, progress_line
from horizon_rl.support.errors import InputError

DRAW_EVERY_S = 1.0


class GridScreen:
    """Shows a grid's progress."""

    def __init__(self, folder: GridFolder, progress: GridProgress):
        self._folder, self._progress = folder, progress
        self._console = Terminal(soft_wrap=True)
        self._live = None
        if self._console.is_terminal:
            self._live = Live(console=Terminal(), auto_refresh=False)
        self._known: dict[str, tuple[float | None, RunSummary]] = {}
        self._drawn = 0.0

    def __enter__(self) -> "GridScreen":
        (self._live or nullcontext()).__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self.draw(at_once=True)
        with printing_may_fail():
            (self._live or nullcontext()).__exit__(*details)

    def say(self, text: str) -> None:
        with printing_may_fail():
            if self._live:
                self._live.console.print(text)
            else:
                line = progress_line(self._progress, self._summaries())
                self._console.print(f"{text} ({line})")
        self.draw()

    def draw(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._live and (at_once or now - self._drawn > DRAW_EVERY_S):
            self._drawn = now
            board = grid_board(self._progress, self._summaries())
            with printing_may_fail():
                self._live.update(board, refresh=True)

    def _summaries(self) -> Mapping[str, RunSummary | None]:
        """Read the runs under way again, those that have written since."""
        for name in self._progress.nodes:
            # Where its files are damaged, who works on it says so.
            with suppress(InputError, OSError):
                written = self._folder.last_written(name)
                is_new = self._known.get(name, (None,))[0] != written
                if is_new and (run := self._folder.read_run(name)):
                    self._known[name] = written, run.summary
        return {name: summary for name, (_, summary) in self._known.items()}
