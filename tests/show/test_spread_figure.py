"""The frontier figure of a method whose instances draw their own levels."""

import pytest
from doraemon_runs import GROUPS, method, run

from horizon_rl.curriculum import Curriculum


def test_bands_are_quantiles_and_the_line_is_the_median():
    pytest.importorskip("matplotlib")
    from horizon_rl.show.frontier_figure import frontier_figure

    entries = run(Curriculum(GROUPS, method(phases=6))).entries
    figure = frontier_figure(entries, GROUPS, "mine")
    for panel, group in zip(figure.axes, GROUPS, strict=True):
        assert len(panel.collections) == len(entries)
        for entry, band in zip(entries, panel.collections, strict=True):
            heights = band.get_paths()[0].vertices[:, 1]
            low, high = heights.min(), heights.max()
            assert (low, high) == pytest.approx(entry.proposal.band_of(group))
            assert low < entry.proposal.levels[group] < high
        (line,) = panel.lines
        medians = [entry.proposal.levels[group] for entry in entries]
        assert list(line.get_ydata()) == [0.0, *medians]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["10 to 90 % of instances", "median"]
