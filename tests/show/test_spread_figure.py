"""The frontier figure of methods whose instances have levels of their own."""

import pytest
from doraemon_runs import GROUPS, method, run
from evidence import GOOD

from horizon_rl.curriculum import Curriculum, Plan, Plr, Teacher
from horizon_rl.curriculum.methods import Distill
from horizon_rl.domains import paper_catalogue

QUANTILES = ["10 to 90 % of instances", "median"]


def widened():
    return run(Curriculum(GROUPS, method(phases=6))).entries


def replayed():
    """Return phases of PLR that know no instance yet: levels are uniform."""
    plan = Plan.of(paper_catalogue(), GROUPS, phases=6, episodes=100)
    return told(Plr(plan=plan))


def taught():
    """Return phases with two teachers of mass; neither is at home in com."""
    teachers = [
        Teacher(name=name, levels={"mass": level}, env_steps=1, digest=name)
        for name, level in (("narrow", 0.2), ("wide", 0.5))
    ]
    return told(Distill(teachers=tuple(teachers)))


def told(method):
    curriculum = Curriculum(GROUPS, method)
    for _ in range(3):
        curriculum.tell(GOOD)
    return curriculum.entries


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (widened, QUANTILES),
        (replayed, QUANTILES),
        (taught, ["least to largest level of teachers", "widest teacher"]),
    ],
)
def test_band_and_line_are_those_of_the_phase_and_say_what_they_are(make, words):
    pytest.importorskip("matplotlib")
    from horizon_rl.show.frontier_figure import frontier_figure

    entries = make()
    figure = frontier_figure(entries, GROUPS, "mine")
    for panel, group in zip(figure.axes, GROUPS, strict=True):
        assert len(panel.collections) == len(entries)
        levels = [entry.proposal.levels[group] for entry in entries]
        for entry, band in zip(entries, panel.collections, strict=True):
            heights = band.get_paths()[0].vertices[:, 1]
            low, high = heights.min(), heights.max()
            assert (low, high) == pytest.approx(entry.proposal.band_of(group))
            assert low <= entry.proposal.levels[group] <= high
        (line,) = panel.lines
        assert [*line.get_xdata()] == [*range(len(entries) + 1)]
        assert [*line.get_ydata()] == [*levels, levels[-1]], "from left to right"
        assert line.get_drawstyle() == "steps-post"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == words
