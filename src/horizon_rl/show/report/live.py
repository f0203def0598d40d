"""A run's page, kept up to date by one thread and shared by all readers.

Nothing that a reader sends reaches the files: readers get what was rendered last, from a
table of whole answers in memory.
"""

import hashlib
import json
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from horizon_rl.policies.shipped import start_of
from horizon_rl.runs.journal import is_locked
from horizon_rl.runs.paths import judged_files, metrics_file
from horizon_rl.runs.read import read_run
from horizon_rl.show.report.gather import Source, gather
from horizon_rl.show.report.page import (
    Section,
    render_live,
    render_page,
    render_sections,
)

POLL_S = 1.0
SHARE = 0.25
"""Share of a core that rendering may take: the training beside it needs the rest."""
REFRESH_S = 15.0
"""What is under way is looked at so often even if no file changes: it may hang."""

Stamp = tuple[object, ...]


@dataclass(frozen=True)
class Answer:
    """What is served under one path."""

    body: bytes
    kind: str

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


Answers = Mapping[str, Answer]


def make_answers(title: str, subtitle: str, sections: Sequence[Section]) -> Answers:
    """Lay out all that can be asked for: the page, its state, each section."""
    page = render_page(title, subtitle, sections, is_live=True)
    state = {"sections": [[section.id, section.digest] for section in sections]}
    html = "text/html; charset=utf-8"
    return MappingProxyType(
        {
            "/": Answer(page.encode(), html),
            "/state.json": Answer(json.dumps(state).encode(), "application/json"),
            **{f"/section/{s.id}": Answer(s.html().encode(), html) for s in sections},
        }
    )


class LivePage:
    """Looks at a run's files, and renders what has changed since."""

    def __init__(self, source: Source):
        """Render a first page; files that cannot be read are refused here."""
        self._source = source
        self._answers: Answers = {}
        self._sections: list[Section] = []
        self._titles = ("", "")
        self._drawn: Stamp | None = None
        """The files that figures were drawn from; None draws them at once."""
        self._shown: tuple[Stamp, Stamp] | None = None
        self._problem: str | None = None
        """Why figures are not up to date."""
        self._draw_at = self._look_at = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_up, daemon=True)
        self.num_drawn = 0
        """How often the figures were drawn."""
        self._render()

    @property
    def answers(self) -> Answers:
        return self._answers

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            # Figures being drawn are not waited for: nobody will see them.
            self._thread.join(POLL_S)

    def update(self) -> None:
        """Render again what has changed."""
        try:
            self._render()
        except Exception as error:
            # A directory taken away, a journal being moved: what was shown stays.
            self._drawn = self._shown = None
            self._problem = f"Cannot show: {error}"
            self._publish(render_live(None, self._problem))

    def _keep_up(self) -> None:
        while not self._stop.wait(POLL_S):
            self.update()

    def _render(self) -> None:
        # Stamps first: what is written meanwhile is rendered next time.
        judged, metrics = self._stamps()
        now = time.monotonic()
        must_draw = judged != self._drawn and now >= self._draw_at
        if (judged, metrics) == self._shown and now < self._look_at and not must_draw:
            return
        journal = self._source.journal
        start = start_of(journal.parent)
        summary = read_run(journal, evidence=False, start=start).summary
        if must_draw:
            try:
                self._draw(summary.run)
            finally:  # One that fails costs as much, and is tried again as seldom.
                self._draw_at = now + (time.monotonic() - now) / SHARE
            self._drawn, self._problem = judged, None
        self._publish(render_live(summary, self._problem))
        self._shown, self._look_at = (judged, metrics), now + REFRESH_S

    def _draw(self, run: str) -> None:
        command = f"horizon watch {shlex.quote(self._source.text)}"
        material = gather([self._source], command=command)
        self._titles = (material.title, f"HORIZON, live from {run}")
        self._sections, _ = render_sections(material)
        self.num_drawn += 1

    def _publish(self, now: Section) -> None:
        # One assignment: a reader sees the old table or the new one.
        self._answers = make_answers(*self._titles, [now, *self._sections])

    def _stamps(self) -> tuple[Stamp, Stamp]:
        """Return what tells that a phase was judged, and that one goes on."""
        journal = self._source.journal
        judged = (is_locked(journal), *map(_stamp, judged_files(journal)))
        return judged, _stamp(metrics_file(journal))


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size
