"""A run's page, kept up to date by one thread and shared by all readers.

Nothing that a reader sends reaches the files: readers get what was rendered last, from a
table of whole answers in memory.
"""

import json
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from horizon_rl.policies.shipped import start_of
from horizon_rl.runs.read import read_run
from horizon_rl.show.report.gather import Source, gather
from horizon_rl.show.report.page import (
    Section,
    render_live,
    render_page,
    render_sections,
)

POLL_S = 1.5
SHARE = 0.25
"""Share of a core that drawing may take: the training beside it needs the rest."""


@dataclass(frozen=True)
class Answer:
    """What is served under one path."""

    body: bytes
    kind: str = "text/html; charset=utf-8"


Answers = Mapping[str, Answer]


def make_answers(title: str, subtitle: str, sections: Sequence[Section]) -> Answers:
    """Lay out all that can be asked for: the page, its state, each section."""
    page = render_page(title, subtitle, sections, is_live=True)
    state = {"sections": [[section.id, section.digest] for section in sections]}
    return {
        "/": Answer(page.encode()),
        "/state.json": Answer(json.dumps(state).encode(), "application/json"),
        **{f"/section/{s.id}": Answer(s.html().encode()) for s in sections},
    }


class LivePage:
    """Looks at a run's files, and draws its figures again after each phase."""

    def __init__(self, source: Source):
        """Render a first page; files that cannot be read are refused here."""
        self.answers: Answers = {}
        self.num_drawn = 0
        """How often the figures were drawn."""
        self._source = source
        self._sections: list[Section] = []
        self._titles = ("", "")
        self._drawn: tuple[object, ...] | None = None
        """What figures were drawn from; None draws them at once."""
        self._draw_at = 0.0
        self._problem: str | None = None
        """Why figures are not up to date."""
        self._render()

    def start(self) -> None:
        """Update in a thread of its own until the process ends."""
        threading.Thread(target=self._keep_up, daemon=True).start()

    def update(self) -> None:
        """Look at the files again."""
        try:
            self._render()
        except Exception as error:
            # A directory taken away, a journal being moved: what was shown stays.
            self._drawn = None
            self._problem = f"Cannot show: {error}"
            self._publish(render_live(None, self._problem))

    def _keep_up(self) -> None:
        while True:
            time.sleep(POLL_S)
            self.update()

    def _render(self) -> None:
        journal, began = self._source.journal, time.monotonic()
        start = start_of(journal.parent)
        summary = read_run(journal, evidence=False, start=start).summary
        judged = (
            *(summary.phases, summary.standing, summary.times, summary.budget),
            summary.results,
        )
        if judged != self._drawn and began >= self._draw_at:
            try:
                self._draw(summary.run)
            finally:  # One that fails costs as much, and is tried again as seldom.
                self._draw_at = began + (time.monotonic() - began) / SHARE
            self._drawn, self._problem = judged, None
        self._publish(render_live(summary, self._problem))

    def _draw(self, run: str) -> None:
        command = f"horizon watch {shlex.quote(self._source.text)}"
        material = gather([self._source], command=command)
        self._titles = (material.title, f"HORIZON, live from {run}")
        self._sections, _ = render_sections(material)
        self.num_drawn += 1

    def _publish(self, now: Section) -> None:
        # One assignment: a reader sees the old table or the new one.
        self.answers = make_answers(*self._titles, [now, *self._sections])
